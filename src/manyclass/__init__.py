"""Calibrated class probabilities for many classes from any binary classifier."""

from manyclass import codes, coupling, decoding, reliability_decoding, softmax
from manyclass.classifier import CoupledClassifier
from manyclass.coupling import couple
from manyclass.export import to_onnx
from manyclass.svm import CoupledSVC

__all__ = [
    "CoupledClassifier",
    "CoupledSVC",
    "__version__",
    "codes",
    "couple",
    "coupling",
    "decoding",
    "reliability_decoding",
    "softmax",
    "to_onnx",
]

__version__ = "0.1.0.dev0"
