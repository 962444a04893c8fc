"""The column of a table that holds the classes: read it and check it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from manyclass._lib.messages import quoted, warn
from manyclass.app.columns import MISSING, import_pandas
from manyclass.app.terminal import counted, shown

if TYPE_CHECKING:
    import pandas as pd

INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")  # as Python writes it, within 64 bits


def read_labels(
    column: pd.Series, path: str, *, many: int = 50, continuous: float = 0.2, alone: float = 0.5
) -> pd.Series:
    """Return the classes as they were written, or raise an error that says what is wrong.

    ``many`` different labels are always accepted. Beyond that, numbers with fractions look
    continuous if more than a share ``continuous`` of the rows differ, and labels look like an
    identifier if more than a share ``alone`` differ. All three are choices.
    """
    where = f"the target {column.name!r} of {path}"
    missing = np.flatnonzero(column.isna())
    if len(missing):
        first = ", ".join(str(place + 1) for place in missing[:5])
        rows = f"in row {first}" if len(missing) == 1 else f"first in rows {first}"
        raise ValueError(
            f"{where} has {counted(len(missing), 'missing value')}, {rows}: fill in "
            f"or remove the rows. (An empty field and {shown(MISSING[1:])} count as missing: a "
            "class of that name needs another.)"
        )
    y = _as_written(column)
    n_classes, numbers = y.nunique(), _numbers(y)
    if n_classes == 1:
        raise ValueError(
            f"{where} has one class only, {quoted(y.iloc[0])}: there is nothing to learn."
        )
    if numbers is not None and n_classes > max(many, continuous * len(y)):
        if (numbers % 1 != 0).any():
            raise ValueError(
                f"{where} looks continuous, with {n_classes} different numbers in {len(y)} rows: "
                "this is regression. For classes, cut it into intervals first."
            )
    if n_classes > max(many, alone * len(y)):
        raise ValueError(
            f"{where} has {n_classes} classes in {len(y)} rows, most of them alone: it looks like "
            "an identifier or a measurement. Choose another target."
        )
    _warn_of_spellings(y)
    return y


def _warn_of_spellings(y: pd.Series) -> None:
    """Name classes that differ by case or blanks only."""
    if y.dtype.kind in "iub":
        return
    spelt: dict[str, list[str]] = {}
    for label in y.unique():
        spelt.setdefault(" ".join(str(label).casefold().split()), []).append(str(label))
    alike = [shown(sorted(labels)) for labels in spelt.values() if len(labels) > 1]
    if alike:
        more = f" (and {len(alike) - 3} more)" if len(alike) > 3 else ""
        warn(
            f"classes that differ by case or blanks only: {'; '.join(alike[:3])}{more}. They count "
            "as different classes: correct them if they are the same."
        )


def _as_written(column: pd.Series) -> pd.Series:
    """Return integers or booleans if all labels are such, and text otherwise."""
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
    """Return the labels as numbers, or None if some are not."""
    if y.dtype.kind == "b":
        return None
    numbers = import_pandas().to_numeric(y, errors="coerce")
    return None if numbers.isna().any() else numbers
