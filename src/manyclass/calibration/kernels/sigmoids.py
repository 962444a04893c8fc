"""Platt's sigmoid for many columns: Newton with backtracking, all in one call."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, summing_kernel
from manyclass._lib.compiled.exponential import exponential
from manyclass._lib.weights import HEAVIEST


@kernel
def _loss(f, target, weight, n, a, b):
    """Cross-entropy of 1/(1 + exp(a f + b)), in the form that cannot overflow."""
    loss = 0.0
    for s in range(n):
        z = a * f[s] + b
        loss += weight[s] * (target[s] if z >= 0.0 else target[s] - 1.0) * z
        loss += weight[s] * np.log1p(np.exp(-abs(z)))
    return loss


@summing_kernel
def _derivatives(f, target, weight, n, a, b):
    """Its gradient and Hessian."""
    g_a, g_b, h_aa, h_bb, h_ab = 0.0, 0.0, 0.0, 0.0, 0.0
    for s in range(n):
        z = a * f[s] + b
        e = exponential(-abs(z))
        p = e / (1.0 + e) if z >= 0.0 else 1.0 / (1.0 + e)
        gradient = weight[s] * (target[s] - p)
        curvature = weight[s] * e / ((1.0 + e) * (1.0 + e))
        g_a += f[s] * gradient
        g_b += gradient
        h_aa += f[s] * f[s] * curvature
        h_bb += curvature
        h_ab += f[s] * curvature
    return g_a, g_b, h_aa + 1e-12, h_bb + 1e-12, h_ab


@kernel
def _newton(f, target, weight, n, a, b, max_iter):
    """Minimise the cross-entropy from (a, b); returns (a, b, converged).

    The objective is convex. If it still falls at the end of a step, the step is good;
    otherwise the losses are compared. Close to the minimum, rounding errors would decide
    that comparison, and Newton's step is taken without it.
    """
    total = 0.0
    for s in range(n):
        total += weight[s]
    g_a, g_b, h_aa, h_bb, h_ab = _derivatives(f, target, weight, n, a, b)
    for _ in range(max_iter):
        determinant = h_aa * h_bb - h_ab * h_ab
        d_a = -(h_bb * g_a - h_ab * g_b) / determinant
        d_b = -(h_aa * g_b - h_ab * g_a) / determinant
        decrement = -(g_a * d_a + g_b * d_b)
        step, loss = 1.0, np.nan
        while True:
            ahead = _derivatives(f, target, weight, n, a + step * d_a, b + step * d_b)
            if ahead[0] * d_a + ahead[1] * d_b <= 0.0 or decrement <= 1e-10 * total:
                break
            if np.isnan(loss):
                loss = _loss(f, target, weight, n, a, b)
            if _loss(f, target, weight, n, a + step * d_a, b + step * d_b) <= loss:
                break
            step *= 0.5
            if step < 1e-10:
                return a, b, False
        a, b = a + step * d_a, b + step * d_b
        g_a, g_b, h_aa, h_bb, h_ab = ahead
        if decrement <= 1e-13 * total:  # the last step has squared it
            return a, b, True
    return a, b, False


@kernel
def _standardise(f, weight, n):
    """Shift and scale ``f`` in place to mean 0 and deviation 1; returns (mean, deviation).

    Infinite scores count as the farthest finite one. Scores that are equal, or all below
    1e-280, become 0. Squares of scores beyond 1e100 could overflow: they are scaled first.
    """
    farthest = 0.0
    for s in range(n):
        if np.isfinite(f[s]):
            farthest = max(farthest, abs(f[s]))
    scale = farthest if farthest > 1e100 or 1e-280 < farthest < 1e-100 else 1.0
    mean, total = 0.0, 0.0
    for s in range(n):
        f[s] = min(max(f[s], -farthest), farthest) / scale
        mean += weight[s] * f[s]
        total += weight[s]
    mean /= total
    square = 0.0
    for s in range(n):
        square += weight[s] * (f[s] - mean) ** 2
    deviation = np.sqrt(square / total)
    if not deviation > max(1e-12 * (farthest / scale), 1e-280):
        deviation = np.inf
    for s in range(n):
        f[s] = (f[s] - mean) / deviation
    return mean * scale, deviation * scale


@kernel
def fit_sigmoids(scores, sides, weights, max_iter, slopes, intercepts):
    """Fit r = 1/(1 + exp(slope * f + intercept)) to every column.

    ``sides`` is +1, -1 or 0 (takes no part); NaN scores are ignored. Targets are
    Platt's (N+ + 1)/(N+ + 2) and 1/(N- + 2). Scores are standardised first, so that
    their scale does not matter. Without finite scores, a column is read as log-odds.
    """
    n, n_columns = scores.shape
    cache_line = 8  # columns gathered at a time: float64 numbers in a cache line of 64 bytes
    together = min(cache_line, n_columns)
    f, target = np.empty((together, n)), np.empty((together, n))
    weight, used = np.empty((together, n)), np.empty(together, dtype=np.int64)
    for first in range(0, n_columns, cache_line):
        width = min(cache_line, n_columns - first)
        _gather(scores, sides, weights, first, width, f, target, weight, used)
        for c in range(width):
            slopes[first + c], intercepts[first + c] = _fit_one(
                f[c], target[c], weight[c], used[c], max_iter
            )


@kernel
def _gather(scores, sides, weights, first, width, f, target, weight, used):
    """Collect the usable scores of a few neighbouring columns in one pass over the rows."""
    for c in range(width):
        used[c] = 0
    for s in range(scores.shape[0]):
        if weights[s] > 0.0:
            for c in range(width):
                score, side = scores[s, first + c], sides[s, first + c]
                if side != 0 and not np.isnan(score):
                    m = used[c]
                    f[c, m], weight[c, m] = score, min(weights[s], HEAVIEST)
                    target[c, m] = 1.0 if side > 0 else 0.0
                    used[c] = m + 1


@kernel
def _fit_one(f, target, weight, used, max_iter):
    """Fit one sigmoid to gathered scores, in place; returns (slope, intercept)."""
    n_finite, positive, negative = 0, 0.0, 0.0
    for s in range(used):
        positive += weight[s] * target[s]
        negative += weight[s] * (1.0 - target[s])
        n_finite += np.isfinite(f[s])
    if n_finite == 0:
        return -1.0, 0.0
    mean, deviation = _standardise(f, weight, used)
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    for s in range(used):
        target[s] = high if target[s] == 1.0 else low
    prior = np.log((negative + 1.0) / (positive + 1.0))
    # Scores are standardised and usually increase with the side. A slope of 0 is the safe start.
    a, b, converged = _newton(f, target, weight, used, -1.0, prior, max_iter)
    if not converged:
        a, b, _ = _newton(f, target, weight, used, 0.0, prior, max_iter)
    return a / deviation, b - a * (mean / deviation)
