"""Kernels for one-vs-one codes: eight samples at a time, one per lane.

Each kernel reads a block of condensed pairwise probabilities ``r`` (rows are samples; the columns
are the pairs (0,1), (0,2), ..., (1,2), ..., entry P(i | i or j)) and writes ``p``. Nothing is
allocated inside the row loop and no sample influences another: a lane that has converged does not
change any more, so the result of a row does not depend on the other rows.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.combiners.coupling.kernels.lanes import (
    WIDTH,
    absolute,
    broadcast,
    load,
    multiply_add,
    peek,
    poke,
    square_root,
    store,
    subtract_product,
    total,
    where_less,
)

LOWEST = 1e-7
"""Pairwise probabilities are clipped to [1e-7, 1 - 1e-7]: ``min_prob`` of LIBSVM."""


@kernel
def find_outside(r):
    """Return the flat index of the first entry that is NaN or outside [0, 1], or -1."""
    n, n_columns = r.shape
    for s in range(n):
        bad = 0
        for b in range(n_columns):
            bad += not (r[s, b] >= 0.0 and r[s, b] <= 1.0)
        if bad:
            for b in range(n_columns):
                if not (r[s, b] >= 0.0 and r[s, b] <= 1.0):
                    return s * n_columns + b
    return -1


@kernel
def condense(square, r, slack):
    """Copy the upper triangles of (n, k, k) into (n, l).

    Return the flat index of the first pair with ``r_ij + r_ji`` further than
    ``slack`` from 1 (or NaN on either side), or -1.
    """
    n, k, _ = square.shape
    source, target = square.reshape(-1), r.reshape(-1)
    q = 0
    for s in range(n):
        base, squares = s * k * k, 0.0
        # Walk through the sample once, a cache line at a time: reading columns from
        # memory would be twice as slow.
        for e in range(base, base + k * k, 8):
            squares += peek(source, e)
        squares *= 0.0
        for i in range(k - 1):
            upper, lower = base + i * k + i + 1, base + (i + 1) * k + i
            squares_i = 0.0
            for m in range(k - 1 - i):
                r_ij = peek(source, upper + m)
                poke(target, q + m, r_ij)
                excess = r_ij + peek(source, lower + m * k) - 1.0
                squares_i += excess * excess
            q += k - 1 - i
            squares += squares_i
        if not squares <= slack * slack:
            for i in range(k):
                for j in range(i + 1, k):
                    if not abs(square[s, i, j] + square[s, j, i] - 1.0) <= slack:
                        return (s * k + i) * k + j
    return -1


@kernel
def load_block(r, first, block):
    """Transpose eight rows from ``first`` on, clipped, into ``block``.

    A block that runs over the end repeats the last row, so that a remainder
    takes the same path as everything else.
    """
    n, n_columns = r.shape
    for s in range(WIDTH):
        row = min(first + s, n - 1)
        for b in range(n_columns):
            block[b * WIDTH + s] = min(max(r[row, b], LOWEST), 1.0 - LOWEST)


@kernel
def store_block(x, k, first, p):
    """Write non-negative ``x``, scaled to sum to one, into eight rows of ``p``."""
    for s in range(min(WIDTH, p.shape[0] - first)):
        norm = 0.0
        for i in range(k):
            x[i * WIDTH + s] = max(x[i * WIDTH + s], 0.0)
            norm += x[i * WIDTH + s]
        for i in range(k):
            p[first + s, i] = x[i * WIDTH + s] / norm


@kernel
def factor(a, d, k):
    """Cholesky factor of eight positive definite k x k matrices, in place.

    The lower triangle of ``a`` is read; its strict part becomes that of L, and ``d`` the inverse of
    L's diagonal. Rows and columns go in pairs so that four accumulators stay in registers.
    """
    one = broadcast(1.0)
    for i in range(0, k - 1, 2):
        for j in range(0, i, 2):
            a00, a01 = load(a, i * k + j), load(a, i * k + j + 1)
            a10, a11 = load(a, (i + 1) * k + j), load(a, (i + 1) * k + j + 1)
            for c in range(j):
                u0, u1 = load(a, i * k + c), load(a, (i + 1) * k + c)
                v0, v1 = load(a, j * k + c), load(a, (j + 1) * k + c)
                a00, a01 = subtract_product(a00, u0, v0), subtract_product(a01, u0, v1)
                a10, a11 = subtract_product(a10, u1, v0), subtract_product(a11, u1, v1)
            d0, d1, l10 = load(d, j), load(d, j + 1), load(a, (j + 1) * k + j)
            a00, a10 = a00 * d0, a10 * d0
            store(a, i * k + j, a00)
            store(a, (i + 1) * k + j, a10)
            store(a, i * k + j + 1, subtract_product(a01, a00, l10) * d1)
            store(a, (i + 1) * k + j + 1, subtract_product(a11, a10, l10) * d1)
        a00, a10 = load(a, i * k + i), load(a, (i + 1) * k + i)
        a11 = load(a, (i + 1) * k + i + 1)
        for c in range(i):
            u0, u1 = load(a, i * k + c), load(a, (i + 1) * k + c)
            a00 = subtract_product(a00, u0, u0)
            a10 = subtract_product(a10, u1, u0)
            a11 = subtract_product(a11, u1, u1)
        d0 = one / square_root(a00)
        a10 = a10 * d0
        store(d, i, d0)
        store(a, (i + 1) * k + i, a10)
        store(d, i + 1, one / square_root(subtract_product(a11, a10, a10)))
    if k % 2:
        i = k - 1
        a00 = load(a, i * k + i)
        for j in range(i):
            x = load(a, i * k + j)
            for c in range(j):
                x = subtract_product(x, load(a, i * k + c), load(a, j * k + c))
            x = x * load(d, j)
            store(a, i * k + j, x)
            a00 = subtract_product(a00, x, x)
        store(d, i, one / square_root(a00))


@kernel
def substitute(a, d, k, x):
    """Solve with the factors of :func:`factor`, right-hand side in ``x``, in place."""
    for i in range(k):
        y = load(x, i)
        for c in range(i):
            y = subtract_product(y, load(a, i * k + c), load(x, c))
        store(x, i, y * load(d, i))
    for i in range(k - 1, -1, -1):
        y = load(x, i)
        for c in range(i + 1, k):
            y = subtract_product(y, load(a, c * k + i), load(x, c))
        store(x, i, y * load(d, i))


@kernel
def couple_wlw2(r, k, p):
    """Wu, Lin & Weng's second rule: minimise sum_{i<j} (r_ji p_i - r_ij p_j)^2, sum p = 1.

    Q + t ee' is positive definite and has the minimiser of Q on the simplex,
    also when r is consistent and Q singular. t is of the size of Q's diagonal.
    """
    a, d, x = np.empty(k * k * WIDTH), np.empty(k * WIDTH), np.empty(k * WIDTH)
    block = np.empty(r.shape[1] * WIDTH)
    one, t = broadcast(1.0), broadcast(0.25 * k)
    for first in range(0, r.shape[0], WIDTH):
        load_block(r, first, block)
        for i in range(k):
            store(d, i, t)
            store(x, i, one)
        q = 0
        for i in range(k):
            q_ii = load(d, i)
            for j in range(i + 1, k):
                r_ij = load(block, q)
                r_ji = one - r_ij
                store(a, j * k + i, subtract_product(t, r_ij, r_ji))
                q_ii = multiply_add(r_ji, r_ji, q_ii)
                store(d, j, multiply_add(r_ij, r_ij, load(d, j)))
                q += 1
            store(a, i * k + i, q_ii)
        factor(a, d, k)
        substitute(a, d, k, x)
        store_block(x, k, first, p)


@kernel
def couple_wlw1(r, k, p):
    """Wu, Lin & Weng's first rule: the stationary distribution of the chain j -> i with r_ij/(k-1).

    Elimination after Grassmann, Taksar & Heyman: nothing is ever subtracted, so
    every p_i has full relative accuracy even where the chain hardly mixes.
    """
    a, x = np.empty(k * k * WIDTH), np.empty(k * WIDTH)
    block = np.empty(r.shape[1] * WIDTH)
    one = broadcast(1.0)
    for first in range(0, r.shape[0], WIDTH):
        load_block(r, first, block)
        q = 0
        for i in range(k):
            for j in range(i + 1, k):
                r_ij = load(block, q)
                store(a, j * k + i, r_ij)
                store(a, i * k + j, one - r_ij)
                q += 1
        for m in range(k - 1, 0, -1):
            leaving = load(a, m * k)
            for j in range(1, m):
                leaving = leaving + load(a, m * k + j)
            scale = one / leaving
            for i in range(m):
                into = load(a, i * k + m) * scale
                store(a, i * k + m, into)
                for j in range(m):
                    store(a, i * k + j, multiply_add(into, load(a, m * k + j), load(a, i * k + j)))
        store(x, 0, one)
        for m in range(1, k):
            y = load(a, m)
            for i in range(1, m):
                y = multiply_add(load(x, i), load(a, i * k + m), y)
            store(x, m, y)
        store_block(x, k, first, p)


@kernel
def couple_pkpd(r, k, p):
    """Price et al.: p_i proportional to 1 / (sum_j 1/r_ij - (k - 2))."""
    x = np.empty(k * WIDTH)
    block = np.empty(r.shape[1] * WIDTH)
    one, start = broadcast(1.0), broadcast(2.0 - k)
    for first in range(0, r.shape[0], WIDTH):
        load_block(r, first, block)
        for i in range(k):
            store(x, i, start)
        q = 0
        for i in range(k):
            for j in range(i + 1, k):
                r_ij = load(block, q)
                store(x, i, load(x, i) + one / r_ij)
                store(x, j, load(x, j) + one / (one - r_ij))
                q += 1
        for i in range(k):
            store(x, i, one / load(x, i))
        store_block(x, k, first, p)


@kernel
def _newton_system(block, weights, x, k, a, d, g):
    """Gradient and Hessian of sum n_ij KL(r_ij || mu_ij) in log p, at p = x.

    The Hessian is a graph Laplacian with weights n_ij mu_ij mu_ji: singular along e, which
    ``t ee'`` lifts without changing the step, since the gradient sums to zero.
    """
    zero, one = broadcast(0.0), broadcast(1.0)
    for i in range(k):
        store(g, i, zero)
        store(d, i, zero)
    q = 0
    for i in range(k):
        p_i, g_i, h_ii = load(x, i), load(g, i), load(d, i)
        for j in range(i + 1, k):
            n_ij, p_j = broadcast(weights[q]), load(x, j)
            inverse = one / (p_i + p_j)
            excess = n_ij * subtract_product(load(block, q), p_i, inverse)
            h_ij = n_ij * (p_i * inverse) * (p_j * inverse)
            g_i, h_ii = g_i + excess, h_ii + h_ij
            store(g, j, load(g, j) - excess)
            store(d, j, load(d, j) + h_ij)
            store(a, j * k + i, h_ij)
            q += 1
        store(g, i, g_i)
        store(d, i, h_ii)
    trace = load(d, 0)
    for i in range(1, k):
        trace = trace + load(d, i)
    t = trace * broadcast(1.0 / k**2)
    # A class whose comparisons have all saturated has no curvature left.
    ridge = trace * broadcast(1e-15) + broadcast(1e-290)
    for i in range(k):
        store(a, i * k + i, load(d, i) + t + ridge)
        for j in range(i):
            store(a, i * k + j, t - load(a, i * k + j))


@kernel
def couple_ht(r, k, weights, tol, max_iter, p, iterations):
    """Hastie & Tibshirani's rule by Newton's method on log p (Bradley-Terry).

    Steps are capped at 3 and applied as p *= ((4 + s)/(4 - s))^2, which agrees with exp(s) to third
    order and needs no exponential. A row that has not converged after ``max_iter`` steps gets
    ``iterations = -1``: see :func:`couple_ht_row`.
    """
    a, d, x = np.empty(k * k * WIDTH), np.empty(k * WIDTH), np.empty(k * WIDTH)
    g, state = np.empty(k * WIDTH), np.empty(2 * WIDTH)
    block = np.empty(r.shape[1] * WIDTH)
    zero, one, four, cap = broadcast(0.0), broadcast(1.0), broadcast(4.0), broadcast(3.0)
    tolerance = broadcast(tol)
    for first in range(0, r.shape[0], WIDTH):
        load_block(r, first, block)
        for i in range(k):
            store(x, i, zero)
        q = 0
        for i in range(k):
            for j in range(i + 1, k):
                r_ij = load(block, q)
                store(x, i, load(x, i) + r_ij)
                store(x, j, load(x, j) + one - r_ij)
                q += 1
        for i in range(k):  # the odds of class i's mean r_ij: closer than the mean itself
            won = load(x, i)
            store(x, i, won / (broadcast(k - 1.0) - won))
        active, spent = one, zero
        for _ in range(max_iter):
            if not total(active) > 0.0:
                break
            spent = spent + active
            _newton_system(block, weights, x, k, a, d, g)
            factor(a, d, k)
            substitute(a, d, k, g)
            norm = load(x, 0)
            longest, moved = absolute(load(g, 0)), load(x, 0) * absolute(load(g, 0))
            for i in range(1, k):
                step = absolute(load(g, i))
                norm = norm + load(x, i)
                longest = where_less(step, longest, longest, step)
                move = step * load(x, i)
                moved = where_less(move, moved, moved, move)
            scale = where_less(cap, longest, cap / longest, one) * active
            shrink = where_less(zero, active, one / norm, one)
            for i in range(k):
                step = load(g, i) * scale
                growth = (four + step) / (four - step)
                store(x, i, load(x, i) * shrink * growth * growth)
            done = where_less(moved, tolerance * norm, where_less(longest, cap, one, zero), zero)
            active = where_less(done, one, active, zero)
        store(state, 0, active)
        store(state, 1, spent)
        store_block(x, k, first, p)
        for s in range(min(WIDTH, r.shape[0] - first)):
            left = not state[s] == 0.0
            iterations[first + s] = -1 if left else int(state[WIDTH + s])
