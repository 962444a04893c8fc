"""One candidate on one fold: fit, predict, measure."""

from __future__ import annotations

import time
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from manyclass._lib.arrays import Floats
from manyclass.app.report import one_line
from manyclass.app.scoring import FIT, METRICS, PREDICT
from manyclass.classifier import CoupledBase
from manyclass.scores.folds import Fold


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
    labels: NDArray,
    fold: Fold,
    metrics: tuple[str, ...],
) -> Measured | str:
    """Fit on the training rows and measure on the test rows, in one thread.

    ``labels`` are the classes by name, which warnings show, and ``y`` their places. An exception of
    the classifier is a result, not an error: its text is returned.
    """
    train, test = fold
    classes = np.unique(labels)
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always", UserWarning)
        try:
            start = time.perf_counter()
            fitted = clone(pipeline).fit(X.iloc[train], labels[train])
            between = time.perf_counter()
            p = _probabilities(fitted, X.iloc[test], classes)
            end = time.perf_counter()
            values = {name: METRICS[name](y[test], p) for name in metrics}
            incoherence, code, calibration = _coupling_of(fitted, X.iloc[test])
        except Exception as error:
            return said_of(error)
    values |= {FIT: between - start, PREDICT: end - between}
    said = dict.fromkeys(
        one_line(str(w.message)) for w in caught if issubclass(w.category, UserWarning)
    )
    return Measured(values, p, incoherence, code, calibration, tuple(said))


def said_of(error: Exception) -> str:
    """Return what an error says, on one line; the type is left out where it adds nothing."""
    name = "" if isinstance(error, ValueError) and str(error) else f"{type(error).__name__}: "
    return one_line(f"{name}{error}")


def _probabilities(fitted: Pipeline, X: Any, classes: NDArray) -> Floats:
    """Return the probabilities of the classes; those that were not trained on have none."""
    if not hasattr(fitted, "predict_proba"):
        name = type(fitted[-1]).__name__
        better = f"CoupledClassifier({name}()) has it"
        if isinstance(fitted[-1], CoupledBase):
            better = "choose a coupling rule as its combiner"
        raise ValueError(f"it has no predict_proba, and this compares probabilities: {better}")
    given = np.asarray(fitted.predict_proba(X))
    found = given.astype(np.float64)
    if given.dtype == np.float32 and found.ndim == 2:  # its rounding is not a fault of the learner
        found /= found.sum(axis=1, keepdims=True)
    if found.ndim != 2 or len(found) != len(X) or found.shape[1] != len(fitted.classes_):
        raise ValueError(f"predict_proba has shape {found.shape}, not {(len(X), len(classes))}")
    if len(fitted.classes_) == len(classes):
        return found
    p = np.zeros((len(X), len(classes)))
    p[:, np.searchsorted(classes, fitted.classes_)] = found
    return p


def _coupling_of(
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
