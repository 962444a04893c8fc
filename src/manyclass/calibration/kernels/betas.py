"""Beta calibration for many columns, all in one call.

The log-odds are z = a u + b v + c with u = log p and v = -log(1 - p), for a, b >= 0. The objective
is divided by the total weight, if that is more than 1: no sum can overflow then.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.calibration.kernels.slopes import cross_entropy, gather, newton, weigh_sides


@kernel
def _on_face(u, v, target, weight, n, ridge, prior, free_a, free_b):
    """Minimise over the free parameters, the others of a and b are 0; returns (a, b, c).

    The identity is the usual start. A constant is the safe start.
    """
    start = (free_a, free_b, prior * (1.0 - max(free_a, free_b)))
    a, b, c, converged = newton(u, v, target, weight, n, ridge, start, free_a, free_b, 1.0)
    if not converged:
        start = (0.0, 0.0, prior)
        a, b, c, _ = newton(u, v, target, weight, n, ridge, start, free_a, free_b, 1.0)
    return a, b, c


@kernel
def _constrained(u, v, target, weight, n, ridge, prior):
    """Minimise over a, b >= 0; returns (a, b, c).

    If the minimum over all a and b lies outside, that over a, b >= 0 lies on the boundary, because
    the objective is convex: at a = 0, at b = 0, or at both.
    """
    free = _on_face(u, v, target, weight, n, ridge, prior, 1.0, 1.0)
    if free[0] >= 0.0 and free[1] >= 0.0:
        return free
    only_a = _on_face(u, v, target, weight, n, ridge, prior, 1.0, 0.0)
    only_b = _on_face(u, v, target, weight, n, ridge, prior, 0.0, 1.0)
    if only_a[0] < 0.0 and only_b[1] < 0.0:
        return _on_face(u, v, target, weight, n, ridge, prior, 0.0, 0.0)
    if only_a[0] < 0.0:
        return only_b
    if only_b[1] < 0.0:
        return only_a
    loss_a = cross_entropy(u, v, target, weight, n, ridge, only_a[0], only_a[1], only_a[2])
    loss_b = cross_entropy(u, v, target, weight, n, ridge, only_b[0], only_b[1], only_b[2])
    return only_a if loss_a <= loss_b else only_b


@kernel
def _fit_one(x, v, target, weight, used, ridge, bound):
    """Fit one column to gathered log-odds, in place; returns (a, b, c).

    Without finite log-odds, this is the identity.
    """
    positive, negative = weigh_sides(x, target, weight, used)
    if positive + negative == 0.0:
        return 1.0, 1.0, 0.0
    total = max(positive + negative, 1.0)
    u = x
    for s in range(used):
        weight[s] /= total
        clipped = min(max(x[s], -bound), bound)
        near = np.log1p(np.exp(-abs(clipped)))
        u[s], v[s] = min(clipped, 0.0) - near, max(clipped, 0.0) + near
    prior = np.log((positive + 1.0) / (negative + 1.0))
    return _constrained(u, v, target, weight, used, ridge / total, prior)


@kernel
def fit_betas(scores, sides, weights, ridge, bound, a, b, c):
    """Fit 1/(1 + exp(-(a log p - b log(1 - p) + c))), p = 1/(1 + exp(-score)), to every column.

    ``sides`` is +1, -1 or 0 (takes no part); NaN scores are ignored. Targets are Platt's
    (N+ + 1)/(N+ + 2) and 1/(N- + 2). Scores are clipped to [-bound, bound].
    """
    n, n_columns = scores.shape
    cache_line = 8  # columns gathered at a time: float64 numbers in a cache line of 64 bytes
    together = min(cache_line, n_columns)
    x, target = np.empty((together, n)), np.empty((together, n))
    weight, used = np.empty((together, n)), np.empty(together, dtype=np.int64)
    v = np.empty(n)
    for first in range(0, n_columns, cache_line):
        width = min(cache_line, n_columns - first)
        gather(scores, sides, weights, first, width, x, target, weight, used)
        for k in range(width):
            a[first + k], b[first + k], c[first + k] = _fit_one(
                x[k], v, target[k], weight[k], used[k], ridge, bound
            )
