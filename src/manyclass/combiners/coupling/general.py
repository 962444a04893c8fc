"""Coupling rules for any ternary code: r_b estimates p(I_b) / (p(I_b) + p(J_b))."""

from __future__ import annotations

from numbers import Real
from typing import Literal

import numpy as np
from sklearn.utils import check_random_state

from manyclass import codes
from manyclass._lib.messages import quoted
from manyclass.codes.checks import check_integer
from manyclass.combiners.base import register
from manyclass.combiners.coupling.base import (
    CouplingRule,
    Solver,
    column_lists,
    pair_reader,
    rest_reader,
)
from manyclass.combiners.coupling.kernels.by_row import couple_noniterative, couple_zadrozny
from manyclass.combiners.coupling.kernels.conjugate_gradients import couple_even
from manyclass.combiners.coupling.kernels.kl import couple_kl
from manyclass.combiners.coupling.kernels.least_squares import couple_least_squares
from manyclass.combiners.coupling.kernels.separable import couple_rest_kl, couple_rest_squares
from manyclass.combiners.coupling.kernels.squares_by_block import couple_squares
from manyclass.combiners.coupling.kernels.transposed import LOWEST
from manyclass.combiners.coupling.pairwise import newton_solver
from manyclass.combiners.ties import Seed


@register
class KullbackLeibler(CouplingRule):
    """Minimise the Kullback-Leibler distance sum_b n_b KL(r_b || q_b(p)).

    On one-vs-one codes this is :class:`HastieTibshirani`. For codes without zeros the
    distance is convex in p. For codes with zeros it may have several minima; the best
    one found from ``n_starts`` starts is returned.

    Parameters
    ----------
    tol : float, default=1e-10
        Largest change of a probability in the last step.
    max_iter : int, default=300
        Limit of steps from each start.
    n_starts : int, default=3
        Number of starts for codes with zeros, at most 10,000: the non-iterative estimate, the
        uniform distribution, the sharpened non-iterative estimate, then random ones.
    random_state : int, RandomState or None, default=0
        Seed of the random starts, used only when ``n_starts`` is above 3.

    Notes
    -----
    Zadrozny's iteration (:class:`Zadrozny`) is meant to minimise the same distance. But
    its fixed point is not the minimum if a side of a column has two classes or more.

    References
    ----------
    .. [1] B. Zadrozny, "Reducing multiclass to binary by coupling probability
       estimates", NIPS 2001, section 3.

    Examples
    --------
    >>> from manyclass import couple
    >>> couple([[0.7, 0.2, 0.3]], code="one-vs-rest", rule="kl").round(4)
    array([[0.6131, 0.1526, 0.2343]])
    """

    key = "kl"

    def __init__(
        self, tol: float = 1e-10, max_iter: int = 300, n_starts: int = 3, random_state: Seed = 0
    ):
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.random_state = random_state

    def prepare(self, code, weights):
        """Use Newton's method on log p for one-vs-one codes, else an interior point method."""
        n_starts = check_integer("n_starts", self.n_starts, 1)
        most_starts = 10_000  # a choice: more would take longer than a second per row
        if n_starts > most_starts:
            raise ValueError(f"n_starts must be at most {most_starts}, got {n_starts}.")
        reader = pair_reader(code)
        if reader is not None:
            canonical, order = reader
            pairs = weights[order] / weights.mean()
            newton = newton_solver(len(code), pairs, float(self.tol), int(self.max_iter))
            return lambda r, p, steps, converged: newton(canonical(r), p, steps, converged)
        rest = rest_reader(code)
        if rest is not None:
            (canonical, order), most = rest, int(self.max_iter)
            weights = weights[order]
            return lambda r, p, iterations, converged: couple_rest_kl(
                canonical(r), weights, most, p, iterations, converged
            )
        if codes.is_dense(code):
            n_starts = 1
        rng = check_random_state(self.random_state)
        more = rng.dirichlet(np.ones(len(code)), size=max(0, n_starts - 3))
        lists, weights = column_lists(code), weights / weights.sum()
        tol, max_iter = float(self.tol), int(self.max_iter)
        return lambda r, p, iterations, converged: couple_kl(
            r, weights, *lists, n_starts, more, tol, max_iter, p, iterations, converged
        )


@register
class Zadrozny(CouplingRule):
    """Zadrozny's iteration exactly as printed.

    p_i <- p_i (sum_{B+} n_b r_b + sum_{B-} n_b (1 - r_b)) / (the same with q_b), for all classes at
    once, then p is normalised. Use it to reproduce the paper. Its fixed point minimises the
    distance that the paper states only if all sides are single classes.

    Parameters
    ----------
    tol : float, default=1e-8
        Largest change of a probability between iterates at which to stop.
    max_iter : int, default=10000
        Limit of iterations.
    start : {"noniterative", "uniform"}, default="noniterative"
        The start; the paper does not define one.

    References
    ----------
    .. [1] B. Zadrozny, "Reducing multiclass to binary by coupling probability
       estimates", NIPS 2001, section 3.
    """

    key = "zadrozny"
    is_slow = True

    def __init__(
        self,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        start: Literal["noniterative", "uniform"] = "noniterative",
    ):
        self.tol = tol
        self.max_iter = max_iter
        self.start = start

    def prepare(self, code, weights):
        """Iterate row by row."""
        if self.start not in ("noniterative", "uniform"):
            given = quoted(self.start)
            raise ValueError(f"start must be 'noniterative' or 'uniform', got {given}.")
        lists, weights = column_lists(code), weights / weights.mean()
        uniform, tol, max_iter = self.start == "uniform", float(self.tol), int(self.max_iter)
        return lambda r, p, iterations, converged: couple_zadrozny(
            r, weights, *lists, uniform, tol, max_iter, p, iterations, converged
        )


