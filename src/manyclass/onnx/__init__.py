"""Fitted models as graphs that run without Python: :func:`to_onnx`.

A graph is a chain of pieces, one for each room of the model: scalers, the bank of binary
models, calibration, combiner, scaling. All pieces are planned before any is built, so that one
error lists everything that cannot be exported.
"""

from manyclass.onnx.model import to_onnx

__all__ = ["to_onnx"]
