"""Scores to binary probabilities, column by column."""

from manyclass.calibration.base import Calibration
from manyclass.calibration.isotonic import Isotonic
from manyclass.calibration.sigmoid import RobustSigmoid, Sigmoid

__all__ = ["Calibration", "Isotonic", "RobustSigmoid", "Sigmoid"]

CALIBRATIONS: dict[str, type[Calibration]] = {
    "sigmoid": Sigmoid,
    "robust-sigmoid": RobustSigmoid,
    "isotonic": Isotonic,
}
