"""Coupling rules for one-vs-one codes: r_ij estimates P(i | i or j)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from manyclass import codes
from manyclass._lib.arrays import Code, Floats
from manyclass._lib.messages import quoted
from manyclass.codes.checks import check_integer
from manyclass.combiners.base import register
from manyclass.combiners.coupling.base import CouplingRule, Solver, column_lists, pair_reader
from manyclass.combiners.coupling.kernels import by_block, by_row
from manyclass.combiners.coupling.kernels.conjugate_gradients import couple_wlw2_gradients
from manyclass.combiners.ties import Seed, as_seed, break_ties


class PairwiseRule(CouplingRule):
    """Base of the one-vs-one rules, with the pairs in canonical order."""

    accepts = "one-vs-one"

    @abstractmethod
    def prepare_pairs(self, k: int, weights: Floats) -> Solver:
        """Return the solver for pairs in the order of :func:`manyclass.codes.one_vs_one`."""

    def prepare(self, code: Code, weights: Floats) -> Solver:
        """Return a solver that brings the columns into canonical order first."""
        reader = pair_reader(code)
        assert reader is not None, "check_code has passed"
        canonical, order = reader
        solve = self.prepare_pairs(len(code), weights[order])
        return lambda r, p, iterations, converged: solve(canonical(r), p, iterations, converged)


@register
class Vote(PairwiseRule):
    """Share of the pairwise votes won: p_i = 2/(k(k-1)) sum_j 1[r_ij > r_ji].

    A pair at exactly 1/2 gives half a vote to each side. If several classes share the
    lead, one is chosen at random, as in section 6.1 of Wu, Lin & Weng, and raised by 1e-9.
    The choice depends only on the seed and on the row's own values.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed of the tie-breaks.

    References
    ----------
    .. [1] J. H. Friedman, "Another approach to polychotomous classification", 1996.
    """

    key = "vote"

    def __init__(self, random_state: Seed = 0):
        self.random_state = random_state

    def prepare_pairs(self, k, weights):
        """Count by exact integer arithmetic."""
        code, seed = codes.one_vs_one(k), as_seed(self.random_state)
        pairs, ones = np.arange(code.shape[1]), np.ones(code.shape[1])
        ends, shape = np.triu_indices(k, 1), code.shape
        plus, minus = (csr_array((ones, (side, pairs)), shape=shape) for side in ends)

        def solve(r, p, iterations, converged):
            won = ((r > 0.5) + 0.5 * (r == 0.5)).T
            p[:] = (plus @ won + minus @ (1.0 - won)).T
            p /= 0.5 * k * (k - 1)
            break_ties(p, r - 0.5, code, seed)
            p /= p.sum(axis=1, keepdims=True)

        return solve


@register
class HastieTibshirani(PairwiseRule):
    """Minimise the Kullback-Leibler distance sum_{i<j} n_ij KL(r_ij || p_i/(p_i+p_j)).

    Parameters
    ----------
    solver : {"newton", "printed"}, default="newton"
        Newton's method on log p, in which the problem is convex (Bradley-Terry), or
        the iteration printed in the paper, which can need thousands of steps.
    tol : float, default=1e-10
        Largest change of a probability in the last step. The printed iteration may still be
        far from the optimum then.
    max_iter : int, default=500
        Limit of steps; the printed iteration may need more.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani, "Classification by pairwise coupling",
       Annals of Statistics 26 (1998), section 2.

    Examples
    --------
    >>> from manyclass import couple
    >>> r = [[[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]]]
    >>> couple(r, rule="ht").round(4)
    array([[0.4811, 0.2416, 0.2773]])
    """

    key = "ht"

    def __init__(
        self,
        solver: Literal["newton", "printed"] = "newton",
        tol: float = 1e-10,
        max_iter: int = 500,
    ):
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def prepare_pairs(self, k, weights):
        """Use Newton's method or the printed iteration, which is Zadrozny's on this code."""
        if self.solver not in ("newton", "printed"):
            raise ValueError(f"solver must be 'newton' or 'printed', got {quoted(self.solver)}.")
        weights = weights / weights.mean()
        if self.solver == "newton":
            return newton_solver(k, weights, float(self.tol), int(self.max_iter))
        lists = column_lists(codes.one_vs_one(k))
        tol, max_iter = float(self.tol), int(self.max_iter)
        return lambda r, p, iterations, converged: by_row.couple_zadrozny(
            r, weights, *lists, False, tol, max_iter, p, iterations, converged
        )


def newton_solver(
    k: int, weights: Floats, tol: float, max_iter: int, block_steps: int = 12
) -> Solver:
    """Return a solver by Newton's method.

    Blocks of samples take up to ``block_steps`` plain Newton steps. The few rows that have not
    converged then get a slower solver with a line search, one by one.
    """

    def solve(r, p, iterations, converged):
        by_block.couple_ht(r, k, weights, tol, min(block_steps, max_iter), p, iterations)
        for row in np.flatnonzero(iterations < 0):
            steps = by_row.couple_ht_row(r, row, weights, tol, max_iter, p)
            iterations[row], converged[row] = abs(steps), steps > 0

    return solve


@register
class HastieTibshiraniNonIterative(PairwiseRule):
    """Mean pairwise probability: p_i = 2/(k(k-1)) sum_j r_ij.

    It orders the classes as :class:`HastieTibshirani` with equal weights does, but the
    differences between them are too small.

    References
    ----------
    .. [1] T. Hastie, R. Tibshirani, "Classification by pairwise coupling",
       Annals of Statistics 26 (1998), section 2.
    """

    key = "ht-noniterative"

    def prepare_pairs(self, k, weights):
        """Sum."""
        lists = column_lists(codes.one_vs_one(k))
        return lambda r, p, iterations, converged: by_row.couple_noniterative(r, *lists, p)


@register
class WuLinWeng1(PairwiseRule):
    """First rule of Wu, Lin & Weng: p_i = sum_j (p_i + p_j)/(k-1) r_ij.

    This is the stationary distribution of a Markov chain. Since r is clipped to [1e-7, 1 - 1e-7],
    the chain is irreducible and the result is unique, even for inputs of exactly 0 and 1.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", NIPS 2003, section 3.
    """

    key = "wlw1"

    def prepare_pairs(self, k, weights):
        """Use one elimination per row."""
        return lambda r, p, iterations, converged: by_block.couple_wlw1(r, k, p)


@register
class WuLinWeng2(PairwiseRule):
    """Second rule of Wu, Lin & Weng: minimise sum_{i<j} (r_ji p_i - r_ij p_j)^2.

    This is the rule of LIBSVM, solved exactly: by one Cholesky factorisation per row, or from 64
    classes on by about ten steps of conjugate gradients, which are faster then and as accurate.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", NIPS 2003, section 4.

    Examples
    --------
    >>> from manyclass import couple
    >>> r = [[[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]]]
    >>> couple(r, rule="wlw2").round(4)
    array([[0.4572, 0.2021, 0.3406]])
    """

    key = "wlw2"

    def prepare_pairs(self, k, weights):
        """Use one factorisation per row, or with many classes conjugate gradients."""
        if _is_factored(k):
            return lambda r, p, iterations, converged: by_block.couple_wlw2(r, k, 0.0, p)
        return gradient_solver(k)

    def prepare_checking(self, code, slack=1e-6):
        """Use the same factorisation, which finds errors; ``slack`` is that of ``read_pairs``."""
        k = len(code)
        if not _is_factored(k) or not np.array_equal(code, codes.one_vs_one(k)):
            return None

        def solve(values, p):
            return by_block.couple_wlw2(values.reshape(len(values), -1), k, slack, p) < 0

        return solve


def _is_factored(k: int, many: int = 64) -> bool:
    """Tell whether a factorisation is faster than conjugate gradients (measured)."""
    return k < many


def gradient_solver(k: int, tol: float = 1e-14, most_steps: int = 50) -> Solver:
    """Return a solver of :class:`WuLinWeng2` by conjugate gradients.

    Steps end when no probability changes by more than ``tol``. A row that needs more than
    ``most_steps`` is factored instead; we know of no row that needs more than 15.
    """

    def solve(r, p, iterations, converged):
        couple_wlw2_gradients(r, k, tol, most_steps, p, iterations)
        left = np.flatnonzero(iterations < 0)
        if len(left):
            factored = np.empty((len(left), k))
            by_block.couple_wlw2(r[left], k, 0.0, factored)
            p[left], iterations[left] = factored, most_steps

    return solve


@register
class PriceEtAl(PairwiseRule):
    """Price, Knerr, Personnaz & Dreyfus: p_i proportional to 1/(sum_j 1/r_ij - (k-2)).

    References
    ----------
    .. [1] D. Price, S. Knerr, L. Personnaz, G. Dreyfus, "Pairwise neural network
       classifiers with probabilistic outputs", NIPS 1995.
    """

    key = "pkpd"

    def prepare_pairs(self, k, weights):
        """Use the closed form, and normalise it."""
        return lambda r, p, iterations, converged: by_block.couple_pkpd(r, k, p)


@register
class RefregierVallet(PairwiseRule):
    """Solve r_ji p_i = r_ij p_j for k - 1 of the pairs: a tree over the classes.

    The result only depends on the pairs in the tree.

    Parameters
    ----------
    tree : {"chain", "star"}, default="chain"
        Pairs of neighbouring classes, or all pairs with ``center``.
    center : int, default=0
        The class in the middle of the star.

    References
    ----------
    .. [1] P. Refregier, F. Vallet, "Probabilistic approach for multiclass
       classification with neural networks", ICANN 1991.
    """

    key = "refregier-vallet"

    def __init__(self, tree: Literal["chain", "star"] = "chain", center: int = 0):
        self.tree = tree
        self.center = center

    def prepare_pairs(self, k, weights):
        """Follow the tree on the logit scale."""
        parents, children = self._edges(k)
        low, high = np.minimum(parents, children), np.maximum(parents, children)
        columns = low * (2 * k - low - 1) // 2 + high - low - 1
        edges = children, parents, columns
        return lambda r, p, iterations, converged: by_row.couple_tree(r, *edges, p)

    def _edges(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if self.tree == "chain":
            return np.arange(k - 1), np.arange(1, k)
        if self.tree != "star":
            raise ValueError(f"tree must be 'chain' or 'star', got {quoted(self.tree)}.")
        center = check_integer("center", self.center, 0)
        if center >= k:
            raise ValueError(f"center is {center}, but the classes are 0 to {k - 1}.")
        return np.full(k - 1, center), np.delete(np.arange(k), center)


@register
class Logit(PairwiseRule):
    """Least squares on the logit scale: minimise sum n_ij (logit r_ij - theta_i + theta_j)^2.

    p is the soft-max of theta. If the logits of r_ij are linear in x, so are the class
    boundaries, which Hastie & Tibshirani (1998, section 4) ask for.
    """

    key = "logit"

    def prepare_pairs(self, k, weights):
        """Invert the weighted Laplacian, which is the same for every row."""
        first, second = np.triu_indices(k, 1)
        laplacian = np.zeros((k, k))
        np.add.at(laplacian, (first, second), -weights)
        laplacian += laplacian.T
        np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
        inverse = np.linalg.inv(laplacian + weights.mean())
        return lambda r, p, iterations, converged: by_row.couple_logit(r, weights, inverse, p)
