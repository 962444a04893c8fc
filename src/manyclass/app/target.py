"""The column of a table that holds the classes: which it is, and what may be wrong with it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyclass._lib.messages import quoted
from manyclass.app.columns import MISSING, import_pandas, shown

if TYPE_CHECKING:
    import pandas as pd

TARGETS = ("target", "class", "label", "y")
"""What a column of classes is called, where nobody says."""
INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")  # written as Python would, and of 64 bits
MANY, CONTINUOUS, ALONE = 50, 0.2, 0.5  # different labels; and their share of the rows


def find_target(names: list[str], target: str | None, path: Path) -> str:
    """Return the name of the column that holds the classes, given or found."""
    if target is None:
        candidates = [name for name in names if name in TARGETS]
        if len(candidates) == 1:
            return candidates[0]
        found = f"has {shown(candidates)}" if candidates else f"has none of {shown(TARGETS)}"
        raise ValueError(
            f"which column holds the classes? {path} {found}; name it by --target (in Python "
            f"target=). Its columns are {shown(names)}."
        )
    if target not in names:
        close = get_close_matches(target, names, n=3) or [
            name for name in names if name.strip().lower() == target.strip().lower()
        ]
        hint = f"did you mean {shown(close)}?" if close else f"its columns are {shown(names)}."
        raise ValueError(f"{path} has no column {quoted(target)} for the target: {hint}")
    return target


def read_labels(column: pd.Series, path: Path) -> pd.Series:
    """Return the classes as they were written, after all that can be wrong with them."""
    where = f"the target {column.name!r} of {path}"
    missing = np.flatnonzero(column.isna())
    if len(missing):
        raise ValueError(
            f"{where} has {len(missing)} missing values, first in {_rows(missing)}: fill them in "
            f"or remove the rows. (An empty field and {shown(MISSING[1:])} count as missing: a "
            "class of that name needs another.)"
        )
    y = _as_written(column)
    n_classes, numbers = y.nunique(), _numbers(y)
    if n_classes == 1:
        raise ValueError(
            f"{where} has one class only, {quoted(y.iloc[0])}: there is nothing to learn."
        )
    if numbers is not None and n_classes > max(MANY, CONTINUOUS * len(y)):
        if (numbers % 1 != 0).any():
            raise ValueError(
                f"{where} looks continuous, with {n_classes} different numbers in {len(y)} rows: "
                "this is regression. For classes, cut it into intervals first."
            )
    if n_classes > max(MANY, ALONE * len(y)):
        raise ValueError(
            f"{where} has {n_classes} classes in {len(y)} rows, most of them alone: it looks like "
            "an identifier or a measurement. Choose another target."
        )
    return y


def _rows(places) -> str:
    numbers = ", ".join(str(place + 1) for place in places[:5])
    return f"row {numbers}" if len(places) == 1 else f"rows {numbers}"


def _as_written(column: pd.Series) -> pd.Series:
    """Return integers and booleans where all labels are, text otherwise."""
    pd = import_pandas()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if column.dtype.kind in "iub":
        return column
    if column.dtype.kind == "f" and (column % 1 == 0).all() and (column.abs() < 2.0**63).all():
        return column.astype(np.int64)
    text = column.astype(object).map(str)
    if set(text) <= {"True", "False"}:
        return text == "True"
    integers = all(INTEGER.fullmatch(label) for label in text.unique())
    return text.astype(np.int64) if integers else text


def _numbers(y: pd.Series) -> pd.Series | None:
    """Return the labels as numbers, if they are."""
    if y.dtype.kind == "b":
        return None
    numbers = import_pandas().to_numeric(y, errors="coerce")
    return None if numbers.isna().any() else numbers
