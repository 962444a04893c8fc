"""Read a table for learning: features, classes, and the columns with a role of their own."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from manyclass._lib.files import StrPath
from manyclass._lib.messages import warn
from manyclass.app.columns import Layout, conform, import_pandas, layout_of
from manyclass.app.suspicious_columns import identifiers, leaks
from manyclass.app.table_options import Choices
from manyclass.app.target import read_labels
from manyclass.app.terminal import counted, joined, shown

if TYPE_CHECKING:
    import pandas as pd

NAMELESS = re.compile(r"Unnamed: \d+|__index_level_\d+__")
"""The names that pandas gives to a column, or in Parquet an index, without a name."""


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
    label = choices.find_target(file.names, file.name)
    frame = file.whole(text=[label, *choices.roles, *choices.categorical])
    if len(frame) == 0:
        raise ValueError(f"{file.name} has column names but no rows: nothing to learn from.")
    y = read_labels(frame.pop(label), file.name)
    groups, split = (
        None if name is None else _without_gaps(frame[name], file.name)
        for name in (choices.groups, choices.split_column)
    )
    frame = frame.drop(columns=[*dict.fromkeys(choices.roles), *choices.drop])
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
