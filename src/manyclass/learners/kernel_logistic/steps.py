"""Newton steps of kernel logistic regression.

With W = C s p (1 - p), a Newton step solves

    (I + W K) da + W db = C s (t - p) - a,    sum(a + da) = 0

through B = I + W^1/2 K W^1/2, which neither duplicates nor tiny weights nor
separable classes make singular. Where K = F'F is of low rank, as linear kernels and those
of low degree are, it does so through I + F W F', which is as small as that rank.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from manyclass.learners.kernel_logistic.loss import TINY, Array, Loss, Point
from manyclass.learners.kernel_logistic.low_rank import COMPLETE, GOLDEN, low_rank_factor
from manyclass.learners.kernel_logistic.symmetric_products import symmetric_product

Solver = Callable[[Array], Array]
"""Applies the inverse of a matrix, or of one close to it, to a vector."""

FIRST, RAISE = 1.0, 10.0  # C times the kernel's mean diagonal to begin with, and its growth
EXACT = 250  # samples up to which B itself is factored
HIGHEST = 3  # times the landmarks: ranks that are low
LANDMARKS = 0.5  # times the square root of n, times 2 more than there are shares
PRODUCTS = 0.1  # of n: products with K in a step, beyond which B is factored as well
ROUGH, FINE = 0.1, 0.01  # share of the gradient that a step may leave, far and near
FLATTENED = 0.1  # share of the slope that may be left where a step ends
ENDLESS = 1e3  # times a Newton step that never ends, if its curvature is negative
ROUNDING = 1e-12  # of sums, relative to their terms
EPSILON = float(np.finfo(np.float64).eps)


class IndefiniteKernelError(ValueError):
    """A kernel matrix that has negative eigenvalues, so that nothing is least."""

    def __init__(self):
        super().__init__(
            "the kernel matrix is not positive semi-definite, so that kernel logistic regression "
            "has no minimum. Choose another kernel, such as 'rbf', or other parameters, or scale "
            "the features."
        )


class Direction(NamedTuple):
    """A Newton step."""

    a: Array
    b: float
    Ka: Array
    slope: float
    """Of the objective along it, where it begins."""
    exhausted: bool
    """Whether more products were needed than allowed."""


class Newton:
    """Newton steps for one kernel matrix.

    Parameters
    ----------
    K : array of shape (n, n)
    bound : array of shape (n,)
        C s, to get there from a = 0.
    size : float
        Of the terms that K was computed from, which tells rounding from negative eigenvalues.
    """

    def __init__(self, K: Array, bound: Array, size: float):
        self.K, self.size, self.exact = K, size, len(K) <= EXACT
        self.shares, self.F = _shares(K, bound), None
        self.n_landmarks = int(LANDMARKS * (2 + len(self.shares)) * np.sqrt(len(K)))
        # What F leaves out of K changes eigenvalues of B by no more than that.
        if not self.exact and COMPLETE * np.trace(K) * bound.max() < ROUGH:
            self.F = low_rank_factor(K, HIGHEST * self.n_landmarks)
        if self.F is None:
            self._prepare()

    def _prepare(self) -> None:
        """Make ready for conjugate gradients."""
        self.F = None
        exact = partial(_factor_exactly, self.K)
        self.factor = exact if self.exact else _factor_partly(self.K, self.n_landmarks)

    def minimise(
        self, loss: Loss, tol: float, max_iter: int, start: tuple[Array, float] | None
    ) -> tuple[Point, int]:
        """Return the point with the least objective, as far as float64 tells, and the steps."""
        at, n_iter = self._begin(loss, max_iter, start)
        if self.F is not None:
            at, n_iter = self._descend(loss, at, ROUGH * tol, n_iter, max_iter)
            # The last word is that of K itself. More digits help against rounding, no steps.
            at = Point(loss, at.a, at.b, symmetric_product(self.K, at.a))
            if at.gradient > tol and self.rounding(at.a) <= ROUGH * tol:
                self._prepare()
        if self.F is None:
            at, n_iter = self._descend(loss, at, tol, n_iter, max_iter)
        if at.gradient > tol:
            return at, n_iter
        return self._flattened(loss, at, tol, n_iter, max_iter)

    def _begin(
        self, loss: Loss, max_iter: int, start: tuple[Array, float] | None
    ) -> tuple[Point, int]:
        """Return the given point, or the one that small C lead to, and the steps taken."""
        nothing = np.zeros(len(loss.bound))
        at, n_iter = Point(loss, nothing, loss.constant(), nothing), 0
        given = at if start is None else Point(loss, *start, symmetric_product(self.K, start[0]))
        if given.objective < at.objective:
            return given, n_iter
        for share in self.shares[:max_iter] if self.F is None else ():
            part = Loss(loss.sign, share * loss.bound)
            at, n_iter = self.step(part, Point(part, at.a, at.b, at.Ka)), n_iter + 1
        return Point(loss, at.a, at.b, at.Ka), n_iter

    def _descend(
        self, loss: Loss, at: Point, tol: float, n_iter: int, max_iter: int
    ) -> tuple[Point, int]:
        """Take steps until the gradient is below ``tol``, or rounding."""
        while n_iter < max_iter:
            met = at.gradient <= tol
            if met and not self.exact:
                break
            new, n_iter = self.step(loss, at), n_iter + 1
            # Where rounding hides what the objective gains, the gradient tells points apart.
            stuck = (met or new.objective >= at.objective) and new.gradient > at.gradient / 2
            at = min(at, new, key=lambda point: point.gradient) if stuck else new
            if met or stuck:
                break
        return at, n_iter

    def _flattened(
        self, loss: Loss, at: Point, tol: float, n_iter: int, max_iter: int
    ) -> tuple[Point, int]:
        """Take steps until the objective's own gradient, K r, is as small as r, or rounding.

        Far from the minimum, as light samples may be when heavy ones are where they should be, it
        may rise as long as the objective falls.
        """
        goal, left = tol * min(1.0, loss.bound.max()), self._slope(at)
        while left > goal and n_iter < max_iter:
            new, n_iter = self.step(loss, at, fresh=True), n_iter + 1
            before, left = left, self._slope(new)
            falls = new.objective < (1.0 - ROUNDING) * at.objective
            if not falls and left > before / 2:
                break
            at = new
        return at, n_iter

    def _slope(self, at: Point) -> float:
        return float(np.abs(symmetric_product(self.K, at.r)).max())

    def step(self, loss: Loss, at: Point, *, fresh: bool = False) -> Point:
        """Return the point with the least objective in the Newton direction.

        Its margins are those of K if they are to be fresh, or if rounding is about to count.
        The same point again if numbers overflow on the way, or rounding undoes it.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            new = self._step(loss, at, fresh)
        lost = new.objective > at.objective and new.gradient > at.gradient
        return at if lost or not np.isfinite(new.objective) else new

    def _step(self, loss: Loss, at: Point, fresh: bool) -> Point:
        to, length = self.towards(loss, at)
        a = at.a + length * to.a
        # Rounding adds up over the steps, but only what it is at the last ones counts.
        fresh = fresh or self.exact or (at.gradient < ROUGH and self.F is None)
        Ka = symmetric_product(self.K, a) if fresh else at.Ka + length * to.Ka
        return Point(loss, a, at.b + length * to.b, Ka)

    def towards(self, loss: Loss, at: Point) -> tuple[Direction, float]:
        """Return the Newton direction, and how far to go; not finite if numbers overflow."""
        if self.F is not None:
            to = _low_rank_direction(self.F, loss, at)
        else:
            to = _direction(self.K, loss, at, self.factor, self.size)
        if to.exhausted and not self.exact:
            self.exact = True
            self._prepare()
            to = _direction(self.K, loss, at, self.factor, self.size)
        return to, _step_length(loss, at, to)

    def rounding(self, a: Array) -> float:
        """Return what the gradient may be wrong by if K a is computed in float64.

        Margins are wrong by EPSILON times the sizes of the terms, p by at most a fourth of
        that, and the sum over p by the square root of their number more.
        """
        return 0.25 * EPSILON * self.size * float(np.abs(a).sum() * np.sqrt(len(a)))


