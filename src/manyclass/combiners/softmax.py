"""Trained soft-max combination: margins in, class probabilities out (Duan et al. 2003).

``P_c ∝ exp(sum_b w_cb M_cb f_b + w_c0)``. The sum is over the columns that class c takes
part in. All weights are non-negative, so a large margin for its side raises the probability
of a class. The weights are learned from out-of-sample margins, by penalised likelihood
(:class:`Softmax`) or by likelihood alone (:class:`SimplifiedSoftmax`).

In one-vs-rest codes a class only has a weight for its own column, as in the paper: 2k
parameters. For two classes the model is Platt's sigmoid (eqs. 14 and 15).
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.messages import warn
from manyclass._lib.row_blocks import BLOCK_ENTRIES, row_blocks
from manyclass._lib.sklearn import check_sample_weight
from manyclass.combiners.base import Combination, Combiner, register
from manyclass.combiners.decoding import check_known, check_margins
from manyclass.combiners.softmax_solver import (
    Likelihood,
    Minimum,
    Sample,
    limits_of,
    make_sample,
    minimise,
)
from manyclass.scores.folds import folds_again


class TrainedSoftmax(Combiner):
    """Base of the soft-max combiners: a subclass defines how the weights are learned."""

    takes = "scores"
    gives_probabilities = True
    most_for_newton: ClassVar[int] = 2500
    """With more weights than this, L-BFGS-B replaces Newton's method: see
    :func:`~manyclass.combiners.softmax_solver.minimise`."""
    tol: float
    max_iter: int

    @property
    def learns(self) -> bool:
        """True: the weights come from :meth:`fit`."""
        return True

    @abstractmethod
    def _learn(self, sample: Sample, folds: Places | None) -> Minimum:
        """Return the weights on scaled margins; set the attributes that describe the search."""

    def _minimise(
        self, likelihood: Likelihood, ridge: Floats, tol: float, start: Minimum | None = None
    ) -> Minimum:
        return minimise(likelihood, ridge, tol, self.max_iter, start, self.most_for_newton)

    def fit(
        self,
        values: Floats,
        y: Places,
        code: Code,
        sample_weight: Floats | None = None,
        folds: Places | None = None,
    ) -> TrainedSoftmax:
        """Learn the weights from out-of-sample margins.

        Parameters
        ----------
        values : array of shape (n, l)
            Margins, none of them NaN.
        y : int array of shape (n,)
            Class indices.
        code : int8 array of shape (k, l)
            A code matrix.
        sample_weight : array of shape (n,), optional
            Weights, equal when omitted. Rows of weight 0 are ignored.
        folds : int array of shape (n,), optional
            The fold that left each row out when its margins were computed, -1 for none. A
            search by cross-validation uses the same folds; more than 10 are merged into 5.

        Returns
        -------
        self
        """
        n: object = self.max_iter
        if not (_is_positive(self.tol) and _is_positive(n) and isinstance(n, Integral)):
            raise ValueError(
                f"tol must be positive and max_iter at least 1, got tol={self.tol!r} and "
                f"max_iter={n!r}."
            )
        code = np.array(code, dtype=np.int8)
        values, y, weights, folds = _check_training(values, y, code, sample_weight, folds)
        limits = limits_of(values)
        sample = make_sample(values, y, weights, code, limits)
        minimum = self._learn(sample, folds)
        w = np.zeros(sample.pattern.shape)
        w[sample.pattern != 0] = minimum.u / sample.units
        self.weights_, self.biases_ = w[:, :-1].copy(), w[:, -1].copy()
        self.code_, self.limits_, self.n_iter_ = code, limits, minimum.n_iter
        return self

    def combine(
        self,
        values: Floats,
        code: Code,
        weights: Floats | None = None,
        *,
        n_jobs: int | None = None,
        block_entries: int = BLOCK_ENTRIES,
    ) -> Combination:
        """Return class probabilities; see :meth:`manyclass.combiners.base.Combiner.combine`.

        ``weights`` and ``n_jobs`` are ignored. Every row has a closed form.
        """
        check_is_fitted(self)
        if not np.array_equal(code, self.code_):
            raise ValueError(
                f"code is not the one that {type(self).__name__} was fitted with, and the weights "
                "belong to the columns of that code. Fit it with this code."
            )
        values = _check_margins(values, self.code_)
        signed = csr_array(self.weights_ * self.code_)
        p = np.empty((len(values), len(self.code_)))
        for rows in row_blocks(len(values), sum(self.code_.shape), block_entries):
            margins = np.clip(values[rows], -self.limits_, self.limits_)
            # A sparse product and cumsum add in the same order for any number of rows.
            logits = signed @ np.ascontiguousarray(margins.T) + self.biases_[:, None]
            logits -= logits.max(axis=0)
            np.exp(logits, out=logits)
            p[rows] = (logits / np.cumsum(logits, axis=0)[-1]).T
        return Combination.in_closed_form(p)


@register
class Softmax(TrainedSoftmax):
    """Soft-max combination of margins, by penalised likelihood (SMC).

    The weights minimise ``½ |w|² - C sum_i s_i log P_i(y_i)`` over w >= 0, biases
    included, where s are the sample weights.

    Parameters
    ----------
    C : float, optional
        Weight of the likelihood. ``None`` chooses it among 2^-15, 2^-14, ..., 2^15 by
        cross-validation, as in section 3.2 of the paper: see :func:`choose_C`.
    tol : float, default=1e-10
        Limit of the derivatives of the penalised mean negative log-likelihood with respect to the
        weights, on margins scaled to root-mean-square 1.
    max_iter : int, default=100
        Limit of Newton steps. With more than 2500 weights L-BFGS-B is used instead, with a
        hundred times as many steps.

    Attributes
    ----------
    weights_ : ndarray of shape (k, l)
        ``w_cb >= 0``, and 0 where there is none. The logits of margins ``f`` are
        ``f @ (code * weights_).T + biases_``.
    biases_ : ndarray of shape (k,)
        ``w_c0 >= 0``. At least one is 0.
    C_ : float
        The C that was used.
    search_ : dict or None
        Arrays ``"C"``, ``"error"`` and ``"nll"`` of the cross-validation, if there was one.
    limits_ : ndarray of shape (l,)
        Larger absolute margins are clipped: ten times the largest finite one seen by ``fit``.
    code_ : int8 ndarray of shape (k, l)
        The code of the columns.
    n_iter_ : int
        Number of steps of the solver.

    See Also
    --------
    SimplifiedSoftmax : The same without a penalty.

    Notes
    -----
    The problem is convex. Newton's method solves the bound-constrained quadratic model of each step
    exactly. The paper substitutes ``w = exp(s)``, which has the same infimum but converges slowly
    if the best weight is 0. The search for C solves to 1e-6, or to ``tol`` if that is larger. A
    constant added to all biases does not change the probabilities; the penalty makes the least 0.

    References
    ----------
    K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade and A. N. Poo (2003), "Multi-category
    classification by soft-max combination of binary classifiers".

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.codes import one_vs_rest
    >>> from manyclass.combiners.softmax import Softmax
    >>> code, y = one_vs_rest(3), np.array([0, 0, 1, 1, 2, 2])
    >>> f = np.array([[1.0, -1, -1], [0.2, -0.5, 0.3], [-1, 2, -1], [0.1, 1, -1],
    ...               [-1, -1, 1], [-1, 0.5, 0.4]])
    >>> combiner = Softmax(C=1.0).fit(f, y, code)
    >>> combiner.weights_.round(2)
    array([[0.76, 0.  , 0.  ],
           [0.  , 0.87, 0.  ],
           [0.  , 0.  , 0.75]])
    >>> combiner.combine(f[:2], code).values.round(2)
    array([[0.73, 0.12, 0.15],
           [0.4 , 0.19, 0.41]])
    """

    key = "softmax"
    candidates: ClassVar[Floats] = np.exp2(np.arange(-15.0, 16.0))
    """The values of C to choose from (section 3.2)."""

    def __init__(self, C: float | None = None, *, tol: float = 1e-10, max_iter: int = 100):
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, sample: Sample, folds: Places | None) -> Minimum:
        C, self.search_, n_failed = self.C, None, 0
        if C is None:
            table, n_failed = self._search_C(sample, folds)
            self.search_, C = table, choose_C(table["C"], table["error"], table["nll"])
        elif not _is_positive(C):
            raise ValueError(
                f"C must be a positive number, or None for a search by cross-validation, got "
                f"{C!r}. To train without a penalty, use SimplifiedSoftmax."
            )
        self.C_ = float(C)
        minimum = self._minimise(sample.likelihood(), sample.ridge(C), self.tol)
        _warn_unconverged(self, n_failed + int(not minimum.converged))
        return minimum

    def _search_C(
        self, sample: Sample, folds: Places | None, least_tol: float = 1e-6
    ) -> tuple[dict[str, Floats], int]:
        """Cross-validate all candidates for C; also return how many fits did not converge.

        Returns arrays ``"C"``, ``"error"`` (share of wrong labels) and ``"nll"`` (mean of -log P)
        of the rows left out. For each C the solver starts from the solution for the previous C. It
        solves to ``least_tol``, if ``tol`` is smaller: :func:`choose_C` compares to 5 % only.
        """
        if folds is None and np.bincount(sample.y).max() < 2:
            raise ValueError(
                "C=None chooses C by cross-validation, but no class has two samples of positive "
                "weight among the out-of-sample scores. Pass a number, such as C=1.0, or more "
                "samples."
            )
        error, nll = np.zeros((2, len(self.candidates)))
        n_failed, total = 0, 0.0
        for train, test in folds_again(folds, sample.y, len(sample.pattern)):
            likelihood, left_out = sample.likelihood(train), sample.likelihood(test)
            weights, minimum = sample.weights[test], None
            total += weights.sum()
            for i, C in enumerate(self.candidates):
                ridge = sample.ridge(C, train)
                minimum = self._minimise(likelihood, ridge, max(self.tol, least_tol), minimum)
                n_failed += not minimum.converged
                reached, P = left_out.probabilities(minimum.u)
                best = P == P.max(axis=0)  # one of m ties is right with a share of 1/m
                right = best[left_out.y, left_out.samples] / best.sum(axis=0)
                error[i] += weights @ (1.0 - right)
                nll[i] -= weights @ reached
        return {"C": self.candidates.copy(), "error": error / total, "nll": nll / total}, n_failed


@register
class SimplifiedSoftmax(TrainedSoftmax):
    """Soft-max combination of margins, by likelihood alone (SSMC: C is infinite).

    Parameters
    ----------
    ridge : float, default=1e-6
        The weights minimise the mean of ``-log P(y)`` plus ``½ ridge |u|²``, where u are
        the biases and the weights on margins scaled to root-mean-square 1. Without a ridge
        there is no minimum if a class can be separated from the others without error.
        If there is one, a ridge that small hardly moves it.
    tol, max_iter : float, default=1e-10, and int, default=100
        As in :class:`Softmax`.

    Attributes
    ----------
    C_ : float
        Infinity.
    weights_, biases_, limits_, code_, n_iter_
        As in :class:`Softmax`.

    See Also
    --------
    Softmax : The same with a penalty.

    References
    ----------
    K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade and A. N. Poo (2003), "Multi-category
    classification by soft-max combination of binary classifiers", section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.combiners.softmax import SimplifiedSoftmax
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledClassifier(SVC(), combiner=SimplifiedSoftmax()).fit(X, y)
    >>> model.predict_proba(X[[0, 70, 133]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.55, 0.45],
           [0.  , 0.3 , 0.7 ]])
    """

    key = "softmax-simplified"

    def __init__(self, ridge: float = 1e-6, *, tol: float = 1e-10, max_iter: int = 100):
        self.ridge = ridge
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, sample: Sample, folds: Places | None) -> Minimum:
        if not _is_positive(self.ridge):
            raise ValueError(
                f"ridge must be a positive number, got {self.ridge!r}: without a ridge, weights "
                "may grow without limit. Use a small one, such as 1e-9."
            )
        self.C_ = np.inf
        ridge = np.full(len(sample.units), float(self.ridge))
        minimum = self._minimise(sample.likelihood(), ridge, self.tol)
        _warn_unconverged(self, int(not minimum.converged))
        return minimum


def choose_C(C: Floats, error: Floats, nll: Floats, slack: float = 0.05) -> float:
    """Return the smallest C with a low error and a low negative log-likelihood.

    Keep the candidates whose error is within 5 % of the smallest. Of these, keep those whose
    negative log-likelihood is within 5 % of the smallest. Return the smallest C left.

    Parameters
    ----------
    C, error, nll : arrays of equal length
        Candidates, and their cross-validated error and negative log-likelihood.
    slack : float, default=0.05
        The 5 %, as a fraction.

    Returns
    -------
    float

    References
    ----------
    K. Duan et al. (2003), "Multi-category classification by soft-max combination of
    binary classifiers", section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.combiners.softmax import choose_C
    >>> C = np.array([0.5, 1.0, 2.0, 4.0])
    >>> choose_C(C, error=np.array([0.2, 0.104, 0.102, 0.1]), nll=np.array([1.0, 0.6, 0.5, 0.51]))
    2.0
    """
    limit = (1.0 + slack) * (1.0 + 1e-12)  # 21 errors are within 5 % of 20, despite rounding
    good = error <= limit * error.min()
    good &= nll <= limit * nll[good].min()
    return float(C[good].min())


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


def _check_margins(values: Floats, code: Code) -> Floats:
    values = check_margins(values, code)
    check_known(values)
    return values


def _check_training(
    values: Floats, y: Places, code: Code, sample_weight: Floats | None, folds: Places | None
) -> tuple[Floats, Places, Floats, Places | None]:
    """Return the rows of positive weight."""
    values, y = _check_margins(values, code), np.asarray(y)
    n, k = len(values), len(code)
    if y.shape != (n,) or y.dtype.kind not in "iu" or not ((y >= 0) & (y < k)).all():
        raise ValueError(f"y must hold {n} class indices from 0 to {k - 1}, one for each row.")
    if n == 0 or (sample_weight is not None and not np.any(sample_weight)):
        raise ValueError(
            f"there is nothing to learn from: none of the {n} rows of out-of-sample scores has a "
            "positive weight. Pass more samples, or use a combiner that does not learn."
        )
    weights = check_sample_weight(sample_weight, values)
    if folds is not None:
        folds = np.asarray(folds)
        if folds.shape != (n,) or folds.dtype.kind not in "iu":
            raise ValueError(f"folds must hold {n} integers, one for each row.")
    used = weights > 0
    if used.all():
        return values, y, weights, folds
    return values[used], y[used], weights[used], None if folds is None else folds[used]


def _warn_unconverged(combiner: TrainedSoftmax, n_failed: int) -> None:
    if n_failed:
        warn(
            f"{type(combiner).__name__} did not converge in {n_failed} of its fits; it uses the "
            "best weights found. Raise max_iter or tol.",
            ConvergenceWarning,
        )
