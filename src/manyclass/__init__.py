"""Calibrated class probabilities for many classes from any binary classifier."""

from manyclass import codes, coupling, decoding, plot, reliability_decoding, softmax
from manyclass.classifier import CoupledClassifier
from manyclass.coupling import couple
from manyclass.decisions import DecisionClassifier, adjust_prior, decide, estimate_prior
from manyclass.export import to_onnx
from manyclass.svm import CoupledSVC

__all__ = [
    "CoupledClassifier",
    "CoupledSVC",
    "DecisionClassifier",
    "__version__",
    "adjust_prior",
    "codes",
    "couple",
    "coupling",
    "decide",
    "decoding",
    "estimate_prior",
    "plot",
    "reliability_decoding",
    "softmax",
    "to_onnx",
]

__version__ = "0.1.0.dev0"
