"""Fit one clone of a binary learner per column of a code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from manyclass._lib.alignment import aligned
from manyclass._lib.arrays import Code, Places
from manyclass._lib.jobs import run_tasks
from manyclass._lib.rows import (
    by_rows,
    is_by_columns,
    take_part,
    take_rows,
    with_narrow_indices,
    without_duplicates,
)
from manyclass._lib.sklearn import check_fit_params, n_samples
from manyclass.banks.base import ConstantModel, PairwiseModel, check_square, overwrites, read_once
from manyclass.banks.liblinear import check_range
from manyclass.banks.limits import Limits
from manyclass.banks.logistic import fit_logistic, is_fitted_by_newton
from manyclass.banks.repeats import distinct_rows


def fit_models(
    estimator,
    X,
    y: Places,
    code: Code,
    rows: Places,
    params: Mapping[str, Any],
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    limits: Limits | None = None,
    report: Callable[[list[Any]], None] | None = None,
    one_thread_entries: int = 10_000_000,
) -> list[Any]:
    """Fit one clone of ``estimator`` per column; see :func:`manyclass.banks.fit_bank`.

    Up to ``one_thread_entries`` entries of X, BLAS uses one thread: handing work between threads
    takes ten times as long as it saves.
    """
    small = len(rows) * X.shape[-1] < one_thread_entries if len(X.shape) > 1 else True
    X = read_once(estimator, X)
    if _merges_copies(estimator, params) and len(X.shape) == 2:
        repeated = (Limits() if limits is None else limits).repeated
        distinct = distinct_rows(X, y, rows, params.get("sample_weight"), repeated)
        if distinct is not None:
            rows, params = distinct.rows, {"sample_weight": distinct.weights}
    order, ends = _places_of_classes(y[rows], len(code))
    pairwise = bool(get_tags(estimator).input_tags.pairwise)
    if pairwise:
        check_square(estimator, X)
        X = by_rows(X)
    # The columns of one task share the rows that a pass over an X stored by columns takes out.
    each = {"per_worker": 1} if is_by_columns(X) else {}
    newton = is_fitted_by_newton(estimator, X, code.shape[1], params)
    with threadpool_limits(1 if small else None, user_api="blas"):
        tasks = column_batches(code.shape[1], effective_n_jobs(n_jobs), **each)
        shared = estimator, X, y, code, rows, order, ends, seeds, pairwise, newton
        batches = run_tasks(
            _fit_columns, tasks, *shared, n_jobs=n_jobs, verbose=verbose, options=params,
            report=report,
        )  # fmt: skip
    return [model for models in batches for model in models]


def _merges_copies(estimator, params: Mapping[str, Any]) -> bool:
    """Tell whether equal rows are fitted as one row with the sum of their weights.

    Only for LinearSVC: LIBLINEAR's result would otherwise depend on the order of the copies.
    """
    counts_rows = isinstance(getattr(estimator, "class_weight", None), str)
    return type(estimator) is LinearSVC and not counts_rows and set(params) <= {"sample_weight"}


def column_batches(
    n_columns: int, n_jobs: int, per_worker: int = 8, most_columns: int = 64
) -> list[slice]:
    """Split the columns into tasks: several per worker, so that no worker waits long."""
    size = min(most_columns, max(1, -(-n_columns // n_jobs) // per_worker))
    return [slice(first, first + size) for first in range(0, n_columns, size)]


def _places_of_classes(y: Places, k: int) -> tuple[Places, Places]:
    """Return the places of all samples, class by class, and where each class ends."""
    return np.argsort(y, kind="stable"), np.cumsum(np.bincount(y, minlength=k))


def _fit_columns(
    batch: slice,
    estimator,
    X,
    y,
    code,
    rows,
    order,
    ends,
    seeds,
    pairwise: bool,
    newton: bool,
    /,
    **params,
) -> list[Any]:
    X = aligned(X)
    if is_by_columns(X):
        task = batch, estimator, X, y, code, rows, order, ends, seeds
        return _fit_from_columns(*task, **params)
    models, of_class = [], np.split(order, ends[:-1])
    names = [] if seeds is None else open_seeds(estimator)
    for b in range(*batch.indices(code.shape[1])):
        places = np.concatenate([of_class[c] for c in np.flatnonzero(code[:, b])])
        own = rows[np.sort(places)]
        model = estimator if newton else clone(estimator)
        if names and not newton:
            model.set_params(**dict.fromkeys(names, int(seeds[b])))
        models.append(_fit_column(model, X, y, code[:, b], own, params, pairwise, newton))
    return models


def _fit_from_columns(
    batch: slice, estimator, X, y, code, rows, order, ends, seeds, /, **params
) -> list[Any]:
    """Fit columns of the code on rows that they share, taken out of an X stored by columns.

    To take rows out needs a pass over all of X, so many columns should share it. But these rows
    and those of one column together should not be more than X has.
    """
    takes_part, sizes = code[:, batch] != 0, np.diff(ends, prepend=0)
    shared, largest = takes_part.any(axis=1) @ sizes, (sizes @ takes_part).max()
    if largest < shared and shared + largest > n_samples(X):
        first, last, _ = batch.indices(code.shape[1])
        halves = slice(first, (first + last) // 2), slice((first + last) // 2, last)
        task = estimator, X, y, code, rows, order, ends, seeds
        return [m for half in halves for m in _fit_from_columns(half, *task, **params)]
    of_class = np.split(order, ends[:-1])
    places = np.concatenate([of_class[c] for c in np.flatnonzero(takes_part.any(axis=1))])
    rows = rows[np.sort(places)]
    y, params = y[rows], check_fit_params(X, params, rows)
    order, ends = _places_of_classes(y, len(code))
    task = estimator, take_rows(X, rows), y, code, np.arange(len(rows)), order, ends, seeds
    return _fit_columns(batch, *task, False, False, **params)


def _fit_column(estimator, X, y, column, rows, params, pairwise: bool, newton: bool):
    target = (column[y[rows]] > 0).astype(np.int64)
    weight = params.get("sample_weight")
    present = target if weight is None else target[np.asarray(weight)[rows] > 0]
    if len(present) == 0:
        return ConstantModel(None)
    if (present == present[0]).all():
        return ConstantModel(bool(present[0]))
    if newton:
        return fit_logistic(estimator, X[rows], target)
    sliced, own = check_fit_params(X, params, rows), own_part(estimator, X, rows, pairwise)
    check_range(estimator, own, sliced.get("sample_weight"))
    fitted = estimator.fit(own, target, **sliced)
    return PairwiseModel(fitted, rows) if pairwise else fitted


def own_part(estimator, X, rows: Places, pairwise: bool):
    """Return the rows of a column (X itself if all), and of a square matrix its columns."""
    part = take_part(X, rows, rows if pairwise else None, copy=overwrites(estimator))
    return with_narrow_indices(part if pairwise else without_duplicates(part))


def set_seed(estimator, seed) -> None:
    """Set every ``random_state`` that is None, of the estimator and those within it."""
    if seed is not None:
        estimator.set_params(**dict.fromkeys(open_seeds(estimator), int(seed)))


def open_seeds(estimator) -> list[str]:
    """Return the names of all parameters ``random_state`` that are None."""
    return [
        name
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
