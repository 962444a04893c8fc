"""Linear models as one matrix: the scores of all columns are one product."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.svm import LinearSVC
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot

from manyclass.banks.generic import Bank, ConstantModel, Evidence, Kind, column_sizes


class LinearBank(Bank):
    """Linear models as one matrix: the scores of all columns are one product."""

    TYPES = (
        LinearDiscriminantAnalysis,
        LinearSVC,
        LogisticRegression,
        LogisticRegressionCV,
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

    def evidence(
        self, X, y: NDArray[np.intp], code: NDArray[np.int8], weights: NDArray[np.float64]
    ) -> Evidence:
        """Return |w|^2 / (2 C N) of every machine and the margins; for LinearSVC only."""
        machines = [model for model in self.models if type(model) is LinearSVC]
        if len(machines) + self.constant.sum() < len(self.models) or self.kind != "margin":
            return super().evidence(X, y, code, weights)
        if any(machine.class_weight is not None for machine in machines):
            raise ValueError(
                "the reliability of a machine needs its C: use LinearSVC without class_weight, and "
                "sample_weight in its place."
            )
        squares = np.einsum("ij,ij->j", self.coef, self.coef)
        bound = machines[0].C if machines else 1.0
        penalty = squares / (2.0 * bound * column_sizes(y, code, weights))
        return Evidence(penalty, self.scores(X), weights)

    def scores(self, X, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """Return the scores of every column; all entries are computed."""
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        margins = safe_sparse_dot(X, self.coef, dense_output=True) + self.intercept
        if self.kind == "margin":
            return margins
        # Zhang's estimate for the modified Huber loss; all others are logistic.
        return (np.clip(margins, -1.0, 1.0) + 1.0) / 2.0 if self.huber else expit(margins)
