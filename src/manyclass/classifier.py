"""CoupledClassifier: any classifier x code x calibration x combiner x scaling.

:meth:`CoupledBase._fit` connects the parts in the order of the data: code, bank,
out-of-sample scores, calibration, combiner, scaling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch, check_random_state, get_tags, indexable
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
)

from manyclass import codes
from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.jobs import check_in_memory, check_n_jobs, kept_on_workers
from manyclass._lib.labels import check_targets
from manyclass._lib.messages import quoted, warn
from manyclass._lib.restoring import unchanged_on_error
from manyclass._lib.routing import offers_weights_if_taken
from manyclass._lib.rows import is_by_columns
from manyclass._lib.sklearn import check_any_rows, check_sample_weight
from manyclass._lib.weights import class_sizes, weights_in_use
from manyclass.banks import (
    PROBABILITY,
    Bank,
    fit_bank,
    fit_native,
    read_by_bank,
    takes_any_rows,
)
from manyclass.batches import PartialFitMixin
from manyclass.calibration.choosing import choose, simplest_of_the_best
from manyclass.calibration.crossfitting import (
    calibrate,
    crossfitted_probabilities,
    left_out_probabilities,
)
from manyclass.calibration.explained import CalibrationReport
from manyclass.calibration.plan import Plan, make_plan
from manyclass.codes.build import NATIVE
from manyclass.combiners.base import Combiner, own_copy
from manyclass.combiners.coupling.base import CouplingRule, warn_unconverged, warn_undetermined
from manyclass.predicting import Predictions
from manyclass.scaling import StructuredScaling
from manyclass.scaling.given import normalised
from manyclass.scaling.rare import least_probabilities
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scaling.temperature import FLOOR
from manyclass.scores.leave_one_out import FitPart
from manyclass.scores.out_of_sample import OutOfSampleScores


class CoupledBase(Predictions, ABC):
    """Base of the coupled classifiers.

    Subclasses have the parameters ``code``, ``combiner``, ``calibration``, ``cv``, ``scaling``,
    ``n_jobs`` and ``random_state``, and choose the binary classifier.
    """

    @abstractmethod
    def _base_estimator(self):
        """Return the unfitted binary classifier."""

    @abstractmethod
    def _route(self, estimator, labels, sample_weight, fit_params) -> Bunch:
        """Return the arguments of the estimator's ``fit`` and the splitter's ``split``.

        Further arguments of :func:`fit_bank` may be in ``bank``.
        """

    @abstractmethod
    def _bank_options(self) -> dict[str, Any]:
        """Return further options for the bank."""

    def _fit_or_restore(self, X, y, sample_weight, fit_params, fit=None):
        """Fit; after an error or an interrupt the estimator is as it was before."""
        with unchanged_on_error(self):
            return (fit or self._fit)(X, y, sample_weight, fit_params)

    def _fit(self, X, y, sample_weight, fit_params):
        X, y, classes = self._check_input(X, y)
        combiner, code, seeds = self._make_combiner_and_code(len(classes))
        plan = self._plan(combiner, len(classes))
        weights, fit_params, routed = self._weigh(X, classes[y], sample_weight, fit_params)
        folds = plan.source.make_folds(X, y, classes, routed.splitter.split, weights > 0)
        X_bank = read_by_bank(self._base_estimator(), X, plan.kind, fit_params)
        fit_part = self._bank_fitter(X_bank, y, code, plan, fit_params, seeds, routed)
        self._set_up(classes, combiner, code)
        self._set_totals(class_sizes(y, len(classes), weights))
        measure = combiner.measure()
        evidence: Any = None
        with kept_on_workers(X_bank, y, code, *fit_params.values()):  # for all columns and folds
            self.bank_ = fit_part(None, None)
            if measure is not None:  # before folds are fitted: not all learners support it
                evidence = self.bank_.evidence(X_bank, y, code, weights)
            data = X_bank, y, code, weights
            # With thousands of columns, and scores that only the scaling needs, or a calibration
            # that may be left out, some folds give enough rows.
            few = code.shape[1] <= self._row_blocks.many_columns or not plan.spares_folds
            enough = None if few else rows_for_scaling(*code.shape)
            needed: Any = {"enough": enough, "all_rows": measure is not None}
            scores = plan.source.scores(self.bank_, fit_part, *data, folds, **needed)
            native = self._fit_native(plan, X_bank, y, weights, fit_params, seeds, folds)
        if scores is not None:
            scores.check_sides(classes, needed=not plan.spares_folds, scaled=bool(plan.scaling))
        if measure is not None:
            known = None if scores is None else scores.dense()
            self.reliability_ = measure.fit(X, y, code, evidence, known)
        if scores is not None:
            self._fit_calibration(scores, plan, native)
            self._fit_combiner(scores)
            if plan.scaling is not None:
                self._fit_scaling(scores, plan, native)
                counts = np.bincount(y[weights > 0], minlength=len(classes))
                self.least_proba_ = least_probabilities(counts, self.class_totals_)
        self.bank_.own_rows()
        if self.verbose:
            print(self.report_)
        return self

    # ------------------------------------------------------------------ the steps of fit

    def _check_input(self, X, y):
        """Return X, the class indices and the classes."""
        # Sparse columns stay as they are: a full conversion would be one more copy.
        X, y = self._check_samples(X, y, reset=True, sparse=("csr", "csc"))
        classes, indices = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has only one class, {quoted(classes[0])}: there is nothing to distinguish. "
                "Pass samples of at least two classes."
            )
        return X, indices, classes

    def _check_samples(self, X, y, reset: bool, sparse: tuple[str, ...] = ("csr",)):
        """Return X and y, checked to have the same length and the right dimensions."""
        check_in_memory(X)
        check_targets(y)
        any_rows = takes_any_rows(self._base_estimator())
        X = check_any_rows(self, X, reset=reset, sparse=sparse, of_any_shape=any_rows)
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return (X, y) if is_by_columns(X) else indexable(X, y)  # which would convert it

    def _make_combiner_and_code(self, k: int) -> tuple[Combiner, Code, NDArray[np.int64] | None]:
        """Return the combiner, the code, and a seed for each column."""
        rng = check_random_state(self.random_state)
        code = self._make_code(k, rng)
        native = isinstance(self.combiner, str) and self.combiner == "auto" and self._is_native(k)
        combiner = own_copy("normalize" if native else self.combiner, code)
        combiner.check_code(code)
        if isinstance(combiner, CouplingRule) and not codes.is_identifiable(code):
            combiner.check_identifiable(code)
            warn_undetermined(code, combiner)
        seeds = rng.randint(2**31 - 1, size=code.shape[1])
        return combiner, code, None if self.random_state is None else seeds

    def _make_code(self, k: int, rng) -> Code:
        if isinstance(self.code, str):
            # With two classes, all codes are the same single problem.
            name = "one-vs-one" if k == 2 and self.code in (*codes.NAMES, NATIVE) else self.code
            if name == NATIVE:  # the learner's scores of each class against the rest
                return codes.one_vs_rest(k)
            return codes.by_name(name, k, random_state=rng)
        matrix = self.code(k) if callable(self.code) else self.code
        return codes.check_code(matrix, n_classes=k)

    def _plan(self, combiner: Combiner, k: int) -> Plan:
        """Check the parameters, and return what has to be fitted."""
        check_n_jobs(self.n_jobs)
        names = ("calibration", "cv", "scaling", "with_native")
        parameters = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if self._is_native(k):
            parameters["with_native"] = False
        return make_plan(self._base_estimator(), combiner, k, **parameters)

    def _weigh(self, X, labels, sample_weight, fit_params):
        """Return the sample weights, the arguments of the estimator, and all routed arguments."""
        weights = check_sample_weight(sample_weight, X)
        given = None if sample_weight is None else weights
        routed = self._route(self._base_estimator(), labels, given, fit_params)
        # If the machines use class weights, so do the probabilities.
        weights, fit_params = weights_in_use(routed.estimator.fit, X, weights)
        return weights, fit_params, routed

    def _bank_fitter(
        self, X, y, code, plan: Plan, fit_params: Mapping[str, Any], seeds, routed: Bunch
    ) -> FitPart:
        """Return a function that fits a bank on some rows and columns; None means all."""
        estimator = self._base_estimator()
        options = dict(self._bank_options(), **routed.get("bank", {}))
        options.update(fit_params=fit_params, n_jobs=self.n_jobs, borrow=True)

        def fit_part(rows, columns) -> Bank:
            if self._is_native(len(code)):
                native: Any = {
                    "fit_params": fit_params,
                    "seed": None if seeds is None else seeds[0],
                }
                return fit_native(estimator, X, y, plan.kind, len(code), rows=rows, **native)
            part = code if columns is None else code[:, columns]
            own = seeds if seeds is None or columns is None else seeds[columns]
            return fit_bank(estimator, X, y, part, plan.kind, rows=rows, seeds=own, **options)

        return fit_part

    def _set_up(self, classes: NDArray, combiner: Combiner, code: Code) -> None:
        """Set the attributes of a model that nothing was fitted for yet."""
        self.__dict__.pop("stream_", None)  # of partial_fit
        self.classes_, self.combiner_, self.code_ = classes, combiner, code
        self.calibration_, self.reliability_ = None, None
        self.scaling_, self.native_, self.least_proba_ = None, None, np.zeros(len(classes))
        self.report_ = CalibrationReport()

    def _set_totals(self, class_totals: Floats) -> None:
        """Set the training weight of each class and of each column."""
        self.class_totals_ = class_totals
        self.weights_ = np.maximum(class_totals @ (self.code_ != 0), FLOOR)

    def _is_native(self, k: int) -> bool:
        """Tell whether the learner's own multiclass model takes the place of the columns."""
        return isinstance(self.code, str) and self.code == NATIVE and k > 2

    def _fit_native(
        self, plan: Plan, X, y, weights, fit_params, seeds, folds
    ) -> OutOfSampleScores | None:
        """Fit the learner on all classes at once; return its out-of-sample probabilities."""
        if not plan.with_native:
            return None
        k = len(self.classes_)
        estimator, seed = self._base_estimator(), None if seeds is None else seeds[0]

        def fit_part(rows, columns) -> Bank:
            own: Any = {"fit_params": fit_params, "seed": seed, "rows": rows}
            return fit_native(estimator, X, y, PROBABILITY, k, **own)

        try:
            self.native_ = fit_part(None, None)
            data = X, y, codes.one_vs_rest(k), weights
            return plan.source.scores(self.native_, fit_part, *data, folds)
        except Exception as error:
            if self.with_native is True:
                raise
            self.native_ = None
            warn(
                f"{type(estimator).__name__} cannot be fitted on all {k} classes at once, so its "
                f"own probabilities are not used ({error}). with_native=False avoids the attempt."
            )
            return None

    def _fit_calibration(
        self, scores: OutOfSampleScores, plan: Plan, native: OutOfSampleScores | None = None
    ) -> None:
        """Choose the calibration by cross-fitted log-loss, and fit it.

        What counts are the class probabilities in the end. Where they will be scaled, each
        calibration is judged by the first stage of the scaling; otherwise by its own columns.
        """
        methods, rows = plan.calibrations, np.empty(0, dtype=np.intp)
        if not methods:
            return
        if len(methods) > 1 and plan.scaling is StructuredScaling:
            rows = self._rows_to_scale(scores, native, most=2000)
        if len(rows) > 0:
            losses = []
            for method in methods:
                parts = crossfitted_probabilities(method, scores, rows)
                evidence = self._couple_left_out(parts, scores, native)
                losses.append(StructuredScaling().pooled_losses(**evidence, code=self.code_))
            choice = simplest_of_the_best(methods, np.array(losses), evidence["weights"])
        else:
            choice = choose(methods, scores)
        self.report_.calibration = choice
        self.calibration_ = calibrate(choice.method, scores)

    def _fit_combiner(self, scores: OutOfSampleScores) -> None:
        if not self.combiner_.learns or self.reliability_ is not None:
            return
        rows, folds = scores.complete_rows(), {}
        if scores.fold_numbers is not None and has_fit_parameter(self.combiner_, "folds"):
            folds["folds"] = scores.fold_numbers[rows]
        self.combiner_.fit(scores[rows], scores.y[rows], self.code_, scores.weights[rows], **folds)

    def _fit_scaling(
        self, scores: OutOfSampleScores, plan: Plan, native: OutOfSampleScores | None = None
    ) -> None:
        """Fit the scaling, on at most some thousand rows that have scores in all columns.

        The calibration is fitted again without some of the rows at a time, so that the scaling
        learns how good it is on rows that it has not seen.
        """
        rows = self._rows_to_scale(scores, native)
        if len(rows) == 0:
            self.native_ = None
            return
        parts = left_out_probabilities(self.calibration_, scores, rows)
        evidence = self._couple_left_out(parts, scores, native)
        scaling: Any = plan.scaling
        self.scaling_ = scaling().fit_checked(**evidence, code=self.code_)
        self.report_.set_scaling(self.scaling_, **evidence)

    def _rows_to_scale(
        self, scores: OutOfSampleScores, native: OutOfSampleScores | None, most: int | None = None
    ) -> Places:
        """Return rows with weight that have scores in all columns, at random if they are many."""
        rows, most = scores.complete_rows(), most or rows_for_scaling(*self.code_.shape)
        if native is not None:
            rows = rows[np.isin(rows, native.complete_rows())]
        rows = rows[scores.weights[rows] > 0]
        if len(rows) > most:
            rows = np.random.default_rng(0).choice(rows, most, replace=False)
        return rows

    def _couple_left_out(
        self,
        parts: Iterable[tuple[Places, Floats]],
        scores: OutOfSampleScores,
        native: OutOfSampleScores | None,
    ) -> dict[str, Any]:
        """Return what a scaling is fitted on; ``parts`` are rows and their probabilities."""
        found = []
        for rows, r in parts:
            combined = self._combine(r)
            found.append((rows, r, combined.values, combined.converged))
        rows, r, p, converged = (np.concatenate(part) for part in zip(*found, strict=True))
        warn_unconverged(self.combiner_, converged)
        others = [] if native is None else [normalised(native[rows])]
        known = {"y": scores.y[rows], "weights": scores.weights[rows]}
        return {"p": p, "columns": r, "others": others, **known}

    def calibration_report(self) -> CalibrationReport:
        """Return which calibration and scaling were chosen, and on what evidence.

        Returns
        -------
        CalibrationReport
            Print it, or read its attributes.
        """
        check_is_fitted(self)
        return self.report_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        base = get_tags(self._base_estimator())
        for name in ("sparse", "allow_nan", "categorical", "pairwise"):
            setattr(tags.input_tags, name, getattr(base.input_tags, name))
        return tags


