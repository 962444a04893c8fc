"""Frames of pandas, and copies of them that are stored in the same order."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def is_even(X: Any) -> bool:
    """Tell whether X is a frame of pandas whose columns are numbers of one type."""
    pandas = sys.modules.get("pandas")
    if pandas is None or type(X) is not pandas.DataFrame or X.shape[1] == 0:
        return False
    dtype, *others = set(X.dtypes)
    return not others and isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def copy_of(X: Any) -> Any:
    """Return a copy of a frame, stored by rows or by columns as X is.

    Copies of pandas 2 are stored by columns in any case. Sums over them may differ in the last bit.
    """
    if not is_even(X):
        return X.copy()
    return type(X)(X.to_numpy(copy=True), index=X.index, columns=X.columns, copy=False)
