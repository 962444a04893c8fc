"""Learning from batches: partial_fit, calibrated by scores of rows not yet learned from.

Every batch is scored before it is learned (progressive validation: A. Blum, A. Kalai and
J. Langford, "Beating the hold-out: bounds for k-fold and progressive cross-validation",
COLT 1999). These scores are out of sample, as those of folds are, and calibration,
temperature and combiners that learn are fitted on a bounded number of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
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

from manyclass._lib.labels import check_labels
from manyclass._lib.messages import quoted, some_quoted
from manyclass._lib.routing import RoutingMixin
from manyclass._lib.sklearn import n_samples, routing_enabled, take_rows
from manyclass._lib.weights import check_weights, weights_in_use
from manyclass.banks import ConstantModel, ScoreKind
from manyclass.banks.base import class_sizes
from manyclass.banks.partial_fit import bank_of, new_learners, sides_in, teach
from manyclass.calibration import Sigmoid
from manyclass.fitting import CoupledBase, Plan
from manyclass.scaling.temperature import FLOOR
from manyclass.scores.reservoir import Reservoir

ENOUGH_OF_A_SIDE = 10  # scores, to calibrate a column by its own
ENOUGH_ROWS = 50  # scored by all columns, to fit a temperature or a combiner
FRESH = 0.05  # share of new rows that calibration is fitted again for

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Stream:
    """What has to be known to go on learning. It is never changed, but replaced."""

    learners: list[Any]
    """One for each column, those that have seen one side only included."""
    seen: NDArray[np.bool_]
    """Which sides they have learned from, negative and positive, shape (2, l)."""
    reservoir: Reservoir
    fitted_at: int = 0
    """Rows that had been scored when calibration was last fitted."""
    inherited: float = 0.0
    """Weight of the rows that ``fit`` saw, while its calibration is in use."""
    provisional: bool = False
    """Whether what needs scores could not be fitted yet."""


def _learns_in_batches(self) -> bool:
    return hasattr(self._base_estimator(), "partial_fit")


class IncrementalBase(RoutingMixin, CoupledBase):
    """Base of coupled classifiers that have ``partial_fit`` where their estimator has it."""

    stream_: Stream

    @available_if(_learns_in_batches)
    def partial_fit(self, X, y, classes=None, sample_weight=None, **partial_fit_params):
        """Learn from a batch of samples.

        There where the estimator has ``partial_fit`` itself. The classes, the code and
        the combiner are those of the first call, or of ``fit``, after which it may be
        called to go on learning; ``fit`` starts anew. So are the scores that the binary
        models are asked for: a ``calibration`` that needs others is refused. An error
        leaves the model as it was.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            A batch, as the estimator takes it.
        y : array-like of shape (n,)
            Class labels. A batch need not have all classes, nor more than one.
        classes : array-like of shape (k,), optional
            All labels that will ever come. Needed at the first call only.
        sample_weight : array-like of shape (n,), optional
            Weights: counts of samples, as in ``fit``. Rows of weight 0 are passed over, and
            a batch that has no other rows changes nothing, except that the first one fixes
            the classes.
        **partial_fit_params : dict
            Further arguments for the estimator's ``partial_fit``, by metadata routing
            where that is enabled.

        Returns
        -------
        self

        Notes
        -----
        Calibration, temperature and combiners that learn need scores of rows that were
        not learned from. Every batch but the first is scored before it is learned, and
        of these scores up to 400 rows of each class are kept, fewer where that is more
        than 64 MB, but not fewer than 10. In a class that is full a new row takes the place
        of one at random, so that rather new rows are kept; and only rows of the later
        half of what came of a class are used. Still, these are scores of models that had
        learned less than the present one: after few batches calibration is that of a
        weaker model, and less confident than it should be. Rows are taken to be new: in a
        second pass over the same rows their scores are no longer out of sample, and
        calibration becomes over-confident. ``cv`` is not used, except that ``None`` means
        no calibration and no temperature.

        They are fitted again whenever a twentieth of the rows kept is new. Columns with
        fewer than 10 scores of either side use the sigmoid of all others together. As long
        as no column has more, margins are taken for log-odds, there is no temperature with
        fewer than 50 rows, and predictions warn that they are provisional: pass the
        data in several batches. What ``fit`` has calibrated stays in use until all
        columns have enough scores, or as much has been learned again.

        Until a column has seen both of its sides, the one it has seen is certain, so that
        a class not seen yet has next to no probability, unless the others contradict each
        other.

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
        >>> bool(model.score(X[1500:], y[1500:]) > 0.8)
        True
        """
        learn = partial(self._partial_fit, classes)
        return self._fit_or_restore(X, y, sample_weight, partial_fit_params, learn)

    def _partial_fit(self, classes, X, y, sample_weight, params):
        X, y = self._check_batch(X, y, classes)
        weights = check_weights(sample_weight, X, none_at_all=True)
        given = None if sample_weight is None else weights
        routed = self._route_partial_fit(given, params)
        weights, routed = weights_in_use(routed, X, weights, none_at_all=True)
        plan = self._plan(self.combiner_, len(self.classes_))
        self._check_kind(plan.kind)
        rows = np.flatnonzero(weights > 0)
        if len(rows) == 0 and self.class_totals_.any():
            return self
        if not hasattr(self, "stream_"):
            self._continue_fit()
        if plan.needs_scores:
            self._score(X, y, weights, rows)
        self._learn(X, y, weights, rows, routed, plan.kind)
        evidence = self._evidence(plan) if plan.needs_scores else None
        if evidence is not None:
            self._fit_on_scores(*evidence)
            self.least_proba_ = np.zeros(len(self.classes_))  # more samples may come
        return self

    # ------------------------------------------------------------------ input

    def _check_batch(self, X, y, classes):
        """Return X and the class indices; at the first call fix what must not change."""
        first = not self.__sklearn_is_fitted__()
        X, y = self._check_samples(X, y, reset=first)
        if n_samples(X) == 0:
            raise ValueError("X has 0 sample(s): leave empty batches out.")
        if first:
            self._start(_first_classes(classes))
        elif classes is not None and not np.array_equal(_distinct(classes), self.classes_):
            raise ValueError(
                f"classes=[{some_quoted(_distinct(classes))}] are not those of the first call, "
                f"[{some_quoted(self.classes_)}]. They cannot change: leave classes out, or start "
                "anew with a clone."
            )
        return X, _indices(y, self.classes_)

    def _start(self, classes: NDArray) -> None:
        """Begin without any sample."""
        self.classes_ = classes
        self.combiner_, self.code_, seeds = self._begin(len(classes))
        if self.combiner_.measure() is not None:
            raise ValueError(
                f"combiner {self.combiner_.key!r} needs the reliability of support vector "
                "machines, which do not learn in batches. Use another combiner, or fit."
            )
        self.class_totals_ = np.zeros(len(classes))
        self.calibration_, self.reliability_ = None, None
        self.temperature_, self.least_proba_ = 1.0, np.zeros(len(classes))
        plan = self._plan(self.combiner_, len(classes))
        learners = new_learners(self._base_estimator(), self.code_.shape[1], seeds)
        none = sides_in(self.code_, self.class_totals_)
        self.bank_ = bank_of(learners, none, none, plan.kind)
        self.stream_ = Stream(
            learners, none, self._new_reservoir(seeds), provisional=plan.needs_scores
        )

    def _check_kind(self, kind: ScoreKind) -> None:
        """Refuse scores on another scale than those that have been kept and calibrated."""
        if kind != self.bank_.kind:
            raise ValueError(
                f"with calibration={self.calibration!r} and the estimator as it is, the binary "
                f"models are asked for another kind of score ({kind}) than when learning began "
                f"({self.bank_.kind}), and the two cannot be mixed. Set the parameters back to "
                "what they were, or start anew with fit or a clone."
            )

    def _continue_fit(self) -> None:
        """Go on with the models that ``fit`` left."""
        n_columns, seeds = self.code_.shape[1], None
        if self.random_state is not None:
            seeds = check_random_state(self.random_state).randint(2**31 - 1, size=n_columns)
        learners = [
            fresh if isinstance(model, ConstantModel) else model
            for model, fresh in zip(
                self.bank_.models,
                new_learners(self._base_estimator(), n_columns, seeds),
                strict=True,
            )
        ]
        self.stream_ = Stream(
            learners,
            np.tile(~self.bank_.constant, (2, 1)),
            self._new_reservoir(seeds),
            inherited=float(self.class_totals_.sum()),
        )

    def _new_reservoir(self, seeds: NDArray[np.int64] | None) -> Reservoir:
        k, n_columns = self.code_.shape
        return Reservoir.empty(k, n_columns, seed=0 if seeds is None else int(seeds[0]))

    # ------------------------------------------------------------------ learning

    def _score(self, X, y: Indices, weights: Array, rows: Indices) -> None:
        """Keep scores of the batch, by the models as they are before they learn it."""
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
        learners = teach(
            self.stream_.learners,
            X,
            y,
            self.code_,
            rows,
            params,
            n_jobs=self.n_jobs,
            **self._bank_options(),
        )
        batch = class_sizes(y, len(self.classes_), weights)
        self.class_totals_ = self.class_totals_ + batch
        self.weights_ = np.maximum(self.class_totals_ @ (self.code_ != 0), FLOOR)
        seen = self.stream_.seen | sides_in(self.code_, batch)
        known = sides_in(self.code_, self.class_totals_)
        self.bank_ = bank_of(learners, seen, known, kind)
        self.stream_ = replace(self.stream_, learners=learners, seen=seen)

    def _evidence(self, plan: Plan) -> tuple[Any, ...] | None:
        """Return what calibration is to be fitted on; None where it stays as it is."""
        stream, reservoir = self.stream_, self.stream_.reservoir
        seen = int(reservoir.offered.sum())
        if seen - stream.fitted_at < FRESH * len(reservoir) and not stream.provisional:
            return None
        scores, y, weights = reservoir.later_half()
        sides = self.code_[y]
        enough = _enough(scores, sides)
        if not (enough.all() or reservoir.offered_weight.sum() >= stream.inherited):
            return None
        # What has seen one side only till now will answer this.
        constant = self.bank_.constant
        scores[:, constant] = self.bank_.constants()
        whole = bool((~np.isnan(scores).any(axis=1)).sum() >= ENOUGH_ROWS)
        needs_whole = plan.tempered or self.combiner_.learns
        calibrated = plan.method is None or bool(enough.any())
        lacking = not calibrated or (needs_whole and not whole)
        self.stream_ = replace(
            stream, fitted_at=seen, inherited=0.0, provisional=stream.provisional and lacking
        )
        if not calibrated:
            if not stream.provisional:  # what there is, is better
                return None
            self.calibration_ = _of_log_odds(len(enough))
        if self.combiner_.learns:
            if not whole:
                return None
            self.combiner_ = clone(self.combiner_)
        method = plan.method if calibrated else None
        return scores, y, weights, method, plan.tempered and whole, sides * enough

    def _before_predicting(self) -> None:
        if not hasattr(self, "stream_") or not self.stream_.provisional:
            return
        if self.combiner_.learns:
            raise NotFittedError(
                f"combiner {self.combiner_.key!r} learns from scores of rows before they are "
                f"learned from, and there are less than {ENOUGH_ROWS} yet: call partial_fit with "
                "further batches."
            )
        warnings.warn(
            "probabilities are provisional: calibration and temperature are fitted on scores of "
            "rows before they are learned from, and there are too few yet. Call partial_fit with "
            "further batches, or with the data in several.",
            UserWarning,
            stacklevel=4,
        )

    # ------------------------------------------------------------------ routing

    def _route_partial_fit(self, sample_weight, params) -> Mapping[str, Any]:
        """Return what goes to the estimator's ``partial_fit``."""
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
            "classes must be given at the first call of partial_fit: all labels that will ever "
            "come, such as classes=np.unique(y_of_all_batches)."
        )
    labels = _distinct(classes)
    if len(labels) < 2:
        raise ValueError(
            f"classes=[{some_quoted(labels)}] has only one class or none: there is nothing to tell "
            "apart. Pass at least two."
        )
    return labels


def _distinct(classes) -> NDArray:
    labels = column_or_1d(classes)
    check_labels(labels, "classes")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"classes=[{some_quoted(labels)}] has NaN or infinity: leave it out.")
    return np.unique(labels)


def _indices(y: NDArray, classes: NDArray) -> Indices:
    """Return where the labels are among the classes."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = y[classes[places] != y]
    if len(unknown):
        raise ValueError(
            f"y holds {quoted(unknown[0])}, which is none of the classes of the first call, "
            f"[{some_quoted(classes)}]. Classes cannot be added: leave such rows out, or start "
            "anew with all classes."
        )
    return places


def _of_log_odds(n_columns: int) -> Sigmoid:
    """Return the sigmoids that take margins for log-odds."""
    sigmoid = Sigmoid()
    sigmoid.slopes_, sigmoid.intercepts_ = np.full(n_columns, -1.0), np.zeros(n_columns)
    return sigmoid


def _enough(scores: Array, sides: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Whether each column has scores of both sides to be calibrated by."""
    known = ~np.isnan(scores)
    positive, negative = (known & (sides > 0)).sum(axis=0), (known & (sides < 0)).sum(axis=0)
    return np.minimum(positive, negative) >= ENOUGH_OF_A_SIDE
