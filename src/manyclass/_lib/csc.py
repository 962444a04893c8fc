"""Sparse matrices that are stored by their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse


def is_by_columns(X: Any) -> bool:
    """Tell whether X is a sparse matrix that is stored by its columns."""
    return issparse(X) and X.format == "csc"


def check_columns(X: Any) -> None:
    """Raise a ``ValueError`` if entries of X are not where its parts say, or of no row.

    Neither scipy nor a kernel looks: they would read and write memory that is not theirs. What
    its arrays hold behind the last entry does not belong to it, and may be anything.
    """
    start, n_entries = np.asarray(X.indptr), min(len(X.indices), len(X.data))
    steady = (
        len(start) == X.shape[1] + 1 and start[0] == 0 and bool((start[1:] >= start[:-1]).all())
    )
    if not steady or start[-1] > n_entries:
        raise ValueError(
            f"X is not a valid CSC matrix: its indptr must have {X.shape[1] + 1} numbers for "
            f"{X.shape[1]} columns, begin with 0, never decrease, and end with at most the "
            f"number of its entries, {n_entries}. Build it anew, or convert it from another format."
        )
    indices = X.indices[: start[-1]]
    if len(indices) and not 0 <= indices.min() <= indices.max() < X.shape[0]:
        raise ValueError(
            f"X is not a valid CSC matrix: its indices are {indices.min()} to {indices.max()}, "
            f"but it has {X.shape[0]} rows. Build it anew, or convert it from another format."
        )
