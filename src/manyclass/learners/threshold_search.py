"""The threshold that tells two classes apart best."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from manyclass._lib.messages import quoted
from manyclass._lib.sklearn import check_sample_weight

Criterion = str | Callable[[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]], float]

FARTHEST = 1e300  # stands for an infinite score
LEAST = 1e-12  # a probability below adds nothing to the log-odds
MOST_CUTS = 257  # at which a callable is evaluated
ROUNDING = 1e-12  # of the total weight: losses that differ by less are equal


def best_threshold(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    criterion: Criterion = "error",
) -> float:
    """Return the threshold t for which ``scores > t`` tells two classes apart best.

    Parameters
    ----------
    y : array-like of shape (n,)
        0 or 1; both must occur, with some weight.
    scores : array-like of shape (n,)
        Logits of class 1, or anything that grows with its probability.
    sample_weight : array-like of shape (n,), optional
        Samples of weight 0 have no part in the search.
    criterion : {"error", "balanced-error", "log-loss"} or callable, default="error"
        What is minimised, see :class:`~manyclass.learners.ThresholdOptimized`.

    Returns
    -------
    float

    Notes
    -----
    The error is constant between neighbouring scores: all these intervals are
    compared after one sort, and the threshold is the middle of the best one. Among
    equally good intervals it is the one nearest to 0. The intervals at the two ends,
    where all samples are of one class, are taken to be as wide as the others are on
    average (or 1, when all scores are equal).

    Examples
    --------
    >>> from manyclass.learners.threshold_search import best_threshold
    >>> best_threshold([0, 0, 1, 0, 1, 1], [-3.0, -2.0, -1.0, -0.5, 1.0, 2.0])
    0.25
    """
    return search_for(criterion)(*_check_samples(y, scores, sample_weight))


def search_for(criterion: Criterion) -> Callable[..., float]:
    """Return the function of labels, scores and weights that finds the threshold."""
    if callable(criterion):
        return partial(_least_loss, loss=criterion)
    if isinstance(criterion, str) and criterion in CRITERIA:
        return CRITERIA[criterion]
    raise ValueError(
        f"criterion must be one of {', '.join(CRITERIA)}, or a function of y, the shifted "
        f"logit and the weights, got {quoted(criterion)}."
    )


def _check_samples(y, scores, sample_weight):
    """Return 0/1 labels, finite scores and weights of the samples that have a weight."""
    y, scores = column_or_1d(y), column_or_1d(scores, dtype=np.float64)
    check_consistent_length(y, scores)
    weight = check_sample_weight(sample_weight, scores)
    if np.isnan(scores).any():
        raise ValueError(
            f"scores are NaN at row {np.isnan(scores).argmax()}: impute or drop the row, or find "
            "out why the model fails there."
        )
    foreign = [label for label in np.unique(y).tolist() if label not in (0, 1)]
    if foreign:
        raise ValueError(f"y must hold 0 and 1 only, got {foreign[0]!r}.")
    used = weight > 0
    y, scores, weight = y[used].astype(np.int64), scores[used], weight[used]
    if len(np.unique(y)) < 2:
        raise ValueError(
            "y has samples of one class only, as far as they have any weight: a threshold "
            "between two classes needs both."
        )
    return y, np.clip(scores, -FARTHEST, FARTHEST), weight


class _Intervals:
    """What lies between the distinct scores: thresholds in one of these classify alike."""

    def __init__(self, values: NDArray[np.float64]):
        self.lower = np.append(-np.inf, values)  # an interval holds its lower end
        self.upper = np.append(values, np.inf)
        half = 0.5 * (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 0.5
        ends = values[0] - half, values[-1] + half
        middle = 0.5 * values[:-1] + 0.5 * values[1:]
        # Rounding may put the middle on the upper end, which is of the next interval.
        inside = (self.lower[1:-1] <= middle) & (middle < self.upper[1:-1])
        middle = np.where(inside, middle, values[:-1])
        self.cuts = np.concatenate(
            [[min(ends[0], np.nextafter(values[0], -np.inf))], middle, [ends[1]]]
        )

    def nearest_to_zero(self, among: NDArray[np.intp]) -> float:
        """Return the threshold in the one of these intervals that is nearest to zero."""
        gap = np.maximum(0.0, np.maximum(self.lower[among], -self.upper[among]))
        cuts = self.cuts[among]
        return float(cuts[np.lexsort((cuts, np.abs(cuts), gap))[0]])


def _least_error(y, scores, weight) -> float:
    """Minimise the weight of the samples on the wrong side, over all intervals."""
    values, place = np.unique(scores, return_inverse=True)
    gain = np.bincount(place, np.where(y == 1, weight, -weight))
    # A threshold above the first i values loses their ones and no longer their zeros.
    loss = np.append(0.0, np.cumsum(gain))
    best = np.flatnonzero(loss <= loss.min() + ROUNDING * weight.sum())
    return _Intervals(values).nearest_to_zero(best)


def _least_balanced_error(y, scores, weight) -> float:
    """Minimise the mean of the two classes' errors."""
    return _least_error(y, scores, weight / np.bincount(y, weight)[y])


def _least_log_loss(y, scores, weight) -> float:
    """Solve for the stationary point: mean probability equal to the share of class 1."""
    share = np.clip(np.average(y, weights=weight), LEAST, 1.0 - LEAST)

    def excess(t):
        return np.average(expit(scores - t), weights=weight) - share

    if excess(0.0) == 0.0:
        return 0.0
    # At either end all probabilities are on one side of the share; 1 is for rounding.
    low, high = scores.min() - logit(share), scores.max() - logit(share)
    low, high = low - max(1.0, abs(low) * LEAST), high + max(1.0, abs(high) * LEAST)
    return float(brentq(excess, low, high, xtol=1e-12, maxiter=10_000))


def _least_loss(y, scores, weight, loss: Callable) -> float:
    """Minimise any loss over the intervals, or over evenly spaced ranks of them."""
    values = np.unique(scores)
    intervals = _Intervals(values)
    among = np.arange(len(values) + 1)
    if len(among) > MOST_CUTS:
        evenly = np.linspace(0, len(values), MOST_CUTS - 1).round().astype(np.intp)
        among = np.union1d(evenly, np.searchsorted(values, 0.0, side="right"))
    losses = np.array([float(loss(y, scores - t, weight)) for t in intervals.cuts[among]])
    if np.isnan(losses).any():
        t = intervals.cuts[among][np.isnan(losses).argmax()]
        raise ValueError(f"criterion returned NaN for the threshold {t:.6g}: it must be a number.")
    return intervals.nearest_to_zero(among[losses == losses.min()])


CRITERIA: dict[str, Callable[..., float]] = {
    "error": _least_error,
    "balanced-error": _least_balanced_error,
    "log-loss": _least_log_loss,
}
