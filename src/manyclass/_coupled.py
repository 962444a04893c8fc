"""What all coupled classifiers share: the way from data to class probabilities.

One direction, plain arrays between the rooms: code, bank, out-of-sample scores,
calibration, combiner, temperature. This file only connects them.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Bunch, check_random_state, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from manyclass import codes
from manyclass._sklearn import (
    check_any_rows,
    check_sample_weight,
    n_samples,
    take_rows,
)
from manyclass.banks import Kind, Untrusted, fit_bank, is_kernel_machine, response_kind
from manyclass.banks.generic import column_sizes
from manyclass.calibration import CALIBRATIONS, FLOOR, apply_temperature, fit_temperature
from manyclass.combining import Combination, Combiner, resolve
from manyclass.coupling.base import couple_blocks, read_columns, warn_unconverged
from manyclass.crossfit import (
    check_no_nan,
    enough_rows,
    make_folds,
    out_of_sample_scores,
    warn_single,
)
from manyclass.ties import as_seed

BLOCK_ENTRIES = 2**18  # scores held at a time when predicting: 2 MB
TINY = np.finfo(np.float64).smallest_subnormal
ENOUGH_ROWS = 5000  # to fit one number, the temperature
FALLBACK = 5  # folds in place of a leave-one-out that cannot be trusted


def _gives_probabilities(self) -> bool:
    combiner = self.combiner_ if hasattr(self, "combiner_") else resolve(self.combiner)
    return combiner.gives_probabilities


def _couples(self) -> bool:
    combiner = self.combiner_ if hasattr(self, "combiner_") else resolve(self.combiner)
    return combiner.gives_probabilities and combiner.takes == "probabilities"


class CoupledBase(ClassifierMixin, BaseEstimator, ABC):
    """Base of the coupled classifiers.

    Subclasses have the parameters ``code``, ``combiner``, ``calibration``, ``cv``,
    ``temperature``, ``n_jobs`` and ``random_state``, and say which binary
    classifier to use.
    """

    @abstractmethod
    def _base_estimator(self):
        """Return the unfitted binary classifier."""

    @abstractmethod
    def _route(self, estimator, labels, sample_weight, fit_params) -> Bunch:
        """Return what goes to the estimator's ``fit`` and the splitter's ``split``."""

    @abstractmethod
    def _bank_options(self) -> dict[str, Any]:
        """Return further options for the bank."""

    # ------------------------------------------------------------------ fit

    def _fit_or_restore(self, X, y, sample_weight, fit_params):
        """Fit; an error or an interrupt leaves the estimator as it was."""
        before = self.__dict__.copy()
        try:
            return self._fit(X, y, sample_weight, fit_params)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _fit(self, X, y, sample_weight, fit_params):
        X, y, classes = self._check_input(X, y)
        rng = check_random_state(self.random_state)
        combiner = clone(resolve(self.combiner))
        if hasattr(combiner, "random_state"):  # ties are broken the same way at every call
            combiner.random_state = as_seed(combiner.random_state)
        code = self._make_code(len(classes), combiner, rng)
        estimator = self._base_estimator()
        kind, method = self._plan_calibration(estimator, combiner)
        weights = check_sample_weight(sample_weight, X)
        given = None if sample_weight is None else weights
        routed = self._route(estimator, classes[y], given, fit_params)
        fit_params = routed.estimator.fit
        # Where the machines weigh the classes, so do the probabilities.
        weights = fit_params.get("sample_weight", weights)
        # A combiner that learns from the same scores has its temperature in its weights.
        tempered = (
            self.temperature
            and combiner.gives_probabilities
            and not combiner.learns
            and len(classes) > 2
        )
        needs_scores = self.cv is not None and (method is not None or tempered or combiner.learns)
        folds = self._make_folds(X, y, classes, routed.splitter.split) if needs_scores else None
        seeds = rng.randint(2**31 - 1, size=code.shape[1])
        fit_rows = partial(
            fit_bank,
            estimator,
            X,
            y,
            code,
            kind,
            fit_params=fit_params,
            seeds=None if self.random_state is None else seeds,
            n_jobs=self.n_jobs,
            **self._bank_options(),
        )
        self.classes_, self.code_, self.combiner_ = classes, code, combiner
        self.weights_ = np.maximum(column_sizes(y, code, weights), FLOOR)
        self.bank_: Any = fit_rows()
        self.calibration_, self.temperature_, self.reliability_ = None, 1.0, None
        measure = combiner.measure()
        # Before folds are fitted: not all machines have it.
        evidence = None if measure is None else self.bank_.evidence(X, y, code, weights)
        rows, rows_weights = self._rows_to_score(y, weights)
        scores = self._out_of_sample(fit_rows, X, y, folds, weights, rows) if needs_scores else None
        if measure is not None:
            self.reliability_ = measure.fit(X, y, code, evidence, scores)
        if scores is not None:
            self._fit_on_scores(scores, y[rows], rows_weights, method, tempered)
        return self

    def _rows_to_score(self, y, weights):
        """Return the rows to learn from out of sample, and their weights.

        All of them where folds are fitted anyway, or where reliabilities are to be known.
        """
        if isinstance(self.cv, str) and self.combiner_.measure() is None:
            return enough_rows(y, weights)
        return np.arange(len(y)), weights

    def _make_folds(self, X, y, classes, split_params):
        """Return the folds; none yet for leave-one-out."""
        if not isinstance(self.cv, str):
            return make_folds(self.cv, X, y, classes, split_params)
        if self.cv != "loo":
            raise ValueError(
                f"cv must be 'loo', a number, a splitter, splits or None, got {self.cv!r}."
            )
        warn_single(y, classes, stacklevel=6)
        return None

    def _out_of_sample(self, fit_rows, X, y, folds, weights, rows) -> NDArray[np.float64]:
        """Return out-of-sample scores of the rows, from a closed form if asked for.

        Otherwise, or where it is not to be trusted, from folds.
        """
        if isinstance(self.cv, str):
            try:
                return self.bank_.leave_one_out(X, y, self.code_, weights, rows)
            except Untrusted as reason:
                warnings.warn(
                    f"analytic leave-one-out is not used: {reason}. {FALLBACK} folds are fitted "
                    f"instead; cv={FALLBACK} does so without this warning.",
                    UserWarning,
                    stacklevel=5,
                )
                folds = make_folds(FALLBACK, X, y, self.classes_, warn=False)
        return out_of_sample_scores(
            self.bank_, lambda train: fit_rows(rows=train), X, y, self.code_, folds
        )[rows]

    def _fit_on_scores(self, scores, y, weights, method: str | None, tempered: bool) -> None:
        """Fit calibration, combiner and temperature on out-of-sample scores."""
        if method is not None:
            self.calibration_ = CALIBRATIONS[method]().fit(scores, self.code_[y], weights)
        rows = np.flatnonzero(~np.isnan(scores).any(axis=1))
        if self.combiner_.learns and self.reliability_ is None:
            self.combiner_.fit(scores[rows], y[rows], self.code_, weights[rows])
        if tempered:
            if len(rows) > ENOUGH_ROWS:
                rows = np.random.default_rng(0).choice(rows, ENOUGH_ROWS, replace=False)
            values = scores[rows]
            if self.calibration_ is not None:
                self.calibration_.transform(values, out=values)
            p, _, converged = self._combine(values)
            warn_unconverged(self.combiner_, converged, stacklevel=6)
            self.temperature_ = fit_temperature(p, y[rows], weights[rows])

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

    def _check_input(self, X, y):
        """Return X, the class indices and the classes."""
        check_classification_targets(y)
        X, y = indexable(check_any_rows(self, X, reset=True), column_or_1d(y, warn=True))
        classes, indices = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {classes[0]}: there is nothing to tell apart. Pass samples "
                "of at least two classes."
            )
        return X, indices, classes

    def _make_code(self, k: int, combiner: Combiner, rng) -> NDArray[np.int8]:
        if isinstance(self.code, str):
            # All codes pose the same single problem when there are two classes.
            name = "one-vs-one" if k == 2 and self.code in codes.NAMES else self.code
            code = codes.by_name(name, k, random_state=rng)
        else:
            matrix = self.code(k) if callable(self.code) else self.code
            code = codes.check_code(matrix, n_classes=k)
        combiner.check_code(code)
        if combiner.gives_probabilities:
            codes.check_identifiable(code)
        return code

    def _plan_calibration(self, estimator, combiner: Combiner) -> tuple[Kind, str | None]:
        """Return the kind of scores to ask for and the name of the calibration, if any."""
        if self.calibration not in ("auto", None, *CALIBRATIONS):
            raise ValueError(
                f"calibration must be 'auto', None or one of {sorted(CALIBRATIONS)}, got "
                f"{self.calibration!r}."
            )
        if combiner.learns and self.cv is None:
            raise ValueError(
                f"combiner {combiner.key!r} learns from out-of-sample scores, but cv=None. "
                "Use cv=5."
            )
        if combiner.takes == "scores":
            return response_kind(estimator, ("margin", "centred")), None
        if self.calibration in CALIBRATIONS:
            kind = response_kind(estimator, ("margin", "log-odds"))
            method: str | None = self.calibration
        else:
            margins_first = is_kernel_machine(estimator) and self.calibration == "auto"
            kinds: tuple[Kind, Kind] = ("probability", "margin")
            kind = response_kind(estimator, kinds[::-1] if margins_first else kinds)
            method = "sigmoid" if kind == "margin" and self.calibration == "auto" else None
        if kind == "probability" or (method is not None and self.cv is not None):
            return kind, method
        remedy = "Use calibration='sigmoid' with cv=5"
        if hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"calibration={self.calibration!r} is fitted on folds, but cv=None. {remedy}, or "
                "calibration=None to take predict_proba as it is."
            )
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, so the combiner {combiner.key!r} "
            f"needs calibrated scores, but calibration={self.calibration!r} and cv={self.cv!r}. "
            f"{remedy}, an estimator with predict_proba, or a label decoder such as "
            "combiner='max-wins'."
        )

    # ------------------------------------------------------------------ predict

    def predict(self, X):
        """Return the most probable class of each row (decoders: of the highest score).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        winners = self._class_values(X).argmax(axis=1)
        return self.classes_[winners]

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
            return np.log(self.predict_proba(X))

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
            values = np.log(np.maximum(values, TINY))
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

    def _class_values(self, X) -> NDArray[np.float64]:
        check_is_fitted(self)
        converged = []

        def of_block(values, rows):
            combined = self._combine(values, rows)
            converged.append(combined.converged)
            return apply_temperature(combined.values, self.temperature_)

        answer = self._by_blocks(X, of_block, len(self.classes_))
        warn_unconverged(self.combiner_, np.concatenate(converged), stacklevel=4)
        return answer

    def _by_blocks(
        self, X, of_block: Callable[[NDArray, Any], NDArray], width: int
    ) -> NDArray[np.float64]:
        """Score, calibrate and combine a block of rows at a time."""
        check_is_fitted(self)
        X = check_any_rows(self, X, reset=False)
        n, rows = n_samples(X), max(1, BLOCK_ENTRIES // self.code_.shape[1])
        if n == 0:
            raise ValueError("X has 0 sample(s): at least one row is needed.")
        out = np.empty((n, width))
        scores_of = self.bank_.scorer()
        for first in range(0, n, rows):
            last = min(first + rows, n)
            block = X if n <= rows else take_rows(X, slice(first, last))
            values = scores_of(block)
            check_no_nan(values, np.arange(first, last))
            if self.calibration_ is not None:
                self.calibration_.transform(values, out=values)
            out[first:last] = of_block(values, block)
        return out

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "bank_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        base = get_tags(self._base_estimator())
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.input_tags.categorical = base.input_tags.categorical
        tags.input_tags.pairwise = base.input_tags.pairwise
        return tags
