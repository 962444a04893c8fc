"""Kernels that work on one sample at a time: for general codes, and for difficult rows.

A code is passed as lists: the classes of column ``b`` are ``members[start[b]:start[b + 1]]``. Those
before ``middle[b]`` are on the positive side; each side is in ascending order. The code uses loops
because numba compiles them several times faster than array expressions.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.combiners.coupling.kernels.transposed import LOWEST


@kernel
def clip_row(r, row, out):
    """Copy one row of ``r``, clipped to [1e-7, 1 - 1e-7]."""
    for b in range(out.shape[0]):
        out[b] = min(max(r[row, b], LOWEST), 1.0 - LOWEST)


@kernel
def normalise(x, out):
    """Write non-negative ``x`` scaled to sum to one."""
    total = 0.0
    for i in range(x.shape[0]):
        total += max(x[i], 0.0)
    for i in range(x.shape[0]):
        out[i] = max(x[i], 0.0) / total


@kernel
def factor_row(a, size):
    """Cholesky in place (lower triangle); False if ``a`` is not positive definite."""
    for i in range(size):
        for j in range(i + 1):
            x = a[i, j]
            for c in range(j):
                x -= a[i, c] * a[j, c]
            if i > j:
                a[i, j] = x / a[j, j]
            elif x > 0.0:
                a[i, i] = np.sqrt(x)
            else:
                return False
    return True


@kernel
def substitute_row(a, size, x):
    """Solve with the factor of :func:`factor_row`, in place."""
    for i in range(size):
        for c in range(i):
            x[i] -= a[i, c] * x[c]
        x[i] /= a[i, i]
    for i in range(size - 1, -1, -1):
        x[i] /= a[i, i]
        for c in range(i):
            x[c] -= a[i, c] * x[i]


@kernel
def _descent(r, weights, theta, g, h, with_hessian):
    """Negative gradient of the Bradley-Terry objective at log p = theta, and its Hessian."""
    k = theta.shape[0]
    for i in range(k):
        g[i] = 0.0
        h[i, i] = 0.0 if with_hessian else h[i, i]
    q = 0
    for i in range(k):
        for j in range(i + 1, k):
            gap = theta[i] - theta[j]
            mu_ij, mu_ji = 1.0 / (1.0 + np.exp(-gap)), 1.0 / (1.0 + np.exp(gap))
            # Compare the smaller sides: the larger ones round to 1.
            excess = r[q] - mu_ij if gap < 0.0 else mu_ji - (1.0 - r[q])
            g[i] += weights[q] * excess
            g[j] -= weights[q] * excess
            if with_hessian:
                curvature = weights[q] * mu_ij * mu_ji
                h[i, i] += curvature
                h[j, j] += curvature
                h[j, i] = -curvature
            q += 1


@kernel
def _newton_step(h, g, step):
    """Solve the singular Laplacian system, lifted as in ``by_block._newton_system``.

    Returns the largest entry of the step.
    """
    k = g.shape[0]
    trace = 0.0
    for i in range(k):
        trace += h[i, i]
        step[i] = g[i]
    for i in range(k):
        h[i, i] += trace * (1.0 / k**2 + 1e-15) + 1e-290
        for j in range(i):
            h[i, j] += trace / k**2
    factor_row(h, k)
    substitute_row(h, k, step)
    longest = 0.0
    for i in range(k):
        longest = max(longest, abs(step[i]))
    return longest


@kernel
def softmax(theta, p):
    """Write the soft-max of ``theta``; both may be one array."""
    top = theta[0]
    for i in range(1, theta.shape[0]):
        top = max(top, theta[i])
    for i in range(theta.shape[0]):
        p[i] = np.exp(theta[i] - top)
    normalise(p, p)


@kernel
def _advance(pairs, weights, theta, g, step, trial, g_end, h):
    """Step along ``step``, halved until the slope at its end has not turned far.

    Returns the factor the step was shrunk by and the slope at its end.
    """
    k = theta.shape[0]
    slope = 0.0
    for i in range(k):
        slope += g[i] * step[i]
    shrink = 1.0
    while True:
        for i in range(k):
            trial[i] = theta[i] + shrink * step[i]
        _descent(pairs, weights, trial, g_end, h, False)
        end = 0.0
        for i in range(k):
            end += g_end[i] * step[i]
        if end >= -0.1 * slope or shrink < 1e-6:
            break
        shrink *= 0.5
    for i in range(k):
        theta[i] = trial[i]
    return shrink, end


@kernel
def couple_ht_row(r, row, weights, tol, max_iter, p):
    """Minimise the Bradley-Terry objective for a row the block kernel gave up on.

    Optima far out (each class beats the next with 1 - 1e-7) lie hundreds of units away in log p.
    The radius of the Newton step grows while the objective still falls at the step's end, and
    shrinks where it has turned. Returns the number of steps, negative if the limit was reached.
    """
    k, n_columns = p.shape[1], r.shape[1]
    pairs = np.empty(n_columns)
    clip_row(r, row, pairs)
    theta, g, step, trial, g_end = (np.zeros(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k))
    h = np.empty((k, k))
    q = 0
    for i in range(k):
        for j in range(i + 1, k):
            theta[i] += pairs[q]
            theta[j] += 1.0 - pairs[q]
            q += 1
    for i in range(k):
        theta[i] = np.log(theta[i] / (k - 1.0 - theta[i]))
    radius = 3.0
    for iteration in range(max_iter):
        _descent(pairs, weights, theta, g, h, True)
        longest = _newton_step(h, g, step)
        softmax(theta, p[row])
        moved = 0.0
        for i in range(k):
            moved = max(moved, p[row, i] * abs(np.expm1(min(step[i], 60.0))))
        if longest > radius:
            for i in range(k):
                step[i] *= radius / longest
        shrink, end = _advance(pairs, weights, theta, g, step, trial, g_end, h)
        if moved < tol:
            softmax(theta, p[row])
            return iteration + 1
        radius *= shrink
        if shrink == 1.0 and longest > radius and end > 0.0:
            radius *= 4.0
    return -max_iter


@kernel
def _logit(r):
    r = min(max(r, LOWEST), 1.0 - LOWEST)
    return np.log(r / (1.0 - r))


@kernel
def couple_logit(r, weights, inverse, p):
    """Least squares on the logit scale; ``inverse`` is that of the weights' Laplacian."""
    k = p.shape[1]
    pull, theta = np.empty(k), np.empty(k)
    for row in range(r.shape[0]):
        for i in range(k):
            pull[i] = 0.0
        q = 0
        for i in range(k):
            for j in range(i + 1, k):
                logit = weights[q] * _logit(r[row, q])
                pull[i] += logit
                pull[j] -= logit
                q += 1
        for i in range(k):
            theta[i] = 0.0
            for j in range(k):
                theta[i] += inverse[i, j] * pull[j]
        softmax(theta, p[row])


