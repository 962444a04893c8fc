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
from manyclass.combiners.coupling.base import CouplingRule, column_lists, pair_reader
from manyclass.combiners.coupling.kernels.by_block import LOWEST
from manyclass.combiners.coupling.kernels.by_row import couple_noniterative, couple_zadrozny
from manyclass.combiners.coupling.kernels.entropy import couple_even
from manyclass.combiners.coupling.kernels.kl import couple_kl
from manyclass.combiners.coupling.kernels.least_squares import couple_least_squares
from manyclass.combiners.coupling.pairwise import newton_solver

ENTROPY = 0.2  # weight of the penalty for codes that do not determine p
MOST_ENTROPY = 1e9
CORRECTION = 1e-11  # of a multiplier, below which Newton's steps end

MOST_STARTS = 10_000


@register
class KullbackLeibler(CouplingRule):
    """Minimise the Kullback-Leibler distance sum_b n_b KL(r_b || q_b(p)).

    On one-vs-one codes this is :class:`HastieTibshirani`. Codes without zeros are
    convex in p; codes with zeros may have several minima, of which the best
    found from ``n_starts`` starts is returned.

    Parameters
    ----------
    tol : float, default=1e-10
        Largest change of a probability in the last step.
    max_iter : int, default=300
        Limit of steps from each start.
    n_starts : int, default=3
        Starts for codes with zeros: the non-iterative estimate, the uniform
        distribution, the non-iterative estimate sharpened, then random ones.
    random_state : int, RandomState or None, default=0
        Seed of the random starts, used only when ``n_starts`` is above 3.

    Notes
    -----
    Zadrozny's iteration (:class:`Zadrozny`) aims at the same objective but its
    fixed point is another one as soon as a side of a column has two classes.

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
        self,
        tol: float = 1e-10,
        max_iter: int = 300,
        n_starts: int = 3,
        random_state: int | np.random.RandomState | None = 0,
    ):
        self.tol = tol
        self.max_iter = max_iter
        self.n_starts = n_starts
        self.random_state = random_state

    def prepare(self, code, weights):
        """Newton on log p for one-vs-one, an interior point method otherwise."""
        reader = pair_reader(code)
        if reader is not None:
            canonical, order = reader
            pairs = weights[order] / weights.mean()
            newton = newton_solver(len(code), pairs, float(self.tol), int(self.max_iter))
            return lambda r, p, iterations, converged: newton(
                canonical(r), p, iterations, converged
            )
        n_starts = check_integer("n_starts", self.n_starts, 1)
        if n_starts > MOST_STARTS:
            raise ValueError(f"n_starts must be at most {MOST_STARTS}, got {n_starts}.")
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

    p_i <- p_i (sum_{B+} n_b r_b + sum_{B-} n_b (1 - r_b)) / (the same with q_b),
    all classes at once, then renormalised. Kept for reproducing the paper; its
    fixed point does not minimise the distance the paper states unless all sides
    are single classes. :class:`KullbackLeibler` does.

    Parameters
    ----------
    tol : float, default=1e-8
        Largest change of a probability between iterates at which to stop.
    max_iter : int, default=10000
        Limit of iterations.
    start : {"noniterative", "uniform"}, default="noniterative"
        The first guess, which the paper leaves open.

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
            raise ValueError(
                f"start must be 'noniterative' or 'uniform', got {quoted(self.start)}."
            )
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
        """False: nothing is solved for."""
        return False

    def prepare(self, code, weights):
        """Sum."""
        lists = column_lists(code)
        return lambda r, p, iterations, converged: couple_noniterative(r, *lists, p)


@register
class LeastSquares(CouplingRule):
    """Minimise sum_b n_b ((1 - r_b) p(I_b) - r_b p(J_b))^2 over the simplex.

    On one-vs-one codes with equal weights this is :class:`WuLinWeng2`. Here
    p >= 0 is a true constraint and is enforced exactly.

    A code that does not determine p, such as one of fewer than k - 1 columns, leaves many
    minima. Then the objective, with weights of mean 1, is halved and ``entropy`` times
    sum_i p_i log p_i is added, which prefers even distributions: there is one minimum.

    Parameters
    ----------
    max_iter : int, default=1000
        Limit of changes of the set of classes at zero; of Newton's steps with ``entropy``.
    entropy : float, optional
        Weight of the penalty: the expected square of a column's residual
        (1 - r_b) p(I_b) - r_b p(J_b). By default 0.2 where the code does not determine p, and
        0 where it does; then consistent r are recovered. A positive number is used with any
        code: with many classes and not many more columns it makes for better probabilities.

    Notes
    -----
    As the penalty vanishes the answer becomes the most even one of the best fitting, which
    believes every binary model to the letter: log-loss is far worse than with a penalty that
    allows for their errors, and is best, on all that was tried, between 0.1 and 0.4.
    A column weighs little for a sample whose class has no part in it, p(I_b) + p(J_b) being
    small; :class:`KullbackLeibler` takes all columns at their word.

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
        """False, unless the penalty is switched off."""
        return self.entropy is not None and self.entropy == 0

    def _penalty(self, code) -> float:
        if self.entropy is None:
            return 0.0 if codes.is_identifiable(code) else ENTROPY
        if not isinstance(self.entropy, Real) or not 0 <= float(self.entropy) <= MOST_ENTROPY:
            raise ValueError(
                f"entropy must be None or a number from 0 to {MOST_ENTROPY:g}, where all "
                f"distributions are even, got {quoted(self.entropy)}."
            )
        return float(self.entropy)

    def prepare(self, code, weights):
        """One factorisation a row, a few more where p >= 0 binds; with a penalty Newton."""
        lists, weights, max_iter = column_lists(code), weights / weights.mean(), int(self.max_iter)
        penalty = self._penalty(code)
        if penalty > 0:
            ridge = penalty / weights
            return lambda r, p, iterations, converged: couple_even(
                r, *lists, ridge, CORRECTION, max_iter, p, iterations, converged
            )
        return lambda r, p, iterations, converged: couple_least_squares(
            r, weights, *lists, max_iter, p, iterations, converged
        )


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