@register
class NonIterative(CouplingRule):
    """Zadrozny's non-iterative estimate: sum_{B+} r_b + sum_{B-} (1 - r_b), normalised.

    References
    ----------
    .. [1] B. Zadrozny, "Reducing multiclass to binary by coupling probability
       estimates", NIPS 2001, section 3.
    """

    key = "noniterative"

    @property
    def needs_identifiable(self) -> bool:
        """False: the rule is a sum and solves no equations."""
        return False

    def prepare(self, code, weights):
        """Sum."""
        lists = column_lists(code)
        return lambda r, p, iterations, converged: couple_noniterative(r, *lists, p)


@register
class LeastSquares(CouplingRule):
    """Minimise sum_b n_b ((1 - r_b) p(I_b) - r_b p(J_b))^2 over the simplex.

    On one-vs-one codes with equal weights this is :class:`WuLinWeng2`. The constraint
    p >= 0 is enforced exactly.

    If the code does not determine p, for example because it has fewer than k - 1 columns, there are
    many minima. Then the objective is one half of the sum, with weights of mean 1, plus ``entropy``
    times sum_i p_i log p_i, which prefers even distributions and makes the minimum unique.

    Parameters
    ----------
    max_iter : int, default=1000
        Limit of changes of the set of classes with p_i = 0; with ``entropy``, limit of Newton
        steps.
    entropy : float, optional
        Weight of the penalty: the expected square of a column's residual. The default is 0.2 if the
        code does not determine p, and 0 if it does; with 0 consistent r give p back. A positive
        number improves probabilities if the code has many classes and few more columns.

    Notes
    -----
    With a tiny penalty the result fits all binary models exactly, errors included, and its log-loss
    is far worse. In all our experiments log-loss was best between 0.1 and 0.4. If a class takes no
    part in a column, p(I_b) + p(J_b) is small for its samples, and so is the effect of the column.
    :class:`KullbackLeibler` gives all columns the same effect.

    Examples
    --------
    >>> from manyclass import couple
    >>> couple([[0.7, 0.2, 0.3]], code="one-vs-rest", rule="least-squares").round(4)
    array([[0.6333, 0.1333, 0.2333]])
    """

    key = "least-squares"

    def __init__(self, max_iter: int = 1000, entropy: float | None = None):
        self.max_iter = max_iter
        self.entropy = entropy

    @property
    def needs_identifiable(self) -> bool:
        """False, unless ``entropy`` is 0."""
        return self.entropy is not None and self.entropy == 0

    def _penalty(self, code, default: float = 0.2, most: float = 1e9) -> float:
        """Return the weight of the penalty; see the notes for the default.

        With a larger weight than ``most`` all distributions are even up to rounding errors.
        """
        if self.entropy is None:
            return 0.0 if codes.is_identifiable(code) else default
        if not isinstance(self.entropy, Real) or not 0 <= float(self.entropy) <= most:
            given = quoted(self.entropy)
            raise ValueError(f"entropy must be None or a number from 0 to {most:g}, got {given}.")
        return float(self.entropy)

    def prepare(self, code, weights):
        """Use one factorisation per row, more if some p_i is 0; Newton's method with a penalty."""
        weights, max_iter = weights / weights.mean(), int(self.max_iter)
        rest = rest_reader(code)
        penalty = self._penalty(code) if rest is None or self.entropy is not None else 0.0
        if rest is not None and penalty == 0:
            canonical, order = rest
            inverse = 1.0 / weights[order]
            return lambda r, p, iterations, converged: couple_rest_squares(
                canonical(r), inverse, p, iterations
            )
        lists = column_lists(code)
        if penalty > 0:
            ridge = penalty / weights
            tol = 1e-11  # of the change of a multiplier: p is then accurate to about 1e-10
            return lambda r, p, iterations, converged: couple_even(
                r, *lists, ridge, tol, max_iter, p, iterations, converged
            )
        return squares_solver(weights, lists, max_iter)


def squares_solver(weights, lists, max_iter: int, block_rounds: int = 10) -> Solver:
    """Return a solver that couples blocks of rows, then the few difficult rows one by one."""

    def solve(r, p, iterations, converged):
        couple_squares(r, weights, *lists, min(block_rounds, max_iter), p, iterations)
        left = np.flatnonzero(iterations < 0)
        if len(left) == 0:
            return
        answer = np.empty((len(left), p.shape[1])), iterations[left], converged[left]
        couple_least_squares(r[left], weights, *lists, max_iter, *answer)
        p[left], iterations[left], converged[left] = answer

    return solve


@register
class Normalize(CouplingRule):
    """One-vs-rest probabilities divided by their sum: p_i = r_i / sum_j r_j."""

    key = "normalize"
    accepts = "one-vs-rest"

    def prepare(self, code, weights):
        """Divide."""
        single = code.shape[1] == 1  # two classes in one column

        def solve(r, p, iterations, converged):
            np.clip(np.hstack([r, 1.0 - r]) if single else r, LOWEST, 1.0 - LOWEST, out=p)
            p /= p.sum(axis=1, keepdims=True)

        return solve
