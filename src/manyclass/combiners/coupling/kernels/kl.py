"""The Kullback-Leibler rule for any code, eight samples at a time, one per lane.

Minimise sum_b n_b KL(r_b || q_b(p)) over the simplex, with q_b = p(I_b) / (p(I_b) + p(J_b)). The
solution may lie on the boundary of the simplex, where multiplicative updates like Zadrozny's
converge slowly. So we use an interior point method. A lane that has converged does not change any
more, so no row depends on the others. A code is passed as lists, as in ``by_row``.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import fused_kernel, inlined, kernel
from manyclass._lib.compiled.exponential import logarithm
from manyclass.combiners.coupling.kernels.factoring import solve_systems
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
from manyclass.combiners.coupling.kernels.transposed import (
    gather_sides,
    load_block,
    store_block,
    workspace,
)


@inlined
def _larger(x, y):
    return where_less(x, y, y, x)


@fused_kernel
def _take_logarithms(values):
    for e in range(values.size):
        values[e] = logarithm(values[e])


@inlined
def _objective(block, weights, x, k, plus, minus, logs):
    """Return sum n_b KL(r_b || q_b) up to a constant, + |x| - log|x|; and the barrier, sum -log x.

    The first term does not change along rays; |x| - log|x| picks |x| = 1 and makes
    codes without zeros convex in x. Weights sum to one. ``logs`` is workspace.
    """
    one, tiny, n_columns = broadcast(1.0), broadcast(1e-300), weights.size
    size = broadcast(0.0)
    for b in range(n_columns):
        inverse = one / (load(plus, b) + load(minus, b))
        store(logs, 2 * b, _larger(tiny, load(plus, b) * inverse))
        store(logs, 2 * b + 1, _larger(tiny, load(minus, b) * inverse))
    for i in range(k):
        store(logs, 2 * n_columns + i, _larger(tiny, load(x, i)))
        size = size + load(x, i)
    store(logs, 2 * n_columns + k, size)
    _take_logarithms(logs)
    value, barrier = size - load(logs, 2 * n_columns + k), broadcast(0.0)
    for b in range(n_columns):
        r = load(block, b)
        mean = multiply_add(r, load(logs, 2 * b), (one - r) * load(logs, 2 * b + 1))
        value = subtract_product(value, broadcast(weights[b]), mean)
    for i in range(k):
        barrier = barrier - load(logs, 2 * n_columns + i)
    return value, barrier


@inlined
def _derivatives(block, weights, start, middle, members, rows, k, x, plus, minus, g, scale, a, d):
    """Write the gradient without barrier, the sums of its absolute terms, and the Hessian.

    Its entry (i, j), i < j, is at ``rows[i] + j`` of ``a``; the diagonal is ``d``.
    """
    one, size = broadcast(1.0), broadcast(0.0)
    for i in range(k):
        size = size + load(x, i)
    inverse = one / size
    for i in range(k):
        store(g, i, one - inverse)
        store(scale, i, one)
        store(d, i, inverse * inverse)
    for e in range(k * (k - 1) // 2):
        store(a, e, inverse * inverse)
    for b in range(weights.size):
        w, r = broadcast(weights[b]), load(block, b)
        up, down = one / load(plus, b), one / load(minus, b)
        both = one / (load(plus, b) + load(minus, b))
        shared, cross = w * both, w * both * both
        gain, loss = w * r * up, w * (one - r) * down
        _add_side(members, start[b], middle[b], shared - gain, shared, g, scale)
        _add_side(members, middle[b], start[b + 1], shared - loss, shared, g, scale)
        add_square(members, start[b], middle[b], rows, gain * up - cross, a, d)
        add_square(members, middle[b], start[b + 1], rows, loss * down - cross, a, d)
        add_cross(members, start[b], middle[b], start[b + 1], rows, cross, a)


@inlined
def _add_side(members, first, last, slope, shared, g, scale):
    for m in range(first, last):
        store(g, members[m], load(g, members[m]) + slope)
        store(scale, members[m], load(scale, members[m]) + shared)


@inlined
def add_square(members, first, last, rows, curvature, a, d):
    """Add to the Hessian's entries among the classes of a side, which are in order."""
    for m in range(first, last):
        i = members[m]
        store(d, i, load(d, i) + curvature)
        for o in range(m + 1, last):
            at = rows[i] + members[o]
            store(a, at, load(a, at) + curvature)


@inlined
def add_cross(members, first, middle, last, rows, curvature, a):
    """Subtract from the entries between the classes of both sides."""
    for m in range(first, middle):
        i = members[m]
        for o in range(middle, last):
            j = members[o]
            at = rows[min(i, j)] + max(i, j)
            store(a, at, load(a, at) - curvature)


