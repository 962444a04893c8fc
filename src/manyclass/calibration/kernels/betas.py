"""Beta calibration for many columns: Newton with backtracking, all in one call.

The log-odds are z = a u + b v + c with u = log p and v = -log(1 - p). The objective is the
cross-entropy of Platt's targets plus ridge/2 ((a - 1)² + (b - 1)² + c²), for a, b >= 0. It is
divided by the total weight, if that is more than 1: no sum can overflow then.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, summing_kernel
from manyclass._lib.compiled.exponential import exponential
from manyclass.calibration.kernels.sigmoids import _gather


@kernel
def _loss(u, v, target, weight, n, ridge, a, b, c):
    """Return the objective, in the form that cannot overflow."""
    loss = 0.5 * ridge * ((a - 1.0) ** 2 + (b - 1.0) ** 2 + c * c)
    for s in range(n):
        z = a * u[s] + b * v[s] + c
        loss += weight[s] * (max(z, 0.0) - target[s] * z + np.log1p(np.exp(-abs(z))))
    return loss


@summing_kernel
def _derivatives(u, v, target, weight, n, ridge, a, b, c):
    """Return the gradient and the Hessian of the objective."""
    g_a, g_b, g_c = ridge * (a - 1.0), ridge * (b - 1.0), ridge * c
    h_aa, h_bb, h_cc, h_ab, h_ac, h_bc = ridge, ridge, ridge, 0.0, 0.0, 0.0
    for s in range(n):
        z = a * u[s] + b * v[s] + c
        e = exponential(-abs(z))
        p = 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)
        gradient = weight[s] * (p - target[s])
        curvature = weight[s] * e / ((1.0 + e) * (1.0 + e))
        g_a += u[s] * gradient
        g_b += v[s] * gradient
        g_c += gradient
        h_aa += u[s] * u[s] * curvature
        h_bb += v[s] * v[s] * curvature
        h_cc += curvature
        h_ab += u[s] * v[s] * curvature
        h_ac += u[s] * curvature
        h_bc += v[s] * curvature
    return g_a, g_b, g_c, h_aa, h_bb, h_cc, h_ab, h_ac, h_bc


@kernel
def _direction(derivatives, free_a, free_b):
    """Return Newton's step: -H^-1 g, by H = L D L'. Parameters that are not free stay.

    The order of elimination is c, a, b. Rounding errors may make a pivot too small or negative;
    then a damped step is returned, which still descends.
    """
    g_a, g_b, g_c, h_aa, h_bb, h_cc, h_ab, h_ac, h_bc = derivatives
    least = 1e-12  # of a pivot: above the rounding errors of entries of some hundred
    g_a, h_ac, h_ab = free_a * g_a, free_a * h_ac, free_a * free_b * h_ab
    g_b, h_bc = free_b * g_b, free_b * h_bc
    d_c = max(h_cc, least)
    l_a, l_b = h_ac / d_c, h_bc / d_c
    d_a = max(h_aa - l_a * h_ac, least)
    l_ab = (h_ab - l_a * h_bc) / d_a
    d_b = max(h_bb - l_b * h_bc - l_ab * l_ab * d_a, least)
    y_a = g_a - l_a * g_c
    y_b = g_b - l_b * g_c - l_ab * y_a
    b = -y_b / d_b
    a = -y_a / d_a - l_ab * b
    return a, b, -g_c / d_c - l_a * a - l_b * b


@kernel
def _newton(u, v, target, weight, n, ridge, start, free_a, free_b, max_iter):
    """Minimise the objective over the free parameters; returns (a, b, c, converged).

    The objective is convex. If it still falls at the end of a step, the step is good;
    otherwise the losses are compared. Close to the minimum, rounding errors would decide
    that comparison, and Newton's step is taken without it.
    """
    a, b, c = start
    here = _derivatives(u, v, target, weight, n, ridge, a, b, c)
    for _ in range(max_iter):
        d_a, d_b, d_c = _direction(here, free_a, free_b)
        decrement = -(here[0] * d_a + here[1] * d_b + here[2] * d_c)
        step, loss = 1.0, np.nan
        while True:
            at = a + step * d_a, b + step * d_b, c + step * d_c
            ahead = _derivatives(u, v, target, weight, n, ridge, at[0], at[1], at[2])
            if ahead[0] * d_a + ahead[1] * d_b + ahead[2] * d_c <= 0.0 or decrement <= 1e-10:
                break
            if np.isnan(loss):
                loss = _loss(u, v, target, weight, n, ridge, a, b, c)
            if _loss(u, v, target, weight, n, ridge, at[0], at[1], at[2]) <= loss:
                break
            step *= 0.5
            if step < 1e-10:
                return a, b, c, False
        a, b, c = at
        here = ahead
        if decrement <= 1e-13:  # the last step has squared it
            return a, b, c, True
    return a, b, c, False


@kernel
def _on_face(u, v, target, weight, n, ridge, prior, free_a, free_b, max_iter):
    """Minimise over the free parameters, the others of a and b are 0; returns (a, b, c).

    The identity is the usual start. A constant is the safe start.
    """
    start = (free_a, free_b, prior * (1.0 - max(free_a, free_b)))
    a, b, c, converged = _newton(u, v, target, weight, n, ridge, start, free_a, free_b, max_iter)
    if not converged:
        start = (0.0, 0.0, prior)
        a, b, c, _ = _newton(u, v, target, weight, n, ridge, start, free_a, free_b, max_iter)
    return a, b, c


@kernel
def _constrained(u, v, target, weight, n, ridge, prior, max_iter):
    """Minimise over a, b >= 0; returns (a, b, c).

    If the minimum over all a and b lies outside, that over a, b >= 0 lies on the boundary, because
    the objective is convex: at a = 0, at b = 0, or at both.
    """
    free = _on_face(u, v, target, weight, n, ridge, prior, 1.0, 1.0, max_iter)
    if free[0] >= 0.0 and free[1] >= 0.0:
        return free
    only_a = _on_face(u, v, target, weight, n, ridge, prior, 1.0, 0.0, max_iter)
    only_b = _on_face(u, v, target, weight, n, ridge, prior, 0.0, 1.0, max_iter)
    if only_a[0] < 0.0 and only_b[1] < 0.0:
        return _on_face(u, v, target, weight, n, ridge, prior, 0.0, 0.0, max_iter)
    if only_a[0] < 0.0:
        return only_b
    if only_b[1] < 0.0:
        return only_a
    loss_a = _loss(u, v, target, weight, n, ridge, only_a[0], only_a[1], only_a[2])
    loss_b = _loss(u, v, target, weight, n, ridge, only_b[0], only_b[1], only_b[2])
    return only_a if loss_a <= loss_b else only_b


@kernel
def _fit_one(x, v, target, weight, used, ridge, bound, max_iter):
    """Fit one column to gathered log-odds, in place; returns (a, b, c).

    Without finite log-odds, this is the identity.
    """
    n_finite, positive, negative = 0, 0.0, 0.0
    for s in range(used):
        positive += weight[s] * target[s]
        negative += weight[s] * (1.0 - target[s])
        n_finite += np.isfinite(x[s])
    if n_finite == 0:
        return 1.0, 1.0, 0.0
    total = max(positive + negative, 1.0)
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    u = x
    for s in range(used):
        target[s] = high if target[s] == 1.0 else low
        weight[s] /= total
        clipped = min(max(x[s], -bound), bound)
        near = np.log1p(np.exp(-abs(clipped)))
        u[s], v[s] = min(clipped, 0.0) - near, max(clipped, 0.0) + near
    prior = np.log((positive + 1.0) / (negative + 1.0))
    return _constrained(u, v, target, weight, used, ridge / total, prior, max_iter)


@kernel
def fit_betas(scores, sides, weights, ridge, bound, max_iter, a, b, c):
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
        _gather(scores, sides, weights, first, width, x, target, weight, used)
        for k in range(width):
            a[first + k], b[first + k], c[first + k] = _fit_one(
                x[k], v, target[k], weight[k], used[k], ridge, bound, max_iter
            )
