"""Newton steps of kernel logistic regression.

With W = C s p (1 - p), a Newton step solves

    (I + W K) da + W db = C s (t - p) - a,    sum(a + da) = 0

through B = I + W^1/2 K W^1/2, which neither duplicates nor tiny weights nor
separable classes make singular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs
from scipy.special import expit

from manyclass.banks.symmetric_products import symmetric_product

Array = NDArray[np.float64]
Solver = Callable[[Array], Array]
"""Applies the inverse of a matrix, or of one close to it, to a vector."""

FIRST, RAISE = 1.0, 10.0  # C times the kernel's mean diagonal to begin with, and its growth
EXACT = 250  # samples up to which B itself is factored
LANDMARKS = 0.5  # times the square root of n, times 2 more than there are shares
PRODUCTS = 0.1  # of n: products with K in a step, beyond which B is factored as well
COMPLETE = 1e-12  # what may be left of the diagonal when its factorisation ends
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
ROUGH, FINE = 0.1, 0.01  # share of the gradient that a step may leave, far and near
FLATTENED = 0.1  # share of the slope that may be left where a step ends
NEAR = 1e-3  # a change of b that Newton's method is sure of
ENDLESS = 1e3  # times a Newton step that never ends, if its curvature is negative
ROUNDING = 1e-12  # of sums, relative to their terms
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Loss:
    """The sum of C s_i log(1 + exp(-y_i f_i)) as a function of f."""

    sign: Array
    """y, -1 or +1."""
    bound: Array
    """C s, positive."""

    def value(self, f: Array) -> float:
        """Return the loss."""
        return float(self.bound @ np.logaddexp(0.0, -self.sign * f))

    def dual(self, f: Array) -> Array:
        """Return C s (t - p), the negative gradient."""
        return self.bound * self.sign * expit(-self.sign * f)

    def curvature(self, f: Array) -> Array:
        """Return W = C s p (1 - p), the diagonal of the Hessian matrix."""
        return self.bound * expit(f) * expit(-f)

    def shift(self, f: Array) -> float:
        """Return the Newton step of a constant added to f, infinite where all p are 0 or 1."""
        with np.errstate(over="ignore"):
            return float(self.dual(f).sum() / max(self.curvature(f).sum(), TINY))

    def constant(self) -> float:
        """Return the constant f with the least loss."""
        positive = self.bound[self.sign > 0].sum()
        return float(np.log(positive) - np.log(self.bound[self.sign < 0].sum()))


class Point:
    """Coefficients a and b, and what follows from them."""

    def __init__(self, loss: Loss, a: Array, b: float, Ka: Array):
        self.a, self.b, self.Ka, self.f = a, b, Ka, Ka + b
        dual, shift = loss.dual(self.f), loss.shift(self.f)
        if abs(shift) < NEAR:  # rounding of f leaves dual with a sum, but b can take it
            self.b, self.f = b + shift, self.f + shift
            dual = loss.dual(self.f)
        self.r, self.gradient = a - dual, gradient_of(loss, a, dual)
        self.objective = 0.5 * float(a @ self.Ka) + loss.value(self.f)


def gradient_of(loss: Loss, a: Array, dual: Array) -> float:
    """Return :attr:`Solution.gradient`."""
    return float(max(np.abs(a - dual).max(), abs(dual.sum())) / loss.bound.max())


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
        self.shares = _shares(K, bound)
        n_landmarks = int(LANDMARKS * (2 + len(self.shares)) * np.sqrt(len(K)))
        self.factor = _factor_exactly(K) if self.exact else _factor_partly(K, n_landmarks)

    def minimise(
        self, loss: Loss, tol: float, max_iter: int, start: tuple[Array, float] | None
    ) -> tuple[Point, int]:
        """Return the point with the least objective, as far as float64 tells, and the steps."""
        nothing = np.zeros(len(loss.bound))
        at, n_iter = Point(loss, nothing, loss.constant(), nothing), 0
        given = at if start is None else Point(loss, *start, symmetric_product(self.K, start[0]))
        if given.objective < at.objective:
            at = given
        else:
            for share in self.shares[:max_iter]:
                part = Loss(loss.sign, share * loss.bound)
                at, n_iter = self.step(part, Point(part, at.a, at.b, at.Ka)), n_iter + 1
            at = Point(loss, at.a, at.b, at.Ka)
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

    def step(self, loss: Loss, at: Point) -> Point:
        """Return the point with the least objective in the Newton direction.

        The same point again if numbers overflow on the way.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            new = self._step(loss, at)
        return new if np.isfinite(new.objective) else at

    def _step(self, loss: Loss, at: Point) -> Point:
        to, length = self.towards(loss, at)
        a = at.a + length * to.a
        # Rounding adds up over the steps, but only what it is at the last ones counts.
        fresh = self.exact or at.gradient < ROUGH
        Ka = symmetric_product(self.K, a) if fresh else at.Ka + length * to.Ka
        return Point(loss, a, at.b + length * to.b, Ka)

    def towards(self, loss: Loss, at: Point) -> tuple[Direction, float]:
        """Return the Newton direction, and how far to go; not finite if numbers overflow."""
        to = _direction(self.K, loss, at, self.factor, self.size)
        if to.exhausted and not self.exact:
            self.factor, self.exact = _factor_exactly(self.K), True
            to = _direction(self.K, loss, at, self.factor, self.size)
        return to, _step_length(loss, at, to)


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
    try:
        upper = np.linalg.cholesky(matrix).T  # numpy's, since it frees the interpreter lock
    except np.linalg.LinAlgError:
        raise _indefinite() from None
    return lambda v: dpotrs(upper, v)[0]


