"""One-vs-rest decoders that trust each machine as far as it is reliable (Liu & Zheng 2005).

A margin f becomes the soft decision ``sign(f) (1 - exp(-|f|))``, which is weighted by the
reliability of its machine. The class with the largest is the label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.sklearn import take_rows
from manyclass.banks.base import Evidence
from manyclass.combiners.base import Combination, register
from manyclass.combiners.decoding import WinnerTakesAll, as_block, check_margins
from manyclass.combiners.reliability import (
    Array,
    Code,
    DynamicReliability,
    Reliability,
    StaticReliability,
    counted,
)
from manyclass.combiners.ties import as_seed, break_ties

BLOCK = 2**18  # entries of the largest temporary array
SIZES = (1, 3, 5, 9, 15, 25, 45, 75, 125, 225, 375, 625, 1025)
ENOUGH_ROWS = 5000  # to choose one number
NOISE = 8.0 * float(np.finfo(np.float64).eps)  # of a weighted decision, relative
RAISE = 1e-9  # what a preferred class is raised by, as in break_ties


class ReliabilityDecoder(WinnerTakesAll):
    """Base of the decoders by reliability: a subclass says which measure.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.
    """

    def combine(
        self,
        values: Array,
        code: Code,
        weights: Array | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Combination:
        """Weigh the soft decisions; see :meth:`manyclass.combiners.base.Combiner.combine`.

        Parameters
        ----------
        values : array of shape (n, l)
            Margins; infinite ones count as very large ones.
        code : int8 array of shape (k, l)
            A one-vs-rest code, or the single column of two classes.
        weights : array of shape (l,) or (n, l), optional
            The reliabilities; equal when omitted.
        n_jobs : int, optional
            Not used.

        Returns
        -------
        Combination
        """
        code = np.asarray(code)
        self.check_code(code)
        values = check_margins(values, code)
        reliabilities = _check_reliabilities(weights, values.shape)
        n, margins_of = len(values), self._scorer(code)
        scores = np.empty((n, len(code)))
        step = max(1, BLOCK // len(code))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            margins = margins_of(as_block(values[rows], start)).T
            scores[rows] = weigh_decisions(margins, reliabilities[rows])
        break_ties(scores, values, code, as_seed(self.random_state))
        return Combination(scores, np.ones(n, dtype=np.int32), np.ones(n, dtype=np.bool_))


@register
class StaticReliabilityDecoder(ReliabilityDecoder):
    """Soft decisions weighted by how reliable each machine is altogether (SRM).

    For support vector machines: :class:`~sklearn.svm.SVC`,
    :class:`~sklearn.svm.LinearSVC` or :class:`~manyclass.CoupledSVC`.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    Notes
    -----
    Decisions that floating point cannot tell apart, because ``1 - exp(-|f|)`` is near to 1
    or because a reliability is nearly 0, go to the larger margin. Equal reliabilities
    thus give the labels of :class:`~manyclass.combiners.decoding.WinnerTakesAll`, always.

    See Also
    --------
    manyclass.combiners.reliability.StaticReliability : The measure.

    References
    ----------
    Y. Liu and Y. F. Zheng (2005), "One-against-all multi-class SVM classification using
    reliability measures".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.combiners.srm_drm import StaticReliabilityDecoder
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledClassifier(
    ...     SVC(kernel="linear"), code="one-vs-rest", combiner=StaticReliabilityDecoder()
    ... ).fit(X, y)
    >>> model.reliability_.values_.round(2)
    array([1.  , 0.55, 0.9 ])
    >>> model.predict(X[[0, 70, 133]])
    array([0, 2, 2])
    """

    key = "srm"

    def measure(self) -> Reliability:
        """Return the unfitted measure of reliability."""
        return StaticReliability()


@register
class DynamicReliabilityDecoder(ReliabilityDecoder):
    """Soft decisions weighted by how reliable each machine is near the sample (DRM).

    For support vector machines: :class:`~sklearn.svm.SVC`,
    :class:`~sklearn.svm.LinearSVC` or :class:`~manyclass.CoupledSVC`.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        How many training samples are near, by Euclidean distance: scale the features.
        None chooses the number by the error on out-of-sample scores; see
        :class:`DynamicReliabilityCV`.
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    Notes
    -----
    Decisions that floating point cannot tell apart go to the larger margin, as in
    :class:`StaticReliabilityDecoder`.

    See Also
    --------
    manyclass.combiners.reliability.DynamicReliability : The measure.

    References
    ----------
    Y. Liu and Y. F. Zheng (2005), "One-against-all multi-class SVM classification using
    reliability measures".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> from manyclass.combiners.srm_drm import DynamicReliabilityDecoder
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVC(
    ...     kernel="linear", code="one-vs-rest", combiner=DynamicReliabilityDecoder(9)
    ... ).fit(X, y)
    >>> model.predict(X[[0, 70, 133]])
    array([0, 2, 1])
    """

    key = "drm"

    def __init__(
        self,
        n_neighbors: int | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ):
        super().__init__(random_state)
        self.n_neighbors = n_neighbors

    @property
    def learns(self) -> bool:
        """Whether the number of neighbours is to be chosen on out-of-sample scores."""
        return self.n_neighbors is None

    def measure(self) -> Reliability:
        """Return the unfitted measure of reliability."""
        if self.n_neighbors is None:
            return DynamicReliabilityCV()
        return DynamicReliability(self.n_neighbors)


class DynamicReliabilityCV(DynamicReliability):
    """Reliability at a place, in a neighbourhood whose size is chosen by the error it leads to.

    The training samples (5000 of them, drawn at random, if there are more) are decoded by
    their out-of-sample scores, each left out of its own neighbourhood with all its
    weight. The size with the least error is taken; of several, the smallest.

    Parameters
    ----------
    sizes : sequence of int, default=(1, 3, 5, 9, 15, 25, 45, 75, 125, 225, 375, 625, 1025)
        The sizes to choose from. Those that exceed the number of other samples are
        replaced by that number.

    Attributes
    ----------
    n_neighbors_ : int
        The size chosen.
    errors_ : dict of int to float
        The error of each size.
    static_ : ndarray of shape (l,)
        The static reliabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> from manyclass.combiners.srm_drm import DynamicReliabilityDecoder
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVC(
    ...     kernel="linear", code="one-vs-rest", combiner=DynamicReliabilityDecoder()
    ... ).fit(X, y)
    >>> model.reliability_.n_neighbors_
    1
    >>> [round(model.reliability_.errors_[size], 3) for size in (1, 5, 25, 125)]
    [0.033, 0.04, 0.047, 0.047]
    """

    def __init__(self, sizes: Sequence[int] = SIZES):
        self.sizes = sizes

    def fit(
        self,
        X,
        y: NDArray[np.intp],
        code: Code,
        evidence: Evidence,
        scores: Array | None = None,
    ) -> DynamicReliabilityCV:
        """Keep the training samples and their slacks, and choose by out-of-sample scores."""
        if scores is None:
            raise ValueError(
                "scores is None, but the number of neighbours is chosen by out-of-sample scores: "
                "pass them, or use DynamicReliability with a number."
            )
        samples, weights = counted(evidence)
        sizes = _at_most(int(weights.sum()) - 1, self.sizes)
        self._keep(X, y, code, evidence, sizes[-1])
        tried = _to_try(scores[samples])
        rows = samples[tried]
        wrong = self._wrong(take_rows(X, rows), y[rows], code, scores[rows], sizes, tried)
        errors = np.average(wrong, axis=1, weights=weights[tried])
        self.errors_ = dict(zip(sizes, errors.tolist(), strict=True))
        self.n_neighbors_ = sizes[errors.argmin()]
        return self

    def _wrong(self, X, y, code: Code, scores: Array, sizes, own) -> NDArray[np.bool_]:
        """Tell which rows are decoded wrongly with each size, shape (sizes, n)."""
        wrong = np.empty((len(sizes), len(y)), dtype=np.bool_)
        step = max(1, BLOCK // (len(sizes) * scores.shape[1]))
        for first in range(0, len(y), step):
            rows = np.arange(first, min(first + step, len(y)))
            local = self._of_sizes(take_rows(X, rows), scores[rows], sizes, own[rows])
            for s, reliabilities in enumerate(local):
                decoded = StaticReliabilityDecoder().combine(scores[rows], code, reliabilities)
                wrong[s, rows] = decoded.values.argmax(axis=1) != y[rows]
        return wrong


def weigh_decisions(margins: Array, reliabilities: Array) -> Array:
    """Return class scores: soft decisions times reliabilities, eqs. (13) and (14).

    Parameters
    ----------
    margins : array of shape (n, k)
        Finite margins, one column per class.
    reliabilities : array that can be multiplied with it
        Not negative.

    Returns
    -------
    array of shape (n, k)
        Where the best scores of a row are equal but for rounding, those with the
        largest margin are raised by 1e-9.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.combiners.srm_drm import weigh_decisions
    >>> weigh_decisions(np.array([[2.0, 1.0, -1.0]]), np.array([0.5, 1.0, 0.5])).round(3)
    array([[ 0.432,  0.632, -0.316]])
    """
    scores = -np.sign(margins) * np.expm1(-np.abs(margins)) * reliabilities
    best = scores.max(axis=1, keepdims=True)
    level = scores >= best - NOISE * np.abs(best)
    rows = np.flatnonzero(level.sum(axis=1) > 1)
    if len(rows):
        _prefer_larger_margins(scores, rows, level[rows], margins[rows])
    return scores


def _prefer_larger_margins(scores: Array, rows: NDArray[np.intp], level, margins: Array) -> None:
    """Raise the scores of those level classes whose margin is the largest, where others differ."""
    candidates = np.where(level, margins, -np.inf)
    preferred = candidates == candidates.max(axis=1, keepdims=True)
    preferred &= (level & ~preferred).any(axis=1, keepdims=True)
    best = scores[rows].max(axis=1, keepdims=True)
    raised = best + RAISE * np.maximum(1.0, np.abs(best))
    scores[rows] = np.where(preferred, raised, scores[rows])


def _check_reliabilities(weights, shape: tuple[int, int]) -> Array:
    """Return reliabilities of this shape."""
    if weights is None:
        return np.ones(shape)
    reliabilities = np.asarray(weights, dtype=np.float64)
    if reliabilities.shape not in (shape, shape[1:]):
        raise ValueError(
            f"weights has shape {reliabilities.shape}: the reliabilities of {shape[1]} columns "
            f"must have shape {shape[1:]}, or {shape} with one row per sample."
        )
    if not (np.isfinite(reliabilities) & (reliabilities >= 0)).all():
        raise ValueError("weights must be reliabilities, finite and not negative.")
    return np.broadcast_to(reliabilities, shape)


def _at_most(most: int, sizes: Sequence[int]) -> list[int]:
    """Return the sizes, those beyond ``most`` replaced by it; 1 at least."""
    return sorted({max(1, min(int(size), most)) for size in sizes})


def _to_try(scores: Array) -> NDArray[np.intp]:
    """Return rows with scores in all columns, not too many."""
    rows = np.flatnonzero(~np.isnan(scores).any(axis=1))
    if not len(rows):
        raise ValueError(
            "no training sample has out-of-sample scores in all columns, so the number of "
            "neighbours cannot be chosen: pass n_neighbors, or use other folds."
        )
    if len(rows) <= ENOUGH_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, ENOUGH_ROWS, replace=False))
