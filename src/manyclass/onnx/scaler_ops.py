"""Scalers in front of a classifier, feature by feature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats
from manyclass.onnx.graph import Graph, Piece, Unsupported

Operations = list[tuple[str, Any]]
"""Operators and their second operands, one number per feature; None where there is none."""

_SCALERS: dict[type, Callable[[Any], Operations]] = {
    StandardScaler: lambda s: [
        ("Sub", s.mean_ if s.with_mean else None),
        ("Div", s.scale_ if s.with_std else None),
    ],
    RobustScaler: lambda s: [
        ("Sub", s.center_ if s.with_centering else None),
        ("Div", s.scale_ if s.with_scaling else None),
    ],
    MinMaxScaler: lambda s: [("Mul", s.scale_), ("Add", s.min_)],
    MaxAbsScaler: lambda s: [("Div", s.scale_)],
}


def plan_scaler(step: Any) -> Piece:
    """Return the piece (d, n) -> (d, n) of a fitted scaler."""
    if step is None or step == "passthrough":
        return lambda graph, x: x
    if type(step) not in _SCALERS:
        known = ", ".join(sorted(scaler.__name__ for scaler in _SCALERS))
        raise Unsupported(
            f"{type(step).__name__} in front of the classifier has no graph here, only {known} "
            "have. Export the classifier alone, the steps before it with skl2onnx, and join both "
            "with onnx.compose.merge_models."
        )
    check_is_fitted(step)
    operations = _SCALERS[type(step)](step)
    limits = getattr(step, "feature_range", (-1.0, 1.0)) if getattr(step, "clip", False) else None

    def piece(graph: Graph, x: str) -> str:
        for operator, operand in operations:
            if operand is not None:
                x = graph.call(operator, x, _per_feature(graph, operand, x))
        return x if limits is None else graph.clip(x, float(limits[0]), float(limits[1]))

    return piece


def _per_feature(graph: Graph, operand: Floats, x: str) -> str:
    """Return one number per feature in a shape that goes with ``x``, (d, n).

    That of a single feature is not a constant: ONNX Runtime would join it to a product
    thereafter, in single precision.
    """
    column = np.asarray(operand, dtype=np.float64)[:, None]
    if len(column) > 1:
        return graph.constant(column)
    return graph.call("Expand", column, graph.call("Shape", x))
