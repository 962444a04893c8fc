"""Multiclass models: features (d, n) to scores of all classes (k, n)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier

from manyclass.banks import MARGIN, LinearBank, NativeBank
from manyclass.onnx.graph import Graph, Piece, Unsupported
from manyclass.onnx.links import of_probabilities, plan_linear, zhang


def _softmax(graph: Graph, margins: str) -> str:
    return graph.call("Softmax", margins, axis=0)


def _normalised_logistic(graph: Graph, margins: str) -> str:
    return _normalised(graph, graph.inverse_odds(graph.call("Neg", margins)))


def _normalised_huber(graph: Graph, margins: str) -> str:
    return _normalised(graph, zhang(graph, margins))


def _normalised(graph: Graph, p: str) -> str:
    """Divide by the sums, as scikit-learn does for one-vs-rest: zeros become uniform."""
    none = graph.call("Equal", graph.total(p, axis=0), 0.0)
    return graph.normalised(graph.call("Where", none, 1.0, p))


def plan_native(bank: NativeBank, remedy: str) -> Piece:
    """Return the piece (d, n) -> (k, n) of a fitted multiclass model.

    ``remedy`` is what to do instead, for the message if there is no graph.
    """
    (model,) = bank.models
    if type(model) not in LinearBank.TYPES:
        raise Unsupported(
            f"the multiclass model, {type(model).__name__}, has no graph here: only linear models "
            f"({', '.join(known.__name__ for known in LinearBank.TYPES)}) have. {remedy}"
        )
    if len(model.classes_) != bank.n_classes:
        raise Unsupported(
            f"the multiclass model, {type(model).__name__}, has seen only {len(model.classes_)} of "
            f"{bank.n_classes} classes. {remedy}"
        )
    intercept = np.broadcast_to(np.asarray(model.intercept_, np.float64), bank.n_classes)
    margins = plan_linear(np.asarray(model.coef_, np.float64), intercept)
    if bank.kind == MARGIN:
        return margins
    link = _link_of(model)
    return lambda graph, x: of_probabilities(graph, bank.kind, link(graph, margins(graph, x)))


def read_native(
    graph: Graph, columns: str, x: str, scores: Piece, calibration: Piece
) -> tuple[str, list[str]]:
    """Return the columns and the further class probabilities that a scaling reads.

    See :func:`~manyclass.calibration.native_evidence.sources`. Linear models have margins.
    """
    margins = scores(graph, x)
    sides = calibration(graph, margins)
    both = [_softmax(graph, margins), _normalised(graph, sides)]
    return graph.call("Concat", columns, sides, axis=0), both


def _link_of(model: Any) -> Callable[[Graph, str], str]:
    """Return how a linear model turns its margins into class probabilities."""
    if type(model) in (LinearDiscriminantAnalysis, LogisticRegression, LogisticRegressionCV):
        return _softmax
    huber = type(model) is SGDClassifier and model.loss == "modified_huber"
    return _normalised_huber if huber else _normalised_logistic
