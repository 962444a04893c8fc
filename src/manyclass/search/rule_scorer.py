"""RuleScorer: one search for all rules, which scores every rule from the same fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import quoted
from manyclass.banks import MARGIN
from manyclass.classifier import CoupledBase
from manyclass.combiners.base import Combiner, own_copy, resolve
from manyclass.combiners.coupling.base import warn_unconverged
from manyclass.search.choices import Results, SmallestC

Rule = str | Combiner


class RuleScorer(BaseEstimator):
    """Scores of many coupling rules from one fitted classifier.

    Pass it as ``scoring`` to a search over a :class:`~manyclass.CoupledClassifier` or
    :class:`~manyclass.CoupledSVC`, alone or at the end of a pipeline. For each candidate and fold
    the binary models are fitted and evaluated once, and every rule combines their scores, as in
    section 6.2 of Wu et al. The scores are exactly those of a classifier fitted with that rule.

    Parameters
    ----------
    rules : sequence of str or Combiner, or dict, default=("ht", "wlw1", "wlw2", "vote")
        Names or objects. With a dict you choose the labels of the rules. Combiners that learn
        from the training scores need their own fit and are not accepted.
    metrics : sequence of {"accuracy", "neg_log_loss"}, default=both
        Decoders give no probabilities, and so only have an accuracy.

    Notes
    -----
    The result is a dict with an entry such as "ht_accuracy" for every rule and metric; greater is
    better. The log-loss needs a classifier with ``scaling=None``, because a scaling is
    fitted for one rule. The accuracy does not depend on it. scikit-learn's log-loss replaces the
    probability 0, of a class without training samples, by the float64 epsilon.

    Label decoders take margins. They can be scored together with coupling rules if the binary
    models have margins and the classifier calibrates them, as for :class:`~sklearn.svm.SVC`.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", NIPS 2003, section 6.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> from manyclass.search import RuleScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVC(scaling=None).fit(X[::2], y[::2])
    >>> scores = RuleScorer(["ht", "wlw2"], ["neg_log_loss"])(model, X[1::2], y[1::2])
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'ht_neg_log_loss': -0.152, 'wlw2_neg_log_loss': -0.136}
    """

    __metadata_request__score: ClassVar = {"estimator": UNUSED}

    def __init__(
        self,
        rules: Sequence[Rule] | Mapping[str, Rule] = ("ht", "wlw1", "wlw2", "vote"),
        metrics: Sequence[str] = ("accuracy", "neg_log_loss"),
    ):
        self.rules = rules
        self.metrics = metrics

    def __call__(self, estimator, X, y, sample_weight=None) -> dict[str, float]:
        """Return the scores; see :meth:`score`."""
        return self.score(estimator, X, y, sample_weight)

    def score(self, estimator, X, y, sample_weight=None) -> dict[str, float]:
        """Return the score of every rule and metric.

        Parameters
        ----------
        estimator : fitted CoupledClassifier or CoupledSVC, or a Pipeline that ends in one
        X : array-like or sparse matrix of n rows
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        dict of str to float
        """
        rules = {label: own_copy(rule) for label, rule in self.labelled().items()}
        metrics = self._chosen_metrics()
        model, X = _last_step(estimator, X)
        for rule in rules.values():
            _check_rule(rule, model, metrics)
        answers = _combine_all(model, X, list(rules.values()))
        return {
            f"{label}_{metric}": float(METRICS[metric](y, values, model.classes_, sample_weight))
            for (label, rule), values in zip(rules.items(), answers, strict=True)
            for metric in metrics
            if rule.gives_probabilities or metric == "accuracy"
        }

    def labelled(self) -> dict[str, Rule]:
        """Return the rules by their labels.

        Returns
        -------
        dict of str to str or Combiner
        """
        if isinstance(self.rules, str):
            name = quoted(self.rules)
            raise ValueError(f"rules={name} is a string: pass a list, [{name}].")
        if isinstance(self.rules, Mapping):
            rules = dict(self.rules)
        else:
            keys = [resolve(rule).key for rule in self.rules]
            twice = [key for key in keys if keys.count(key) > 1]
            if twice:
                remedy = "pass a dict with different labels"
                raise ValueError(f"rules holds {twice[0]!r} more than once: {remedy}.")
            rules = dict(zip(keys, self.rules, strict=True))
        if not rules:
            raise ValueError("rules is empty: name at least one coupling rule, such as 'wlw2'.")
        return rules

    def _chosen_metrics(self) -> list[str]:
        chosen = [self.metrics] if isinstance(self.metrics, str) else list(self.metrics)
        unknown = [metric for metric in chosen if metric not in METRICS]
        if unknown or not chosen:
            raise ValueError(f"metrics={quoted(self.metrics)}: choose among {', '.join(METRICS)}.")
        return chosen


def _accuracy(y, values: Floats, classes: NDArray, sample_weight) -> float:
    return accuracy_score(y, classes[values.argmax(axis=1)], sample_weight=sample_weight)


def _neg_log_loss(y, p: Floats, classes: NDArray, sample_weight) -> float:
    labels = np.union1d(classes, y)
    if len(labels) > len(classes):  # some classes have no training samples
        known, p = p, np.zeros((len(p), len(labels)))
        p[:, np.searchsorted(labels, classes)] = known
    return -log_loss(y, p, labels=labels, sample_weight=sample_weight)


METRICS: dict[str, Callable[[Any, Floats, NDArray, Any], float]] = {
    "accuracy": _accuracy,
    "neg_log_loss": _neg_log_loss,
}


def _last_step(estimator, X) -> tuple[CoupledBase, Any]:
    """Return the coupled classifier, and X transformed by the steps before it."""
    while isinstance(estimator, Pipeline):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator[-1]
    if not isinstance(estimator, CoupledBase):
        raise ValueError(
            f"RuleScorer got {type(estimator).__name__}: it scores CoupledClassifier and "
            "CoupledSVC, alone or as the last step of a Pipeline."
        )
    check_is_fitted(estimator)
    return estimator, X


def _check_rule(rule: Combiner, model: CoupledBase, metrics: list[str]) -> None:
    """Raise a ``ValueError`` if the scores of this rule do not follow from this model."""
    own = model.combiner_
    if model.scaling is not None and len(model.classes_) > 2 and "neg_log_loss" in metrics:
        raise ValueError(
            f"the classifier has a scaling that was fitted for {own.key!r}, not for "
            f"{rule.key!r}. Search with scaling=None, or with metrics=['accuracy'] alone."
        )
    if rule.learns or rule.measure() is not None:
        raise ValueError(
            f"rule {rule.key!r} learns from the training set: search it by itself, with "
            f"combiner={rule.key!r}."
        )
    if "accuracy" not in metrics and not rule.gives_probabilities:
        raise ValueError(
            f"rule {rule.key!r} gives no probabilities: add 'accuracy' to the metrics, or leave "
            "the rule out."
        )
    if rule.takes == "probabilities" != own.takes:
        raise ValueError(
            f"rule {rule.key!r} takes probabilities, but with the combiner {own.key!r} the "
            f"classifier has none: search with combiner={rule.key!r}."
        )
    if rule.takes == "scores" != own.takes and model.bank_.kind != MARGIN:
        raise ValueError(
            f"rule {rule.key!r} takes margins, but with the combiner {own.key!r} the scores of the "
            f"binary models are a {model.bank_.kind}: search the rule by itself, with "
            f"combiner={rule.key!r}, or use calibration='sigmoid'."
        )
    rule.check_code(model.code_)


def _combine_all(model: CoupledBase, X, rules: list[Combiner]) -> list[Floats]:
    """Return the values of every rule for X; the scores are computed once."""
    uncalibrated = copy(model)
    uncalibrated.calibration_ = None
    converged: list[list[NDArray[np.bool_]]] = [[] for _ in rules]

    def of_block(scores: Floats, rows) -> Floats:
        calibration = model.calibration_
        r = scores if calibration is None else calibration.transform(scores, np.empty_like(scores))
        values, jobs = {"scores": scores, "probabilities": r}, model.n_jobs
        combined = []
        for rule, flags in zip(rules, converged, strict=True):
            given = values[rule.takes]
            answer = rule.combine(given, model.code_, model.weights_, n_jobs=jobs)
            flags.append(answer.converged)
            combined.append(answer.values)
        return np.hstack(combined)

    values = uncalibrated._by_blocks(X, of_block, len(rules) * len(model.classes_))
    for rule, flags in zip(rules, converged, strict=True):
        warn_unconverged(rule, np.concatenate(flags))
    return np.hsplit(values, len(rules))


def best_per_rule(
    search, rules: Iterable[str] | None = None, choose: Callable[[Results], int] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the best parameters of every rule.

    Parameters
    ----------
    search : fitted search with ``scoring=RuleScorer(...)``
        Its ``refit`` does not matter, and may be False.
    rules : iterable of str, optional
        Labels of the rules; all those of the scorer when omitted.
    choose : callable, optional
        :class:`SmallestC`, the default, :class:`SmoothestBest`, or any other function that
        a search accepts as ``refit``. It gets the scores of each rule under the names
        "accuracy" and "neg_log_loss".

    Returns
    -------
    dict of str to dict

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", NIPS 2003, section 6.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from manyclass import CoupledSVC
    >>> from manyclass.search import RuleScorer, best_per_rule
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10], "gamma": [0.1, 1]}
    >>> model = CoupledSVC(scaling=None)
    >>> search = GridSearchCV(model, grid, scoring=RuleScorer(["ht", "vote"]), refit=False)
    >>> best_per_rule(search.fit(X, y))
    {'ht': {'C': 1, 'gamma': 0.1}, 'vote': {'C': 1, 'gamma': 0.1}}
    """
    check_is_fitted(search, "cv_results_")
    choose = SmallestC() if choose is None else choose
    if isinstance(rules, str):
        rules = [rules]
    labels = _rules_of(search) if rules is None else rules
    results = search.cv_results_
    return {label: dict(results["params"][choose(_results_of(results, label))]) for label in labels}