def _shares(K: Array, bound: Array) -> list[float]:
    """Return shares of C to approach it by, with a Newton step for each.

    From a = 0, a large C makes B ill-conditioned. Margins that have grown with C keep W
    small, and the steps so spent are not missed later.
    """
    size = float(np.diagonal(K).mean() * bound.max()) / FIRST
    n_steps = int(np.ceil(np.log(size) / np.log(RAISE))) if size > 1 else 0
    return [RAISE**m / size for m in range(n_steps)]


_Factor = Callable[[Array], Solver]
"""Given W^1/2, return what solves systems with B or with its preconditioner."""


def _cholesky_solver(matrix: Array) -> Solver:
    if len(matrix) == 0:  # a kernel that is zero; LAPACK refuses
        return lambda v: v
    try:
        upper = np.linalg.cholesky(matrix).T  # numpy's, since it frees the interpreter lock
    except np.linalg.LinAlgError:
        raise IndefiniteKernelError from None
    return lambda v: dpotrs(upper, v)[0]


def _factor_exactly(K: Array, root: Array) -> Solver:
    return _cholesky_solver(newton_matrix(K, root))


def newton_matrix(K: Array, root: Array) -> Array:
    """Return B = I + W^1/2 K W^1/2."""
    B = K * root
    B *= root[:, None]
    B.flat[:: len(B) + 1] += 1.0
    return B


