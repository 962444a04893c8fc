"""Kernel logistic regression by Newton's method, with iterative refinement.

At the minimum the dual coefficients are a_i = C s_i (t_i - p_i), with targets t in {0, 1},
p = 1 / (1 + exp(-f)) and f = K a + b. The difference of both sides is the gradient in function
space.

If classes overlap, coefficients are as large as C, and K a suffers from cancellation,
above all if K has low rank or a large mean. In float64 the gradient may then consist of rounding
errors. So the last steps are iterative refinement: directions in float64, margins by compensated
products (Dot2), and coefficients that are rounded jointly.

On pairs of classes of digits, segment, satimage and letter, with three kernels and C from 0.01 to
1e4, refinement runs in 13 of 96 problems. For standardised features it lowers the gradient from
1.5e-8 to 6e-15 and changes probabilities by 1e-8; for raw features, from up to 1e-5 to below 1e-9,
and by up to 4e-6. Joint rounding matters for raw features: with entries of K times C above 1e9, the
gradient stays at 1e-8 to 1e-5 without it. A refined fit of 500 samples takes about 10 ms longer.
"""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass.learners.kernel_logistic.loss import EPSILON, ROUNDING, Loss, Point, gradient_of
from manyclass.learners.kernel_logistic.steps import SAFETY, IndefiniteKernelError, Newton, Settings
from manyclass.learners.kernels.symmetric_products import (
    accurate_product,
    symmetric_product,
)


class Solution(NamedTuple):
    """The result of Newton's method."""

    dual: Floats  # coefficients a of the samples; their sum is 0
    intercept: float
    n_iter: int  # Newton steps
    gradient: float
    """max |a_i - C s_i (t_i - p_i)| or |sum_i C s_i (t_i - p_i)|, relative to the largest C s_i."""
    gradient_in_float64: float
    """The same if K a is computed in float64: rounding errors of cancelling terms included."""
    negative: float = 0.0
    """|smallest / largest eigenvalue| of K if negative ones were set to zero, else 0."""


def solve(
    K: Floats,
    positive: Flags,
    bound: Floats,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    start: tuple[Floats, float] | None = None,
    settings: Settings | None = None,
) -> Solution:
    """Minimise a'Ka / 2 + sum_i C s_i log(1 + exp(-y_i f_i)), f = K a + b, by Newton's method.

    If K has low rank, steps are those of linear logistic regression with that many features.
    Otherwise preconditioned conjugate gradients solve for the step. The preconditioner is a
    Cholesky factorisation: of B = I + W^1/2 K W^1/2 itself for up to a few hundred samples, or if
    conjugate gradients take too long; otherwise of B with a partial factorisation of K. A line
    search chooses the step length. If B itself is factored, one more step is taken after ``tol``
    is met: it squares the error. Further steps follow while they reduce K r towards ``tol``:
    with separable classes coefficients are far below C, and r must be small relative to them.

    If a step detects negative eigenvalues of K, there is no minimum: they are set to zero, and
    coefficients are projected on the other eigenvectors. ``bound`` is C s, positive; both classes
    must occur. ``start`` (a, b) is used if its objective is lower than that of a = 0.
    """
    loss = Loss(np.where(positive, 1.0, -1.0), bound)
    try:
        return _solve(K, loss, tol, max_iter, start, settings)
    except IndefiniteKernelError:
        values, vectors = np.linalg.eigh(K)
        kept = values > EPSILON * len(K) * np.abs(values).max()
        part = vectors[:, kept]
        found = _solve((part * values[kept]) @ part.T, loss, tol, max_iter, start, settings)
        # Projected coefficients give the same margins with K as with its positive part.
        dual = part @ (part.T @ found.dual)
        return found._replace(dual=dual, negative=float(-values[0] / np.abs(values).max()))


def _solve(K: Floats, loss: Loss, tol: float, max_iter: int, start, settings) -> Solution:
    inner, size = centre(K), float(np.abs(np.diagonal(K)).max())  # the largest entry, if definite
    newton = Newton(_add_jitter(inner, loss.bound, size), loss.bound, size, settings)
    if start is not None and inner is not K:
        start = start[0], start[1] + float(accurate_product(K, start[0]).mean())
    at, n_iter = newton.minimise(loss, tol, max_iter, start)
    rounding = newton.rounding(at.a)
    visible = rounding > SAFETY * tol
    if inner is K and newton.F is not None and SAFETY * tol < rounding < tol / SAFETY:
        # The bound is pessimistic. Two orders of summation give an estimate.
        visible = max(at.gradient, _float64_gradient(K, loss, at)) > SAFETY * tol
    if inner is not K or visible:
        goal = SAFETY * tol if visible else tol
        at, n_iter = _refine(newton, K, loss, at, goal, n_iter, max_iter)
    shown = _float64_gradient(K, loss, at) if visible else 0.0
    return Solution(at.a, at.b, n_iter, at.gradient, max(at.gradient, shown))


