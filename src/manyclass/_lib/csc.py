"""Checks of sparse matrices in CSC format, which is stored by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse


def is_by_columns(X: Any) -> bool:
    """Return whether X is a sparse matrix in CSC format."""
    return issparse(X) and X.format == "csc"


def check_columns(X: Any) -> None:
    """Raise a ``ValueError`` if the index arrays of a CSC matrix are not valid.

    scipy and compiled code do not check them: they would read and write outside the arrays.
    Values after the last entry do not belong to the matrix and are ignored.
    """
    start, n_entries = np.asarray(X.indptr), min(len(X.indices), len(X.data))
    steady = (
        len(start) == X.shape[1] + 1 and start[0] == 0 and bool((start[1:] >= start[:-1]).all())
    )
    if not steady or start[-1] > n_entries:
        raise ValueError(
            f"X is not a valid CSC matrix: its indptr must have {X.shape[1] + 1} numbers for "
            f"{X.shape[1]} columns, begin with 0, never decrease, and end with at most the "
            f"number of its entries, {n_entries}. Build it again, or convert it from another "
            "format."
        )
    indices = X.indices[: start[-1]]
    if len(indices) and not 0 <= indices.min() <= indices.max() < X.shape[0]:
        raise ValueError(
            f"X is not a valid CSC matrix: its indices are {indices.min()} to {indices.max()}, "
            f"but it has {X.shape[0]} rows. Build it again, or convert it from another format."
        )
