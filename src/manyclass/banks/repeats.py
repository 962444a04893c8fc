"""Rows that are there, or count, several times: fitted once each, with their number as a weight.

A support vector machine is fitted to a tolerance, and where within it LIBSVM and LIBLINEAR end
depends on the order of the rows, and on a row of weight 2 being two of them or not. Where rows
count twice or more on average, machines are fitted on the distinct ones, in an order that
depends on nothing but themselves. Then they are the same, to the last bit, however the rows were
counted, and take less time. Elsewhere rows and weights are handed on as they are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from manyclass._rows import by_rows, is_by_columns, without_duplicates
from manyclass._sklearn import n_samples
from manyclass.banks.borrowing import RowsOf, size_in_bytes
from manyclass.banks.pairwise import rows_at

TIMES = 2.0  # that rows count on average, from where on they are fitted once each
LARGE = 2**20  # bytes of an X that is not copied lightly
BLOCK_ENTRIES = 2**15  # of rows that are read at a time, to stay in cache
_HALF = np.uint64(32)

Places = NDArray[np.intp]
Weights = NDArray[np.float64]


class Counted(NamedTuple):
    """The distinct ones of some rows of X, in an order of their own."""

    rows: Places
    """The first of each."""
    weights: Weights
    """How often they count, for all rows of X; 0 for all others."""


def count_rows(X, y: Places, rows: Places, weights: Weights | None = None) -> Counted | None:
    """Count rows of X that are equal and of one class; ``None`` where they are better left.

    Parameters
    ----------
    X : array, frame or sparse matrix of numbers
    y : int array of shape (n,)
        Classes.
    rows : int array
        Which rows of X.
    weights : array of shape (n,), optional
        Whole numbers say how often a row counts; others are left as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.banks.repeats import count_rows
    >>> X = np.array([[1.0], [5.0], [1.0], [5.0], [1.0]])
    >>> count_rows(X, np.zeros(5, dtype=int), np.arange(5)).weights
    array([3., 2., 0., 0., 0.])
    """
    if weights is None:
        weights = np.ones(len(y))
    rows = rows[weights[rows] > 0]
    own = weights[rows]
    if len(rows) == 0 or (own != np.rint(own)).any():
        return None
    if is_by_columns(X):
        if size_in_bytes(X) > LARGE:
            return None
        X = by_rows(X)
    first, of_row = _partition(X, y, rows)
    few = 2 * len(first) <= len(rows) or size_in_bytes(RowsOf(X, first)) <= LARGE
    if not few or own.sum() < TIMES * len(first) or not _are_same(X, rows, first[of_row]):
        return None
    counts = np.zeros(n_samples(X))
    counts[first] = np.bincount(of_row, own)
    return Counted(first, counts)


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
    digests = np.empty(len(rows), dtype=np.uint64)
    for block in _blocks(X, rows):
        part = _numbers(X, rows[block])
        # Small whole numbers differ in their upper bits only, which a product would lose.
        bits = ((part.data if issparse(part) else part) + 0.0).view(np.uint64)  # -0 is 0
        bits ^= bits >> _HALF
        if issparse(part):
            bits = csr_array((bits, part.indices, part.indptr), shape=part.shape)
        digests[block] = bits @ factors
    return digests


@lru_cache(maxsize=8)
def _odd_factors(n: int) -> NDArray[np.uint64]:
    return 2 * np.random.default_rng(0).integers(2**63, size=n, dtype=np.uint64) + np.uint64(1)


def _are_same(X, rows: Places, others: Places) -> bool:
    """Tell whether rows are equal to others: digests may agree by chance."""
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
    size = max(1, BLOCK_ENTRIES // X.shape[1])
    return [slice(begin, begin + size) for begin in range(0, len(rows), size)]
