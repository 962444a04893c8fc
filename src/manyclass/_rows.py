"""Rows of X, whatever it is: of a sparse matrix that is stored by its columns, too.

To convert such a matrix would add a copy of all of it to the rows that are needed. They are
taken out of it as they are, and come stored by rows: bit for bit what the rows of the
converted matrix would be.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, isspmatrix

from manyclass import _sklearn
from manyclass._rows_kernel import count_entries, gather_rows

BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}  # values are copied, not computed with


def is_by_columns(X: Any) -> bool:
    """Tell whether X is a sparse matrix that is stored by its columns."""
    return issparse(X) and X.format == "csc"


def without_duplicates(X: Any) -> Any:
    """Return X itself, or a copy with its entries in order and those of one place as their sum.

    A sparse matrix stored by rows may have several entries for one place. Its value there is
    their sum; LIBSVM, trees, and whatever squares the entries would take them one by one.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from manyclass._rows import without_duplicates
    >>> X = csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 1))
    >>> X.data, without_duplicates(X).data
    (array([1., 2.]), array([3.]))
    """
    if not issparse(X) or X.format != "csr" or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def by_rows(X: Any) -> Any:
    """Return X itself, or stored by rows if it is stored by its columns."""
    return X.tocsr() if is_by_columns(X) else X


def take_rows(X: Any, rows: Any, axis: int = 0) -> Any:
    """Return rows of X, or columns for ``axis=1``; of a sparse matrix always stored by rows.

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from manyclass._rows import take_rows
    >>> take_rows(csc_array([[1, 0], [0, 2], [3, 4]]), [2, 0]).toarray()
    array([[3, 4],
           [1, 0]])
    """
    if not is_by_columns(X):
        return _sklearn.take_rows(X, rows, axis=axis)
    if axis == 1:
        return _sklearn.take_rows(X, rows, axis=1).tocsr()
    if X.data.dtype.itemsize not in BITS:
        return X.tocsr()[rows]
    return _rows_of_columns(X, np.arange(X.shape[0])[rows])


def _rows_of_columns(X: Any, rows: NDArray[np.intp]) -> Any:
    # Places of the rows that are taken, row by row: one may be taken several times.
    order = np.argsort(rows, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=X.shape[0]))])
    start, indices, data = (np.asarray(part) for part in (X.indptr, X.indices, X.data))
    counts = np.zeros(len(rows), dtype=np.int64)
    count_entries(indices, first, counts)
    begin = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(counts[np.argsort(order)], out=begin[1:])
    width = np.int32 if max(begin[-1], X.shape[1]) <= np.iinfo(np.int32).max else np.int64
    values, columns = np.empty(begin[-1], data.dtype), np.empty(begin[-1], width)
    bits = BITS[data.dtype.itemsize]
    end = begin[:-1].copy()
    gather_rows(data.view(bits), indices, start, first, order, end, values.view(bits), columns)
    kind = csr_matrix if isspmatrix(X) else csr_array
    return kind((values, columns, begin.astype(width)), shape=(len(rows), X.shape[1]))
