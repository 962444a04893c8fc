"""The least-squares rule for any code, eight samples at a time, one per lane.

The problem and the method are those of :mod:`least_squares`, which solves the rows that are left:
those whose normal equations are inaccurate, or that need many rounds.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import inlined, kernel
from manyclass.combiners.coupling.kernels.factoring import solve_systems
from manyclass.combiners.coupling.kernels.kl import add_cross, add_square
from manyclass.combiners.coupling.kernels.lanes import (
    WIDTH,
    broadcast,
    load,
    multiply_add,
    store,
    total,
    where_less,
)
from manyclass.combiners.coupling.kernels.transposed import load_block, store_block, workspace

WELL_CONDITIONED = 1e-6
"""Smallest pivot, relative to its diagonal entry, for which the normal equations are used: their
relative error is about the float64 epsilon over the pivot, here below 1e-9."""


@inlined
def _normal_matrices(block, weights, start, middle, members, rows, k, a, d):
    """Write sum n_b a_b a_b' + t ee', with a_b = 1 - r_b on I and -r_b on J."""
    zero, one, trace = broadcast(0.0), broadcast(1.0), broadcast(0.0)
    for i in range(k):
        store(d, i, zero)
    for e in range(k * (k - 1) // 2):
        store(a, e, zero)
    for b in range(weights.size):
        w, r = broadcast(weights[b]), load(block, b)
        lost = one - r
        add_square(members, start[b], middle[b], rows, w * lost * lost, a, d)
        add_square(members, middle[b], start[b + 1], rows, w * r * r, a, d)
        add_cross(members, start[b], middle[b], start[b + 1], rows, w * r * lost, a)
    for i in range(k):
        trace = trace + load(d, i)
    t = trace * broadcast(1.0 / k)
    for i in range(k):
        store(d, i, load(d, i) + t)
    for e in range(k * (k - 1) // 2):
        store(a, e, load(a, e) + t)


@inlined
def _solve_free(a, d, free, k, factors, pivots, x):
    """Solve for the free classes; return 1 in the lanes where the solution is accurate."""
    zero, one, e = broadcast(0.0), broadcast(1.0), 0
    for i in range(k):
        free_i = load(free, i)
        store(pivots, i, where_less(zero, free_i, load(d, i), one))
        store(x, i, free_i)
        for j in range(i + 1, k):
            store(factors, e, load(a, e) * (free_i * load(free, j)))
            e += 1
    solve_systems(factors, pivots, x, k)
    accurate, least = one, broadcast(WELL_CONDITIONED)
    for i in range(k):
        inverse = load(pivots, i)
        relative = inverse * least * where_less(zero, load(free, i), load(d, i), one)
        accurate = where_less(relative, one, where_less(zero, inverse, accurate, zero), zero)
    return accurate


@inlined
def _find_offending(a, d, free, k, x, slopes, offends):
    """Mark free classes with x_i < 0 and others that should grow; return how many they are."""
    zero, one, e, count = broadcast(0.0), broadcast(1.0), 0, broadcast(0.0)
    slack = broadcast(-1e-12)  # as in ``least_squares``
    for i in range(k):
        store(slopes, i, multiply_add(load(d, i), load(x, i), zero - one))
    for i in range(k):
        x_i, slope = load(x, i), load(slopes, i)
        for j in range(i + 1, k):
            slope = multiply_add(load(a, e), load(x, j), slope)
            store(slopes, j, multiply_add(load(a, e), x_i, load(slopes, j)))
            e += 1
        negative, steep = where_less(x_i, zero, one, zero), where_less(slope, slack, one, zero)
        bad = where_less(zero, load(free, i), negative, steep)
        store(offends, i, bad)
        count = count + bad
    return count


@kernel
def couple_squares(r, weights, start, middle, members, max_iter, p, iterations):
    """Couple eight rows at a time, by block principal pivoting.

    Rows that are not solved get ``iterations = -1``.
    """
    n, k = p.shape
    rows = np.empty(k, dtype=np.int64)
    for i in range(k):
        rows[i] = i * (2 * k - i - 1) // 2 - i - 1
    n_pairs = k * (k - 1) // 2
    block, a, factors = workspace(weights.size), workspace(n_pairs), workspace(n_pairs)
    d, pivots, x, slopes = workspace(k), workspace(k), workspace(k), workspace(k)
    free, offends, state = workspace(k), workspace(k), workspace(2)
    zero, one = broadcast(0.0), broadcast(1.0)
    for first in range(0, n, WIDTH):
        load_block(r, first, block)
        _normal_matrices(block, weights, start, middle, members, rows, k, a, d)
        for i in range(k):
            store(free, i, one)
        active, solved, spent = one, zero, zero
        fewest, chances = broadcast(k + 1.0), broadcast(3.0)
        for _ in range(max_iter):
            spent = spent + active
            # A lane that is solved is solved again, to the same bits: its free classes stay.
            accurate = _solve_free(a, d, free, k, factors, pivots, x)
            count = _find_offending(a, d, free, k, x, slopes, offends)
            none = where_less(count, one, accurate, zero)
            solved = where_less(zero, active, none, solved)
            chances = where_less(count, fewest, broadcast(3.0), chances - one)
            fewest = where_less(count, fewest, count, fewest)
            goes_on = where_less(zero, none, zero, where_less(chances, zero, zero, accurate))
            active = where_less(zero, active, goes_on, zero)
            if not total(active) > 0.0:
                break
            for i in range(k):
                turned = where_less(zero, load(offends, i), one - load(free, i), load(free, i))
                store(free, i, where_less(zero, active, turned, load(free, i)))
        store(state, 0, solved)
        store(state, 1, spent)
        store_block(x, k, first, p)
        for s in range(min(WIDTH, n - first)):
            iterations[first + s] = int(state[WIDTH + s]) if state[s] > 0.0 else -1
