"""Many binary models as one: fitted column by column, asked all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.banks.base import Bank, ConstantModel, Evidence, Untrusted, fit_models
from manyclass.banks.kinds import CENTRED, LOG_ODDS, MARGIN, PROBABILITY, ScoreKind, response_kind
from manyclass.banks.linear import LinearBank
from manyclass.banks.svm.bank import KernelBank, is_kernel_machine
from manyclass.banks.svm.solver import WeightFactors, fit_kernel_bank, read_by_machines
from manyclass.learners.kernel_logistic.logistic_bank import (
    KernelLogisticBank,
    fit_kernel_logistic_bank,
)

__all__ = [
    "CENTRED",
    "LOG_ODDS",
    "MARGIN",
    "PROBABILITY",
    "Bank",
    "ConstantModel",
    "Evidence",
    "KernelBank",
    "KernelLogisticBank",
    "LinearBank",
    "ScoreKind",
    "Untrusted",
    "fit_bank",
    "is_kernel_machine",
    "read_by_bank",
    "response_kind",
]


def fit_bank(
    estimator,
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    kind: ScoreKind,
    *,
    rows: NDArray[np.intp] | None = None,
    fit_params: Mapping[str, Any] | None = None,
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    dtype: type[np.floating] = np.float64,
    factors: WeightFactors | None = None,
    borrow: bool = False,
) -> Bank:
    """Fit one clone of ``estimator`` per column, on the classes that take part in it.

    Parameters
    ----------
    estimator : binary classifier
    X, y : training data; y holds class indices 0 to k-1
    code : int8 array of shape (k, l)
    kind : what the bank shall answer
    rows : the training rows to use; all when omitted
    fit_params : arguments of ``fit``, sliced like the rows where they have its length;
        ``sample_weight`` also tells sides without any weight
    seeds : one seed per column for a ``random_state`` that the estimator leaves open
    n_jobs, verbose : of joblib
    dtype : what kernel machines compute their scores in
    factors : what ``sample_weight`` is a product of, for LIBSVM
    borrow : whether support vectors may stay in X until ``own_rows`` of the bank is called; X is
        to be as :func:`read_by_bank` returns it
    """
    rows = np.arange(len(y)) if rows is None else rows
    params = dict(fit_params or {})
    if _is_fitted_by_libsvm(estimator, kind, params):
        return fit_kernel_bank(
            estimator,
            X,
            y,
            code,
            rows=rows,
            sample_weight=params.get("sample_weight"),
            n_jobs=n_jobs,
            verbose=verbose,
            dtype=dtype,
            factors=factors,
            borrow=borrow,
        )
    if _is_kernel_logistic(estimator) and set(params) <= {"sample_weight"}:
        return fit_kernel_logistic_bank(
            estimator,
            X,
            y,
            code,
            kind,
            rows=rows,
            sample_weight=params.get("sample_weight"),
            n_jobs=n_jobs,
            verbose=verbose,
            dtype=dtype,
        )
    models = fit_models(estimator, X, y, code, rows, params, seeds, n_jobs, verbose)
    bank = LinearBank if LinearBank.holds(models) else Bank
    return bank(models, kind)


def read_by_bank(estimator, X, kind: ScoreKind, fit_params: Mapping[str, Any]):
    """Return X as the bank reads it, where it would be converted for every fold."""
    return (
        read_by_machines(estimator, X) if _is_fitted_by_libsvm(estimator, kind, fit_params) else X
    )


def _is_fitted_by_libsvm(estimator, kind: ScoreKind, params: Mapping[str, Any]) -> bool:
    return kind == MARGIN and is_kernel_machine(estimator) and set(params) <= {"sample_weight"}


def _is_kernel_logistic(estimator) -> bool:
    # Not at the top: learners are built upon banks.
    from manyclass.learners.kernel_logistic.regression import KernelLogisticRegression

    return type(estimator) is KernelLogisticRegression
