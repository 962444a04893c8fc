"""The bytes of a table: of a file, of the only member of a zip archive, of the standard input."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from manyclass._lib.files import StrPath
from manyclass.app.arguments import DATA_SETS
from manyclass.app.terminal import shown

STDIN = "-"
TEXTS = {".csv": ",", ".tsv": "\t", ".tab": "\t", ".txt": ",", ".data": ","}
"""Endings of text files, and the separators that they promise."""
BINARIES = (".parquet", ".feather", ".arrow", ".xlsx")
ENDINGS = ".csv, .tsv, .txt (also .gz or .zip), .parquet, .feather or .xlsx"
MAGIC = {b"PAR1": ".parquet", b"ARROW1": ".feather"}


class Stream(NamedTuple):
    """A table that can be read from its beginning any number of times."""

    name: str
    """For messages."""
    suffix: str
    """The kind of table: one of ``TEXTS`` or ``BINARIES``."""
    open: Callable[[], IO[bytes]]

    @property
    def is_text(self) -> bool:
        """Whether it has lines and fields."""
        return self.suffix in TEXTS


def open_stream(path: StrPath) -> Stream:
    """Find the table of a path; "-" is the standard input."""
    if str(path) == STDIN:
        return _standard_input()
    path = existing(path)
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return _member(path)
    if suffix == ".gz":
        inner = PurePosixPath(path.stem).suffix.lower()
        if inner in TEXTS:
            return Stream(str(path), inner, lambda: _unpacked(path))
        suffix = inner + suffix
    if suffix not in TEXTS and suffix not in BINARIES:
        raise ValueError(f"{path} is of no known kind. The name must end in {ENDINGS}.")
    return Stream(str(path), suffix, lambda: open(path, "rb"))


def _unpacked(stream: Any) -> Any:
    return gzip.open(stream, "rb")


def existing(path: StrPath) -> Path:
    """Return the path of a file that is there and not empty, or say what is wrong."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    if not path.exists():
        if path.suffix:
            raise FileNotFoundError(f"there is no file {path}.")
        close = get_close_matches(str(path), DATA_SETS, n=1)
        known = f". The data sets are {shown(DATA_SETS)}"
        meant = f" (did you mean {close[0]}?)" if close else known
        raise FileNotFoundError(f"there is no file {path}, nor a data set of that name{meant}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    return path


def _member(path: Path) -> Stream:
    """Return the only table of a zip archive."""
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} is not a complete zip file. Get a fresh copy.") from error
    suffixes = {
        info.filename: PurePosixPath(info.filename).suffix.lower()
        for info in archive.infolist()
        if not info.is_dir() and not info.filename.startswith("__MACOSX/")
    }
    tables = [name for name, suffix in suffixes.items() if suffix in (*TEXTS, *BINARIES)]
    if len(tables) != 1:
        raise ValueError(
            f"{path} must hold one table, and holds {len(tables)}: {shown(suffixes)}. Unpack it."
        )
    return Stream(f"{path}/{tables[0]}", suffixes[tables[0]], lambda: archive.open(tables[0]))


@cache
def _standard_input() -> Stream:
    """Copy the standard input to a file without a name, which vanishes with the process."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("the table - is the standard input: send one, as in cat table.csv | ...")
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(sys.stdin.buffer, copy)
        copy.flush()
        kept = os.dup(copy.fileno())  # the table is read several times
    head = io.BufferedReader(_Again(kept)).read(8)
    if not head:
        raise ValueError("the standard input is empty.")
    suffix = next((kind for mark, kind in MAGIC.items() if head.startswith(mark)), ".csv")
    if head.startswith(b"PK\3\4"):
        suffix = ".xlsx"

    def again() -> IO[bytes]:
        return io.BufferedReader(_Again(kept))

    if head.startswith(b"\x1f\x8b"):
        return Stream("the standard input", ".csv", lambda: _unpacked(again()))
    return Stream("the standard input", suffix, again)


class _Again(io.RawIOBase):
    """A file that is read from its beginning, whatever others read of it."""

    def __init__(self, number: int):
        self._number, self._place = number, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place}.get(whence)
        end = os.lseek(self._number, 0, os.SEEK_END) if start is None else start
        self._place = offset + end
        return self._place

    def readinto(self, buffer: Any) -> int:
        os.lseek(self._number, self._place, os.SEEK_SET)
        found = os.read(self._number, len(buffer))
        buffer[: len(found)] = found
        self._place += len(found)
        return len(found)
