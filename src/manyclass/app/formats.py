"""Tables in files of all kinds: their columns, their number of rows, and blocks of rows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from manyclass._lib.extras import import_extra
from manyclass._lib.files import StrPath
from manyclass._lib.messages import warn
from manyclass.app import bundled
from manyclass.app.columns import MISSING, import_pandas
from manyclass.app.dialect import COMMA_NUMBER, GROUPED
from manyclass.app.lines import Lines, check_different, readable
from manyclass.app.signs import without_signs
from manyclass.app.streams import Stream, open_stream

if TYPE_CHECKING:
    import pandas as pd

Blocks = Generator["pd.DataFrame", None, None]


def open_table(
    path: StrPath,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> TableFile:
    """Open a table: a file, the standard input ("-") or a bundled data set.

    ``sep``, ``decimal`` and ``encoding`` are for text files, and found if they are not given.
    """
    import_pandas()
    if str(path) in bundled.BUNDLED:
        return BundledTable(str(path))
    stream = open_stream(path)
    if stream.is_text:
        return TextTable(Lines(stream, sep=sep, decimal=decimal, encoding=encoding))
    kinds = {".parquet": ParquetTable, ".xlsx": SheetTable}
    return kinds.get(stream.suffix, FeatherTable)(stream)


class TableFile(ABC):
    """A table in a file. All faults of the file are errors with a message of one line."""

    name: str
    is_text = False
    as_written: Mapping[str, pd.Series] = MappingProxyType({})
    """Columns of text, most of it numbers, in the last block: as the file has them."""

    @abstractmethod
    def _names(self) -> list[str]: ...

    @abstractmethod
    def n_rows(self) -> int:
        """Return the number of rows; every line of a text file is checked."""

    @abstractmethod
    def _blocks(self, rows: int | None, text: Collection[str], verbatim: Collection[str]) -> Blocks:
        """Yield blocks of rows, or all rows at once if ``rows`` is None."""

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns, all different."""
        names = self._names()
        check_different(names, self.name)
        return names

    def blocks(
        self, rows: int | None, *, text: Collection[str] = (), verbatim: Collection[str] = ()
    ) -> Blocks:
        """Yield at least one block of rows.

        The columns ``text`` of a text file stay text, and ``verbatim`` has no missing values.
        """
        empty = True
        with closing(self._blocks(rows, text, verbatim)) as blocks:  # if the caller stops early
            for block in blocks:
                empty = False
                yield block
        if empty:
            yield import_pandas().DataFrame(columns=self.names, dtype=object)

    def whole(self, text: Collection[str] = ()) -> pd.DataFrame:
        """Return all rows; marks and signs of numbers are removed from mixed columns of text."""
        read = list(self.blocks(None, text=text))
        return read[0] if len(read) == 1 else import_pandas().concat(read, ignore_index=True)


class BundledTable(TableFile):
    """A data set that comes with scikit-learn."""

    def __init__(self, name: str):
        self.name = name

    @cached_property
    def _frame(self) -> pd.DataFrame:
        X, y = bundled.load(self.name)
        return X.assign(**{str(y.name): y})

    def _names(self) -> list[str]:
        return list(self._frame.columns)

    def n_rows(self) -> int:  # noqa: D102
        return len(self._frame)

    def _blocks(self, rows: int | None, text: Collection[str], verbatim: Collection[str]) -> Blocks:
        step = rows or len(self._frame)
        yield from (
            self._frame.iloc[first : first + step] for first in range(0, len(self._frame), step)
        )