def _factor_exactly(K: Array) -> _Factor:
    return lambda root: _cholesky_solver(newton_matrix(K, root))


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
    F = np.zeros((min(n_landmarks, len(K)), len(K)))
    rest = np.maximum(np.diagonal(K), 0.0)
    for m in range(len(F)):
        total = np.cumsum(rest)
        if total[-1] <= COMPLETE * np.trace(K):
            break
        pivot = np.searchsorted(total, total[-1] * (GOLDEN * (m + 1) % 1.0))
        F[m] = (K[pivot] - F[:m, pivot] @ F[:m]) / np.sqrt(rest[pivot])
        rest = np.maximum(rest - F[m] ** 2, 0.0)
        rest[pivot] = 0.0

    def factor(root: Array) -> Solver:
        """Return the inverse of I + W^1/2 (F'F + D) W^1/2, by Woodbury's identity."""
        inverse = 1.0 / (1.0 + root**2 * rest)
        V = F * root
        scaled = V * np.sqrt(inverse)
        inner = scaled @ scaled.T
        inner.flat[:: len(inner) + 1] += 1.0
        solve_inner = _cholesky_solver(inner)
        return lambda v: inverse * (v - solve_inner(V @ (inverse * v)) @ V)

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
            raise _indefinite()
        alpha, last = norm / curvature, norm
        da += alpha * root * p
        Kda += alpha * Kp
        residual -= alpha * Bp
    terms = size * np.abs(da).sum() * (np.abs(da) + np.abs(at.r)).sum()
    if da @ Kda < -ROUNDING * terms:
        raise _indefinite()
    return Direction(da, db, Kda, slope, products == limit)


def _step_length(loss: Loss, at: Point, to: Direction) -> float:
    """Minimise the objective along a step, by Newton's method between brackets."""
    if -to.slope <= ROUNDING * at.objective:  # all that is left to gain is rounding
        return 1.0
    df = to.Ka + to.b
    square, dual, value = float(to.a @ to.Ka), loss.dual(at.f), loss.value(at.f)
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(100):
        f = at.f + length * df
        slope = to.slope + length * square - (loss.dual(f) - dual) @ df
        if abs(slope) <= -FLATTENED * to.slope:
            change = length * (at.a @ to.Ka + 0.5 * length * square) + loss.value(f) - value
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


def _indefinite() -> ValueError:
    return ValueError(
        "the kernel matrix is not positive semi-definite, so that kernel logistic regression has "
        "no minimum. Choose another kernel, such as 'rbf', or other parameters, scale the features "
        "if they are large, or set the negative eigenvalues of a precomputed matrix to zero."
    )