def centre(K: Floats, share: float = 0.1) -> Floats:
    """Return the doubly centred kernel matrix if K has a large mean, else K itself.

    Since the coefficients sum to 0, the margins stay the same but for the bias, and the terms
    are smaller. K is centred if at most ``share`` of its mean diagonal remains: a choice,
    since the copy takes as much memory as K.
    """
    size = np.diagonal(K).mean()
    if size - K.mean() > share * size:
        return K
    inner: Floats = K.copy()
    for _ in range(2):  # the second pass removes rounding errors of large means
        means = inner.mean(axis=0)
        inner -= means
        inner -= (means - means.mean())[:, None]
    return inner


def _add_jitter(K: Floats, bound: Floats, size: float) -> Floats:
    """Return K, with its rounding error added to the diagonal if C makes that matter.

    Entries with an error of EPSILON times the size of their terms change eigenvalues by up to n
    times that. The eigenvalues of W^1/2 K W^1/2 must stay above -1.
    """
    noise = EPSILON * size * len(K)
    if 0.25 * noise * bound.max() < SAFETY:
        return K
    raised = K.copy()
    raised.flat[:: len(K) + 1] += noise
    return raised


def _float64_gradient(K: Floats, loss: Loss, at: Point) -> float:
    """Return the gradient with float64 margins: the larger one of two orders of summation."""
    margins = (K @ at.a + at.b, symmetric_product(K, at.a) + at.b)
    return max(gradient_of(loss, at.a, loss.dual(f)) for f in margins)


def _refine(
    newton: Newton, K: Floats, loss: Loss, at: Point, tol: float, n_iter: int, max_iter: int
) -> tuple[Point, int]:
    """Iterative refinement: more Newton steps, with margins by compensated products.

    Directions are computed in float64. If C is so large that float64 hardly resolves K, they are
    inexact: the gradient falls linearly, and may rise while the objective falls. K is the matrix
    before centring; b is changed accordingly.
    """
    at = _accurate_point(K, loss, _add_jointly(newton.K, at.a, np.zeros_like(at.a)), at.f)
    while at.gradient > tol and n_iter < max_iter:
        with np.errstate(over="ignore", invalid="ignore"):
            to, length = newton.towards(loss, at)
        n_iter += 1
        if not np.isfinite(to.Ka).all():
            break
        a = _add_jointly(newton.K, at.a, length * to.a)
        new = _accurate_point(K, loss, a, at.f + length * (to.Ka + to.b))
        # Far from the minimum compare objectives; near it they differ by rounding only.
        share = 0.5 if at.gradient > 0.1 else 0.9
        falls = new.objective < (1.0 - ROUNDING) * at.objective
        if not (falls or new.gradient <= share * at.gradient):
            break
        at = new
    return at, n_iter


def _accurate_point(K: Floats, loss: Loss, a: Floats, f: Floats) -> Point:
    """Return the point with coefficients a, and b such that its margins are about f."""
    Ka = accurate_product(K, a)
    if not np.isfinite(Ka).all():  # numbers above 1e300 overflow when they are split
        Ka = K @ a
    return Point(loss, a, float(f.mean() - Ka.mean()), Ka)


def _add_jointly(
    K: Floats, a: Floats, change: Floats, sizes: tuple[int, ...] = (64, 16, 4), cond: float = 1e-12
) -> Floats:
    """Return a + change with sum 0, rounded such that K times the rounding error is small.

    Each sum of float64 numbers has a rounding error. The error vector changes the margins by
    K times itself. If K has low rank, few columns span the others: the smallest coefficients,
    which have the smallest spacing of float64 numbers, can absorb that change. A least squares
    problem gives their corrections, first for 64 of them, then for fewer and smaller ones, while
    that reduces the error of the margins. ``cond`` is the relative size of singular values that
    count as zero.
    """
    new, error = _two_sum(a, change)
    smallest = np.argsort(np.abs(new), kind="stable")
    worst = np.abs(K @ error).max()
    for size in sizes:
        few = smallest[:size]
        correction = _absorb(K[few], few, error, fsum(new), cond)
        corrected, left = new.copy(), error.copy()
        corrected[few], left[few] = _two_sum(new[few], correction)
        left[few] += error[few] - correction
        still = np.abs(K @ left).max()
        # The first correction also brings the sum of coefficients to 0, so it is always kept.
        if size < sizes[0] and not still < worst:
            break
        new, error, worst = corrected, left, still
    new[smallest[0]] -= fsum(new)
    return new


def _absorb(rows: Floats, few: Places, error: Floats, total: float, cond: float) -> Floats:
    """Return corrections of few coefficients that offset the error, and bring the sum to 0."""
    inner = rows[:, few]
    size = float(np.abs(inner).max())
    system = np.full((len(few) + 1, len(few) + 1), size)
    system[:-1, :-1], system[-1, -1] = inner, 0.0
    wanted = np.append(rows @ error, -size * total)
    return lstsq(system, wanted, cond=cond, lapack_driver="gelsy", check_finite=False)[0][:-1]


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return a + b and its rounding error (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
