"""Detect a kernel matrix of low rank, and factor it by pivoted Cholesky."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from manyclass._lib.arrays import Floats, Places
from manyclass.learners.kernel_logistic.loss import ROUNDING
from manyclass.learners.kernels.symmetric_products import symmetric_product


def low_rank_factor(K: Floats, max_rank: int) -> Floats | None:
    """Return F (r, n) with K = F'F up to rounding, if the rank r of K is at most ``max_rank``.

    Block Cholesky with random pivots. Samples are drawn in proportion to the residual diagonal,
    first a few, then up to ``max_rank`` of them. If all of them are linearly independent, the
    rank is too high. Otherwise the independent ones become the next pivots. The cost is
    O(n r^2) if the rank is low, and O(max_rank^3) if it is not. The result is also None if a test
    vector shows that K is not F'F: K has negative eigenvalues then.
    """
    if max_rank == 0:
        return None
    F, rest = np.empty((0, len(K))), np.maximum(np.diagonal(K), 0.0)
    least = ROUNDING * float(rest.mean())
    while rest.mean() > least:
        pivots, lower = _pivots(K, F, rest, least, max_rank - len(F))
        if len(pivots) == 0:
            return None
        rows = K[pivots] - F[:, pivots].T @ F
        rows = dtrsm(1.0, lower.T, rows.T, side=1).T
        F = np.concatenate([F, rows])
        rest = np.maximum(rest - np.einsum("ij,ij->j", rows, rows), 0.0)
    return F if _is_factor(F, K) else None


def golden_sequence(n: int) -> Floats:
    """Return multiples of the golden ratio modulo 1: spread evenly, without a seed."""
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    return golden * np.arange(1, n + 1) % 1.0


def _pivots(
    K: Floats, F: Floats, rest: Floats, least: float, n_missing: int
) -> tuple[Places, Floats]:
    """Return independent samples, and the Cholesky factor of their residual kernel matrix.

    Return no samples if the remaining rank is, or may be, above ``n_missing``. The numbers are
    choices: a larger sample costs O(size^3), a smaller one is less certain.
    """
    sample_sizes = 32, 128
    distinct_share = 0.8  # with more repeated draws, few rows have any residual left
    independent_share = 0.9  # if more are independent, the rank is high; others may be copies
    smallest_pivot = 1e-3  # of the largest; others wait, so that cancellation is small
    for n_draws in (*(n for n in sample_sizes if 2 * n < n_missing), n_missing):
        drawn = _draw(rest, n_draws)
        left = K[np.ix_(drawn, drawn)] - F[:, drawn].T @ F[:, drawn]
        distinct = len(drawn) > distinct_share * n_draws
        if distinct and _is_definite(left, least):
            continue
        lower, order, rank, _ = dpstrf(left, tol=least, lower=1)
        if distinct and rank > independent_share * len(drawn):
            continue
        squares = np.diagonal(lower)[:rank] ** 2  # in descending order
        rank = int((squares >= smallest_pivot * squares.max(initial=0.0)).sum())
        return drawn[order[:rank] - 1], lower[:rank, :rank]
    return np.empty(0, dtype=np.intp), np.empty((0, 0))


def _draw(rest: Floats, n_draws: int) -> Places:
    """Draw samples in proportion to the residual diagonal, and drop repeated ones."""
    total = np.cumsum(rest)
    return np.unique(np.searchsorted(total, total[-1] * golden_sequence(n_draws)))


def _is_definite(left: Floats, least: float) -> bool:
    """Whether all eigenvalues are above ``least``."""
    lowered = left.copy()
    lowered.flat[:: len(left) + 1] -= least
    try:
        np.linalg.cholesky(lowered)
    except np.linalg.LinAlgError:
        return False
    return True


def _is_factor(F: Floats, K: Floats) -> bool:
    """Whether F'F is K up to rounding, by the product with one vector.

    The residual of a positive semi-definite matrix is bounded by its diagonal, which is
    zero by now. The product detects negative eigenvalues.
    """
    x = golden_sequence(len(K)) - 0.5
    error = np.abs(symmetric_product(K, x) - (F @ x) @ F).max()
    return bool(error <= ROUNDING * float(np.diagonal(K).max()) * np.abs(x).sum())