class CoupledClassifier(PartialFitMixin, CoupledBase):
    """Multiclass classifier with coupled probabilities from binary classifiers.

    A code matrix turns the classes into binary problems. One clone of ``estimator``
    learns each problem. A calibration turns its scores into binary probabilities,
    and the combiner couples these into one distribution over the classes.

    Parameters
    ----------
    estimator : binary classifier, default=None
        Needs ``predict_proba`` or ``decision_function``. ``None`` means
        :class:`~sklearn.linear_model.LogisticRegression`.
    code : str, array-like of shape (k, l) or callable, default="one-vs-one"
        "one-vs-one", "one-vs-rest", "sparse-random", "dense-random", "complete",
        "ordinal"; a matrix of -1, 0 and +1 with rows in the order of ``classes_``; or a
        function of the number of classes that returns one. "native" uses no code: the estimator
        is fitted on all classes at once, and its own scores are calibrated and scaled.
    combiner : str or Combiner, default="auto"
        "auto" is "wlw2" for one-vs-one codes, "normalize" for "native" and "kl" for all others.
        Or a coupling rule (see :func:`couple`) or a trained soft-max function (see
        :mod:`manyclass.combiners.softmax`), which give ``predict_proba``; or a label decoder (see
        :mod:`manyclass.combiners.decoding`, :mod:`manyclass.combiners.srm_drm`), which does not.
    calibration : {"auto", "sigmoid", "robust-sigmoid", "beta", "isotonic"} or None, default="auto"
        How scores become probabilities: by Platt's sigmoid, by a sigmoid that is robust
        to long tails of the scores (:class:`~manyclass.calibration.RobustSigmoid`), by beta
        calibration of ``predict_proba``, or by isotonic regression. "auto" chooses between
        the estimator's own ``predict_proba``, if it has one, sigmoid, beta and isotonic, by
        their cross-fitted log-loss; ``None`` uses ``predict_proba`` unchanged. Label decoders
        use scores unchanged.
    cv : int, splitter, iterable of splits, "loo" or None, default=5
        Folds for the out-of-sample scores that calibration, scaling and trained combiners are
        fitted on. "loo" is analytic leave-one-out, for :class:`~sklearn.svm.SVC`,
        :class:`~sklearn.svm.NuSVC` and :class:`~manyclass.learners.KernelLogisticRegression`:
        nothing is fitted twice, except columns where it is not reliable, which a warning reports.
        ``None`` means no out-of-sample scores.
    scaling : {"auto", "structured", "temperature"} or None, default="auto"
        How coupled probabilities are calibrated, on out-of-sample ones: by
        :class:`~manyclass.scaling.StructuredScaling`, which is "auto", by a single power
        (:class:`~manyclass.scaling.Temperature`), which does not change labels, or not at all.
        Not used for two classes, where nothing is coupled.
    with_native : bool or "auto", default="auto"
        Whether structured scaling also uses the estimator's own multiclass probabilities. This
        fits the estimator on all classes at once, in every fold. "auto" does so if it has them.
    n_jobs : int, optional
        Parallel jobs for fitting columns, and threads for coupling.
    random_state : int, RandomState or None, default=None
        Seed of random codes and of estimators whose own ``random_state`` is None.
    verbose : int, default=0
        Passed to joblib. Above 0, the calibration report is printed as well.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The class labels.
    code_ : int8 ndarray of shape (k, l)
        The code matrix.
    estimators_ : list of l fitted binary classifiers
        Class 1 is the positive side of the column. Kernel machines are stored together:
        their entries are views with ``decision_function``, ``predict`` and the fitted
        attributes of the machine, and cannot be cloned.
    combiner_ : Combiner
        The combiner in use.
    weights_ : ndarray of shape (l,)
        Training weight of each column.
    class_totals_ : ndarray of shape (k,)
        Training weight of each class.
    scaling_ : StructuredScaling, Temperature or None
        The fitted scaling.
    native_ : bank of the estimator's own multiclass model, or None
        Its probabilities are used by ``scaling_``.
    least_proba_ : ndarray of shape (k,)
        Lower bound of each class probability: 0, or half of the class's share in the training
        set if the class has a single sample, which cannot be left out.
    reliability_ : Reliability or None
        Reliability of the machines, for the decoders "srm" and "drm".
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X has them.

    See Also
    --------
    couple : Couple given binary probabilities.
    manyclass.codes.audit : Examine a code matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyclass import CoupledClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledClassifier(SVC()).fit(X, y)
    >>> model.predict_proba(X[[0, 70, 133]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.52, 0.48],
           [0.  , 0.28, 0.72]])
    """

    def __init__(
        self,
        estimator=None,
        *,
        code: str | Any = "one-vs-one",
        combiner: str | Combiner = "auto",
        calibration: str | None = "auto",
        cv=5,
        scaling: str | None = "auto",
        with_native: bool | str = "auto",
        n_jobs: int | None = None,
        random_state=None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.code = code
        self.combiner = combiner
        self.calibration = calibration
        self.cv = cv
        self.scaling = scaling
        self.with_native = with_native
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @offers_weights_if_taken
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the binary models, the calibration, the combiner and the scaling.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Training data, in any form that the estimator accepts.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weights, used by the estimator, the calibration and the scaling. They are
            counts of samples: a weight of 2 is a copy, and weights that sum to 1 mean one
            sample in all, which is too little to calibrate on. If weights only express
            importance, scale them to sum to n. They need an estimator whose ``fit`` takes
            them, or metadata routing, where the estimator gets them only if it requests them.
        **fit_params : dict
            Further arguments for the estimator's ``fit`` and the splitter, by
            metadata routing if that is enabled.

        Returns
        -------
        self
        """
        return self._fit_or_restore(X, y, sample_weight, fit_params)

    def _base_estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def _bank_options(self) -> dict[str, Any]:
        return {"verbose": self.verbose}

    def _route(self, estimator, labels, sample_weight, fit_params) -> Bunch:
        return self._route_fit(sample_weight, fit_params)