class TextTable(TableFile):
    """A text file with the names of the columns in its first line."""

    is_text = True

    def __init__(self, lines: Lines):
        self.name, self._lines, self.dialect = lines.name, lines, lines.dialect
        self.as_written: dict[str, pd.Series] = {}

    def _names(self) -> list[str]:
        return self._lines.names

    def n_rows(self) -> int:  # noqa: D102
        return self._lines.n_rows()

    def _blocks(self, rows: int | None, text: Collection[str], verbatim: Collection[str]) -> Blocks:
        pd, names = import_pandas(), self.names
        self.n_rows()
        kept, exact = set(text), set(verbatim)
        with self._readable(), self._lines.open() as stream, self.dialect.decoded(stream) as lines:
            reader = pd.read_csv(
                lines,
                sep=self.dialect.separator,
                decimal=self.dialect.decimal,
                thousands=self.dialect.thousands,
                header=0,
                names=names,
                index_col=False,
                dtype={name: str for name in names if name in kept},
                na_values={name: list(MISSING) for name in names if name not in exact}
                if exact
                else list(MISSING),
                keep_default_na=False,
                skip_blank_lines=len(names) > 1,
                low_memory=False,
                chunksize=rows,
            )
            with nullcontext([reader]) if rows is None else reader as blocks:
                for block in blocks:
                    yield self._with_numbers(block, kept | exact)

    def _with_numbers(self, block: pd.DataFrame, text: Collection[str]) -> pd.DataFrame:
        """Convert columns of numbers that pandas has left as text.

        It does so for integers beyond 2**63 in a column with negative or missing numbers, and for
        columns with a field that is not a number; in these, numbers lose their marks and signs.
        """
        pd, names = import_pandas(), block.columns
        texts = [
            n for n, dtype in zip(names, block.dtypes, strict=True) if dtype.kind not in "iufb"
        ]
        for name in texts:
            if name in text or pd.api.types.infer_dtype(block[name], skipna=True) != "string":
                continue
            fields = without_missing(block[name])
            plain, sign = self._plain(fields)
            numbers = pd.to_numeric(plain, errors="coerce")
            if numbers.notna().equals(fields.notna()):
                block[name] = numbers.astype(np.float64)
                if sign is not None:
                    warn(
                        f"column {name!r} is read as numbers, without {sign}. "
                        f"--categorical {name!r} makes categories of them."
                    )
            elif 2 * numbers.notna().sum() > fields.notna().sum():
                block[name], self.as_written[name] = plain, fields
            else:
                block[name] = fields
        return block

    def plain(self, fields: pd.Series) -> pd.Series:
        """Return numbers as Python writes them; other fields stay as they are."""
        return self._plain(fields)[0]

    def _plain(self, fields: pd.Series) -> tuple[pd.Series, str | None]:
        """Return numbers without marks and sign, and the sign."""
        fields, sign = without_signs(fields)
        decimal, thousands = self.dialect.decimal, self.dialect.thousands
        if decimal == "." and thousands is None:
            return fields, sign
        pattern = COMMA_NUMBER if decimal == "," else GROUPED[","]
        marked = fields.str.fullmatch(pattern.pattern, na=False)
        plain = fields[marked].str.replace(thousands or "\0", "", regex=False)
        return fields.mask(marked, plain.str.replace(decimal, ".", regex=False)), sign

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Turn errors of the readers into messages of one line."""
        from pandas.errors import EmptyDataError, ParserError

        try:
            with readable(self.name):
                yield
        except (ParserError, EmptyDataError) as error:
            reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
            row = re.fullmatch("EOF inside string starting at row (\\d+)", reason)
            if row is not None:
                reason = f"a quote opens near line {int(row[1]) + 1}, and never closes."
            else:
                reason += ". Is there an open quote?"
            raise ValueError(f"{self.name} is broken: {reason}") from error


def without_missing(fields: pd.Series) -> pd.Series:
    """Return a column of text with NaN for missing values."""
    return fields.mask(fields.isin(MISSING))


class ParquetTable(TableFile):
    """A Parquet file, read a block at a time."""

    kind, module = "Parquet", "pyarrow.parquet"

    def __init__(self, stream: Stream):
        self.name, self._stream = stream.name, stream
        need = f"reading {self.name} needs"
        self._pa = import_extra("pyarrow", need)
        self._reader = import_extra(self.module, need)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        with self._stream.open() as stream:
            try:
                yield self._opened(stream)
            except (self._pa.ArrowInvalid, OSError) as error:
                raise ValueError(
                    f"{self.name} is damaged or not a {self.kind} file. Get a fresh copy."
                ) from error

    def _opened(self, stream: Any) -> Any:
        return self._reader.ParquetFile(stream)

    def _names(self) -> list[str]:
        with self._file() as file:
            return [str(name) for name in file.schema_arrow.names]

    def n_rows(self) -> int:  # noqa: D102
        with self._file() as file:
            return int(file.metadata.num_rows)

    def _blocks(self, rows: int | None, text: Collection[str], verbatim: Collection[str]) -> Blocks:
        with self._file() as file:
            for batch in file.iter_batches(batch_size=rows or 1_000_000):
                yield self._pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True)


class FeatherTable(ParquetTable):
    """A Feather file, read as a whole."""

    kind, module = "Feather", "pyarrow.feather"

    def _opened(self, stream: Any) -> Any:
        return self._reader.read_table(stream)

    def _names(self) -> list[str]:
        with self._file() as table:
            return [str(name) for name in table.schema.names]

    def n_rows(self) -> int:  # noqa: D102
        with self._file() as table:
            return int(table.num_rows)

    def _blocks(self, rows: int | None, text: Collection[str], verbatim: Collection[str]) -> Blocks:
        with self._file() as table:
            step = rows or max(1, table.num_rows)
            for first in range(0, table.num_rows, step):
                yield table.slice(first, step).to_pandas(ignore_metadata=True)


class SheetTable(TableFile):
    """The first sheet of an Excel file, read as a whole."""

    def __init__(self, stream: Stream):
        self.name, self._stream = stream.name, stream
        import_extra("openpyxl", f"reading {self.name} needs")

    @cached_property
    def _frame(self) -> pd.DataFrame:
        pd = import_pandas()
        with self._stream.open() as stream:
            try:
                book = pd.ExcelFile(stream, engine="openpyxl")
                frame = pd.read_excel(book, header=None, na_values=list(MISSING), dtype=object)
            except Exception as error:  # openpyxl raises whatever its parts do
                raise ValueError(
                    f"{self.name} is damaged or not an .xlsx file. Get a fresh copy."
                ) from error
        first, *others = map(str, book.sheet_names)
        if others:
            warn(f"{self.name} has {len(others) + 1} sheets: {first!r}, the first, is read.")
        if len(frame) == 0:
            raise ValueError(f"{self.name} has no column names in its first sheet, {first!r}.")
        names = ["" if pd.isna(name) else str(name) for name in frame.iloc[0]]
        frame.columns = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
        return frame[1:].reset_index(drop=True)

    def _names(self) -> list[str]:
        return list(self._frame.columns)

    def n_rows(self) -> int:  # noqa: D102
        return len(self._frame)

    def _blocks(self, rows: int | None, text: Collection[str], verbatim: Collection[str]) -> Blocks:
        step = rows or max(1, len(self._frame))
        for first in range(0, len(self._frame), step):
            yield self._frame.iloc[first : first + step].infer_objects()
