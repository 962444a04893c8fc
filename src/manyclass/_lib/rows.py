"""Rows of X, which may be an array, a list, a frame or a sparse matrix.

A sparse matrix in CSC format is stored by columns. Converting all of it would add a copy of it to
the rows that are needed. Here the rows are read from the columns and returned in CSR format, bit
for bit the same as rows of the converted matrix. Frames are stored by columns, too, and most
learners copy them to read rows. Rows of a large frame are therefore returned stored by rows.
"""

from __future__ import annotations

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
from manyclass._lib.frames import copy_of, is_even
from manyclass._lib.row_blocks import row_blocks

BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Types under which values of any type are copied, by their size in bytes."""


def without_duplicates(X: Any) -> Any:
    """Return X itself, or a copy with sorted entries and one entry for each row and column.

    A CSR matrix may have several entries for the same row and column. The value there is their
    sum. LIBSVM, trees, and code that squares the entries would read them one by one.
    """
    if not issparse(X) or X.format != "csr" or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def by_rows(X: Any) -> Any:
    """Return X itself, or X in CSR format if it is in CSC format."""
    if not is_by_columns(X):
        return X
    check_columns(X)
    return X.tocsr()


def take_rows(
    X: Any, rows: Any, axis: int = 0, *, large_frame: int = 2**24, part_bytes: int = 2**22
) -> Any:
    """Return rows of X, or columns for ``axis=1``.

    Parts of a sparse matrix are in CSR format. Rows of a large frame are stored by rows, if all
    columns are numbers of one type. A frame of more than ``large_frame`` bytes is large. A choice:
    a learner may copy up to 16 MB. ``part_bytes``, here 4 MB, are read at a time and held twice.
    """
    if is_by_columns(X):
        return _take_from_columns(X, rows, axis)
    if axis == 0:
        if _is_large_frame(X, large_frame):
            return _rows_of_frame(X, np.arange(len(X))[rows], part_bytes)
        if isinstance(rows, slice):
            return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
        if isinstance(rows, np.ndarray) and (isinstance(X, np.ndarray) or issparse(X)):
            return X[rows]  # scikit-learn's checks would cost more than the rows
    return _sklearn.safe_indexing(X, rows, axis=axis)


def _take_from_columns(X: Any, rows: Any, axis: int) -> Any:
    """Return rows or columns of a sparse matrix that is stored by columns."""
    check_columns(X)
    if axis == 1:
        return _sklearn.safe_indexing(X, rows, axis=1).tocsr()
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

    With ``copy``, the caller may write to the rows without changing X. The copy of a frame is made
    at once: learners write to the memory below it, which pandas does not notice.
    """
    if columns is not None and is_everything(columns, X.shape[1]):
        columns = None
    all_rows = rows is None or is_everything(rows, _sklearn.n_samples(X))
    if rows is None or (all_rows and (not copy or hasattr(X, "iloc"))):
        part = X if columns is None else take_rows(X, columns, axis=1)
        return copy_of(part) if copy and hasattr(X, "iloc") else part
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
    if not issparse(X) or X.format not in ("csr", "csc"):
        return X
    if X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)(parts, shape=X.shape)


def _is_large_frame(X: Any, large: int) -> bool:
    """Return whether X is a frame of pandas with many bytes, and of numbers of one type."""
    return is_even(X) and X.size * X.dtypes.iloc[0].itemsize > large


def _rows_of_frame(X: Any, rows: NDArray[np.intp], part_bytes: int) -> Any:
    """Return rows of a frame of one type; only a part is held by columns as well."""
    values = np.empty((len(rows), X.shape[1]), dtype=X.dtypes.iloc[0])
    for part in row_blocks(len(rows), X.shape[1], part_bytes // values.itemsize):
        values[part] = X.iloc[rows[part]].to_numpy()
    return type(X)(values, index=X.index[rows], columns=X.columns, copy=False)


def blocks_of_rows(
    X: Any, size: int, *, chunk_bytes: int = 2**26, max_chunks: int = 8
) -> Iterator[tuple[slice, Any]]:
    """Yield blocks of ``size`` consecutive rows of X, and the slice of each block.

    A matrix in CSC format is read in chunks of many blocks, because each chunk takes a pass over
    all of X. One chunk is held at a time. A chunk has ``chunk_bytes``. A choice: 64 MB of memory
    for fewer passes. There are at most ``max_chunks``: a chunk may be an eighth of X.
    """
    parts = [slice(0, _sklearn.n_samples(X))]
    if is_by_columns(X):
        parts = _chunks(X, size, chunk_bytes, max_chunks)
    for part in parts:
        chunk = by_rows(X) if len(parts) == 1 else take_rows(X, part)
        n = part.stop - part.start
        for first in range(0, n, size):
            own = slice(first, min(first + size, n))
            block = chunk if n <= size else _sklearn.safe_indexing(chunk, own)
            yield slice(part.start + own.start, part.start + own.stop), block
            del block
        del chunk


def _chunks(X: Any, size: int, chunk_bytes: int, max_chunks: int) -> list[slice]:
    """Return the rows of each chunk of a CSC matrix; a chunk has at least one block."""
    n, width = X.shape[0], X.data.dtype.itemsize + np.dtype(np.int32).itemsize
    total = width * int(X.indptr[-1])
    most = max(chunk_bytes, total // max_chunks)
    if total <= most or X.data.dtype.itemsize not in BITS:  # such values are converted in any case
        return [slice(0, n)]
    counts = np.zeros(n, dtype=np.int64)
    count_entries(_native(X.indices[: X.indptr[-1]]), np.arange(n + 1), counts)
    before = (np.cumsum(counts) - counts)[::size]  # entries before each block
    firsts = size * np.flatnonzero(np.diff(width * before // most, prepend=-1))
    return [slice(a, b) for a, b in pairwise([*firsts.tolist(), n])]


def _rows_of_columns(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return rows of a CSC matrix in CSR format; a row may be asked for several times."""
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
