"""The Kullback-Leibler rule for any code, one sample at a time.

Minimise sum_b n_b KL(r_b || q_b(p)) over the simplex, with
q_b = p(I_b) / (p(I_b) + p(J_b)). The solution may lie on the boundary of the simplex, where
multiplicative updates like Zadrozny's converge slowly. So we use an interior point method.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.combiners.coupling.kernels.by_row import (
    clip_row,
    factor_row,
    noniterative,
    normalise,
    sides,
    substitute_row,
)


@kernel
def _objective(r, weights, x, plus, minus, mu):
    """Sum n_b KL(r_b || q_b) up to a constant, + |x| - log|x| - mu sum log x_i.

    The first term does not change along rays; |x| - log|x| picks |x| = 1 and makes
    codes without zeros convex in x. Weights sum to one.
    """
    size, barrier = 0.0, 0.0
    for i in range(x.shape[0]):
        size += x[i]
        barrier -= np.log(x[i])
    value = size - np.log(size) + mu * barrier
    for b in range(r.shape[0]):
        both = plus[b] + minus[b]
        value -= weights[b] * r[b] * np.log(plus[b] / both)
        value -= weights[b] * (1.0 - r[b]) * np.log(minus[b] / both)
    return value


@kernel
def _gradient(r, weights, start, middle, members, x, plus, minus, g, scale):
    """Gradient of the objective without barrier, and the sum of the absolute terms."""
    size = 0.0
    for i in range(x.shape[0]):
        size += x[i]
    for i in range(x.shape[0]):
        g[i] = 1.0 - 1.0 / size
        scale[i] = 1.0
    for b in range(r.shape[0]):
        shared = weights[b] / (plus[b] + minus[b])
        up = shared - weights[b] * r[b] / plus[b]
        down = shared - weights[b] * (1.0 - r[b]) / minus[b]
        for m in range(start[b], start[b + 1]):
            g[members[m]] += up if m < middle[b] else down
            scale[members[m]] += shared


@kernel
def _hessian(r, weights, start, middle, members, x, plus, minus, z, h):
    """Lower triangle of the Hessian of the objective, plus diag(z / x) for the barrier."""
    k = x.shape[0]
    size = 0.0
    for i in range(k):
        size += x[i]
    for i in range(k):
        for j in range(i):
            h[i, j] = 1.0 / size**2
        h[i, i] = 1.0 / size**2 + z[i] / x[i]
    for b in range(r.shape[0]):
        both = weights[b] / (plus[b] + minus[b]) ** 2
        up = weights[b] * r[b] / plus[b] ** 2 - both
        down = weights[b] * (1.0 - r[b]) / minus[b] ** 2 - both
        # Members are sorted on each side, so within a side i >= j.
        for m in range(start[b], middle[b]):
            for o in range(start[b], m + 1):
                h[members[m], members[o]] += up
        for m in range(middle[b], start[b + 1]):
            i = members[m]
            for o in range(middle[b], m + 1):
                h[i, members[o]] += down
            for o in range(start[b], middle[b]):
                j = members[o]
                h[max(i, j), min(i, j)] -= both


@kernel
def _factor_damped(h, x, ridge, factors):
    """Factor H + ridge diag(1 / x^2) with the least ridge that makes it positive definite.

    Codes with zeros are not convex. Damping by 1 / x^2 is damping in log x, where the objective is
    tame: classes of tiny probability keep moving. Tries none, then a quarter of the last ``ridge``,
    then more; returns the ridge to start from next time.
    """
    k = x.shape[0]
    damping, next_try = 0.0, max(1e-10, 0.25 * ridge)
    while True:
        for i in range(k):
            for j in range(i):
                factors[i, j] = h[i, j]
            factors[i, i] = h[i, i] + damping / x[i] ** 2
        if factor_row(factors, k) or not damping < 1e300:
            return damping if damping > 0.0 else 0.25 * ridge
        damping, next_try = next_try, 4.0 * next_try


@kernel
def _step_to_boundary(x, dx, fraction):
    """The largest step in (0, 1] that keeps x + step * dx above (1 - fraction) x."""
    step = 1.0
    for i in range(x.shape[0]):
        if dx[i] < 0.0:
            step = min(step, -fraction * x[i] / dx[i])
    return step


@kernel
def _complementarity(x, z, mu):
    gap = 0.0
    for i in range(x.shape[0]):
        gap = max(gap, abs(x[i] * z[i] - mu))
    return gap


@kernel
def _line_search(r, weights, start, middle, members, mu, slope, x, dx, trial, plus, minus):
    """Move ``x`` along ``dx``; halve the step until the barrier objective has fallen enough."""
    k = x.shape[0]
    value = _objective(r, weights, x, plus, minus, mu)
    slack = 1e-13 * (1.0 + abs(value))  # differences below rounding do not speak against a step
    step = _step_to_boundary(x, dx, max(0.99, 1.0 - mu))
    while True:
        for i in range(k):
            trial[i] = x[i] + step * dx[i]
        sides(trial, start, middle, members, plus, minus)
        change = _objective(r, weights, trial, plus, minus, mu) - value
        if change <= 1e-4 * step * slope + slack or step < 1e-12:
            break
        step *= 0.5
    for i in range(k):
        x[i] = trial[i]


@kernel
def _minimise(r, weights, start, middle, members, tol, max_iter, x):
    """Primal-dual interior point method from ``x``; returns (objective, steps, converged).

    The barrier parameter mu falls superlinearly to 1e-20. Then even a class whose
    probability and multiplier are both zero is within sqrt(mu) = 1e-10 of the optimum.
    """
    least_mu = 1e-20
    k, n_columns = x.shape[0], r.shape[0]
    g, scale, dx = np.empty(k), np.empty(k), np.empty(k)
    dz, z, trial = np.empty(k), np.empty(k), np.empty(k)
    plus, minus = np.empty(n_columns), np.empty(n_columns)
    h, factors, ridge = np.empty((k, k)), np.empty((k, k)), 0.0
    mu = 1e-2 / k
    for i in range(k):
        z[i] = mu / x[i]
    sides(x, start, middle, members, plus, minus)
    for iteration in range(max_iter):
        _gradient(r, weights, start, middle, members, x, plus, minus, g, scale)
        residual = 0.0
        for i in range(k):
            residual = max(residual, abs(g[i] - z[i]) / (scale[i] + z[i]))
        while (
            mu > least_mu
            and residual < 10.0 * mu + 1e-13
            and _complementarity(x, z, mu) < 10.0 * mu
        ):
            mu = max(least_mu, min(0.2 * mu, mu**1.5))
        _hessian(r, weights, start, middle, members, x, plus, minus, z, h)
        ridge = _factor_damped(h, x, ridge, factors)
        for i in range(k):
            trial[i] = mu / x[i] - g[i]
            dx[i] = trial[i]
        substitute_row(factors, k, dx)
        slope, moved = 0.0, 0.0
        for i in range(k):
            slope -= trial[i] * dx[i]
            moved = max(moved, abs(dx[i]))
            dz[i] = mu / x[i] - z[i] - z[i] / x[i] * dx[i]
        _line_search(r, weights, start, middle, members, mu, slope, x, dx, trial, plus, minus)
        if mu <= least_mu and moved < tol:
            return _objective(r, weights, x, plus, minus, 0.0), iteration + 1, True
        step = _step_to_boundary(z, dz, max(0.99, 1.0 - mu))
        for i in range(k):
            z[i] += step * dz[i]
            # Stay in a wide band around the central path, as the convergence theory requires.
            z[i] = min(max(z[i], 1e-10 * mu / x[i]), 1e10 * mu / x[i])
    return _objective(r, weights, x, plus, minus, 0.0), max_iter, False


@kernel
def couple_kl(
    r, weights, start, middle, members, n_starts, more, tol, max_iter, p, iterations, converged
):
    """Couple row by row; keep the best minimum of several starts.

    The starts: the non-iterative estimate, the uniform distribution, the
    non-iterative estimate sharpened, then the rows of ``more``.
    """
    n_columns, k = r.shape[1], p.shape[1]
    values, x = np.empty(n_columns), np.empty(k)
    for row in range(r.shape[0]):
        clip_row(r, row, values)
        lowest = 1.0  # the objective where q_b = r_b in every column
        for b in range(n_columns):
            lowest -= weights[b] * values[b] * np.log(values[b])
            lowest -= weights[b] * (1.0 - values[b]) * np.log(1.0 - values[b])
        best = np.inf
        iterations[row], converged[row] = 0, False
        noniterative(values, start, middle, members, x)
        normalise(x, p[row])  # stays where no start leads to a finite objective
        for s in range(n_starts):
            noniterative(values, start, middle, members, x)
            for i in range(k):
                if s == 1:
                    x[i] = 1.0 / k
                elif s == 2:
                    x[i] = x[i] ** 4
                elif s > 2:
                    x[i] = more[s - 3, i]
            normalise(x, x)
            value, steps, ok = _minimise(values, weights, start, middle, members, tol, max_iter, x)
            iterations[row] += steps
            if value < best:
                best = value
                converged[row] = ok
                normalise(x, p[row])
            if best - lowest < 1e-14:  # consistent: there is nothing below
                break
