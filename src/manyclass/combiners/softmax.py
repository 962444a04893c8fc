"""Trained soft-max combination: margins in, class probabilities out (Duan et al. 2003).

``P_c ∝ exp(sum_b w_cb M_cb f_b + w_c0)``, where the sum is over the columns that class c
takes part in and all weights are non-negative: a large margin on its side speaks for a
class. The weights are learned from out-of-sample margins, by penalised likelihood
(:class:`Softmax`) or by likelihood alone (:class:`SimplifiedSoftmax`).

For one-vs-rest codes, columns in any order, only the own column of a class has a weight,
as in the paper: 2k parameters. For two classes the model is Platt's sigmoid (eq. 14, 15).
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.sklearn import check_sample_weight
from manyclass.combiners.base import Combination, Combiner, register
from manyclass.combiners.decoding import check_known, check_margins
from manyclass.combiners.softmax_solver import (
    Array,
    Code,
    Indices,
    Minimum,
    Sample,
    limits_of,
    make_sample,
    minimise,
)
from manyclass.scores.folds import Fold, folds_again

CANDIDATES: Array = np.exp2(np.arange(-15.0, 16.0))  # for C: section 3.2
TOLERATED = 1.05  # also there
SEARCH_TOL = 1e-6  # where figures are compared to 5 %
BLOCK = 2**18  # margins combined at a time: 2 MB


class TrainedSoftmax(Combiner):
    """Base of the soft-max combiners: a subclass says how the weights are learned."""

    takes = "scores"
    gives_probabilities = True
    tol: float
    max_iter: int

    @property
    def learns(self) -> bool:
        """True: the weights come from :meth:`fit`."""
        return True

    @abstractmethod
    def _learn(self, sample: Sample, folds: Indices | None) -> Minimum:
        """Return the weights on scaled margins; set what tells how they were found."""

    def fit(
        self,
        values: Array,
        y: Indices,
        code: Code,
        sample_weight: Array | None = None,
        folds: Indices | None = None,
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
            Weights, equal when omitted. Rows without weight are passed over.
        folds : int array of shape (n,), optional
            The fold that left each row out when its margins were made, -1 for none. A search
            by cross-validation takes these folds again; more than 10 are made 5 of.

        Returns
        -------
        self
        """
        _check_solver(self)
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
        values: Array,
        code: Code,
        weights: Array | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Combination:
        """Return class probabilities; see :meth:`manyclass.combiners.base.Combiner.combine`.

        ``weights`` and ``n_jobs`` are ignored. Every row has a closed form.
        """
        check_is_fitted(self)
        if not np.array_equal(code, self.code_):
            raise ValueError(
                f"code is not the one that {type(self).__name__} was fitted with, and its weights "
                "belong to the columns of that one. Fit it with this code."
            )
        values = _check_margins(values, self.code_)
        signed = csr_array(self.weights_ * self.code_)
        p = np.empty((len(values), len(self.code_)))
        step = max(1, BLOCK // sum(self.code_.shape))
        for first in range(0, len(values), step):
            rows = slice(first, first + step)
            margins = np.clip(values[rows], -self.limits_, self.limits_)
            # A sparse product adds in the same order for any number of rows; so does cumsum.
            logits = signed @ np.ascontiguousarray(margins.T) + self.biases_[:, None]
            logits -= logits.max(axis=0)
            np.exp(logits, out=logits)
            p[rows] = (logits / np.cumsum(logits, axis=0)[-1]).T
        return Combination(p, np.ones(len(p), dtype=np.int32), np.ones(len(p), dtype=np.bool_))


@register
class Softmax(TrainedSoftmax):
    """Soft-max combination of margins, by penalised likelihood (SMC).

    The weights minimise ``½ |w|² - C sum_i s_i log P_i(y_i)`` over w >= 0, biases
    included, where s are the sample weights.

    Parameters
    ----------
    C : float, optional
        Weight of the likelihood. If omitted, it is chosen as in section 3.2 of the paper:
        among 2^-15, 2^-14, ..., 2^15 those whose error in cross-validation is
        within 5 % of the least, among them those whose negative log-likelihood is within
        5 % of the least, and of these the smallest.
    tol : float, default=1e-10
        Bound on the derivatives of the mean negative log-likelihood, penalised, with
        respect to weights on margins of root-mean-square 1.
    max_iter : int, default=100
        Newton steps, or a hundred times as many of L-BFGS-B, which takes over where there
        are more than 2500 of them.

    Attributes
    ----------
    weights_ : ndarray of shape (k, l)
        ``w_cb >= 0``, and 0 where there is none. The logits of margins ``f`` are
        ``f @ (code * weights_).T + biases_``.
    biases_ : ndarray of shape (k,)
        ``w_c0 >= 0``. At least one is 0.
    C_ : float
        The C in use.
    search_ : dict or None
        Arrays ``"C"``, ``"error"`` and ``"nll"`` of the cross-validation, if there was one.
    limits_ : ndarray of shape (l,)
        Margins beyond are cut off there: at ten times the largest finite one seen by
        ``fit``, or 1 if there was none. That is what infinity counts.
    code_ : int8 ndarray of shape (k, l)
        The code of the columns.
    n_iter_ : int
        Steps of the solver.

    See Also
    --------
    SimplifiedSoftmax : The same without a penalty.

    Notes
    -----
    The problem is convex. Newton's method solves the bound-constrained quadratic model
    of each step exactly. The paper substitutes ``w = exp(s)``, which has the same infimum
    but is slow to bring weights to 0. The search for C solves to 1e-6, or to ``tol`` if
    that is larger, each C from where the one before ended.

    A constant added to all biases changes nothing: as the paper has it, they are
    non-negative, and the penalty makes the smallest 0.

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

    def __init__(self, C: float | None = None, *, tol: float = 1e-10, max_iter: int = 100):
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def _learn(self, sample: Sample, folds: Indices | None) -> Minimum:
        C, self.search_, n_failed = self.C, None, 0
        if C is None:
            self.search_, n_failed = _search_C(sample, folds, self.tol, self.max_iter)
            C = choose_C(**self.search_)
        elif not _is_positive(C):
            raise ValueError(
                f"C must be a positive number, or None to have it searched, got {C!r}. For no "
                "penalty at all, use SimplifiedSoftmax."
            )
        self.C_ = float(C)
        minimum = minimise(sample.likelihood(), sample.ridge(C), self.tol, self.max_iter)
        _warn_unconverged(self, n_failed + int(not minimum.converged))
        return minimum


@register
class SimplifiedSoftmax(TrainedSoftmax):
    """Soft-max combination of margins, by likelihood alone (SSMC: C is infinite).

    Parameters
    ----------
    ridge : float, default=1e-6
        The weights minimise the mean of ``-log P(y)`` plus ``½ ridge |u|²``, where u are
        the weights on margins of root-mean-square 1, and the biases. It is there because
        likelihood alone has no minimum where some class can be told from the others
        without error. Where it has one, that is hardly moved.
    tol : float, default=1e-10
        As in :class:`Softmax`.
    max_iter : int, default=100
        As in :class:`Softmax`.

    Attributes
    ----------
    weights_ : ndarray of shape (k, l)
        ``w_cb >= 0``, and 0 where there is none. The logits of margins ``f`` are
        ``f @ (code * weights_).T + biases_``.
    biases_ : ndarray of shape (k,)
        ``w_c0 >= 0``. Only their differences matter; the least is 0.
    C_ : float
        Infinity.
    limits_, code_, n_iter_
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

    def _learn(self, sample: Sample, folds: Indices | None) -> Minimum:
        if not _is_positive(self.ridge):
            raise ValueError(
                f"ridge must be a positive number, got {self.ridge!r}: without any, weights may "
                "grow without end. Take a smaller one than 1e-6 if that is too much."
            )
        self.C_ = np.inf
        likelihood = sample.likelihood()
        ridge = np.full(likelihood.size, float(self.ridge))
        minimum = minimise(likelihood, ridge, self.tol, self.max_iter)
        _warn_unconverged(self, int(not minimum.converged))
        return minimum


def _search_C(
    sample: Sample, folds: Indices | None, tol: float, max_iter: int
) -> tuple[dict[str, Array], int]:
    """Cross-validate all candidates for C, each from where the one before ended.

    Returns
    -------
    table : dict
        Arrays ``"C"``, ``"error"`` (share of wrong labels) and ``"nll"`` (mean of -log P)
        of the rows left out.
    n_failed : int
        How many fits did not converge.
    """
    error, nll = np.zeros((2, len(CANDIDATES)))
    n_failed, total = 0, 0.0
    for train, test in _search_folds(sample, folds):
        likelihood, left_out = sample.likelihood(train), sample.likelihood(test)
        weights, minimum = sample.weights[test], None
        total += weights.sum()
        for i, C in enumerate(CANDIDATES):
            ridge = sample.ridge(C, train)
            minimum = minimise(likelihood, ridge, max(tol, SEARCH_TOL), max_iter, minimum)
            n_failed += not minimum.converged
            reached, P = left_out.probabilities(minimum.u)
            error[i] += weights @ (1.0 - _share_right(P, left_out.y))
            nll[i] -= weights @ reached
    return {"C": CANDIDATES.copy(), "error": error / total, "nll": nll / total}, n_failed


def _search_folds(sample: Sample, numbers: Indices | None) -> list[Fold]:
    if numbers is None and np.bincount(sample.y).max() < 2:
        raise ValueError(
            "C is searched by cross-validation, but no class has two samples of positive weight "
            "among the out-of-sample scores. Pass a number, such as C=1.0, or get more samples."
        )
    return folds_again(numbers, sample.y, len(sample.pattern))


def _share_right(P: Array, y: Indices) -> Array:
    """Return 1 where the label is right, 1/m where it is one of m that tie, else 0."""
    best = P == P.max(axis=0)
    return best[y, np.arange(len(y))] / best.sum(axis=0)


def choose_C(C: Array, error: Array, nll: Array) -> float:
    """Return the smallest C of low error and, among those, low negative log-likelihood.

    Parameters
    ----------
    C, error, nll : arrays of equal length
        Candidates, and their figures in cross-validation.

    Returns
    -------
    float
        The smallest of the candidates whose nll is within 5 % of the least, among those
        whose error is within 5 % of the least.

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
    slack = TOLERATED * (1.0 + 1e-12)  # 21 errors are within 5 % of 20
    good = error <= slack * error.min()
    good &= nll <= slack * nll[good].min()
    return float(C[good].min())


def _is_positive(value: object) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


def _check_solver(combiner: TrainedSoftmax) -> None:
    n = combiner.max_iter
    if not (_is_positive(combiner.tol) and isinstance(n, Integral) and n >= 1):
        raise ValueError(
            f"tol must be positive and max_iter at least 1, got tol={combiner.tol!r} and "
            f"max_iter={n!r}."
        )


def _check_margins(values: Array, code: Code) -> Array:
    values = check_margins(values, code)
    check_known(values)
    return values


def _check_training(
    values: Array, y: Indices, code: Code, sample_weight: Array | None, folds: Indices | None
) -> tuple[Array, Indices, Array, Indices | None]:
    """Return the rows that have a weight."""
    values, y = _check_margins(values, code), np.asarray(y)
    n, k = len(values), len(code)
    if y.shape != (n,) or y.dtype.kind not in "iu" or not ((y >= 0) & (y < k)).all():
        raise ValueError(f"y must hold {n} class indices from 0 to {k - 1}, one for each row.")
    if n == 0 or (sample_weight is not None and not np.any(sample_weight)):
        raise ValueError(
            f"there is nothing to learn from: of the {n} rows of out-of-sample scores, none has a "
            "positive weight. Pass more samples, or use a combiner that does not learn."
        )
    weights = check_sample_weight(sample_weight, values)
    if folds is not None:
        folds = np.asarray(folds)
        if folds.shape != (n,) or folds.dtype.kind not in "iu":
            raise ValueError(f"folds must hold {n} whole numbers, one for each row.")
    used = weights > 0
    if used.all():
        return values, y, weights, folds
    return values[used], y[used], weights[used], None if folds is None else folds[used]


def _warn_unconverged(combiner: TrainedSoftmax, n_failed: int) -> None:
    if n_failed:
        warnings.warn(
            f"{type(combiner).__name__} did not converge in {n_failed} of its fits; the weights "
            "are the best reached. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
