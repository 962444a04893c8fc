"""The temperature of coupled probabilities: one power for all of them, and what it must leave."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

FLOOR = np.finfo(np.float64).eps  # below which a probability is not told from 0
TEMPERATURES = (0.05, 20.0)
SURPRISED = 0.005  # share of samples taken to be of the class that came second


def fit_temperature(
    p: NDArray[np.float64], y: NDArray[np.intp], weights: NDArray[np.float64] | None = None
) -> float:
    """Return the power s for which p_i^s, renormalised, has the least log-loss.

    Coupled probabilities are under-confident: the pairs that do not involve the
    true class dilute it. The log-loss is convex in s. In the spirit of Platt's
    targets, some more samples, one and half a percent, are taken to be of the class
    that came second: where all samples are right, s would otherwise grow without
    bound, and new data are never quite like those at hand. The answer is kept within
    [0.05, 20].

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
    if abs(first) <= 1e-13 * weights.sum():  # uniform: any power will do
        return 1.0
    low, high = TEMPERATURES
    s = 1.0
    for _ in range(100):  # Newton within the bracket, halving it where Newton leaves it
        low, high = (s, high) if first < 0 else (low, s)
        newton = s - first / curvature if curvature > 0 else np.inf
        step = (newton if low <= newton <= high else np.sqrt(low * high)) - s
        s += step
        if abs(step) <= 1e-10 * s:
            break
        first, curvature = slopes(s)
    near = [bound for bound in TEMPERATURES if abs(s - bound) <= 1e-6 * bound]
    return near[0] if near else float(s)


def least_probabilities(
    class_counts: NDArray[np.intp], class_totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what every class keeps, whatever the power: nothing, unless it has a single sample.

    None of that class can be left out, and a power that suits the others may take its
    probability to almost 0. By the rule of succession the chance of missing a sample of it,
    before any trial, is one half: half of the class's share in the training set is kept for it.

    Parameters
    ----------
    class_counts : int array of shape (k,)
        Training samples of each class that have a weight.
    class_totals : array of shape (k,)
        Training weight of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.scaling.temperature import least_probabilities
    >>> sizes = np.array([12, 12, 1])
    >>> least_probabilities(sizes, sizes.astype(float))
    array([0.  , 0.  , 0.02])
    """
    share = class_totals / class_totals.max()  # first, as sums may overflow
    return np.where(class_counts == 1, 0.5 * share / share.sum(), 0.0)


def apply_temperature(
    p: NDArray[np.float64], s: float, least: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return p_i^s, renormalised to what the ``least`` probabilities leave, on top of them.

    Without them the order of the classes is that of ``p``.
    """
    if s != 1.0:
        powered = (p / p.max(axis=1, keepdims=True)) ** s
        p = powered / powered.sum(axis=1, keepdims=True)
    if least is None or not least.any():
        return p
    return least + (1.0 - least.sum()) * p
