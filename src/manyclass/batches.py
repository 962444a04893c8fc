"""Learning from batches: partial_fit, calibrated by scores of rows before they are learned.

Every batch is scored before it is learned (progressive validation: A. Blum, A. Kalai and
J. Langford, "Beating the hold-out: bounds for k-fold and progressive cross-validation",
COLT 1999). These scores are out of sample, like those of folds. Calibration, scaling
and trained combiners are fitted on a bounded number of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.labels import check_labels
from manyclass._lib.messages import quoted, some_quoted, warn
from manyclass._lib.routing import RoutingMixin
from manyclass._lib.rows import take_rows
from manyclass._lib.sklearn import check_sample_weight, n_samples, routing_enabled
from manyclass._lib.weights import class_sizes, weights_in_use
from manyclass.banks import ConstantModel, ScoreKind
from manyclass.banks.partial_fit import bank_of, new_learners, sides_in, teach
from manyclass.calibration import Sigmoid
from manyclass.calibration.evidence import Evidence
from manyclass.calibration.fit_plan import Plan
from manyclass.codes.build import NATIVE, is_grouped
from manyclass.combiners.base import Combiner
from manyclass.predicting import Predictions
from manyclass.scores.out_of_sample import DenseScores, OutOfSampleScores
from manyclass.scores.reservoir import Reservoir

# Rows with scores in all columns that a scaling or a trained combiner needs. A choice: fewer
# rows make the first predictions final earlier, but noisier.
ENOUGH_ROWS = 50


@dataclass(frozen=True)
class Stream:
    """The state between two calls of partial_fit. It is immutable."""

    learners: list[Any]
    """One for each column, including those that have seen only one side."""
    seen: Flags
    """Whether each has learned from its negative and positive side, shape (2, l)."""
    reservoir: Reservoir
    fitted_at: int = 0
    """Number of rows that had been scored when the calibration was last fitted."""
    inherited: float = 0.0
    """Weight of the rows that ``fit`` saw, as long as its calibration is in use."""
    provisional: bool = False
    """Whether there were too few scores so far to fit everything that needs them."""


def _learns_in_batches(self) -> bool:
    native = isinstance(self.code, str) and self.code == NATIVE
    if native or is_grouped(self.code):
        return False
    return callable(self._base_estimator().partial_fit)  # or an error, which names the estimator


class PartialFitMixin(RoutingMixin, Predictions):
    """Adds ``partial_fit`` to a coupled classifier, if its estimator has it."""

    stream_: Stream
    class_totals_: Floats
    random_state: Any
    calibration: Any
    code: Any
    # Steps that the coupled classifier shares between fit and partial_fit.
    _fit_or_restore: Callable[..., Any]
    _check_samples: Callable[..., tuple[Any, NDArray]]
    _make_combiner_and_code: Callable[..., tuple[Combiner, Code, Any]]
    _plan: Callable[[Combiner, int], Plan]
    _bank_options: Callable[[], dict[str, Any]]
    _set_up: Callable[..., None]
    _set_totals: Callable[[Floats], None]
    _evidence: Callable[..., Evidence]
    _fit_combiner: Callable[..., None]
    _fit_calibration: Callable[..., None]
    _fit_scaling: Callable[..., None]

    @available_if(_learns_in_batches)
    def partial_fit(self, X, y, classes=None, sample_weight=None, **partial_fit_params):
        """Learn from a batch of samples.

        Only available if the estimator has ``partial_fit`` itself, and not for the codes
        "native" and "q-ary". The first call, or
        ``fit``, fixes the classes, the code, the combiner and the kind of scores that the
        binary models return; a ``calibration`` that needs other scores is then an error.
        ``partial_fit`` may be called after ``fit`` to continue learning; ``fit`` starts
        again. If an error is raised, the model does not change.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            A batch, in any form that the estimator accepts.
        y : array-like of shape (n,)
            Class labels. A batch may lack classes, or have only one.
        classes : array-like of shape (k,), optional
            All labels of all batches. Needed at the first call only.
        sample_weight : array-like of shape (n,), optional
            Weights: counts of samples, as in ``fit``. Rows of weight 0 are ignored. A batch
            without other rows changes nothing, except that the first batch fixes the classes.
        **partial_fit_params : dict
            Further arguments for the estimator's ``partial_fit``, by metadata routing
            if that is enabled.

        Returns
        -------
        self

        Notes
        -----
        Calibration, scaling and trained combiners need scores of rows that the models have not
        learned. Every batch but the first is scored before it is learned. Up to 400 rows of each
        class are kept with their scores, fewer if that is more than 64 MB, but at least 10. If a
        class is full, a new row replaces a random one, so that newer rows are more likely to be
        kept; and only the later half of the rows of a class is used. These scores still come from
        models that had learned less than the present ones: after few batches, probabilities are
        less confident than they should be. Do not pass the same rows twice: their scores would not
        be out of sample, and probabilities would be over-confident. ``cv`` is not used, except that
        ``None`` means no calibration and no scaling.

        Calibration, scaling and trained combiners are fitted again whenever a twentieth of the
        kept rows is new. Columns with fewer than 10 scores of a side use the calibration of all
        other columns together. If no column has more, margins are read as log-odds; a scaling
        needs 50 rows; and until then, predictions warn that they are provisional: pass the data in
        several batches. The calibration of ``fit`` stays in use until all columns have enough
        scores, or until as much data as ``fit`` saw has been learned again.

        A column that has seen only one of its sides is certain of that side. So a class without
        samples so far has almost no probability, unless the columns contradict each other.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.naive_bayes import BernoulliNB
        >>> from manyclass import CoupledClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> model = CoupledClassifier(BernoulliNB(binarize=8))
        >>> for rows in np.array_split(np.arange(1500), 10):
        ...     model = model.partial_fit(X[rows], y[rows], classes=range(10))
        >>> bool(model.score(X[1500:], y[1500:]) > 0.75)
        True
        """
        learn = partial(self._partial_fit, classes)
        return self._fit_or_restore(X, y, sample_weight, partial_fit_params, learn)

    def _partial_fit(self, classes, X, y, sample_weight, params):
        X, y = self._check_batch(X, y, classes, sample_weight)
        weights = check_sample_weight(sample_weight, X, allow_all_zero=True)
        given = None if sample_weight is None else weights
        routed = self._route_partial_fit(given, params)
        weights, routed = weights_in_use(routed, X, weights, allow_all_zero=True)
        plan = self._plan(self.combiner_, len(self.classes_))
        self._check_kind(plan.kind)
        rows = np.flatnonzero(weights > 0)
        if len(rows) == 0 and self.class_totals_.any():
            return self
        if not hasattr(self, "stream_"):
            self._continue_fit()
        if plan.source.gives_scores:
            self._score(X, y, weights, rows)
        self._learn(X, y, weights, rows, routed, plan.kind)
        if plan.source.gives_scores:
            self._fit_on_reservoir(plan)
        return self

    # ------------------------------------------------------------------ input

    def _check_batch(self, X, y, classes, sample_weight):
        """Return X and the class indices; the first call fixes the classes and the code."""
        first = not self.__sklearn_is_fitted__()
        X, y = self._check_samples(X, y, reset=first)
        if n_samples(X) == 0:
            raise ValueError("X has 0 sample(s): do not pass empty batches.")
        if first:
            self._start(X, y, _first_classes(classes), sample_weight)
        elif classes is not None and not np.array_equal(_distinct(classes), self.classes_):
            raise ValueError(
                f"classes=[{some_quoted(_distinct(classes))}] are not those of the first call, "
                f"[{some_quoted(self.classes_)}]. They cannot change: omit classes, or start again "
                "with a clone."
            )
        return X, _indices(y, self.classes_)

    def _start(self, X, y: NDArray, classes: NDArray, sample_weight) -> None:
        """Set up a model without samples; some codes are built from those of the first batch."""
        _indices(y, classes)  # reports labels that are not among the classes
        combiner, code, seeds = self._make_combiner_and_code(X, y, len(classes), sample_weight)
        if combiner.measure() is not None:
            raise ValueError(
                f"combiner {combiner.key!r} needs the reliability of support vector "
                "machines, which do not learn in batches. Use another combiner, or fit."
            )
        self._set_up(classes, combiner, code)
        self.class_totals_ = np.zeros(len(classes))
        plan = self._plan(combiner, len(classes))
        learners = new_learners(self._base_estimator(), self.code_.shape[1], seeds)
        none = sides_in(self.code_, self.class_totals_)
        self.bank_ = bank_of(learners, none, none, plan.kind)
        self.stream_ = Stream(
            learners, none, self._new_reservoir(seeds), provisional=plan.source.gives_scores
        )

    def _check_kind(self, kind: ScoreKind) -> None:
        """Raise an error if new scores would be of another kind than the stored ones."""
        if kind != self.bank_.kind:
            raise ValueError(
                f"with calibration={self.calibration!r} and this estimator, the binary models "
                f"return another kind of score ({kind}) than when learning began "
                f"({self.bank_.kind}), and the two cannot be mixed. Restore the earlier "
                "parameters, or start again with fit or a clone."
            )

    def _continue_fit(self) -> None:
        """Continue with the models of ``fit``."""
        n_columns, seeds = self.code_.shape[1], None
        if self.random_state is not None:
            seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_columns)
        fresh = new_learners(self._base_estimator(), n_columns, seeds)
        pairs = zip(self.bank_.models, fresh, strict=True)
        learners = [new if isinstance(model, ConstantModel) else model for model, new in pairs]
        seen, inherited = np.tile(~self.bank_.constant, (2, 1)), float(self.class_totals_.sum())
        self.stream_ = Stream(learners, seen, self._new_reservoir(seeds), inherited=inherited)

    def _new_reservoir(self, seeds: NDArray[np.int64] | None) -> Reservoir:
        k, n_columns = self.code_.shape
        return Reservoir.empty(k, n_columns, seed=0 if seeds is None else int(seeds[0]))

    # ------------------------------------------------------------------ learning

    def _score(self, X, y: Places, weights: Floats, rows: Places) -> None:
        """Store scores of the batch, by the models before they learn it."""
        started = ~self.bank_.constant
        if len(rows) == 0 or not started.any():
            return
        reservoir = self.stream_.reservoir
        chosen = reservoir.choose(y[rows])
        scores = self.bank_.scores(take_rows(X, rows[chosen[0]]))
        scores[:, ~started] = np.nan
        reservoir = reservoir.add(y[rows], weights[rows], chosen, scores)
        self.stream_ = replace(self.stream_, reservoir=reservoir)

    def _learn(self, X, y, weights, rows, params, kind: ScoreKind) -> None:
        old, options = self.stream_.learners, self._bank_options()
        learners = teach(old, X, y, self.code_, rows, params, n_jobs=self.n_jobs, **options)
        batch = class_sizes(y, len(self.classes_), weights)
        if ((self.class_totals_ == 0) & (batch > 0)).any():  # what was fitted excludes a class
            self.scaling_ = self.native_ = None
        self._set_totals(self.class_totals_ + batch)
        seen = self.stream_.seen | sides_in(self.code_, batch)
        known = sides_in(self.code_, self.class_totals_)
        self.bank_ = bank_of(learners, seen, known, kind)
        self.stream_ = replace(self.stream_, learners=learners, seen=seen)

    def _fit_on_reservoir(self, plan: Plan, fresh: float = 0.05) -> None:
        """Fit calibration, combiner and scaling on stored scores, if enough are new.

        ``fresh`` is the share of stored rows that must be new.
        """
        stream, reservoir = self.stream_, self.stream_.reservoir
        n_seen = int(reservoir.offered.sum())
        if n_seen - stream.fitted_at < fresh * len(reservoir) and not stream.provisional:
            return
        values, y, weights = reservoir.later_half()
        sides = self.code_[y]
        enough = _enough_scores(values, sides)
        if not (enough.all() or reservoir.offered_weight.sum() >= stream.inherited):
            return
        # Columns that have seen one side only: what they will answer from now on.
        values[:, self.bank_.constant] = self.bank_.constants()
        scores = DenseScores(values, y, self.code_, weights, sides=sides * enough)
        has_rows = len(scores.complete_rows()) >= ENOUGH_ROWS
        calibrated = not plan.calibrations or bool(enough.any())
        needs_rows = plan.scaling is not None or self.combiner_.learns
        lacking = not calibrated or (needs_rows and not has_rows)
        self.stream_ = replace(
            stream, fitted_at=n_seen, inherited=0.0, provisional=stream.provisional and lacking
        )
        if calibrated:
            self._fit_after_bank(scores, plan, has_rows)
        elif stream.provisional:  # otherwise, the calibration in use is better
            self.calibration_ = log_odds = Sigmoid()  # reads margins as log-odds
            log_odds.slopes_ = np.full(len(enough), -1.0)
            log_odds.intercepts_ = np.zeros(len(enough))
            self._fit_after_bank(scores, plan._replace(calibrations=()), has_rows)

    def _fit_after_bank(self, scores: OutOfSampleScores, plan: Plan, has_rows: bool) -> None:
        """Fit calibration, combiner and scaling; the last two if there are enough rows."""
        if self.combiner_.learns:
            if not has_rows:
                return
            self.combiner_ = clone(self.combiner_)
        evidence = self._evidence(scores)
        self._fit_calibration(evidence, plan)
        self._fit_combiner(scores)
        if plan.scaling is not None and has_rows:
            self.native_ = None  # it does not learn in batches
            # Scores of earlier, worse models would choose too small a ridge.
            self._fit_scaling(evidence, plan, choose=False)
        self.least_proba_ = np.zeros(len(self.classes_))  # more samples may come

    def _before_predicting(self) -> None:
        if not hasattr(self, "stream_") or not self.stream_.provisional:
            return
        if self.combiner_.learns:
            raise NotFittedError(
                f"combiner {self.combiner_.key!r} is trained on scores of rows before they are "
                f"learned, and there are fewer than {ENOUGH_ROWS} so far: call partial_fit with "
                "further batches."
            )
        warn(
            "probabilities are provisional: calibration and scaling are fitted on scores of "
            "rows before they are learned, and there are too few so far. Call partial_fit with "
            "further batches, or split the data into several batches."
        )

    # ------------------------------------------------------------------ routing

    def _route_partial_fit(self, sample_weight, params) -> Mapping[str, Any]:
        """Return the arguments of the estimator's ``partial_fit``."""
        if routing_enabled():
            routed = process_routing(self, "partial_fit", sample_weight=sample_weight, **params)
            return routed.estimator.partial_fit
        if sample_weight is None:
            return params
        base = self._base_estimator()
        if "sample_weight" not in signature(base.partial_fit).parameters:
            raise ValueError(
                f"sample_weight was given, but {type(base).__name__}.partial_fit does not take "
                "it. Choose an estimator that does, or resample the batch."
            )
        return {**params, "sample_weight": sample_weight}

    def get_metadata_routing(self):
        """Return the routing of ``fit``'s and ``partial_fit``'s metadata."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="partial_fit", callee="partial_fit")
        router = super().get_metadata_routing()
        return router.add(estimator=self._base_estimator(), method_mapping=mapping)


def _first_classes(classes) -> NDArray:
    if classes is None:
        raise ValueError(
            "classes must be given at the first call of partial_fit: all labels of all batches, "
            "such as classes=np.unique(y_of_all_batches)."
        )
    labels = _distinct(classes)
    if len(labels) < 2:
        raise ValueError(
            f"classes=[{some_quoted(labels)}] has only one class or none: there is nothing to "
            "distinguish. Pass at least two."
        )
    return labels


def _distinct(classes) -> NDArray:
    labels = column_or_1d(classes)
    check_labels(labels, "classes")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"classes=[{some_quoted(labels)}] has NaN or infinity: remove it.")
    return np.unique(labels)


def _indices(y: NDArray, classes: NDArray) -> Places:
    """Return the class indices of the labels."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = y[classes[places] != y]
    if len(unknown):
        raise ValueError(
            f"y holds {quoted(unknown[0])}, which is not among the classes of the first call, "
            f"[{some_quoted(classes)}]. Classes cannot be added: drop such rows, or start again "
            "with all classes."
        )
    return places


def _enough_scores(scores: Floats, sides: Code, of_a_side: int = 10) -> Flags:
    """Return which columns have at least ten scores of both sides, to be calibrated alone."""
    known = ~np.isnan(scores)
    positive, negative = (known & (sides > 0)).sum(axis=0), (known & (sides < 0)).sum(axis=0)
    return np.minimum(positive, negative) >= of_a_side
