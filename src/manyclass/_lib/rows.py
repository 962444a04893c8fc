"""Rows of X, whatever it is: of a sparse matrix that is stored by its columns, too.

To convert such a matrix would add a copy of all of it to the rows that are needed. They are
taken out of it as they are, and come stored by rows: bit for bit what the rows of the
converted matrix would be. Frames are stored by columns as well, and learners that read them by
rows copy them for it: the rows of a large one come stored by rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse, isspmatrix

from manyclass._lib import sklearn as _sklearn
from manyclass._lib.compiled.csc_rows import count_entries, gather_rows
from manyclass._lib.csc import check_columns
from manyclass._lib.csc import is_by_columns as is_by_columns

BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}  # values are copied, not computed with
CHUNK = 2**26  # bytes of rows taken out of columns for predictions: 64 MB,
CHUNKS = 8  # or an eighth of X, where that is more
LARGE_FRAME, PART_OF_FRAME = 2**24, 2**22  # bytes: that learners shall not copy; to read at a time


def without_duplicates(X: Any) -> Any:
    """Return X itself, or a copy with its entries in order and those of one place as their sum.

    A sparse matrix stored by rows may have several entries for one place. Its value there is
    their sum; LIBSVM, trees, and whatever squares the entries would take them one by one.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from manyclass._lib.rows import without_duplicates
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
    if not is_by_columns(X):
        return X
    check_columns(X)
    return X.tocsr()


def take_rows(X: Any, rows: Any, axis: int = 0) -> Any:
    """Return rows of X, or columns for ``axis=1``; a sparse result is always stored by rows.

    The rows of a large frame whose columns are numbers of one type are also stored by rows.

    Parameters
    ----------
    X : array, sparse matrix, frame or sequence
    rows : int array, or a slice of consecutive rows
    axis : {0, 1}

    Examples
    --------
    >>> from scipy.sparse import csc_array
    >>> from manyclass._lib.rows import take_rows
    >>> take_rows(csc_array([[1, 0], [0, 2], [3, 4]]), [2, 0]).toarray()
    array([[3, 4],
           [1, 0]])
    """
    if is_by_columns(X):
        return _take_from_columns(X, rows, axis)
    if axis == 0:
        if _is_large_frame(X):
            return _rows_of_frame(X, np.arange(len(X))[rows])
        if isinstance(rows, slice):
            return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        if isinstance(rows, np.ndarray) and (isinstance(X, np.ndarray) or issparse(X)):
            return X[rows]  # scikit-learn's checks would cost more than the rows
    return _sklearn.take_rows(X, rows, axis=axis)


def _take_from_columns(X: Any, rows: Any, axis: int) -> Any:
    """Return rows or columns of a sparse matrix that is stored by columns."""
    check_columns(X)
    if axis == 1:
        return _sklearn.take_rows(X, rows, axis=1).tocsr()
    if X.data.dtype.itemsize not in BITS:
        return X.tocsr()[rows]
    return _rows_of_columns(X, np.arange(X.shape[0])[rows])


def take_part(
    X: Any,
    rows: NDArray[np.intp] | None = None,
    columns: NDArray[np.intp] | None = None,
    *,
    copy: bool = False,
) -> Any:
    """Return rows and columns of X. An array is copied once, or not at all if it is all of X.

    Parameters
    ----------
    X : array, sparse matrix, frame or sequence
    rows, columns : int arrays, optional
        All of them if omitted.
    copy : bool, default=False
        Whether the caller may write to the rows without changing X. The copy of a frame is made
        at once: learners write to the memory below it, which pandas does not notice.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass._lib.rows import take_part
    >>> X = np.arange(9).reshape(3, 3)
    >>> take_part(X, np.array([2, 0]), np.array([0, 1]))
    array([[6, 7],
           [0, 1]])
    >>> take_part(X, np.arange(3)) is X
    True
    """
    if columns is not None and is_everything(columns, X.shape[1]):
        columns = None
    all_rows = rows is None or is_everything(rows, _sklearn.n_samples(X))
    if rows is None or (all_rows and (not copy or hasattr(X, "iloc"))):
        part = X if columns is None else take_rows(X, columns, axis=1)
        return part.copy() if copy and hasattr(X, "iloc") else part
    if columns is None:
        return take_rows(X, rows)
    if isinstance(X, np.ndarray):
        return X[np.ix_(rows, columns)]
    return take_rows(take_rows(X, rows), columns, axis=1)


