"""Newton's method for kernel logistic regression, and its leave-one-out.

At the minimum the dual coefficients are a_i = C s_i (t_i - p_i), with targets t in
{0, 1} and p = 1 / (1 + exp(-f)), f = K a + b; the difference of both sides is the
gradient in function space. With W = C s p (1 - p), a Newton step solves

    (I + W K) da + W db = C s (t - p) - a,    sum(a + da) = 0

through B = I + W^1/2 K W^1/2, which neither duplicates nor tiny weights nor
separable classes make singular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs, dtrtri
from scipy.special import expit

from manyclass.banks.generic import Untrusted
from manyclass.banks.symmetric_products import accurate_product, symmetric_product

Array = NDArray[np.float64]
Solver = Callable[[Array], Array]
"""Applies the inverse of a matrix, or of one close to it, to a vector."""

FIRST, RAISE = 1.0, 10.0  # C times the kernel's mean diagonal to begin with, and its growth
EXACT = 250  # samples up to which B itself is factored
LANDMARKS = 0.5  # times the square root of n, times 2 more than there are shares
PRODUCTS = 0.1  # of n: products with K in a step, beyond which B is factored as well
FEW = 64  # coefficients that bear what all others are rounded by
DEPENDENT = 1e-12  # singular values, relative to the largest, that count as zero
PREVAILING = 0.1  # what means may leave of the kernel's mean diagonal to be subtracted
COMPLETE = 1e-12  # what may be left of the diagonal when its factorisation ends
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
ROUGH, FINE = 0.1, 0.01  # share of the gradient that a step may leave, far and near
FLATTENED = 0.1  # share of the slope that may be left where a step ends
NEAR = 1e-3  # a change of b that Newton's method is sure of
ROUNDING = 1e-12  # of sums, relative to their terms
TINY, EPSILON = np.finfo(np.float64).tiny, np.finfo(np.float64).eps
LOST = 1e-6  # how far below zero leverages may fall, and variances relative to the kernel
SATURATED = 1e6  # a / W of samples whose leverage 1 - D would be lost to rounding


class Solution(NamedTuple):
    """Where Newton's method ended."""

    dual: Array
    """Coefficients a of the samples; their sum is 0."""
    intercept: float
    n_iter: int
    """Newton steps."""
    gradient: float
    """max |a_i - C s_i (t_i - p_i)| or |sum_i C s_i (t_i - p_i)|, relative to the largest C s_i."""
    shown: float
    """The same if K a is computed in float64, whose rounding it may be lost in."""


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
        """Return the Newton step of a constant added to f."""
        return float(self.dual(f).sum() / max(self.curvature(f).sum(), TINY))

    def constant(self) -> float:
        """Return the constant f with the least loss."""
        positive = self.bound[self.sign > 0].sum()
        return float(np.log(positive) - np.log(self.bound[self.sign < 0].sum()))


class _Point:
    """Coefficients a and b, and what follows from them."""

    def __init__(self, loss: Loss, a: Array, b: float, Ka: Array):
        self.a, self.b, self.Ka, self.f = a, b, Ka, Ka + b
        dual, shift = loss.dual(self.f), loss.shift(self.f)
        if abs(shift) < NEAR:  # rounding of f leaves dual with a sum, but b can take it
            self.b, self.f = b + shift, self.f + shift
            dual = loss.dual(self.f)
        self.r, self.gradient = a - dual, _gradient(loss, a, dual)
        self.objective = 0.5 * float(a @ self.Ka) + loss.value(self.f)


def _gradient(loss: Loss, a: Array, dual: Array) -> float:
    """Return :attr:`Solution.gradient`."""
    return float(max(np.abs(a - dual).max(), abs(dual.sum())) / loss.bound.max())


class _Direction(NamedTuple):
    a: Array
    b: float
    Ka: Array
    slope: float
    """Of the objective along it, where it begins."""
    exhausted: bool
    """Whether more products were needed than allowed."""


