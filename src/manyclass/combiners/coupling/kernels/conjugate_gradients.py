"""Kernels by conjugate gradients: WLW2 for many classes, and least squares with an entropy penalty.

Wu, Lin & Weng's second rule: a factorisation takes k^3/6 operations a row, an iteration k^2. With
Q's diagonal as preconditioner the spectrum is clustered around 1 for any r: each class meets all
others, and ``(r_ji x_i - r_ij x_j)^2 <= 2 (r_ji^2 x_i^2 + r_ij^2 x_j^2)`` bounds it by 2. A dozen
iterations reach rounding.

Least squares with an entropy penalty, for codes that do not determine p: minimise
``1/2 sum_b w_b (a_b'p)^2 + t sum_i p_i log p_i`` over the simplex, where ``a_b`` is ``1 - r_b`` on
I_b and ``-r_b`` on J_b: convex, with one minimum. It is ``p = softmax(A'v)`` for the v that
minimises ``log sum_i exp(a_i'v) + t/2 sum_b v_b^2 / w_b``, which has as many unknowns as there are
columns, for any number of classes. It is found by Newton's method, whose systems are solved by
conjugate gradients: a product with A takes one operation per nonzero entry of the code.

Kernels work on eight samples at a time, one per lane, as in ``by_block``. A code is passed as
lists, as in ``by_row``.
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
    block, state = workspace(r.shape[1]), workspace(2)
    d, inverse, x, g = workspace(k), workspace(k), workspace(k), workspace(k)
    z, step, y = workspace(k), workspace(k), workspace(k)
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


@kernel
def _spread(block, start, middle, members, k, v, e):
    """Write A'v to ``e``."""
    zero = broadcast(0.0)
    for i in range(k):
        store(e, i, zero)
    for b in range(middle.shape[0]):
        v_b = load(v, b)
        down = zero - v_b * load(block, b)
        up = v_b + down
        for m in range(start[b], middle[b]):
            store(e, members[m], load(e, members[m]) + up)
        for m in range(middle[b], start[b + 1]):
            store(e, members[m], load(e, members[m]) + down)


@kernel
def _softmax(e, k, p, scratch):
    """Write the soft-max of ``e``; returns the logarithm of its denominator, one per lane."""
    for s in range(WIDTH):
        top = e[s]
        for i in range(1, k):
            top = max(top, e[i * WIDTH + s])
        norm = 0.0
        for i in range(k):
            p[i * WIDTH + s] = np.exp(e[i * WIDTH + s] - top)
            norm += p[i * WIDTH + s]
        for i in range(k):
            p[i * WIDTH + s] /= norm
        scratch[s] = top + np.log(norm)
    return load(scratch, 0)


@kernel
def _value(v, ridge, n_columns, log_norm):
    """The objective at ``v``; ``ridge`` is t / w_b."""
    value = broadcast(0.0)
    for b in range(n_columns):
        v_b = load(v, b)
        value = multiply_add(v_b * v_b, broadcast(0.5 * ridge[b]), value)
    return value + log_norm


@kernel
def _slopes(block, v, ridge, plus, minus, n_columns, g, diagonal):
    """Write the negative gradient and the Hessian's diagonal; returns the largest error of v.

    The Hessian is at least diag(ridge), so that no v_b is further off than g_b / ridge_b.
    """
    one, largest = broadcast(1.0), broadcast(0.0)
    for b in range(n_columns):
        r, pull = load(block, b), broadcast(ridge[b])
        up, down = (one - r) * load(plus, b), r * load(minus, b)
        mean = up - down
        g_b = broadcast(0.0) - multiply_add(pull, load(v, b), mean)
        spread = (one - r) * up + r * down - mean * mean
        store(g, b, g_b)
        store(diagonal, b, where_less(broadcast(0.0), spread, spread, broadcast(0.0)) + pull)
        size = absolute(g_b) / pull
        largest = where_less(largest, size, size, largest)
    return largest


@kernel
def _curve(block, start, middle, members, ridge, k, p, v, e, plus, minus, out):
    """Write the Hessian times ``v``: A (diag(p) - pp') A'v + ridge v."""
    n_columns = middle.shape[0]
    _spread(block, start, middle, members, k, v, e)
    mean = broadcast(0.0)
    for i in range(k):
        mean = multiply_add(load(p, i), load(e, i), mean)
    for i in range(k):
        store(e, i, load(p, i) * (load(e, i) - mean))
    gather_sides(start, middle, members, e, plus, minus)
    for b in range(n_columns):
        both = load(plus, b) + load(minus, b)
        product = subtract_product(load(plus, b), load(block, b), both)
        store(out, b, multiply_add(broadcast(ridge[b]), load(v, b), product))


