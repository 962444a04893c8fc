"""Trained soft-max functions: training time, and log-loss compared with coupling."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.timing import interleave
from experiments import datasets
from manyclass import CoupledClassifier
from manyclass.combiners.softmax import SimplifiedSoftmax, Softmax
from manyclass.combiners.softmax_solver import own_columns

CODES = ("one-vs-one", "one-vs-rest", "sparse-random")
SETS = ("satimage", "segment", "letter")
N_TRAIN, REPEATS = 1500, 5
METHODS = {
    "wlw2 + temperature": {"combiner": "wlw2", "scaling": "temperature"},
    "one-vs-one, softmax": {"combiner": "softmax"},
    "one-vs-one, simplified": {"combiner": "softmax-simplified"},
    "one-vs-rest, softmax": {"combiner": "softmax", "code": "one-vs-rest"},
    "one-vs-rest, simplified": {"combiner": "softmax-simplified", "code": "one-vs-rest"},
}
# Duan et al. 2003, tables 1 and 4: training rows, and NLL of SMC1v1, SSMC1v1, SMC1va, SSMC1va.
PAPER = {
    "satimage": (1500, ("0.291±0.013", "0.276±0.011", "0.313±0.010", "0.302±0.012")),
    "waveform": (300, ("0.358±0.052", "0.345±0.023", "0.381±0.045", "0.366±0.020")),
}
GRID = {"C": [1.0, 10.0, 100.0], "gamma": [0.003, 0.01, 0.03, 0.1]}


class Recorder(SimplifiedSoftmax):
    """A combiner that keeps the out-of-sample margins it was fitted on."""

    def fit(self, values, y, code, sample_weight=None):
        self.seen = values, y, code, sample_weight
        return super().fit(values, y, code, sample_weight)


def splits(name: str, n_train: int, repeats: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield stratified, standardised splits: X_train, X_test, y_train, y_test."""
    data = datasets.load(name)
    for seed in range(repeats):
        X_train, X_test, y_train, y_test = train_test_split(
            data.X, data.y, train_size=n_train, stratify=data.y, random_state=seed
        )
        scaler = StandardScaler().fit(X_train)
        yield scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def learning() -> list[list[str]]:
    """Time training on 4000 rows of letter: with C given, without penalty, with a search for C."""
    X, _, y, _ = next(splits("letter", 4000, 1))
    rows = []
    for code in CODES:
        model = CoupledClassifier(SVC(C=10), code=code, combiner=Recorder(), random_state=0)
        recorder = model.fit(X, y).combiner_
        combiners = {"C = 1": Softmax(C=1.0), "simplified": SimplifiedSoftmax(), "C": Softmax()}
        timings = interleave(
            {name: partial(combiner.fit, *recorder.seen) for name, combiner in combiners.items()},
            rounds=3,
            warm_up=False,
        )
        rows.append(
            [
                f"{code}, {np.count_nonzero(own_columns(recorder.code_)) + 26} weights",
                *(f"{timings[name].median:.2f}" for name in combiners),
                f"{combiners['C'].C_:g}",
                f"±{100 * max(timing.spread for timing in timings.values()):.0f} %",
            ]
        )
        print("   ", rows[-1], file=sys.stderr, flush=True)
    return rows


def losses(name: str, n_train: int, svc, repeats: int = REPEATS) -> dict[str, list[float]]:
    """Return the log-loss of every method on every split, with the same machines."""
    found: dict[str, list[float]] = {method: [] for method in METHODS}
    for X_train, X_test, y_train, y_test in splits(name, n_train, repeats):
        chosen = clone(svc).fit(X_train, y_train)
        machine = clone(getattr(chosen, "best_estimator_", chosen))
        for method, options in METHODS.items():
            model = CoupledClassifier(machine, **options).fit(X_train, y_train)
            p = model.predict_proba(X_test)
            found[method].append(log_loss(y_test, p, labels=model.classes_))
    return found


def quality() -> list[list[str]]:
    """Compare the mean log-loss with that of coupling with a temperature, with the same SVMs."""
    rows = []
    for name in SETS:
        found = losses(name, N_TRAIN, SVC(C=10))
        rows.append([f"{name} ({N_TRAIN})", *(f"{np.mean(loss):.3f}" for loss in found.values())])
        print("   ", rows[-1], file=sys.stderr, flush=True)
    return rows


def paper() -> list[list[str]]:
    """Compare with Duan et al. (2003) at their training sizes; C and gamma by 5-fold error."""
    rows = []
    for name, (n_train, published) in PAPER.items():
        found = losses(name, n_train, GridSearchCV(SVC(), GRID, cv=5))
        ours = [f"{np.mean(loss):.3f}±{np.std(loss):.3f}" for loss in found.values()]
        rows.append([f"{name} ({n_train}), published", "", *published])
        rows.append([f"{name} ({n_train}), ours", *ours])
        print("   ", rows[-1], file=sys.stderr, flush=True)
    return rows


TABLES = {
    "softmax-learning": (
        learning,
        ["letter, 4000 rows, seconds", "C = 1", "simplified", "C by search", "chosen C", "spread"],
    ),
    "softmax-quality": (quality, ["log-loss, mean of 5 splits (training rows)", *METHODS]),
    "softmax-paper": (paper, ["log-loss, mean of 5 splits (training rows)", *METHODS]),
}