def _factor_partly(K: Array, n_landmarks: int) -> _Factor:
    """Put F'F, some steps of K's Cholesky factorisation, in the place of K, and D on top.

    Pivots are drawn in proportion to what is left of the diagonal (Y. Chen, E. N. Epperly,
    J. A. Tropp, R. J. Webber, "Randomly pivoted Cholesky", Comm. Pure Appl. Math. 78,
    2025), with multiples of the golden ratio for random numbers.
    """
    F, m = np.empty((min(n_landmarks, len(K)), len(K))), 0
    rest = np.maximum(np.diagonal(K), 0.0)
    total = np.cumsum(rest)
    least = COMPLETE * total[-1]
    while m < len(F) and total[-1] > least:
        pivot = np.searchsorted(total, total[-1] * (GOLDEN * (m + 1) % 1.0))
        F[m] = (K[pivot] - F[:m, pivot] @ F[:m]) / np.sqrt(rest[pivot])
        rest = np.maximum(rest - F[m] ** 2, 0.0)
        rest[pivot] = 0.0
        total, m = np.cumsum(rest), m + 1
    F = F[:m]

    def factor(root: Array) -> Solver:
        """Return the inverse of I + W^1/2 (F'F + D) W^1/2, by Woodbury's identity."""
        outer = 1.0 / np.sqrt(1.0 + root**2 * rest)
        V = F * (root * outer)
        inner = V @ V.T
        inner.flat[:: len(inner) + 1] += 1.0
        solve_inner = _cholesky_solver(inner)

        def solve(v: Array) -> Array:
            v = outer * v
            return outer * (v - solve_inner(V @ v) @ V)

        return solve

    return factor


