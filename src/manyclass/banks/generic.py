"""The fitted models of all columns, asked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from threadpoolctl import threadpool_limits

from manyclass._sklearn import check_fit_params, n_samples, take_rows

Kind = Literal["margin", "probability", "log-odds", "centred"]
"""What a bank answers: ``decision_function``; the positive side's ``predict_proba`` r; its
log-odds, for a sigmoid; or r - 1/2, the margin of Zadrozny (2001, section 4)."""
LEAST = 1e-12  # a probability below adds nothing to the log-odds
ROUNDING = 1e-6  # by which single precision may leave [0, 1]
SMALL = 10_000_000  # entries of X


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
    """Analytic leave-one-out is not to be had, or not to be trusted; the message says why."""


class ConstantModel(ClassifierMixin, BaseEstimator):
    """Stands in for a binary problem whose training samples are all on one side."""

    def __init__(self, positive: bool = True):
        self.positive = positive

    def decision_function(self, X) -> NDArray[np.float64]:
        """Return an infinite margin on the only side there is."""
        return np.full(n_samples(X), np.inf if self.positive else -np.inf)

    def predict_proba(self, X) -> NDArray[np.float64]:
        """Return certainty of the only side there is."""
        return np.tile([1.0 - self.positive, 1.0 * self.positive], (n_samples(X), 1))


class Bank:
    """The fitted models of all columns, asked one by one.

    Parameters
    ----------
    models : list of fitted binary classifiers
        Classes 0 (negative side) and 1 (positive side).
    kind : {"margin", "probability", "log-odds", "centred"}
        What :meth:`scores` returns.
    """

    def __init__(self, models: list[Any], kind: Kind):
        self.models = models
        self.kind = kind
        self.constant = np.array([isinstance(model, ConstantModel) for model in models])

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
        out = np.full((n_samples(X), len(self.models)), np.nan)
        for column, model in enumerate(self.models):
            if where is None or where[:, column].all():
                out[:, column] = self._ask(model, X)
            elif where[:, column].any():
                rows = np.flatnonzero(where[:, column])
                out[rows, column] = self._ask(model, take_rows(X, rows))
        return out

    def _ask(self, model, X) -> NDArray[np.float64]:
        if self.kind == "margin":
            return np.asarray(model.decision_function(X), dtype=np.float64).reshape(-1)
        r = np.asarray(model.predict_proba(X), dtype=np.float64)
        r = np.where((r < 0) & (r > -ROUNDING), 0.0, np.where((r > 1) & (r < 1 + ROUNDING), 1.0, r))
        if self.kind == "log-odds":
            negative, positive = np.log(np.maximum(r, LEAST)).T
            return positive - negative
        return r[:, 1] - 0.5 if self.kind == "centred" else r[:, 1]

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
        raise Untrusted(f"{type(self.models[0]).__name__} has no closed form for it")

    def evidence(
        self, X, y: NDArray[np.intp], code: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Evidence:
        """Return what the training set tells about the reliability of every machine.

        Only for support vector machines: see :class:`~manyclass.reliability.Reliability`.
        """
        if self.constant.all():  # one side only: whatever the estimator, nothing was fitted
            return Evidence(np.zeros(len(self.models)), self.scores(X), weights)
        raise ValueError(
            f"the reliability of {type(self.models[0]).__name__} is not defined: use SVC or "
            "LinearSVC as the estimator, or another combiner."
        )


def column_sizes(
    y: NDArray[np.intp], code: NDArray[np.int8], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the total weight of the samples that take part in each column, shape (l,)."""
    return np.bincount(y, weights, minlength=len(code)) @ (code != 0)


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
    with threadpool_limits(1 if small else None, user_api="blas"):
        return Parallel(n_jobs=n_jobs, verbose=verbose)(
            delayed(_fit_column)(
                clone(estimator),
                X,
                y,
                code[:, b],
                rows,
                params,
                None if seeds is None else seeds[b],
            )
            for b in range(code.shape[1])
        )


def _fit_column(estimator, X, y, column, rows, params, seed):
    rows = rows[column[y[rows]] != 0]
    target = (column[y[rows]] > 0).astype(np.int64)
    weight = params.get("sample_weight")
    present = target if weight is None else target[np.asarray(weight)[rows] > 0]
    if len(present) == 0 or (present == present[0]).all():
        return ConstantModel(bool(len(present) == 0 or present[0]))
    _set_seed(estimator, seed)
    sliced = check_fit_params(X, params, rows)
    return estimator.fit(take_rows(X, rows), target, **sliced)


def _set_seed(estimator, seed) -> None:
    if seed is None:
        return
    open_seeds = [
        name
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    estimator.set_params(**dict.fromkeys(open_seeds, int(seed)))
