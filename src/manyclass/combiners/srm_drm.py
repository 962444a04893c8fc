"""Decoders for one-vs-rest codes that weight each model by its reliability (Liu & Zheng 2005).

The measures of reliability are in :mod:`manyclass.combiners.reliability`.

A margin f becomes the soft decision ``sign(f) (1 - exp(-|f|))``, times the reliability of its
binary model. The class with the largest product is the label.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.row_blocks import BLOCK_ENTRIES, row_blocks
from manyclass._lib.sklearn import take_rows
from manyclass.banks.base import ObjectiveTerms
from manyclass.combiners.base import register
from manyclass.combiners.decoding import Weighting, WinnerTakesAll
from manyclass.combiners.reliability import (
    DynamicReliability,
    Reliability,
    StaticReliability,
    counted,
)
from manyclass.combiners.ties import EXCESS, Seed


class ReliabilityDecoder(WinnerTakesAll):
    """Base of the decoders by reliability: a subclass defines the measure.

    ``weights`` of :meth:`combine`, shape (l,) or (n, l), are the reliabilities; equal when omitted.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.
    """

    def _weighting(self, weights: Floats | None, shape: tuple[int, int]) -> Weighting:
        reliabilities = _check_reliabilities(weights, shape)
        return lambda margins, rows: weigh_decisions(margins, reliabilities[rows])


@register
class StaticReliabilityDecoder(ReliabilityDecoder):
    """Soft decisions weighted by the overall reliability of each binary model (SRM).

    For support vector machines: :class:`~sklearn.svm.SVC`,
    :class:`~sklearn.svm.LinearSVC` or :class:`~manyclass.CoupledSVC`.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    Notes
    -----
    Products may be equal in floating point because ``1 - exp(-|f|)`` is close to 1 or because a
    reliability is close to 0. Then the larger margin wins. So with equal reliabilities the labels
    are those of :class:`~manyclass.combiners.decoding.WinnerTakesAll`.

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
    """Soft decisions weighted by the reliability of each binary model near the sample (DRM).

    For support vector machines: :class:`~sklearn.svm.SVC`,
    :class:`~sklearn.svm.LinearSVC` or :class:`~manyclass.CoupledSVC`.

    Parameters
    ----------
    n_neighbors : int or None, default=None
        Number of neighbours by Euclidean distance; scale the features first. ``None`` chooses the
        number by the error on out-of-sample scores; see :class:`DynamicReliabilityCV`.
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    Notes
    -----
    If products are equal in floating point, the larger margin wins, as in
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

    def __init__(self, n_neighbors: int | None = None, random_state: Seed = 0):
        super().__init__(random_state)
        self.n_neighbors = n_neighbors

    @property
    def learns(self) -> bool:
        """Whether out-of-sample scores choose the number of neighbours."""
        return self.n_neighbors is None

    def measure(self) -> Reliability:
        """Return the unfitted measure of reliability."""
        if self.n_neighbors is None:
            return DynamicReliabilityCV()
        return DynamicReliability(self.n_neighbors)


class DynamicReliabilityCV(DynamicReliability):
    """Reliability near a sample, with the number of neighbours chosen by cross-validated error.

    The training samples (5000 random ones if there are more) are decoded from their
    out-of-sample scores. No sample is its own neighbour. The size with the smallest error
    is chosen; the smallest size if several have the same error.

    Parameters
    ----------
    sizes : sequence of int, default=(1, 3, 5, 9, 15, 25, 45, 75, 125, 225, 375, 625, 1025)
        The sizes to choose from. Sizes above the number of other samples are replaced by
        that number.

    Attributes
    ----------
    n_neighbors_ : int
        The chosen size.
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
    [0.033, 0.04, 0.04, 0.04]
    """

    def __init__(
        self, sizes: Sequence[int] = (1, 3, 5, 9, 15, 25, 45, 75, 125, 225, 375, 625, 1025)
    ):
        self.sizes = sizes

    def fit(
        self,
        X,
        y: Places,
        code: Code,
        terms: ObjectiveTerms,
        scores: Floats | None = None,
        most_rows: int = 5000,
        block_entries: int = BLOCK_ENTRIES,
    ) -> DynamicReliabilityCV:
        """Keep the training samples and their slacks, and choose by out-of-sample scores.

        At most ``most_rows`` random samples are decoded. ``block_entries`` limits temporary arrays.
        """
        if scores is None:
            raise ValueError(
                "scores is None, but out-of-sample scores are needed to choose the number of "
                "neighbours: pass them, or use DynamicReliability with a number."
            )
        samples, weights = counted(terms)
        most = int(weights.sum()) - 1
        sizes = sorted({max(1, min(int(size), most)) for size in self.sizes})
        self._keep(X, y, code, terms, sizes[-1])
        tried = _to_try(scores[samples], most_rows)
        rows = samples[tried]
        X, y, scores = take_rows(X, rows), y[rows], scores[rows]
        wrong = self._wrong(X, y, code, scores, sizes, tried, block_entries)
        errors = np.average(wrong, axis=1, weights=weights[tried])
        self.errors_ = dict(zip(sizes, errors.tolist(), strict=True))
        self.n_neighbors_ = sizes[errors.argmin()]
        return self

    def _wrong(self, X, y, code: Code, scores: Floats, sizes, own, entries: int) -> NDArray:
        """Return which rows are decoded wrongly with each size, shape (sizes, n)."""
        wrong = np.empty((len(sizes), len(y)), dtype=np.bool_)
        for block in row_blocks(len(y), len(sizes) * scores.shape[1], entries):
            rows = np.arange(block.start, block.stop)
            near, f = take_rows(X, rows), scores[rows]
            local = self._of_sizes(near, f, sizes, own[rows], block_entries=entries)
            for s, reliabilities in enumerate(local):
                decoded = StaticReliabilityDecoder().combine(f, code, reliabilities)
                wrong[s, rows] = decoded.values.argmax(axis=1) != y[rows]
        return wrong


def weigh_decisions(margins: Floats, reliabilities: Floats) -> Floats:
    """Return class scores: soft decisions times reliabilities, eqs. (13) and (14).

    Parameters
    ----------
    margins : array of shape (n, k)
        Finite margins, one column per class.
    reliabilities : array that broadcasts to (n, k)
        Not negative.

    Returns
    -------
    array of shape (n, k)
        Where the best scores of a row are equal up to rounding errors, those with the
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
    rounding = 8.0 * float(np.finfo(np.float64).eps)  # of the product above, with a wide margin
    level = scores >= best - rounding * np.abs(best)
    rows = np.flatnonzero(level.sum(axis=1) > 1)
    if len(rows):  # raise the classes with the largest margin, if margins differ
        level, scored = level[rows], scores[rows]
        candidates = np.where(level, margins[rows], -np.inf)
        preferred = candidates == candidates.max(axis=1, keepdims=True)
        preferred &= (level & ~preferred).any(axis=1, keepdims=True)
        best = scored.max(axis=1, keepdims=True)
        raised = best + EXCESS * np.maximum(1.0, np.abs(best))
        scores[rows] = np.where(preferred, raised, scored)
    return scores


def _check_reliabilities(weights, shape: tuple[int, int]) -> Floats:
    """Return the reliabilities as an array of this shape."""
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


def _to_try(scores: Floats, most: int) -> Places:
    """Return at most ``most`` rows that have scores in all columns."""
    rows = np.flatnonzero(~np.isnan(scores).any(axis=1))
    if not len(rows):
        raise ValueError(
            "no training sample has out-of-sample scores in all columns, but they are needed to "
            "choose the number of neighbours: pass n_neighbors, or use other folds."
        )
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
