"""Probabilities under other class frequencies than those of the training set."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning

from manyclass._lib.sklearn import check_sample_weight
from manyclass.decisions._simplex import Array, as_rows, blocks, check_prior

TINY = 1e-200  # a sum of products below may have lost some of them
PROXIMITY = 1e-12  # of a step, relative to the curvature: what the rows do not tell stays
HALVINGS = 30
ROUNDING = 1e-14  # of a mean of logarithms
LEAST_SHARE = 1e-300  # of a class; the inverse of one much smaller is infinite
GREATEST = np.finfo(np.float64).max
FAR = 1e6  # a gradient beyond, of a share of next to nothing, is for EM: its square is lost


def adjust_prior(proba: ArrayLike, trained: ArrayLike, target: ArrayLike) -> Array:
    """Return the probabilities of rows from a population with other class frequencies.

    By Bayes' rule p_i becomes p_i target_i / trained_i, renormalised, if the classes
    look the same in both populations and only their shares differ.

    Parameters
    ----------
    proba : array-like of shape (n, k)
        Class probabilities: entries not negative and sums of 1, both within 1e-5.
    trained : array-like of shape (k,)
        Class frequencies, or counts, that ``proba`` was learned from.
    target : array-like of shape (k,)
        Those of the population that the rows come from. A class may have 0, and then has
        probability 0.

    Returns
    -------
    ndarray of shape (n, k)
        Where all of a row's probability is on classes without ``target``, there is
        nothing left to go by, and the row is ``target`` itself.

    See Also
    --------
    estimate_prior : Find ``target`` from unlabelled rows.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a
       classifier to new a priori probabilities: a simple procedure", Neural Computation
       14, 2002.

    Examples
    --------
    >>> from manyclass import adjust_prior
    >>> adjust_prior([[0.5, 0.3, 0.2]], trained=[1, 1, 1], target=[0.2, 0.4, 0.4]).round(3)
    array([[0.333, 0.4  , 0.267]])
    """
    rows = as_rows(proba)
    k = rows.shape[1]
    old, new = check_prior(trained, k, "trained"), check_prior(target, k, "target")
    log_ratio = _log_ratio(old, new)
    ratio = np.exp(log_ratio - log_ratio.max())
    out = np.empty(rows.shape)
    for part, p in blocks(rows, k):
        np.multiply(p, ratio, out=out[part])
        total = out[part].sum(axis=1, keepdims=True)
        lost = np.flatnonzero(total[:, 0] < TINY)
        total[lost] = 1.0
        out[part] /= total
        if len(lost):
            out[part][lost] = _by_logarithms(p[lost], log_ratio, new)
    return out


def _log_ratio(old: Array, new: Array) -> Array:
    """Return log(target / trained), -inf where target is 0."""
    unknown = np.flatnonzero((old == 0) & (new > 0))
    if len(unknown):
        raise ValueError(
            f"trained is 0 for class {unknown[0]}, but target is {new[unknown[0]]:.6g}: nothing is "
            "known about a class without training samples. Leave it out of both."
        )
    with np.errstate(divide="ignore"):
        return np.where(new > 0, np.log(new) - np.log(np.where(new > 0, old, 1.0)), -np.inf)


def _by_logarithms(p: Array, log_ratio: Array, target: Array) -> Array:
    """Do the same for rows whose products underflow."""
    with np.errstate(divide="ignore"):
        logs = np.log(p) + log_ratio
    highest = logs.max(axis=1, keepdims=True)
    vanished = np.isneginf(highest)
    powers = np.exp(logs - np.where(vanished, 0.0, highest))
    total = powers.sum(axis=1, keepdims=True)
    return np.where(vanished, target, powers / np.where(vanished, 1.0, total))


class _Likelihood(NamedTuple):
    """Mean over rows of log(a_s' pi), a_s = p_s / trained, and its derivatives at pi."""

    value: float
    gradient: Array
    """g, shape (k,). At the maximum g <= 1, and g = 1 where pi > 0."""
    curvature: Array
    """The negative Hessian, shape (k, k)."""


def estimate_prior(
    proba: ArrayLike,
    trained: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-12,
    max_iter: int = 200,
) -> Array:
    """Estimate class frequencies from the probabilities of unlabelled rows.

    The frequencies π that make the rows most likely: the maximum of
    Σ log Σ_i p_i π_i / trained_i. It is what the EM algorithm of Saerens et al.
    converges to, and concave; here Newton's method finds it in a few steps.

    Parameters
    ----------
    proba : array-like of shape (n, k)
        Class probabilities of rows from the new population, as of a model trained on the
        old one: entries not negative and sums of 1, both within 1e-5. They should be
        calibrated; the estimate inherits their errors.
    trained : array-like of shape (k,)
        Class frequencies, or counts, that ``proba`` was learned from.
    sample_weight : array-like of shape (n,), optional
        How often each row counts.
    tol : float, default=1e-12
        The mean log-likelihood is at most this far from its maximum.
    max_iter : int, default=200
        Steps, after which a ``ConvergenceWarning`` says how far it is.

    Returns
    -------
    ndarray of shape (k,)
        Frequencies that sum to 1. Where the rows leave them open, as those of classes
        that ``proba`` never tells apart, the one near to ``trained``.

    See Also
    --------
    adjust_prior : Adjust the probabilities to the frequencies found.

    Notes
    -----
    With g_i the mean of (p_i / trained_i) / Σ_j p_j π_j / trained_j, an EM step is
    π_i ← π_i g_i, and the mean log-likelihood is at most max_i g_i - 1 from its maximum,
    which decides when to stop. Newton's step minimises the quadratic model over π >= 0,
    without the constraint Σ π = 1: adding Σ π to the negative log-likelihood makes it
    hold by itself [2]_. An EM step is taken where Newton's does not gain.

    References
    ----------
    .. [1] M. Saerens, P. Latinne and C. Decaestecker, "Adjusting the outputs of a
       classifier to new a priori probabilities: a simple procedure", Neural Computation
       14, 2002.
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
        raise ValueError("proba has no rows: class frequencies cannot be estimated from nothing.")
    old = check_prior(trained, rows.shape[1], "trained")
    weight = check_sample_weight(sample_weight, rows)
    if not weight.any():
        raise ValueError("sample_weight is 0 for every row: give some row a weight.")
    weight = weight / weight.sum()
    inverse = _inverse(rows, old)
    pi, at = old, _likelihood(rows, weight, inverse, old)
    for _ in range(max_iter):
        if at.gradient.max() - 1.0 <= tol:
            break
        pi, at = _step(rows, weight, inverse, pi, at)
    else:
        _warn_unconverged(at, tol, max_iter)
    return pi


def _inverse(rows: NDArray, trained: Array) -> Array:
    """Return 1 / trained, 0 for classes that neither training nor the rows know."""
    absent = trained == 0
    if absent.any() and (rows[:, absent] > 0).any():
        i = int(np.flatnonzero(absent)[(rows[:, absent] > 0).any(axis=0).argmax()])
        raise ValueError(
            f"trained is 0 for class {i}, but proba is not: they do not belong to each other."
        )
    lost = np.flatnonzero(~absent & (trained < LEAST_SHARE))
    if len(lost):
        raise ValueError(
            f"trained has a share of {trained[lost[0]]:.2g} for class {lost[0]}, too small to "
            f"divide by: at least {LEAST_SHARE:g} is needed. Leave the class out, of proba as well."
        )
    return np.divide(1.0, trained, out=np.zeros(len(trained)), where=~absent)


def _likelihood(rows: NDArray, weight: Array, inverse: Array, pi: Array) -> _Likelihood:
    k = len(pi)
    value, gradient, curvature = 0.0, np.zeros(k), np.zeros((k, k))
    for part, p in blocks(rows, k):
        p *= inverse
        mixture = p @ pi
        used = weight[part] > 0
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            p /= mixture[:, None]
            logs = np.log(mixture)
            p, w = p[used], weight[part][used]
            value += float(w @ logs[used])
            gradient += w @ p
            curvature += (p * w[:, None]).T @ p
    return _Likelihood(value, gradient, curvature)


def _step(
    rows: NDArray, weight: Array, inverse: Array, pi: Array, at: _Likelihood
) -> tuple[Array, _Likelihood]:
    """Return where a step from pi leads, and the likelihood there."""
    direction = _newton(pi, at) - pi
    length = 1.0
    for _ in range(HALVINGS):
        ahead = np.maximum(pi + length * direction, 0.0)
        ahead /= ahead.sum()
        there = _likelihood(rows, weight, inverse, ahead)
        gain = there.value - at.value
        # Near the maximum gains are lost in rounding, while the gradient still tells.
        flat = abs(gain) <= ROUNDING * max(1.0, abs(at.value))
        if gain > 0 or (flat and there.gradient.max() < at.gradient.max()):
            return ahead, there
        length *= 0.5
    ahead = _em(pi, at)
    return ahead, _likelihood(rows, weight, inverse, ahead)


def _em(pi: Array, at: _Likelihood) -> Array:
    """Return where a step of EM leads, which always gains.

    A share of 0 would stay, even where the rows ask for more: it becomes one that the next
    step can multiply, so small that the other classes do not miss it.
    """
    g = np.minimum(at.gradient, GREATEST)
    ahead = np.where((pi == 0) & (g > 1), 1.0 / np.maximum(g, FAR), pi * g)
    return ahead / ahead.sum()


def _newton(pi: Array, at: _Likelihood) -> Array:
    """Minimise the quadratic model of -likelihood + sum(x) over x >= 0.

    With H the curvature, H pi = g: the model is ½ x'Hx + (1 - 2 g)'x, and a term that
    keeps x near pi where H is singular.
    """
    H, g = at.curvature, at.gradient
    if g.max() > FAR:
        return _em(pi, at)
    near = PROXIMITY * np.trace(H) + np.finfo(np.float64).tiny
    try:
        upper = np.linalg.cholesky(H + near * np.eye(len(g))).T
        aim = np.linalg.solve(upper.T, 2.0 * g - 1.0 + near * pi)
        x, _ = nnls(upper, aim)
    except (np.linalg.LinAlgError, RuntimeError):
        return _em(pi, at)
    return x if np.isfinite(x).all() and x.any() else _em(pi, at)


def _warn_unconverged(at: _Likelihood, tol: float, max_iter: int) -> None:
    warnings.warn(
        f"estimate_prior did not converge in {max_iter} steps: the mean log-likelihood may be "
        f"{at.gradient.max() - 1.0:.2g} below its maximum, and tol is {tol:g}. Raise max_iter or "
        "tol.",
        ConvergenceWarning,
        stacklevel=3,
    )
