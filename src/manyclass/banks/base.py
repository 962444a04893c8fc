"""The fitted models of all columns, asked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from manyclass._lib.jobs import run_tasks
from manyclass._lib.rows import by_rows, is_by_columns, take_rows, without_duplicates
from manyclass._lib.sklearn import check_fit_params, n_samples
from manyclass.banks.kinds import ScoreKind
from manyclass.banks.precomputed import PairwiseModel, check_square, copy_part, is_everything
from manyclass.banks.repeats import distinct_rows

SMALL = 10_000_000  # entries of X
TASKS_OF_WORKER = 8  # so that none waits long for the others,
MOST_IN_TASK = 64  # and columns handed over at once


Scorer = Callable[[Any], NDArray[np.float64]]
"""Gives the scores (n, l) of a block of rows."""


class Evidence(NamedTuple):
    """What a support vector machine's objective says about it (Liu & Zheng 2005, eq. 6)."""

    penalty: NDArray[np.float64]
    """|w|^2 / (2 C N) of every machine, shape (l,)."""
    margins: NDArray[np.float64]
    """Margins f of the training samples, shape (n, l)."""
    weights: NDArray[np.float64] | None = None
    """How often each training sample counts, shape (n,); once when omitted."""
    pairwise: bool = False
    """Whether X is a precomputed kernel, and not samples in an input space."""


class Untrusted(Exception):
    """Analytic leave-one-out is not to be had, or not to be trusted; the message says why.

    Where that is so of some columns only, ``columns`` tells which, and ``scores`` are those of
    all.
    """

    def __init__(
        self,
        reason: str,
        columns: NDArray[np.bool_] | None = None,
        scores: NDArray[np.float64] | None = None,
    ):
        super().__init__(reason)
        self.columns, self.scores = columns, scores


class ConstantModel(ClassifierMixin, BaseEstimator):
    """Stands in for a binary problem whose training samples are all on one side.

    ``positive=None`` stands for one without samples of either side, which tells nothing.
    """

    def __init__(self, positive: bool | None = True):
        self.positive = positive

    @property
    def margin(self) -> float:
        """Infinite on the only side there is; 0 where there is none."""
        return 0.0 if self.positive is None else np.inf if self.positive else -np.inf

    def decision_function(self, X) -> NDArray[np.float64]:
        """Return an infinite margin on the only side there is, 0 where there is none."""
        return np.full(n_samples(X), self.margin)

    def predict_proba(self, X) -> NDArray[np.float64]:
        """Return certainty of the only side there is, 1/2 where there is none."""
        r = 0.5 if self.positive is None else float(self.positive)
        return np.tile([1.0 - r, r], (n_samples(X), 1))