def is_everything(places: NDArray[np.intp], n: int) -> bool:
    """Tell whether these are all n places, in order."""
    return len(places) == n and bool((places == np.arange(n)).all())


def with_narrow_indices(X: Any) -> Any:
    """Return X with indices of 32 bits, if they fit: some learners do not take wider ones."""
    if not issparse(X) or X.format != "csr" or X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    if max(X.nnz, X.shape[1]) > np.iinfo(np.int32).max:
        return X
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)(parts, shape=X.shape)


def _is_large_frame(X: Any) -> bool:
    """Tell whether X is one of pandas' frames, large, and of numbers of one type."""
    pandas = sys.modules.get("pandas")
    if pandas is None or type(X) is not pandas.DataFrame or X.shape[1] == 0:
        return False
    dtype, *others = set(X.dtypes)
    even = not others and isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    return even and X.size * dtype.itemsize > LARGE_FRAME


def _rows_of_frame(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a frame of one type; in parts, so that none is held by columns as well."""
    values = np.empty((len(rows), X.shape[1]), dtype=X.dtypes.iloc[0])
    step = max(1, PART_OF_FRAME // (values.itemsize * X.shape[1]))
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        values[part] = X.iloc[rows[part]].to_numpy()
    return type(X)(values, index=X.index[rows], columns=X.columns, copy=False)


def blocks_of_rows(X: Any, size: int) -> Iterator[tuple[slice, Any]]:
    """Yield consecutive rows of X, ``size`` at a time, and which they are.

    Out of columns, chunks of many blocks are taken: each takes a pass over all of X. One of them
    is held at a time.
    """
    parts = _chunks(X, size) if is_by_columns(X) else [slice(0, _sklearn.n_samples(X))]
    for part in parts:
        chunk = by_rows(X) if len(parts) == 1 else take_rows(X, part)
        n = part.stop - part.start
        for first in range(0, n, size):
            own = slice(first, min(first + size, n))
            block = chunk if n <= size else _sklearn.take_rows(chunk, own)
            yield slice(part.start + own.start, part.start + own.stop), block
            del block
        del chunk


def _chunks(X: Any, size: int) -> list[slice]:
    """Return rows of a matrix stored by columns that are as large as a chunk may be, or a block."""
    n, width = X.shape[0], X.data.dtype.itemsize + np.dtype(np.int32).itemsize
    total = width * int(X.indptr[-1])
    most = max(CHUNK, total // CHUNKS)
    if total <= most or X.data.dtype.itemsize not in BITS:  # those are converted in any case
        return [slice(0, n)]
    counts = np.zeros(n, dtype=np.int64)
    count_entries(_native(X.indices[: X.indptr[-1]]), np.arange(n + 1), counts)
    before = (np.cumsum(counts) - counts)[::size]  # entries before each block
    firsts = size * np.flatnonzero(np.diff(width * before // most, prepend=-1))
    return [slice(a, b) for a, b in pairwise([*firsts.tolist(), n])]


def _rows_of_columns(X: Any, rows: NDArray[np.intp]) -> Any:
    # Places of the rows that are taken, row by row: one may be taken several times.
    order = np.argsort(rows, kind="stable")
    first = np.zeros(X.shape[0] + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=X.shape[0]), out=first[1:])
    data, start, indices = np.asarray(X.data), _native(X.indptr), _native(X.indices[: X.indptr[-1]])
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
    return kind((_native(values), columns, begin.astype(width)), shape=(len(rows), X.shape[1]))


def _native(array: NDArray) -> NDArray:
    """Return the array in the byte order of this machine."""
    return np.asarray(array).astype(array.dtype.newbyteorder("="), copy=False)
