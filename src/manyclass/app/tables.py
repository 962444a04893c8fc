"""Read a table for learning: features, classes, and the columns with a role of their own."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from manyclass._lib.files import StrPath
from manyclass._lib.messages import meant, warn
from manyclass.app import bundled
from manyclass.app.columns import Layout, conform, import_pandas, layout_of
from manyclass.app.formats import TableFile, open_table
from manyclass.app.suspicious_columns import identifiers, leaks
from manyclass.app.target import find_target, read_labels
from manyclass.app.terminal import counted, joined, shown

if TYPE_CHECKING:
    import pandas as pd

NAMELESS = re.compile(r"Unnamed: \d+|__index_level_\d+__")
"""The names that pandas gives to a column, or in Parquet an index, without a name."""


@dataclass(frozen=True)
class Choices:
    """What the user said about a table: its columns, and how a text file is written."""

    target: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    groups: str | None = None
    split_column: str | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, arguments: Any) -> Choices:
        """Take the options of a command line."""
        values: dict[str, Any] = {
            name: getattr(arguments, name, None) for name in cls.__dataclass_fields__
        }
        for name in ("drop", "categorical", "numeric"):
            values[name] = tuple(values[name] or ())
        return cls(**values)

    def open(self, path: StrPath) -> TableFile:
        """Open a file."""
        return open_table(path, sep=self.sep, decimal=self.decimal, encoding=self.encoding)


class Table(NamedTuple):
    """A table that was read."""

    X: pd.DataFrame
    y: pd.Series
    layout: Layout
    groups: pd.Series | None
    """Rows of the same group belong together."""
    split: pd.Series | None
    """Whether a row is for training or for a test."""
    choices: Choices


def read_table(
    path_or_name: StrPath, *, target: str | None = None, **choices: Any
) -> tuple[pd.DataFrame, pd.Series]:
    """Read features and classes from a file, or a data set by its name.

    Numbers become float64. Columns with other text are categories; ``true`` and ``false`` become
    the categories ``True`` and ``False``. A column of dates, such as 2024-12-31, 31.12.2024 or
    Dec 31, 2024, becomes datetime64. Classes are integers if all of them are, and text
    otherwise. Columns that number the rows are left out, with a warning.

    Parameters
    ----------
    path_or_name : str or path
        A file that ends in .csv, .tsv, .txt (also .gz or .zip), .parquet, .feather or .xlsx, with
        column names in the first line; "-" for the standard input; or the name of a bundled data
        set: "breast-cancer", "digits", "iris" or "wine".
    target : str, optional
        The column of classes. It may be omitted if one column, and only one, is called
        "target", "class", "label" or "y".
    **choices
        ``drop``, ``categorical`` and ``numeric``: sequences of columns to leave out, or to read as
        categories or numbers. ``sep``, ``decimal`` and ``encoding`` of a text file; they are found
        if they are not given.

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
    table = read(path_or_name, Choices(target=target, **choices))
    return table.X, table.y


def read(path: StrPath, choices: Choices) -> Table:
    """Read a table as the user chose; see :func:`read_table`."""
    file = choices.open(path)
    if isinstance(file.name, str) and file.name in bundled.BUNDLED:
        bundled.check_target(file.name, choices.target)
    label = find_target(file.names, choices.target, file.name)
    roles = [name for name in (choices.groups, choices.split_column) if name is not None]
    _check_names(choices, file, label)
    frame = file.whole(text=[label, *roles, *choices.categorical])
    if len(frame) == 0:
        raise ValueError(f"{file.name} has column names but no rows: nothing to learn from.")
    y = read_labels(frame.pop(label), file.name)
    groups, split = (
        None if name is None else _without_gaps(frame[name], file.name)
        for name in (choices.groups, choices.split_column)
    )
    frame = frame.drop(columns=[*dict.fromkeys(roles), *choices.drop])
    frame = _without_row_numbers(frame, file.name, (*choices.numeric, *choices.categorical))
    if frame.shape[1] == 0:
        raise ValueError(f"{file.name} has no column but the target {label!r}: add features.")
    layout = layout_of(frame, categorical=choices.categorical, numeric=choices.numeric)
    for name, column in file.as_written.items():
        if layout.kinds.get(name) == "category":  # as predict will read it
            frame[name] = column
    X = conform(frame, layout)
    _warn_of_leaks(X, y)
    return Table(X, y, layout, groups, split, choices)


def _check_names(choices: Choices, file: TableFile, label: str) -> None:
    """Raise an error if an option names a column that is not there, or the target."""
    known = set(file.names)
    named = {
        "--drop": choices.drop,
        "--categorical": choices.categorical,
        "--numeric": choices.numeric,
        "--groups": [choices.groups] if choices.groups is not None else [],
        "--split-column": [choices.split_column] if choices.split_column is not None else [],
    }
    for option, names in named.items():
        for name in names:
            if name not in known:
                raise ValueError(
                    f"{option}: {file.name} has no column {name!r}{meant(name, known)}."
                )
            if name == label:
                raise ValueError(f"{option}: {name!r} is the target.")
    both = set(choices.categorical) & set(choices.numeric)
    if both:
        raise ValueError(f"{shown(sorted(both))} cannot be --categorical and --numeric.")


def _without_gaps(column: pd.Series, name: str) -> pd.Series:
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax()) + 1
        raise ValueError(f"column {column.name!r} of {name} is empty in row {row}: fill it in.")
    return column.map(str)


def _without_row_numbers(frame: pd.DataFrame, name: str, keep: Collection[str]) -> pd.DataFrame:
    """Leave out columns that number or identify the rows.

    In a table that is sorted by class, they would be the best feature, and useless for new rows.
    """
    nameless = [column for column in frame.columns if NAMELESS.fullmatch(column)]
    if nameless:
        warn(
            f"{name} has {counted(len(nameless), 'column')} without a name. Such columns look like "
            "row numbers, and are left out. Name them to use them."
        )
    frame = frame.drop(columns=nameless)
    found = identifiers(frame, keep=keep)
    if found and len(found) < frame.shape[1]:
        listed = joined([f"{column!r} ({why})" for column, why in found.items()])
        warn(f"columns left out: {listed}. --numeric NAME keeps one.")
        frame = frame.drop(columns=list(found))
    elif found:
        warn(f"{shown(found)} looks like a row number: it will not help with new rows.")
    return frame


def _warn_of_leaks(X: pd.DataFrame, y: pd.Series) -> None:
    places, _ = import_pandas().factorize(y)
    for name, share in leaks(X, places).items():
        warn(
            f"column {name!r} alone tells the class of {100 * share:.1f} % of the rows. Is it "
            f"known before the class is? If not, --drop {name!r}."
        )
