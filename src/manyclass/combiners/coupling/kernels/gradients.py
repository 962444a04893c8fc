"""Wu, Lin & Weng's second rule for many classes, by conjugate gradients.

A factorisation takes k^3/6 operations a row, an iteration k^2. With Q's diagonal as
preconditioner the spectrum is clustered around 1, whatever r: each class meets all others, and
``(r_ji x_i - r_ij x_j)^2 <= 2 (r_ji^2 x_i^2 + r_ij^2 x_j^2)`` bounds it by 2 from above. A dozen
iterations reach rounding.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass.combiners.coupling.kernels.by_block import load_block, store_block
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


@kernel
def _products(block, k, d):
    """Replace r_ij by r_ij r_ji, and write Q's diagonal, sum_s r_si^2, to ``d``."""
    zero, one = broadcast(0.0), broadcast(1.0)
    for i in range(k):
        store(d, i, zero)
    q = 0
    for i in range(k):
        d_i = load(d, i)
        for j in range(i + 1, k):
            r_ij = load(block, q)
            r_ji = one - r_ij
            d_i = multiply_add(r_ji, r_ji, d_i)
            store(d, j, multiply_add(r_ij, r_ij, load(d, j)))
            store(block, q, r_ij * r_ji)
            q += 1
        store(d, i, d_i)


@kernel
def _multiply(block, d, k, x, y):
    """Write Q x to ``y``; the pairs of two classes at a time share the other's x and y."""
    for i in range(k):
        store(y, i, load(d, i) * load(x, i))
    q = 0
    for i in range(0, k - 1, 2):
        below = q + k - 1 - i  # where the pairs of class i + 1 begin
        x0, x1 = load(x, i), load(x, i + 1)
        b = load(block, q)
        y0, y1 = subtract_product(load(y, i), b, x1), subtract_product(load(y, i + 1), b, x0)
        for j in range(i + 2, k):
            b0, b1 = load(block, q + j - i - 1), load(block, below + j - i - 2)
            x_j = load(x, j)
            y0, y1 = subtract_product(y0, b0, x_j), subtract_product(y1, b1, x_j)
            store(y, j, subtract_product(subtract_product(load(y, j), b0, x0), b1, x1))
        store(y, i, y0)
        store(y, i + 1, y1)
        q = below + k - 2 - i


@kernel
def _precondition(inverse, norm, k, g, z):
    """Write the correction that the gradient ``-g`` asks for, with sum zero, to ``z``.

    ``inverse`` is D^-1 e and ``norm`` its sum. The part of ``g`` along e, which the constraint
    takes up, is removed. Returns g'z and the largest correction.
    """
    shift, squares, largest = broadcast(0.0), broadcast(0.0), broadcast(0.0)
    for i in range(k):
        shift = multiply_add(load(inverse, i), load(g, i), shift)
    shift = shift / norm
    for i in range(k):
        g_i = load(g, i) - shift
        z_i = load(inverse, i) * g_i
        store(g, i, g_i)
        store(z, i, z_i)
        squares = multiply_add(g_i, z_i, squares)
        size = absolute(z_i)
        largest = where_less(largest, size, size, largest)
    return squares, largest


@kernel
def couple_wlw2_gradients(r, k, tol, max_iter, p, iterations):
    """Minimise sum_{i<j} (r_ji p_i - r_ij p_j)^2 over sum p = 1 by conjugate gradients.

    They start from D^-1 e, scaled to sum to one: the answer itself where all r are 0 or 1 and
    no two comparisons contradict each other. A row whose corrections have not fallen below
    ``tol`` after ``max_iter`` steps gets ``iterations = -1``.
    """
    block, state = np.empty(r.shape[1] * WIDTH), np.empty(2 * WIDTH)
    d, inverse, x = np.empty(k * WIDTH), np.empty(k * WIDTH), np.empty(k * WIDTH)
    g, z = np.empty(k * WIDTH), np.empty(k * WIDTH)
    step, y = np.empty(k * WIDTH), np.empty(k * WIDTH)
    zero, one, tolerance = broadcast(0.0), broadcast(1.0), broadcast(tol)
    for first in range(0, r.shape[0], WIDTH):
        load_block(r, first, block)
        _products(block, k, d)
        norm = zero
        for i in range(k):
            store(inverse, i, one / load(d, i))
            norm = norm + load(inverse, i)
        for i in range(k):
            store(x, i, load(inverse, i) / norm)
        _multiply(block, d, k, x, y)
        for i in range(k):
            store(g, i, zero - load(y, i))
        squares, largest = _precondition(inverse, norm, k, g, z)
        for i in range(k):
            store(step, i, load(z, i))
        active, spent = where_less(tolerance, largest, one, zero), one
        for _ in range(max_iter):
            if not total(active) > 0.0:
                break
            spent = spent + active
            _multiply(block, d, k, step, y)
            curvature = zero
            for i in range(k):
                curvature = multiply_add(load(step, i), load(y, i), curvature)
            length = where_less(zero, active, squares / curvature, zero)
            for i in range(k):
                store(x, i, multiply_add(length, load(step, i), load(x, i)))
                store(g, i, subtract_product(load(g, i), length, load(y, i)))
            last = squares
            squares, largest = _precondition(inverse, norm, k, g, z)
            active = where_less(tolerance, largest, active, zero)
            turn = squares / last
            for i in range(k):  # steps of rows that are done stay zero
                new = multiply_add(turn, load(step, i), load(z, i))
                store(step, i, where_less(zero, active, new, zero))
        store(state, 0, active)
        store(state, 1, spent)
        store_block(x, k, first, p)
        for s in range(min(WIDTH, r.shape[0] - first)):
            left = not state[s] == 0.0
            iterations[first + s] = -1 if left else int(state[WIDTH + s])
