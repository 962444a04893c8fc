"""Adjust probabilities to class frequencies that differ from those of the training set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import warn
from manyclass._lib.row_blocks import BLOCK_ENTRIES
from manyclass._lib.sklearn import check_sample_weight
from manyclass.decisions._simplex import as_rows, check_prior, checked_blocks

STEEP = 1e6
"""With a larger gradient an EM step replaces Newton's. A choice: the gradient only exceeds 1 by so
much at a frequency near 0, and the squares in the curvature would hide the other classes."""


def adjust_prior(proba: ArrayLike, trained: ArrayLike, target: ArrayLike) -> Floats:
    """Adjust probabilities to a population with other class frequencies.

    By Bayes' rule p_i becomes p_i target_i / trained_i, divided by the sum over the classes.
    This holds if the two populations only differ in their class frequencies.

    Parameters
    ----------
    proba : array-like of shape (n, k)
        Class probabilities: entries not negative and sums of 1, both within 1e-5.
    trained : array-like of shape (k,)
        Class frequencies, or counts, that ``proba`` was learned from.
    target : array-like of shape (k,)
        Class frequencies, or counts, of the population that the rows come from. A class of
        frequency 0 gets probability 0.

    Returns
    -------
    ndarray of shape (n, k)
        If all classes with positive probability in a row have ``target`` 0, the row is
        ``target`` itself.

    See Also
    --------
    estimate_prior : Estimate ``target`` from unlabelled rows.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a
       classifier to new a priori probabilities: a simple procedure", Neural Computation 14, 2002.

    Examples
    --------
    >>> from manyclass import adjust_prior
    >>> adjust_prior([[0.5, 0.3, 0.2]], trained=[1, 1, 1], target=[0.2, 0.4, 0.4]).round(3)
    array([[0.333, 0.4  , 0.267]])
    """
    return _adjust(as_rows(proba), trained, target)


def _adjust(
    rows: NDArray, trained: ArrayLike, target: ArrayLike, block_entries: int = BLOCK_ENTRIES
) -> Floats:
    k = rows.shape[1]
    old, new = check_prior(trained, k, "trained"), check_prior(target, k, "target")
    log_ratio = _log_ratio(old, new)
    ratio = np.exp(log_ratio - log_ratio.max())
    out = np.empty(rows.shape)
    for part, p in checked_blocks(rows, k, block_entries):
        np.multiply(p, ratio, out=out[part])
        total = out[part].sum(axis=1, keepdims=True)
        lost = np.flatnonzero(total[:, 0] < 1e-200)  # products below 1e-308 may have underflowed
        total[lost] = 1.0
        out[part] /= total
        if len(lost):
            out[part][lost] = _by_logarithms(p[lost], log_ratio, new)
    return out


def _log_ratio(old: Floats, new: Floats) -> Floats:
    """Return log(target / trained), -inf where target is 0."""
    unknown = np.flatnonzero((old == 0) & (new > 0))
    if len(unknown):
        raise ValueError(
            f"trained is 0 for class {unknown[0]}, but target is {new[unknown[0]]:.6g}: a class "
            "without training samples has no probabilities to adjust. Leave it out of both."
        )
    with np.errstate(divide="ignore"):
        return np.where(new > 0, np.log(new) - np.log(np.where(new > 0, old, 1.0)), -np.inf)


def _by_logarithms(p: Floats, log_ratio: Floats, target: Floats) -> Floats:
    """Adjust rows whose products underflow, by way of logarithms."""
    with np.errstate(divide="ignore"):
        logs = np.log(p) + log_ratio
    highest = logs.max(axis=1, keepdims=True)
    vanished = np.isneginf(highest)
    powers = np.exp(logs - np.where(vanished, 0.0, highest))
    total = powers.sum(axis=1, keepdims=True)
    return np.where(vanished, target, powers / np.where(vanished, 1.0, total))


class _Likelihood(NamedTuple):
    """The mean over rows of log(a_s' pi), with a_s = p_s / trained, and its derivatives."""

    value: float
    gradient: Floats  # g. At the maximum g_i <= 1 for all classes, and g_i = 1 if pi_i > 0
    curvature: Floats  # the negative Hessian


def estimate_prior(
    proba: ArrayLike,
    trained: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> Floats:
    """Estimate class frequencies from the probabilities of unlabelled rows.

    The estimate π has the maximum likelihood: it maximises Σ log Σ_i p_i π_i / trained_i,
    which is concave. The EM algorithm of Saerens et al. converges to the same π; Newton's
    method finds it in a few steps.

    Parameters
    ----------
    proba : array-like of shape (n, k)
        Calibrated class probabilities of rows from the new population, by a model trained on the
        old one: entries not negative and sums of 1, both within 1e-5.
    trained : array-like of shape (k,)
        Class frequencies, or counts, that ``proba`` was learned from.
    sample_weight : array-like of shape (n,), optional
        Weight of each row.
    tol : float, default=1e-12
        The mean log-likelihood is at most this far from its maximum.
    max_iter : int, default=200
        Limit of steps. If it is reached, a ``ConvergenceWarning`` gives the distance.

    Returns
    -------
    ndarray of shape (k,)
        Frequencies that sum to 1. If several π have the maximum likelihood, for example
        because two columns of ``proba`` are proportional, the result is one near ``trained``.

    See Also
    --------
    adjust_prior : Adjust the probabilities to the estimated frequencies.

    Notes
    -----
    With g_i the mean of (p_i / trained_i) / Σ_j p_j π_j / trained_j, an EM step is π_i ← π_i g_i.
    The mean log-likelihood is at most max_i g_i - 1 below its maximum, which is the stopping rule.
    Newton's step minimises the quadratic model over π >= 0. If Σ π is added to the negative
    log-likelihood, the minimum satisfies Σ π = 1 [2]_. If the step does not help, EM replaces it.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a
       classifier to new a priori probabilities: a simple procedure", Neural Computation 14, 2002.
    .. [2] Y. Kim, P. Carbonetto, M. Stephens and M. Anitescu, "A fast algorithm for
       maximum likelihood estimation of mixture proportions using sequential quadratic
       programming", Journal of Computational and Graphical Statistics 29, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass import estimate_prior
    >>> likelihood = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])  # of x = 0, 1, 2
    >>> trained, truth = np.array([0.5, 0.5]), np.array([0.2, 0.8])
    >>> p = likelihood * trained
    >>> p /= p.sum(axis=1, keepdims=True)
    >>> estimate_prior(p, trained, sample_weight=likelihood @ truth)
    array([0.2, 0.8])
    """
    rows = as_rows(proba)
    if len(rows) == 0:
        raise ValueError("proba has no rows: pass at least one to estimate class frequencies.")
    old = check_prior(trained, rows.shape[1], "trained")
    weight = check_sample_weight(sample_weight, rows)
    weight = weight / weight.sum()
    inverse = _inverse(rows, old)
    pi, at = old, _likelihood(rows, weight, inverse, old)
    for _ in range(max_iter):
        if at.gradient.max() - 1.0 <= tol:
            break
        pi, at = _step(rows, weight, inverse, pi, at)
    else:
        warn(
            f"estimate_prior did not converge in {max_iter} steps: the mean log-likelihood may be "
            f"{at.gradient.max() - 1.0:.2g} below its maximum, and tol is {tol:g}. Raise max_iter "
            "or tol.",
            ConvergenceWarning,
        )
    return pi


def _inverse(rows: NDArray, trained: Floats) -> Floats:
    """Return 1 / trained, or 0 for classes with trained = 0 and probability 0 in all rows."""
    absent = trained == 0
    if absent.any() and (rows[:, absent] > 0).any():
        i = int(np.flatnonzero(absent)[(rows[:, absent] > 0).any(axis=0).argmax()])
        raise ValueError(
            f"trained is 0 for class {i}, but proba is not. Pass the frequencies of the training "
            "set that the probabilities come from."
        )
    least = 1e-300  # the inverse of numbers below 1e-308 is infinite
    lost = np.flatnonzero(~absent & (trained < least))
    if len(lost):
        raise ValueError(
            f"trained is {trained[lost[0]]:.2g} for class {lost[0]}, too small to divide by: it "
            f"must be at least {least:g}. Leave the class out of trained and proba."
        )
    return np.divide(1.0, trained, out=np.zeros(len(trained)), where=~absent)


def _likelihood(rows: NDArray, weight: Floats, inverse: Floats, pi: Floats) -> _Likelihood:
    k = len(pi)
    value, gradient, curvature = 0.0, np.zeros(k), np.zeros((k, k))
    for part, p in checked_blocks(rows, k):
        p *= inverse
        mixture = p @ pi
        used = weight[part] > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            p /= mixture[:, None]
            p, w = p[used], weight[part][used]
            value += float(w @ np.log(mixture)[used])
            gradient += w @ p
            curvature += (p * w[:, None]).T @ p
    return _Likelihood(value, gradient, curvature)


def _step(
    rows: NDArray, weight: Floats, inverse: Floats, pi: Floats, at: _Likelihood
) -> tuple[Floats, _Likelihood]:
    """Return the next pi after a step, and its likelihood.

    Newton's step is halved until the likelihood increases; if it never does, take an EM step.
    """
    direction = _newton(pi, at) - pi
    length = 1.0
    for _ in range(30):  # halvings: rounding errors hide the gain of shorter steps
        ahead = np.maximum(pi + length * direction, 0.0)
        ahead /= ahead.sum()
        there = _likelihood(rows, weight, inverse, ahead)
        gain = there.value - at.value
        # Near the maximum rounding errors hide the gain, but the gradient still decreases.
        rounding = 1e-14 * max(1.0, abs(at.value))  # of a mean of logarithms
        flat = abs(gain) <= rounding
        if gain > 0 or (flat and there.gradient.max() < at.gradient.max()):
            return ahead, there
        length *= 0.5
    ahead = _em(pi, at)
    return ahead, _likelihood(rows, weight, inverse, ahead)


def _em(pi: Floats, at: _Likelihood) -> Floats:
    """Return the next pi after an EM step, which always increases the likelihood.

    EM never changes a frequency of 0. If its gradient is above 1, the frequency should grow.
    So it becomes a small positive number here, which the next steps can increase.
    """
    g = np.minimum(at.gradient, np.finfo(np.float64).max)
    ahead = np.where((pi == 0) & (g > 1), 1.0 / np.maximum(g, STEEP), pi * g)
    return ahead / ahead.sum()


def _newton(pi: Floats, at: _Likelihood) -> Floats:
    """Minimise the quadratic model of -likelihood + sum(x) over x >= 0.

    With H the curvature, H pi = g, so the model is ½ x'Hx + (1 - 2 g)'x. A small proximal term
    keeps x near pi in directions in which H is singular.
    """
    H, g = at.curvature, at.gradient
    if g.max() > STEEP:
        return _em(pi, at)
    near = 1e-12 * np.trace(H) + np.finfo(np.float64).tiny  # above the rounding errors of H
    try:
        upper = np.linalg.cholesky(H + near * np.eye(len(g))).T
        aim = np.linalg.solve(upper.T, 2.0 * g - 1.0 + near * pi)
        x, _ = nnls(upper, aim)
    except (np.linalg.LinAlgError, RuntimeError):
        return _em(pi, at)
    return x if np.isfinite(x).all() and x.any() else _em(pi, at)
