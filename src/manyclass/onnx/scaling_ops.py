"""Scalings: coupled probabilities (k, n) to calibrated ones (k, n)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Floats
from manyclass.combiners.coupling.kernels.transposed import LOWEST
from manyclass.onnx.graph import Graph, Piece, Unsupported
from manyclass.scaling import Scaling, StructuredScaling, Temperature
from manyclass.scaling.kernels.features import LARGEST_LOG_ODDS

ScalingPiece = Callable[[Graph, str, str, Sequence[str]], str]
"""Takes coupled probabilities (k, n), those of the columns (l, n), and further class probabilities
(k, n) of the same samples; returns class probabilities (k, n)."""


def plan_scaling(scaling: Scaling | None) -> ScalingPiece:
    """Return the piece of a fitted scaling; None leaves the probabilities as they are."""
    if scaling is None:
        return lambda graph, p, columns, others: p
    if type(scaling) is Temperature:
        return _temperature(scaling)
    if type(scaling) is StructuredScaling:
        return _structured(scaling)
    raise Unsupported(
        f"the scaling {type(scaling).__name__} has no graph here. Use 'structured', 'temperature' "
        "or None."
    )


def plan_least(least: Floats) -> Piece:
    """Return the piece (k, n) -> (k, n) that mixes in the lower bounds of the classes."""

    def piece(graph: Graph, p: str) -> str:
        if not least.any():
            return p
        return graph.call("Add", graph.call("Mul", p, 1.0 - least.sum()), least[:, None])

    return piece


def _mixed(graph: Graph, p: str, share: float, k: int) -> str:
    """Mix in a share of the uniform distribution."""
    return graph.call("Add", graph.call("Mul", p, 1.0 - share), share / k)


def _temperature(scaling: Temperature) -> ScalingPiece:
    s, share, k = scaling.power_, scaling.share_, len(scaling.classes_)

    def piece(graph: Graph, p: str, columns: str, others: Sequence[str]) -> str:
        if s != 1.0:
            p = graph.call("Softmax", graph.call("Mul", graph.call("Log", p), s), axis=0)
        return _mixed(graph, p, share, k) if share else p

    return piece


def _structured(scaling: StructuredScaling) -> ScalingPiece:
    """Pool the features, mix, and apply the matrix: see ``StructuredScaling.scale``.

    The weights of features that are matrix products are part of these matrices: ONNX Runtime fuses
    a product and a factor after it in single precision.
    """
    k, share, code, matrix = len(scaling.classes_), scaling.share_, scaling.code_, scaling.matrix_
    of_classes = np.eye(k) + matrix[:k].T

    def piece(graph: Graph, p: str, columns: str, others: Sequence[str]) -> str:
        weights = scaling.weights_
        terms = [
            graph.call("Mul", graph.call("Log", graph.call("Max", p, scaling.floor_)), weights[0])
        ]
        for other, weight in zip(others, weights[1:], strict=False):
            log_p = graph.call("Log", _mixed(graph, other, share, k))
            terms.append(graph.call("Mul", log_p, weight))
        if code is not None:
            both = _clipped_sides(graph, columns)
            log_odds = _log_odds(graph, both, code.shape[1])
            terms += _of_columns(graph, both, log_odds, code, weights[-4:-1])
        if len(weights) > 1:
            terms.append(graph.constant(weights[-1] * scaling.log_prior_[:, None]))
        logits = graph.call("Sum", *terms) if len(terms) > 1 else terms[0]
        z = graph.call("Log", _mixed(graph, graph.call("Softmax", logits, axis=0), share, k))
        if k == 2:
            z = graph.call("Sub", z, graph.call("Div", graph.total(z, axis=0), 2.0))
        logits = graph.call("Add", graph.call("MatMul", of_classes, z), matrix[k][:, None])
        if len(matrix) > k + 1:
            logits = graph.call("Add", logits, graph.call("MatMul", matrix[k + 1 :].T, log_odds))
        return graph.call("Softmax", logits, axis=0)

    return piece


# ---------------------------------------------------------------- what the columns say


def _clipped_sides(graph: Graph, columns: str) -> str:
    """Return (r, 1 - r, 1), shape (2 l + 1, n): the last row is for classes with fewer columns."""
    r = graph.clip(columns, LOWEST, 1.0 - LOWEST)
    one = graph.ones_like(graph.block(r, (0, 1)))
    return graph.call("Concat", r, graph.call("Sub", 1.0, r), one, axis=0)


def _log_odds(graph: Graph, both: str, n_columns: int) -> str:
    r = graph.block(both, (0, n_columns))
    odds = graph.call("Div", r, graph.block(both, (n_columns, 2 * n_columns)))
    return graph.clip(graph.call("Log", odds), -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)


def _of_columns(
    graph: Graph, both: str, log_odds: str, code: NDArray[np.int8], weights: Floats
) -> list[str]:
    """Return the weighted features of ``describe_columns``, each (k, n).

    They are the least log-probability of a class's sides, the mean one, and their mean log-odds.
    """
    counts = np.maximum(1, np.count_nonzero(code, axis=1))[:, None]
    sides = np.hstack([code > 0, code < 0, np.zeros((len(code), 1))]) / counts
    least = graph.call("Mul", graph.call("Log", _least(graph, both, code)), weights[0])
    mean = graph.call("MatMul", weights[1] * sides, graph.call("Log", both))
    odds = graph.call("MatMul", weights[2] * code / counts, log_odds)
    return [least, mean, odds]


def _least(graph: Graph, both: str, code: NDArray[np.int8]) -> str:
    """Return the least probability of the sides of each class, shape (k, n), by halving.

    ReduceMin takes its axes as an attribute or as an input, depending on the opset.
    """
    places = _places(code)
    values = graph.call("Gather", both, places, axis=0)
    width = len(places)
    while width > 1:
        width //= 2
        halves = graph.block(values, (0, width)), graph.block(values, (width, 2 * width))
        values = graph.call("Min", *halves)
    return graph.call("Squeeze", values, [0])


def _places(code: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the rows of (r, 1 - r, 1) that belong to each class, shape (a power of two, k)."""
    k, n_columns = code.shape
    most = max(1, int(np.count_nonzero(code, axis=1).max()))
    places = np.full((1 << (most - 1).bit_length(), k), 2 * n_columns)
    for i, row in enumerate(code):
        own = np.flatnonzero(row)
        places[: len(own), i] = np.where(row[own] > 0, own, n_columns + own)
    return places