def estimator_per_rule(
    search, rules: Iterable[str] | None = None, choose: Callable[[Results], int] | None = None
) -> dict[str, Any]:
    """Return for every rule an unfitted estimator with that rule and its best parameters.

    Parameters
    ----------
    search : fitted search with ``scoring=RuleScorer(...)``
    rules, choose
        As in :func:`best_per_rule`.

    Returns
    -------
    dict of str to estimator

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from manyclass import CoupledSVC
    >>> from manyclass.search import RuleScorer, estimator_per_rule
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVC(scaling=None)
    >>> search = GridSearchCV(model, {"C": [1, 10]}, scoring=RuleScorer(["ht"]), refit=False)
    >>> estimator_per_rule(search.fit(X, y))
    {'ht': CoupledSVC(C=1, combiner='ht', scaling=None)}
    """
    best = best_per_rule(search, rules, choose)
    given = _rules_of(search)
    prefix, estimator = "", search.estimator
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return {
        label: clone(search.estimator).set_params(
            **clone({**params, f"{prefix}combiner": given[label]}, safe=False)
        )
        for label, params in best.items()
    }


def _rules_of(search) -> dict[str, Rule]:
    scoring = search.scoring
    if not isinstance(scoring, RuleScorer):
        raise ValueError(f"the search has scoring={scoring!r}: pass scoring=RuleScorer(...).")
    return scoring.labelled()


def _results_of(cv_results: Results, label: str) -> dict[str, Any]:
    """Return the results of one rule, under the names of a search with this rule only."""
    infix = f"_test_{label}_"
    if not any(f"mean{infix}{metric}" in cv_results for metric in METRICS):
        known = [key[10:] for key in cv_results if key.startswith("mean_test_")]
        raise ValueError(
            f"the search has no scores of the rule {quoted(label)}, only {', '.join(known)}. If "
            "all scores failed, the warnings of the search say why; error_score='raise' stops at "
            "the first failure."
        )
    return {
        key if key.startswith("param_") else key.replace(infix, "_test_", 1): column
        for key, column in cv_results.items()
    }
