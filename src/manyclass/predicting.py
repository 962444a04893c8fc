"""What all fitted coupled classifiers share: the way from rows to class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from manyclass._lib.jobs import check_in_memory
from manyclass._lib.rows import blocks_of_rows
from manyclass._lib.sklearn import check_any_rows, n_samples
from manyclass.calibration import Calibration
from manyclass.combiners.base import Combination, Combiner, resolve
from manyclass.combiners.coupling.base import couple_blocks, read_columns, warn_unconverged
from manyclass.scaling.temperature import apply_temperature
from manyclass.scores.crossfit import check_no_nan

BLOCK_ENTRIES = 2**18  # scores held at a time: 2 MB
MANY_COLUMNS = 2000
ROWS, MANY_ENTRIES = 128, 2**22  # with so many, blocks are larger: up to 128 rows or 32 MB
TINY = np.finfo(np.float64).smallest_subnormal


def _combiner_of(self) -> Combiner:
    return self.combiner_ if hasattr(self, "combiner_") else resolve(self.combiner)


def _gives_probabilities(self) -> bool:
    return _combiner_of(self).gives_probabilities


def _couples(self) -> bool:
    combiner = _combiner_of(self)
    return combiner.gives_probabilities and combiner.takes == "probabilities"


class Predictions(ClassifierMixin, BaseEstimator):
    """Scores, calibration, combiner and temperature, a block of rows at a time.

    All of them are found by a subclass's ``fit``.
    """

    classes_: NDArray
    code_: NDArray[np.int8]
    bank_: Any
    calibration_: Calibration | None
    combiner_: Combiner
    weights_: NDArray[np.float64]
    temperature_: float
    least_proba_: NDArray[np.float64]
    reliability_: Any
    n_jobs: int | None

    def predict(self, X):
        """Return the most probable class of each row (decoders: of the highest score).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        winners = self._class_values(X, only_winner=True)[:, 0]
        return self.classes_[winners.astype(np.intp)]

    def score(self, X, y, sample_weight=None):
        """Return the share of labels that are right.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional
            Weights.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if self.classes_.dtype.kind not in "OS" or isinstance(self.classes_[0], str):
            return super().score(X, y, sample_weight)
        # Labels of types that scikit-learn's metrics do not know.
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    @available_if(_gives_probabilities)
    def predict_proba(self, X):
        """Return coupled class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
            Columns in the order of ``classes_``.
        """
        return self._class_values(X)

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X):
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
        """
        with np.errstate(divide="ignore"):
            p = self.predict_proba(X)
            return np.log(p, out=p)

    def decision_function(self, X):
        """Return class scores: log-probabilities, or what the decoder compares.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k), or (n,) for two classes
            For two classes the score of the second over the first.
        """
        values = self._class_values(X)
        if self.combiner_.gives_probabilities:
            np.log(np.maximum(values, TINY, out=values), out=values)
        return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values

    @available_if(_couples)
    def incoherence(self, X):
        """Return how far the binary models contradict each other on each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
            The weighted root-mean-square difference between the binary
            probabilities and those that the coupled ones imply; 0 where they agree.
        """

        def of_block(values, rows):
            return couple_blocks(
                self.combiner_,
                read_columns(values),
                len(values),
                self.code_,
                self.weights_,
                self.n_jobs,
                with_incoherence=True,
            ).incoherence[:, None]

        return self._by_blocks(X, of_block, 1)[:, 0]

    def _before_predicting(self) -> None:
        """Say what has to be known about the answer."""

    def _class_values(self, X, only_winner: bool = False) -> NDArray[np.float64]:
        """Return what the combiner says of each class, or the index of the highest alone."""
        check_is_fitted(self)
        self._before_predicting()
        converged = [np.ones(0, dtype=np.bool_)]

        def of_block(values, rows):
            combined = self._combine(values, rows)
            converged.append(combined.converged)
            answer = apply_temperature(combined.values, self.temperature_, self.least_proba_)
            return answer.argmax(axis=1)[:, None] if only_winner else answer

        answer = self._by_blocks(X, of_block, 1 if only_winner else len(self.classes_))
        warn_unconverged(self.combiner_, np.concatenate(converged))
        return answer

    def _by_blocks(
        self,
        X,
        of_block: Callable[[NDArray, Any], NDArray],
        width: int,
        *,
        calibrated: bool = True,
    ) -> NDArray[np.float64]:
        """Score, calibrate and combine a block of rows at a time."""
        check_is_fitted(self)
        check_in_memory(X, len(self.classes_))
        if getattr(X, "ndim", 0) == 2 and X.shape[0] == 0:  # as parts of large data may be
            validate_data(self, X, reset=False, skip_check_array=True)
            return np.empty((0, width))
        X = check_any_rows(
            self, X, reset=False, sparse=("csr", "csc"), of_any_shape=self._takes_any_rows()
        )
        n, n_columns = n_samples(X), self.code_.shape[1]
        rows = max(1, BLOCK_ENTRIES // n_columns)
        if n_columns > MANY_COLUMNS:
            rows = max(rows, min(ROWS, MANY_ENTRIES // n_columns))
        out = np.empty((n, width))
        scores_of = self.bank_.scorer()
        for place, block in blocks_of_rows(X, rows):
            values = scores_of(block)
            check_no_nan(values, np.arange(place.start, place.stop))
            if calibrated and self.calibration_ is not None:
                self.calibration_.transform(values, out=values)
            out[place] = of_block(values, block)
        return out

    def _takes_any_rows(self) -> bool:
        """Whether rows may be of any type and shape."""
        return False

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "bank_")

    def _combine(self, values: NDArray[np.float64], rows=None) -> Combination:
        """Combine values; ``rows`` are those of X that they belong to."""
        weights = self.weights_
        if self.reliability_ is not None:
            weights = self.reliability_.of(rows, values)
        return self.combiner_.combine(values, self.code_, weights, n_jobs=self.n_jobs)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted binary models, one per column."""
        check_is_fitted(self, "bank_")
        return self.bank_.models
