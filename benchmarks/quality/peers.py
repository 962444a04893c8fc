"""The alternatives that a user has today, with the computation they share done once.

A peer is an estimator with ``predict_proba``, or such an estimator followed by a calibrator that is
fitted on its cross-validated probabilities. ``CalibratedClassifierCV`` is scikit-learn's own; it
gets the learner as a :class:`Shared`, which remembers models that were fitted to the same rows.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metaestimators import available_if

FOLDS = 5
"""Folds of all cross-validation, scikit-learn's default; fewer where a class has fewer rows."""
SMS, VENN_ABERS = "+sms", "+venn-abers"
METHODS = ("sigmoid", "isotonic", "temperature")
OPTIONAL = {SMS: "probmetrics", VENN_ABERS: "venn_abers"}
"""The packages of the calibrators."""

LEARNERS: dict[str, Any] = {
    "logistic": LogisticRegression(max_iter=1000),
    "linear-svc": LinearSVC(random_state=0),
    "naive-bayes": GaussianNB(),
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(100, random_state=0),
    "neighbours": KNeighborsClassifier(),
    "lda": LinearDiscriminantAnalysis(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "boosting": HistGradientBoostingClassifier(max_iter=50, random_state=0),
}


@dataclass
class Store:
    """Fitted models and their outputs, by the bytes of the data they came from."""

    known: dict[Any, tuple[Any, float]] = field(default_factory=dict)
    saved: float = 0.0
    """Seconds that recalled results took when they were computed."""

    def __deepcopy__(self, memo: Any) -> Store:
        return self  # clones of a Shared use the same store

    def get(self, key: Any, compute: Callable[[], Any]) -> Any:
        """Return the result of ``compute``, from an earlier call if there was one."""
        if key in self.known:
            result, seconds = self.known[key]
            self.saved += seconds
            return result
        start, saved = self.clock(), self.saved
        result = compute()
        self.known[key] = result, self.clock() - start
        assert self.saved >= saved
        return result

    def clock(self) -> float:
        """Return a time that also counts what recalled results took."""
        return time.perf_counter() + self.saved


def _digest(*arrays: NDArray) -> bytes:
    state = blake2b(digest_size=16)
    for array in arrays:
        state.update(str((array.shape, array.dtype)).encode())
        state.update(np.ascontiguousarray(array).data)
    return state.digest()


def _learner_has(name: str) -> Callable[[Any], bool]:
    return lambda shared: hasattr(shared.learner, name)


class Shared(ClassifierMixin, BaseEstimator):
    """A learner that recalls the model of the same rows, and its outputs for the same rows."""

    def __init__(self, learner, store):
        self.learner = learner
        self.store = store

    def fit(self, X, y):
        self.key_ = repr(self.learner), _digest(X, y)
        self.model_ = self.store.get(self.key_, lambda: clone(self.learner).fit(X, y))
        self.classes_, self.n_features_in_ = self.model_.classes_, X.shape[1]
        return self

    @available_if(_learner_has("decision_function"))
    def decision_function(self, X):
        return self._output("decision_function", X)

    @available_if(_learner_has("predict_proba"))
    def predict_proba(self, X):
        return self._output("predict_proba", X)

    def predict(self, X):
        return self._output("predict", X)

    def _output(self, method, X):
        key = self.key_, method, _digest(X)
        return self.store.get(key, lambda: getattr(self.model_, method)(X))


class Calibrated(ClassifierMixin, BaseEstimator):
    """CalibratedClassifierCV, with fewer folds where a class has fewer rows than folds."""

    def __init__(self, learner, method, ensemble):
        self.learner = learner
        self.method = method
        self.ensemble = ensemble

    def fit(self, X, y):
        self.model_ = CalibratedClassifierCV(
            self.learner, method=self.method, ensemble=self.ensemble, cv=folds(y)
        ).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def folds(y: NDArray) -> int:
    """Return the number of folds: every class has a row in each. ValueError if fewer than two."""
    rarest = int(np.bincount(y).min())
    if rarest < 2:
        raise ValueError("a class has one row only: no cross-validation")
    return min(FOLDS, rarest)


@dataclass
class Peer:
    """An estimator with probabilities, and the names of the calibrators that may follow it."""

    model: Any
    then: tuple[str, ...] = ()


def svm_peers(C: float) -> dict[str, Peer]:
    """Return the peers of ``CoupledSVC(C=C)``."""
    then = SMS, VENN_ABERS
    store = Store()
    probability = SVC(C=C, gamma="scale", probability=True, random_state=0)
    peers = {"probability": Peer(Shared(probability, store), then)}
    return peers | _calibrated(Shared(SVC(C=C, gamma="scale"), store), dict.fromkeys(METHODS, then))


def learner_peers(name: str) -> dict[str, Peer]:
    """Return the peers of ``CoupledClassifier`` around a learner."""
    learner = Shared(LEARNERS[name], Store())
    peers = _calibrated(learner, {"sigmoid": (SMS,), "isotonic": (SMS,)}, ensemble_then=False)
    if hasattr(learner, "predict_proba"):
        peers = {"itself": Peer(learner, (SMS, VENN_ABERS))} | peers
    return peers


def _calibrated(
    learner: Shared, then: dict[str, tuple[str, ...]], ensemble_then: bool = True
) -> dict[str, Peer]:
    peers = {}
    for method, ensemble in product(METHODS, (False, True)):
        after = then.get(method, ()) if ensemble_then or not ensemble else ()
        name = f"{method}-ensemble" if ensemble else method
        peers[name] = Peer(Calibrated(learner, method, ensemble), after)
    return peers


@cache
def installed(calibrator: str) -> bool:
    """Whether the package of a calibrator is there; if not, a line says so, once."""
    package = OPTIONAL[calibrator]
    if find_spec(package) is None:
        print(f"without {calibrator[1:]}: {package} is not installed", file=sys.stderr, flush=True)
        return False
    return True


def names_of(peers: dict[str, Peer]) -> list[str]:
    """Return the names of all models, the followed ones included."""
    return [
        name + after
        for name, peer in peers.items()
        for after in ("", *filter(installed, peer.then))
    ]


@dataclass
class Outcome:
    """Probabilities of a model for the test rows, or what went wrong."""

    name: str
    p: NDArray[np.float64] | None
    seconds: float
    error: str = ""


def outcomes(
    peers: dict[str, Peer], wanted: set[str], X: NDArray, y: NDArray, X_test: NDArray
) -> Iterator[Outcome]:
    """Fit the wanted models to X, y and yield their probabilities for X_test."""
    for name, peer in peers.items():
        then = [after for after in peer.then if name + after in wanted and installed(after)]
        if then or name in wanted:
            for outcome in _of_peer(name, peer, then, X, y, X_test):
                if outcome.name in wanted:
                    yield outcome


def _of_peer(
    name: str, peer: Peer, then: list[str], X: NDArray, y: NDArray, X_test: NDArray
) -> Iterator[Outcome]:
    clock = _clock_of(peer.model)
    try:
        start = clock()
        model = clone(peer.model).fit(X, y)
        seconds = clock() - start
        p = model.predict_proba(X_test)
        yield Outcome(name, p, seconds)
        if not then:
            return
        start = clock()
        p_cv = cross_validated(peer.model, X, y)
        seconds += clock() - start
    except Exception as error:
        for failed in (name, *(name + after for after in then)):
            yield Outcome(failed, None, np.nan, f"{type(error).__name__}: {error}")
        return
    for after in then:
        start = time.perf_counter()
        try:
            p_after = CALIBRATORS[after](p_cv, y, p)
        except Exception as error:
            yield Outcome(name + after, None, np.nan, f"{type(error).__name__}: {error}")
            continue
        yield Outcome(name + after, p_after, seconds + time.perf_counter() - start)


def _clock_of(model: Any) -> Callable[[], float]:
    shared = model if isinstance(model, Shared) else model.learner
    return shared.store.clock


def cross_validated(model: Any, X: NDArray, y: NDArray) -> NDArray[np.float64]:
    """Return probabilities of rows by models that were not fitted to them."""
    p = np.empty((len(y), int(y.max()) + 1))
    splits = StratifiedKFold(folds(y), shuffle=True, random_state=0).split(X, y)
    for train, test in splits:
        p[test] = clone(model).fit(X[train], y[train]).predict_proba(X[test])
    return p


def _sms(p: NDArray, y: NDArray, p_new: NDArray) -> NDArray:
    from probmetrics.calibrators import SMSCalibrator

    return SMSCalibrator(penalty="ridge", opt="bfgs").fit(p, y).predict_proba(p_new)


def _venn_abers(p: NDArray, y: NDArray, p_new: NDArray) -> NDArray:
    """Return one-vs-one Venn-Abers probabilities; zeros get a little, as 0 / 0 is NaN there."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        from venn_abers.venn_abers import predict_proba_prefitted_va

        least = np.finfo(np.float64).eps
        p, p_new = np.maximum(p, least), np.maximum(p_new, least)
        return predict_proba_prefitted_va(p, y, p_new, va_tpe="one_vs_one")[0]


CALIBRATORS = {SMS: _sms, VENN_ABERS: _venn_abers}
