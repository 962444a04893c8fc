"""Rows that are there several times: fitted once each, with what they weigh together.

Where most rows are repeated, machines are fitted on the distinct ones, which takes less time, and
leave-one-out knows that copies take a sample's place. LIBSVM and LIBLINEAR end somewhere within
their tolerance: they are given the distinct rows in an order that depends on nothing but
themselves, so that they end at the same machines in whatever order rows and copies come, and
whether some of these are weights. Elsewhere rows and weights are handed on as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, issparse
from sklearn.utils import check_array

from manyclass._lib.rows import by_rows, is_by_columns, without_duplicates
from manyclass.banks.precomputed import rows_at

REPEATED = 0.5  # share of the distinct rows that have copies, from where on these are left out
LARGE = 2**20  # bytes of an X that is not copied lightly
BLOCK_ENTRIES = 2**15  # of rows that are read at a time, to stay in cache
_HALF = np.uint64(32)

Places = NDArray[np.intp]
Weights = NDArray[np.float64]


class Distinct(NamedTuple):
    """The distinct ones of some rows of X."""

    rows: Places
    """The first of each: in an order of their own, or that of X if it is large."""
    weights: Weights
    """What they weigh with their copies, for all rows of X; 0 for all others."""


def distinct_rows(X, y: Places, rows: Places, weights: Weights | None = None) -> Distinct | None:
    """Leave out copies of rows that are equal and of one class; ``None`` if most have none.

    Parameters
    ----------
    X : array, frame or sparse matrix of numbers
    y : int array of shape (n,)
        Classes.
    rows : int array
        Which rows of X.
    weights : array of shape (n,), optional
        Rows without weight do not count.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.banks.repeats import distinct_rows
    >>> X = np.array([[1.0], [5.0], [1.0], [5.0], [1.0]])
    >>> distinct_rows(X, np.zeros(5, dtype=int), np.arange(5)).weights
    array([3., 2., 0., 0., 0.])
    """
    weights = np.ones(len(y)) if weights is None else weights
    rows = rows[weights[rows] > 0]
    first, of_row = _partition(X, y, rows)
    sizes = np.bincount(of_row)
    if len(rows) == 0 or np.mean(sizes > 1) < REPEATED or not _are_same(X, rows, first[of_row]):
        return None
    together = np.zeros(len(y))
    together[first] = np.bincount(of_row, weights[rows])
    # Told by the distinct rows themselves, it is the same however they are stored or repeated.
    large = 8 * len(first) * X.shape[1] > LARGE
    return Distinct(np.sort(first) if large else first, together)


class Copies:
    """Which rows of X are equal, and of one class, of those that have a weight.

    Parameters
    ----------
    X, y, weights : as machines were fitted on

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.banks.repeats import Copies
    >>> copies = Copies(np.array([[1.0], [5.0], [1.0]]), np.zeros(3, dtype=int), np.ones(3))
    >>> copies.of(np.array([1, 0]))
    (array([1, 0, 2]), array([0, 1, 1]))
    """

    def __init__(self, X, y: Places, weights: Weights):
        rows = np.flatnonzero(weights > 0)
        _, of_row = _partition(X, y, rows)
        self._number = np.full(len(y), -1)
        self._number[rows] = of_row
        self._by_number = rows[np.argsort(of_row, kind="stable")]
        self._sizes = np.bincount(of_row)
        self._weights = np.bincount(of_row, weights[rows])

    def of(self, rows: Places) -> tuple[Places, Places]:
        """Return all copies of rows, one row's after the other's, and which row each is of."""
        number = self._number[rows]
        sizes = self._sizes[number]
        starts = np.cumsum(self._sizes)[number] - np.cumsum(sizes)  # from the first on, one by one
        places = np.repeat(starts, sizes) + np.arange(sizes.sum())
        return self._by_number[places], np.repeat(np.arange(len(rows)), sizes)

    def weights_of(self, rows: Places) -> Weights:
        """Return what all copies of each row weigh together."""
        return self._weights[self._number[rows]]


def _partition(X, y: Places, rows: Places) -> tuple[Places, Places]:
    """Return the first of equal rows, by classes and digests, and which of them each row is."""
    digests, classes = _digests(X, rows), y[rows]
    order = np.lexsort((digests, classes))
    begins = np.ones(len(rows), dtype=np.bool_)
    begins[1:] = (np.diff(digests[order]) != 0) | (np.diff(classes[order]) != 0)
    of_row = np.empty_like(order)
    of_row[order] = np.cumsum(begins) - 1
    return rows[order[begins]], of_row


def _digests(X, rows: Places) -> NDArray[np.uint64]:
    """Return a number for every row: the same for equal rows, dense or not, of any X."""
    factors = _odd_factors(X.shape[1])
    if is_by_columns(X):
        return _digests_by_columns(X, factors)[rows]
    digests = np.empty(len(rows), dtype=np.uint64)
    for block in _blocks(X, rows):
        part = _numbers(X, rows[block])
        if issparse(part):
            mixed = csr_array((_mixed(part.data), part.indices, part.indptr), shape=part.shape)
        else:
            mixed = _mixed(part)
        digests[block] = mixed @ factors
    return digests


def _digests_by_columns(X, factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return those of all rows; some of them would take a pass over X, too."""
    digests = np.zeros(X.shape[0], dtype=np.uint64)
    for columns in _slices(X.shape[1], X.nnz / X.shape[1]):
        starts = X.indptr[columns.start : columns.stop + 1]
        part = slice(starts[0], starts[-1])
        parts = _mixed(X.data[part].astype(np.float64)), X.indices[part], starts - starts[0]
        shape = X.shape[0], len(starts) - 1
        digests += csc_array(parts, shape=shape) @ factors[columns]
    return digests


def _mixed(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the bits of numbers, with the upper half in the lower one, too; 0 for -0.

    Small whole numbers differ in their upper bits only, which a product would lose.
    """
    bits = (values + 0.0).view(np.uint64)
    bits ^= bits >> _HALF
    return bits


def _odd_factors(n: int) -> NDArray[np.uint64]:
    return 2 * np.random.default_rng(0).integers(2**63, size=n, dtype=np.uint64) + np.uint64(1)


def _are_same(X, rows: Places, others: Places) -> bool:
    """Tell whether rows are equal to others: digests may agree by chance."""
    X = by_rows(X)
    for block in _blocks(X, rows):
        one, other = _numbers(X, rows[block]), _numbers(X, others[block])
        unequal: Any = one != other
        if unequal.nnz if issparse(one) else unequal.any():
            return False
    return True


def _numbers(X, places: Places):
    """Return rows as an array or CSR matrix of float64, with one entry for a place."""
    part = rows_at(X, places)
    if not (isinstance(part, np.ndarray) and part.dtype == np.float64):
        part = check_array(part, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    return without_duplicates(part)


def _blocks(X, rows: Places) -> list[slice]:
    """Split the rows, so that those of a large X are not all read at once."""
    return _slices(len(rows), X.nnz / X.shape[0] if issparse(X) else X.shape[1])


def _slices(n: int, entries: float) -> list[slice]:
    """Split n rows, or columns, that have so many entries each."""
    size = max(1, int(BLOCK_ENTRIES / max(1.0, entries)))
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]
