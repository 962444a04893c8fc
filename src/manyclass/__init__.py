"""Calibrated class probabilities for many classes from any binary classifier."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from manyclass import codes, combiners
from manyclass.classifier import CoupledClassifier
from manyclass.combiners.coupling import couple
from manyclass.decisions import DecisionClassifier, adjust_prior, decide, estimate_prior
from manyclass.svm import CoupledSVC

if TYPE_CHECKING:
    from manyclass import plot
    from manyclass.onnx import to_onnx

__all__ = [
    "CoupledClassifier",
    "CoupledSVC",
    "DecisionClassifier",
    "__version__",
    "adjust_prior",
    "codes",
    "combiners",
    "couple",
    "decide",
    "estimate_prior",
    "plot",
    "to_onnx",
]

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    """Import what few programs need, when they ask for it."""
    if name == "plot":
        return import_module("manyclass.plot")
    if name == "to_onnx":
        return import_module("manyclass.onnx").to_onnx
    raise AttributeError(f"module 'manyclass' has no attribute {name!r}")