@kernel
def couple_tree(r, children, parents, columns, p):
    """Refregier & Vallet: r_ji p_i = r_ij p_j along the k - 1 edges of a tree.

    Edges come parents first; ``columns[e]`` is the pair of edge e.
    """
    theta = np.empty(p.shape[1])
    for row in range(r.shape[0]):
        theta[parents[0]] = 0.0
        for e in range(children.shape[0]):
            logit = _logit(r[row, columns[e]])
            child_is_higher = children[e] > parents[e]
            theta[children[e]] = theta[parents[e]] - (logit if child_is_higher else -logit)
        softmax(theta, p[row])


@kernel
def incoherence_of(r, weights, start, middle, members, p, out):
    """The weighted root-mean-square of r_b - q_b(p); columns with p(I_b) = p(J_b) = 0 count 0."""
    n_columns = r.shape[1]
    plus, minus = np.empty(n_columns), np.empty(n_columns)
    for row in range(r.shape[0]):
        sides(p[row], start, middle, members, plus, minus)
        squares, weight = 0.0, 0.0
        for b in range(n_columns):
            both = plus[b] + minus[b]
            if both > 0.0:
                squares += weights[b] * (r[row, b] - plus[b] / both) ** 2
            weight += weights[b]
        out[row] = np.sqrt(squares / weight)


@kernel
def couple_noniterative(r, start, middle, members, p):
    """Write Zadrozny's non-iterative estimate of every row."""
    values = np.empty(r.shape[1])
    for row in range(r.shape[0]):
        clip_row(r, row, values)
        noniterative(values, start, middle, members, p[row])


@kernel
def sides(x, start, middle, members, plus, minus):
    """p(I_b) and p(J_b) of every column."""
    for b in range(middle.shape[0]):
        plus[b] = 0.0
        for m in range(start[b], middle[b]):
            plus[b] += x[members[m]]
        minus[b] = 0.0
        for m in range(middle[b], start[b + 1]):
            minus[b] += x[members[m]]


@kernel
def _class_sums(r, weights, start, middle, members, sums):
    """Sum over a class's columns of n_b r_b where it is positive, n_b (1 - r_b) where negative."""
    for i in range(sums.shape[0]):
        sums[i] = 0.0
    for b in range(r.shape[0]):
        for m in range(start[b], middle[b]):
            sums[members[m]] += weights[b] * r[b]
        for m in range(middle[b], start[b + 1]):
            sums[members[m]] += weights[b] * (1.0 - r[b])


@kernel
def noniterative(r, start, middle, members, x):
    """Zadrozny's non-iterative estimate: sums of r_b over B+, of 1 - r_b over B-."""
    for i in range(x.shape[0]):
        x[i] = 0.0
    for b in range(r.shape[0]):
        for m in range(start[b], start[b + 1]):
            x[members[m]] += r[b] if m < middle[b] else 1.0 - r[b]
    normalise(x, x)


@kernel
def couple_zadrozny(
    r, weights, start, middle, members, uniform, tol, max_iter, p, iterations, converged
):
    """Zadrozny's iteration as printed: match the sums of r_b, all classes at once, renormalise."""
    n_columns, k = r.shape[1], p.shape[1]
    values, x, last = np.empty(n_columns), np.empty(k), np.empty(k)
    plus, minus = np.empty(n_columns), np.empty(n_columns)
    observed, expected = np.empty(k), np.empty(k)
    for row in range(r.shape[0]):
        clip_row(r, row, values)
        noniterative(values, start, middle, members, x)
        for i in range(k):
            x[i] = 1.0 / k if uniform else x[i]
        _class_sums(values, weights, start, middle, members, observed)
        converged[row] = False
        iterations[row] = max_iter
        for iteration in range(max_iter):
            sides(x, start, middle, members, plus, minus)
            for b in range(n_columns):
                plus[b] /= plus[b] + minus[b]
            _class_sums(plus, weights, start, middle, members, expected)
            for i in range(k):
                last[i] = x[i]
                x[i] *= observed[i] / expected[i]
            normalise(x, x)
            change = 0.0
            for i in range(k):
                change = max(change, abs(x[i] - last[i]))
            if change < tol:
                converged[row] = True
                iterations[row] = iteration + 1
                break
        normalise(x, p[row])
