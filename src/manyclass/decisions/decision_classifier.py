"""DecisionClassifier: decisions by costs, from probabilities for other class frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from manyclass._lib.arrays import Floats
from manyclass._lib.documentation import LinkedEstimator
from manyclass._lib.labels import check_targets
from manyclass._lib.messages import quoted
from manyclass._lib.routing import RoutingMixin, offers_weights_if_taken
from manyclass._lib.sklearn import check_any_rows, check_sample_weight
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass._lib.weights import class_sizes, weights_in_use
from manyclass.decisions._simplex import check_prior
from manyclass.decisions.costs import check_cost, decide, decision_labels
from manyclass.decisions.priors import adjust_prior


def _has_probabilities(self) -> bool:
    base = self.estimator_ if hasattr(self, "estimator_") else self._base_estimator()
    return hasattr(base, "predict_proba")


class DecisionClassifier(LinkedEstimator, RoutingMixin, ClassifierMixin, BaseEstimator):
    """Classifier that decides by costs, for a population with other class frequencies.

    ``predict_proba`` returns the probabilities of ``estimator``, adjusted to the class
    frequencies ``target_prior``. ``predict`` returns the decisions with the least expected
    cost, which may differ from the most probable class.

    Parameters
    ----------
    estimator : classifier, default=None
        Needs ``predict_proba``, as :class:`~manyclass.CoupledClassifier` has it. ``None``
        means :class:`~sklearn.linear_model.LogisticRegression`. Put a fitted one into
        :class:`~sklearn.frozen.FrozenEstimator` to use it without fitting it again.
    cost : array-like of shape (k, d) or callable, default=None
        ``cost[i, j]`` is the cost of decision j when the truth is class i, in the order
        of ``classes_``; or a function of the number of classes that returns it. ``None``
        means that a wrong class costs 1: the decision is the most probable class.
    reject_cost : float or array-like of shape (k,), default=None
        Cost of a rejection; see :func:`decide`. ``None`` means that no row is rejected.
    rejected : object, default=None
        The label of rejected rows, and its default: see :func:`decide`.
    decisions : array-like of shape (d,), default=None
        Labels of the decisions. ``None`` means ``classes_``.
    target_prior : array-like of shape (k,) or "uniform", default=None
        Class frequencies of the rows to predict, in the order of ``classes_``; see
        :func:`estimate_prior`. ``None`` does not adjust the probabilities.
    trained_prior : array-like of shape (k,) or "uniform", default=None
        Class frequencies that the probabilities of ``estimator`` refer to. ``None`` means those of
        y, weighted by ``sample_weight``. Pass them for a frozen estimator fitted with other class
        frequencies than those of y, and "uniform" with ``class_weight="balanced"``.

    Attributes
    ----------
    estimator_ : fitted classifier
        Its probabilities are not adjusted.
    classes_ : ndarray of shape (k,)
        The class labels, in the order of the columns of ``predict_proba``.
    decisions_ : ndarray of shape (d,) or (d + 1,)
        Labels of the decisions; the last is ``rejected`` if there is a ``reject_cost``.
    cost_, reject_cost_
        The costs: an array of shape (k, d) or None, and ``reject_cost``.
    trained_prior_, target_prior_ : ndarray of shape (k,)
        The class frequencies; both are the same if nothing is adjusted.
    n_features_in_, feature_names_in_
        Number of features seen in ``fit``, and their names if X has them.

    See Also
    --------
    decide, adjust_prior, estimate_prior : The same for given probabilities.

    Notes
    -----
    ``score`` is the share of decisions that are the true label; it does not use the costs. A
    rejected row counts as wrong. scikit-learn's metrics do not accept None, the default label
    of rejected rows for bool labels: leave these rows out first.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass import DecisionClassifier, estimate_prior
    >>> X, y = load_wine(return_X_y=True)
    >>> model = DecisionClassifier(GaussianNB(), reject_cost=0.01).fit(X[::2], y[::2])
    >>> X[1::2][model.predict(X[1::2]) == -1].shape
    (6, 13)

    Rows from elsewhere, without the last class:

    >>> new = X[1::2][y[1::2] < 2]
    >>> p = model.estimator_.predict_proba(new)
    >>> prior = estimate_prior(p, model.trained_prior_)
    >>> prior.round(2)
    array([0.39, 0.6 , 0.01])
    >>> model = DecisionClassifier(FrozenEstimator(model.estimator_), target_prior=prior)
    >>> model.fit(X[::2], y[::2]).predict_proba(new).shape
    (65, 3)
    """

    cv = None  # nothing is split

    def __init__(
        self,
        estimator=None,
        *,
        cost: Any = None,
        reject_cost: ArrayLike | None = None,
        rejected: object = None,
        decisions: ArrayLike | None = None,
        target_prior: ArrayLike | str | None = None,
        trained_prior: ArrayLike | str | None = None,
    ):
        self.estimator = estimator
        self.cost = cost
        self.reject_cost = reject_cost
        self.rejected = rejected
        self.decisions = decisions
        self.target_prior = target_prior
        self.trained_prior = trained_prior

    @offers_weights_if_taken
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the estimator, and compute the class frequencies.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Training data, as the estimator takes it.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weights for the estimator, if its ``fit`` accepts them, and for the class frequencies.
            With metadata routing the estimator only gets them if it requested them.
        **fit_params : dict
            Further arguments for the estimator's ``fit``, by metadata routing if that is enabled.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            return self._fit(X, y, sample_weight, fit_params)

    def _fit(self, X, y, sample_weight, fit_params):
        base = self._base_estimator()
        if not hasattr(base, "predict_proba"):
            raise ValueError(
                f"{type(base).__name__} has no predict_proba, which decisions need. Wrap it in "
                "CoupledClassifier or CalibratedClassifierCV."
            )
        check_targets(y)
        X, y = indexable(check_any_rows(self, X, reset=True), column_or_1d(y, warn=True))
        weight = check_sample_weight(sample_weight, X)
        routed = self._route_fit(None if sample_weight is None else weight, fit_params)
        weight, passed = weights_in_use(routed.estimator.fit, X, weight)
        fitted = clone(base).fit(X, y, **passed)
        classes = np.asarray(fitted.classes_)
        if len(classes) < 2:
            raise ValueError(
                f"there is only one class, {quoted(classes[0])}, and nothing to decide. Pass "
                "samples of at least two classes."
            )
        trained = _prior(self.trained_prior, _count(y, classes, weight), "trained_prior")
        target = _prior(self.target_prior, trained, "target_prior")
        cost, decisions = self._plan(classes)
        # A trial: raises an error now if costs or frequencies are invalid.
        level = adjust_prior(np.full((1, len(classes)), 1 / len(classes)), trained, target)
        decide(level, cost, reject_cost=self.reject_cost)
        self.estimator_, self.classes_ = fitted, classes
        self.trained_prior_, self.target_prior_ = trained, target
        self.cost_, self.reject_cost_, self.decisions_ = cost, self.reject_cost, decisions
        return self

    def _plan(self, classes: NDArray) -> tuple[Floats | None, NDArray]:
        """Return the costs and the labels of the decisions."""
        k = len(classes)
        given = self.cost(k) if callable(self.cost) else self.cost
        cost = None if given is None else check_cost(given, k)
        d = k if cost is None else cost.shape[1]
        if self.decisions is None and d != k:
            raise ValueError(
                f"cost has columns for {d} decisions, but there are {k} classes: pass decisions, a "
                "label for each column."
            )
        labels = classes if self.decisions is None else self.decisions
        rejects = self.reject_cost is not None
        return cost, decision_labels(labels, d, rejects, self.rejected, "decisions")

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """Return class probabilities under the class frequencies ``target_prior_``.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
        """
        check_is_fitted(self, "estimator_")
        X = check_any_rows(self, X, reset=False)
        p = self.estimator_.predict_proba(X)
        if np.array_equal(self.trained_prior_, self.target_prior_):
            return p
        return adjust_prior(p, self.trained_prior_, self.target_prior_)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X):
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Return the decision of least expected cost for each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
            Labels out of ``decisions_``.
        """
        chosen = decide(self.predict_proba(X), self.cost_, reject_cost=self.reject_cost_)
        return self.decisions_[chosen]  # the last label, at -1, is for rejected rows

    def score(self, X, y, sample_weight=None):
        """Return the share of decisions that are the true label.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        float
        """
        decided, truth = indexable(self.predict(X), column_or_1d(y))
        if decided.dtype == object and self.classes_.dtype == np.bool_:
            # scikit-learn's metrics do not accept None among bool labels.
            decided, truth = decided == truth, np.ones(len(truth), dtype=np.bool_)
        return accuracy_score(truth, decided, sample_weight=sample_weight)

    def _base_estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        base = get_tags(self._base_estimator())
        tags.input_tags = base.input_tags
        tags.classifier_tags.multi_class = base.classifier_tags.multi_class
        return tags


def _count(y: NDArray, classes: NDArray, weight: Floats) -> Floats:
    """Return the total weight of each class."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y holds {quoted(unknown[0])}, which is none of the classes of the frozen estimator: "
            "leave such rows out, or fit the estimator again."
        )
    order = np.argsort(classes)
    places = order[np.searchsorted(classes, y, sorter=order)]
    return class_sizes(places, len(classes), weight)


def _prior(given, default: Floats, name: str) -> Floats:
    k = len(default)
    if isinstance(given, str):
        if given != "uniform":
            raise ValueError(f"{name} must be an array, 'uniform' or None, got {quoted(given)}.")
        return np.full(k, 1.0 / k)
    return check_prior(default if given is None else given, k, name)
