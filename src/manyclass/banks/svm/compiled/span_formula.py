"""Squared spans of a machine's support vectors, in compiled code.

From one fit, f without sample p is taken at x_p as f(x_p) - y_p alpha_p S_p^2 (V. Vapnik, O.
Chapelle, "Bounds on error expectation for support vector machines", Neural Computation 12, 2000).
S_p is the distance of x_p, in feature space, from the affine span of the free support vectors.

A = K_FF + ridge + tau 11' replaces the kernel of the free ones, and the origin of feature space is
their mean. Neither changes distances from their span, but both reduce rounding. With u = A^-1 1
and k = K_Fp,

    S_p^2 = 1 / ((A^-1)_pp - u_p^2 / 1'u)                          for p in F,
    S_p^2 = K_pp - k' A^-1 k + (u'k - 1)^2 / 1'u - tau             for p at the bound.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, part
from manyclass.banks.svm.compiled.kernel_rows import load_row, touch

# A choice, relative to the kernel's diagonal, since duplicates make the kernel singular. It leaves
# squared spans six digits; see ROUNDING.
RIDGE = 1e-10
# A squared span may be negative by this much, relative to K(x, x) or its mean. Duplicates give A
# a condition number of 1 / RIDGE and more, hence errors of 1e-6; kernels that are not positive
# definite give squared spans of order -1.
ROUNDING = 1e-4
# A kernel that is zero has the size of its square roots' rounding: squares of inverses stay finite.
LEAST_SIZE = 1e-100
# A choice: rows of the kernel between samples at their bound and the free ones, of one product.
ROWS_AT_ONCE = 256


@kernel
def squared_spans(rows, free, positive):
    """Return S_p^2 of all support vectors, how many were negative, and the drag.

    ``rows`` are those of their kernel matrix; see :func:`kernel_rows`. Each side has some of them.
    Negative squares are set to 0. The drag is how much the scores of samples at the bound would
    change, on average, if one of them with coefficient 1 is left out; 0 if they are few.

    Besides rows, matrices of the free support vectors are held, not of all of them.
    """
    n_free = 0
    for p in range(free.size):
        n_free += free[p]
    inside, outside = np.empty(n_free, np.int64), np.empty(free.size - n_free, np.int64)
    i = 0
    for p in range(free.size):
        if free[p]:
            inside[i] = p
            i += 1
        else:
            outside[p - i] = p
    spans, drag = np.zeros(free.size), 0.0
    if inside.size < 2:
        _set_few(rows, inside, outside, positive, spans)
    else:
        drag = _set_spans(rows, inside, outside, spans)
    mean_size = 0.0
    for p in range(free.size):
        mean_size += abs(rows.diagonal[p]) / free.size
    n_negative = 0
    for p in range(free.size):
        if not spans[p] >= -ROUNDING * max(abs(rows.diagonal[p]), mean_size) - LEAST_SIZE:
            n_negative += 1
        if not spans[p] > 0.0:
            spans[p] = 0.0
    return spans, n_negative, drag


@part
def _set_few(rows, inside, outside, positive, spans):
    """Set the squared spans where at most one support vector is free.

    If no other is free, a coefficient of the other side has to vanish with that of p, since
    their sum stays zero. If it is that of the nearest q there, S_p^2 is half the squared distance
    of p and q, which for rbf is K_pp - K_pq. K_pp alone would have no meaning: a constant added to
    the kernel changes no machine.
    """
    lone = inside if inside.size == 1 else outside
    kept, slot_of, used = rows.kept, rows.slot_of, rows.used
    for p in lone:
        if slot_of[p] < 0:
            load_row(rows, p)
        nearest, K_p = -np.inf, kept[touch(slot_of, used, p)]
        for q in range(positive.size):
            if positive[q] != positive[p]:
                nearest = max(nearest, K_p[q] - 0.5 * rows.diagonal[q])
        spans[p] = 0.5 * rows.diagonal[p] - nearest
    if inside.size == 1:
        i = inside[0]
        if slot_of[i] < 0:
            load_row(rows, i)
        K_i = kept[touch(slot_of, used, i)]
        for p in outside:
            spans[p] = rows.diagonal[p] - 2.0 * K_i[p] + rows.diagonal[i]


@part
def _set_spans(rows, inside, outside, spans):
    """Set the squared spans where several support vectors are free; return the drag."""
    f = inside.size
    A, means, centre = np.empty((f, f)), np.zeros(f), 0.0
    kept, slot_of, used = rows.kept, rows.slot_of, rows.used
    for i in range(f):
        if slot_of[inside[i]] < 0:
            load_row(rows, inside[i])
        K_i = kept[touch(slot_of, used, inside[i])]
        for j in range(f):
            A[i, j] = K_i[inside[j]]
            means[i] += A[i, j] / f
        centre += means[i] / f
    tau = _centre(A, means, centre)
    A = _inverse(A)
    u, total = np.zeros(f), 0.0
    for i in range(f):
        for j in range(f):
            u[i] += A[i, j]
        total += u[i]
    for i in range(f):
        spans[inside[i]] = 1.0 / (A[i, i] - u[i] * u[i] / total)
    if outside.size == 0:
        return 0.0
    return _set_outside(rows, inside, outside, means, centre, tau, A, u, total, spans)


@part
def _set_outside(rows, inside, outside, means, centre, tau, A, u, total, spans):
    """Set the squared spans of samples at their bound; return the drag.

    The drag is the mean inner product of the samples' offsets from the span with their mean offset,
    from at most 64 of them; 0 if they are few.
    """
    f, n, step = inside.size, outside.size, 1 + outside.size // 64
    n_some = 1 + (n - 1) // step if n >= 10 else 0  # a choice
    block = max(1, min(n, ROWS_AT_ONCE))
    B, own, places = np.empty((block, f)), np.empty(block), np.empty(n_some, np.int64)
    products, alongs, owns = np.zeros(n_some), np.empty(n_some), np.empty(n_some)
    images = np.empty((n_some, f))
    mean, mean_along, mean_own, s = np.zeros(f), 0.0, 0.0, 0
    kept, slot_of, used = rows.kept, rows.slot_of, rows.used
    for first in range(0, n, block):
        last, first_of_block = min(first + block, n), s
        for p in range(first, last):
            at, b = outside[p], p - first
            if slot_of[at] < 0:
                load_row(rows, at)
            K_p = kept[touch(slot_of, used, at)]
            own[b] = 0.0
            for j in range(f):
                B[b, j] = K_p[inside[j]]
                own[b] += B[b, j] / f
            for j in range(f):
                B[b, j] += centre - own[b] - means[j]
            if n_some > 0 and p % step == 0:
                for q in range(0, n, step):
                    products[s] += K_p[outside[q]] / n_some
                places[s] = p
                s += 1
        image = np.dot(B[: last - first], A)
        for p in range(first, last):
            at, b = outside[p], p - first
            along = _product(B[b], u) - 1.0
            reduced = _product(image[b], B[b]) - along * along / total + tau
            spans[at] = rows.diagonal[at] - 2.0 * own[b] + centre - reduced
        for e in range(first_of_block, s):
            b = places[e] - first
            alongs[e], owns[e] = _product(B[b], u) - 1.0, own[b]
            for j in range(f):
                images[e, j] = image[b, j]
                mean[j] += B[b, j] / n_some
            mean_along += alongs[e] / n_some
            mean_own += owns[e] / n_some
    drag = 0.0
    for e in range(n_some):
        product = products[e] + centre - tau - owns[e] - mean_own
        product += alongs[e] * mean_along / total - _product(images[e], mean)
        drag += abs(product - spans[outside[places[e]]] / n_some) / n_some
    return drag


@kernel
def _inverse(A):
    """Return the inverse of a symmetric matrix; NaN if there is none."""
    try:
        return np.linalg.inv(A).T  # it lies by columns
    except Exception:  # singular
        return np.full(A.shape, np.nan)


@kernel
def _product(x, y):
    """Return x'y."""
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@part
def _centre(A, means, centre):
    """Turn the kernel matrix of the free support vectors into A, in place; return tau."""
    f = means.size
    size, mean_size = 0.0, 0.0
    for i in range(f):
        mean_size += abs(A[i, i]) / f
        for j in range(f):
            A[i, j] += centre - means[i] - means[j]
        size += A[i, i] / f
    # If all are duplicates of one point, only rounding remains.
    size = max(abs(size), RIDGE * mean_size, LEAST_SIZE)
    tau = size / f
    for i in range(f):
        for j in range(f):
            A[i, j] += tau
        A[i, i] += RIDGE * size
    return tau
