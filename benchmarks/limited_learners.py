"""Learners that take ten classes, with more classes than that.

    python -m benchmarks limited-learners

q-ary class trees are compared with the rule of tabpfn-extensions' ManyClassClassifier, written from
its description, and with the learner fitted on all classes, where that is possible.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks.many_classes import part_of, warm_up, words
from manyclass import CoupledClassifier


class TenClasses(ClassifierMixin, BaseEstimator):
    """A stand-in for a model that takes ten classes: Gaussians with shared variances."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if len(self.classes_) > 10:
            raise ValueError("this model takes at most 10 classes.")
        self.means_ = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        residuals = X - self.means_[np.searchsorted(self.classes_, y)]
        self.scale_ = np.sqrt((residuals**2).mean(axis=0) + 1e-3)
        return self

    def predict_proba(self, X):
        away = ((X[:, None, :] - self.means_) / self.scale_) ** 2
        logits = -0.5 * away.sum(axis=2)
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def mean_log_probability(learner, X, y, X_test, k: int, times: int, q: int = 10):
    """Return probabilities by the rule of tabpfn-extensions' ManyClassClassifier.

    Written from its description: in each column, q - 1 classes have symbols of their own, and all
    others share the symbol "rest". Every class has a symbol of its own in ``times`` columns. Its
    score is the mean log-probability of its symbol over these columns.
    """
    rng = np.random.default_rng(0)
    sums = np.zeros((len(X_test), k))
    for _ in range(times):
        for chosen in np.array_split(rng.permutation(k), -(-k // (q - 1))):
            symbols = np.full(k, len(chosen))
            symbols[chosen] = np.arange(len(chosen))
            model = clone(learner).fit(X, symbols[y])
            p = np.maximum(model.predict_proba(X_test), 1e-12)
            sums[:, chosen] += np.log(p[:, : len(chosen)]) / times
    return softmax(sums, axis=1)


class Case(NamedTuple):
    """A set of data, and what is affordable there."""

    name: str
    load: Callable
    times: int = 4
    """How often the rule gives each class a symbol of its own. At its default settings this is
    about 3 for 26 classes, and 1 from 100 classes on."""
    memory: bool = True
    """Whether a forest of all classes fits into memory: it stores every class in every leaf."""


CASES = (
    Case("letter", lambda: part_of("letter", 2000, 0)),
    Case("words", lambda: words(10, 2, 40)),
    Case("words", lambda: words(14, 2, 40)),
    Case("words", lambda: words(10, 3, 20), times=1, memory=False),
)
LEARNERS = (TenClasses(), LogisticRegression(), ExtraTreesClassifier(20, random_state=0))


def limited() -> list[list[str]]:
    """Compare q-ary trees with the rule of ManyClassClassifier and the learner itself."""
    warnings.simplefilter("ignore")
    warm_up()
    rows = []
    for case in CASES:
        X, X_test, y, y_test = case.load()
        k = int(y.max()) + 1

        def loss(p, y_test=y_test, k=k):
            return log_loss(y_test, np.maximum(p, 1e-15), labels=range(k))

        for learner in LEARNERS:
            start = time.process_time()
            model = CoupledClassifier(learner, code="q-ary", random_state=0, cv=3).fit(X, y)
            ours, ours_s = loss(model.predict_proba(X_test)), time.process_time() - start
            start = time.process_time()
            theirs = loss(mean_log_probability(learner, X, y, X_test, k, case.times))
            theirs_s = time.process_time() - start
            alone = ""
            takes_all = not isinstance(learner, TenClasses)
            if takes_all and (case.memory or not isinstance(learner, ExtraTreesClassifier)):
                alone = f"{loss(clone(learner).fit(X, y).predict_proba(X_test)):.3f}"
            cells = [f"{ours:.3f}", f"{theirs:.3f}", alone, f"{ours_s:.0f}", f"{theirs_s:.0f}"]
            rows.append([case.name, str(k), type(learner).__name__, *cells])
            print(f"    {rows[-1]}", file=sys.stderr, flush=True)
    return rows


HEADER = ["set", "k", "learner", "log-loss, q-ary", "log-loss, mean log-probability"]
HEADER += ["log-loss, all classes at once", "s, q-ary", "s, mean log-probability"]
TABLES = {"limited-learners": (limited, HEADER)}
