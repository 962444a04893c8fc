"""Rows that stay in X until they are needed: a fit holds few of them twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from manyclass._lib.sklearn import n_samples
from manyclass.banks.precomputed import rows_at


@dataclass(frozen=True)
class RowsOf:
    """Some rows of X, of which consecutive ones are copied when they are asked for.

    Parameters
    ----------
    X : array, sparse matrix, frame or sequence
    places : int array
        Which of its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.banks.svm.borrowing import RowsOf
    >>> rows = RowsOf(np.arange(8).reshape(4, 2), np.array([3, 0, 1]))
    >>> len(rows), rows[:2]
    (3, array([[6, 7],
           [0, 1]]))
    """

    X: Any
    places: NDArray[np.intp]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> Any:
        return rows_at(self.X, self.places[part])


def size_in_bytes(X: Any) -> int:
    """Return how much memory the numbers of X take, those of borrowed rows on average.

    0 if X is neither an array nor a sparse matrix.
    """
    if isinstance(X, RowsOf):
        return size_in_bytes(X.X) * len(X) // max(1, n_samples(X.X))
    if issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes if isinstance(X, np.ndarray) else 0


def share_of_rows(X: Any, rows: NDArray[np.intp]) -> float:
    """Return the part that these rows are of all of X, which is stored by rows."""
    if issparse(X):
        return float((X.indptr[rows + 1] - X.indptr[rows]).sum() / max(1, X.indptr[-1]))
    return len(rows) / n_samples(X)
