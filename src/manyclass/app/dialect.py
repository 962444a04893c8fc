"""How a text file is written: its encoding, its separator, and its numbers."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, BinaryIO, ClassVar, cast

from manyclass._lib.messages import quoted, warn
from manyclass.app.signs import SIGN

SEPARATORS = (",", ";", "\t", "|")
BOMS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is its beginning
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UNDEFINED = bytes([0x81, 0x8D, 0x8F, 0x90, 0x9D])  # in Windows-1252
COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?|[+-]?\d{1,3}(?:\.\d{3})+,\d+")
POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
GROUPED = {
    ",": re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?"),
    ".": re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+,\d+"),
}


@dataclass(frozen=True)
class Dialect:
    """The encoding of a text file, the separator of its fields, and the marks in its numbers."""

    encoding: str = "utf-8-sig"
    separator: str = ","
    decimal: str = "."
    thousands: str | None = None
    longest: ClassVar[int] = 2**24
    """The most characters of a line. A choice: a million columns of 16 characters."""

    @contextmanager
    def lines(self, open_bytes: Callable[[], IO[bytes]], name: str) -> Iterator[Iterator[str]]:
        """Open a file for its lines, none of which may be longer than ``longest``."""
        with open_bytes() as stream, self.decoded(stream) as text:
            yield _bounded(text, name, self.longest)

    def decoded(self, stream: IO[bytes]) -> IO[str]:
        """Return a stream of text."""
        return io.TextIOWrapper(cast(BinaryIO, stream), encoding=self.encoding, newline="")


def _bounded(file: IO[str], name: str, longest: int) -> Iterator[str]:
    number = 0
    while line := file.readline(longest):
        number += 1
        if len(line) == longest:
            raise ValueError(
                f"{name} is not a table: line {number} has more than {longest:,} characters."
            )
        yield line


def find_dialect(
    open_bytes: Callable[[], IO[bytes]],
    name: str,
    usual: str,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    sample: int = 2**18,
) -> Dialect:
    """Find out how a file is written, except for what is given.

    ``usual`` is the separator that the ending of its name promises; ``sample`` is the number of
    characters that are looked at for separators and numbers.
    """
    if encoding is None:
        encoding = find_encoding(open_bytes, name)
    try:
        with open_bytes() as stream, Dialect(encoding).decoded(stream) as file:
            text = file.read(sample)
    except LookupError as error:
        raise ValueError(f"--encoding: {error}.") from error
    if "\0" in text:
        raise ValueError(f"{name} is no text file in {encoding}: it has zero bytes.")
    lines = text.splitlines(keepends=True)
    lines = lines[:100] if len(text) < sample else lines[: max(1, min(100, len(lines) - 1))]
    separator = _find_separator(lines, usual) if sep is None else _one_character(sep, "sep")
    rows = _rows(lines, separator)[1:]
    fields = [re.sub(SIGN, "", field).strip() for row in rows for field in row]
    thousands = None
    if decimal is None:
        decimal, thousands = _find_decimal(fields, separator)
    return Dialect(encoding, separator, _one_character(decimal, "decimal"), thousands)


def find_encoding(open_bytes: Callable[[], IO[bytes]], name: str) -> str:
    """Return the encoding: by its mark, UTF-16 by its zeros, UTF-8 if valid, or Windows-1252."""
    with open_bytes() as stream:
        head = stream.read(4096)
    if head.startswith(b"PK\3\4"):
        raise ValueError(f"{name} is a zip or Excel file: end its name in .zip or .xlsx.")
    for mark, encoding in BOMS.items():
        if head.startswith(mark):
            return encoding
    for place, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        if head[place::2].count(0) > 0.4 * len(head) / 2:
            return encoding
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes() as stream:
        try:
            while chunk := stream.read(2**17):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
            return "utf-8-sig"
        except UnicodeDecodeError:
            pass
    with open_bytes() as stream:
        windows = not any(
            set(chunk) & set(UNDEFINED) for chunk in iter(lambda: stream.read(2**17), b"")
        )
    found = "cp1252" if windows else "latin-1"
    warn(f"{name} is not in UTF-8: it is read as {found}. --encoding names another.")
    return found


def _find_separator(lines: list[str], usual: str) -> str:
    """Return the separator that gives every line the same number of fields, most of them."""

    def quality(separator: str) -> tuple[bool, bool, int, bool]:
        rows = [row for row in _rows(lines, separator) if row]
        width = len(rows[0]) if rows else 0
        even = all(len(row) == width for row in rows)
        return width > 1, even, width, separator == usual

    return max(SEPARATORS, key=quality)


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator))
    except csv.Error:  # an open quote; reading the whole file says so
        return []


def _find_decimal(fields: list[str], separator: str) -> tuple[str, str | None]:
    """Return the decimal mark, and the mark between thousands if there is one."""
    commas = [field for field in fields if "," in field and COMMA_NUMBER.fullmatch(field)]
    points = sum(1 for field in fields if POINT_NUMBER.fullmatch(field))
    grouped = [field for field in fields if "," in field and GROUPED[","].fullmatch(field)]
    if separator == "," and grouped and len(grouped) >= len(commas):
        return ".", ","
    if len(commas) <= points:
        return ".", None
    return ",", "." if any(GROUPED["."].fullmatch(field) for field in commas) else None


def _one_character(text: str, option: str) -> str:
    text = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(text) != 1:
        raise ValueError(f"--{option} must be one character, got {quoted(text)}.")
    return text
