"""Measures: the reliability of each binary model, overall or near a sample (Liu & Zheng 2005).

The decoders that use these measures are in :mod:`manyclass.combiners.srm_drm`.

A support vector machine minimises ``|w|^2 / 2 + C sum_i xi_i``. The minimum, divided by C and
by the number N of samples, measures how well the machine fits. Its reliability is
``exp(-(|w|^2 / (2 C N) + mean slack))``. The mean is over all samples (static), or over the
samples near the one to classify (dynamic). Slacks are ``xi_i = max(0, 1 - y_i f(x_i))``, even if
the machine was fitted with squared slacks.

A sample of weight w has the same effect as w copies of it.
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

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.row_blocks import BLOCK_ENTRIES
from manyclass._lib.rows import without_duplicates
from manyclass.banks.base import ObjectiveTerms
from manyclass.combiners.kernels.neighbourhoods import mean_slacks, share_out


class Reliability(ABC):
    """Base of the measures of the reliability of every binary model."""

    @abstractmethod
    def fit(
        self,
        X,
        y: Places,
        code: Code,
        terms: ObjectiveTerms,
        scores: Floats | None = None,
    ) -> Reliability:
        """Measure on the training set.

        Parameters
        ----------
        X, y, code : training data, class indices, code matrix
        terms : margins and penalties of the training set, from the fitted bank
        scores : out-of-sample scores (n, l), for measures that choose a parameter by them
        """

    @abstractmethod
    def of(self, X, scores: Floats) -> Floats:
        """Return the reliabilities at rows X with these scores, shape (l,) or (n, l)."""


class StaticReliability(Reliability):
    """The same reliability everywhere: ``exp(-(|w|^2 / (2 C N) + sum_i xi_i / N))``.

    Attributes
    ----------
    values_ : ndarray of shape (l,)
        The reliabilities. At the minimum of the hinge loss they are at least
        ``exp(-1)``, the reliability of w = 0.

    References
    ----------
    Y. Liu and Y. F. Zheng (2005), "One-against-all multi-class SVM classification using
    reliability measures", eq. (7).

    Examples
    --------
    A machine with |w|^2 / (2 C N) = 0.1 and slacks 0, 0.5, 0 and 1.5:

    >>> import numpy as np
    >>> from manyclass.banks import ObjectiveTerms
    >>> from manyclass.combiners.reliability import StaticReliability
    >>> margins = np.array([[2.0], [0.5], [-1.0], [0.5]])
    >>> code = np.array([[1], [-1]], dtype=np.int8)
    >>> y = np.array([0, 0, 1, 1])
    >>> measure = StaticReliability().fit(None, y, code, ObjectiveTerms(np.array([0.1]), margins))
    >>> -np.log(measure.values_)
    array([0.6])
    """

    def fit(
        self,
        X,
        y: Places,
        code: Code,
        terms: ObjectiveTerms,
        scores: Floats | None = None,
    ) -> StaticReliability:
        """Measure on the training set; X and ``scores`` are not used."""
        rows, weights = counted(terms)
        sides = code[y[rows]]
        slacks = _slacks(terms.margins[rows], sides)
        self.values_ = _static(_penalty(terms), slacks, sides, weights)
        return self

    def of(self, X, scores: Floats) -> Floats:
        """Return the reliabilities, shape (l,)."""
        return self.values_


class DynamicReliability(Reliability):
    """Reliability near a sample: the mean slack of its neighbours.

    The mean is over those of the ``n_neighbors`` nearest training samples that the binary model
    puts on the side of x (the negative one if the margin is 0). Without any, it is the static one.

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours by Euclidean distance; all samples if there are fewer. Samples at
        the same distance share the last places equally. With sample weights, neighbours are
        added until their weights sum to this number; the last one counts in part.

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
    The sample at 0.5 is on the wrong side of the model f(x) = 2 x:

    >>> import numpy as np
    >>> from manyclass.banks import ObjectiveTerms
    >>> from manyclass.combiners.reliability import DynamicReliability
    >>> X = np.array([[1.0], [2.0], [-1.0], [0.5]])
    >>> code = np.array([[1], [-1]], dtype=np.int8)
    >>> terms = ObjectiveTerms(np.array([0.1]), 2.0 * X)
    >>> measure = DynamicReliability(2).fit(X, np.array([0, 0, 1, 1]), code, terms)
    >>> new = np.array([[0.6], [3.0], [-3.0]])
    >>> -np.log(measure.of(new, 2.0 * new))
    array([[1.1], [0.1], [0.1]])
    """

    def __init__(self, n_neighbors: int = 15):
        self.n_neighbors = n_neighbors

    def fit(
        self,
        X,
        y: Places,
        code: Code,
        terms: ObjectiveTerms,
        scores: Floats | None = None,
    ) -> DynamicReliability:
        """Keep the training samples and their slacks; ``scores`` are not used."""
        size = self.n_neighbors
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ValueError(f"n_neighbors must be an integer of at least 1, got {size!r}.")
        self.n_neighbors_: int = int(size)
        self._keep(X, y, code, terms, self.n_neighbors_)
        return self

    def of(self, X, scores: Floats, **limits: int) -> Floats:
        """Return the reliabilities at rows X with these scores, shape (n, l).

        ``limits`` of the memory: see :meth:`Neighbours.around`.
        """
        return self._of_sizes(X, scores, [self.n_neighbors_], None, **limits)[0]

    def _keep(self, X, y, code: Code, terms: ObjectiveTerms, size: int) -> None:
        """Keep slacks, sides and an index of the samples, for neighbourhoods of about this size."""
        if terms.pairwise:
            raise ValueError(
                "dynamic reliability needs the neighbours of each row of X, but X is a precomputed "
                "kernel, which has no distances. Use the static reliability ('srm'), or pass the "
                "features and the kernel as a function."
            )
        X = _check_rows(X)
        rows, weights = counted(terms)
        sides, margins = code[y[rows]], terms.margins[rows]
        self._slacks, self._penalty = _slacks(margins, sides), _penalty(terms)
        self.static_ = _static(self._penalty, self._slacks, sides, weights)
        # The side that the model predicts for a sample; 0 where the sample took no part.
        self._sides = np.where(sides == 0, 0, _sides(margins)).astype(np.int8)
        self._neighbours = Neighbours(X if len(rows) == len(y) else X[rows], weights, size)

    def _of_sizes(
        self, X, scores: Floats, sizes: Sequence[int], own: Places | None, **limits: int
    ) -> Floats:
        """Return the reliabilities (sizes, n, l) for neighbourhoods of these sizes, eq. (12).

        ``own[i]`` is a sample that does not count as a neighbour of row i.
        """
        X = _check_rows(X)
        sides, means = _sides(scores), np.empty((len(sizes), *scores.shape))
        for rows, nearest in self._neighbours.around(X, max(sizes), own, **limits):
            near = nearest.samples
            for s, size in enumerate(sizes):
                shares, _ = nearest.shares(size)
                means[s, rows] = mean_slacks(near, shares, self._slacks, self._sides, sides[rows])
        local = np.exp(-(self._penalty + means))
        return np.where(np.isnan(local), self.static_, local)


class Nearest(NamedTuple):
    """The c nearest samples of each of r rows, in ascending order of distance.

    Arrays of shape (r, c): the indices of the samples, their weights and squared distances.
    Squared distances that differ by no more than ``tolerance`` (r,) count as equal.
    """

    samples: Places
    weights: Floats
    squared: Floats
    tolerance: Floats

    def at(self, rows: Flags) -> Nearest:
        """Return the neighbours of some of the rows."""
        return Nearest._make(array[rows] for array in self)

    def shares(self, size: int) -> tuple[Floats, Flags]:
        """Return the weight of each sample in a neighbourhood of this size.

        The weights of a row sum to ``size``. The nearest samples come first; samples at the same
        distance share the rest equally.

        Returns
        -------
        shares : array of shape (r, c)
        enough : bool array of shape (r,)
            False if the neighbourhood may contain samples beyond these c.
        """
        shares, enough = np.zeros_like(self.weights), np.empty(len(self.weights), dtype=np.bool_)
        share_out(float(size), self.weights, self.squared, self.tolerance, shares, enough)
        return shares, enough


class Neighbours:
    """Neighbourhoods of a given size among weighted samples, by Euclidean distance.

    Distances that differ only by rounding errors count as equal. So the order of the samples
    and the number of rows in a call do not change the result.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, n_features)
        The samples.
    weights : array of shape (n,)
        Their weights; positive.
    size : int
        The usual size of a neighbourhood.
    """

    def __init__(self, X, weights: Floats, size: int):
        self.weights = weights
        self.sparse = issparse(X)
        X = _bounded(X)
        if not self.sparse:  # centred samples have smaller rounding errors in their distances
            self.origin = X.mean(axis=0)
            X -= self.origin
        self.radius = row_norms(X).max()
        from sklearn.neighbors import NearestNeighbors  # a slow import, only needed here

        self.index = NearestNeighbors(n_neighbors=self._guess(size)).fit(X)

    def around(
        self,
        X,
        most: int,
        own: Places | None = None,
        block_entries: int = BLOCK_ENTRIES,
        most_distances: int | None = None,
    ) -> Iterator[tuple[Places, Nearest]]:
        """Yield a few rows of X at a time with the samples around them; every row once.

        Parameters
        ----------
        X : array or CSR matrix of m rows
        most : int
            The largest size of a neighbourhood that the caller needs.
        own : int array of shape (m,), optional
            For each row, a sample that does not count as its neighbour.
        block_entries, most_distances : int
            Limits of the list of neighbours of a few rows, and of the distances between sparse
            samples held at a time: four times as many by default, 30 MB with scikit-learn's copies.
        """
        most_distances = 4 * block_entries if most_distances is None else most_distances
        pending, count = np.arange(X.shape[0]), self._guess(most)
        while len(pending):
            step, short = self._rows_at_a_time(X, count, block_entries, most_distances), []
            for first in range(0, len(pending), step):
                rows = pending[first : first + step]
                nearest = self._nearest(X[rows], count, None if own is None else own[rows])
                enough = nearest.shares(most)[1] | (count == len(self.weights))
                yield rows[enough], nearest.at(enough)
                short.append(rows[~enough])
            pending, count = np.concatenate(short), min(2 * count, len(self.weights))

    def _nearest(self, X, count: int, own: Places | None) -> Nearest:
        if not self.sparse and issparse(X):
            X = X.toarray()
        X = _bounded(X) if self.sparse else _bounded(X) - self.origin
        distances, samples = self.index.kneighbors(X, count)
        weights = self.weights[samples]
        if own is not None:
            weights[samples == own[:, None]] = 0.0
        # Rounding error of |a - b|^2, with a wide margin: some hundred times the float64 epsilon.
        tolerance = 1e-13 * (row_norms(X) + self.radius) ** 2
        return Nearest(samples, weights, distances**2, tolerance)

    def _rows_at_a_time(self, X, width: int, entries: int, distances: int) -> int:
        """Return how many rows a block has, with ``width`` neighbours per row."""
        if self.sparse:  # scikit-learn holds the distances of a block to all samples
            return max(1, min(entries // width, distances // len(self.weights)))
        return max(1, entries // max(width, X.shape[1]))

    def _guess(self, size: int) -> int:
        """Return how many samples to list: the size, one that is left out, and the next one."""
        return int(min(size / self.weights.mean() + 2, len(self.weights)))


def counted(terms: ObjectiveTerms) -> tuple[Places, Floats]:
    """Return the rows of positive weight, and their weights."""
    weights = np.ones(len(terms.margins)) if terms.weights is None else terms.weights
    rows = np.flatnonzero(weights > 0)
    return rows, weights[rows]


def _penalty(terms: ObjectiveTerms) -> Floats:
    """Return |w|^2 / (2 C N), or 0: it is negative for some kernels that are not definite."""
    return np.maximum(terms.penalty, 0.0)


def _slacks(margins: Floats, sides: Code) -> Floats:
    """Return max(0, 1 - y f); 0 where a sample takes no part."""
    slacks = np.maximum(1.0 - np.where(sides < 0, -margins, margins), 0.0)
    return np.where(sides == 0, 0.0, slacks)


def _static(penalty: Floats, slacks: Floats, sides: Code, weights: Floats) -> Floats:
    """Return exp(-(|w|^2 / (2 C N) + sum_i xi_i / N)), eq. (7)."""
    return np.exp(-(penalty + weights @ slacks / (weights @ (sides != 0))))


def _sides(margins: Floats) -> NDArray[np.int8]:
    return np.where(margins > 0, 1, -1).astype(np.int8)


def _bounded(X):
    """Limit the coordinates so that sums of their squares do not overflow."""
    largest = 1e100
    if not issparse(X):
        return np.clip(X, -largest, largest)
    X = X.copy()
    X.data = np.clip(X.data, -largest, largest)
    return X


def _check_rows(X):
    return without_duplicates(check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X"))
