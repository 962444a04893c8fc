"""Measures of class probabilities that scikit-learn lacks.

Log-loss and the Brier score are :func:`sklearn.metrics.log_loss` and
:func:`sklearn.metrics.brier_score_loss`. This module has the mean squared error as Zadrozny (2001)
reports it, calibration errors for many classes, and the reliability curves that they summarise.

All take the labels ``y``, shape (n,), and the class probabilities ``p``,
shape (n, k), as ``predict_proba`` returns them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass._lib.messages import quoted, some_quoted
from manyclass._lib.sklearn import check_sample_weight

Strategy = Literal["uniform", "quantile", "variance"]


class ReliabilityCurve(NamedTuple):
    """Predicted and observed probability of each bin; empty bins are left out."""

    stated: Floats
    """Mean predicted probability in each bin."""
    observed: Floats
    """Frequency of the event in each bin."""
    weight: Floats
    """Total sample weight of each bin; the number of samples if unweighted."""


class Bins(NamedTuple):
    """A reliability curve, and the number of samples behind each of its points."""

    curve: ReliabilityCurve
    size: Floats
    """Effective number of samples of each bin: ``(sum w)^2 / sum w^2`` (Kish 1965)."""


def zadrozny_mse(
    y: ArrayLike,
    p: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over samples and classes of the squared error of the probabilities.

    This is the "MSE" of the tables of Zadrozny (2001). The formula printed there,
    ``sum_j (t_j - p_j)^2`` averaged over the samples, is the Brier score; the numbers reported
    are that divided by the number of classes.

    Parameters
    ----------
    y, p, classes, sample_weight
        As in :func:`expected_calibration_error`.

    Returns
    -------
    float

    References
    ----------
    B. Zadrozny (2001). Reducing multiclass to binary by coupling probability
    estimates. NIPS 14, section 5.

    Examples
    --------
    >>> from manyclass.metrics import zadrozny_mse
    >>> zadrozny_mse([0, 1], [[1.0, 0.0], [0.5, 0.5]])
    0.125
    """
    target, p, weight = check_predictions(y, p, classes, sample_weight)
    error = (np.eye(p.shape[1])[target] - p) ** 2
    return float(np.average(error.mean(axis=1), weights=weight))


def expected_calibration_error(
    y: ArrayLike,
    p: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean distance between confidence and accuracy of the predicted label.

    Samples are binned by their largest probability. The distance of a bin is that between its
    mean confidence and its accuracy; the result is the mean over the samples.

    Parameters
    ----------
    y : array of shape (n,)
        True labels.
    p : array of shape (n, k)
        Class probabilities.
    classes : array of shape (k,), optional
        Label of each column of `p`: ``classes_`` of the classifier. The sorted
        labels of `y` when omitted.
    n_bins : int, default=15
        Number of bins, each open below and closed above.
    strategy : {"uniform", "quantile", "variance"}, default="uniform"
        Bins of equal width on [0, 1], of equal weight, or of equal variance: the sum of
        ``w p (1 - p)``, so that all tell as much about calibration.
    sample_weight : array of shape (n,), optional
        Sample weights; equal when omitted.

    Returns
    -------
    float
        Between 0 and 1. It is biased upwards when bins hold few samples.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017). On calibration of modern
    neural networks. ICML, section 2.

    Examples
    --------
    >>> from manyclass.metrics import expected_calibration_error
    >>> p = [[0.75, 0.25]] * 4
    >>> expected_calibration_error([0, 0, 0, 1], p)
    0.0
    >>> expected_calibration_error([0, 0, 1, 1], p)
    0.25
    """
    target, p, weight = check_predictions(y, p, classes, sample_weight)
    hit = p.argmax(axis=1) == target
    return calibration_error(bin_stated(p.max(axis=1), hit, weight, n_bins, strategy).curve)


def classwise_calibration_error(
    y: ArrayLike,
    p: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over the classes of the calibration error of their probabilities.

    Unlike :func:`expected_calibration_error` it also uses the probabilities of the
    classes that were not predicted.

    Parameters
    ----------
    y, p, classes, n_bins, strategy, sample_weight
        As in :func:`expected_calibration_error`.

    Returns
    -------
    float
        Between 0 and 1.

    References
    ----------
    M. Kull et al. (2019). Beyond temperature scaling: obtaining well-calibrated
    multiclass probabilities with Dirichlet calibration. NeurIPS 32, section 2.

    Examples
    --------
    >>> from manyclass.metrics import classwise_calibration_error
    >>> p = [[0.5, 0.5, 0.0]] * 2
    >>> classwise_calibration_error(["a", "b"], p, classes=["a", "b", "c"])
    0.0
    >>> round(classwise_calibration_error(["a", "c"], p, classes=["a", "b", "c"]), 3)
    0.333
    """
    target, p, weight = check_predictions(y, p, classes, sample_weight)
    errors = [
        calibration_error(bin_stated(p[:, c], target == c, weight, n_bins, strategy).curve)
        for c in range(p.shape[1])
    ]
    return float(np.mean(errors))


