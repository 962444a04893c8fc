"""Learners that take ten classes, with more classes than that.

    python -m benchmarks limited-learners

q-ary class trees are compared with the rule of tabpfn-extensions' ManyClassClassifier, written from
its description, and with the learner fitted on all classes, where that is possible.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks.many_classes import part_of, warm_up, words
from manyclass import CoupledClassifier


class TenClasses(ClassifierMixin, BaseEstimator):
    """A stand-in for a model that takes ten classes: nearest class means, whitened."""

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


def mean_log_probability(learner, X, y, X_test, k: int, q: int = 10, times: int = 4):
    """Return probabilities by the rule of tabpfn-extensions' ManyClassClassifier.

    Written from its description: in each column, q - 1 classes have symbols of their own, and all
    others share the symbol "rest". Every class has a symbol of its own in ``times`` columns or
    more. Its score is the mean log-probability of its symbol over these columns.
    """
    rng = np.random.default_rng(0)
    sums, counts = np.zeros((len(X_test), k)), np.zeros(k)
    for _ in range(times):
        for chosen in np.array_split(rng.permutation(k), -(-k // (q - 1))):
            symbols = np.full(k, len(chosen))
            symbols[chosen] = np.arange(len(chosen))
            model = clone(learner).fit(X, symbols[y])
            p = np.maximum(model.predict_proba(X_test), 1e-12)
            sums[:, chosen] += np.log(p[:, : len(chosen)])
            counts[chosen] += 1
    scores = sums / counts
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def limited() -> list[list[str]]:
    """Compare q-ary trees with the rule of ManyClassClassifier and the native learner."""
    warnings.simplefilter("ignore")
    warm_up()
    sources = {"letter": lambda: part_of("letter", 2000, 0), "words": lambda: words(10, 2, 40)}
    sources["words "] = lambda: words(14, 2, 40)
    learners = (LogisticRegression(), ExtraTreesClassifier(50, random_state=0), TenClasses())
    rows = []
    for name, load in sources.items():
        X, X_test, y, y_test = load()
        k = int(y.max()) + 1
        for learner in learners:
            model = CoupledClassifier(learner, code="q-ary", random_state=0, cv=3).fit(X, y)
            losses = [log_loss(y_test, model.predict_proba(X_test), labels=range(k))]
            rule = mean_log_probability(learner, X, y, X_test, k)
            losses.append(log_loss(y_test, rule, labels=range(k)))
            cells = [f"{loss:.3f}" for loss in losses]
            if isinstance(learner, TenClasses):
                cells.append("none")
            else:
                p = clone(learner).fit(X, y).predict_proba(X_test)
                cells.append(f"{log_loss(y_test, np.maximum(p, 1e-15), labels=range(k)):.3f}")
            rows.append([name.strip(), str(k), type(learner).__name__, *cells])
            print(f"    {rows[-1]}", file=sys.stderr, flush=True)
    return rows


HEADER = ["set", "k", "learner", "log-loss, q-ary", "mean log-probability", "all classes"]
PENDING = {"limited-learners": (limited, HEADER)}
