"""The base class of banks: the fitted binary models of all columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.rows import (
    by_rows,
    take_part,
    take_rows,
    with_narrow_indices,
    without_duplicates,
)
from manyclass._lib.sklearn import n_samples
from manyclass.banks.score_kinds import ScoreKind

Scorer = Callable[[Any], Floats]  # returns the scores (n, l) of a block of rows


class ObjectiveTerms(NamedTuple):
    """The terms of a support vector machine's objective (Liu & Zheng 2005, eq. 6)."""

    penalty: Floats
    """|w|^2 / (2 C N) of every machine, shape (l,)."""
    margins: Floats
    """Margins f of the training samples, shape (n, l)."""
    weights: Floats | None = None
    """Weights of the training samples, shape (n,); None for 1."""
    pairwise: bool = False
    """Whether X is a precomputed kernel and not samples."""


class Untrusted(Exception):
    """Analytic leave-one-out is not available, or not reliable; the message says why.

    If only some columns are concerned, ``columns`` marks them, and ``scores`` has all columns.
    """

    def __init__(self, reason: str, columns: Flags | None = None, scores: Floats | None = None):
        super().__init__(reason)
        self.columns, self.scores = columns, scores


class ConstantModel(ClassifierMixin, BaseEstimator):
    """The model of a column whose training samples are all on one side.

    ``positive=None`` if the column has no samples at all: both sides are then equally likely.
    """

    def __init__(self, positive: bool | None = True):
        self.positive = positive

    @property
    def margin(self) -> float:
        """Infinite, with the sign of the only side; 0 without samples."""
        return 0.0 if self.positive is None else np.inf if self.positive else -np.inf

    def decision_function(self, X) -> Floats:
        """Return infinite margins with the sign of the only side, or 0 without samples."""
        return np.full(n_samples(X), self.margin)

    def predict_proba(self, X) -> Floats:
        """Return probability 1 for the only side, or 1/2 without samples."""
        r = 0.5 if self.positive is None else float(self.positive)
        return np.tile([1.0 - r, r], (n_samples(X), 1))


