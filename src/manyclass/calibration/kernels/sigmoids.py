"""Platt's sigmoid for many columns, all in one call."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import fused_kernel, kernel, part
from manyclass._lib.compiled.exponential import exponential
from manyclass.calibration.kernels.slopes import gather, newton, weigh_sides


@part
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


@part
def _fit_one(f, target, weight, used):
    """Fit one sigmoid to gathered scores, in place; returns (slope, intercept)."""
    positive, negative = weigh_sides(f, target, weight, used)
    if positive + negative == 0.0:
        return -1.0, 0.0
    mean, deviation = _standardise(f, weight, used)
    prior = np.log((positive + 1.0) / (negative + 1.0))
    # Scores are standardised and usually increase with the side. A slope of 0 is the safe start.
    scale, slope, a, c = positive + negative, 1.0, 0.0, 0.0
    while slope >= 0.0:
        start = (slope, 0.0, prior)
        a, _, c, converged = newton(f, f, target, weight, used, 0.0, start, 1.0, 0.0, scale)
        slope = -1.0 if converged else slope - 1.0
    return -a / deviation, a * (mean / deviation) - c


@kernel
def fit_sigmoids(scores, sides, weights, slopes, intercepts):
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
        gather(scores, sides, weights, first, width, f, target, weight, used)
        for c in range(width):
            slopes[first + c], intercepts[first + c] = _fit_one(f[c], target[c], weight[c], used[c])


@fused_kernel
def apply_sigmoids(scores, slopes, intercepts, farthest, r):
    """Write 1/(1 + exp(slope * f + intercept)); NaN stays. ``r`` may be ``scores``.

    Scores are clipped to [-farthest, farthest].
    """
    n, n_columns = scores.shape
    for s in range(n):
        for b in range(n_columns):
            f = scores[s, b]
            f = -farthest if f < -farthest else f
            f = farthest if f > farthest else f
            z = slopes[b] * f + intercepts[b]
            p = 1.0 / (1.0 + exponential(z))
            r[s, b] = 0.0 if z > 700.0 else p
