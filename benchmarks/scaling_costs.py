"""What calibration and structured scaling add to a fit and to a prediction, in processor time.

python -m benchmarks scaling-fit scaling-predict
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC

from benchmarks.many_classes import words
from benchmarks.quality.cases import both_parts, prepare
from benchmarks.svm_models import is_available
from benchmarks.timing import interleave, touch_memory
from experiments import datasets
from manyclass import CoupledSVC

PARAMS = {"C": 10, "gamma": "scale"}


class Timed(CoupledSVC):
    """Adds up the processor seconds of the steps after the bank."""

    def _fit_calibration(self, *args):
        self._measure("calibration", super()._fit_calibration, *args)

    def _fit_scaling(self, *args):
        self._measure("scaling", super()._fit_scaling, *args)

    def _measure(self, name, step, *args):
        start = time.process_time()
        step(*args)
        self.__dict__.setdefault("seconds_", {})[name] = time.process_time() - start


def simulated(n: int, k: int):
    """Gaussian classes that overlap."""
    options = {"n_informative": 8, "n_clusters_per_class": 1, "flip_y": 0.02, "random_state": 0}
    return make_classification(n, 12, n_classes=k, **options)


def fits() -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    """Yield names, numbers of rounds and data."""
    yield "Gaussian classes", 30, *simulated(100, 6)
    yield "Gaussian classes", 10, *simulated(500, 7)
    if is_available("letter"):
        X, _, y, _ = datasets.load("letter").train_test()
        yield "letter", 2, X, y
        X, _, y, _ = words(10, 2, 40)
        yield "words of letters", 1, X, y


def shares_of_a_fit() -> list[list[str]]:
    """Return the times of whole fits, and the shares of calibration and scaling."""
    rows = []
    for name, rounds, X, y in fits():
        measured = []
        for _ in range(rounds + 1):  # the first compiles
            touch_memory()
            model, start = Timed(**PARAMS), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            measured.append((time.process_time() - start, *model.seconds_.values()))
        whole, calibration, scaling = np.median(measured[1:], axis=0)
        size = [str(len(y)), str(len(np.unique(y))), f"{1000 * whole:.0f}"]
        rows.append([name, *size, f"{calibration / whole:.1%}", f"{scaling / whole:.1%}"])
    return rows


def predictions() -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield names, training data and rows to predict."""
    X, y = load_digits(return_X_y=True)
    yield "digits", X[::2], y[::2], X[1::2]
    for name, most in (("segment", 500), ("letter", None)):
        if is_available(name):
            X, X_test, y, _ = prepare(name, both_parts(name), standardised=True)
            yield name, X[:most], y[:most], X_test


def costs_of_predictions() -> list[list[str]]:
    """Compare predictions with and without scaling, and one row with SVC(probability=True)."""
    rows = []
    for name, X, y, X_test in predictions():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaled = CoupledSVC(**PARAMS).fit(X, y)
            theirs = SVC(probability=True, **PARAMS).fit(X, y)
        plain = copy.copy(scaled)
        plain.scaling_ = None
        clock = time.process_time
        many = interleave(
            {
                "with": partial(scaled.predict_proba, X_test),
                "without": partial(plain.predict_proba, X_test),
            },
            rounds=15,
            clock=clock,
        )
        one = interleave(
            {
                "ours": partial(scaled.predict_proba, X_test[:1]),
                "theirs": partial(theirs.predict_proba, X_test[:1]),
            },
            rounds=300,
            clock=clock,
        )
        ratio = many["with"].best / many["without"].best
        times = one["ours"].median, one["theirs"].median
        alone = [f"{1000 * t:.2f}" for t in times]
        rows.append([name, str(len(X_test)), f"{ratio:.2f}", *alone, f"{times[0] / times[1]:.2f}"])
    return rows


TABLES = {
    "scaling-fit": (
        shares_of_a_fit,
        ["data", "rows", "classes", "fit ms", "calibration", "scaling, with its evidence"],
    ),
    "scaling-predict": (
        costs_of_predictions,
        [
            "data",
            "rows",
            "with / without scaling",
            "one row, CoupledSVC ms",
            "one row, SVC(probability=True) ms",
            "ours / theirs",
        ],
    ),
}
