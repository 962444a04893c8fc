"""Prediction, shared by all coupled classifiers: from rows to class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from manyclass._lib.arrays import Code, Floats
from manyclass._lib.jobs import check_in_memory
from manyclass._lib.rows import blocks_of_rows
from manyclass._lib.sklearn import check_any_rows, n_samples
from manyclass.banks import takes_any_rows
from manyclass.calibration import Calibration
from manyclass.combiners.base import Combination, Combiner, resolve_for
from manyclass.combiners.coupling.base import couple_blocks, read_columns, warn_unconverged
from manyclass.scaling import Scaling
from manyclass.scaling.given import normalised
from manyclass.scaling.rare import raise_to
from manyclass.scores.out_of_sample import check_no_nan


@dataclass(frozen=True)
class RowBlocks:
    """How many rows to predict at a time.

    ``entries`` scores are held at a time: 2 MB. With more than ``many_columns`` columns, blocks
    have up to ``rows`` rows or ``many_entries`` scores, 32 MB.
    """

    entries: int = 2**18
    many_columns: int = 2000
    rows: int = 128
    many_entries: int = 2**22

    def size(self, n_columns: int) -> int:
        """Return the number of rows of a block."""
        rows = max(1, self.entries // n_columns)
        if n_columns > self.many_columns:
            rows = max(rows, min(self.rows, self.many_entries // n_columns))
        return rows


def _combiner_of(self) -> Combiner:
    return self.combiner_ if hasattr(self, "combiner_") else resolve_for(self.combiner)


def _gives_probabilities(self) -> bool:
    return _combiner_of(self).gives_probabilities


def _couples(self) -> bool:
    return _gives_probabilities(self) and _combiner_of(self).takes == "probabilities"


class Predictions(ClassifierMixin, BaseEstimator):
    """Applies scores, calibration, combiner and scaling to one block of rows at a time.

    Subclasses fit them.
    """

    _row_blocks: ClassVar[RowBlocks] = RowBlocks()

    classes_: NDArray
    code_: Code
    bank_: Any
    calibration_: Calibration | None
    combiner_: Combiner
    weights_: Floats
    scaling_: Scaling | None
    native_: Any
    least_proba_: Floats
    reliability_: Any
    n_jobs: int | None
    _base_estimator: Callable[[], Any]

    def predict(self, X):
        """Return the most probable class of each row (decoders: the class with the highest score).

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
        """Return the share of correct labels.

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
        # Labels of types that scikit-learn's metrics do not support.
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
        """Return class scores: log-probabilities, or the scores of the decoder.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k), or (n,) for two classes
            For two classes, the score of the second minus that of the first.
        """
        values = self._class_values(X)
        if self.combiner_.gives_probabilities:
            smallest = np.finfo(np.float64).smallest_subnormal
            np.log(np.maximum(values, smallest, out=values), out=values)
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
            probabilities and those implied by the coupled ones; 0 if they agree.
        """

        def of_block(values, rows):
            read, fitted = read_columns(values), (self.code_, self.weights_, self.n_jobs)
            coupled = couple_blocks(
                self.combiner_, read, len(values), *fitted, with_incoherence=True
            )
            return coupled.incoherence[:, None]

        return self._by_blocks(X, of_block, 1)[:, 0]

    def _before_predicting(self) -> None:
        """Raise or warn if predictions are not final."""

    def _class_values(self, X, only_winner: bool = False) -> Floats:
        """Return the class values of the combiner, or only the index of the highest."""
        check_is_fitted(self)
        self._before_predicting()
        converged = [np.ones(0, dtype=np.bool_)]

        def of_block(values, rows):
            combined = self._combine(values, rows)
            converged.append(combined.converged)
            answer = raise_to(self._scale(combined.values, values, rows), self.least_proba_)
            return answer.argmax(axis=1)[:, None] if only_winner else answer

        answer = self._by_blocks(X, of_block, 1 if only_winner else len(self.classes_))
        warn_unconverged(self.combiner_, np.concatenate(converged))
        return answer

    def _by_blocks(
        self, X, of_block: Callable[[NDArray, Any], NDArray], width: int, *, calibrated: bool = True
    ) -> Floats:
        """Score, calibrate and combine a block of rows at a time."""
        check_is_fitted(self)
        check_in_memory(X, len(self.classes_))
        if getattr(X, "ndim", 0) == 2 and X.shape[0] == 0:  # possible for parts of large data
            validate_data(self, X, reset=False, skip_check_array=True)
            return np.empty((0, width))
        any_rows = takes_any_rows(self._base_estimator())
        X = check_any_rows(self, X, reset=False, sparse=("csr", "csc"), of_any_shape=any_rows)
        out = np.empty((n_samples(X), width))
        scores_of = self.bank_.scorer()
        for place, block in blocks_of_rows(X, self._row_blocks.size(self.code_.shape[1])):
            values = scores_of(block)
            check_no_nan(values, np.arange(place.start, place.stop))
            if calibrated and self.calibration_ is not None:
                self.calibration_.transform(values, out=values)
            out[place] = of_block(values, block)
        return out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "bank_")

    def _combine(self, values: Floats, rows=None) -> Combination:
        """Combine values of the given rows of X."""
        weights = self.weights_ if self.reliability_ is None else self.reliability_.of(rows, values)
        return self.combiner_.combine(values, self.code_, weights, n_jobs=self.n_jobs)

    def _scale(self, p: Floats, values: Floats, rows) -> Floats:
        """Scale coupled probabilities; ``values`` are those of the columns for the same rows."""
        if self.scaling_ is None:
            return p
        others = [] if self.native_ is None else [normalised(self.native_.scores(rows))]
        return self.scaling_.scale(p, columns=values, others=others)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted binary models, one per column."""
        check_is_fitted(self, "bank_")
        return self.bank_.models