def solve(
    K: Array,
    positive: NDArray[np.bool_],
    bound: Array,
    *,
    tol: float = 1e-8,
    max_iter: int = 100,
    start: tuple[Array, float] | None = None,
) -> Solution:
    """Minimise a'Ka / 2 + sum_i C s_i log(1 + exp(-y_i f_i)), f = K a + b, by Newton's method.

    Steps are found by conjugate gradients, preconditioned by a Cholesky factorisation:
    of B itself for up to a few hundred samples, or when all else takes too long; otherwise of
    B with a partial factorisation of K. Their length minimises the objective. Where B
    is factored, one step more is taken when ``tol`` is met: it squares the error.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix, symmetric and positive semi-definite.
    positive : bool array of shape (n,)
        The samples with y = +1; there are some of both.
    bound : array of shape (n,)
        C times the weights of the samples, positive.
    tol : float, default=1e-8
        The :attr:`Solution.gradient` to reach.
    max_iter : int, default=100
        The most Newton steps.
    start : tuple (a, b), optional
        Where to start, if that is better than a = 0.

    Returns
    -------
    Solution

    Raises
    ------
    ValueError
        If the kernel turns out to have a negative eigenvalue: nothing is least then.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.banks.logistic_newton import solve
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> solve(K, np.array([True, False]), np.ones(2)).dual.round(4)
    array([ 0.4446, -0.4446])
    """
    loss, inner = Loss(np.where(positive, 1.0, -1.0), bound), _centred(K)
    newton = _Newton(inner, _shares(inner, bound), _size(K))
    if start is not None and inner is not K:
        start = start[0], start[1] + float(accurate_product(K, start[0]).mean())
    at, n_iter = newton.minimise(loss, tol, max_iter, start)
    if inner is K and _rounding(K, at.a) <= ROUGH * tol:
        return Solution(at.a, at.b, n_iter, at.gradient, at.gradient)
    at, n_iter = newton.refine(K, loss, at, ROUGH * tol, n_iter, max_iter)
    return Solution(at.a, at.b, n_iter, at.gradient, max(at.gradient, _shown(K, loss, at)))


