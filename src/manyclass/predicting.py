"""Prediction, shared by all coupled classifiers: from rows to class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from manyclass._lib.arrays import Code, Floats, Places, read_only
from manyclass._lib.compiled.best_first import best_leaves
from manyclass._lib.documentation import LinkedEstimator
from manyclass._lib.jobs import check_in_memory
from manyclass._lib.messages import quoted, refused
from manyclass._lib.rows import blocks_of_rows
from manyclass._lib.sklearn import check_any_rows, is_as_fitted, n_samples
from manyclass.banks import MARGIN, LinearBank, takes_any_rows
from manyclass.calibration import Calibration, Unchanged
from manyclass.calibration.native_evidence import sources
from manyclass.codes.checks import check_integer
from manyclass.codes.hierarchy import Hierarchy
from manyclass.combiners.base import Combination, Combiner, resolve_for
from manyclass.combiners.coupling.base import couple_blocks, read_columns, warn_unconverged
from manyclass.combiners.coupling.kernels.transposed import LOWEST
from manyclass.scaling import Scaling
from manyclass.scaling.lower_bounds import raise_to
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


def _has_hierarchy(self) -> bool:
    return isinstance(self.code, Hierarchy) and _gives_probabilities(self)


class Predictions(LinkedEstimator, ClassifierMixin, BaseEstimator):
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
    tree_: tuple[int, NDArray[np.int64]] | None = None
    """The nodes of the code, if it is a single class tree; see ``single_tree``."""
    native_: Any
    native_calibration_: Any
    least_proba_: Floats
    reliability_: Any
    pairwise_indices_: list[Places] | None
    code: Any
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
        winners = self._class_values(X, lambda p: p.argmax(axis=1)[:, None], 1)[:, 0]
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

    def __getattr__(self, name: str) -> Any:
        # Python asks here after ``available_if`` or a property has refused, and drops the reason.
        of_nodes = name in ("predict_proba_nodes", "predict_nodes")
        if of_nodes and not isinstance(self.code, Hierarchy):
            raise AttributeError(f"{name} needs a hierarchy of the classes: code=Hierarchy(...).")
        if not of_nodes and name not in ("predict_proba", "predict_log_proba", "predict_top"):
            return refused(self, name)
        try:
            _combiner_of(self)
        except Exception as error:
            raise AttributeError(str(error)) from error
        raise AttributeError(
            f"combiner={quoted(self.combiner)} gives labels only, and no {name}. Choose a coupling "
            "rule: combiner='auto' is 'wlw2' for one-vs-one, and 'kl' for other codes."
        )

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
    def predict_top(self, X, m: int = 5):
        """Return the most probable classes of each row, and their probabilities.

        No array of all class probabilities is made. For a single class tree of logistic
        regressions, without calibration and scaling, models are only asked along paths that may
        lead to one of the ``m`` classes: time grows like log k, unless X is sparse.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        m : int, default=5
            Number of classes. All, if there are fewer.

        Returns
        -------
        classes : ndarray of shape (n, m)
            Labels, the most probable first.
        p : ndarray of shape (n, m)
            Their probabilities.
        """
        self._check_fitted()
        m = min(check_integer("m", m, 1), len(self.classes_))
        if not issparse(X) and n_samples(X) and self._is_logistic_tree():
            return self._top_along_paths(X, m)

        def top(p):
            best = np.argsort(-p, axis=1, kind="stable")[:, :m]
            return np.hstack([best, np.take_along_axis(p, best, axis=1)])

        both = self._class_values(X, top, 2 * m)
        return self.classes_[both[:, :m].astype(np.intp)], both[:, m:]

    @available_if(_has_hierarchy)
    def predict_proba_nodes(self, X):
        """Return probabilities of all nodes, if the code is a :class:`~manyclass.codes.Hierarchy`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, m)
            Columns in the order of ``code.node_names``.
        """
        return self.code.node_probabilities(self.predict_proba(X))

    @available_if(_has_hierarchy)
    def predict_nodes(self, X, confidence: float = 0.5):
        """Return the most specific node of each row that is probable enough.

        Only if the code is a :class:`~manyclass.codes.Hierarchy`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        confidence : float, default=0.5
            See :meth:`Hierarchy.decide <manyclass.codes.Hierarchy.decide>`.

        Returns
        -------
        ndarray of shape (n,)
            Names of nodes.
        """
        return self.code.decide(self.predict_proba(X), confidence)

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

    def _is_logistic_tree(self) -> bool:
        """Tell whether p is the product of logistic functions along the paths of ``tree_``."""
        bank, plain = self.bank_, self.calibration_ is None or type(self.calibration_) is Unchanged
        logistic = type(bank) is LinearBank and bank.kind != MARGIN and not bank.huber
        return plain and logistic and self.scaling_ is None and self.tree_ is not None

    def _top_along_paths(self, X: Floats, m: int) -> tuple[NDArray, Floats]:
        """Return what :meth:`predict_top` does, by best-first search."""
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        self._before_predicting()
        tree: Any = self.tree_
        coef = np.ascontiguousarray(self.bank_.coef.T)
        leaves, p = np.empty((len(X), m), dtype=np.intp), np.empty((len(X), m))
        best_leaves(X, coef, self.bank_.intercept, *tree, LOWEST, leaves, p)
        return self.classes_[leaves], p

    def _class_values(
        self, X, shorten: Callable[[Floats], NDArray] | None = None, width: int | None = None
    ) -> Floats:
        """Return the class values of the combiner, or what ``shorten`` makes of each block."""
        self._check_fitted()
        self._before_predicting()
        converged = [np.ones(0, dtype=np.bool_)]

        def of_block(values, rows):
            combined = self._combine(values, rows)
            converged.append(combined.converged)
            answer = raise_to(self._scale(combined.values, values, rows), self.least_proba_)
            return answer if shorten is None else shorten(answer)

        answer = self._by_blocks(X, of_block, width or len(self.classes_))
        warn_unconverged(self.combiner_, np.concatenate(converged))
        return answer

    def _by_blocks(
        self, X, of_block: Callable[[NDArray, Any], NDArray], width: int, *, calibrated: bool = True
    ) -> Floats:
        """Score, calibrate and combine a block of rows at a time."""
        self._check_fitted()
        if not is_as_fitted(self, X):
            check_in_memory(X, len(self.classes_))
            if getattr(X, "ndim", 0) >= 2 and X.shape[0] == 0:  # possible for parts of large data
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

    def _check_fitted(self) -> None:
        """Raise if this is not fitted. scikit-learn's check takes as long as scoring a row."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)

    def _combine(self, values: Floats, rows=None) -> Combination:
        """Combine values of the given rows of X."""
        weights = self.weights_ if self.reliability_ is None else self.reliability_.of(rows, values)
        return self.combiner_.combine(values, self.code_, weights, n_jobs=self.n_jobs)

    def _scale(self, p: Floats, values: Floats, rows) -> Floats:
        """Scale coupled probabilities; ``values`` are those of the columns for the same rows."""
        if self.scaling_ is None:
            return p
        if self.native_ is None:
            return self.scaling_.scale(p, columns=values)
        scores = self.native_.scores(rows)
        against_rest = self.native_calibration_.transform(scores.copy())
        return self.scaling_.scale(p, **sources(values, self.native_.kind, scores, against_rest))

    # ------------------------------------------------------- attributes of scikit-learn's classes

    @property
    def estimators_(self) -> list[Any]:
        """The fitted binary models, one per column."""
        check_is_fitted(self, "bank_")
        return self.bank_.models_of(self._base_estimator())

    @property
    def n_classes_(self) -> int:
        """Number k of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    @property
    def code_book_(self) -> Code:
        """The code matrix ``code_``, by the name of OutputCodeClassifier; read-only."""
        check_is_fitted(self)
        return read_only(self.code_.view())
