"""Columns that are not features: row numbers, identifiers, and those that give the class away."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from manyclass.app.columns import import_pandas

if TYPE_CHECKING:
    import pandas as pd

IDENTIFIER = re.compile(
    r"(?:.*[_ .-])?(?:id|ids|idx|index|key|row|rowid|row[_ ]?(?:number|no|nr)|uuid|guid|serial)",
    re.IGNORECASE,
)
CAMEL = re.compile(r".*[a-z](?:Id|ID|Idx|Index|Key)")


def identifiers(
    frame: pd.DataFrame, *, keep: Collection[str] = (), fewest_rows: int = 20
) -> dict[str, str]:
    """Return the columns that number the rows or are called an identifier, and why.

    These hold integers, all different. Tables with less than ``fewest_rows`` are left alone, a
    choice: a few different numbers say nothing.
    """
    if len(frame) < fewest_rows:
        return {}
    found = {name: _why(str(name), column) for name, column in frame.items() if name not in keep}
    return {str(name): why for name, why in found.items() if why is not None}


def _why(name: str, column: pd.Series) -> str | None:
    if column.dtype.kind not in "iuf" or column.isna().any() or (column % 1 != 0).any():
        return None
    if column.nunique() < len(column):
        return None
    if column.max() - column.min() == len(column) - 1:
        return "it numbers the rows"
    called = IDENTIFIER.fullmatch(name) or CAMEL.fullmatch(name)
    return "its name and its values are those of an identifier" if called else None


def leaks(
    X: pd.DataFrame,
    y: NDArray[np.intp],
    *,
    share: float = 0.99,
    fewest_rows: int = 50,
    rows: int = 5_000,
) -> dict[str, float]:
    """Return the columns that alone tell the class of nearly all rows, and the share of rows.

    Each row gets the most frequent class of its value, or that of a row with a value next to it.
    A ``share`` of such rows must be right, while guessing the most frequent class is wrong for a
    tenth. At most ``rows`` rows are read. All are choices.
    """
    if len(y) > rows:
        drawn = np.random.RandomState(0).choice(len(y), rows, replace=False)
        X, y = X.iloc[drawn], y[drawn]
    if len(y) < fewest_rows or np.bincount(y).max() > 0.9 * len(y):
        return {}
    found = {str(name): _told(column, y) for name, column in X.items()}
    return {name: told for name, told in found.items() if told >= share}


def _told(column: pd.Series, y: NDArray[np.intp]) -> float:
    """Return the share of rows whose class follows from the column, each row left out."""
    pd = import_pandas()
    values, distinct = pd.factorize(column, sort=column.dtype.kind in "iufM")
    counts = np.zeros((len(distinct) + 1, y.max() + 1))
    if counts.size > 1e7:  # a choice: more values and classes than a leak has
        return 0.0
    np.add.at(counts, (values, y), 1)  # missing values are -1, the last row
    alone = counts.sum(axis=1)[values] == 1
    others = counts[values]
    others[np.arange(len(y)), y] -= 1
    right = (others.argmax(axis=1) == y) & ~alone
    if column.dtype.kind in "iufM" and alone.any():
        order = np.argsort(values, kind="stable")
        same = y[order][1:] == y[order][:-1]
        near = np.empty(len(y), dtype=bool)
        near[order] = np.r_[False, same] | np.r_[same, False]
        right |= alone & near
    return float(right.mean())