def _centred(K: Array) -> Array:
    """Return the matrix of kernels less their means over rows and columns, if these prevail.

    Since the sum of a is 0, it gives the same margins with another b, from smaller terms;
    their mean is that b.
    """
    size = np.diagonal(K).mean()
    if size - K[:: 1 + len(K) // FEW].mean() > PREVAILING * size:
        return K
    means = K.mean(axis=0)
    inner: Array = K - means
    inner -= (means - means.mean())[:, None]
    return inner


def _rounding(K: Array, a: Array) -> float:
    """Return what the gradient may be wrong by if K a is computed in float64.

    Margins are wrong by EPSILON times the sizes of the terms, p by at most a fourth of
    that, and the sum over p by the square root of their number more.
    """
    return 0.25 * EPSILON * _size(K) * float(np.abs(a).sum() * np.sqrt(len(a)))


def _size(K: Array) -> float:
    """Return the largest entry, as Cauchy and Schwarz have it."""
    return float(np.abs(np.diagonal(K)).max())


def _shares(K: Array, bound: Array) -> list[float]:
    """Return shares of C to approach it by, with a Newton step for each.

    From a = 0, a large C makes B ill-conditioned. Margins that have grown with C keep W
    small, and the steps so spent are not missed later.
    """
    size = float(np.diagonal(K).mean() * bound.max()) / FIRST
    n_steps = int(np.ceil(np.log(size) / np.log(RAISE))) if size > 1 else 0
    return [RAISE**m / size for m in range(n_steps)]


def _shown(K: Array, loss: Loss, at: _Point) -> float:
    """Return the gradient by products in float64; two of them, since rounding is by chance."""
    margins = (K @ at.a + at.b, symmetric_product(K, at.a) + at.b)
    return max(_gradient(loss, at.a, loss.dual(f)) for f in margins)


class _Newton:
    """Newton steps for one kernel matrix."""

    def __init__(self, K: Array, shares: list[float], size: float):
        self.K, self.shares, self.size, self.exact = K, shares, size, len(K) <= EXACT
        n_landmarks = int(LANDMARKS * (2 + len(shares)) * np.sqrt(len(K)))
        self.factor = _factor_exactly(K) if self.exact else _factor_partly(K, n_landmarks)

    def minimise(
        self, loss: Loss, tol: float, max_iter: int, start: tuple[Array, float] | None
    ) -> tuple[_Point, int]:
        """Return the point with the least objective, as far as float64 tells, and the steps."""
        nothing = np.zeros(len(loss.bound))
        at, n_iter = _Point(loss, nothing, loss.constant(), nothing), 0
        given = at if start is None else _Point(loss, *start, symmetric_product(self.K, start[0]))
        if given.objective < at.objective:
            at = given
        else:
            for share in self.shares[:max_iter]:
                part = Loss(loss.sign, share * loss.bound)
                at, n_iter = self.step(part, _Point(part, at.a, at.b, at.Ka)), n_iter + 1
            at = _Point(loss, at.a, at.b, at.Ka)
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

    def refine(
        self, K: Array, loss: Loss, at: _Point, tol: float, n_iter: int, max_iter: int
    ) -> tuple[_Point, int]:
        """Take more steps with margins of twice the digits, while the gradient halves.

        Coefficients as large as C cancel in K a, more so if K is of low rank. What
        float64 leaves of the sums may be all rounding, but it is enough for directions.
        K is the matrix as it was given, and b becomes the one that goes with it.
        """
        at = _accurate(K, loss, _settled(self.K, at.a, np.zeros_like(at.a)), at.f)
        while at.gradient > tol and n_iter < max_iter:
            to, length = self._towards(loss, at)
            f = at.f + length * (to.Ka + to.b)
            a = _settled(self.K, at.a, length * to.a)
            new, n_iter = _accurate(K, loss, a, f), n_iter + 1
            halved = new.gradient <= at.gradient / 2
            at = new if new.gradient < at.gradient else at
            if not halved:
                break
        return at, n_iter

    def step(self, loss: Loss, at: _Point) -> _Point:
        """Return the point with the least objective in the Newton direction.

        The same point again if numbers overflow on the way.
        """
        to, length = self._towards(loss, at)
        a = at.a + length * to.a
        # Rounding adds up over the steps, but only what it is at the last ones counts.
        fresh = self.exact or at.gradient < ROUGH
        Ka = symmetric_product(self.K, a) if fresh else at.Ka + length * to.Ka
        new = _Point(loss, a, at.b + length * to.b, Ka)
        return new if np.isfinite(new.objective) else at

    def _towards(self, loss: Loss, at: _Point) -> tuple[_Direction, float]:
        """Return the Newton direction, and how far to go."""
        to = _direction(self.K, loss, at, self.factor, self.size)
        if to.exhausted and not self.exact:
            self.factor, self.exact = _factor_exactly(self.K), True
            to = _direction(self.K, loss, at, self.factor, self.size)
        return to, _step_length(loss, at, to)


def _accurate(K: Array, loss: Loss, a: Array, f: Array) -> _Point:
    """Return the point with these coefficients, and b such that its margins are about f."""
    Ka = accurate_product(K, a)
    return _Point(loss, a, float(f.mean() - Ka.mean()), Ka)


def _settled(K: Array, a: Array, change: Array) -> Array:
    """Return a + change, rounded such that neither margins nor the sum of all show it.

    The smallest coefficients have digits to spare, where others may be as large as C: these
    bear what the others are rounded by, as far as the columns of K depend on theirs.
    """
    new = a + change
    part = new - a
    rounded = (a - (new - part)) + (change - part)
    few = np.argsort(np.abs(new), kind="stable")[:FEW]
    system = np.ones((len(few) + 1, len(few) + 1))
    system[:-1, :-1], system[-1, -1] = K[np.ix_(few, few)], 0.0
    wanted = np.append(symmetric_product(K, rounded)[few], -fsum(new))
    new[few] += np.linalg.lstsq(system, wanted, rcond=DEPENDENT)[0][:-1]
    new[few[0]] -= fsum(new)
    return new


_Factor = Callable[[Array], Solver]
"""Given W^1/2, return what solves systems with B or with its preconditioner."""


def _cholesky_solver(matrix: Array) -> Solver:
    try:
        upper = np.linalg.cholesky(matrix).T  # numpy's, since it frees the interpreter lock
    except np.linalg.LinAlgError:
        raise _indefinite() from None
    return lambda v: dpotrs(upper, v)[0]


def _factor_exactly(K: Array) -> _Factor:
    return lambda root: _cholesky_solver(_newton_matrix(K, root))


def _newton_matrix(K: Array, root: Array) -> Array:
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


def _direction(K: Array, loss: Loss, at: _Point, factor: _Factor, size: float) -> _Direction:
    """Solve B y + W^1/2 db = W^1/2 K r for y with W^1/2 y = r + da, and sum(a + da) = 0.

    Conjugate gradients on the plane of the constraint, which the preconditioner M
    projects on (N. I. M. Gould, M. E. Hribar, J. Nocedal, "On the solution of equality
    constrained quadratic programming problems arising in optimization", SIAM J. Sci.
    Comput. 23, 2001, algorithm 2).
    """
    root = np.sqrt(loss.curvature(at.f))
    precondition = factor(root)
    normal = precondition(root)
    size = max(float(root @ normal), TINY)
    excess = float(at.r.sum() - at.a.sum())
    y = normal * (excess / size)
    da, db = root * y - at.r, 0.0
    Kda = symmetric_product(K, da)
    residual = -y - root * Kda
    p, last = np.zeros_like(y), np.inf
    limit, largest = max(10, int(PRODUCTS * len(y))), np.abs(at.r).max()
    share, rounding = ROUGH if at.gradient > FINE else FINE, ROUNDING * at.objective
    for products in range(limit + 1):
        z = precondition(residual)
        shift = float(root @ z / size)
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
    return _Direction(da, db, Kda, slope, products == limit)


def _step_length(loss: Loss, at: _Point, to: _Direction) -> float:
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
        length -= float(slope / (square + loss.curvature(f) @ df**2))
        if not low < length < high:
            length = 0.5 * (low + high) if np.isfinite(high) else 4.0 * low
    return length


def _indefinite() -> ValueError:
    return ValueError(
        "the kernel matrix is not positive semi-definite, so that kernel logistic regression has "
        "no minimum. Choose another kernel, such as 'rbf', or other parameters, scale the features "
        "if they are large, or set the negative eigenvalues of a precomputed matrix to zero."
    )


def left_out_changes(K: Array, dual: Array, intercept: float, bound: Array) -> Array:
    """Return by how much each sample moves its own margin.

    Leave-one-out of the least squares problem that the last Newton step solves, with
    working response z = f + a / W: without sample p the margin is z_p - a_p / (A^-1)_pp,
    A = [[K + W^-1, 1], [1', 0]]. Multiplied by W^1/2 from both sides, A^-1 has the
    diagonal W_p D_p, with leverages 1 - D_p = W_p h_p, and the change is a_p h_p / D_p.

    Parameters
    ----------
    K : array of shape (n, n)
    dual, intercept : a solution
    bound : array of shape (n,)
        C times the weights of the samples.

    Returns
    -------
    array of shape (n,)
        The margin f = K a + b of sample p less the one without it.

    Raises
    ------
    Untrusted
        If the kernel is not positive definite.
    """
    f = accurate_product(K, dual) + intercept
    K = _centred(K)  # A^-1 is the same
    W = bound * expit(f) * expit(-f)
    root = np.sqrt(W)
    try:
        lower = np.linalg.cholesky(_newton_matrix(K, root))
    except np.linalg.LinAlgError:
        raise Untrusted("the kernel is not positive definite") from None
    inverse = dtrtri(lower.T, overwrite_c=1)[0].T  # L^-1, and B^-1 = L^-T L^-1
    border = inverse.T @ (inverse @ root)
    total = root @ border
    D = np.einsum("ij,ij->j", inverse, inverse) - border**2 / total
    leverage = 1.0 - D
    h = np.divide(leverage, W, out=np.zeros_like(W), where=W > 0)
    # Far on the wrong side W vanishes while a does not. There h, the variance of f at x_p
    # before the sample is known, is computed as such.
    far = np.flatnonzero(np.abs(dual) > SATURATED * W)
    seen = inverse @ (root[:, None] * K[:, far])
    h[far] = np.diagonal(K)[far] - np.einsum("ij,ij->j", seen, seen)
    h[far] += (1.0 - K[far] @ (root * border)) ** 2 / total
    least = -LOST * np.abs(np.diagonal(K)).max()
    if (D <= 0).any() or (leverage < -LOST).any() or (h[far] < least).any():
        raise Untrusted("the kernel is not positive definite")
    return dual * np.maximum(h, 0.0) / D
