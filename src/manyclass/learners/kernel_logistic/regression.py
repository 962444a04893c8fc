"""Kernel logistic regression: a binary classifier, and the regularisation path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.row_blocks import row_blocks
from manyclass._lib.rows import without_duplicates
from manyclass._lib.sklearn import check_sample_weight, in_known_numbers, n_samples
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass.banks.score_kinds import ScoreKind
from manyclass.banks.svm.gamma import scale_gamma
from manyclass.banks.svm.kernels import KERNELS, Kernel, resolve_kernel
from manyclass.learners._binary import BinaryMixin, check_two
from manyclass.learners.kernel_logistic.logistic_bank import (
    KernelLogisticBank,
    fit_kernel_logistic_bank,
    gram,
    warn_of_solutions,
)
from manyclass.learners.kernel_logistic.loss import TINY
from manyclass.learners.kernel_logistic.newton import solve


def _is_number(value, least: float = -np.inf) -> bool:
    return isinstance(value, Real) and least <= float(value) < np.inf


def _is_gamma(value) -> bool:
    return value in ("scale", "auto") if isinstance(value, str) else _is_number(value, 0.0)


_CONSTRAINTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "C": (lambda C: _is_number(C, TINY), "a positive number"),
    "kernel": (
        lambda kernel: callable(kernel) or kernel in KERNELS,
        f"in {tuple(KERNELS)} or callable",
    ),
    "gamma": (_is_gamma, "'scale', 'auto' or a number of at least 0"),
    "degree": (lambda degree: _is_number(degree, 0.0), "a number of at least 0"),
    "coef0": (_is_number, "a number"),
    "tol": (lambda tol: _is_number(tol, TINY), "a positive number"),
    "max_iter": (lambda n: isinstance(n, int | np.integer) and int(n) > 0, "a positive integer"),
}


class KernelLogisticRegression(BinaryMixin, BaseEstimator):
    """Kernel logistic regression for two classes.

    Minimises ``a'Ka / 2 + C sum_i s_i log(1 + exp(-y_i f(x_i)))`` over the dual
    coefficients a and the bias b, with f = K a + b and sample weights s. It is a support
    vector machine with the logistic loss instead of the hinge loss; its margins f are
    log-odds. Newton's method finds the minimum to rounding accuracy, also for separable classes.
    For more than two classes use ``CoupledClassifier(KernelLogisticRegression())``.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the strength of regularisation.
    kernel : {"rbf", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        A function takes two arrays of samples and returns their kernel matrix. The kernel should
        be positive semi-definite; "sigmoid" often is not. Otherwise the objective has no minimum:
        if the solver detects negative eigenvalues, it sets them to zero, and a warning says how
        large they are.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of "rbf", "poly" and "sigmoid", as in :class:`~sklearn.svm.SVC`. The variance
        for "scale" uses the sample weights.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=0.0
        Constant term of "poly" and "sigmoid".
    tol : float, default=1e-8
        Tolerance of the largest ``|a_i - C s_i (t_i - p_i)|``, where t is 0 or 1, and of
        ``|sum_i C s_i (t_i - p_i)|``, relative to the largest ``C s_i``. The gradient in a,
        K times the former, is reduced below ``tol`` as well if rounding allows it.
    max_iter : int, default=100
        Limit of Newton steps; 5 to 20 are usual.
    warm_start : bool, default=False
        Start from the last solution, if it has the same number of samples and a lower
        objective than a = 0.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The class labels; the second is the positive one.
    support_ : ndarray of shape (n_support,)
        Training rows with positive weight. All of them are support vectors.
    support_vectors_ : array or sparse matrix of shape (n_support, n_features)
        Those rows; empty for a precomputed kernel.
    dual_coef_ : ndarray of shape (1, n_support)
        The coefficients a.
    intercept_ : ndarray of shape (1,)
        The bias b.
    kernel_ : Kernel
        The kernel, with ``gamma`` resolved to a number.
    n_iter_ : int
        Newton steps.
    n_features_in_, feature_names_in_
        Number of features seen in ``fit``, and their names if X has them.

    See Also
    --------
    kernel_logistic_path : Solutions for several C.
    manyclass.CoupledClassifier : For more than two classes.

    Notes
    -----
    The kernel matrix of the training samples is held in memory: 8 n^2 bytes.

    Coefficients grow like C if classes overlap, and cancel in K a if the kernel has low rank.
    So the last steps compute K a in twice the working precision (iterative refinement). The
    coefficients meet ``tol`` for C from 1e-4 to 1e6 and features of one scale: entries of K times C
    up to 1e11. Far beyond that, coefficients as large as C have too few digits, and so has K.
    ``decision_function`` computes K a + b in float64 and adds its own rounding error: 1e-8 to 1e-7
    of C for standardised features, a linear kernel, 1000 samples and C = 1e5, in proportion to C
    and to the kernel. If either error is above ``tol``, a
    :class:`~sklearn.exceptions.ConvergenceWarning` says so. Centred features help.

    References
    ----------
    .. [1] S. S. Keerthi, K. B. Duan, S. K. Shevade, A. N. Poo, "A fast dual algorithm for
       kernel logistic regression", Machine Learning 61 (2005).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from manyclass.learners.kernel_logistic.regression import KernelLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), KernelLogisticRegression()).fit(X, y)
    >>> model.predict_proba(X[[0, 40, 68]]).round(2)
    array([[0.83, 0.17],
           [0.17, 0.83],
           [0.45, 0.55]])
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 100,
        warm_start: bool = False,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or (n, n)
            Training data; the kernel matrix for ``kernel="precomputed"``. Predictions then take
            the kernel matrix (m, n) of new samples with these.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Multiplies C per sample. Samples of weight 0 are ignored.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            problem = self._prepare(X, y, sample_weight)
            data, start = (problem.K, problem.positive), self._start(len(problem.K))
            bound = self.C * problem.weights
            solution = solve(*data, bound, tol=self.tol, max_iter=self.max_iter, start=start)
            warn_of_solutions([solution], self.tol)
        self.classes_, self.kernel_ = problem.classes, problem.kernel
        self.support_, self.support_vectors_ = problem.support, problem.vectors
        self.dual_coef_ = solution.dual[None]
        self.intercept_ = np.array([solution.intercept])
        self.n_iter_ = solution.n_iter
        return self

    def _prepare(self, X, y, sample_weight) -> _Problem:
        """Check the input, drop samples of weight 0, and compute the kernel matrix."""
        self._check_parameters()
        sparse = False if self.kernel == "precomputed" else "csr"
        X, y = validate_data(self, in_known_numbers(X), y, accept_sparse=sparse, dtype=np.float64)
        X = without_duplicates(X)
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, X)
        support = np.flatnonzero(weights > 0)
        classes, sides = np.unique(y[support], return_inverse=True)
        check_two(classes, type(self).__name__, weighed=len(support) < len(y))
        kernel = self._make_kernel(X, weights)
        vectors = np.empty((0, 0)) if kernel.precomputed else X[support]
        K = gram(kernel, X if kernel.precomputed else vectors)
        K = K if len(support) == len(K) else K[np.ix_(support, support)]
        return _Problem(classes, kernel, support, vectors, K, sides == 1, weights[support])

    def _start(self, n: int) -> tuple[Floats, float] | None:
        """Return the last solution for a warm start, if it has the right size."""
        if not (self.warm_start and hasattr(self, "dual_coef_")):
            return None
        return (self.dual_coef_[0], self.intercept_[0]) if self.dual_coef_.size == n else None

    def _check_parameters(self) -> None:
        for name, (holds, wanted) in _CONSTRAINTS.items():
            value = getattr(self, name)
            if not holds(value):
                raise ValueError(f"{name} must be {wanted}, got {value!r}.")

    def _make_kernel(self, X, weights: Floats) -> Kernel:
        return resolve_kernel(self, lambda gamma: scale_gamma(gamma, X, weights))

    def __manyclass_bank__(
        self, X, y: Places, code: Code, kind: ScoreKind, *, fit_params: Mapping[str, Any], **options
    ) -> KernelLogisticBank | None:
        """Return the bank of all columns; see :func:`manyclass.banks.fit_bank`."""
        if not set(fit_params) <= {"sample_weight"}:
            return None
        weight = fit_params.get("sample_weight")
        return fit_kernel_logistic_bank(self, X, y, code, kind, sample_weight=weight, **options)

    def _log_odds(self, X, block_entries: int = 2**20) -> Floats:
        """Return the log-odds; kernel matrices have up to ``block_entries`` entries (8 MB)."""
        sparse = False if self.kernel_.precomputed else "csr"
        X = in_known_numbers(X)
        X = validate_data(self, X, accept_sparse=sparse, dtype=np.float64, reset=False)
        X = without_duplicates(X)
        S = self.support_vectors_ if sparse else self.support_
        origin = self.kernel_.origin(S)
        prepared, f = self.kernel_.rows(S, origin), np.empty(X.shape[0])
        for rows in row_blocks(X.shape[0], len(self.support_), block_entries):
            block = X[rows]
            if issparse(block) and not issparse(S):
                block = block.toarray()
            K = self.kernel_.product(prepared, self.kernel_.columns(block, origin))
            f[rows] = self.dual_coef_[0] @ K + self.intercept_[0]
        return f

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags


