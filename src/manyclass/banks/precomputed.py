"""Kernel and distance matrices for any learner: rows and columns of a square matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from manyclass._lib.rows import take_rows
from manyclass._lib.sklearn import n_samples


def _has(method: str) -> Callable[[PairwiseModel], bool]:
    return lambda self: hasattr(self.estimator, method)


class PairwiseModel(ClassifierMixin, BaseEstimator):
    """A model of a kernel or distance matrix, asked with the matrix of all training samples.

    Parameters
    ----------
    estimator : fitted binary classifier
        It knows the matrix between its own training samples.
    rows : int array
        Which of all training samples these are: the columns of the matrix that it is asked with.
    """

    def __init__(self, estimator, rows: NDArray[np.intp]):
        self.estimator = estimator
        self.rows = rows

    @property
    def classes_(self) -> NDArray[np.int64]:
        """The negative and the positive side."""
        return self.estimator.classes_

    def cut(self, X, rows: NDArray[np.intp] | None = None):
        """Return the columns of X that the estimator knows, and of its rows those given."""
        return take_part(X, None, self.rows) if rows is None else copy_part(X, rows, self.rows)

    @available_if(_has("decision_function"))
    def decision_function(self, X) -> NDArray[np.float64]:
        """Return the margins of rows of the matrix."""
        return self.estimator.decision_function(self.cut(X))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X) -> NDArray[np.float64]:
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


def take_part(X, rows: NDArray[np.intp] | None, columns: NDArray[np.intp] | None):
    """Return rows and columns of X, all where ``None``; an array is copied once, if at all."""
    if columns is not None and is_everything(columns, X.shape[1]):
        columns = None
    if rows is None:
        return X if columns is None else take_rows(X, columns, axis=1)
    if columns is None:
        return take_rows(X, rows)
    if isinstance(X, np.ndarray):
        return X[np.ix_(rows, columns)]
    return take_rows(take_rows(X, rows), columns, axis=1)


def copy_part(X, rows: NDArray[np.intp], columns: NDArray[np.intp] | None = None):
    """Return rows and columns of X that may be written to without changing X.

    Of a frame, all rows come as a copy that is not made before it is written to. Learners write
    to the memory below, so that it never would be.
    """
    if hasattr(X, "iloc") and is_everything(rows, n_samples(X)):
        return take_part(X, None, columns).copy()
    return take_part(X, rows, columns)


def is_everything(places: NDArray[np.intp], n: int) -> bool:
    """Tell whether these are all n places, in order."""
    return len(places) == n and bool((places == np.arange(n)).all())


def part_of(X, rows: NDArray[np.intp], square: bool = False):
    """Rows of X, of a square kernel matrix also its columns; X itself if that is all of it."""
    if is_everything(rows, n_samples(X)):
        return X
    return X[np.ix_(rows, rows)] if square else rows_at(X, rows)


def rows_at(X, places: NDArray[np.intp]):
    """Return rows of whatever type; without scikit-learn's detours where there is no need."""
    return X[places] if isinstance(X, np.ndarray) or issparse(X) else take_rows(X, places)


def slice_rows(X, part: slice):
    """Return consecutive rows of whatever type."""
    return X.iloc[part] if hasattr(X, "iloc") else X[part]
