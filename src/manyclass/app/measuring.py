"""One candidate on one fold: fit, predict, measure."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from manyclass.app.leaderboard import FIT, PREDICT
from manyclass.app.report import one_line
from manyclass.classifier import CoupledBase
from manyclass.metrics import classwise_calibration_error
from manyclass.scores.folds import Fold

Floats = NDArray[np.float64]
Metric = Callable[[NDArray[np.intp], Floats], float]


METRICS: dict[str, Metric] = {
    "log-loss": lambda y, p: float(log_loss(y, p, labels=np.arange(p.shape[1]))),
    "Brier": lambda y, p: float(brier_score_loss(y, p, labels=np.arange(p.shape[1]))),
    "error": lambda y, p: float(np.mean(p.argmax(axis=1) != y)),
    "calibration": lambda y, p: classwise_calibration_error(y, p, classes=np.arange(p.shape[1])),
}
"""Metrics by the names of their columns. For all of them, less is better."""


class Measured(NamedTuple):
    """The results of a candidate on a fold."""

    values: dict[str, float]
    proba: Floats
    incoherence: Floats | None
    code: NDArray[np.int8] | None
    calibration: tuple[str, ...]
    """What a coupled classifier calibrated, in words."""
    warnings: tuple[str, ...]


def make_pipeline(columns: Any, classifier: Any) -> Pipeline:
    """Return a pipeline that converts the columns, dense if the classifier needs that."""
    columns = clone(columns)
    if not get_tags(classifier).input_tags.sparse:
        columns.set_params(sparse_threshold=0.0)
    return Pipeline([("columns", columns), ("classifier", classifier)])


def compile_kernels(classifier: Any) -> None:
    """Compile the kernels of a coupled classifier before its folds are timed."""
    if not isinstance(classifier, CoupledBase):
        return
    X, y = make_blobs([6] * 4, 3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            clone(classifier).fit(X, y).predict_proba(X)
        # It may need other data. Then the first fold includes the compilation.
        except Exception:
            return


def measure(
    pipeline: Pipeline,
    X: Any,
    y: NDArray[np.intp],
    fold: Fold,
    n_classes: int,
    metrics: tuple[str, ...],
) -> Measured | str:
    """Fit on the training rows and measure on the test rows, in one thread.

    An exception of the classifier is a result, not an error: its text is returned.
    """
    train, test = fold
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always", UserWarning)
        try:
            start = time.perf_counter()
            fitted = clone(pipeline).fit(X.iloc[train], y[train])
            between = time.perf_counter()
            p = _probabilities(fitted, X.iloc[test], n_classes)
            end = time.perf_counter()
            values = {name: METRICS[name](y[test], p) for name in metrics}
            incoherence, code, calibration = _beneath(fitted, X.iloc[test])
        except Exception as error:
            return one_line(f"{type(error).__name__}: {error}")
    values |= {FIT: between - start, PREDICT: end - between}
    said = dict.fromkeys(
        one_line(str(w.message)) for w in caught if issubclass(w.category, UserWarning)
    )
    return Measured(values, p, incoherence, code, calibration, tuple(said))


def _probabilities(fitted: Pipeline, X: Any, n_classes: int) -> Floats:
    if not hasattr(fitted, "predict_proba"):
        raise ValueError("it has no predict_proba, and this compares probabilities")
    p = np.asarray(fitted.predict_proba(X), dtype=np.float64)
    if p.shape != (len(X), n_classes):
        raise ValueError(f"predict_proba has shape {p.shape}, not {(len(X), n_classes)}")
    return p


def _beneath(
    fitted: Pipeline, X: Any
) -> tuple[Floats | None, NDArray[np.int8] | None, tuple[str, ...]]:
    """Return the incoherence, the code and the calibration of a coupled classifier."""
    classifier = fitted[-1]
    if not isinstance(classifier, CoupledBase):
        return None, None, ()
    calibration = tuple(str(classifier.calibration_report()).splitlines())
    if not hasattr(classifier, "incoherence"):
        return None, classifier.code_, calibration
    return classifier.incoherence(fitted[:-1].transform(X)), classifier.code_, calibration
