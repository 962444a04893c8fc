"""Find a kernel matrix of low rank, and factor it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from manyclass.learners.kernel_logistic.symmetric_products import symmetric_product

Array = NDArray[np.float64]

COMPLETE = 1e-12  # what may be left of the diagonal, relative to all of it
DRAWS = (32, 128)  # samples that may be enough to tell
DISTINCT = 0.8  # share of draws that are not the same sample again, unless few have anything left
INDEPENDENT = 0.9  # share of samples, the others being copies, that tells of a higher rank
PIVOT = 1e-3  # of the largest pivot: what others of its block must have
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def low_rank_factor(K: Array, highest: int) -> Array | None:
    """Return F with K = F'F but for rounding, if there is one of up to so many rows.

    Samples are drawn in proportion to what is left of the diagonal: a few, then more of them,
    up to the highest rank of interest. If even these are independent of each other, the
    rank is higher. Otherwise those that are independent are pivots of Cholesky's factorisation.
    It takes O(n r^2) where the rank r is low, and the cube of ``highest`` where it is not.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric.
    highest : int
        The highest rank of interest.

    Returns
    -------
    array of shape (r, n), or None
        None also if K has negative eigenvalues, as far as one product with it tells.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.learners.kernel_logistic.low_rank import low_rank_factor
    >>> X = np.random.default_rng(0).normal(size=(300, 40))
    >>> low_rank_factor(X @ X.T, 100).shape
    (40, 300)
    >>> low_rank_factor(X @ X.T, 20) is None
    True
    """
    F, rest = np.empty((0, len(K))), np.maximum(np.diagonal(K), 0.0)
    least = COMPLETE * float(rest.mean())
    while rest.mean() > least:
        pivots, lower = _pivots(K, F, rest, least, highest - len(F))
        if len(pivots) == 0:
            return None
        rows = K[pivots] - F[:, pivots].T @ F
        rows = dtrsm(1.0, lower.T, rows.T, side=1).T
        F = np.concatenate([F, rows])
        rest = np.maximum(rest - np.einsum("ij,ij->j", rows, rows), 0.0)
    return F if _is_all(F, K) else None


def _pivots(
    K: Array, F: Array, rest: Array, least: float, n_missing: int
) -> tuple[NDArray[np.intp], Array]:
    """Return independent samples, and the factor of what is left of their kernel matrix.

    None of them if there are, or could be, more than are missing.
    """
    for n_draws in (*(n for n in DRAWS if 2 * n < n_missing), n_missing):
        drawn = _draw(rest, n_draws)
        left = K[np.ix_(drawn, drawn)] - F[:, drawn].T @ F[:, drawn]
        distinct = len(drawn) > DISTINCT * n_draws
        if distinct and _is_definite(left, least):
            continue
        lower, order, rank, _ = dpstrf(left, tol=least, lower=1)
        if distinct and rank > INDEPENDENT * len(drawn):
            continue
        squares = np.diagonal(lower)[:rank] ** 2  # the largest first
        rank = int((squares >= PIVOT * squares.max(initial=0.0)).sum())
        return drawn[order[:rank] - 1], lower[:rank, :rank]
    return np.empty(0, dtype=np.intp), np.empty((0, 0))


def _draw(rest: Array, n_draws: int) -> NDArray[np.intp]:
    """Return samples, each once, by multiples of the golden ratio for random numbers."""
    total = np.cumsum(rest)
    numbers = GOLDEN * np.arange(1, n_draws + 1) % 1.0
    return np.unique(np.searchsorted(total, total[-1] * numbers))


def _is_definite(left: Array, least: float) -> bool:
    lowered = left.copy()
    lowered.flat[:: len(left) + 1] -= least
    try:
        np.linalg.cholesky(lowered)
    except np.linalg.LinAlgError:
        return False
    return True


def _is_all(F: Array, K: Array) -> bool:
    """Tell whether F'F is K, but for rounding.

    What is left of a positive semi-definite matrix is no larger than its diagonal. Should K
    have negative eigenvalues, the product with a vector tells.
    """
    x = GOLDEN * np.arange(1, len(K) + 1) % 1.0 - 0.5
    error = np.abs(symmetric_product(K, x) - (F @ x) @ F).max()
    return bool(error <= COMPLETE * float(np.diagonal(K).max()) * np.abs(x).sum())
