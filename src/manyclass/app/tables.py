"""Read tables from CSV, TSV and Parquet files, completely or a block of rows at a time.

All faults of a file are found here, with a message of one line.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Collection, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from manyclass._lib.extras import import_extra
from manyclass._lib.files import StrPath
from manyclass._lib.messages import warn
from manyclass.app import bundled
from manyclass.app.columns import MISSING, conform, import_pandas, kinds_of, shown
from manyclass.app.target import find_target, read_labels

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {".csv": ",", ".tsv": "\t"}
SUFFIXES = ".csv, .tsv, .csv.gz, .tsv.gz or .parquet"
NAMELESS = re.compile(r"Unnamed: \d+|__index_level_\d+__")
"""The names that pandas gives to a column, or in Parquet an index, without a name."""


def read_table(
    path_or_name: StrPath, *, target: str | None = None
) -> tuple[pd.DataFrame, pd.Series]:
    """Read features and classes from a file, or a data set by its name.

    Numbers become float64. Columns with other text are categories; ``true`` and ``false`` become
    the categories ``True`` and ``False``. A column of dates, such as 2024-12-31 or
    2024-12-31T23:59, becomes datetime64. Classes are integers if all of them are, and text
    otherwise. Columns without a name are probably row numbers: they are left out, with a warning.

    Parameters
    ----------
    path_or_name : str or path
        A file that ends in .csv, .tsv, .csv.gz, .tsv.gz or .parquet, with column names in
        the first line and in UTF-8; or the name of a bundled data set:
        "breast-cancer", "digits", "iris" or "wine".
    target : str, optional
        The column of classes. It may be omitted if one column, and only one, is called
        "target", "class", "label" or "y".

    Returns
    -------
    X : DataFrame
        All other columns.
    y : Series
        The classes, none of them missing.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file cannot be read, or its target cannot be used.

    Examples
    --------
    >>> from manyclass.app.tables import read_table
    >>> X, y = read_table("iris")
    >>> X.shape, y.unique().tolist()
    ((150, 4), ['setosa', 'versicolor', 'virginica'])
    """
    if str(path_or_name) in bundled.BUNDLED:
        return bundled.load(str(path_or_name), target)
    path = _existing(path_or_name)
    names = column_names(path)
    label = find_target(names, target, path)
    frame = _read_whole(path, text=[label])
    if len(frame) == 0:
        raise ValueError(f"{path} has column names but no rows: there is nothing to learn from.")
    y = read_labels(frame.pop(label), path)
    frame = _without_row_numbers(frame, path)
    if frame.shape[1] == 0:
        raise ValueError(f"{path} has no column but the target {label!r}: add features.")
    return conform(frame, kinds_of(frame)), y


def read_blocks(
    path: StrPath,
    *,
    rows: int = 50_000,
    numbers: Collection[str] = (),
    verbatim: Collection[str] = (),
) -> Generator[pd.DataFrame, None, None]:
    r"""Read a file a block of rows at a time, in bounded memory.

    Fields of text files stay text. :func:`manyclass.app.columns.conform` converts them to the
    kinds of the model's columns.

    Parameters
    ----------
    path : path
        A file, or the name of a data set, as :func:`read_table` takes it.
    rows : int, default=50000
        Rows of a block; the last may have fewer.
    numbers : collection of str, default=()
        Columns of a text file to parse as numbers, which is several times faster. They stay
        text in blocks where some field is not a number.
    verbatim : collection of str, default=()
        Columns of a text file without missing values: fields such as ``NA`` are text there.

    Yields
    ------
    DataFrame
        At least one; without rows if the file has none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyclass.app.tables import read_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "table.csv"
    ...     _ = path.write_text("a,b\n1,x\n2,y\n3,z\n")
    ...     [block["b"].tolist() for block in read_blocks(path, rows=2)]
    [['x', 'y'], ['z']]
    """
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}.")
    names = column_names(path)
    if str(path) in bundled.BUNDLED:
        X, y = bundled.load(str(path), None)
        whole = X.assign(**{str(y.name): y})
        yield from (whole.iloc[first : first + rows] for first in range(0, len(whole), rows))
        return
    path = _existing(path)
    if _suffix(path) == ".parquet":
        blocks = _parquet_blocks(path, rows)
    else:
        text: dict[str, type] = {
            name: str for name in names if name not in numbers or name in verbatim
        }
        blocks = _text_blocks(path, rows, text, verbatim)
    empty = True
    with closing(blocks):  # closes the file if the caller stops early
        for block in blocks:
            empty = False
            yield block
    if empty:
        yield import_pandas().DataFrame(columns=names, dtype=object)


def column_names(path: StrPath) -> list[str]:
    """Return the names of the columns of a file, all different."""
    if str(path) in bundled.BUNDLED:
        X, y = bundled.load(str(path), None)
        return [*X.columns, str(y.name)]
    path = _existing(path)
    if _suffix(path) == ".parquet":
        names = [str(name) for name in _parquet(path).schema_arrow.names]
    else:
        names = [name or f"Unnamed: {place}" for place, name in enumerate(_header(path))]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{path} has columns of the same name: {shown(twice)}. Rename them.")
    return names


def count_rows(path: StrPath) -> int:
    """Return the number of rows of a file, and check every line of a text file.

    A line with more or fewer fields than columns is an error, because parsers read it in different
    ways. An empty line is no row, except in a table of one column: there it is a missing value.
    """
    if str(path) in bundled.BUNDLED:
        return len(bundled.load(str(path), None)[1])
    path = _existing(path)
    if _suffix(path) == ".parquet":
        return int(_parquet(path).metadata.num_rows)
    n, width = 0, len(_header(path))
    with _lines(path) as lines:
        next(lines)
        for fields in lines:
            if len(fields) not in (0, width):
                raise ValueError(
                    f"{path} is broken at line {lines.line_num}: it has {len(fields)} fields, but "
                    f"there are {width} columns. Put text with separators in quotes, or correct "
                    "the line."
                )
            n += bool(fields) or width == 1
    return n


def is_text(path: StrPath) -> bool:
    """Return whether this is a text file with lines and fields."""
    return str(path) not in bundled.BUNDLED and _suffix(Path(path)) in SEPARATORS


def without_missing(fields: pd.Series) -> pd.Series:
    """Return a column of text with NaN for missing values."""
    return fields.mask(fields.isin(MISSING))


# ---------------------------------------------------------------------- files


def _existing(path: StrPath) -> Path:
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file.")
    if not path.exists():
        if path.suffix:
            raise FileNotFoundError(f"there is no file {path}.")
        close = get_close_matches(str(path), bundled.BUNDLED, n=1)
        known = f". The data sets are {shown(bundled.BUNDLED)}"
        meant = f" (did you mean {close[0]}?)" if close else known
        raise FileNotFoundError(f"there is no file {path}, nor a data set of that name{meant}.")
    if _suffix(path) not in (*SEPARATORS, ".parquet"):
        raise ValueError(f"{path} is of no known kind. The name must end in {SUFFIXES}.")
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    return path


def _suffix(path: Path) -> str:
    name = path.name.lower()
    return Path(name.removesuffix(".gz") if not name.endswith(".parquet.gz") else name).suffix


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn errors of the readers into messages of one line."""
    import_pandas()
    from pandas.errors import EmptyDataError, ParserError

    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not in UTF-8 (it has the byte 0x{error.object[error.start]:02x}): save it "
            "in UTF-8, or convert it with iconv -f ENCODING -t UTF-8."
        ) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is not a complete gzip file. Get a fresh copy.") from error
    except (ParserError, EmptyDataError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is broken: {reason}. Is there an open quote?") from error


@contextmanager
def _lines(path: Path) -> Iterator[Any]:
    """Open a text file for its lines, split into fields."""
    opened: IO[str]
    kind = gzip.open if path.name.lower().endswith(".gz") else open
    with _readable(path), kind(path, "rt", encoding="utf-8-sig", newline="") as opened:
        yield csv.reader(opened, delimiter=SEPARATORS[_suffix(path)])


def _header(path: Path) -> list[str]:
    with _lines(path) as lines:
        names: list[str] = next(lines, [])
    if not names:
        raise ValueError(f"{path} is empty, or its first line is. It must hold the column names.")
    if len(names) == 1:
        used = next((mark for mark in ";\t|," if mark in names[0]), None)
        if used is not None:
            raise ValueError(
                f"{path} has one column only, {names[0]!r}: its fields seem to be separated by "
                f"{used!r}. A .csv file has commas, a .tsv file has tabs."
            )
    return names


def _text_blocks(
    path: Path, rows: int | None, dtype: dict[str, type], verbatim: Collection[str] = ()
) -> Generator[pd.DataFrame, None, None]:
    """Yield the rows of a text file in blocks, or all at once if ``rows`` is None."""
    pd = import_pandas()
    count_rows(path)
    names = column_names(path)
    with _readable(path):
        reader = pd.read_csv(
            path,
            sep=SEPARATORS[_suffix(path)],
            header=0,
            names=names,
            index_col=False,
            dtype=dtype,
            na_values={name: list(MISSING) for name in names if name not in verbatim},
            keep_default_na=False,
            skip_blank_lines=len(names) > 1,
            encoding="utf-8-sig",
            low_memory=False,
            chunksize=rows,
        )
        with nullcontext([reader]) if rows is None else reader as blocks:
            for block in blocks:
                yield _with_large_integers(block, [name for name in names if name not in dtype])


def _with_large_integers(block: pd.DataFrame, names: Collection[str]) -> pd.DataFrame:
    """Convert columns of numbers that pandas has left as text.

    It does so for integers beyond 2**63 in a column with negative or missing numbers.
    """
    pd = import_pandas()
    for name in names:
        if pd.api.types.infer_dtype(block[name], skipna=True) != "string":
            continue
        block[name] = without_missing(block[name])
        try:
            block[name] = pd.to_numeric(block[name]).astype(np.float64)
        except (TypeError, ValueError):  # some field is not a number
            continue
    return block


def _parquet(path: Path) -> Any:
    need = f"reading {path} needs"
    pa, pq = import_extra("pyarrow", need), import_extra("pyarrow.parquet", need)
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is damaged or not a Parquet file. Get a fresh copy.") from error


def _parquet_blocks(path: Path, rows: int) -> Generator[pd.DataFrame, None, None]:
    import_pandas()
    file, pa = _parquet(path), import_module("pyarrow")
    try:
        with file:
            for batch in file.iter_batches(batch_size=rows):
                yield pa.Table.from_batches([batch]).to_pandas(ignore_metadata=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise ValueError(f"{path} is damaged. Get a fresh copy.") from error


def _read_whole(path: Path, text: Collection[str]) -> pd.DataFrame:
    if _suffix(path) == ".parquet":
        blocks = _parquet_blocks(path, 1_000_000)
    else:
        blocks = _text_blocks(path, None, dict.fromkeys(text, str))
    pd = import_pandas()
    read = list(blocks)
    return pd.concat(read, ignore_index=True) if read else pd.DataFrame(columns=column_names(path))


def _without_row_numbers(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Leave out columns without a name: pandas writes row numbers so.

    In a table that is sorted by class, they would be the best feature, and useless for new rows.
    """
    nameless = [name for name in frame.columns if NAMELESS.fullmatch(name)]
    if nameless:
        warn(
            f"{path} has {len(nameless)} column(s) without a name. They look like row numbers and "
            "are left out. Name them to use them."
        )
    return frame.drop(columns=nameless)
