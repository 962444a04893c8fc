"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file whole or not at all: what was there stays until the end.

    The file is a temporary one in the same folder, which takes the other's place when
    all of it has reached the disk. An error or an interrupt removes it. A device, such as
    ``/dev/null``, is written to as it is.

    Parameters
    ----------
    path : path
        Where the file shall be. A link is followed. Its folder is made if need be.

    Yields
    ------
    binary file

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyclass._lib.files import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "file"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"whole")
    ...     path.read_bytes()
    b'whole'
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        with open(path, "wb") as device:
            yield device
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}")
    # A new file gets the mode that the process gives to all of its files; modules for
    # temporary files would make it private.
    handle = os.open(temporary, CREATE, 0o666 if mode is None else mode)
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
    """Write a file whole or not at all."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
