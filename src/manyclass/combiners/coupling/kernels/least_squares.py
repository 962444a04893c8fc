"""The least-squares rule for any code, one sample at a time, without squaring its condition.

Minimise sum_b n_b ((1 - r_b) p(I_b) - r_b p(J_b))^2 over the simplex. As for ``couple_wlw2``,
adding t (sum p)^2 leaves the minimiser unchanged up to scale and makes the problem positive
definite. The constraint p >= 0 is enforced. :mod:`squares_by_block` is faster; rows are left for
this module if its normal equations are inaccurate, or if it needs many rounds.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.combiners.coupling.kernels.by_row import clip_row, normalise


@kernel
def _triangle(r, weights, start, middle, members, stacked):
    """Write R and Q'c of min |Rx - c|, which is this problem.

    ``stacked`` has l + 1 rows and k + 1 columns; the first k rows are the answer.
    """
    n_rows, k = stacked.shape[0], stacked.shape[1] - 1
    for i in range(n_rows):
        for j in range(k + 1):
            stacked[i, j] = 0.0
    for b in range(r.shape[0]):
        for m in range(start[b], start[b + 1]):
            side = 1.0 - r[b] if m < middle[b] else -r[b]
            stacked[b, members[m]] = np.sqrt(weights[b]) * side
    for j in range(k + 1):
        stacked[n_rows - 1, j] = 1e-3
    _triangularise(stacked, n_rows, k)


@kernel
def _triangularise(a, n_rows, n_columns):
    """Householder reflections, in place; also applied to the column after the last."""
    for c in range(min(n_columns, n_rows - 1)):
        norm = 0.0
        for i in range(c, n_rows):
            norm += a[i, c] * a[i, c]
        if norm == 0.0:
            continue
        beta = -np.sqrt(norm) if a[c, c] > 0.0 else np.sqrt(norm)
        head = a[c, c] - beta
        for j in range(c + 1, n_columns + 1):
            dot = a[c, j]
            for i in range(c + 1, n_rows):
                dot += a[i, c] / head * a[i, j]
            dot *= -head / beta
            a[c, j] -= dot
            for i in range(c + 1, n_rows):
                a[i, j] -= dot * a[i, c] / head
        a[c, c] = beta
        for i in range(c + 1, n_rows):
            a[i, c] = 0.0


@kernel
def _solve_triangle(triangle, free, work, y):
    """Solve for the free classes by a second triangularisation of their columns."""
    k, size = free.shape[0], 0
    for j in range(k):
        if free[j]:
            for i in range(k):
                work[i, size] = triangle[i, j]
            size += 1
    for i in range(k):
        work[i, size] = triangle[i, k]
    _triangularise(work, k, size)
    for i in range(size - 1, -1, -1):
        y[i] = work[i, size]
        for c in range(i + 1, size):
            y[i] -= work[i, c] * y[c]
        y[i] /= work[i, i] if work[i, i] != 0.0 else 1e-300


@kernel
def _multiplier(triangle, x, i):
    """Gradient with respect to x_i; at the optimum it is not negative if x_i = 0."""
    k, value = x.shape[0], 0.0
    for row in range(i + 1):
        residual = -triangle[row, k]
        for j in range(row, k):
            residual += triangle[row, j] * x[j]
        value += triangle[row, i] * residual
    return value


@kernel
def _solve_nonnegative(triangle, max_iter, work, y, free, offends, x):
    """Minimise over x >= 0 by block principal pivoting.

    All offending classes change sides at once; should that not reduce their number three times in a
    row, only the last of them does (Murty's rule, which is finite). Returns the number of solves,
    negative if the limit was reached.
    """
    k = x.shape[0]
    for i in range(k):
        free[i] = True
    fewest, chances = k + 1, 3
    for iteration in range(max_iter):
        _solve_triangle(triangle, free, work, y)
        taken = 0
        for i in range(k):
            x[i] = 0.0
            if free[i]:
                x[i] = y[taken]
                taken += 1
        count = 0
        for i in range(k):
            offends[i] = x[i] < 0.0 if free[i] else _multiplier(triangle, x, i) < -1e-16
            count += offends[i]
        if count == 0:
            return iteration + 1
        if count < fewest:
            fewest, chances = count, 3
        else:
            chances -= 1
        for i in range(k - 1, -1, -1):
            if offends[i]:
                free[i] = not free[i]
                if chances < 0:
                    break
    return -max_iter


@kernel
def couple_least_squares(r, weights, start, middle, members, max_iter, p, iterations, converged):
    """Couple row by row, by Householder reflections."""
    n_columns, k = r.shape[1], p.shape[1]
    values, x, y = np.empty(n_columns), np.empty(k), np.empty(k)
    free, offends = np.empty(k, dtype=np.bool_), np.empty(k, dtype=np.bool_)
    work, triangle = np.empty((k, k + 1)), np.empty((max(n_columns + 1, k), k + 1))
    for row in range(r.shape[0]):
        clip_row(r, row, values)
        _triangle(values, weights, start, middle, members, triangle)
        steps = _solve_nonnegative(triangle, max_iter, work, y, free, offends, x)
        iterations[row] = abs(steps)
        converged[row] = steps > 0
        normalise(x, p[row])