class Bank:
    """The fitted models of all columns. This class calls them one by one.

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

    def models_of(self, learner: Any) -> list[Any]:
        """Return the fitted models; views of a bank take their parameters from the learner."""
        return self.models

    def scores(self, X, where: Flags | None = None) -> Floats:
        """Return the margin, or the positive side's probability, of every column.

        Parameters
        ----------
        X : array-like or sparse matrix of n rows
        where : bool array of shape (n, l), optional
            The entries that are needed; others may be NaN.

        Returns
        -------
        array of shape (n, l)
        """
        X = by_rows(read_once(self._first_fitted(), X))
        # Graphs of neighbours are sorted by distance, and must stay so.
        pairwise = isinstance(self._first_fitted(), PairwiseModel)
        X = with_narrow_indices(X if pairwise else without_duplicates(X))
        out = np.full((n_samples(X), len(self.models)), np.nan)
        # A model that may overwrite its input gets a copy; all models are clones of one learner.
        everything = np.arange(n_samples(X)) if overwrites(self._first_fitted()) else None
        for column, model in enumerate(self.models):
            if where is None or where[:, column].all():
                out[:, column] = self._ask(model, X, everything)
            elif where[:, column].any():
                rows = np.flatnonzero(where[:, column])
                out[rows, column] = self._ask(model, X, rows)
        return out

    def scores_at(self, X, rows: Places, where: Flags | None = None) -> Floats:
        """Return the scores (m, l) of some rows of X; ``where`` is as in :meth:`scores`."""
        return self.scores(take_rows(X, rows), where)

    def own_rows(self) -> None:
        """Copy rows that are still in the training data, if there are any."""

    def _ask(self, model, X, rows: Places | None = None) -> Floats:
        if isinstance(model, PairwiseModel):  # rows and columns at once
            model, X = model.estimator, model.cut(X, rows)
        elif rows is not None:
            X = take_part(X, rows, copy=True)
        X = with_names_of(model, X)
        return self.kind.of(model, X)

    def constants(self) -> Floats:
        """Return the scores of the constant models, which do not depend on the sample."""
        anything = np.zeros((1, 1))
        models = [model for model in self.models if isinstance(model, ConstantModel)]
        return np.array([self._ask(model, anything)[0] for model in models])

    def _first_fitted(self) -> Any:
        """Return a model that is not constant, if there is one."""
        return self.models[0 if self.constant.all() else int(np.argmin(self.constant))]

    def _learner(self) -> str:
        """Return the class name of the fitted learner."""
        model = self._first_fitted()
        return type(model.estimator if isinstance(model, PairwiseModel) else model).__name__

    def scorer(self) -> Scorer:
        """Return the function that scores rows, to call it for many blocks."""
        return self.scores

    def leave_one_out(
        self, X, y: Places, code: Code, weights: Floats, rows: Places | None = None
    ) -> Floats:
        """Return scores (m, l) of training rows, each by models without that row.

        Only for learners with a closed form: see :class:`~manyclass.banks.KernelBank`.
        """
        raise Untrusted(f"{self._learner()} has no closed form for it")

    def scores_by_folds(
        self, X, y: Places, weights: Floats, columns: Flags, numbers: Places
    ) -> Floats | None:
        """Return scores (n, columns) of training rows, each by models without the row's fold.

        Scores are NaN where a row takes no part in the column or is in no fold. None if the learner
        has no faster way than to fit the folds.

        Parameters
        ----------
        X, y, weights : as the bank was fitted on
        columns : bool array of shape (l,)
        numbers : int array of shape (n,)
            Fold of each row, -1 for none.
        """
        return None

    def objective_terms(self, X, y: Places, code: Code, weights: Floats) -> ObjectiveTerms:
        """Return the terms of every machine's objective, which measure its reliability.

        Only for support vector machines: see :class:`~manyclass.combiners.reliability.Reliability`.
        """
        if self.constant.all():  # one side only: nothing was fitted
            return ObjectiveTerms(np.zeros(len(self.models)), self.scores(X), weights)
        raise ValueError(
            f"the reliability of {self._learner()} is not defined: use SVC or "
            "LinearSVC as the estimator, or another combiner."
        )


def read_once(learner: Any, X):
    """Return ``learner.__manyclass_rows__(X)`` if the learner defines it, otherwise X.

    The method converts X once for all columns. The learner and its clones must take the result
    instead of X in ``fit`` and in prediction; it has a ``shape``, and rows by index. The method is
    not inherited: a subclass may expect X itself.
    """
    takes_rows = "__manyclass_rows__" in vars(type(learner))
    return learner.__manyclass_rows__(X) if takes_rows else X


def with_names_of(model, X):
    """Return an array as a frame if the model was fitted on one.

    The user has been warned of missing names once, and should not be for every column.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None or type(X) is not np.ndarray or X.ndim != 2 or X.shape[1] != len(names):
        return X
    try:
        from pandas import DataFrame
    except ImportError:  # a frame of another library
        return X
    return DataFrame(X, columns=names, copy=False)


def overwrites(estimator) -> bool:
    """Tell whether a parameter allows the estimator, or one within it, to change X in place."""
    names = ("copy", "copy_X", "copy_x")
    params = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    return any(
        value is False and name.rpartition("__")[2] in names for name, value in params.items()
    )


def _has(method: str) -> Callable[[PairwiseModel], bool]:
    return lambda self: hasattr(self.estimator, method)


class PairwiseModel(ClassifierMixin, BaseEstimator):
    """A model of a kernel or distance matrix, which takes the matrix of all training samples.

    ``rows`` are the training samples of ``estimator``: the columns that it takes.
    """

    def __init__(self, estimator, rows: Places):
        self.estimator = estimator
        self.rows = rows

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The negative and the positive side."""
        return self.estimator.classes_

    def cut(self, X, rows: Places | None = None):
        """Return the estimator's columns of X, and these rows, which may then be written to."""
        return take_part(X, rows, self.rows, copy=rows is not None)

    @available_if(_has("decision_function"))
    def decision_function(self, X) -> Floats:
        """Return the margins of rows of the matrix."""
        return self.estimator.decision_function(self.cut(X))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X) -> Floats:
        """Return the probabilities of rows of the matrix."""
        return self.estimator.predict_proba(self.cut(X))

    def predict(self, X) -> NDArray:
        """Return 1 for the positive side, 0 for the negative."""
        return self.estimator.predict(self.cut(X))


def check_square(estimator, X) -> None:
    """Raise a ``ValueError`` if X cannot be the matrix between all training samples."""
    if X.shape != (X.shape[0], X.shape[0]):
        raise ValueError(
            f"X has shape {X.shape}: {type(estimator).__name__} takes a kernel or distance matrix, "
            "which must be square, with a row and a column for every training sample."
        )
