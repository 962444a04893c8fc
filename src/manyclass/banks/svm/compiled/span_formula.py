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

# A choice, relative to the kernel's diagonal, since duplicates make the kernel singular. It leaves
# squared spans six digits; see ROUNDING.
RIDGE = 1e-10
# A squared span may be negative by so much, relative to K(x, x) or its mean. Duplicates give A
# a condition number of 1 / RIDGE and more, hence errors of 1e-6; kernels that are not positive
# definite give squared spans of order -1.
ROUNDING = 1e-4
# A kernel that is zero has the size of its square roots' rounding: squares of inverses stay finite.
LEAST_SIZE = 1e-100


@kernel
def squared_spans(K, free, positive):
    """Return S_p^2 of all support vectors, how many were negative, and the drag.

    K (s, s) is their kernel matrix. Each side has some of them. Negative squares are set to 0. The
    drag is how much the scores of samples at the bound would change, on average, if one of them
    with coefficient 1 is left out; 0 if they are few.
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
        _set_few(K, inside, outside, positive, spans)
    else:
        drag = _set_spans(K, inside, outside, spans)
    mean_size = 0.0
    for p in range(free.size):
        mean_size += abs(K[p, p]) / free.size
    n_negative = 0
    for p in range(free.size):
        if not spans[p] >= -ROUNDING * max(abs(K[p, p]), mean_size) - LEAST_SIZE:
            n_negative += 1
        if not spans[p] > 0.0:
            spans[p] = 0.0
    return spans, n_negative, drag


@part
def _set_few(K, inside, outside, positive, spans):
    """Set the squared spans where at most one support vector is free.

    If no other is free, a coefficient of the other side has to vanish with that of p, since
    their sum stays zero. If it is that of the nearest q there, S_p^2 is half the squared distance
    of p and q, which for rbf is K_pp - K_pq. K_pp alone would have no meaning: a constant added to
    the kernel changes no machine.
    """
    lone = inside if inside.size == 1 else outside
    for p in lone:
        nearest = -np.inf
        for q in range(positive.size):
            if positive[q] != positive[p]:
                nearest = max(nearest, K[p, q] - 0.5 * K[q, q])
        spans[p] = 0.5 * K[p, p] - nearest
    if inside.size == 1:
        i = inside[0]
        for p in outside:
            spans[p] = K[p, p] - 2.0 * K[p, i] + K[i, i]


@part
def _set_spans(K, inside, outside, spans):
    """Set the squared spans where several support vectors are free; return the drag."""
    f = inside.size
    means, centre = np.zeros(f), 0.0
    for i in range(f):
        for j in range(f):
            means[i] += K[inside[i], inside[j]] / f
        centre += means[i] / f
    A, tau = _centred(K, inside, means, centre)
    A = _inverse(A)
    u, total = np.zeros(f), 0.0
    for i in range(f):
        for j in range(f):
            u[i] += A[i, j]
        total += u[i]
    for i in range(f):
        spans[inside[i]] = 1.0 / (A[i, i] - u[i] * u[i] / total)
    B, own = np.empty((outside.size, f)), np.zeros(outside.size)
    for p in range(outside.size):
        for j in range(f):
            B[p, j] = K[outside[p], inside[j]]
            own[p] += B[p, j] / f
        for j in range(f):
            B[p, j] += centre - own[p] - means[j]
    image, along = np.dot(B, A), np.empty(outside.size)
    for p in range(outside.size):
        along[p], at = _product(B[p], u) - 1.0, outside[p]
        reduced = _product(image[p], B[p]) - along[p] * along[p] / total + tau
        spans[at] = K[at, at] - 2.0 * own[p] + centre - reduced
    return _drag(K, outside, spans, B, image, along, own, centre - tau, total)


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
def _centred(K, inside, means, centre):
    """Return A and tau."""
    f = inside.size
    A = np.empty((f, f))
    size, mean_size = 0.0, 0.0
    for i in range(f):
        for j in range(f):
            A[i, j] = K[inside[i], inside[j]] - means[i] - means[j] + centre
        size += A[i, i] / f
        mean_size += abs(K[inside[i], inside[i]]) / f
    # If all are duplicates of one point, only rounding remains.
    size = max(abs(size), RIDGE * mean_size, LEAST_SIZE)
    tau = size / f
    for i in range(f):
        for j in range(f):
            A[i, j] += tau
        A[i, i] += RIDGE * size
    return A, tau


@part
def _drag(K, outside, spans, B, image, along, own, constant, total):
    """Return the drag from at most 64 of the samples at the bound; 0 if they are few.

    It is the mean inner product of the samples' offsets from the span with their mean offset.
    """
    if outside.size < 10:  # a choice
        return 0.0
    step = 1 + outside.size // 64
    n = 1 + (outside.size - 1) // step
    mean, mean_along, mean_own = np.zeros(B.shape[1]), 0.0, 0.0
    for p in range(0, outside.size, step):
        for j in range(mean.size):
            mean[j] += B[p, j] / n
        mean_along += along[p] / n
        mean_own += own[p] / n
    drag = 0.0
    for p in range(0, outside.size, step):
        product = constant - own[p] - mean_own + along[p] * mean_along / total
        for q in range(0, outside.size, step):
            product += K[outside[p], outside[q]] / n
        product -= _product(image[p], mean)
        drag += abs(product - spans[outside[p]] / n) / n
    return drag
