"""LIBSVM, one call per column: for NuSVC, and where our own solver does not apply."""

from __future__ import annotations

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import issparse
from sklearn.base import clone

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.interrupts import interruptible
from manyclass._lib.jobs import run_tasks
from manyclass._lib.rows import take_part
from manyclass.banks.by_column import column_batches
from manyclass.banks.svm.kernels import Kernel

Column = tuple[Places, Floats, float, int, bool]
"""Support rows, signed dual coefficients, intercept, iterations, converged."""


def fit_by_libsvm(
    estimator, kernel: Kernel, X, y: Places, code: Code, rows, weights: Floats | None, n_jobs
) -> list[Column]:
    """Fit a clone of SVC or NuSVC for every column, in threads: LIBSVM frees the lock."""
    machine = clone(estimator).set_params(
        kernel=kernel.for_svc,
        gamma=getattr(kernel, "gamma", 1.0),
        probability=type(estimator)().probability,
    )
    shared = machine, kernel, X, y, code, rows, weights
    batches = column_batches(code.shape[1], effective_n_jobs(n_jobs))
    fitted = run_tasks(_fit_columns, batches, *shared, n_jobs=n_jobs, prefer="threads")
    return [column for batch in fitted for column in batch]


def _fit_columns(batch: slice, machine, kernel, X, y, code, rows, weights) -> list[Column]:
    shared = machine, kernel, X, y, rows, weights
    return [_fit_column(column, *shared) for column in code[:, batch].T]


def _fit_column(column, machine, kernel: Kernel, X, y, rows, weights) -> Column:
    rows = rows[column[y[rows]] != 0]
    target = (column[y[rows]] > 0).astype(np.intp)
    if len(np.unique(target)) < 2:
        only = column[y[rows[0]]] if len(target) else 0  # 0 without samples
        return rows[:0], np.empty(0), only * np.inf if only else 0.0, 0, True
    part = take_part(X, rows, rows if kernel.precomputed else None)
    weight = None if weights is None else weights[rows]
    work = _products(kernel, part)
    fitted = interruptible(clone(machine).fit, part, target, sample_weight=weight, work=work)
    duals = fitted.dual_coef_.toarray() if issparse(fitted.dual_coef_) else fitted.dual_coef_
    support, intercept = rows[fitted.support_], float(fitted.intercept_[0])
    return support, duals[0], intercept, int(fitted.n_iter_[0]), fitted.fit_status_ == 0


def _products(kernel: Kernel, X) -> float:
    """Estimate the multiplications in LIBSVM: those of the kernel matrix."""
    if kernel.precomputed:
        return float(len(X) ** 2)
    if not kernel.numeric:
        return np.inf
    n, n_features = X.shape
    return n**2 * (X.nnz / max(1, n) if issparse(X) else n_features)
