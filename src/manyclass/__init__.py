"""Calibrated class probabilities for many classes from any binary classifier."""

from manyclass import codes, coupling, decoding
from manyclass.classifier import CoupledClassifier
from manyclass.coupling import couple
from manyclass.svm import CoupledSVC

__all__ = [
    "CoupledClassifier",
    "CoupledSVC",
    "__version__",
    "codes",
    "couple",
    "coupling",
    "decoding",
]

__version__ = "0.1.0.dev0"
