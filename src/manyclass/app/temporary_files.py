"""The folder for the temporary files of joblib's processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import disk_usage

from joblib import parallel_config


@contextmanager
def registered_files(folder: str = "/dev/shm", room: int = 2_000_000_000) -> Iterator[None]:
    """Name joblib's temporary folder, so that an interrupt leaves no files in shared memory.

    By default joblib creates a folder in shared memory, and then starts the process that removes
    it: an interrupt in between leaves the folder for good. In a folder that it is given, joblib
    creates nothing before that process knows the name. ``folder`` is the one that joblib itself
    would choose, if it has ``room`` bytes free.
    """
    if "JOBLIB_TEMP_FOLDER" in os.environ or not _has_room(folder, room):
        yield
        return
    with parallel_config(temp_folder=folder):
        yield


def _has_room(folder: str, room: int) -> bool:
    """Return whether joblib would choose this folder."""
    try:
        return os.access(folder, os.W_OK) and disk_usage(folder).free > room
    except OSError:
        return False
