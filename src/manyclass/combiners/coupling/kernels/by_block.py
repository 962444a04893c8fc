"""Kernels for one-vs-one codes: eight samples at a time, one per lane.

Each kernel reads a block of condensed pairwise probabilities ``r`` (rows are samples; the columns
are the pairs (0,1), (0,2), ..., (1,2), ..., entry P(i | i or j)) and writes ``p``. Nothing is
allocated inside the row loop and no sample influences another: a lane that has converged does not
change any more, so the result of a row does not depend on the other rows.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import inlined, kernel
from manyclass.combiners.coupling.kernels.factoring import solve_systems
from manyclass.combiners.coupling.kernels.lanes import (
    WIDTH,
    absolute,
    broadcast,
    load,
    multiply_add,
    store,
    subtract_product,
    total,
    where_less,
)
from manyclass.combiners.coupling.kernels.transposed import (
    clipped,
    load_block,
    load_square,
    ones_within,
    store_block,
    transpose,
    workspace,
)


@inlined
def _pair_system(block, k, d, x):
    """Replace r_ij by the entries of Q + t ee', whose diagonal goes to ``d``; ``x`` becomes e.

    Return whether all r_ij are probabilities.
    """
    zero, one, t = broadcast(0.0), broadcast(1.0), broadcast(0.25 * k)
    lowest, highest = one, zero
    for i in range(k):
        store(d, i, t)
        store(x, i, one)
    q = 0
    for i in range(k):
        q_ii = load(d, i)
        for j in range(i + 1, k):
            r_ij = load(block, q)
            lowest, highest = (
                where_less(r_ij, lowest, r_ij, lowest),
                where_less(highest, r_ij, r_ij, highest),
            )
            r_ij = clipped(r_ij)
            r_ji = one - r_ij
            store(block, q, subtract_product(t, r_ij, r_ji))
            q_ii = multiply_add(r_ji, r_ji, q_ii)
            store(d, j, multiply_add(r_ij, r_ij, load(d, j)))
            q += 1
        store(d, i, q_ii)
    trace = zero
    for i in range(k):
        trace = trace + load(d, i)  # NaN if one of them is
    known = where_less(zero, trace, one, zero)
    return total(known * ones_within(lowest) * ones_within(highest)) == WIDTH


@kernel
def couple_wlw2(r, k, slack, p):
    """Wu, Lin & Weng's second rule: minimise sum_{i<j} (r_ji p_i - r_ij p_j)^2, sum p = 1.

    Q + t ee' is positive definite and has the minimiser of Q on the simplex,
    also when r is consistent and Q singular. t is of the size of Q's diagonal.

    Rows of ``r`` may hold squares of k * k numbers; see :func:`load_square`. Return the first row
    of the eight among which one is not made of probabilities, or -1.
    """
    n, width = r.shape
    n_pairs = k * (k - 1) // 2
    block, d, x = workspace(n_pairs), workspace(k), workspace(k)
    whole = workspace(width if width > n_pairs else 0)
    for first in range(0, n, WIDTH):
        if width == n_pairs:
            transpose(r, first, block)
        elif not load_square(r, k, first, slack, whole, block):
            return first
        if not _pair_system(block, k, d, x):
            return first
        solve_systems(block, d, x, k)
        store_block(x, k, first, p)
    return -1


@kernel
def couple_wlw1(r, k, p):
    """Wu, Lin & Weng's first rule: the stationary distribution of the chain j -> i with r_ij/(k-1).

    Elimination after Grassmann, Taksar & Heyman: nothing is ever subtracted, so
    every p_i has full relative accuracy even where the chain hardly mixes.
    """
    a, x, block = workspace(k * k), workspace(k), workspace(r.shape[1])
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
    x, block = workspace(k), workspace(r.shape[1])
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


@inlined
def _newton_system(block, weights, x, k, a, d, g):
    """Negative gradient, and Hessian, of sum n_ij KL(r_ij || mu_ij) in log p, at p = x.

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
            store(a, q, h_ij)
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
        store(d, i, load(d, i) + t + ridge)
    for q in range(k * (k - 1) // 2):
        store(a, q, t - load(a, q))


@inlined
def _nan_if_indefinite(d, k):
    """Return 0, and NaN in the lanes where rounding errors have made a pivot negative."""
    zero = broadcast(0.0)
    lost = zero
    for i in range(k):
        lost = where_less(zero, load(d, i), lost, broadcast(np.nan))
    return lost


@kernel
def couple_ht(r, k, weights, tol, max_iter, p, iterations):
    """Hastie & Tibshirani's rule by Newton's method on log p (Bradley-Terry).

    Steps are capped at 3 and applied as p *= ((4 + s)/(4 - s))^2, which agrees with exp(s) to third
    order and needs no exponential. A row that has not converged after ``max_iter`` steps gets
    ``iterations = -1``: see :func:`couple_ht_row`.
    """
    block, a = workspace(r.shape[1]), workspace(r.shape[1])
    d, x, g, state = workspace(k), workspace(k), workspace(k), workspace(2)
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
            solve_systems(a, d, g, k)
            norm, moved, longest = zero, zero, zero
            lost = _nan_if_indefinite(d, k)
            for i in range(k):
                store(g, i, load(g, i) + lost)
                step = absolute(load(g, i))
                norm = norm + load(x, i)
                longest = where_less(step, longest, longest, step)
                move = step * load(x, i)
                moved = where_less(move, moved, moved, move)
            scale = where_less(cap, longest, cap / longest, one)
            shrink = where_less(zero, active, one / norm, one)
            for i in range(k):
                step = where_less(zero, active, load(g, i) * scale, zero)
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
