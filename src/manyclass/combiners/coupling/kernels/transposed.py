"""Blocks of eight samples: read and check binary probabilities, write class probabilities.

A block is a transposed piece of an array: entry ``b`` holds column ``b`` of eight rows, one per
lane. Most of the time of a fast rule would go into this, number by number; so tiles of 8 x 8
numbers are transposed in registers.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import inlined, kernel
from manyclass.combiners.coupling.kernels.lanes import (
    WIDTH,
    broadcast,
    load,
    multiply_add,
    peek,
    poke,
    store,
    total,
    transpose_in,
    transpose_out,
    where_less,
)

LOWEST = 1e-7
"""Pairwise probabilities are clipped to [1e-7, 1 - 1e-7]: ``min_prob`` of LIBSVM."""


@kernel
def workspace(n):
    """Allocate ``n`` entries of eight numbers that start at cache lines."""
    memory = np.empty((n + 1) * WIDTH)
    shift = -(memory.ctypes.data // memory.itemsize) % WIDTH
    return memory[shift : shift + n * WIDTH]


@inlined
def ones_within(x):
    """Return 1 in the lanes where x is within [0, 1], else 0 (also for NaN)."""
    one, zero = broadcast(1.0), broadcast(0.0)
    below, above = broadcast(-5e-324), broadcast(1.0 + 2.3e-16)  # the neighbours of 0 and 1
    return where_less(below, x, where_less(x, above, one, zero), zero)


@kernel
def find_outside(r):
    """Return the flat index of the first entry that is NaN or outside [0, 1], or -1."""
    flat = r.reshape(-1)
    n_entries = flat.size // WIDTH
    within = broadcast(0.0)
    for e in range(n_entries):
        within = within + ones_within(load(flat, e))
    first = n_entries * WIDTH if total(within) == n_entries * WIDTH else 0
    for e in range(first, flat.size):
        if not (flat[e] >= 0.0 and flat[e] <= 1.0):
            return e
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


@inlined
def transpose(r, first, block):
    """Transpose eight rows from ``first`` on into ``block``.

    A block that runs over the end repeats the last row, so that a remainder
    takes the same path as everything else.
    """
    n, n_columns = r.shape
    if first + WIDTH > n or n_columns < WIDTH:
        _transpose_numbers(r, first, block)
        return
    at, last = first * n_columns, n_columns - WIDTH
    for b in range(0, last, WIDTH):
        transpose_in(r, at + b, n_columns, block, b)
    transpose_in(r, at + last, n_columns, block, last)


@kernel
def _transpose_numbers(r, first, block):
    n, n_columns = r.shape
    for s in range(WIDTH):
        row = min(first + s, n - 1)
        for b in range(n_columns):
            block[b * WIDTH + s] = r[row, b]


@inlined
def clipped(x):
    """Return x within [1e-7, 1 - 1e-7]."""
    lowest, highest = broadcast(LOWEST), broadcast(1.0 - LOWEST)
    x = where_less(x, lowest, lowest, x)
    return where_less(highest, x, highest, x)


@inlined
def load_block(r, first, block):
    """Transpose eight rows from ``first`` on, clipped, into ``block``."""
    transpose(r, first, block)
    for b in range(r.shape[1]):
        store(block, b, clipped(load(block, b)))


@inlined
def load_square(r, k, first, slack, whole, block):
    """Transpose the upper triangles of eight squares, in rows of k * k numbers, into ``block``.

    ``whole`` is workspace for the squares. Return False if the squares of ``r_ij + r_ji - 1`` add
    up to more than that of ``slack``.
    """
    transpose(r, first, whole)
    one, squares, q = broadcast(1.0), broadcast(0.0), 0
    for i in range(k):
        lower = i * k + i
        for j in range(i + 1, k):
            lower += k
            r_ij = load(whole, i * k + j)
            excess = r_ij + load(whole, lower) - one
            squares = multiply_add(excess, excess, squares)
            store(block, q, r_ij)
            q += 1
    return total(squares) <= slack * slack


@inlined
def store_block(x, k, first, p):
    """Write non-negative ``x``, scaled to sum to one, into eight rows of ``p``."""
    zero, norm = broadcast(0.0), broadcast(0.0)
    for i in range(k):
        x_i = load(x, i)
        x_i = where_less(x_i, zero, zero, x_i)
        norm = norm + x_i
        store(x, i, x_i)
    scale = broadcast(1.0) / norm
    for i in range(k):
        store(x, i, load(x, i) * scale)
    if first + WIDTH > p.shape[0] or k < WIDTH:
        _store_numbers(x, first, p)
        return
    at, last = first * k, k - WIDTH
    for i in range(0, last, WIDTH):
        transpose_out(x, i, p, at + i, k)
    transpose_out(x, last, p, at + last, k)


@inlined
def gather_sides(start, middle, members, x, plus, minus):
    """Write p(I_b) and p(J_b), the sums of ``x`` over the sides of every column."""
    for b in range(middle.shape[0]):
        side = broadcast(0.0)
        for m in range(start[b], middle[b]):
            side = side + load(x, members[m])
        store(plus, b, side)
        side = broadcast(0.0)
        for m in range(middle[b], start[b + 1]):
            side = side + load(x, members[m])
        store(minus, b, side)


@kernel
def _store_numbers(x, first, p):
    n, k = p.shape
    for s in range(min(WIDTH, n - first)):
        for i in range(k):
            p[first + s, i] = x[i * WIDTH + s]
