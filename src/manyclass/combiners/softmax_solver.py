"""Multinomial likelihood with weights on a pattern, and its minimum over weights >= 0.

The numerical core of :mod:`manyclass.combiners.softmax`. There is one parameter u_cb for every
nonzero entry (class c, column b) of a sparse pattern. The bias of a class is its weight on a last
column of ones. All classes share one array of scores; there is no copy for every class.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.optimize import minimize
from scipy.sparse import csr_array

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.row_blocks import BLOCK_ENTRIES, row_blocks

ROUNDING = 1e-15
"""Rounding error of the objective and its derivatives: a few times the float64 epsilon."""
ARMIJO = 1e-4
"""Share of the expected decrease that a line search asks for: c_1 of Nocedal and Wright,
"Numerical optimization" (2006), eq. (3.4), with their value."""
SHORTEST = 1e-10
"""Share of a step at which a line search gives up. A choice: 33 halvings; a descent direction
needs more only if rounding errors hide the decrease."""


class Likelihood:
    """Mean of -log P over weighted samples, where P_c ∝ exp(sum_b u_cb M_cb x_b).

    ``X`` (l + 1, n) holds scaled scores, a row for each column of the code; the last row is all
    ones. ``weights`` (n,) are positive. ``pattern`` (k, l + 1) holds the sign M_cb of every
    parameter u_cb, 0 where there is none.
    """

    def __init__(self, X: Floats, y: Places, weights: Floats, pattern: Code):
        self.X, self.y, self.samples = X, y, np.arange(len(y))
        self.shares = weights / weights.sum()
        self.classes, self.columns = np.nonzero(pattern)
        self.signs = pattern[self.classes, self.columns].astype(np.float64)
        self.shape, self.size = pattern.shape, len(self.signs)
        self.ends = np.searchsorted(self.classes, np.arange(len(pattern) + 1))

    def probabilities(self, u: Floats) -> tuple[Floats, Floats]:
        """Return log P of the true classes (n,) and P (k, n)."""
        signed = csr_array((u * self.signs, self.columns, self.ends), shape=self.shape)
        logits = signed @ self.X
        logits -= logits.max(axis=0)
        reached = logits[self.y, self.samples]
        P = np.exp(logits, out=logits)
        total = P.sum(axis=0)
        P /= total
        return reached - np.log(total), P

    def value_and_gradient(self, u: Floats) -> tuple[float, Floats, Floats]:
        """Return the mean of -log P, its gradient, and P (k, n)."""
        reached, P = self.probabilities(u)
        residuals = P * self.shares
        residuals[self.y, self.samples] -= self.shares
        gradient = (residuals @ self.X.T)[self.classes, self.columns] * self.signs
        return -float(self.shares @ reached), gradient, P

    def hessian(self, P: Floats, chosen: Places, block_entries: int = BLOCK_ENTRIES) -> Floats:
        """Return second derivatives among the chosen parameters (sorted), at P.

        They are ``sum_i s_i (δ_cd P_ic - P_ic P_id) x_icb x_ide``. The second term is one
        symmetric product for all classes; the first term is one product for each class.
        """
        classes, columns, signs = (a[chosen] for a in (self.classes, self.columns, self.signs))
        ends = np.searchsorted(classes, np.arange(self.shape[0] + 1))
        H = np.zeros((len(chosen), len(chosen)), order="F")
        for rows in row_blocks(len(self.y), len(chosen), block_entries):
            X = self.X[columns, rows] * signs[:, None]
            p, s = P[:, rows], self.shares[rows]
            G = X * (p * np.sqrt(s))[classes]
            H = dsyrk(-1.0, G.T, beta=1.0, c=H, trans=1, overwrite_c=1)  # upper triangle
            for c, (start, end) in enumerate(pairwise(ends)):
                own = X[start:end]
                H[start:end, start:end] += (own * (p[c] * s)) @ own.T
        return np.triu(H) + np.triu(H, 1).T


class Sample(NamedTuple):
    """The training data, as in :class:`Likelihood`; the last pattern column is for the biases."""

    X: Floats  # margins divided by their root-mean-square; the last row is all ones
    y: Places
    weights: Floats
    pattern: Code
    units: Floats  # for every weight, the divisor of its margins

    def likelihood(self, rows: Places | slice = slice(None)) -> Likelihood:
        """Return the likelihood of some rows."""
        return Likelihood(self.X[:, rows], self.y[rows], self.weights[rows], self.pattern)

    def ridge(self, C: float, rows: Places | slice = slice(None)) -> Floats:
        """Return ridge_j with ``½ sum_j ridge_j u_j² = ½ |w|² / (C · total weight)``.

        A weight on scaled margins is u = w · unit, so w² = u² / unit².
        """
        with np.errstate(over="ignore", divide="ignore"):
            penalty = 1.0 / (C * self.weights[rows].sum()) / self.units**2
        return np.minimum(penalty, 1e200)  # finite, also after a product with u²


def limits_of(values: Floats, factor: float = 10.0, largest_unit: float = 1e100) -> Floats:
    """Return for every column the limit of the absolute margins: larger ones are clipped.

    It is ``factor`` times the largest finite margin, so that infinite margins stay the largest.
    Beyond ``largest_unit`` squares would overflow.
    """
    finite = np.isfinite(values)
    highest = values.max(axis=0, where=finite, initial=0.0)
    lowest = values.min(axis=0, where=finite, initial=0.0)
    largest = np.maximum(highest, -lowest)
    return np.where(largest > 0, factor * np.minimum(largest, largest_unit), 1.0)


def make_sample(values: Floats, y: Places, weights: Floats, code: Code, limits: Floats) -> Sample:
    """Clip the margins, scale them and transpose them."""
    X = np.ones((code.shape[1] + 1, len(y)))
    margins, limits = X[:-1], limits[:, None]
    np.clip(values.T, -limits, limits, out=margins)
    margins /= limits  # squares neither overflow nor underflow
    scale = np.sqrt(np.einsum("ij,ij,j->i", margins, margins, weights / weights.sum()))
    # A unit, scale times limit, is at least 1e-100: its square does not underflow.
    scale = np.where(scale > 0, np.maximum(scale, 1e-100 / limits[:, 0]), 1.0)
    margins /= scale[:, None]
    units = np.append(scale * limits[:, 0], 1.0)
    pattern = np.column_stack([own_columns(code), np.ones(len(code), dtype=np.int8)])
    return Sample(X, y, weights, pattern, units[np.nonzero(pattern)[1]])


def own_columns(code: Code) -> Code:
    """Return a one-vs-rest code in which each class only has its own column.

    This is section 2.1 of Duan et al. (2003); columns may have any order and sign. Every other
    code is returned unchanged (section 2.2).
    """
    k, n_columns = code.shape
    sums = code.sum(axis=0, dtype=np.intp)
    alone = code * np.sign(sums) == -1  # the only class of its side
    split = n_columns == k > 2 and (np.abs(sums) == k - 2).all() and code.all()
    if split and (alone.sum(axis=1) == 1).all():
        return np.where(alone, code, np.int8(0))
    return code


class Point(NamedTuple):
    """Parameters, and the penalised objective with its gradient at these parameters."""

    u: Floats
    value: float
    gradient: Floats
    P: Floats


class Curvature(NamedTuple):
    """Second derivatives of the likelihood for some of the parameters; the others are 0."""

    chosen: Places
    H: Floats


class Minimum(NamedTuple):
    """The result of a minimisation."""

    u: Floats
    n_iter: int
    converged: bool
    curvature: Curvature | None = None  # the last one: a minimisation that starts here can use it


def minimise(
    likelihood: Likelihood,
    ridge: Floats,
    tol: float,
    max_iter: int,
    start: Minimum | None = None,
    most_for_newton: int = 2500,
) -> Minimum:
    """Minimise ``likelihood + ½ sum_j ridge_j u_j²`` subject to u >= 0.

    It has converged if no free derivative, divided by ``sqrt(1 + ridge_j)``, exceeds ``tol``, or
    if the remaining decrease is below rounding errors. A derivative is free if its parameter is
    not held at the bound. Problems with more than ``most_for_newton`` parameters are solved
    without second derivatives; 2500 parameters have 50 MB of them.
    """
    solve = newton if likelihood.size <= most_for_newton else quasi_newton
    start = start or Minimum(np.zeros(likelihood.size), 0, True)
    return solve(likelihood, ridge, tol, max_iter, start)


def newton(
    likelihood: Likelihood,
    ridge: Floats,
    tol: float,
    max_iter: int,
    start: Minimum,
    contraction: float = 0.1,
) -> Minimum:
    """Newton's method: every step minimises the quadratic model exactly, within the bounds.

    Second derivatives take most of the time. They are used again as long as each step reduces
    the error at least by the factor ``contraction``.
    """
    here, curvature, last_error = evaluate(likelihood, ridge, start.u), start.curvature, np.inf
    for n_iter in range(max_iter):
        error = optimality_error(here, ridge)
        if error <= tol:
            return Minimum(here.u, n_iter, True, curvature)
        fresh = error > contraction * last_error
        wanted = moving(here)
        if curvature is None or fresh or wanted[curvature.chosen].sum() < wanted.sum():
            # Take the parameters that may be positive after the next step.
            loose = here.gradient <= 10.0 * error * np.sqrt(1.0 + ridge)
            chosen = np.flatnonzero((here.u > 0) | loose)
            fresh, curvature = True, Curvature(chosen, likelihood.hessian(here.P, chosen))
        target = minimum_of_model(curvature, ridge, here)
        slope = float(here.gradient @ (target - here.u))
        there = search_line(likelihood, ridge, here, target, slope)
        if there is None:
            if fresh:
                return Minimum(here.u, n_iter, error <= ROUNDING**0.5, curvature)
            last_error = 0.0  # the old second derivatives are too inaccurate: compute new ones
            continue
        if fresh and -slope <= ROUNDING * (1.0 + here.value):
            return Minimum(there.u, n_iter + 1, True, curvature)
        here, last_error = there, error
    return Minimum(here.u, max_iter, optimality_error(here, ridge) <= tol, curvature)


def evaluate(likelihood: Likelihood, ridge: Floats, u: Floats) -> Point:
    """Return the penalised objective at u."""
    value, gradient, P = likelihood.value_and_gradient(u)
    return Point(u, value + 0.5 * float(ridge @ (u * u)), gradient + ridge * u, P)


def moving(point: Point) -> Flags:
    """Return which parameters are positive, or would become positive by a gradient step."""
    return (point.u > 0) | (point.gradient < 0)


def optimality_error(point: Point, ridge: Floats) -> float:
    """Return the largest free derivative, divided by ``sqrt(1 + ridge_j)``."""
    errors = np.abs(point.gradient) / np.sqrt(1.0 + ridge)
    return float(errors.max(where=moving(point), initial=0.0))


def minimum_of_model(curvature: Curvature, ridge: Floats, point: Point) -> Floats:
    """Return the minimum, within the bounds, of the quadratic model of the objective."""
    chosen, H = curvature
    # Rounding errors may make smaller eigenvalues negative; with this H can be factored.
    least = 1e-12 * (1.0 + np.trace(H))
    H = H + np.diag(np.maximum(ridge[chosen], least))
    u = point.u[chosen]
    q = point.gradient[chosen] - H @ u
    x = by_pivots(H, q, moving(point)[chosen])
    target = np.zeros_like(point.u)
    target[chosen] = by_descent(H, q, u) if x is None else x
    return target


def by_pivots(H: Floats, q: Floats, free: Flags, patience: int = 4) -> Floats | None:
    """Return the x >= 0 that minimises ``½ x'Hx + q'x``, or None if the pivots repeat.

    In each round all parameters that violate their optimality condition change between free
    and zero (Portugal, Júdice and Vicente 1994, "A comparison of block pivoting and
    interior-point algorithms for linear least squares problems with nonnegative variables").
    After ``patience`` rounds without fewer violations the method gives up.
    """
    fewest, left = len(q) + 1, patience
    while left > 0:
        x = restricted(H, -q, free)
        wrong = np.where(free, x < 0, H @ x + q < -ROUNDING)
        n_wrong = int(np.count_nonzero(wrong))
        if n_wrong == 0:
            return x
        fewest, left = (n_wrong, patience) if n_wrong < fewest else (fewest, left - 1)
        free = free ^ wrong
    return None


def by_descent(
    H: Floats, q: Floats, x: Floats, most_steps: int = 100, most_near: float = 1e-2
) -> Floats:
    """Approximate the same minimum from x >= 0 by steps that never increase the objective.

    Projected Newton steps (Bertsekas 1982, "Projected Newton methods for optimization
    problems with simple constraints"): parameters within ``most_near`` of 0, his epsilon in
    eq. (32), are held at 0 if their gradient is positive.
    """
    for _ in range(most_steps):
        gradient = H @ x + q
        near = min(most_near, float(np.max(np.abs(x - np.maximum(x - gradient, 0.0)))))
        held = (x <= near) & (gradient >= -ROUNDING)
        step = np.where(held, -x, restricted(H, -gradient, ~held))
        share = 1.0
        while share > SHORTEST:
            move = np.maximum(x + share * step, 0.0) - x
            expected = float(gradient @ move)
            if expected + 0.5 * float(move @ (H @ move)) <= ARMIJO * expected:
                break
            share /= 2.0
        if share <= SHORTEST or -expected <= ROUNDING**2:
            break
        x = x + move
    return x


def restricted(H: Floats, right: Floats, free: Flags) -> Floats:
    """Solve ``H x = right`` among the free parameters; the others are 0."""
    inside = np.flatnonzero(free)
    x = np.zeros(len(right))
    if len(inside):
        factor = cho_factor(H[np.ix_(inside, inside)], check_finite=False)
        x[inside] = cho_solve(factor, right[inside], check_finite=False)
    return x


def search_line(
    likelihood: Likelihood, ridge: Floats, here: Point, target: Floats, slope: float
) -> Point | None:
    """Halve the step to the target until Armijo's rule accepts it; None if it never does."""
    share = 1.0 if slope < 0 else 0.0
    while share > SHORTEST:
        u = target if share == 1 else here.u + share * (target - here.u)
        there = evaluate(likelihood, ridge, u)
        if there.value <= here.value + ROUNDING * (1.0 + here.value) + ARMIJO * share * slope:
            return there
        share /= 2.0
    return None


def quasi_newton(
    likelihood: Likelihood, ridge: Floats, tol: float, max_iter: int, start: Minimum
) -> Minimum:
    """L-BFGS-B, for problems with too many parameters to store second derivatives.

    It compares values of the objective, and their rounding errors hide derivatives below 1e-7.
    """
    units = np.sqrt(1.0 + ridge)

    def objective(v: Floats) -> tuple[float, Floats]:
        point = evaluate(likelihood, ridge, v / units)
        return point.value, point.gradient / units

    steps = {"maxiter": 100 * max_iter, "maxfun": 200 * max_iter, "maxcor": 20}
    options = {**steps, "ftol": 0.0, "gtol": tol}
    how = {"method": "L-BFGS-B", "jac": True, "bounds": [(0.0, None)] * likelihood.size}
    found = minimize(objective, start.u * units, options=options, **how)
    error = optimality_error(evaluate(likelihood, ridge, found.x / units), ridge)
    return Minimum(found.x / units, found.nit, error <= max(tol, 1e-7))
