"""One-vs-rest codes: one multiplier gives every class its probability, O(k) a row.

There I_b is class b and p(J_b) = 1 - p_b. So both rules minimise a sum of functions of one p_b
each, over sum p = 1: given the multiplier of this constraint, each p_b solves an equation of its
own. Eight samples at a time, one per lane; ``r`` has one column per class, in order.
"""

from __future__ import annotations

from manyclass._lib.compiled import inlined, kernel
from manyclass.combiners.coupling.kernels.lanes import (
    WIDTH,
    absolute,
    broadcast,
    load,
    multiply_add,
    square_root,
    store,
    subtract_product,
    total,
    where_less,
)
from manyclass.combiners.coupling.kernels.transposed import load_block, store_block, workspace


@inlined
def _root(n, r, multiplier):
    """Return the root p in (0, 1) of l p^2 - (n + l) p + n r = 0, and -dp/dl, l the multiplier.

    This is n (p - r) = -l p (1 - p). Of the two forms of the root, the one that adds is accurate.
    """
    b = n + multiplier
    nr = n * r
    root = square_root(multiply_add(b, b, broadcast(-4.0) * multiplier * nr))
    zero = broadcast(0.0)
    p = where_less(zero, b, (nr + nr) / (b + root), (b - root) / (multiplier + multiplier))
    return p, subtract_product(p, p, p) / root


@inlined
def _probabilities(block, weights, k, multiplier, x):
    """Write p of every class; return its sum and minus the derivative of that."""
    norm, slope = broadcast(0.0), broadcast(0.0)
    for i in range(k):
        p, falls = _root(broadcast(weights[i]), load(block, i), multiplier)
        store(x, i, p)
        norm, slope = norm + p, slope + falls
    return norm, slope


@kernel
def couple_rest_kl(r, weights, max_iter, p, iterations, converged):
    """Minimise sum_b n_b KL(r_b || p_b) over sum p = 1 by a search for the multiplier.

    The sum of p falls as the multiplier grows, about like its inverse: steps are Newton's on the
    inverse of the sum. A step out of the interval that holds the answer halves it instead. The
    interval to begin with: p <= 2 n r / (n + l) for l > 0, and 1 - p is bounded alike for l < 0.
    """
    n, k = p.shape
    largest = weights.max()
    block, x, state = workspace(k), workspace(k), workspace(2)
    zero, one, half = broadcast(0.0), broadcast(1.0), broadcast(0.5)
    enough = broadcast(1e-15 * k)  # rounding errors of the sum
    for first in range(0, n, WIDTH):
        load_block(r, first, block)
        low, high = broadcast(-4.0 * largest), broadcast(2.0 * k * largest)
        multiplier, active, spent = zero, one, zero
        for _ in range(max_iter):
            norm, slope = _probabilities(block, weights, k, multiplier, x)
            spent = spent + active
            excess = norm - one
            low = where_less(zero, excess, multiplier, low)
            high = where_less(excess, zero, multiplier, high)
            middle = half * (low + high)
            new = multiplier + norm * excess / slope
            new = where_less(low, new, where_less(new, high, new, middle), middle)
            size = absolute(new - multiplier)
            active = where_less(enough, absolute(excess), active, zero)
            active = where_less(broadcast(1e-15) * absolute(multiplier), size, active, zero)
            multiplier = where_less(zero, active, new, multiplier)
            if not total(active) > 0.0:
                break
        store(state, 0, active)
        store(state, 1, spent)
        store_block(x, k, first, p)
        for s in range(min(WIDTH, n - first)):
            converged[first + s] = state[s] == 0.0
            iterations[first + s] = int(state[WIDTH + s])


@kernel
def couple_rest_squares(r, inverse, p, iterations):
    """Minimise sum_b n_b (p_b - r_b)^2 over the simplex: p_b = max(0, r_b - l / n_b).

    ``inverse`` is 1 / n_b. Begin with all classes and leave out those of p_b < 0 until there are
    none: none of them comes back (Michelot 1986).
    """
    n, k = p.shape
    block, x, state = workspace(k), workspace(k), workspace(1)
    zero, one = broadcast(0.0), broadcast(1.0)
    for first in range(0, n, WIDTH):
        load_block(r, first, block)
        for i in range(k):
            store(x, i, one)
        multiplier, active, spent = zero, one, zero
        while total(active) > 0.0:
            spent = spent + active
            excess, free = zero - one, zero
            for i in range(k):
                takes_part = load(x, i)
                excess = multiply_add(load(block, i), takes_part, excess)
                free = multiply_add(broadcast(inverse[i]), takes_part, free)
            multiplier = excess / free
            active = zero
            for i in range(k):
                p_i = subtract_product(load(block, i), multiplier, broadcast(inverse[i]))
                leaves = where_less(p_i, zero, load(x, i), zero)
                store(x, i, load(x, i) - leaves)
                active = where_less(zero, leaves, one, active)
        for i in range(k):
            p_i = subtract_product(load(block, i), multiplier, broadcast(inverse[i]))
            store(x, i, where_less(zero, load(x, i), p_i, zero))
        store(state, 0, spent)
        store_block(x, k, first, p)
        for s in range(min(WIDTH, n - first)):
            iterations[first + s] = int(state[s])
