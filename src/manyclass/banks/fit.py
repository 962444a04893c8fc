"""Fit the bank of any learner.

A learner is asked for its own bank: see :func:`fit_bank`. Without one, a clone of it is fitted for
every column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC, NuSVC

from manyclass._lib.arrays import Code, Places
from manyclass._lib.column_bar import ColumnBar
from manyclass.banks.base import Bank
from manyclass.banks.by_column import fit_models
from manyclass.banks.limits import Limits
from manyclass.banks.linear import LinearBank
from manyclass.banks.score_kinds import MARGIN, ScoreKind
from manyclass.banks.svm.fit import WeightFactors, fit_kernel_bank, read_by_machines

_KERNEL_MACHINES = (SVC, NuSVC)  # scikit-learn's types cannot define a hook


def fit_bank(
    estimator,
    X,
    y: Places,
    code: Code,
    kind: ScoreKind,
    *,
    rows: Places | None = None,
    fit_params: Mapping[str, Any] | None = None,
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    dtype: type[np.floating] = np.float64,
    factors: WeightFactors | None = None,
    borrow: bool = False,
    limits: Limits | None = None,
    bar: ColumnBar | None = None,
) -> Bank:
    """Fit one binary model per column, on the classes that take part in it.

    A learner may define ``__manyclass_bank__(self, X, y, code, kind, *, rows, fit_params, n_jobs,
    verbose, dtype)``. It returns the bank of all columns, or None to have a clone fitted for every
    column. The method is not inherited: a subclass may override ``fit``.

    Parameters
    ----------
    estimator : binary classifier
    X, y : training data; y holds class indices 0 to k-1
    code : int8 array of shape (k, l)
    kind : what the bank returns
    rows : the training rows to use; all if omitted
    fit_params : arguments of ``fit``, sliced like the rows if they have their length;
        ``sample_weight`` also tells which sides have no weight at all
    seeds : one seed per column for every ``random_state`` of the estimator that is None
    n_jobs, verbose : of joblib
    dtype : the type in which kernel machines compute their scores
    factors : the factors of ``sample_weight``, for kernel machines
    borrow : whether support vectors may stay in X until ``own_rows`` of the bank is called; X must
        then come from :func:`read_by_bank`. A fit of ``CoupledSVC(cv=3)`` on 600 rows of 20,000
        features, all of them support vectors, takes 1.0 times the memory of X and not 3.1 times
    limits : sizes of blocks, and limits of memory and time, for support vector machines
    bar : counts the columns as they are fitted

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from manyclass.banks import PROBABILITY, fit_bank
    >>> from manyclass.codes import one_vs_rest
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = fit_bank(LogisticRegression(), X, y, one_vs_rest(3), PROBABILITY)
    >>> bank.scores(X[:2]).round(1)
    array([[1. , 0.1, 0. ],
           [1. , 0.3, 0. ]])
    """
    rows = np.arange(len(y)) if rows is None else rows
    params = dict(fit_params or {})
    options: dict[str, Any] = {"rows": rows, "n_jobs": n_jobs, "dtype": dtype}
    if _is_kernel_bank(estimator, kind, params):
        options |= {"factors": factors, "borrow": borrow, "limits": limits}
        weight = params.get("sample_weight")
        kernel_bank = fit_kernel_bank(estimator, X, y, code, sample_weight=weight, **options)
        return _counted(kernel_bank, code, bar)
    if "__manyclass_bank__" in vars(type(estimator)):
        options |= {"fit_params": params, "verbose": verbose}
        bank = estimator.__manyclass_bank__(X, y, code, kind, **options)
        if bank is not None:
            return _counted(bank, code, bar)
    report = None if bar is None else lambda models: bar.add(len(models))
    task = estimator, X, y, code, rows, params, seeds, n_jobs, verbose, limits
    models = fit_models(*task, report)
    return (LinearBank if LinearBank.holds(models) else Bank)(models, kind)


def _counted(bank: Bank, code: Code, bar: ColumnBar | None) -> Bank:
    """Return a bank whose columns were fitted all at once, after they have been counted."""
    if bar is not None:
        bar.add(code.shape[1])
    return bank


def read_by_bank(estimator, X, kind: ScoreKind, fit_params: Mapping[str, Any]):
    """Return X in the form that the bank reads, so that it is not converted for every fold."""
    return read_by_machines(estimator, X) if _is_kernel_bank(estimator, kind, fit_params) else X


def is_kernel_machine(estimator) -> bool:
    """Tell whether the estimator is scikit-learn's SVC or NuSVC, and not a subclass."""
    return type(estimator) in _KERNEL_MACHINES


def takes_any_rows(estimator) -> bool:
    """Tell whether samples may be of any type, since only a callable kernel reads them."""
    return is_kernel_machine(estimator) and callable(estimator.kernel)


def _is_kernel_bank(estimator, kind: ScoreKind, params: Mapping[str, Any]) -> bool:
    """Tell whether the machines of all columns are fitted together."""
    return kind == MARGIN and is_kernel_machine(estimator) and set(params) <= {"sample_weight"}
