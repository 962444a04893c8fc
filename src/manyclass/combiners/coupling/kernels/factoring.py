"""Solve eight systems at a time, one per lane: symmetric, positive definite, of the same size.

Matrices are held as pairs are: ``a`` has the entries above the diagonal row by row, (0, 1), (0, 2),
..., (1, 2), ..., and ``d`` the diagonal. The factorisation is U' D^-1 U, without square roots.
"""

from __future__ import annotations

from manyclass._lib.compiled import inlined
from manyclass.combiners.coupling.kernels.lanes import (
    broadcast,
    load,
    multiply_add,
    store,
    subtract_product,
)


@inlined
def solve_systems(a, d, x, k):
    """Solve with the right-hand sides ``x``, in place. Of ``d`` the inverse of D remains.

    Rows are eliminated in pairs, from the rows below in pairs: a number that is loaded serves two
    rows, and one that is stored has been updated twice.
    """
    one = broadcast(1.0)
    row = -1  # entry (i, j) is at row + j, with the row of i
    for c in range(0, k - 1, 2):
        next_row = row + k - c - 2
        d0, u01 = one / load(d, c), load(a, row + c + 1)
        l = u01 * d0
        d1 = one / subtract_product(load(d, c + 1), l, u01)
        x0 = load(x, c)
        x1 = subtract_product(load(x, c + 1), l, x0)
        store(d, c, d0)
        store(d, c + 1, d1)
        store(x, c + 1, x1)
        for j in range(c + 2, k):
            u1 = subtract_product(load(a, next_row + j), l, load(a, row + j))
            store(a, next_row + j, u1)
        _eliminate_below(a, d, x, k, c, row, next_row)
        row = next_row + k - c - 3
    if k % 2:
        store(d, k - 1, one / load(d, k - 1))
    _substitute(a, d, x, k)


@inlined
def _eliminate_below(a, d, x, k, c, row, next_row):
    """Subtract multiples of rows c and c + 1, which are finished, from all rows below."""
    d0, d1, x0, x1 = load(d, c), load(d, c + 1), load(x, c), load(x, c + 1)
    upper = next_row + k - c - 3
    for i in range(c + 2, k - 1, 2):
        lower = upper + k - i - 2
        u0, u1, v0, v1 = (
            load(a, row + i), load(a, next_row + i), load(a, row + i + 1), load(a, next_row + i + 1)
        )  # fmt: skip
        l0, l1, m0, m1 = u0 * d0, u1 * d1, v0 * d0, v1 * d1
        _update(d, i, l0, u0, l1, u1)
        _update(d, i + 1, m0, v0, m1, v1)
        _update(x, i, l0, x0, l1, x1)
        _update(x, i + 1, m0, x0, m1, x1)
        _update(a, upper + i + 1, l0, v0, l1, v1)
        for j in range(i + 2, k):
            u0, u1 = load(a, row + j), load(a, next_row + j)
            _update(a, upper + j, l0, u0, l1, u1)
            _update(a, lower + j, m0, u0, m1, u1)
        upper = lower + k - i - 3
    if (k - c) % 2:
        u0, u1 = load(a, row + k - 1), load(a, next_row + k - 1)
        _update(d, k - 1, u0 * d0, u0, u1 * d1, u1)
        _update(x, k - 1, u0 * d0, x0, u1 * d1, x1)


@inlined
def _update(a, i, l0, u0, l1, u1):
    store(a, i, subtract_product(subtract_product(load(a, i), l0, u0), l1, u1))


@inlined
def _substitute(a, d, x, k):
    """Solve U x = y, given D^-1; two rows at a time, each in two sums that do not wait."""
    zero = broadcast(0.0)
    i, row = k - 1, k * (k - 1) // 2 - k
    if k % 2:
        store(x, i, load(x, i) * load(d, i))
        i -= 1
    while i > 0:
        upper = row - (k - i - 1)
        y0, y1, z0, z1 = load(x, i - 1), load(x, i), zero, zero
        for j in range(i + 1, k - 1, 2):
            x0, x1 = load(x, j), load(x, j + 1)
            y0, z0 = (
                subtract_product(y0, load(a, upper + j), x0),
                multiply_add(load(a, upper + j + 1), x1, z0),
            )
            y1, z1 = (
                subtract_product(y1, load(a, row + j), x0),
                multiply_add(load(a, row + j + 1), x1, z1),
            )
        if (k - i) % 2 == 0:
            x0 = load(x, k - 1)
            y0 = subtract_product(y0, load(a, upper + k - 1), x0)
            y1 = subtract_product(y1, load(a, row + k - 1), x0)
        x1 = (y1 - z1) * load(d, i)
        store(x, i, x1)
        y0 = subtract_product(y0 - z0, load(a, upper + i), x1)
        store(x, i - 1, y0 * load(d, i - 1))
        row = upper - (k - i)
        i -= 2