@kernel
def _newton_step(
    block, start, middle, members, ridge, k, p, active, g, diagonal, e, plus, minus, work, step
):
    """Solve Hessian x step = g by conjugate gradients; overwrites ``g``. Returns g'step.

    The residual falls to the share of g that g itself has come down to, so that Newton's method
    converges quadratically; more accuracy would take time only. ``work`` holds three vectors.
    """
    n_columns = middle.shape[0]
    zero, tenth = broadcast(0.0), broadcast(0.1)
    z, turned, curved = work[0], work[1], work[2]
    squares, size = zero, zero
    for b in range(n_columns):
        g_b = load(g, b)
        z_b = g_b / load(diagonal, b)
        store(step, b, zero)
        store(turned, b, where_less(zero, active, z_b, zero))
        squares = multiply_add(g_b, z_b, squares)
        size = multiply_add(g_b, g_b, size)
    share = where_less(size, tenth, size, tenth)  # of the squared norm
    goal, slope = squares * share, zero
    going = where_less(goal, squares, active, zero)
    for _ in range(200):  # a limit of the conjugate gradients; an inexact step still descends
        if not total(going) > 0.0:
            break
        _curve(block, start, middle, members, ridge, k, p, turned, e, plus, minus, curved)
        curvature = zero
        for b in range(n_columns):
            curvature = multiply_add(load(turned, b), load(curved, b), curvature)
        length = where_less(zero, going, squares / curvature, zero)
        slope = multiply_add(length, squares, slope)  # g'step grows by as much
        last, squares_now = squares, zero
        for b in range(n_columns):
            store(step, b, multiply_add(length, load(turned, b), load(step, b)))
            g_b = subtract_product(load(g, b), length, load(curved, b))
            z_b = g_b / load(diagonal, b)
            store(g, b, g_b)
            store(z, b, z_b)
            squares_now = multiply_add(g_b, z_b, squares_now)
        squares = squares_now
        going = where_less(goal, squares, going, zero)
        turn = squares / last
        for b in range(n_columns):
            new = multiply_add(turn, load(turned, b), load(z, b))
            store(turned, b, where_less(zero, going, new, zero))
    return slope


@kernel
def couple_even(r, start, middle, members, ridge, tol, max_iter, p, iterations, converged):
    """Couple by penalised least squares; ``ridge`` is t / w_b of every column."""
    n, n_columns = r.shape
    k = p.shape[1]
    block, state = workspace(n_columns), workspace(2)
    e, x, v, trial = workspace(k), workspace(k), workspace(n_columns), workspace(n_columns)
    step, g, diagonal = workspace(n_columns), workspace(n_columns), workspace(n_columns)
    plus, minus = workspace(n_columns), workspace(n_columns)
    work = np.empty((3, n_columns * WIDTH))
    zero, one, half = broadcast(0.0), broadcast(1.0), broadcast(0.5)
    tolerance, little = broadcast(tol), broadcast(1e-4)
    for first in range(0, n, WIDTH):
        load_block(r, first, block)
        for b in range(n_columns):
            store(v, b, zero)
        for i in range(k):
            store(e, i, zero)
        value = _softmax(e, k, x, state)
        active, spent = one, zero
        for _ in range(max_iter):
            gather_sides(start, middle, members, x, plus, minus)
            error = _slopes(block, v, ridge, plus, minus, n_columns, g, diagonal)
            active = where_less(tolerance, error, active, zero)
            if not total(active) > 0.0:
                break
            spent = spent + active
            slope = _newton_step(
                block, start, middle, members, ridge, k, x, active,
                g, diagonal, e, plus, minus, work, step,
            )  # fmt: skip
            # Accept differences below rounding errors.
            slack = broadcast(1e-14) * (one + absolute(value))
            length, accepted = one, where_less(zero, active, zero, one)
            for _ in range(30):  # 2^-30: rounding errors hide the effect of shorter steps
                for b in range(n_columns):
                    store(trial, b, multiply_add(length, load(step, b), load(v, b)))
                _spread(block, start, middle, members, k, trial, e)
                log_norm = _softmax(e, k, x, state)
                new = _value(trial, ridge, n_columns, log_norm)
                fall = value - little * length * slope + slack
                accepted = where_less(fall, new, accepted, one)
                if not total(one - accepted) > 0.0:
                    break
                length = where_less(accepted, one, length * half, length)
            value = where_less(zero, active, new, value)
            for b in range(n_columns):
                store(v, b, load(trial, b))
        store(state, 0, active)
        store(state, 1, spent)
        for s in range(min(WIDTH, n - first)):
            converged[first + s] = state[s] == 0.0
            iterations[first + s] = max(1, int(state[WIDTH + s]))
            norm = 0.0
            for i in range(k):
                norm += x[i * WIDTH + s]
            for i in range(k):
                p[first + s, i] = x[i * WIDTH + s] / norm
