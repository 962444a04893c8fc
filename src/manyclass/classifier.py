"""CoupledClassifier: any classifier x code x calibration x combiner x scaling.

:meth:`CoupledBase._fit` connects the parts in the order of the data: code, bank,
out-of-sample scores, calibration, combiner, scaling.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

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
from manyclass._lib.arrays import Code, Floats
from manyclass._lib.column_bar import ColumnBar
from manyclass._lib.jobs import check_in_memory, check_n_jobs, kept_on_workers
from manyclass._lib.labels import check_targets
from manyclass._lib.messages import quoted, warn
from manyclass._lib.routing import offers_weights_if_taken
from manyclass._lib.rows import is_by_columns
from manyclass._lib.sklearn import check_any_rows, check_sample_weight, is_plain_labels
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass._lib.weights import class_sizes, weights_in_use
from manyclass.banks import (
    LOG_ODDS,
    MARGIN,
    BankFitter,
    is_prefit,
    read_by_bank,
    response_kind,
    takes_any_rows,
)
from manyclass.batches import PartialFitMixin
from manyclass.calibration import Sigmoid, Unchanged
from manyclass.calibration.calibration_report import CalibrationReport
from manyclass.calibration.crossfitting import calibrate
from manyclass.calibration.evidence import Evidence
from manyclass.calibration.fit_plan import Plan, make_plan
from manyclass.calibration.native_evidence import NativeEvidence
from manyclass.codes.build import NATIVE
from manyclass.codes.tree_structure import single_tree
from manyclass.combiners.base import Combiner, own_copy
from manyclass.combiners.coupling import TreeProduct
from manyclass.combiners.coupling.base import warn_unconverged
from manyclass.predicting import Predictions
from manyclass.scaling import StructuredScaling
from manyclass.scaling.lower_bounds import least_probabilities
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scaling.temperature import FLOOR
from manyclass.scores.folds import Fold
from manyclass.scores.out_of_sample import OutOfSampleScores
from manyclass.scores.sources import Needed


class Prepared(NamedTuple):
    """What a fit needs, when everything has been checked."""

    X: Any
    weights: Floats
    """Weights of the samples."""
    plan: Plan
    folds: list[Fold]
    fit_part: BankFitter
    """Fits the binary models; it also holds X as they read it, the class indices and the code."""


class CoupledBase(Predictions, ABC):
    """Base of the coupled classifiers.

    Subclasses have the parameters ``code``, ``combiner``, ``calibration``, ``cv``, ``scaling``,
    ``n_jobs`` and ``random_state``, and choose the binary classifier.
    """

    # Up to this many classes, class trees are pooled with the learner's own model by default. See
    # benchmarks/quality/choices.md: 2 to 14 % lower log-loss for 5 to 24 % more time at 10 and 26
    # classes, 0 to 3 % for 50 to 110 % from 49 classes on.
    _most_with_native: ClassVar[int] = 30

    @abstractmethod
    def _base_estimator(self):
        """Return the unfitted binary classifier."""

    @abstractmethod
    def _route(self, estimator, labels, sample_weight, fit_params) -> Bunch:
        """Return the arguments of the estimator's ``fit`` and the splitter's ``split``.

        Further arguments of :func:`~manyclass.banks.fit_bank` may be in ``bank``.
        """

    @abstractmethod
    def _bank_options(self) -> dict[str, Any]:
        """Return further options for the bank."""

    def _fit_or_restore(self, X, y, sample_weight, fit_params, fit=None):
        """Fit; after an error or an interrupt the estimator is as it was before."""
        with unchanged_on_error(self):
            return (fit or self._fit)(X, y, sample_weight, fit_params)

    def _fit(self, X, y, sample_weight, fit_params):
        return self._fit_prepared(self._prepare(X, y, sample_weight, fit_params))

    def _prepare(self, X, y, sample_weight, fit_params) -> Prepared:
        """Check everything, and return what the fit needs; no model is fitted yet."""
        X, y, classes = self._check_input(X, y)
        combiner, code, seeds = self._make_combiner_and_code(
            X, classes[y], len(classes), sample_weight
        )
        plan = self._plan(combiner, len(classes))
        weights, fit_params, routed = self._weigh(X, classes[y], sample_weight, fit_params)
        folds = plan.source.make_folds(X, y, classes, routed.splitter.split, weights > 0)
        X_bank = read_by_bank(self._base_estimator(), X, plan.kind, fit_params)
        task = X_bank, y, code, classes, plan
        fit_part = self._bank_fitter(*task, fit_params, seeds, routed, len(folds))
        if routed.get("ignored"):  # rows of weight 0 are not samples, also for such learners
            fit_part = replace(fit_part, used=weights > 0)
        self._set_up(classes, combiner, code)
        self._set_totals(class_sizes(y, len(classes), weights))
        return Prepared(X, weights, plan, folds, fit_part)

    def _fit_prepared(self, prepared: Prepared):
        X, weights, plan, folds, fit_part = prepared
        X_bank, y, code, classes = fit_part.X, fit_part.y, fit_part.code, self.classes_
        measure = self.combiner_.measure()
        of_machines: Any = None
        with kept_on_workers(
            X_bank, y, code, *fit_part.fit_params.values()
        ):  # for all columns and folds
            self.bank_ = fit_part()
            if measure is not None:  # before folds are fitted: not all learners support it
                of_machines = self.bank_.objective_terms(X_bank, y, code, weights)
            data = X_bank, y, code, weights
            # With thousands of columns, and scores that only the scaling needs, or a calibration
            # that may be left out, some folds give enough rows.
            few = code.shape[1] <= self._row_blocks.many_columns or not plan.spares_folds
            most = rows_for_scaling(*code.shape)
            needed = Needed(None if few else most, measure is not None, most if plan.scaling else 0)
            scores = plan.source.scores(self.bank_, fit_part, *data, folds, needed)
            native = self._fit_native(plan, fit_part, weights, folds)
        self.score_sources_ = None if scores is None else scores.sources
        if get_tags(self).input_tags.pairwise:
            self.pairwise_indices_ = [np.flatnonzero(column[y]) for column in code.T]
        if scores is not None:
            scores.check_sides(classes, needed=not plan.spares_folds, scaled=bool(plan.scaling))
        if measure is not None:
            known = None if scores is None else scores.dense()
            self.reliability_ = measure.fit(X, y, code, of_machines, known)
        if scores is not None:
            evidence = self._evidence(scores, native)
            self._fit_calibration(evidence, plan)
            self._fit_combiner(scores)
            if plan.scaling is not None:
                self._fit_scaling(evidence, plan)
                counts = np.bincount(y[weights > 0], minlength=len(classes))
                self.least_proba_ = least_probabilities(counts, self.class_totals_)
        self.bank_.own_rows()
        if self.verbose:
            self._print_report()
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
                "Pass samples of at least two classes. To learn what is normal from one class, "
                "use OneClassSVM or IsolationForest."
            )
        return X, indices, classes

    def _check_samples(self, X, y, reset: bool, sparse: tuple[str, ...] = ("csr",)):
        """Return X and y, checked to have the same length and the right dimensions."""
        check_in_memory(X)
        check_targets(y)
        any_rows = takes_any_rows(self._base_estimator())
        X = check_any_rows(self, X, reset=reset, sparse=sparse, of_any_shape=any_rows)
        if not is_plain_labels(y):
            y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return (X, y) if is_by_columns(X) else indexable(X, y)  # which would convert it

    def _make_combiner_and_code(
        self, X, labels: NDArray, k: int, sample_weight
    ) -> tuple[Combiner, Code, NDArray[np.int64] | None]:
        """Return the combiner, the code, and a seed for each column."""
        rng = check_random_state(self.random_state)
        weights = None
        if sample_weight is not None and codes.is_from_data(self.code):
            weights = check_sample_weight(sample_weight, X, allow_all_zero=True)
        code = codes.make_code(self.code, X, labels, k, rng, weights)
        combiner = self.combiner
        if isinstance(combiner, str) and combiner == "auto" and self._is_native(k):
            combiner = "normalize"
        elif isinstance(combiner, str) and combiner == "auto" and codes.is_grouped(self.code):
            combiner = "tree-product"
        combiner = own_copy(combiner, code)
        combiner.check_code(code)
        combiner.check_determined(code)
        seeds = rng.randint(2**31 - 1, size=code.shape[1])
        return combiner, code, None if self.random_state is None else seeds

    def _plan(self, combiner: Combiner, k: int) -> Plan:
        """Check the parameters, and return what has to be fitted."""
        check_n_jobs(self.n_jobs)
        names = ("calibration", "cv", "scaling", "with_native")
        parameters = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if self._is_native(k) or is_prefit(self._base_estimator()):
            parameters["with_native"] = False
        many = k > self._most_with_native or codes.is_grouped(self.code)
        native_pays = not (codes.is_from_data(self.code) and many)
        return make_plan(self._base_estimator(), combiner, k, **parameters, native_pays=native_pays)

    def _weigh(self, X, labels, sample_weight, fit_params):
        """Return the sample weights, the arguments of the estimator, and all routed arguments."""
        weights = check_sample_weight(sample_weight, X)
        given = None if sample_weight is None else weights
        routed = self._route(self._base_estimator(), labels, given, fit_params)
        # If the machines use class weights, so do the probabilities.
        weights, fit_params = weights_in_use(routed.estimator.fit, X, weights)
        return weights, fit_params, routed

    def _bank_fitter(
        self, X, y, code, classes, plan: Plan, fit_params, seeds, routed: Bunch, n_folds
    ) -> BankFitter:
        """Return what fits the bank on all rows and on those of each fold."""
        options = dict(self._bank_options(), **routed.get("bank", {}), borrow=True)
        if options.get("verbose"):
            options["verbose"] -= 1
            options["bar"] = ColumnBar(code.shape[1] * (1 + n_folds))
        trees = codes.find_trees(code) if codes.is_grouped(self.code) else None
        return BankFitter(
            *(self._base_estimator(), X, y, code, plan.kind, classes),
            native=self._is_native(len(classes)),
            blocks=None if trees is None else trees.blocks,
            seeds=seeds,
            fit_params=fit_params,
            n_jobs=self.n_jobs,
            options=options,
        )

    def _set_up(self, classes: NDArray, combiner: Combiner, code: Code) -> None:
        """Set the attributes of a model that nothing was fitted for yet."""
        self.__dict__.pop("stream_", None)  # of partial_fit
        self.classes_, self.combiner_, self.code_ = classes, combiner, code
        self.tree_ = single_tree(code) if isinstance(combiner, TreeProduct) else None
        self.calibration_, self.reliability_ = None, None
        self.native_, self.native_calibration_ = None, None
        self.scaling_, self.least_proba_ = None, np.zeros(len(classes))
        self.pairwise_indices_ = None
        self.report_ = CalibrationReport()

    def _set_totals(self, class_totals: Floats) -> None:
        """Set the training weight of each class and of each column."""
        self.class_totals_ = class_totals
        # Some columns at a time: the product needs the code in float64.
        parts = range(0, self.code_.shape[1], 2000)
        columns = [class_totals @ (self.code_[:, b : b + 2000] != 0) for b in parts]
        self.weights_ = np.maximum(np.concatenate(columns), FLOOR)

    def _is_native(self, k: int) -> bool:
        """Tell whether the learner's own multiclass model takes the place of the columns."""
        return isinstance(self.code, str) and self.code == NATIVE and k > 2

    def _fit_native(
        self, plan: Plan, fit_part: BankFitter, weights, folds
    ) -> NativeEvidence | None:
        """Fit the learner on all classes at once; return its out-of-sample scores."""
        if not plan.with_native:
            return None
        k, kind = len(fit_part.code), response_kind(fit_part.estimator, (MARGIN, LOG_ODDS))
        fit_all = replace(fit_part, native=True, kind=kind)
        try:
            self.native_ = fit_all()
            data = fit_all.X, fit_all.y, codes.one_vs_rest(k), weights
            scores: Any = plan.source.scores(self.native_, fit_all, *data, folds)
            self.native_calibration_ = calibrate(Sigmoid, scores)
            return NativeEvidence(kind, scores, self.native_calibration_)
        except Exception as error:
            if self.with_native is True:
                raise
            self.native_ = None
            warn(
                f"{type(fit_all.estimator).__name__} cannot be fitted on all {k} classes at once, "
                f"so its own probabilities are not used ({error}). with_native=False avoids the "
                "attempt."
            )
            return None

    def _evidence(
        self, scores: OutOfSampleScores, native: NativeEvidence | None = None
    ) -> Evidence:
        """Return what calibration and scaling are fitted on."""

        def couple(r: Floats) -> Floats:
            combined = self._combine(r)
            warn_unconverged(self.combiner_, combined.converged)
            return combined.values

        return Evidence(scores, native, couple)

    def _fit_calibration(self, evidence: Evidence, plan: Plan) -> None:
        """Choose the calibration by cross-fitted log-loss, and fit it."""
        if not plan.calibrations:
            return
        coupled = len(self.classes_) > 2
        structured = plan.scaling is StructuredScaling
        choice = evidence.choose(plan.calibrations, scaled=structured and coupled)
        self.report_.calibration = choice
        self.calibration_ = calibrate(choice.method, evidence.scores)

    def _fit_combiner(self, scores: OutOfSampleScores) -> None:
        if not self.combiner_.learns or self.reliability_ is not None:
            return
        rows, folds = scores.complete_rows(), {}
        if scores.fold_numbers is not None and has_fit_parameter(self.combiner_, "folds"):
            folds["folds"] = scores.fold_numbers[rows]
        self.combiner_.fit(scores[rows], scores.y[rows], self.code_, scores.weights[rows], **folds)

    def _fit_scaling(self, evidence: Evidence, plan: Plan, **options) -> None:
        """Fit the scaling on coupled probabilities of rows that the calibration did not see."""
        if len(self.classes_) == 2 and isinstance(self.calibration_, Unchanged):
            return  # nothing was coupled, and the evidence is for the learner's own probabilities
        known = evidence.left_out(self.calibration_)
        if known is None:
            self.native_ = None
            return
        scaling: Any = plan.scaling
        self.scaling_ = scaling().fit_checked(**known, **options, n_jobs=self.n_jobs)
        self.report_.set_scaling(self.scaling_, **known)

    def _print_report(self) -> None:
        if self.score_sources_ is not None:
            names, counts = np.unique(self.score_sources_, return_counts=True)
            ways = ", ".join(f"{n} by {name}" for name, n in zip(names, counts, strict=True))
            print(f"columns with left-out scores: {ways}")
        print(self.report_)

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
        tags.input_tags = get_tags(self._base_estimator()).input_tags
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
        :class:`~sklearn.linear_model.LogisticRegression`. ``gamma="scale"`` of SVC and NuSVC is
        resolved once, on all rows, so that all columns share a kernel; a pipeline is fitted on the
        rows of its column, and resolves it there. A fitted model in a
        :class:`~sklearn.frozen.FrozenEstimator` is calibrated as it is, on samples that it was
        not fitted on: two classes, or any number with ``code="native"``.
    code : str, array-like of shape (k, l), callable or object, default="one-vs-one"
        "one-vs-one", "one-vs-rest", "sparse-random", "dense-random", "complete",
        "ordinal"; a matrix of -1, 0 and +1 with rows in the order of ``classes_``; or a
        function of the number of classes that returns one. "class-trees", for many classes, is
        built from the training data (:class:`~manyclass.codes.ClassTrees`), as is any object
        with a method ``build(X, y, k, random_state)``. "native" uses no code: the estimator
        is fitted on all classes at once, and its own scores are calibrated and scaled.
    combiner : str or Combiner, default="auto"
        "auto" is "wlw2" for one-vs-one codes, "tree-product" for class trees, "normalize" for
        "native" and "kl" for all others.
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
        nothing is fitted twice. ``score_sources_`` says how the scores of each column were made.
        ``None`` means no out-of-sample scores.
    scaling : {"auto", "structured", "temperature"} or None, default="auto"
        How coupled probabilities are calibrated, on out-of-sample ones: by
        :class:`~manyclass.scaling.StructuredScaling`, which is "auto" up to 2000 classes, by a
        single power (:class:`~manyclass.scaling.Temperature`), which does not change labels, or
        not at all. Two classes are scaled if a calibration was fitted.
    with_native : bool or "auto", default="auto"
        Whether structured scaling also uses the estimator's own multiclass model, its margins or
        else its probabilities. This fits the estimator on all classes at once, in every fold.
        "auto" does so unless it is a kernel machine. For class trees and other codes that are
        built from data it does so up to 30 classes, and never for "q-ary" codes.
    n_jobs : int, optional
        Parallel jobs for fitting columns, and threads for coupling.
    random_state : int, RandomState or None, default=None
        Seed of random codes and of estimators whose own ``random_state`` is None.
    verbose : int, default=0
        From 1 on, a bar shows how many columns are fitted, of all folds together, and how long
        the rest takes; the calibration report is printed as well. From 2 on, joblib prints too.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The class labels.
    code_ : int8 ndarray of shape (k, l)
        The code matrix.
    estimators_ : list of l fitted binary classifiers
        Class 1 is the positive side of the column. Kernel machines are stored together:
        their entries are views with the methods, parameters and fitted attributes of the
        machine. Their arrays are read-only, and their clone is an unfitted ``estimator``.
    n_classes_ : int
        Number k of classes.
    code_book_ : ndarray of shape (k, l)
        The same as ``code_``, by the name of ``OutputCodeClassifier``.
    pairwise_indices_ : list of l int arrays, or None
        Rows of the training data that take part in each column, if X is a kernel or distance
        matrix; as in ``OneVsOneClassifier``.
    combiner_ : Combiner
        The combiner in use.
    weights_ : ndarray of shape (l,)
        Training weight of each column.
    class_totals_ : ndarray of shape (k,)
        Training weight of each class.
    scaling_ : StructuredScaling, Temperature or None
        The fitted scaling.
    native_, native_calibration_ : bank of the estimator's own multiclass model, or None
        Its scores and their sigmoids, of each class against the rest, are used by ``scaling_``.
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
           [0.  , 0.51, 0.49],
           [0.  , 0.27, 0.73]])
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
            importance, scale them to sum to n. Folds and leave-one-out leave out a sample with
            its whole weight. If the estimator's ``fit`` does not take weights, only the
            calibration and the scaling use them, with a warning; rows of weight 0 are left
            out. With metadata routing, the estimator gets them only if it requests them.
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
        return self._route_fit(sample_weight, fit_params, may_ignore=True)