def _direction(K: Array, loss: Loss, at: Point, factor: _Factor, size: float) -> Direction:
    """Solve B y + W^1/2 db = W^1/2 K r for y with W^1/2 y = r + da, and sum(a + da) = 0.

    Conjugate gradients on the plane of the constraint, which the preconditioner M
    projects on (N. I. M. Gould, M. E. Hribar, J. Nocedal, "On the solution of equality
    constrained quadratic programming problems arising in optimization", SIAM J. Sci.
    Comput. 23, 2001, algorithm 2).
    """
    root = np.sqrt(loss.curvature(at.f))
    precondition = factor(root)
    normal = precondition(root)
    steepness = max(float(root @ normal), TINY)
    excess = float(at.r.sum() - at.a.sum())
    y = normal * (excess / steepness)
    da, db = root * y - at.r, 0.0
    Kda = symmetric_product(K, da)
    residual = -y - root * Kda
    p, last = np.zeros_like(y), np.inf
    limit, largest = max(10, int(PRODUCTS * len(y))), np.abs(at.r).max()
    share, rounding = ROUGH if at.gradient > FINE else FINE, ROUNDING * at.objective
    for products in range(limit + 1):
        z = precondition(residual)
        shift = float(root @ z / steepness)
        z -= shift * normal
        residual -= shift * root
        db += shift
        norm = float(residual @ z)
        slope = float(at.r @ Kda + excess * db)  # the gradient is K r in a, sum(r - a) in b
        reached = np.abs(root * residual).max() <= share * largest and (
            residual @ residual <= max(-share * slope, rounding)
        )
        if reached or products == limit or norm <= 0.0:  # no length is left to go along
            break
        p = z + (norm / last) * p
        Kp = symmetric_product(K, root * p)
        Bp = p + root * Kp
        curvature = float(p @ Bp)
        if curvature <= 0:
            raise IndefiniteKernelError
        alpha, last = norm / curvature, norm
        da += alpha * root * p
        Kda += alpha * Kp
        residual -= alpha * Bp
    terms = size * np.abs(da).sum() * (np.abs(da) + np.abs(at.r)).sum()
    if da @ Kda < -ROUNDING * terms:
        raise IndefiniteKernelError
    return Direction(da, db, Kda, slope, products == limit)


def _low_rank_direction(F: Array, loss: Loss, at: Point) -> Direction:
    """Solve the same for K = F'F, by way of u = F a with f = F'u + b.

        (I + F W F') du + F W 1 db = -F r,    1'W F' du + 1'W 1 db = sum(C s (t - p))

    Which is a step of linear logistic regression. Margins come from u, which is no larger
    than they need it, so that nothing of them cancels.
    """
    root = np.sqrt(loss.curvature(at.f))
    V = F * root
    inner = V @ V.T
    inner.flat[:: len(inner) + 1] += 1.0
    solve = _cholesky_solver(inner)
    border, left = V @ root, F @ at.r
    normal = solve(border)
    steepness = max(float(root @ (root - normal @ V)), TINY)
    db = float(at.dual.sum() + normal @ left) / steepness
    Kda = (-solve(left) - db * normal) @ F
    da = -at.r - root**2 * (Kda + db)
    slope = float(at.r @ Kda - at.dual.sum() * db)
    return Direction(da, db, Kda, slope, False)


def _step_length(loss: Loss, at: Point, to: Direction) -> float:
    """Minimise the objective along a step, by Newton's method between brackets."""
    if -to.slope <= ROUNDING * at.objective:  # all that is left to gain is rounding
        return 1.0
    df = to.Ka + to.b
    square, low, high, length = float(to.a @ to.Ka), 0.0, np.inf, 1.0
    for _ in range(100):
        f = at.f + length * df
        slope = to.slope + length * square - (loss.dual(f) - at.dual) @ df
        if abs(slope) <= -FLATTENED * to.slope:
            change = length * (at.a @ to.Ka + 0.5 * length * square) + loss.value(f) - at.loss
            if slope <= 0 or change <= 0:
                break
        low, high = (length, high) if slope < 0 else (low, length)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # flat: brackets decide
            length -= float(slope / (square + loss.curvature(f) @ df**2))
        if not low < length < high:
            length = 0.5 * (low + high) if np.isfinite(high) else 4.0 * low
        if square < 0.0 and length > ENDLESS:  # a minimum that rounding hides
            return 0.0
    return length
