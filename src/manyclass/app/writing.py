"""Write predictions: text that is safe to open, or Parquet, a block of rows at a time."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from manyclass._lib.extras import import_extra
from manyclass._lib.files import StrPath, replacing
from manyclass.app.outputs import SEPARATORS, STDOUT
from manyclass.app.terminal import without_control_characters

if TYPE_CHECKING:
    import pandas as pd

Write = Callable[["pd.DataFrame"], None]
"""Adds rows to the output."""
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""Beginnings of texts that a spreadsheet takes for a formula (OWASP, "CSV Injection"). The last
four are the full-width forms of the first four."""


@contextmanager
def writer(output: StrPath, names: list[str], *, raw: bool = False) -> Iterator[Write]:
    """Open the output. The file appears when all rows are written.

    In text, a quote is put before texts that a spreadsheet would run as a formula, unless ``raw``.
    """
    if str(output) == STDOUT:
        if sys.stdout is None:
            raise ValueError("the standard output is closed: write to a file.")
        clean = without_control_characters if sys.stdout.isatty() else str
        escaped = str if raw else lambda text: clean(escape_formula(text))
        yield _rows_as_text(sys.stdout, ",", names, escaped)
        return
    suffix = Path(output).suffix.lower()
    with replacing(output) as file:
        if suffix == ".parquet":
            with _parquet_rows(file) as write:
                yield write
        else:
            text = TextIOWrapper(file, encoding="utf-8", newline="")
            yield _rows_as_text(text, SEPARATORS[suffix], names, str if raw else escape_formula)
            text.detach()


def escape_formula(text: str) -> str:
    """Put a quote before a text that a spreadsheet would run as a formula, and before no number."""
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _rows_as_text(
    file: IO[str], separator: str, names: list[str], clean: Callable[[str], str]
) -> Write:
    plain, careful = (
        csv.writer(file, delimiter=separator, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC)
    )

    def write_rows(rows: Iterable[Sequence[Any]], texts: Iterable[Any]) -> None:
        # A carriage return also ends a line, but the plain writer does not quote it.
        broken = any("\r" in text for text in texts if isinstance(text, str))
        (careful if broken else plain).writerows(rows)

    def write(block: pd.DataFrame) -> None:
        found: list[Any] = []
        cleaned: list[list[Any]] = []
        for name in names:
            column = block[name]
            values = column.astype(object).where(column.notna(), None).tolist()
            if not np.issubdtype(getattr(column.dtype, "type", object), np.number):
                values = [clean(value) if isinstance(value, str) else value for value in values]
                found.extend(values)
            cleaned.append(values)
        write_rows(zip(*cleaned, strict=True), found)
        file.flush()

    header = [clean(name) for name in names]
    write_rows([header], header)
    return write


@contextmanager
def _parquet_rows(file: IO[bytes]) -> Iterator[Write]:
    """Write blocks of rows with the types of the first block."""
    import_extra("pyarrow.parquet", "writing .parquet needs")
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    with ExitStack() as stack:
        writers: list[Any] = []

        def write(block: pd.DataFrame) -> None:
            if not writers:
                found = pa.Table.from_pandas(block, preserve_index=False).schema.remove_metadata()
                types = [pa.string() if pa.types.is_null(type) else type for type in found.types]
                schema = pa.schema(list(zip(found.names, types, strict=True)))
                writers.append(stack.enter_context(pq.ParquetWriter(file, schema)))
            schema = writers[0].schema
            writers[0].write_table(pa.Table.from_pandas(block, schema, preserve_index=False))

        yield write
