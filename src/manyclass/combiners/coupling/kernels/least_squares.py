"""The least-squares rule for any code, one sample at a time.

Minimise sum_b n_b ((1 - r_b) p(I_b) - r_b p(J_b))^2 over the simplex. As for
``couple_wlw2``, adding t (sum p)^2 leaves the minimiser unchanged up to scale and
makes the problem positive definite. The constraint p >= 0 is enforced.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.combiners.coupling.kernels.by_row import clip_row, normalise

WELL_CONDITIONED = 1e-6
"""Smallest pivot, relative to its diagonal entry, for which the normal equations are used: their
relative error is about the float64 epsilon over the pivot, here below 1e-9."""


@kernel
def _normal_matrix(r, weights, start, middle, members, q):
    """Sum n_b a_b a_b' + t ee', with a_b = (1 - r_b) on I and -r_b on J."""
    k = q.shape[0]
    for i in range(k):
        for j in range(i + 1):
            q[i, j] = 0.0
    for b in range(r.shape[0]):
        for m in range(start[b], start[b + 1]):
            a_m = weights[b] * (1.0 - r[b] if m < middle[b] else -r[b])
            for o in range(start[b], m + 1):
                i, j = members[m], members[o]
                q[max(i, j), min(i, j)] += a_m * (1.0 - r[b] if o < middle[b] else -r[b])
    t = 0.0
    for i in range(k):
        t += q[i, i] / k
    for i in range(k):
        for j in range(i + 1):
            q[i, j] += t


@kernel
def _triangle(r, weights, start, middle, members, stacked):
    """The same problem without squaring its condition: R and Q'c of min |Rx - c|.

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
def _solve_normal(q, free, work, y):
    """Solve for the free classes by Cholesky; returns the least pivot relative to its diagonal.

    The solution is in the first entries of ``y``.
    """
    size, least = 0, 1.0
    for i in range(free.shape[0]):
        if not free[i]:
            continue
        column = 0
        for j in range(i + 1):
            if free[j]:
                x = q[i, j]
                for c in range(column):
                    x -= work[size, c] * work[column, c]
                if i > j:
                    work[size, column] = x / work[column, column]
                else:
                    least = min(least, x / q[i, i])
                    work[size, size] = np.sqrt(max(x, 1e-300))
                column += 1
        y[size] = 1.0
        size += 1
    for i in range(size):
        for c in range(i):
            y[i] -= work[i, c] * y[c]
        y[i] /= work[i, i]
    for i in range(size - 1, -1, -1):
        y[i] /= work[i, i]
        for c in range(i):
            y[c] -= work[i, c] * y[i]
    return least


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
def _multiplier(q, triangle, careful, x, i):
    """Gradient with respect to x_i; at the optimum it is not negative if x_i = 0."""
    k = x.shape[0]
    if not careful:
        value = -1.0
        for j in range(k):
            value += x[j] * q[max(i, j), min(i, j)]
        return value
    value = 0.0
    for row in range(i + 1):
        residual = -triangle[row, k]
        for j in range(row, k):
            residual += triangle[row, j] * x[j]
        value += triangle[row, i] * residual
    return value


@kernel
def _solve_nonnegative(q, triangle, careful, max_iter, work, y, free, offends, x):
    """Minimise over x >= 0 by block principal pivoting.

    All offending classes change sides at once; should that not reduce their number three times in a
    row, only the last of them does (Murty's rule, which is finite). Returns the number of solves,
    negative if the limit was reached, and the least pivot met.
    """
    k = x.shape[0]
    for i in range(k):
        free[i] = True
    fewest, chances, least = k + 1, 3, 1.0
    slack = 1e-16 if careful else 1e-12
    for iteration in range(max_iter):
        if careful:
            _solve_triangle(triangle, free, work, y)
        else:
            least = min(least, _solve_normal(q, free, work, y))
            if not least > WELL_CONDITIONED:
                return -max_iter, least
        taken = 0
        for i in range(k):
            x[i] = 0.0
            if free[i]:
                x[i] = y[taken]
                taken += 1
        count = 0
        for i in range(k):
            offends[i] = x[i] < 0.0 if free[i] else _multiplier(q, triangle, careful, x, i) < -slack
            count += offends[i]
        if count == 0:
            return iteration + 1, least
        if count < fewest:
            fewest, chances = count, 3
        else:
            chances -= 1
        for i in range(k - 1, -1, -1):
            if offends[i]:
                free[i] = not free[i]
                if chances < 0:
                    break
    return -max_iter, least


@kernel
def couple_least_squares(r, weights, start, middle, members, max_iter, p, iterations, converged):
    """Couple row by row: by normal equations, or by reflections if those are inaccurate."""
    n_columns, k = r.shape[1], p.shape[1]
    values, x, y = np.empty(n_columns), np.empty(k), np.empty(k)
    free, offends = np.empty(k, dtype=np.bool_), np.empty(k, dtype=np.bool_)
    q, work = np.empty((k, k)), np.empty((k, k + 1))
    stacked = np.empty((max(n_columns + 1, k), k + 1))
    for row in range(r.shape[0]):
        clip_row(r, row, values)
        _normal_matrix(values, weights, start, middle, members, q)
        steps, least = _solve_nonnegative(q, stacked, False, max_iter, work, y, free, offends, x)
        if not least > WELL_CONDITIONED:
            _triangle(values, weights, start, middle, members, stacked)
            steps, _ = _solve_nonnegative(q, stacked, True, max_iter, work, y, free, offends, x)
        iterations[row] = abs(steps)
        converged[row] = steps > 0
        normalise(x, p[row])
