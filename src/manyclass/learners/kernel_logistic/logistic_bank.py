"""The kernel logistic regressions of all columns as one bank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg.lapack import dtrtri
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.messages import warn
from manyclass._lib.rows import take_part, without_duplicates
from manyclass.banks.base import Bank, ObjectiveTerms, Scorer, Untrusted
from manyclass.banks.score_kinds import ScoreKind
from manyclass.banks.svm.bank import KernelBank
from manyclass.banks.svm.fit import sparse_duals
from manyclass.banks.svm.kernels import Kernel
from manyclass.banks.svm.leave_one_out import without_only_samples
from manyclass.banks.svm.views import KernelMachine
from manyclass.learners.kernel_logistic.newton import Solution, centre, solve
from manyclass.learners.kernel_logistic.steps import newton_matrix
from manyclass.learners.kernels.symmetric_products import accurate_product


def gram(kernel: Kernel, X, *, symmetry_tol: float = 1e-8) -> Floats:
    """Return the kernel matrix of all rows of X, symmetric up to ``symmetry_tol``."""
    given = X if kernel.precomputed else kernel(X, X)
    K: Floats = np.ascontiguousarray(given, dtype=np.float64)
    if K.shape != (X.shape[0], X.shape[0]):
        raise ValueError(
            f"the kernel matrix of {X.shape[0]} training samples has shape {K.shape}: it must be "
            "square, with one row and one column per sample."
        )
    if not np.isfinite(K.sum()):
        raise ValueError(
            "the kernel matrix has entries that are not finite: scale the features, or choose a "
            "smaller gamma, degree or coef0."
        )
    if not kernel.numeric:
        difference = np.abs(K - K.T).max()
        if difference > symmetry_tol * np.abs(K).max():
            raise ValueError(
                f"the kernel matrix is not symmetric, entries differ by up to {difference:.2g}: "
                "k(x, z) must be k(z, x). Repair the kernel, or use (K + K.T) / 2."
            )
    return K


Grams = Callable[[Places], Floats]  # returns the kernel matrix of the given rows


def _grams(kernel: Kernel, X, columns: list[Places]) -> Grams:
    """Compute one kernel matrix for all columns, if that saves at least half of the entries.

    It does not for one-vs-one: the matrices of all pairs together have less than twice the
    entries of the whole, and only one of them is needed at a time.
    """
    everyone = np.unique(np.concatenate(columns))
    if kernel.precomputed:
        everyone, whole = np.arange(X.shape[0]), gram(kernel, X)
    elif sum(len(rows) ** 2 for rows in columns) > 2 * len(everyone) ** 2:
        whole = gram(kernel, X[everyone])
    else:
        return lambda rows: gram(kernel, X[rows])

    def cut(rows: Places) -> Floats:
        at = np.searchsorted(everyone, rows)
        return whole if np.array_equal(at, np.arange(len(whole))) else whole[np.ix_(at, at)]

    return cut


class KernelLogisticMachine(KernelMachine):
    """One column of a :class:`KernelLogisticBank`; class 1 is the positive side."""

    _bank: KernelLogisticBank

    def decision_function(self, X) -> Floats:
        """Return the log-odds of class 1."""
        return self._bank.margins(X)[:, self._column]

    def predict_proba(self, X) -> Floats:
        """Return the probabilities of classes 0 and 1."""
        f = self.decision_function(X)
        return np.column_stack([expit(-f), expit(f)])


class KernelLogisticBank(KernelBank):
    """The fitted kernel logistic regressions of all columns.

    Parameters
    ----------
    kernel, X, y, code, duals, intercept, n_iter, converged, dtype
        As in :class:`~manyclass.banks.KernelBank`.
    kind : ScoreKind
        Type of score that :meth:`scores` returns.
    bound : float
        The parameter C, which multiplies the sample weights.
    definite : bool, default=True
        Whether no negative eigenvalues of a kernel matrix had to be set to zero.
    n_jobs : int, optional
        Threads for :meth:`leave_one_out`.
    """

    machine: ClassVar[type[KernelMachine]] = KernelLogisticMachine

    def __init__(
        self, *args, kind: ScoreKind, bound: float, definite: bool = True, n_jobs=None, **options
    ):
        super().__init__(*args, bound=bound, **options)
        self.kind, self.C, self.definite, self.n_jobs = kind, bound, definite, n_jobs

    @property
    def any_rows(self) -> bool:
        """Whether rows of any type are accepted: no, they are numbers for every kernel."""
        return False

    def margins(self, X) -> Floats:
        """Return the log-odds of the positive sides, shape (n, l)."""
        return super().scorer()(X)

    def scorer(self, dtype: type[np.floating] | None = None) -> Scorer:
        """Return a function that scores a block of rows; training samples are prepared once."""
        margins = super().scorer(dtype)
        return lambda X: self.kind.of_log_odds(margins(X))

    def leave_one_out(
        self, X, y: Places, code: Code, weights: Floats, rows: Places | None = None
    ) -> Floats:
        """Return scores as :meth:`KernelBank.leave_one_out`, by one factorisation per column.

        Raises
        ------
        Untrusted
            If a column did not converge or the kernel is not positive definite.
        """
        if not self.converged:
            raise Untrusted("the solver stopped before it converged")
        if not self.definite:
            raise Untrusted("the kernel is not positive definite")
        X = self._readable(X)
        rows = np.arange(len(y)) if rows is None else rows
        used = [np.flatnonzero((column[y] != 0) & (weights > 0)) for column in code.T]
        grams, duals, bound = _grams(self.kernel, X, used), self.duals.tocsc(), self.C * weights

        def changes(b: int) -> Floats:
            """Return the changes of all samples; 0 for those that the column does not use."""
            a, at = duals[:, [b]].toarray()[:, 0], used[b]
            out = np.zeros(len(y))
            out[at] = left_out_changes(grams(at), a[at], self.intercept[b], bound[at])
            return out

        fitted = np.flatnonzero(~self.constant)
        with _limit_blas_threads(used):
            margins = self.margins(take_part(X, rows))
            answers = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                delayed(changes)(b) for b in fitted
            )
        for b, change in zip(fitted, answers, strict=True):
            margins[:, b] -= change[rows]
        return self.kind.of_log_odds(without_only_samples(margins, y, code, weights, rows))

    def objective_terms(self, X, y: Places, code: Code, weights: Floats) -> ObjectiveTerms:
        """Raise an error: only support vector machines have reliabilities."""
        return Bank.objective_terms(self, X, y, code, weights)


def _limit_blas_threads(columns: list[Places], large: int = 2000):
    """Allow several BLAS threads for large columns only; small products are faster with one."""
    largest = max(map(len, columns))
    return threadpool_limits(1 if largest < large else None, user_api="blas")


def fit_kernel_logistic_bank(
    estimator,
    X,
    y: Places,
    code: Code,
    kind: ScoreKind,
    *,
    rows: Places,
    sample_weight: Floats | None,
    n_jobs: int | None = None,
    verbose: int = 0,
    dtype: type[np.floating] = np.float64,
) -> KernelLogisticBank:
    """Fit the kernel logistic regressions of all columns, in threads.

    ``gamma`` is resolved on all of X, so that all columns and folds share one kernel. Memory
    grows with the square of the number of samples: the kernel matrix of all samples is held once
    if columns share most of it (any code but one-vs-one), and each thread holds the matrix of its
    column, if that is smaller, and a factor of the same size.
    """
    estimator._check_parameters()
    sparse = False if estimator.kernel == "precomputed" else "csr"
    X = check_array(X, accept_sparse=sparse, dtype=np.float64, input_name="X", estimator=estimator)
    X = without_duplicates(X)
    weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight)
    kernel = estimator._make_kernel(X, weights)
    rows = rows[weights[rows] > 0]
    used = [rows[column[y[rows]] != 0] for column in code.T]
    grams, bound = _grams(kernel, X, used), estimator.C * weights

    def fit(b: int) -> Solution:
        positive = code[y[used[b]], b] > 0
        if len(positive) == 0:  # no samples: log-odds of 0
            return Solution(np.empty(0), 0.0, 0, 0.0, 0.0)
        if positive.all() or not positive.any():
            certain = np.inf if positive.all() else -np.inf
            return Solution(np.zeros(len(positive)), certain, 0, 0.0, 0.0)
        return solve(
            grams(used[b]), positive, bound[used[b]], tol=estimator.tol, max_iter=estimator.max_iter
        )

    with _limit_blas_threads(used):
        solutions = Parallel(n_jobs=n_jobs, verbose=verbose, require="sharedmem")(
            delayed(fit)(b) for b in range(code.shape[1])
        )
    duals = sparse_duals(used, [solution.dual for solution in solutions], X.shape[0])
    duals.eliminate_zeros()
    warn_of_solutions(solutions, estimator.tol)
    intercept = np.array([solution.intercept for solution in solutions])
    return KernelLogisticBank(
        *(kernel, X, y, code, duals, intercept),
        kind=kind,
        bound=estimator.C,
        n_iter=np.array([solution.n_iter for solution in solutions]),
        converged=all(solution.gradient <= estimator.tol for solution in solutions),
        definite=not any(solution.negative for solution in solutions),
        n_jobs=n_jobs,
        dtype=dtype,
    )


def warn_of_solutions(solutions: Sequence[Solution], tol: float) -> None:
    """Warn if negative eigenvalues were set to zero, or if a gradient is above ``tol``."""
    negative = max(solution.negative for solution in solutions)
    if negative > 0:
        warn(
            "the kernel matrix is not positive semi-definite: kernel logistic regression has no "
            f"minimum. Negative eigenvalues, up to {negative:.2g} of the largest one, are set to "
            "zero. If that is too much, choose another kernel, such as 'rbf', or other "
            "parameters, or scale the features."
        )
    worst = max(solutions, key=lambda one: (not one.gradient <= tol, one.gradient_in_float64))
    if worst.gradient_in_float64 <= tol:
        return
    figure = f"its gradient is {worst.gradient_in_float64:.1e} relative to C, above tol={tol:g}"
    if not worst.gradient <= tol:
        message = (
            f"kernel logistic regression did not converge: {figure}. Scale the features, lower C, "
            "or raise max_iter or tol."
        )
    else:
        message = (
            f"kernel logistic regression converged, but {figure}, if K a + b is computed in "
            f"float64 (in higher precision it is {worst.gradient:.1e}): coefficients as large as "
            "C cancel. Centre and scale the features, lower C, or raise tol."
        )
    warn(message, ConvergenceWarning)


def left_out_changes(K: Floats, dual: Floats, intercept: float, bound: Floats) -> Floats:
    """Return how much each sample changes its own margin f = K a + b, shape (n,).

    This is leave-one-out of the weighted least squares problem of the last Newton (IRLS) step, with
    the working response z = f + a / W. Without sample p its margin is z_p - a_p / (A^-1)_pp, where
    A = [[K + W^-1, 1], [1', 0]]. After scaling A by W^1/2 from both sides, the inverse has the
    diagonal D_p = 1 - W_p h_p, where W_p h_p is the leverage. The change is a_p h_p / D_p.

    ``bound`` is C times the sample weights. :class:`Untrusted` is raised if the kernel is not
    positive definite.
    """
    saturated = 1e6  # if |a| / W is above it, the leverage 1 - D would lose all digits
    negative_tol = 1e-6  # leverages, and h relative to the kernel, may be below 0 by rounding
    f = accurate_product(K, dual) + intercept
    K = centre(K)  # it does not change A^-1
    W = bound * expit(f) * expit(-f)
    root = np.sqrt(W)
    try:
        lower = np.linalg.cholesky(newton_matrix(K, root))
    except np.linalg.LinAlgError:
        raise Untrusted("the kernel is not positive definite") from None
    inverse = dtrtri(lower.T, overwrite_c=1)[0].T  # L^-1, and B^-1 = L^-T L^-1
    border = inverse.T @ (inverse @ root)
    total = root @ border
    D = np.einsum("ij,ij->j", inverse, inverse) - border**2 / total
    leverage = 1.0 - D
    h = np.divide(leverage, W, out=np.zeros_like(W), where=W > 0)
    # Far on the wrong side W vanishes while a does not. h is the posterior variance of f at x_p
    # without sample p; compute it from the kernel.
    far = np.flatnonzero(np.abs(dual) > saturated * W)
    seen = inverse @ (root[:, None] * K[:, far])
    h[far] = np.diagonal(K)[far] - np.einsum("ij,ij->j", seen, seen)
    h[far] += (1.0 - K[far] @ (root * border)) ** 2 / total
    least = -negative_tol * np.abs(np.diagonal(K)).max()
    if (D <= 0).any() or (leverage < -negative_tol).any() or (h[far] < least).any():
        raise Untrusted("the kernel is not positive definite")
    return dual * np.maximum(h, 0.0) / D
