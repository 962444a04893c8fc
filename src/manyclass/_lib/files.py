"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file completely or not at all: the earlier file stays until the end.

    The content goes to a temporary file in the same folder. It replaces the earlier file when all
    of it is on the disk. An error or an interrupt removes it. A device, such as ``/dev/null``, is
    written to directly. A link is followed. Missing folders are created.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:
            yield device
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    # A new file gets the usual mode of the process. The module tempfile would make it private.
    handle = os.open(temporary, _CREATE, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
