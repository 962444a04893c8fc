"""The lines of a text file, split into fields, without pandas: its names are read at once."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from manyclass.app.dialect import Dialect, find_dialect
from manyclass.app.streams import TEXTS, Stream
from manyclass.app.terminal import shown


class Lines:
    """A text file with the names of the columns in its first line.

    ``sep``, ``decimal`` and ``encoding`` are found if they are not given.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        sep: str | None = None,
        decimal: str | None = None,
        encoding: str | None = None,
    ):
        self.name, self.open = stream.name, stream.open
        with readable(self.name):
            self.dialect: Dialect = find_dialect(
                stream.open,
                stream.name,
                TEXTS[stream.suffix],
                sep=sep,
                decimal=decimal,
                encoding=encoding,
            )

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, all different."""
        with self._rows() as rows:
            names: list[str] = next(rows, [])
        if not any(names):
            raise ValueError(
                f"{self.name} is empty, or its first line is. It must hold the column names."
            )
        names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
        check_different(names, self.name)
        return names

    def n_rows(self) -> int:
        """Count the rows, and check every line.

        A line with more or fewer fields than columns is an error, because parsers read it in
        different ways. An empty line is not a row, except in a table of one column: there it is a
        missing value.
        """
        n, width = 0, len(self.names)
        with self._rows() as lines:
            next(lines)
            for fields in lines:
                if len(fields) not in (0, width):
                    raise ValueError(f"{self.name} is broken {_place(fields, width, lines)}")
                n += bool(fields) or width == 1
        return n

    @contextmanager
    def _rows(self) -> Iterator[Any]:
        """Open the file for its lines, split into fields."""
        with readable(self.name), self.dialect.lines(self.open, self.name) as lines:
            yield csv.reader(lines, delimiter=self.dialect.separator)


def _place(fields: list[str], width: int, lines: Any) -> str:
    """Say where a line has the wrong number of fields, and what may be the reason."""
    longer = sum(len(field.splitlines()) - 1 for field in fields if field)
    found = f"{len(fields)} fields, but there are {width} columns."
    last = lines.line_num
    if longer:
        return (
            f"at lines {last - longer} to {last}: a quote joins them, and is perhaps never closed. "
            f"They have {found}"
        )
    return (
        f"at line {last}: it has {found} Put text with separators in quotes, or correct the line."
    )


def check_different(names: list[str], table: str) -> None:
    """Raise an error if columns have the same name."""
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise ValueError(f"{table} has columns of the same name: {shown(twice)}. Rename them.")


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn errors about the bytes of a text file into messages of one line."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} is not in {error.encoding} (it has the byte "
            f"0x{error.object[error.start]:02x}): name its encoding with --encoding."
        ) from error
    except UnicodeError as error:
        raise ValueError(f"{name} cannot be decoded: {error}. Try --encoding.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{name} is not a complete gzip file. Get a fresh copy.") from error
    except csv.Error as error:
        raise ValueError(f"{name} is broken: {error}. Is there an open quote?") from error
