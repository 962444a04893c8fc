"""Binary classifiers with an optimised threshold.

Hastie & Tibshirani (1998), section 3: with logit d(x), classify by d(x) > t. The
probabilities are shifted as well, so that coupling uses the threshold, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils import get_tags, indexable

from manyclass._lib.arrays import FARTHEST, Floats, Places
from manyclass._lib.messages import quoted, some_quoted, warn
from manyclass._lib.routing import RoutingMixin, offers_weights_if_taken
from manyclass._lib.rows import take_rows
from manyclass._lib.sklearn import check_any_rows, check_fit_params, check_sample_weight
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass._lib.weights import weights_in_use
from manyclass.banks.score_kinds import LOG_ODDS, MARGIN
from manyclass.learners._binary import BinaryMixin, encode_binary
from manyclass.learners.threshold_search import Criterion, best_threshold, search_for


def _decides_by_logit(estimator, X, atol: float = 1e-6) -> bool:
    """Whether the decision function of the fitted estimator is used as its logit.

    It is if the estimator has no probabilities, or if they are the logistic function of it up to
    ``atol``, which allows for float32.
    """
    probable, decides = (hasattr(estimator, f) for f in ("predict_proba", "decision_function"))
    if not probable and not decides:
        raise ValueError(
            f"{type(estimator).__name__} has neither predict_proba nor decision_function: labels "
            "have no threshold. Wrap it in CalibratedClassifierCV, or choose another estimator."
        )
    if not probable or not decides:
        return decides
    r = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, 1]
    d = MARGIN.of(estimator, X)
    return d.shape == r.shape and np.allclose(expit(d), r, rtol=0, atol=atol)


def _logit(estimator, X, is_logit: bool) -> Floats:
    """Return the logits of the second class, clipped to finite numbers."""
    if is_logit:
        d = MARGIN.of(estimator, X)
    else:
        r = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        d = LOG_ODDS.of_probabilities(r)
    if np.isnan(d).any():
        raise ValueError(
            f"{type(estimator).__name__} gives NaN for row {np.isnan(d).argmax()}: impute or drop "
            "the row, or check why the model fails there."
        )
    return np.clip(d, -FARTHEST, FARTHEST)


def _check_both_sides(classes, sides, weight) -> None:
    """Raise a ``ValueError`` if all samples of a class have weight 0."""
    total = np.bincount(sides, weight)
    if (total == 0).any():
        raise ValueError(
            f"sample_weight is 0 for all samples of class {quoted(classes[total.argmin()])}: only "
            "one class is left. Pass positive weights for both classes."
        )


def _folds(cv, X, sides, split_params) -> Iterable[tuple[Any, Any]]:
    """Return pairs of training and test rows; none if a class has too few samples to split."""
    if not isinstance(cv, (int, np.integer)):
        return check_cv(cv, sides, classifier=True).split(X, sides, **split_params)
    smaller = int(np.bincount(sides).min())
    if smaller < 2 <= cv:
        return []
    return StratifiedKFold(min(int(cv), smaller)).split(np.zeros(len(sides)), sides)


def _take(X, rows, columns):
    """Return these rows of X, and the given columns if X is a pairwise matrix."""
    X = take_rows(X, rows)
    return X if columns is None else take_rows(X, columns, axis=1)


class ThresholdOptimized(RoutingMixin, BinaryMixin, BaseEstimator):
    """Binary classifier with its logit shifted to the best threshold.

    The logit d(x) of ``estimator`` is replaced by d(x) - t. Labels and probabilities
    change together, and so do coupled probabilities (Hastie & Tibshirani 1998, section 3).

    Parameters
    ----------
    estimator : binary classifier, default=None
        ``None`` means :class:`~sklearn.linear_model.LogisticRegression`. The paper uses
        linear discriminants, but these do not support sample weights.
    criterion : {"error", "balanced-error", "log-loss"} or callable, default="error"
        The loss that t minimises: the weight of misclassified samples; the mean error rate
        of the two classes; the log-loss of the shifted probabilities; or a function
        ``criterion(y, d, sample_weight)`` of labels 0 and 1, shifted logits d and weights
        that returns a number. A function is evaluated between all neighbouring logits, or
        between 256 pairs of them, evenly spaced by rank.
    cv : int, splitter, iterable of splits or None, default=None
        ``None`` optimises t on the logits of the training set; the paper does not say which logits
        it used. A learner that overfits its training set needs out-of-sample logits: an int is the
        number of stratified folds, limited by the size of the smaller class. Folds whose training
        part has only one class are skipped. The final estimator is fitted on all data.

    Attributes
    ----------
    estimator_ : fitted binary classifier
        Its own predictions do not use the threshold.
    threshold_ : float
        The threshold t.
    classes_ : ndarray of shape (2,)
        The class labels; d(x) > t predicts the second.
    n_features_in_, feature_names_in_
        Number of features seen in ``fit``, and their names if X has them.

    See Also
    --------
    best_threshold : The search alone.
    sklearn.model_selection.TunedThresholdClassifierCV : Moves labels, not probabilities.

    Notes
    -----
    The logit is ``decision_function`` if the estimator has no ``predict_proba``, or if
    its probabilities are the logistic function of it on all training samples (linear
    discriminants, logistic regression, boosting by log-loss). Otherwise it is the log-odds
    of ``predict_proba``, where probabilities below 1e-12 count as 1e-12. A decision function
    without probabilities (:class:`~sklearn.svm.LinearSVC`) is used as a logit unchanged.
    Its labels use the best threshold, but its probabilities are uncalibrated; a sigmoid
    that is fitted to it later has its own intercept, which undoes the shift.

    References
    ----------
    T. Hastie and R. Tibshirani (1998), Classification by pairwise coupling, Annals of
    Statistics 26, 451-471, section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.learners.thresholds import ThresholdOptimized
    >>> X, y = load_iris(return_X_y=True)
    >>> binary = ThresholdOptimized(LinearDiscriminantAnalysis())
    >>> round(binary.fit(X[50:], y[50:]).threshold_)
    1
    >>> CoupledClassifier(binary, combiner="ht").fit(X, y).score(X, y)
    0.98
    """

    def __init__(self, estimator=None, criterion: Criterion = "error", cv=None):
        self.estimator = estimator
        self.criterion = criterion
        self.cv = cv

    @offers_weights_if_taken
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the estimator, then find the threshold.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Training data, as the estimator takes it.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights for the estimator and the criterion. They are accepted only if the
            estimator's ``fit`` takes them, or by metadata routing; then the estimator gets them
            only if it requested them.
        **fit_params : dict
            Further arguments for the estimator's ``fit`` and the splitter, by
            metadata routing if it is enabled.

        Returns
        -------
        self
        """
        search_for(self.criterion)  # raises for an invalid criterion before anything is fitted
        with unchanged_on_error(self):
            return self._fit(X, y, sample_weight, fit_params)

    def _fit(self, X, y, sample_weight, fit_params):
        X = check_any_rows(self, X, reset=True)
        classes, sides = encode_binary(y, type(self).__name__)
        X, sides = indexable(X, sides)
        weight = check_sample_weight(sample_weight, X)
        routed = self._route_fit(None if sample_weight is None else weight, fit_params)
        weight, passed = weights_in_use(routed.estimator.fit, X, weight)
        _check_both_sides(classes, sides, weight)
        base = self._base_estimator()
        fitted = clone(base).fit(X, classes[sides], **passed)
        is_logit = _decides_by_logit(fitted, X)
        if self.cv is None:
            threshold = best_threshold(sides, _logit(fitted, X, is_logit), weight, self.criterion)
        else:
            split = routed.splitter.split
            left_out = self._out_of_sample(X, classes, sides, weight, is_logit, passed, split)
            threshold = self._threshold_of(left_out, classes, sides, weight)
        self.estimator_, self._is_logit = fitted, is_logit
        self.classes_, self.threshold_ = classes, threshold
        return self

    def _out_of_sample(
        self, X, classes, sides, weight, is_logit, passed, split_params
    ) -> tuple[Places, Floats]:
        """Return rows and their out-of-sample logits."""
        base = self._base_estimator()
        rows, logits = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        for train, test in _folds(self.cv, X, sides, split_params):
            if len(np.unique(sides[train][weight[train] > 0])) < 2:
                continue
            columns = train if get_tags(base).input_tags.pairwise else None
            params = check_fit_params(X, passed, train)
            model = clone(base).fit(_take(X, train, columns), classes[sides[train]], **params)
            rows.append(np.arange(len(sides))[test])
            logits.append(_logit(model, _take(X, test, columns), is_logit))
        return np.concatenate(rows), np.concatenate(logits)

    def _threshold_of(self, left_out, classes, sides, weight) -> float:
        rows, logits = left_out
        found = np.unique(sides[rows][weight[rows] > 0])
        if len(found) < 2:
            missing = some_quoted(np.delete(classes, found))
            warn(
                f"no sample of {missing} is in the test part of a fold with both classes in its "
                "training part: the threshold stays at 0. Collect more samples, or use cv=None."
            )
            return 0.0
        return best_threshold(sides[rows], logits, weight[rows], self.criterion)

    def _log_odds(self, X) -> Floats:
        """Return the shifted logit d(x) - t."""
        X = check_any_rows(self, X, reset=False)
        return _logit(self.estimator_, X, self._is_logit) - self.threshold_

    def _base_estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        base = get_tags(self._base_estimator())
        tags.input_tags = base.input_tags
        return tags