class Bank:
    """The fitted models of all columns, asked one by one.

    Parameters
    ----------
    models : list of fitted binary classifiers
        Classes 0 (negative side) and 1 (positive side).
    kind : ScoreKind
        What :meth:`scores` returns.
    """

    def __init__(self, models: list[Any], kind: ScoreKind):
        self._keep(models)
        self.kind = kind
        self.constant = np.array([isinstance(model, ConstantModel) for model in models])

    def _keep(self, models: list[Any]) -> None:
        self._models = models

    @property
    def models(self) -> list[Any]:
        """The fitted models, one per column."""
        return self._models

    def scores(self, X, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the margin, or the positive side's probability, of every column.

        Parameters
        ----------
        X : array-like or sparse matrix of n rows
        where : bool array of shape (n, l), optional
            The entries that are needed; others may be left NaN.

        Returns
        -------
        array of shape (n, l)
        """
        X = by_rows(read_once(self._first_fitted(), X))
        # Graphs of neighbours are in the order of their distances, and stay so.
        pairwise = isinstance(self._first_fitted(), PairwiseModel)
        X = with_narrow_indices(X if pairwise else without_duplicates(X))
        out = np.full((n_samples(X), len(self.models)), np.nan)
        # Each model has a copy of its own, if it may change it: clones of one learner all do.
        everything = np.arange(n_samples(X)) if _overwrites(self._first_fitted()) else None
        for column, model in enumerate(self.models):
            if where is None or where[:, column].all():
                out[:, column] = self._ask(model, X, everything)
            elif where[:, column].any():
                rows = np.flatnonzero(where[:, column])
                out[rows, column] = self._ask(model, X, rows)
        return out

    def scores_at(
        self, X, rows: NDArray[np.intp], where: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the scores (m, l) of some rows of X; ``where`` is as in :meth:`scores`."""
        return self.scores(take_rows(X, rows), where)

    def own_rows(self) -> None:
        """Copy what is still read from the training data, if anything is."""

    def _ask(self, model, X, rows: NDArray[np.intp] | None = None) -> NDArray[np.float64]:
        if isinstance(model, PairwiseModel):  # rows and columns in one go
            model, X = model.estimator, model.cut(X, rows)
        elif rows is not None:
            X = copy_part(X, rows)
        X = _with_names_of(model, X)
        return self.kind.of(model, X)

    def constants(self) -> NDArray[np.float64]:
        """Return what the constant models answer, whatever they are asked."""
        anything = np.zeros((1, 1))
        models = [model for model in self.models if isinstance(model, ConstantModel)]
        return np.array([self._ask(model, anything)[0] for model in models])

    def _first_fitted(self) -> Any:
        """Return a model that is not constant, if there is one."""
        return self.models[0 if self.constant.all() else int(np.argmin(self.constant))]

    def _learner(self) -> str:
        """Return the name of what was fitted, if anything was."""
        model = self._first_fitted()
        return type(model.estimator if isinstance(model, PairwiseModel) else model).__name__

    def scorer(self) -> Scorer:
        """Return the function that scores rows, for asking it block by block."""
        return self.scores

    def leave_one_out(
        self,
        X,
        y: NDArray[np.intp],
        code: NDArray[np.int8],
        weights: NDArray[np.float64],
        rows: NDArray[np.intp] | None = None,
    ) -> NDArray[np.float64]:
        """Return scores (m, l) of the given training rows that no sample had a part in itself.

        Only for learners with a closed form: see :class:`~manyclass.banks.KernelBank`.
        """
        raise Untrusted(f"{self._learner()} has no closed form for it")

    def evidence(
        self, X, y: NDArray[np.intp], code: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Evidence:
        """Return what the training set tells about the reliability of every machine.

        Only for support vector machines: see :class:`~manyclass.combiners.reliability.Reliability`.
        """
        if self.constant.all():  # one side only: whatever the estimator, nothing was fitted
            return Evidence(np.zeros(len(self.models)), self.scores(X), weights)
        raise ValueError(
            f"the reliability of {self._learner()} is not defined: use SVC or "
            "LinearSVC as the estimator, or another combiner."
        )


def read_once(learner: Any, X):
    """Return X as the learner and its clones read it, if it has ``__manyclass_rows__(X)``.

    That is what they take in place of X in ``fit`` and in prediction, without having to read it
    anew for every column, and has a ``shape`` and rows by index. The method is not inherited: a
    subclass may well expect X itself.
    """
    takes_rows = "__manyclass_rows__" in vars(type(learner))
    return learner.__manyclass_rows__(X) if takes_rows else X


def fit_models(
    estimator,
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    rows: NDArray[np.intp],
    params: Mapping[str, Any],
    seeds: NDArray[np.int64] | None,
    n_jobs: int | None,
    verbose: int,
) -> list[Any]:
    """Fit one clone of ``estimator`` per column; see :func:`manyclass.banks.fit_bank`."""
    # Small problems one after the other: handing each between threads costs more
    # than it gains, by an order of magnitude.
    small = len(rows) * X.shape[-1] < SMALL if len(X.shape) > 1 else True
    X = read_once(estimator, X)
    if _takes_distinct(estimator, params):
        distinct = distinct_rows(X, y, rows, params.get("sample_weight"))
        if distinct is not None:
            rows, params = distinct.rows, {"sample_weight": distinct.weights}
    order, ends = _places_of_classes(y[rows], len(code))
    pairwise = bool(get_tags(estimator).input_tags.pairwise)
    if pairwise:
        check_square(estimator, X)
        X = by_rows(X)
    with threadpool_limits(1 if small else None, user_api="blas"):
        batches = run_tasks(
            _fit_columns,
            # Columns of one task share what it takes a pass over X to get.
            column_batches(
                code.shape[1], effective_n_jobs(n_jobs), 1 if is_by_columns(X) else TASKS_OF_WORKER
            ),
            estimator,
            X,
            y,
            code,
            rows,
            order,
            ends,
            seeds,
            pairwise,
            n_jobs=n_jobs,
            verbose=verbose,
            options=params,
        )
    return [model for models in batches for model in models]


def _takes_distinct(estimator, params: Mapping[str, Any]) -> bool:
    """Tell whether a row shall be fitted once, with what its copies weigh together.

    Many learners could; LIBLINEAR ends somewhere within its tolerance, and shall not end
    elsewhere if copies come in another order.
    """
    told_by_rows = isinstance(getattr(estimator, "class_weight", None), str)
    return type(estimator) is LinearSVC and not told_by_rows and set(params) <= {"sample_weight"}


def column_batches(n_columns: int, n_jobs: int, each: int = TASKS_OF_WORKER) -> list[slice]:
    """Split the columns into tasks: several for each worker, but not one for each of thousands."""
    size = min(MOST_IN_TASK, max(1, -(-n_columns // n_jobs) // each))
    return [slice(first, first + size) for first in range(0, n_columns, size)]


def _places_of_classes(y: NDArray[np.intp], k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the places of all samples, class by class, and where each class ends among them.

    So that not every column has to look through all rows.
    """
    return np.argsort(y, kind="stable"), np.cumsum(np.bincount(y, minlength=k))


def _fit_columns(
    batch: slice, estimator, X, y, code, rows, order, ends, seeds, pairwise: bool, /, **params
) -> list[Any]:
    X = _aligned(X)
    if is_by_columns(X):
        task = batch, estimator, X, y, code, rows, order, ends, seeds
        return _fit_from_columns(*task, **params)
    models, of_class = [], np.split(order, ends[:-1])
    for b in range(*batch.indices(code.shape[1])):
        places = np.concatenate([of_class[c] for c in np.flatnonzero(code[:, b])])
        own = rows[np.sort(places)]
        seed = None if seeds is None else seeds[b]
        models.append(_fit_column(clone(estimator), X, y, code[:, b], own, params, seed, pairwise))
    return models


def _aligned(X):
    """Return X, or a copy that begins where numbers do in memory, so that sums are the same.

    What a worker of a cluster has received may begin anywhere.
    """
    return X.copy(order="K") if isinstance(X, np.ndarray) and not X.flags.aligned else X


def _fit_from_columns(
    batch: slice, estimator, X, y, code, rows, order, ends, seeds, /, **params
) -> list[Any]:
    """Fit columns of the code on rows that they share, taken out of an X stored by columns.

    The more columns share them the better, as it takes a pass over all of X. But with the part
    of a column beside them they shall not be more than X has.
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
    return _fit_columns(batch, *task, False, **params)


def _fit_column(estimator, X, y, column, rows, params, seed, pairwise: bool):
    target = (column[y[rows]] > 0).astype(np.int64)
    weight = params.get("sample_weight")
    present = target if weight is None else target[np.asarray(weight)[rows] > 0]
    if len(present) == 0:
        return ConstantModel(None)
    if (present == present[0]).all():
        return ConstantModel(bool(present[0]))
    set_seed(estimator, seed)
    sliced = check_fit_params(X, params, rows)
    fitted = estimator.fit(_own_part(estimator, X, rows, pairwise), target, **sliced)
    return PairwiseModel(fitted, rows) if pairwise else fitted


def _own_part(estimator, X, rows: NDArray[np.intp], pairwise: bool):
    """Return the rows of a column, of a square matrix also its columns.

    X itself if that is all of it, and the estimator keeps it.
    """
    kept = is_everything(rows, n_samples(X)) and not _overwrites(estimator)
    part = X if kept else copy_part(X, rows, rows if pairwise else None)
    return with_narrow_indices(part if pairwise else without_duplicates(part))


def with_narrow_indices(X):
    """Return X with indices of 32 bits, if they fit: not every learner takes wider ones."""
    if not issparse(X) or X.format != "csr" or X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    if max(X.nnz, X.shape[1]) > np.iinfo(np.int32).max:
        return X
    parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return type(X)(parts, shape=X.shape)


def _with_names_of(model, X):
    """Return an array as a frame, if the model was fitted on one and would miss its names.

    That they are missing has been said once, of X as it was given, and not for every column.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or type(X) is not np.ndarray or X.ndim != 2 or X.shape[1] != len(names):
        return X
    try:
        from pandas import DataFrame
    except ImportError:  # it was a frame of another kind
        return X
    return DataFrame(X, columns=names, copy=False)


def _overwrites(estimator) -> bool:
    """Tell whether the estimator, or one within it, was allowed to change X in place."""
    names = ("copy", "copy_X", "copy_x")
    params = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    return any(
        value is False and name.rpartition("__")[2] in names for name, value in params.items()
    )


def set_seed(estimator, seed) -> None:
    """Give the estimator this seed, and all within it, where their own is left open."""
    if seed is None:
        return
    open_seeds = [
        name
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    estimator.set_params(**dict.fromkeys(open_seeds, int(seed)))
