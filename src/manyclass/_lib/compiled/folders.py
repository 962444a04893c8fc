"""Folders that only this user can write to, as ssh demands of the folders of its keys."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

from manyclass._lib.messages import warn


@cache
def shared_place(folder: str) -> str | None:
    """Return the first folder on the way to this one that others can write to; None if none is.

    A folder that does not exist yet will be made by this user; then the folders above it count.
    Of a link, the folders above it count and those above the folder that it leads to. Systems
    without owners of files are trusted.
    """
    if not hasattr(os, "getuid"):
        return None
    for path in (Path(os.path.abspath(folder)), Path(os.path.realpath(folder))):
        for place in (*reversed(path.parents), path):
            if place.exists() and not _is_safe(place, inner=place == path):
                return str(place)
    return None


def _is_safe(place: Path, inner: bool) -> bool:
    """Tell whether a folder belongs to this user or to the system, and others cannot write to it.

    In a folder above, others may add files if it has the sticky bit, as ``/tmp`` has: they cannot
    rename those of this user.
    """
    status = place.stat()
    owned = status.st_uid in ((os.getuid(),) if inner else (os.getuid(), 0))
    if not owned:
        return False
    by_others = bool(status.st_mode & stat.S_IWOTH)
    by_group = bool(status.st_mode & stat.S_IWGRP) and not _is_own_group(status.st_gid)
    return not (by_others or by_group) or (not inner and bool(status.st_mode & stat.S_ISVTX))


def _is_own_group(gid: int) -> bool:
    """Tell whether a group has no member but this user."""
    import grp
    import pwd

    try:
        name = pwd.getpwuid(os.getuid()).pw_name
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == os.getgid() and group.gr_name == name and set(group.gr_mem) <= {name}


@cache
def warn_of_shared(place: str) -> None:
    """Warn once that machine code is not kept."""
    warn(
        f"machine code is compiled again in every process, because other users can write to "
        f"{place}. Set NUMBA_CACHE_DIR to a folder that only you can write to."
    )
