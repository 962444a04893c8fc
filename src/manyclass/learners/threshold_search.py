"""Search for the best threshold between two classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from manyclass._lib.arrays import FARTHEST, Floats, Places
from manyclass._lib.messages import quoted
from manyclass._lib.sklearn import check_sample_weight
from manyclass.banks.score_kinds import SMALLEST_PROBABILITY

Criterion = str | Callable[[NDArray[np.int64], Floats, Floats], float]


def best_threshold(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    criterion: Criterion = "error",
) -> float:
    """Return the threshold t for which ``scores > t`` separates two classes best.

    Parameters
    ----------
    y : array-like of shape (n,)
        0 or 1; both must occur with positive weight.
    scores : array-like of shape (n,)
        Logits of class 1, or any score that increases with its probability.
    sample_weight : array-like of shape (n,), optional
        Samples of weight 0 are ignored.
    criterion : {"error", "balanced-error", "log-loss"} or callable, default="error"
        The loss to minimise, see :class:`~manyclass.learners.ThresholdOptimized`.

    Returns
    -------
    float

    Notes
    -----
    The error is constant between neighbouring scores. All these intervals are compared after one
    sort, and the threshold is the middle of the best one. Among equally good intervals the one
    nearest to 0 is chosen. The two outer intervals, which assign all samples to one class, are
    given the mean width of the others (or 1, if all scores are equal).

    Examples
    --------
    >>> from manyclass.learners.threshold_search import best_threshold
    >>> best_threshold([0, 0, 1, 0, 1, 1], [-3.0, -2.0, -1.0, -0.5, 1.0, 2.0])
    0.25
    """
    return search_for(criterion)(*_check_samples(y, scores, sample_weight))


def search_for(criterion: Criterion) -> Callable[..., float]:
    """Return the search function of a criterion; it takes labels, scores and weights."""
    if callable(criterion):
        return partial(_least_loss, loss=criterion)
    if isinstance(criterion, str) and criterion in CRITERIA:
        return CRITERIA[criterion]
    raise ValueError(
        f"criterion must be one of {', '.join(CRITERIA)}, or a function of y, shifted logits "
        f"and sample weights, got {quoted(criterion)}."
    )


def _check_samples(y, scores, sample_weight):
    """Return labels 0 and 1, finite scores and weights of the samples with positive weight."""
    y, scores = column_or_1d(y), column_or_1d(scores, dtype=np.float64)
    check_consistent_length(y, scores)
    weight = check_sample_weight(sample_weight, scores)
    if np.isnan(scores).any():
        raise ValueError(
            f"scores are NaN at row {np.isnan(scores).argmax()}: impute or drop the row, or check "
            "why the model fails there."
        )
    foreign = [label for label in np.unique(y).tolist() if label not in (0, 1)]
    if foreign:
        raise ValueError(f"y must contain 0 and 1 only, got {foreign[0]!r}.")
    used = weight > 0
    y, scores, weight = y[used].astype(np.int64), scores[used], weight[used]
    if len(np.unique(y)) < 2:
        raise ValueError(
            "y has samples of one class only, if samples of weight 0 are ignored: a threshold "
            "needs samples of both classes."
        )
    return y, np.clip(scores, -FARTHEST, FARTHEST), weight


class _Intervals:
    """Intervals between distinct scores: thresholds in one of them give the same labels."""

    def __init__(self, values: Floats):
        self.lower = np.append(-np.inf, values)  # an interval includes its lower end
        self.upper = np.append(values, np.inf)
        half = 0.5 * (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 0.5
        ends = values[0] - half, values[-1] + half
        middle = 0.5 * values[:-1] + 0.5 * values[1:]
        # By rounding, the middle may be the upper end, which belongs to the next interval.
        inside = (self.lower[1:-1] <= middle) & (middle < self.upper[1:-1])
        middle = np.where(inside, middle, values[:-1])
        self.cuts = np.concatenate(
            [[min(ends[0], np.nextafter(values[0], -np.inf))], middle, [ends[1]]]
        )

    def nearest_to_zero(self, among: Places) -> float:
        """Return the threshold of that interval which is nearest to zero."""
        gap = np.maximum(0.0, np.maximum(self.lower[among], -self.upper[among]))
        cuts = self.cuts[among]
        return float(cuts[np.lexsort((cuts, np.abs(cuts), gap))[0]])


def _least_error(y, scores, weight, tie: float = 1e-12) -> float:
    """Minimise the weight of misclassified samples over all intervals.

    Losses that differ by less than ``tie`` times the total weight, its rounding error, are equal.
    """
    values, place = np.unique(scores, return_inverse=True)
    gain = np.bincount(place, np.where(y == 1, weight, -weight))
    # A threshold above the first i values misclassifies their ones, and not their zeros.
    loss = np.append(0.0, np.cumsum(gain))
    best = np.flatnonzero(loss <= loss.min() + tie * weight.sum())
    return _Intervals(values).nearest_to_zero(best)


def _least_balanced_error(y, scores, weight) -> float:
    """Minimise the mean error rate of the two classes."""
    return _least_error(y, scores, weight / np.bincount(y, weight)[y])


def _least_log_loss(y, scores, weight) -> float:
    """Find the stationary point: the mean probability equals the share of class 1."""
    share = np.average(y, weights=weight)
    share = np.clip(share, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)

    def excess(t):
        return np.average(expit(scores - t), weights=weight) - share

    if excess(0.0) == 0.0:
        return 0.0
    # Bracket: at each end all probabilities are on one side of the share. The ends are moved
    # out by 1, or by the rounding error of large scores.
    low, high = scores.min() - logit(share), scores.max() - logit(share)
    low, high = low - max(1.0, abs(low) * 1e-12), high + max(1.0, abs(high) * 1e-12)
    return float(brentq(excess, low, high, xtol=1e-12, maxiter=10_000))


def _least_loss(y, scores, weight, loss: Callable, max_cuts: int = 257) -> float:
    """Minimise any loss over the intervals, or over ``max_cuts`` of them, evenly spaced by rank."""
    values = np.unique(scores)
    intervals = _Intervals(values)
    among = np.arange(len(values) + 1)
    if len(among) > max_cuts:
        evenly = np.linspace(0, len(values), max_cuts - 1).round().astype(np.intp)
        among = np.union1d(evenly, np.searchsorted(values, 0.0, side="right"))
    losses = np.array([float(loss(y, scores - t, weight)) for t in intervals.cuts[among]])
    if np.isnan(losses).any():
        t = intervals.cuts[among][np.isnan(losses).argmax()]
        raise ValueError(
            f"criterion returned NaN for the threshold {t:.6g}: it must return a number."
        )
    return intervals.nearest_to_zero(among[losses == losses.min()])


CRITERIA: dict[str, Callable[..., float]] = {
    "error": _least_error,
    "balanced-error": _least_balanced_error,
    "log-loss": _least_log_loss,
}
