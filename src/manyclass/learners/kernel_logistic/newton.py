"""Newton's method for kernel logistic regression.

At the minimum the dual coefficients are a_i = C s_i (t_i - p_i), with targets t in
{0, 1} and p = 1 / (1 + exp(-f)), f = K a + b; the difference of both sides is the
gradient in function space.

Where classes overlap, coefficients are as large as C and cancel each other in K a, more so
if K is of low rank or far from centred. In float64 all that is left may be rounding. So the
last steps are taken with margins of twice the digits, and coefficients whose rounding
these margins do not show.
"""

from __future__ import annotations

from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lstsq

from manyclass.learners.kernel_logistic.loss import Array, Loss, Point, gradient_of
from manyclass.learners.kernel_logistic.steps import (
    EPSILON,
    ROUGH,
    ROUNDING,
    IndefiniteKernelError,
    Newton,
)
from manyclass.learners.kernel_logistic.symmetric_products import (
    accurate_product,
    symmetric_product,
)

SLOWEST = 0.9  # share of the gradient that a step may leave where the objective does not tell
SOME = 64  # rows that a mean is estimated by
FEW = 64, 16, 4  # coefficients that bear what others are rounded by, one after the other
DEPENDENT = 1e-12  # singular values, relative to the largest, that count as zero
PREVAILING = 0.1  # what means may leave of the kernel's mean diagonal to be subtracted


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
    negative: float = 0.0
    """Size of the least eigenvalue of K, relative to the largest, if it had to be set to zero."""


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

    Where the rank of K turns out to be low, steps are those of linear logistic regression
    with as many features. Otherwise they are found by conjugate gradients, preconditioned
    by a Cholesky factorisation: of B itself for up to a few hundred samples, or when all else
    takes too long; otherwise of B with a partial factorisation of K. Their length minimises
    the objective. Where B is factored, one step more is taken when ``tol`` is met: it squares
    the error. Further ones follow while they bring K r, too, towards ``tol``: where classes are
    separable, coefficients are so far below C that a small part of C is a large one of them.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix, symmetric. Should it turn out to have negative eigenvalues, so that there
        is no minimum, they count as zero; coefficients stay where the others are.
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

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.learners.kernel_logistic.newton import solve
    >>> K = np.array([[1.0, 0.5], [0.5, 1.0]])
    >>> solve(K, np.array([True, False]), np.ones(2)).dual.round(4)
    array([ 0.4446, -0.4446])
    """
    try:
        return _solve(K, positive, bound, tol, max_iter, start)
    except IndefiniteKernelError:
        values, vectors = np.linalg.eigh(K)
        kept = values > EPSILON * len(K) * np.abs(values).max()
        part = vectors[:, kept]
        found = _solve((part * values[kept]) @ part.T, positive, bound, tol, max_iter, start)
        # Where K is not zero on them, coefficients give the margins of its part by K itself.
        dual = part @ (part.T @ found.dual)
        return found._replace(dual=dual, negative=float(-values[0] / np.abs(values).max()))


def _solve(
    K: Array,
    positive: NDArray[np.bool_],
    bound: Array,
    tol: float,
    max_iter: int,
    start: tuple[Array, float] | None,
) -> Solution:
    loss, inner = Loss(np.where(positive, 1.0, -1.0), bound), centred(K)
    newton = Newton(_certain(inner, bound, _size(K)), bound, _size(K))
    if start is not None and inner is not K:
        start = start[0], start[1] + float(accurate_product(K, start[0]).mean())
    at, n_iter = newton.minimise(loss, tol, max_iter, start)
    rounding = newton.rounding(at.a)
    visible = rounding > ROUGH * tol
    if inner is K and newton.F is not None and ROUGH * tol < rounding < tol / ROUGH:
        # Products in different orders tell what of the bound has come true: little, as a rule.
        visible = max(at.gradient, _shown(K, loss, at)) > ROUGH * tol
    if inner is not K or visible:
        goal = ROUGH * tol if visible else tol
        at, n_iter = _refined(newton, K, loss, at, goal, n_iter, max_iter)
    shown = _shown(K, loss, at) if visible else 0.0
    return Solution(at.a, at.b, n_iter, at.gradient, max(at.gradient, shown))


def centred(K: Array) -> Array:
    """Return the matrix of kernels less their means over rows and columns, if these prevail.

    Since the sum of a is 0, it gives the same margins with another b, from smaller terms;
    their mean is that b.
    """
    size = np.diagonal(K).mean()
    if size - K[:: 1 + len(K) // SOME].mean() > PREVAILING * size:
        return K
    inner: Array = K.copy()
    for _ in range(2):  # the second time for the rounding of large means, n times that of entries
        means = inner.mean(axis=0)
        inner -= means
        inner -= (means - means.mean())[:, None]
    return inner


def _certain(K: Array, bound: Array, size: float) -> Array:
    """Return K, with the noise of its rounding on the diagonal where C makes it matter.

    Entries that are wrong by EPSILON times the size of their terms change eigenvalues by up
    to n times that, and zeros become negative: those of W^1/2 K W^1/2 must stay above -1.
    """
    noise = EPSILON * size * len(K)
    if 0.25 * noise * bound.max() < ROUGH:
        return K
    raised = K.copy()
    raised.flat[:: len(K) + 1] += noise
    return raised


def _size(K: Array) -> float:
    """Return the largest entry, as Cauchy and Schwarz have it."""
    return float(np.abs(np.diagonal(K)).max())


def _shown(K: Array, loss: Loss, at: Point) -> float:
    """Return the gradient by products in float64; two of them, since rounding is by chance."""
    margins = (K @ at.a + at.b, symmetric_product(K, at.a) + at.b)
    return max(gradient_of(loss, at.a, loss.dual(f)) for f in margins)


def _refined(
    newton: Newton, K: Array, loss: Loss, at: Point, tol: float, n_iter: int, max_iter: int
) -> tuple[Point, int]:
    """Take more steps with margins of twice the digits, while they lead on.

    Directions come from float64. Where it hardly knows K for the size of C, they are not exact:
    the gradient falls by a share in each step, and may rise as long as the objective falls. K is
    the matrix as it was given, and b becomes the one that goes with it.
    """
    at = _accurate(K, loss, _settled(newton.K, at.a, np.zeros_like(at.a)), at.f)
    while at.gradient > tol and n_iter < max_iter:
        with np.errstate(over="ignore", invalid="ignore"):
            to, length = newton.towards(loss, at)
        n_iter += 1
        if not np.isfinite(to.Ka).all():
            break
        a = _settled(newton.K, at.a, length * to.a)
        new = _accurate(K, loss, a, at.f + length * (to.Ka + to.b))
        # Far from the minimum the objective tells points apart, the gradient only near it.
        share = 0.5 if at.gradient > ROUGH else SLOWEST
        falls = new.objective < (1.0 - ROUNDING) * at.objective
        if not (falls or new.gradient <= share * at.gradient):
            break
        at = new
    return at, n_iter


def _accurate(K: Array, loss: Loss, a: Array, f: Array) -> Point:
    """Return the point with these coefficients, and b such that its margins are about f."""
    Ka = accurate_product(K, a)
    if not np.isfinite(Ka).all():  # numbers above 1e300 cannot be cut in two
        Ka = K @ a
    return Point(loss, a, float(f.mean() - Ka.mean()), Ka)


def _settled(K: Array, a: Array, change: Array) -> Array:
    """Return a + change, with the sum 0, rounded such that the margins do not show it.

    The smallest coefficients have digits to spare where others may be as large as C. They
    bear what all others are rounded by, as far as the columns of K depend on theirs; and fewer
    of them, which are smaller still, what these are rounded by then.
    """
    new, rest = _sum_and_rest(a, change)
    smallest = np.argsort(np.abs(new), kind="stable")
    seen = np.abs(K @ rest).max()
    for n_few in FEW:
        few = smallest[:n_few]
        rows = K[few]
        inner = rows[:, few]
        size = float(np.abs(inner).max())
        system = np.full((len(few) + 1, len(few) + 1), size)
        system[:-1, :-1], system[-1, -1] = inner, 0.0
        wanted = np.append(rows @ rest, -size * fsum(new))
        options = {"cond": DEPENDENT, "lapack_driver": "gelsy", "check_finite": False}
        borne = lstsq(system, wanted, **options)[0][:-1]
        settled, left = new.copy(), rest.copy()
        settled[few], left[few] = _sum_and_rest(new[few], borne)
        left[few] += rest[few] - borne
        still_seen = np.abs(K @ left).max()
        # The first of them are to bring the sum to 0, too.
        if n_few < FEW[0] and not still_seen < seen:
            break
        new, rest, seen = settled, left, still_seen
    new[smallest[0]] -= fsum(new)
    return new


def _sum_and_rest(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b, and what it is rounded by."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