class _Problem(NamedTuple):
    classes: NDArray[Any]
    kernel: Kernel
    support: Places
    vectors: Any
    K: Floats
    positive: Flags
    weights: Floats


class KernelLogisticPath(NamedTuple):
    """Kernel logistic regressions for several C; see :func:`kernel_logistic_path`."""

    Cs: Floats
    """The values of C in the given order, shape (m,)."""
    dual_coef: Floats
    """Dual coefficients, shape (m, n); 0 for samples of weight 0."""
    intercept: Floats
    """Biases, shape (m,)."""
    n_iter: Places
    """Newton steps, shape (m,)."""


def kernel_logistic_path(
    X,
    y,
    Cs: ArrayLike,
    *,
    kernel: str | Callable[..., Any] = "rbf",
    gamma: str | float = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    tol: float = 1e-8,
    max_iter: int = 100,
    sample_weight=None,
) -> KernelLogisticPath:
    """Fit kernel logistic regressions for several C, with warm starts and one kernel matrix.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, n_features), or (n, n)
        Training data; the kernel matrix for ``kernel="precomputed"``.
    y : array-like of shape (n,)
        Labels of two classes.
    Cs : array-like of shape (m,)
        Values of C, in any order. They are fitted from the smallest to the largest.
    kernel, gamma, degree, coef0, tol, max_iter
        As in :class:`KernelLogisticRegression`.
    sample_weight : array-like of shape (n,), optional
        Multiplies C per sample.

    Returns
    -------
    KernelLogisticPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from manyclass.learners.kernel_logistic.regression import kernel_logistic_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = kernel_logistic_path(scale(X), y, [0.1, 1, 10])
    >>> path.dual_coef.shape
    (3, 569)
    >>> path.intercept.round(2)
    array([-0.02, -0.36, -0.63])
    """
    Cs = np.asarray(Cs, dtype=np.float64)
    if Cs.ndim != 1 or len(Cs) == 0 or not ((Cs > 0) & (Cs < np.inf)).all():
        raise ValueError(f"Cs must be a list of positive numbers, got {Cs}.")
    model = KernelLogisticRegression(
        kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, tol=tol, max_iter=max_iter
    )
    problem = model._prepare(X, y, sample_weight)
    dual_coef = np.zeros((len(Cs), n_samples(X)))
    intercept, n_iter = np.empty(len(Cs)), np.empty(len(Cs), dtype=np.intp)
    start, solutions = None, []
    for m in np.argsort(Cs, kind="stable"):
        bound = Cs[m] * problem.weights
        solution = solve(
            problem.K, problem.positive, bound, tol=tol, max_iter=max_iter, start=start
        )
        start = dual_coef[m, problem.support], intercept[m] = solution.dual, solution.intercept
        n_iter[m] = solution.n_iter
        solutions.append(solution)
    warn_of_solutions(solutions, tol)
    return KernelLogisticPath(Cs, dual_coef, intercept, n_iter)
