"""Fit several classifiers on the same split and score their probabilities."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, log_loss


@dataclass(frozen=True)
class Score:
    """Scores of one classifier on one test set."""

    name: str
    log_loss: float
    brier: float
    error: float
    fit_seconds: float
    predict_seconds: float


def compare(
    models: Mapping[str, Any],
    X_train: NDArray[Any],
    X_test: NDArray[Any],
    y_train: NDArray[Any],
    y_test: NDArray[Any],
) -> Iterator[Score]:
    """Fit each classifier and yield its score.

    Parameters
    ----------
    models : dict of str to classifier
        Unfitted; each is cloned. Classifiers without ``predict_proba`` get NaN for
        log-loss and Brier score.
    X_train, X_test, y_train, y_test : arrays
        One split, used by all classifiers.

    Yields
    ------
    Score

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from manyclass import CoupledClassifier
    >>> from benchmarks.comparison import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"coupled": CoupledClassifier(LogisticRegression())}
    >>> for score in compare(models, X[::2], X[1::2], y[::2], y[1::2]):
    ...     print(score.name, round(score.log_loss, 2), round(score.error, 3))
    coupled 0.09 0.013
    """
    for name, model in models.items():
        start = time.perf_counter()
        fitted = clone(model).fit(X_train, y_train)
        between = time.perf_counter()
        if hasattr(fitted, "predict_proba"):
            p = fitted.predict_proba(X_test)
            end = time.perf_counter()
            loss = log_loss(y_test, p, labels=fitted.classes_)
            brier = brier_score_loss(y_test, p, labels=fitted.classes_)
            predicted = fitted.classes_[p.argmax(axis=1)]
        else:
            predicted = fitted.predict(X_test)
            end = time.perf_counter()
            loss = brier = np.nan
        error = float(np.mean(predicted != y_test))
        yield Score(name, loss, brier, error, between - start, end - between)
