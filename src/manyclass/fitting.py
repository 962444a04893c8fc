"""What all coupled classifiers share: the way from data to class probabilities.

One direction, plain arrays between the rooms: code, bank, out-of-sample scores,
calibration, combiner, temperature. This file only connects them.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state, get_tags, indexable
from sklearn.utils.validation import check_consistent_length, column_or_1d, has_fit_parameter

from manyclass import codes
from manyclass._lib.jobs import check_in_memory, check_n_jobs, kept_on_workers
from manyclass._lib.labels import check_targets
from manyclass._lib.messages import quoted
from manyclass._lib.restoring import unchanged_on_error
from manyclass._lib.rows import is_by_columns
from manyclass._lib.sklearn import check_any_rows, check_sample_weight
from manyclass._lib.weights import weights_in_use
from manyclass.banks import (
    CENTRED,
    LOG_ODDS,
    MARGIN,
    PROBABILITY,
    Bank,
    ScoreKind,
    fit_bank,
    is_kernel_machine,
    read_by_bank,
    response_kind,
    takes_any_rows,
)
from manyclass.banks.base import class_sizes, column_sizes
from manyclass.calibration import CALIBRATIONS
from manyclass.calibration.crossfitting import calibrate, left_out_probabilities
from manyclass.combiners.base import Combiner, own_copy
from manyclass.combiners.coupling.base import CouplingRule, warn_unconverged, warn_undetermined
from manyclass.predicting import MANY_COLUMNS, Predictions
from manyclass.scaling.temperature import FLOOR, fit_temperature, least_probabilities
from manyclass.scores.crossfit import (
    OutOfSample,
    complete_rows,
    enough_for_temperature,
    enough_rows,
)
from manyclass.scores.folds import fold_numbers, make_folds, warn_single
from manyclass.scores.leave_one_out import leave_one_out


class Plan(NamedTuple):
    """What is to be fitted, and on what."""

    kind: ScoreKind
    """What the binary models are asked for."""
    method: str | None
    """Name of the calibration, if any."""
    tempered: bool
    """Whether there is a temperature."""
    needs_scores: bool
    """Whether any of it needs out-of-sample scores."""


class CoupledBase(Predictions, ABC):
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
        """Return what goes to the estimator's ``fit`` and the splitter's ``split``.

        If there is more that :func:`fit_bank` is to know of the weights, it is in ``bank``.
        """

    @abstractmethod
    def _bank_options(self) -> dict[str, Any]:
        """Return further options for the bank."""

    def _fit_or_restore(self, X, y, sample_weight, fit_params, fit=None):
        """Fit; an error or an interrupt leaves the estimator as it was."""
        with unchanged_on_error(self):
            return (fit or self._fit)(X, y, sample_weight, fit_params)

    def _fit(self, X, y, sample_weight, fit_params):
        X, y, classes = self._check_input(X, y)
        combiner, code, seeds = self._begin(len(classes))
        estimator = self._base_estimator()
        plan = self._plan(combiner, len(classes))
        weights = check_sample_weight(sample_weight, X)
        given = None if sample_weight is None else weights
        routed = self._route(estimator, classes[y], given, fit_params)
        # Where the machines weigh the classes, so do the probabilities.
        weights, fit_params = weights_in_use(routed.estimator.fit, X, weights)
        folds = None
        if plan.needs_scores:
            folds = self._make_folds(X, y, classes, routed.splitter.split, weights > 0)
        read = read_by_bank(estimator, X, plan.kind, fit_params)
        options = dict(self._bank_options(), **routed.get("bank", {}))

        def fit_part(rows=None, columns=None) -> Bank:
            return fit_bank(
                estimator,
                read,
                y,
                code if columns is None else code[:, columns],
                plan.kind,
                rows=rows,
                fit_params=fit_params,
                seeds=seeds if seeds is None or columns is None else seeds[columns],
                n_jobs=self.n_jobs,
                borrow=True,
                **options,
            )

        self.__dict__.pop("stream_", None)  # of partial_fit
        self.classes_, self.code_, self.combiner_ = classes, code, combiner
        self.class_totals_ = class_sizes(y, len(classes), weights)
        self.weights_ = np.maximum(column_sizes(y, code, weights), FLOOR)
        self.calibration_, self.reliability_ = None, None
        self.temperature_, self.least_proba_ = 1.0, np.zeros(len(classes))
        measure = combiner.measure()
        rows, rows_weights = self._rows_to_score(y, weights)
        evidence: Any = None
        scores: NDArray[np.float64] | OutOfSample | None = None
        with kept_on_workers(read, y, code, *fit_params.values()):  # for all columns and folds
            self.bank_: Any = fit_part()
            if measure is not None:  # before folds are fitted: not all machines have it
                evidence = self.bank_.evidence(read, y, code, weights)
            if plan.needs_scores:
                enough = self._enough_left_out(plan)
                scores = self._out_of_sample(fit_part, read, y, folds, weights, rows, enough)
        if isinstance(scores, OutOfSample):
            needed = plan.method is not None or combiner.learns
            scores.check_sides(
                weights, classes, needed=needed, tempered=plan.tempered, stacklevel=5
            )
        if measure is not None:
            known = scores.dense() if isinstance(scores, OutOfSample) else scores
            self.reliability_ = measure.fit(X, y, code, evidence, known)
        if scores is not None:
            numbers = None if folds is None else fold_numbers(folds, len(y))
            self._fit_on_scores(
                scores, y[rows], rows_weights, plan.method, plan.tempered, numbers=numbers
            )
            if plan.tempered:
                counts = np.bincount(y[weights > 0], minlength=len(classes))
                self.least_proba_ = least_probabilities(counts, self.class_totals_)
        self.bank_.own_rows()
        return self

    def _begin(self, k: int) -> tuple[Combiner, NDArray[np.int8], NDArray[np.int64] | None]:
        """Return the combiner, the code, and a seed for each column."""
        rng = check_random_state(self.random_state)
        combiner = own_copy(self.combiner)
        code = self._make_code(k, combiner, rng)
        seeds = rng.randint(2**31 - 1, size=code.shape[1])
        return combiner, code, None if self.random_state is None else seeds

    def _plan(self, combiner: Combiner, k: int) -> Plan:
        """Return what is to be fitted."""
        if not isinstance(self.temperature, bool | np.bool_):
            raise ValueError(f"temperature must be True or False, got {quoted(self.temperature)}.")
        check_n_jobs(self.n_jobs)
        kind, method = self._plan_calibration(self._base_estimator(), combiner)
        # A combiner that learns from the same scores has its temperature in its weights.
        tempered = (
            self.temperature and combiner.gives_probabilities and not combiner.learns and k > 2
        )
        needs_scores = self.cv is not None and (method is not None or tempered or combiner.learns)
        return Plan(kind, method, bool(tempered), bool(needs_scores))

    def _rows_to_score(self, y, weights):
        """Return the rows to learn from out of sample, and their weights.

        All of them where folds are fitted anyway, or where reliabilities are to be known.
        """
        if isinstance(self.cv, str) and self.combiner_.measure() is None:
            return enough_rows(y, weights)
        return np.arange(len(y)), weights

    def _make_folds(self, X, y, classes, split_params, used):
        """Return the folds; none yet for leave-one-out."""
        if not isinstance(self.cv, str):
            return make_folds(self.cv, X, y, classes, split_params, used=used)
        if self.cv != "loo":
            raise ValueError(
                f"cv must be 'loo', a number, a splitter, splits or None, got {quoted(self.cv)}."
            )
        warn_single(y, classes, stacklevel=6)
        return None

    def _out_of_sample(
        self, fit_part, X, y, folds, weights, rows, enough
    ) -> NDArray[np.float64] | OutOfSample:
        """Return out-of-sample scores of the rows, from a closed form if asked for."""
        if not isinstance(self.cv, str):
            return OutOfSample(self.bank_, fit_part, X, y, self.code_, folds, enough)
        scores, remark = leave_one_out(self.bank_, fit_part, X, y, self.code_, weights, rows)
        if remark is not None:
            warnings.warn(remark, UserWarning, stacklevel=5)
        return scores

    def _enough_left_out(self, plan: Plan) -> int | None:
        """Return how many rows have to be left out; None for all.

        Folds of many thousand columns for the temperature alone: some of them will do.
        """
        only_tempered = plan.method is None and not self.combiner_.learns
        thrifty = self.code_.shape[1] > MANY_COLUMNS and isinstance(self.cv, Integral)
        return enough_for_temperature(*self.code_.shape) if only_tempered and thrifty else None

    def _fit_on_scores(
        self,
        scores,
        y,
        weights,
        method: str | None,
        tempered: bool,
        sides=None,
        numbers: NDArray[np.intp] | None = None,
    ) -> None:
        """Fit calibration, combiner and temperature on out-of-sample scores.

        ``sides`` are those of the samples in the columns, where some are to be left out;
        ``numbers`` those of the folds that the scores come from, if each has one.
        """
        if method is not None:
            self.calibration_ = calibrate(method, scores, y, self.code_, weights, sides)
        rows = complete_rows(scores)
        if self.combiner_.learns and self.reliability_ is None:
            known = {}
            if numbers is not None and has_fit_parameter(self.combiner_, "folds"):
                known["folds"] = numbers[rows]
            self.combiner_.fit(scores[rows], y[rows], self.code_, weights[rows], **known)
        if tempered and len(rows):
            enough = enough_for_temperature(*self.code_.shape)
            if len(rows) > enough:
                rows = np.random.default_rng(0).choice(rows, enough, replace=False)
            blocks = left_out_probabilities(
                self.calibration_,
                method if sides is None else None,
                scores,
                y,
                self.code_,
                weights,
                rows,
                numbers,
            )
            rows, p, converged = self._combine_blocks(blocks)
            warn_unconverged(self.combiner_, converged)
            self.temperature_ = fit_temperature(p, y[rows], weights[rows])

    def _combine_blocks(self, blocks):
        """Return the rows of all blocks, their probabilities, and which have converged."""
        parts = []
        for rows, r in blocks:
            combined = self._combine(r)
            parts.append((rows, combined.values, combined.converged))
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def _check_input(self, X, y):
        """Return X, the class indices and the classes."""
        # A full conversion of what is stored by columns would be one copy more.
        X, y = self._check_samples(X, y, reset=True, sparse=("csr", "csc"))
        classes, indices = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {quoted(classes[0])}: there is nothing to tell apart. Pass "
                "samples of at least two classes."
            )
        return X, indices, classes

    def _check_samples(self, X, y, reset: bool, sparse: tuple[str, ...] = ("csr",)):
        """Return X and y, which are of one length and not of many dimensions."""
        check_in_memory(X)
        check_targets(y)
        any_rows = self._takes_any_rows()
        X = check_any_rows(self, X, reset=reset, sparse=sparse, of_any_shape=any_rows)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return (X, y) if is_by_columns(X) else indexable(X, y)  # which would convert it

    def _takes_any_rows(self) -> bool:
        return takes_any_rows(self._base_estimator())

    def _make_code(self, k: int, combiner: Combiner, rng) -> NDArray[np.int8]:
        if isinstance(self.code, str):
            # All codes pose the same single problem when there are two classes.
            name = "one-vs-one" if k == 2 and self.code in codes.NAMES else self.code
            code = codes.by_name(name, k, random_state=rng)
        else:
            matrix = self.code(k) if callable(self.code) else self.code
            code = codes.check_code(matrix, n_classes=k)
        combiner.check_code(code)
        if isinstance(combiner, CouplingRule) and not codes.is_identifiable(code):
            combiner.check_identifiable(code)
            warn_undetermined(code, combiner)
        return code

    def _plan_calibration(self, estimator, combiner: Combiner) -> tuple[ScoreKind, str | None]:
        """Return the kind of scores to ask for and the name of the calibration, if any."""
        if self.calibration not in ("auto", None, *CALIBRATIONS):
            raise ValueError(
                f"calibration must be 'auto', None or one of {sorted(CALIBRATIONS)}, got "
                f"{quoted(self.calibration)}."
            )
        if combiner.learns and self.cv is None:
            raise ValueError(
                f"combiner {combiner.key!r} learns from out-of-sample scores, but cv=None. "
                "Use cv=5."
            )
        if combiner.takes == "scores":
            return response_kind(estimator, (MARGIN, CENTRED)), None
        if self.calibration in CALIBRATIONS:
            kind = response_kind(estimator, (MARGIN, LOG_ODDS))
            method: str | None = self.calibration
        else:
            margins_first = is_kernel_machine(estimator) and self.calibration == "auto"
            kinds = (PROBABILITY, MARGIN)
            kind = response_kind(estimator, kinds[::-1] if margins_first else kinds)
            method = "sigmoid" if kind == MARGIN and self.calibration == "auto" else None
        if kind == PROBABILITY or (method is not None and self.cv is not None):
            return kind, method
        remedy = "Use calibration='sigmoid' with cv=5"
        if hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"calibration={quoted(self.calibration)} is fitted on folds, but cv=None. "
                f"{remedy}, or calibration=None to take predict_proba as it is."
            )
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba, so the combiner {combiner.key!r} "
            f"needs calibrated scores, but calibration={quoted(self.calibration)} and "
            f"cv={quoted(self.cv)}. {remedy}, an estimator with predict_proba, or a label "
            "decoder such as combiner='max-wins'."
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        base = get_tags(self._base_estimator())
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        tags.input_tags.categorical = base.input_tags.categorical
        tags.input_tags.pairwise = base.input_tags.pairwise
        return tags
