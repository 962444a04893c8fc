"""Files that are written completely or not at all, and checks before anything is computed."""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]

StrPath = str | os.PathLike[str]
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


@contextmanager
def replacing(path: StrPath) -> Iterator[BinaryIO]:
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
    _remove_leftovers(path)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    temporary = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}")
    # A new file gets the usual mode of the process. The module tempfile would make it private.
    handle = os.open(temporary, _CREATE, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            lock(handle)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}."


def lock(handle: int) -> bool | None:
    """Lock a file until it is closed. False: somebody else has; None: the system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # of a file system without locks
        return None
    return True


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files of writers that were killed: nobody has them locked."""
    pattern = re.compile(re.escape(_prefix(path)) + "[0-9a-f]{16}")
    with suppress(OSError):
        for other in [p for p in path.parent.iterdir() if pattern.fullmatch(p.name)]:
            with open(other, "rb") as file:
                if lock(file.fileno()):
                    other.unlink(missing_ok=True)


def replace_file(path: StrPath, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def check_output(
    path: StrPath, inputs: Iterable[StrPath] = (), *, force: bool = False, new_folder: bool = False
) -> None:
    """Raise an error if a file cannot be written, or must not be.

    Inputs are never replaced; names of data sets may be among them. Another file is replaced only
    by ``force``. A device such as ``/dev/null`` is written to in any case. ``new_folder`` says that
    missing folders will be created.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file in it.")
    _check_folder(path, new_folder)
    if not path.is_file():
        return
    if any(os.path.exists(source) and path.samefile(source) for source in inputs):
        raise ValueError(f"{path} is an input. Write to another file.")
    if not force:
        raise ValueError(f"{path} exists. Choose another name, or pass --force to replace it.")


def _check_folder(path: Path, new_folder: bool) -> None:
    folder = path.parent
    if new_folder:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder} for the output. Create it first.")
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder. Choose another place for the output.")
    # A new file in the folder replaces the old one, so the folder must be writable.
    if not os.access(folder, os.W_OK | os.X_OK) and (path.is_file() or not path.exists()):
        raise PermissionError(
            f"the folder {folder} is not writable. Choose another, or change its mode."
        )
