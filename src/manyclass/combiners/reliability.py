"""How far each binary machine can be trusted, at a place or altogether (Liu & Zheng 2005).

A support vector machine minimises ``|w|^2 / 2 + C sum_i xi_i``. Divided by C and by
the number N of samples, the minimum says how well it did: its reliability is
``exp(-(|w|^2 / (2 C N) + mean slack))``. The mean is taken over all samples (static) or over
samples near the one to be classified (dynamic). Slacks are
``xi_i = max(0, 1 - y_i f(x_i))``, also of machines that were fitted with their squares.

A weight of a sample counts as that many copies of it, everywhere.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms

from manyclass._lib.compiled import kernel
from manyclass._lib.rows import without_duplicates
from manyclass.banks.base import Evidence

BLOCK = 2**18  # entries of a list of neighbours
DISTANCES = 2**20  # between sparse samples held at a time, with copies 30 MB
ROUNDING = 1e-13  # of squared distances, relative to the squares they are made of
LARGEST = 1e100  # coordinate: its square is finite

Array = NDArray[np.float64]
Code = NDArray[np.int8]


class Reliability(ABC):
    """A measure of the reliability of every binary machine."""

    @abstractmethod
    def fit(
        self,
        X,
        y: NDArray[np.intp],
        code: Code,
        evidence: Evidence,
        scores: Array | None = None,
    ) -> Reliability:
        """Measure on the training set.

        Parameters
        ----------
        X, y, code : training data, class indices, code matrix
        evidence : Evidence
            What the machines' objective says about them.
        scores : array of shape (n, l) or None
            Out-of-sample scores, where something is to be chosen by them; NaN where
            there are none.
        """

    @abstractmethod
    def of(self, X, scores: Array) -> Array:
        """Return the reliabilities at rows X with these scores, shape (l,) or (n, l)."""


class StaticReliability(Reliability):
    """The same reliability everywhere: ``exp(-(|w|^2 / (2 C N) + sum_i xi_i / N))``.

    Attributes
    ----------
    values_ : ndarray of shape (l,)
        The reliabilities. At the minimum of the hinge loss they are at least
        ``exp(-1)``: the machine w = 0 has no larger objective.

    References
    ----------
    Y. Liu and Y. F. Zheng (2005), "One-against-all multi-class SVM classification using
    reliability measures", eq. (7).

    Examples
    --------
    A machine with |w|^2 / (2 C N) = 0.1 and slacks 0, 0.5, 0 and 1.5:

    >>> import numpy as np
    >>> from manyclass.banks import Evidence
    >>> from manyclass.combiners.reliability import StaticReliability
    >>> margins = np.array([[2.0], [0.5], [-1.0], [0.5]])
    >>> code = np.array([[1], [-1]], dtype=np.int8)
    >>> y = np.array([0, 0, 1, 1])
    >>> measure = StaticReliability().fit(None, y, code, Evidence(np.array([0.1]), margins))
    >>> -np.log(measure.values_)
    array([0.6])
    """

    def fit(
        self,
        X,
        y: NDArray[np.intp],
        code: Code,
        evidence: Evidence,
        scores: Array | None = None,
    ) -> StaticReliability:
        """Measure on the training set; X and ``scores`` are not read."""
        rows, weights = counted(evidence)
        sides = code[y[rows]]
        self.values_ = _static(
            _penalty(evidence), _slacks(evidence.margins[rows], sides), sides, weights
        )
        return self

    def of(self, X, scores: Array) -> Array:
        """Return the reliabilities, shape (l,)."""
        return self.values_


class DynamicReliability(Reliability):
    """Reliability at a place: the mean slack is that of samples near by.

    Of the ``n_neighbors`` training samples next to x, those count that the machine puts
    on the side where it puts x; a margin of 0 is on the negative side. Where there are
    none, the reliability is the static one.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbours by Euclidean distance; all samples if there are fewer. Where several
        contend for the last places at the same distance, they share them. With sample
        weights, neighbours are taken until their weights add up to this number, the last
        in part.

    Attributes
    ----------
    n_neighbors_ : int
        The number of neighbours in use.
    static_ : ndarray of shape (l,)
        The static reliabilities.

    References
    ----------
    Y. Liu and Y. F. Zheng (2005), "One-against-all multi-class SVM classification using
    reliability measures", eqs. (9) to (12).

    Examples
    --------
    The sample at 0.5 is on the wrong side of the machine f(x) = 2 x:

    >>> import numpy as np
    >>> from manyclass.banks import Evidence
    >>> from manyclass.combiners.reliability import DynamicReliability
    >>> X = np.array([[1.0], [2.0], [-1.0], [0.5]])
    >>> code = np.array([[1], [-1]], dtype=np.int8)
    >>> evidence = Evidence(np.array([0.1]), 2.0 * X)
    >>> measure = DynamicReliability(2).fit(X, np.array([0, 0, 1, 1]), code, evidence)
    >>> new = np.array([[0.6], [3.0], [-3.0]])
    >>> -np.log(measure.of(new, 2.0 * new))
    array([[1.1], [0.1], [0.1]])
    """

    def __init__(self, n_neighbors: int = 15):
        self.n_neighbors = n_neighbors

    def fit(
        self,
        X,
        y: NDArray[np.intp],
        code: Code,
        evidence: Evidence,
        scores: Array | None = None,
    ) -> DynamicReliability:
        """Keep the training samples and their slacks; ``scores`` are not read."""
        self.n_neighbors_ = _check_size(self.n_neighbors)
        self._keep(X, y, code, evidence, self.n_neighbors_)
        return self

    def of(self, X, scores: Array) -> Array:
        """Return the reliabilities at rows X with these scores, shape (n, l)."""
        return self._of_sizes(X, scores, [self.n_neighbors_])[0]

    def _keep(self, X, y, code: Code, evidence: Evidence, size: int) -> None:
        """Keep what is needed of the training set, for neighbourhoods of about this size."""
        _check_input_space(evidence)
        X = without_duplicates(
            check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        )
        rows, weights = counted(evidence)
        sides, margins = code[y[rows]], evidence.margins[rows]
        self._slacks, self._penalty = _slacks(margins, sides), _penalty(evidence)
        self.static_ = _static(self._penalty, self._slacks, sides, weights)
        # The side that the machine puts a sample on; 0 where it took no part.
        self._sides = np.where(sides == 0, 0, _sides(margins)).astype(np.int8)
        self._neighbours = Neighbours(X if len(rows) == len(y) else X[rows], weights, size)

    def _of_sizes(
        self, X, scores: Array, sizes: Sequence[int], own: NDArray[np.intp] | None = None
    ) -> Array:
        """Return the reliabilities (sizes, n, l) by neighbourhoods of these sizes, eq. (12).

        ``own`` are samples to be left out of the neighbourhood of each row.
        """
        X = without_duplicates(
            check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        )
        sides, means = _sides(scores), np.empty((len(sizes), *scores.shape))
        for rows, nearest in self._neighbours.around(X, max(sizes), own):
            for s, size in enumerate(sizes):
                shares, _ = nearest.shares(size)
                means[s, rows] = _mean_slacks(
                    nearest.samples, shares, self._slacks, self._sides, sides[rows]
                )
        local = np.exp(-(self._penalty + means))
        return np.where(np.isnan(local), self.static_, local)


class Nearest(NamedTuple):
    """For each of r rows the c samples nearest to it, in ascending order of distance."""

    samples: NDArray[np.intp]
    """Which samples, shape (r, c)."""
    weights: Array
    """How often they count, shape (r, c)."""
    squared: Array
    """Their squared distances, shape (r, c)."""
    tolerance: Array
    """Within which squared distances are the same, shape (r,)."""

    def at(self, rows: NDArray[np.bool_]) -> Nearest:
        """Return those of some of the rows."""
        arrays = self.samples, self.weights, self.squared, self.tolerance
        return Nearest._make(array[rows] for array in arrays)

    def shares(self, size: int) -> tuple[Array, NDArray[np.bool_]]:
        """Return how often they count in a neighbourhood of this size.

        Samples at the same distance share what nearer ones have left of the size.

        Returns
        -------
        shares : array of shape (r, c)
        enough : bool array of shape (r,)
            False where samples beyond these may have a share too.
        """
        shares, enough = np.zeros_like(self.weights), np.empty(len(self.weights), dtype=np.bool_)
        _share_out(float(size), self.weights, self.squared, self.tolerance, shares, enough)
        return shares, enough


class Neighbours:
    """Neighbourhoods of a given size among weighted samples, by Euclidean distance.

    The distances are compared with a tolerance for their rounding: what does not
    depend on more than that, such as the order of the samples or the number of rows asked
    for at a time, does not change the answer.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, n_features)
        The samples.
    weights : array of shape (n,)
        How often each of them counts; positive.
    size : int
        The size that is asked for most.
    """

    def __init__(self, X, weights: Array, size: int):
        self.weights = weights
        self.sparse = issparse(X)
        X = _bounded(X)
        if not self.sparse:  # distances do not change with the origin, but their cancellation does
            self.origin = X.mean(axis=0)
            X -= self.origin
        self.radius = row_norms(X).max()
        from sklearn.neighbors import NearestNeighbors  # costly, and needed here only

        self.index = NearestNeighbors(n_neighbors=self._guess(size)).fit(X)

    def around(
        self, X, most: int, own: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[NDArray[np.intp], Nearest]]:
        """Yield a few rows of X at a time and the samples around them, every row once.

        Parameters
        ----------
        X : array or CSR matrix of m rows
        most : int
            The largest size of a neighbourhood that will be asked for.
        own : int array of shape (m,), optional
            A sample per row that does not count there.
        """
        pending, count = np.arange(X.shape[0]), self._guess(most)
        while len(pending):
            step, short = self._rows_at_a_time(X, count), []
            for first in range(0, len(pending), step):
                rows = pending[first : first + step]
                nearest = self._nearest(X[rows], count, None if own is None else own[rows])
                enough = nearest.shares(most)[1] | (count == len(self.weights))
                yield rows[enough], nearest.at(enough)
                short.append(rows[~enough])
            pending, count = np.concatenate(short), min(2 * count, len(self.weights))

    def _nearest(self, X, count: int, own: NDArray[np.intp] | None) -> Nearest:
        X = self._moved(X)
        distances, samples = self.index.kneighbors(X, count)
        weights = self.weights[samples]
        if own is not None:
            weights[samples == own[:, None]] = 0.0
        tolerance = ROUNDING * (row_norms(X) + self.radius) ** 2
        return Nearest(samples, weights, distances**2, tolerance)

    def _rows_at_a_time(self, X, width: int) -> int:
        """Return for how many rows neighbours are listed, ``width`` numbers per row."""
        if self.sparse:  # scikit-learn holds all distances of the rows it is asked for
            return max(1, min(BLOCK // width, DISTANCES // len(self.weights)))
        return max(1, BLOCK // max(width, X.shape[1]))

    def _guess(self, size: int) -> int:
        """Return how many samples to list: the size, one left out, and one beyond."""
        return int(min(size / self.weights.mean() + 2, len(self.weights)))

    def _moved(self, X):
        if self.sparse:
            return _bounded(X)
        return _bounded(X.toarray() if issparse(X) else X) - self.origin


@kernel
def _share_out(size, weights, squared, tolerance, shares, enough):
    """Fill in ``shares`` and ``enough``: see :meth:`Nearest.shares`."""
    for i in range(squared.shape[0]):
        left, first = size, 0
        while left > 0.0 and first < squared.shape[1]:
            end, together = first, 0.0
            while end < squared.shape[1] and not squared[i, end] > squared[i, first] + tolerance[i]:
                together += weights[i, end]
                end += 1
            part = min(1.0, left / together) if together > 0.0 else 0.0
            for j in range(first, end):
                shares[i, j] = part * weights[i, j]
            left -= together
            first = end
        enough[i] = first < squared.shape[1]


@kernel
def _mean_slacks(samples, shares, slacks, sides, own_sides):
    """Return sum xi / k_x over the neighbours on the same side; NaN where there are none."""
    means, k_x = np.zeros(own_sides.shape), np.empty(own_sides.shape[1])
    for i in range(means.shape[0]):
        k_x[:] = 0.0
        for j in range(samples.shape[1]):
            share, t = shares[i, j], samples[i, j]
            if share > 0.0:
                for b in range(k_x.size):
                    if sides[t, b] == own_sides[i, b]:
                        means[i, b] += share * slacks[t, b]
                        k_x[b] += share
        for b in range(k_x.size):
            means[i, b] = means[i, b] / k_x[b] if k_x[b] > 0.0 else np.nan
    return means


def counted(evidence: Evidence) -> tuple[NDArray[np.intp], Array]:
    """Return the rows that count, and how often."""
    weights = np.ones(len(evidence.margins)) if evidence.weights is None else evidence.weights
    rows = np.flatnonzero(weights > 0)
    return rows, weights[rows]


def _penalty(evidence: Evidence) -> Array:
    """Return |w|^2 / (2 C N); a kernel that is not positive definite may put it below 0."""
    return np.maximum(evidence.penalty, 0.0)


def _slacks(margins: Array, sides: Code) -> Array:
    """Return (1 - y f)_+; 0 where a sample takes no part."""
    slacks = np.maximum(1.0 - np.where(sides < 0, -margins, margins), 0.0)
    return np.where(sides == 0, 0.0, slacks)


def _static(penalty: Array, slacks: Array, sides: Code, weights: Array) -> Array:
    """Return exp(-(|w|^2 / (2 C N) + sum_i xi_i / N)), eq. (7)."""
    return np.exp(-(penalty + weights @ slacks / (weights @ (sides != 0))))


def _sides(margins: Array) -> NDArray[np.int8]:
    return np.where(margins > 0, 1, -1).astype(np.int8)


def _bounded(X):
    """Limit the coordinates, whose squares would overflow."""
    if not issparse(X):
        return np.clip(X, -LARGEST, LARGEST)
    X = X.copy()
    X.data = np.clip(X.data, -LARGEST, LARGEST)
    return X


def _check_size(n_neighbors) -> int:
    if isinstance(n_neighbors, bool) or not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer of at least 1, got {n_neighbors!r}.")
    return int(n_neighbors)


def _check_input_space(evidence: Evidence) -> None:
    if evidence.pairwise:
        raise ValueError(
            "dynamic reliability looks for neighbours of X, but X is a precomputed kernel: there "
            "is no input space to measure distances in. Use the static reliability ('srm'), or "
            "pass the features and the kernel as a function."
        )
