"""Newton with backtracking for the logistic curves of one column: up to two slopes.

The log-odds are z = a u + b v + c. The objective is the weighted cross-entropy of the targets plus
ridge/2 ((a - 1)² + (b - 1)² + c²), where parameters that are not free stay.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, part, summing_kernel
from manyclass._lib.compiled.exponential import exponential
from manyclass._lib.weights import HEAVIEST


@kernel
def gather(scores, sides, weights, first, width, f, target, weight, used):
    """Collect the usable scores of a few neighbouring columns in one pass over the rows.

    ``weights`` are those of the rows, or of all scores.
    """
    for c in range(width):
        used[c] = 0
    for s in range(scores.shape[0]):
        if weights.ndim == 2 or weights[s] > 0.0:
            for c in range(width):
                score, side = scores[s, first + c], sides[s, first + c]
                w = weights[s] if weights.ndim == 1 else weights[s, first + c]
                if side != 0 and w > 0.0 and not np.isnan(score):
                    m = used[c]
                    f[c, m], weight[c, m] = score, min(w, HEAVIEST)
                    target[c, m] = 1.0 if side > 0 else 0.0
                    used[c] = m + 1


@kernel
def weigh_sides(f, target, weight, n):
    """Replace sides by Platt's targets; returns the weights of both sides, 0 without finite f.

    The targets are (N+ + 1)/(N+ + 2) and 1/(N- + 2).
    """
    n_finite, positive, negative = 0, 0.0, 0.0
    for s in range(n):
        positive += weight[s] * target[s]
        negative += weight[s] * (1.0 - target[s])
        n_finite += np.isfinite(f[s])
    if n_finite == 0:
        return 0.0, 0.0
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    for s in range(n):
        target[s] = high if target[s] == 1.0 else low
    return positive, negative


@kernel
def cross_entropy(u, v, target, weight, n, ridge, a, b, c):
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


@part
def _direction(derivatives, free_a, free_b):
    """Return Newton's step: -H^-1 g, by H = L D L'. Parameters that are not free stay.

    The order of elimination is c, a, b. Rounding errors may make a pivot too small or negative;
    then a damped step is returned, which still descends.
    """
    g_a, g_b, g_c, h_aa, h_bb, h_cc, h_ab, h_ac, h_bc = derivatives
    least, rounding = 1e-12, 1e-14  # of a pivot; and a bound on its error, relative to the entry
    g_a, h_ac, h_ab = free_a * g_a, free_a * h_ac, free_a * free_b * h_ab
    g_b, h_bc = free_b * g_b, free_b * h_bc
    d_c = max(h_cc, least)
    l_a, l_b = h_ac / d_c, h_bc / d_c
    d_a = max(h_aa - l_a * h_ac, rounding * h_aa, least)
    l_ab = (h_ab - l_a * h_bc) / d_a
    d_b = max(h_bb - l_b * h_bc - l_ab * l_ab * d_a, rounding * h_bb, least)
    y_a = g_a - l_a * g_c
    y_b = g_b - l_b * g_c - l_ab * y_a
    b = -y_b / d_b
    a = -y_a / d_a - l_ab * b
    return a, b, -g_c / d_c - l_a * a - l_b * b


@kernel
def newton(u, v, target, weight, n, ridge, start, free_a, free_b, scale):
    """Minimise the objective over the free parameters; returns (a, b, c, converged).

    The objective is convex. If it still falls at the end of a step, the step is good;
    otherwise the losses are compared. Close to the minimum, rounding errors would decide
    that comparison, and Newton's step is taken without it. ``scale`` is the size of the
    objective, to which the search is exact.
    """
    a, b, c = start
    here = _derivatives(u, v, target, weight, n, ridge, a, b, c)
    for _ in range(100):
        d_a, d_b, d_c = _direction(here, free_a, free_b)
        decrement = -(here[0] * d_a + here[1] * d_b + here[2] * d_c)
        step, loss = 1.0, np.nan
        while True:
            at = a + step * d_a, b + step * d_b, c + step * d_c
            ahead = _derivatives(u, v, target, weight, n, ridge, at[0], at[1], at[2])
            slope = ahead[0] * d_a + ahead[1] * d_b + ahead[2] * d_c
            if slope <= 0.0 or decrement <= 1e-10 * scale:
                break
            if np.isnan(loss):
                loss = cross_entropy(u, v, target, weight, n, ridge, a, b, c)
            if cross_entropy(u, v, target, weight, n, ridge, at[0], at[1], at[2]) <= loss:
                break
            step *= 0.5
            if step < 1e-10:
                return a, b, c, False
        a, b, c = at
        here = ahead
        if decrement <= 1e-13 * scale:  # the last step has squared it
            return a, b, c, True
    return a, b, c, False
