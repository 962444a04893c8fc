"""Platt's sigmoid for many columns: Newton with backtracking, all in one call."""

from __future__ import annotations

import numpy as np

from manyclass._compiled import kernel


@kernel
def _loss(f, target, weight, n, a, b):
    """Cross-entropy of 1/(1 + exp(a f + b)), in the form that cannot overflow."""
    value = 0.0
    for s in range(n):
        z = a * f[s] + b
        if z >= 0.0:
            value += weight[s] * (target[s] * z + np.log1p(np.exp(-z)))
        else:
            value += weight[s] * ((target[s] - 1.0) * z + np.log1p(np.exp(z)))
    return value


@kernel
def _newton(f, target, weight, n, b, max_iter):
    """Minimise the cross-entropy over (a, b) from (0, b); returns (a, b)."""
    a, value = 0.0, _loss(f, target, weight, n, 0.0, b)
    for _ in range(max_iter):
        g_a, g_b, h_aa, h_bb, h_ab = 0.0, 0.0, 0.0, 0.0, 0.0
        for s in range(n):
            z = a * f[s] + b
            e = np.exp(-abs(z))
            p = e / (1.0 + e) if z >= 0.0 else 1.0 / (1.0 + e)
            gradient = weight[s] * (target[s] - p)
            curvature = weight[s] * e / (1.0 + e) ** 2
            g_a += f[s] * gradient
            g_b += gradient
            h_aa += f[s] * f[s] * curvature
            h_bb += curvature
            h_ab += f[s] * curvature
        h_aa, h_bb = h_aa + 1e-12, h_bb + 1e-12
        determinant = h_aa * h_bb - h_ab * h_ab
        d_a = -(h_bb * g_a - h_ab * g_b) / determinant
        d_b = -(h_aa * g_b - h_ab * g_a) / determinant
        decrement = -(g_a * d_a + g_b * d_b)
        step = 1.0
        while step > 1e-10:
            trial = _loss(f, target, weight, n, a + step * d_a, b + step * d_b)
            if trial <= value - 1e-4 * step * decrement + 1e-14 * abs(value):
                break
            step *= 0.5
        a, b, value = a + step * d_a, b + step * d_b, trial
        if decrement <= 1e-22 * (1.0 + value) or step <= 1e-10:
            break
    return a, b


@kernel
def _standardise(f, weight, n):
    """Shift and scale ``f`` in place to mean 0 and deviation 1; returns (mean, deviation).

    Infinite scores count as the farthest finite one. Equal scores become 0.
    """
    farthest = 0.0
    for s in range(n):
        if np.isfinite(f[s]):
            farthest = max(farthest, abs(f[s]))
    mean, total = 0.0, 0.0
    for s in range(n):
        f[s] = min(max(f[s], -farthest), farthest)
        mean += weight[s] * f[s]
        total += weight[s]
    mean /= total
    square = 0.0
    for s in range(n):
        square += weight[s] * (f[s] - mean) ** 2
    deviation = np.sqrt(square / total)
    if not deviation > 1e-12 * farthest:
        deviation = np.inf
    for s in range(n):
        f[s] = (f[s] - mean) / deviation
    return mean, deviation


@kernel
def fit_sigmoids(scores, sides, weights, max_iter, slopes, intercepts):
    """Fit r = 1/(1 + exp(slope * f + intercept)) to every column.

    ``sides`` is +1, -1 or 0 (not taken part); NaN scores are passed over. Targets
    are Platt's (N+ + 1)/(N+ + 2) and 1/(N- + 2). Scores are standardised first, so
    that their scale does not matter. A column without finite scores is read as
    log-odds.
    """
    n, n_columns = scores.shape
    f, target, weight = np.empty(n), np.empty(n), np.empty(n)
    for column in range(n_columns):
        used, n_finite, positive, negative = 0, 0, 0.0, 0.0
        for s in range(n):
            if sides[s, column] != 0 and not np.isnan(scores[s, column]) and weights[s] > 0.0:
                f[used], weight[used] = scores[s, column], weights[s]
                target[used] = 1.0 if sides[s, column] > 0 else 0.0
                positive += weights[s] * target[used]
                negative += weights[s] * (1.0 - target[used])
                n_finite += np.isfinite(f[used])
                used += 1
        if n_finite == 0:
            slopes[column], intercepts[column] = -1.0, 0.0
            continue
        mean, deviation = _standardise(f, weight, used)
        high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
        for s in range(used):
            target[s] = high if target[s] == 1.0 else low
        prior = np.log((negative + 1.0) / (positive + 1.0))
        a, b = _newton(f, target, weight, used, prior, max_iter)
        slopes[column] = a / deviation
        intercepts[column] = b - a * (mean / deviation)
