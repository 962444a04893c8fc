"""Newton steps (IRLS) of kernel logistic regression.

With W = C s p (1 - p), a Newton step solves

    (I + W K) da + W db = C s (t - p) - a,    sum(a + da) = 0

by means of B = I + W^1/2 K W^1/2. All eigenvalues of B are at least 1, so that duplicates, tiny
weights and separable classes do not make it singular. If K = F'F has low rank, as linear and
low-degree polynomial kernels have, the step solves a system with I + F W F' instead, whose size is
the rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from manyclass._lib.arrays import Floats
from manyclass.learners.kernel_logistic.loss import EPSILON, ROUNDING, TINY, Loss, Point
from manyclass.learners.kernel_logistic.low_rank import golden_sequence, low_rank_factor
from manyclass.learners.kernels.symmetric_products import symmetric_product

Solver = Callable[[Floats], Floats]
"""Applies the inverse of a matrix, or of an approximation, to a vector."""

# A choice: an error below a tenth of a tolerance is neglected. Smaller values cost steps.
SAFETY = 0.1


@dataclass(frozen=True)
class Settings:
    """How Newton's equation is solved. It changes the cost, not the solution."""

    n_direct: int = 250
    """Up to this many samples, B is factored by Cholesky: cheaper than conjugate gradients."""
    landmarks: float = 0.5
    """Landmarks of the preconditioner: this times sqrt(n) times 2 plus the continuation steps.
    More of them save products with K, but a factorisation costs O(n landmarks^2)."""
    max_rank: float = 3.0
    """Ranks up to this multiple of the landmarks count as low; 0 ignores low rank."""
    max_products: float = 0.1
    """Limit of conjugate gradients in a step, relative to n. If it is reached, B is factored."""


class IndefiniteKernelError(ValueError):
    """A kernel matrix with negative eigenvalues: the objective is not bounded below."""

    def __init__(self):
        super().__init__(
            "the kernel matrix is not positive semi-definite: kernel logistic regression has no "
            "minimum. Choose another kernel, such as 'rbf', or other parameters, or scale the "
            "features."
        )


class Direction(NamedTuple):
    """A Newton direction."""

    a: Floats
    b: float
    Ka: Floats
    slope: float  # directional derivative of the objective at the current point
    exhausted: bool  # whether conjugate gradients stopped at their limit of products


