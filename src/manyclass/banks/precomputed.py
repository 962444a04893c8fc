"""Kernel and distance matrices for any learner: rows and columns of a square matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.rows import take_part


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