def reliability_curve(
    y: ArrayLike,
    p: ArrayLike,
    *,
    label: object = None,
    classes: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    """Bin predicted probabilities and compare them with observed frequencies.

    Parameters
    ----------
    y, p, classes, n_bins, strategy, sample_weight
        As in :func:`expected_calibration_error`.
    label : label, optional
        Class whose probability is used. When omitted, the confidence in the predicted label is
        used: the largest probability of each row.

    Returns
    -------
    ReliabilityCurve
        Arrays ``stated``, ``observed`` and ``weight``, one entry for each bin
        that is not empty, in order of the predicted probability.

    Examples
    --------
    >>> from manyclass.metrics import reliability_curve
    >>> p = [[0.75, 0.25], [0.75, 0.25], [0.25, 0.75], [0.0, 1.0]]
    >>> stated, observed, weight = reliability_curve([0, 1, 1, 1], p, n_bins=5)
    >>> stated
    array([0.75, 1.  ])
    >>> observed
    array([0.66666667, 1.        ])
    >>> weight
    array([3., 1.])
    """
    target, p, weight = check_predictions(y, p, classes, sample_weight)
    stated, event = p.max(axis=1), p.argmax(axis=1) == target
    if label is not None:
        columns = _columns(y, classes)
        if label not in columns:
            known = some_quoted(columns)
            raise ValueError(f"label={quoted(label)} is not one of the classes [{known}].")
        stated, event = p[:, columns[label]], target == columns[label]
    return bin_stated(stated, event, weight, n_bins, strategy).curve


def wilson_interval(
    observed: ArrayLike, size: ArrayLike, *, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Confidence interval of a probability, from the observed frequency of its event.

    The interval of Wilson's score test. Unlike the normal interval it stays within
    [0, 1], has a positive width at frequencies 0 and 1, and is valid for few samples.

    Parameters
    ----------
    observed : array of any shape
        Frequencies, from 0 to 1.
    size : array of the same shape
        Number of samples behind each frequency; it need not be an integer. Where it is 0,
        ``observed`` is ignored and the interval is from 0 to 1.
    confidence : float, default=0.95
        Coverage probability of the interval, between 0 and 1.

    Returns
    -------
    lower, upper : arrays of the same shape
        ``0 <= lower <= observed <= upper <= 1``, or 0 and 1 where ``size`` is 0.

    References
    ----------
    E. B. Wilson (1927). Probable inference, the law of succession, and statistical
    inference. Journal of the American Statistical Association 22(158), 209-212.

    Examples
    --------
    >>> from manyclass.metrics import wilson_interval
    >>> lower, upper = wilson_interval([0.0, 0.5], [10, 100])
    >>> lower.round(3), upper.round(3)
    (array([0.   , 0.404]), array([0.278, 0.596]))
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, both excluded, got {confidence}.")
    n = np.asarray(size, dtype=np.float64)
    frequency = np.where(n == 0, 0.5, observed)
    squared = ndtri(0.5 + confidence / 2) ** 2
    doubt = squared / (n + squared)  # 1 without samples, 0 with infinitely many
    centre = (1 - doubt) * frequency + doubt / 2
    spread = np.sqrt(frequency * (1 - frequency) * doubt * (1 - doubt) + doubt**2 / 4)
    # Rounding errors may put an end on the wrong side of a frequency of 0 or 1.
    lower = np.clip(centre - spread, 0, frequency)
    return lower, np.clip(centre + spread, frequency, 1)


def hierarchy_distance(
    y: ArrayLike, decisions: ArrayLike, hierarchy: Any, *, sample_weight: ArrayLike | None = None
) -> float:
    """Mean number of edges between labels and decisions in a tree of classes.

    Parameters
    ----------
    y : array-like of shape (n,)
        True labels.
    decisions : array-like of shape (n,)
        Labels or names of inner nodes.
    hierarchy : Hierarchy
        The tree: see :class:`manyclass.codes.Hierarchy`.
    sample_weight : array-like of shape (n,), optional
        Weights.

    Returns
    -------
    float

    Examples
    --------
    >>> from manyclass.codes import Hierarchy
    >>> from manyclass.metrics import hierarchy_distance
    >>> animals = Hierarchy({"mammal": ["cat", "dog"], "bird": ["gull", "owl"]})
    >>> hierarchy_distance(["cat", "cat"], ["mammal", "owl"], animals)
    2.5
    """
    # Not by np.asarray, which makes texts of all labels if one node has a text as name.
    both: tuple[Any, Any] = y, decisions
    pair = [a.tolist() if hasattr(a, "tolist") else list(a) for a in both]
    check_consistent_length(*pair)
    if not pair[0]:
        raise ValueError("y is empty: there is no distance. Pass a label and a decision, or more.")
    weight = check_sample_weight(sample_weight, pair[0])
    return float(np.average(hierarchy.distances(*pair), weights=weight))


def calibration_error(curve: ReliabilityCurve) -> float:
    """Return the mean distance of a curve from the diagonal, weighted by its bins."""
    return float(np.average(np.abs(curve.stated - curve.observed), weights=curve.weight))


def bin_stated(
    stated: Floats, event: Flags, weight: Floats, n_bins: int, strategy: Strategy
) -> Bins:
    """Bin predicted probabilities; bins are open below and closed above (Guo et al., 2017)."""
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}.")
    if strategy not in _EDGES:
        raise ValueError(f"strategy must be one of {', '.join(_EDGES)}, got {quoted(strategy)}.")
    inner = np.arange(1, n_bins) / n_bins
    index = np.searchsorted(_EDGES[strategy](stated, weight, inner), stated)

    def sums(x: Floats) -> Floats:
        return np.bincount(index, weights=x, minlength=n_bins).astype(np.float64)

    total = sums(weight)
    used = total > 0
    # Squares of shares of the bin's weight cannot overflow; squares of weights could.
    share = np.divide(weight, total[index], out=np.zeros(len(weight)), where=used[index])
    mean, observed = (sums(weight * x)[used] / total[used] for x in (stated, event))
    return Bins(ReliabilityCurve(mean, observed, total[used]), 1 / sums(share**2)[used])


def _quantile_edges(stated: Floats, weight: Floats, inner: Floats) -> Floats:
    # With this method a weight of 2 has the same effect as two copies of a sample.
    return np.quantile(stated, inner, weights=weight, method="inverted_cdf")


def _variance_edges(stated: Floats, weight: Floats, inner: Floats) -> Floats:
    variance = weight * stated * (1 - stated)
    # If all probabilities are 0 or 1, any edges separate them.
    return _quantile_edges(stated, variance, inner) if variance.any() else inner


_EDGES: dict[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "uniform": lambda stated, weight, inner: inner,
    "quantile": _quantile_edges,
    "variance": _variance_edges,
}


def check_predictions(
    y: ArrayLike, p: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Places, Floats, Floats]:
    """Return the column of each sample's label, the probabilities and the weights."""
    p = _check_probabilities(p)
    labels = column_or_1d(y)
    check_consistent_length(labels, p)
    weight = check_sample_weight(sample_weight, p)
    columns = _columns(y, classes)
    if len(columns) != p.shape[1]:
        found = f"y has {len(columns)} labels" if classes is None else f"classes has {len(columns)}"
        raise ValueError(
            f"p has {p.shape[1]} columns, but {found}. Pass classes: the label of each column of "
            f"p, such as classes_ of the classifier."
        )
    strangers = set(labels.tolist()) - set(columns)
    if strangers:
        named = some_quoted(sorted(strangers, key=str))
        raise ValueError(f"y has labels that are not in classes: [{named}].")
    return np.array([columns[label] for label in labels.tolist()]), p, weight


def _columns(y: ArrayLike, classes: ArrayLike | None) -> dict[Any, int]:
    """Return the column of p of each label."""
    labels = np.unique(column_or_1d(y)) if classes is None else column_or_1d(classes)
    columns = {label: c for c, label in enumerate(labels.tolist())}
    if len(columns) != len(labels):
        twice = [label for label, times in Counter(labels.tolist()).items() if times > 1]
        raise ValueError(f"classes names a label twice: {some_quoted(twice)}.")
    return columns


def _check_probabilities(p: ArrayLike) -> Floats:
    given = check_array(p, dtype=[np.float64, np.float32], input_name="p")
    least, most = given.min(), given.max()
    if least < 0 or most > 1:
        raise ValueError(f"p must hold probabilities, found values from {least} to {most}.")
    sums = given.sum(axis=1, dtype=np.float64)
    worst = int(np.argmax(np.abs(sums - 1)))
    # Half of the digits of the given precision.
    if abs(sums[worst] - 1) > np.sqrt(np.finfo(given.dtype).eps):
        raise ValueError(
            f"the rows of p must sum to 1, but row {worst} sums to {sums[worst]}. Normalise p, or "
            f"pass scores through a coupling rule first."
        )
    return given.astype(np.float64)
