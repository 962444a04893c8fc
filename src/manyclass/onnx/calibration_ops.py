"""Calibrations: scores (l, n) to binary probabilities (l, n)."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import FARTHEST, Floats
from manyclass.calibration import Beta, Calibration, Isotonic, RobustSigmoid, Sigmoid, Unchanged
from manyclass.calibration.beta import BOUND
from manyclass.onnx.graph import Graph, Piece, Unsupported


def plan_calibration(calibration: Calibration | None) -> Piece:
    """Return the piece (l, n) -> (l, n) of a fitted calibration."""
    if calibration is None:
        return lambda graph, scores: scores
    if type(calibration) is Sigmoid or type(calibration) is RobustSigmoid:
        return _sigmoids(calibration)
    if type(calibration) is Isotonic:
        return _curves(calibration)
    if type(calibration) is Beta:
        return _betas(calibration)
    if type(calibration) is Unchanged:
        return lambda graph, scores: graph.inverse_odds(graph.call("Neg", scores))
    raise Unsupported(
        f"the calibration {type(calibration).__name__} has no graph here. Use 'sigmoid', "
        "'robust-sigmoid', 'isotonic', 'beta' or, for estimators with predict_proba, None."
    )


def _sigmoids(calibration: Sigmoid) -> Piece:
    slopes, intercepts = calibration.slopes_[:, None], calibration.intercepts_[:, None]

    def piece(graph: Graph, scores: str) -> str:
        scores = graph.clip(scores, -FARTHEST, FARTHEST)
        if isinstance(calibration, RobustSigmoid):
            scores = _compressed(graph, scores, calibration.limits_[:, None])
        return graph.inverse_odds(graph.call("Add", graph.call("Mul", scores, slopes), intercepts))

    return piece


def _compressed(graph: Graph, scores: str, limits: Floats) -> str:
    """Compress long tails, as :func:`~manyclass.calibration.sigmoid.compress_tails` does."""
    limits = np.minimum(limits, FARTHEST)  # all finite scores are within
    sizes = graph.call("Abs", scores)
    beyond = graph.call("Sub", graph.call("Log", sizes), np.log(limits))
    beyond = graph.call("Mul", graph.call("Add", graph.call("Max", beyond, 0.0), 1.0), limits)
    return graph.call("Mul", graph.call("Min", sizes, beyond), graph.call("Sign", scores))


def _betas(calibration: Beta) -> Piece:
    """Return 1/(1 + exp(-(a log p - b log(1 - p) + c))) of log-odds, as ``Beta.transform`` does."""
    a, b, c = (each[:, None] for each in (calibration.a_, calibration.b_, calibration.c_))

    def piece(graph: Graph, scores: str) -> str:
        x = graph.clip(scores, -BOUND, BOUND)
        # log p = min(x, 0) - near and -log(1 - p) = max(x, 0) + near.
        far = graph.call("Exp", graph.call("Neg", graph.call("Abs", x)))
        near = graph.call("Log", graph.call("Add", far, 1.0))
        terms = (
            graph.call("Mul", near, b - a),
            graph.call("Mul", graph.call("Max", x, 0.0), b),
            graph.call("Mul", graph.call("Min", x, 0.0), a),
            c,
        )
        return graph.inverse_odds(graph.call("Neg", graph.call("Sum", *terms)))

    return piece


def _curves(calibration: Isotonic) -> Piece:
    """Interpolate between thresholds, found by bisection for all columns at once.

    The thresholds of a column are a row of a table, filled up with infinity to a power of
    two. Its last threshold has slope 0: nothing lies beyond.
    """
    knots, levels, slopes = _tables(calibration)
    width = knots.shape[1]
    starts = width * np.arange(len(knots))[:, None]
    lowest = knots[:, :1]
    highest = np.where(np.isfinite(knots), knots, -np.inf).max(axis=1, keepdims=True)

    def piece(graph: Graph, scores: str) -> str:
        scores = graph.call("Max", graph.call("Min", scores, highest), lowest)
        tables = [graph.constant(table.ravel()) for table in (knots, levels, slopes)]
        place = graph.constant(starts)
        step = width // 2
        while step:
            knot = graph.call("Gather", tables[0], graph.call("Add", place, step))
            beyond = graph.cast(graph.call("LessOrEqual", knot, scores), np.int64)
            place = graph.call("Add", place, graph.call("Mul", beyond, step))
            step //= 2
        knot, level, slope = (graph.call("Gather", table, place) for table in tables)
        rise = graph.call("Mul", slope, graph.call("Sub", scores, knot))
        return graph.call("Add", level, rise)

    return piece


def _tables(calibration: Isotonic) -> tuple[Floats, ...]:
    """Return thresholds, their values, and the slopes after them, each (l, a power of two)."""
    curves = calibration.curves_
    width = 1 << (max(len(x) for x, _ in curves) - 1).bit_length()
    knots = np.full((len(curves), width), np.inf)
    levels, slopes = np.zeros((2, len(curves), width))
    for column, (x, y) in enumerate(curves):
        knots[column, : len(x)], levels[column, : len(x)] = x, y
        slopes[column, : len(x) - 1] = np.diff(y) / np.diff(x)
    return knots, levels, slopes