class Newton:
    """Newton's method for one kernel matrix; F is the factor of K = F'F if K has low rank.

    ``size`` is the size of the terms that the entries of K were computed from. It separates
    rounding errors from negative eigenvalues.
    """

    def __init__(self, K: Floats, bound: Floats, size: float, settings: Settings | None = None):
        self.settings = Settings() if settings is None else settings
        self.K, self.size, self.exact = K, size, len(K) <= self.settings.n_direct
        self.shares, self.F = _continuation(K, bound), None
        shape = self.settings.landmarks * (2 + len(self.shares))
        self.n_landmarks = int(shape * np.sqrt(len(K)))
        # The residual K - F'F changes the eigenvalues of B by no more than this.
        if not self.exact and ROUNDING * np.trace(K) * bound.max() < SAFETY:
            self.F = low_rank_factor(K, int(self.settings.max_rank * self.n_landmarks))
        if self.F is None:
            self._prepare()

    def _prepare(self) -> None:
        """Choose the preconditioner of conjugate gradients, and ignore low rank from now on."""
        self.F = None
        exact = partial(_factor_exactly, self.K)
        self.factor = exact if self.exact else _factor_partly(self.K, self.n_landmarks)

    def minimise(
        self, loss: Loss, tol: float, max_iter: int, start: tuple[Floats, float] | None
    ) -> tuple[Point, int]:
        """Return the minimum, as far as float64 resolves it, and the number of steps."""
        at, n_iter = self._begin(loss, max_iter, start)
        if self.F is not None:
            at, n_iter = self._descend(loss, at, SAFETY * tol, n_iter, max_iter)
            # Check the result with K itself. If rounding is to blame, more steps do not help.
            at = Point(loss, at.a, at.b, symmetric_product(self.K, at.a))
            if at.gradient > tol and self.rounding(at.a) <= SAFETY * tol:
                self._prepare()
        if self.F is None:
            at, n_iter = self._descend(loss, at, tol, n_iter, max_iter)
        if at.gradient > tol:
            return at, n_iter
        return self._polish(loss, at, tol, n_iter, max_iter)

    def _begin(
        self, loss: Loss, max_iter: int, start: tuple[Floats, float] | None
    ) -> tuple[Point, int]:
        """Return the given point, or the result of continuation in C, and the number of steps."""
        zeros = np.zeros(len(loss.bound))
        at, n_iter = Point(loss, zeros, loss.constant(), zeros), 0
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
        """Take steps until the gradient is below ``tol``, or stagnates because of rounding."""
        while n_iter < max_iter:
            met = at.gradient <= tol
            if met and not self.exact:
                break
            new, n_iter = self.step(loss, at), n_iter + 1
            # If rounding hides the decrease of the objective, compare gradients.
            stuck = (met or new.objective >= at.objective) and new.gradient > at.gradient / 2
            at = min(at, new, key=lambda point: point.gradient) if stuck else new
            if met or stuck:
                break
        return at, n_iter

    def _polish(
        self, loss: Loss, at: Point, tol: float, n_iter: int, max_iter: int
    ) -> tuple[Point, int]:
        """Take steps until K r, the gradient in a, is as small as r, or stagnates.

        K r may rise while the objective falls: with very unequal weights, light samples may be
        far from their minimum when heavy ones have reached it.
        """
        goal, left = tol * min(1.0, loss.bound.max()), self._gradient_in_a(at)
        while left > goal and n_iter < max_iter:
            new, n_iter = self.step(loss, at, fresh=True), n_iter + 1
            before, left = left, self._gradient_in_a(new)
            falls = new.objective < (1.0 - ROUNDING) * at.objective
            if not falls and left > before / 2:
                break
            at = new
        return at, n_iter

    def _gradient_in_a(self, at: Point) -> float:
        return float(np.abs(symmetric_product(self.K, at.r)).max())

    def step(self, loss: Loss, at: Point, *, fresh: bool = False) -> Point:
        """Return the minimum along the Newton direction.

        With ``fresh``, or close to the solution, margins are computed from K a again: updates
        would accumulate rounding errors. If numbers overflow, or rounding makes the point
        worse, the old point is returned.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            new = self._step(loss, at, fresh)
        lost = new.objective > at.objective and new.gradient > at.gradient
        return at if lost or not np.isfinite(new.objective) else new

    def _step(self, loss: Loss, at: Point, fresh: bool) -> Point:
        to, length = self.towards(loss, at)
        a = at.a + length * to.a
        fresh = fresh or self.exact or (at.gradient < 0.1 and self.F is None)
        Ka = symmetric_product(self.K, a) if fresh else at.Ka + length * to.Ka
        return Point(loss, a, at.b + length * to.b, Ka)

    def towards(self, loss: Loss, at: Point) -> tuple[Direction, float]:
        """Return the Newton direction and the step length; not finite if numbers overflow."""
        if self.F is not None:
            to = _low_rank_direction(self.F, loss, at)
        else:
            to = self._direction(loss, at)
        if to.exhausted and not self.exact:
            self.exact = True
            self._prepare()
            to = self._direction(loss, at)
        return to, _step_length(loss, at, to)

    def _direction(self, loss: Loss, at: Point) -> Direction:
        limit = max(10, int(self.settings.max_products * len(at.a)))
        return _direction(self.K, loss, at, self.factor, self.size, limit)

    def rounding(self, a: Floats) -> float:
        """Return a bound of the error of the gradient if K a is computed in float64.

        Margins have an error of EPSILON times the size of the terms, p at most a fourth of
        that, and the sum over all p sqrt(n) times more.
        """
        return 0.25 * EPSILON * self.size * float(np.abs(a).sum() * np.sqrt(len(a)))


def _continuation(K: Floats, bound: Floats, factor: float = 10.0) -> list[float]:
    """Return increasing shares of C: continuation takes one Newton step for each.

    From a = 0, a large C makes B ill-conditioned. If margins grow with C, W stays small; these
    steps are saved later. C times the mean diagonal of K begins at 1 and grows by ``factor``: a
    choice, smaller factors take more steps.
    """
    size = float(np.diagonal(K).mean() * bound.max())
    n_steps = int(np.ceil(np.log(size) / np.log(factor))) if size > 1 else 0
    return [factor**m / size for m in range(n_steps)]


_Factor = Callable[[Floats], Solver]
"""Given W^1/2, returns a solver for B, or for its preconditioner."""


def _cholesky_solver(matrix: Floats) -> Solver:
    if len(matrix) == 0:  # a kernel of zeros; LAPACK rejects empty matrices
        return lambda v: v
    try:
        upper = np.linalg.cholesky(matrix).T  # numpy releases the GIL here
    except np.linalg.LinAlgError:
        raise IndefiniteKernelError from None
    return lambda v: dpotrs(upper, v)[0]


def _factor_exactly(K: Floats, root: Floats) -> Solver:
    return _cholesky_solver(newton_matrix(K, root))


def newton_matrix(K: Floats, root: Floats) -> Floats:
    """Return B = I + W^1/2 K W^1/2."""
    B = K * root
    B *= root[:, None]
    B.flat[:: len(B) + 1] += 1.0
    return B


def _factor_partly(K: Floats, n_landmarks: int) -> _Factor:
    """Precondition by a partial Cholesky factorisation: K is replaced by F'F + D, D diagonal.

    Pivots (landmarks) are drawn in proportion to the residual diagonal (Y. Chen, E. N. Epperly,
    J. A. Tropp, R. J. Webber, "Randomly pivoted Cholesky", Comm. Pure Appl. Math. 78, 2025), with
    the golden-ratio sequence in place of random numbers.
    """
    F, m = np.empty((min(n_landmarks, len(K)), len(K))), 0
    rest = np.maximum(np.diagonal(K), 0.0)
    total, draws = np.cumsum(rest), golden_sequence(len(F))
    least = ROUNDING * total[-1]
    while m < len(F) and total[-1] > least:
        pivot = np.searchsorted(total, total[-1] * draws[m])
        F[m] = (K[pivot] - F[:m, pivot] @ F[:m]) / np.sqrt(rest[pivot])
        rest = np.maximum(rest - F[m] ** 2, 0.0)
        rest[pivot] = 0.0
        total, m = np.cumsum(rest), m + 1
    F = F[:m]

    def factor(root: Floats) -> Solver:
        """Return a solver for I + W^1/2 (F'F + D) W^1/2, by the Woodbury identity."""
        outer = 1.0 / np.sqrt(1.0 + root**2 * rest)
        V = F * (root * outer)
        inner = V @ V.T
        inner.flat[:: len(inner) + 1] += 1.0
        solve_inner = _cholesky_solver(inner)

        def solve(v: Floats) -> Floats:
            v = outer * v
            return outer * (v - solve_inner(V @ v) @ V)

        return solve

    return factor


def _direction(
    K: Floats, loss: Loss, at: Point, factor: _Factor, size: float, limit: int
) -> Direction:
    """Solve B y + W^1/2 db = W^1/2 K r for y with W^1/2 y = r + da, and sum(a + da) = 0.

    Projected preconditioned conjugate gradients: the iterates satisfy the constraint (N. I. M.
    Gould, M. E. Hribar, J. Nocedal, "On the solution of equality constrained quadratic
    programming problems arising in optimization", SIAM J. Sci. Comput. 23, 2001, algorithm 2).
    Inexact Newton: the residual may be a tenth of the gradient far from the minimum, and a
    hundredth near it. At most ``limit`` products with K are computed.
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
    largest, rounding = np.abs(at.r).max(), ROUNDING * at.objective
    share = 0.1 if at.gradient > 0.01 else 0.01  # forcing term
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
        if reached or products == limit or norm <= 0.0:  # norm is 0: solved
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


def _low_rank_direction(F: Floats, loss: Loss, at: Point) -> Direction:
    """Solve the same system for K = F'F in the variables u = F a, with f = F'u + b.

        (I + F W F') du + F W 1 db = -F r,    1'W F' du + 1'W 1 db = sum(C s (t - p))

    This is a Newton step of linear logistic regression with the rows of F as features. The
    entries of u are no larger than the margins require: no cancellation occurs in F'u.
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


def _step_length(
    loss: Loss, at: Point, to: Direction, slope_share: float = 0.1, longest: float = 1e3
) -> float:
    """Line search: minimise the objective along a direction, by safeguarded Newton.

    It ends if the slope is at most ``slope_share`` of the initial one (a curvature condition)
    and the objective does not rise. If rounding makes the quadratic term negative, a step
    beyond ``longest`` has no minimum: 0 is returned.
    """
    if -to.slope <= ROUNDING * at.objective:  # no decrease is left beyond rounding
        return 1.0
    df = to.Ka + to.b
    square, low, high, length = float(to.a @ to.Ka), 0.0, np.inf, 1.0
    for _ in range(100):
        f = at.f + length * df
        slope = to.slope + length * square - (loss.dual(f) - at.dual) @ df
        if abs(slope) <= -slope_share * to.slope:
            change = length * (at.a @ to.Ka + 0.5 * length * square) + loss.value(f) - at.loss
            if slope <= 0 or change <= 0:
                break
        low, high = (length, high) if slope < 0 else (low, length)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # flat: bisect
            length -= float(slope / (square + loss.curvature(f) @ df**2))
        if not low < length < high:
            length = 0.5 * (low + high) if np.isfinite(high) else 4.0 * low
        if square < 0.0 and length > longest:
            return 0.0
    return length