@inlined
def _solve_damped(a, d, z, x, k, ridge, active, factors, pivots, right, dx):
    """Solve (H + diag(z / x) + damping diag(1 / x^2)) dx = right; the least damping that serves.

    Codes with zeros are not convex. Damping by 1 / x^2 is damping in log x, where the objective is
    tame: classes of tiny probability keep moving. Tries none, then a quarter of the last ``ridge``,
    then more; returns the ridge to start from next time.
    """
    zero, one, four = broadcast(0.0), broadcast(1.0), broadcast(4.0)
    quarter = broadcast(0.25) * ridge
    damping, next_try = zero, _larger(broadcast(1e-10), quarter)
    for _ in range(1100):  # damping grows to infinity before
        for e in range(k * (k - 1) // 2):
            store(factors, e, load(a, e))
        for i in range(k):
            inverse = one / load(x, i)
            lift = inverse * multiply_add(damping, inverse, load(z, i))
            store(pivots, i, load(d, i) + lift)
            store(dx, i, load(right, i))
        solve_systems(factors, pivots, dx, k)
        failed = zero
        for i in range(k):
            failed = where_less(zero, load(pivots, i), failed, active)
        failed = where_less(damping, broadcast(1e300), failed, zero)
        if not total(failed) > 0.0:
            break
        damping = where_less(zero, failed, next_try, damping)
        next_try = where_less(zero, failed, four * next_try, next_try)
    return where_less(zero, damping, damping, quarter)


@inlined
def _step_to_boundary(x, dx, k, fraction):
    """The largest step in (0, 1] that keeps x + step * dx above (1 - fraction) x."""
    zero, shortest = broadcast(0.0), broadcast(1.0)
    for i in range(k):
        change = load(dx, i)
        limit = zero - fraction * load(x, i) / change
        limit = where_less(change, zero, limit, broadcast(1.0))
        shortest = where_less(limit, shortest, limit, shortest)
    return shortest


@inlined
def _lower_mu(x, z, k, residual, least, mu):
    """Lower the barrier parameter superlinearly, while the point is close to the central path."""
    zero, one, ten = broadcast(0.0), broadcast(1.0), broadcast(10.0)
    while True:
        gap = zero
        for i in range(k):
            gap = _larger(gap, absolute(subtract_product(mu, load(x, i), load(z, i))))
        close = where_less(residual, multiply_add(ten, mu, broadcast(1e-13)), one, zero)
        close = where_less(gap, ten * mu, close, zero)
        close = where_less(least, mu, close, zero)
        if not total(close) > 0.0:
            return mu
        lower, slower = mu * square_root(mu), broadcast(0.2) * mu
        lower = _larger(least, where_less(lower, slower, lower, slower))
        mu = where_less(zero, close, lower, mu)


@kernel
def _minimise(block, weights, start, middle, members, rows, tol, max_iter, best, x, state):
    """Primal-dual interior point method from ``x``.

    ``state`` holds 1 in the lanes that need no further start, and the least objective so far, which
    is that of ``best``. A lane that comes close to it from above has found the same minimum again,
    and stops. Writes the objective, the number of steps and 1 where a lane has not converged.
    """
    k, n_columns = x.size // WIDTH, weights.size
    g, scale, dx, dz, z = workspace(k), workspace(k), workspace(k), workspace(k), workspace(k)
    trial, right, pivots, d = workspace(k), workspace(k), workspace(k), workspace(k)
    plus, minus, logs = workspace(n_columns), workspace(n_columns), workspace(2 * n_columns + k + 1)
    a, factors = workspace(k * (k - 1) // 2), workspace(k * (k - 1) // 2)
    zero, one, half = broadcast(0.0), broadcast(1.0), broadcast(0.5)
    # With the last mu, even a class whose probability and multiplier are both zero is within
    # sqrt(mu) = 1e-10 of the optimum.
    last_mu, wide, narrow = broadcast(1e-20), broadcast(1e10), broadcast(1e-10)
    same = broadcast(1e-4)
    mu, ridge, spent = broadcast(1e-2 / k), zero, zero
    active, least = one - load(state, 0), load(state, 1)
    for i in range(k):
        store(z, i, mu / load(x, i))
    gather_sides(start, middle, members, x, plus, minus)
    value, barrier = _objective(block, weights, x, k, plus, minus, logs)
    for _ in range(max_iter):
        if not total(active) > 0.0:
            break
        spent = spent + active
        _derivatives(
            block, weights, start, middle, members, rows, k, x, plus, minus, g, scale, a, d
        )
        residual = zero
        for i in range(k):
            error = absolute(load(g, i) - load(z, i)) / (load(scale, i) + load(z, i))
            residual = _larger(residual, error)
        mu = _lower_mu(x, z, k, residual, last_mu, mu)
        for i in range(k):
            store(right, i, mu / load(x, i) - load(g, i))
        ridge = _solve_damped(a, d, z, x, k, ridge, active, factors, pivots, right, dx)
        slope, moved = zero, zero
        for i in range(k):
            slope = subtract_product(slope, load(right, i), load(dx, i))
            moved = _larger(moved, absolute(load(dx, i)))
            pull = mu - load(z, i) * load(dx, i)
            store(dz, i, pull / load(x, i) - load(z, i))
        fraction = _larger(broadcast(0.99), one - _larger(mu, broadcast(1e-12)))
        length = _step_to_boundary(x, dx, k, fraction)
        before = multiply_add(mu, barrier, value)
        # Differences below rounding do not speak against a step.
        slack = broadcast(1e-13) * (one + absolute(before))
        accepted = one - active
        while True:
            for i in range(k):
                there = multiply_add(length, load(dx, i), load(x, i))
                store(trial, i, where_less(zero, active, there, load(x, i)))
            gather_sides(start, middle, members, trial, plus, minus)
            new, new_barrier = _objective(block, weights, trial, k, plus, minus, logs)
            fall = multiply_add(broadcast(1e-4) * length, slope, before + slack)
            accepted = where_less(fall, multiply_add(mu, new_barrier, new), accepted, one)
            accepted = where_less(length, broadcast(1e-12), one, accepted)
            if not total(one - accepted) > 0.0:
                break
            length = where_less(accepted, one, length * half, length)
        value, barrier, far = new, new_barrier, zero
        for i in range(k):
            store(x, i, load(trial, i))
            far = _larger(far, absolute(load(x, i) - load(best, i)))
        done = where_less(last_mu, mu, zero, where_less(moved, broadcast(tol), one, zero))
        done = where_less(far, same, where_less(least, value, one, done), done)
        length = _step_to_boundary(z, dz, k, fraction)
        for i in range(k):
            # Stay in a wide band around the central path, as the convergence theory requires.
            centre = mu / load(x, i)
            moved = multiply_add(length, load(dz, i), load(z, i))
            moved = _larger(moved, narrow * centre)
            store(z, i, where_less(moved, wide * centre, moved, wide * centre))
        active = where_less(zero, done, zero, active)
    store(state, 0, value)
    store(state, 1, spent)
    store(state, 2, active)


@kernel
def couple_kl(
    r, weights, start, middle, members, n_starts, more, tol, max_iter, p, iterations, converged
):
    """Couple eight rows at a time; keep the best minimum of several starts.

    The starts: the non-iterative estimate, the uniform distribution, the
    non-iterative estimate sharpened, then the rows of ``more``.
    """
    n, k = p.shape
    n_columns = weights.size
    rows = np.empty(k, dtype=np.int64)
    for i in range(k):
        rows[i] = i * (2 * k - i - 1) // 2 - i - 1
    block, estimate, x, best = workspace(n_columns), workspace(k), workspace(k), workspace(k)
    state, logs = workspace(3), workspace(2 * n_columns)
    zero, one = broadcast(0.0), broadcast(1.0)
    lowest, spent, left = zero, zero, zero
    for first in range(0, n, WIDTH):
        load_block(r, first, block)
        for b in range(n_columns):
            store(logs, 2 * b, load(block, b))
            store(logs, 2 * b + 1, one - load(block, b))
        _take_logarithms(logs)
        lowest = one  # the objective where q_b = r_b in every column
        for b in range(n_columns):
            value = load(block, b) * load(logs, 2 * b)
            value = multiply_add(one - load(block, b), load(logs, 2 * b + 1), value)
            lowest = subtract_product(lowest, broadcast(weights[b]), value)
        _estimate(block, start, middle, members, k, estimate)
        for i in range(k):  # stays where no start leads to a finite objective
            store(best, i, load(estimate, i))
        least, spent, left = broadcast(np.inf), zero, one
        consistent = zero
        for s in range(n_starts):
            norm = zero
            for i in range(k):
                x_i = load(estimate, i)
                if s == 1:
                    x_i = one
                elif s == 2:
                    x_i = x_i * x_i * x_i * x_i
                elif s > 2:
                    x_i = broadcast(more[s - 3, i])
                store(x, i, x_i)
                norm = norm + x_i
            for i in range(k):
                store(x, i, load(x, i) / norm)
            store(state, 0, consistent)
            store(state, 1, least)
            _minimise(block, weights, start, middle, members, rows, tol, max_iter, best, x, state)
            value = where_less(consistent, one, load(state, 0), broadcast(np.inf))
            spent = spent + load(state, 1)
            for i in range(k):
                store(best, i, where_less(value, least, load(x, i), load(best, i)))
            left = where_less(value, least, load(state, 2), left)
            least = where_less(value, least, value, least)
            consistent = where_less(least - lowest, broadcast(1e-14), one, zero)
            if not total(one - consistent) > 0.0:  # there is nothing below
                break
        store(state, 0, left)
        store(state, 1, spent)
        store_block(best, k, first, p)
        for s in range(min(WIDTH, n - first)):
            converged[first + s] = state[s] == 0.0
            iterations[first + s] = int(state[WIDTH + s])


@inlined
def _estimate(block, start, middle, members, k, x):
    """Write Zadrozny's non-iterative estimate: sums of r_b over B+, of 1 - r_b over B-."""
    norm = broadcast(0.0)
    for i in range(k):
        store(x, i, norm)
    for b in range(middle.shape[0]):
        r = load(block, b)
        for m in range(start[b], middle[b]):
            store(x, members[m], load(x, members[m]) + r)
        for m in range(middle[b], start[b + 1]):
            store(x, members[m], load(x, members[m]) + (broadcast(1.0) - r))
    for i in range(k):
        norm = norm + load(x, i)
    for i in range(k):
        store(x, i, load(x, i) / norm)
