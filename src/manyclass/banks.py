"""Many binary models as one: fitted column by column, asked all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    PassiveAggressiveClassifier,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.svm import LinearSVC
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot

from manyclass._sklearn import check_fit_params, n_samples, take_rows

Kind = Literal["margin", "probability", "log-odds", "centred"]
"""What a bank answers: ``decision_function``; the positive side's ``predict_proba`` r; its
log-odds, for a sigmoid; or r - 1/2, the margin of Zadrozny (2001, section 4)."""
LEAST = 1e-12  # a probability below adds nothing to the log-odds


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
        if self.kind == "log-odds":
            negative, positive = np.log(np.maximum(r, LEAST)).T
            return positive - negative
        return r[:, 1] - 0.5 if self.kind == "centred" else r[:, 1]


class LinearBank(Bank):
    """Linear models as one matrix: the scores of all columns are one product."""

    TYPES = (
        LinearDiscriminantAnalysis,
        LinearSVC,
        LogisticRegression,
        LogisticRegressionCV,
        PassiveAggressiveClassifier,
        Perceptron,
        RidgeClassifier,
        RidgeClassifierCV,
        SGDClassifier,
    )

    def __init__(self, models: list[Any], kind: Kind):
        super().__init__(models, kind)
        fitted = [model for model in models if not isinstance(model, ConstantModel)]
        n_features = np.size(fitted[0].coef_) if fitted else 0
        self.coef = np.zeros((n_features, len(models)))
        self.intercept = np.empty(len(models))
        for column, model in enumerate(models):
            if isinstance(model, ConstantModel):
                self.intercept[column] = np.inf if model.positive else -np.inf
            else:
                self.coef[:, column] = np.ravel(model.coef_)
                self.intercept[column] = np.ravel(model.intercept_)[0]
        self.huber = bool(fitted) and getattr(fitted[0], "loss", None) == "modified_huber"

    @classmethod
    def holds(cls, models: list[Any]) -> bool:
        """Whether these models, of exactly these types, are linear."""
        return any(type(model) in cls.TYPES for model in models) and all(
            type(model) in (*cls.TYPES, ConstantModel) for model in models
        )

    def scores(self, X, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the scores of every column; all entries are computed."""
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        margins = safe_sparse_dot(X, self.coef, dense_output=True) + self.intercept
        if self.kind == "margin":
            return margins
        # Zhang's estimate for the modified Huber loss; all others are logistic.
        return (np.clip(margins, -1.0, 1.0) + 1.0) / 2.0 if self.huber else expit(margins)


def response_kind(estimator, kinds: tuple[Kind, ...]) -> Kind:
    """Return the first of ``kinds`` that the estimator can answer."""
    for kind in kinds:
        if hasattr(estimator, "decision_function" if kind == "margin" else "predict_proba"):
            return kind
    raise ValueError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba: its labels "
        "alone cannot be combined. Wrap it in CalibratedClassifierCV, or choose another estimator."
    )


def fit_bank(
    estimator,
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    kind: Kind,
    *,
    rows: NDArray[np.intp] | None = None,
    sample_weight: NDArray[np.float64] | None = None,
    fit_params: Mapping[str, Any] | None = None,
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Bank:
    """Fit one clone of ``estimator`` per column, on the classes that take part in it.

    Parameters
    ----------
    estimator : binary classifier
    X, y : training data; y holds class indices 0 to k-1
    code : int8 array of shape (k, l)
    kind : what the bank shall answer
    rows : the training rows to use; all when omitted
    sample_weight : passed on to ``fit``; also tells sides without any weight
    fit_params : further arguments of ``fit``, sliced like the rows where they have its length
    seeds : one seed per column for a ``random_state`` that the estimator leaves open
    n_jobs, verbose : of joblib
    """
    rows = np.arange(len(y)) if rows is None else rows
    params = dict(fit_params or {})
    if sample_weight is not None:
        params["sample_weight"] = sample_weight
    models = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(_fit_column)(
            clone(estimator), X, y, code[:, b], rows, params, None if seeds is None else seeds[b]
        )
        for b in range(code.shape[1])
    )
    bank = LinearBank if LinearBank.holds(models) else Bank
    return bank(models, kind)


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
