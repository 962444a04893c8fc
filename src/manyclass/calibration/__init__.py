"""Scores to binary probabilities, column by column."""

from manyclass.calibration.base import Calibration
from manyclass.calibration.beta import Beta
from manyclass.calibration.isotonic import Isotonic
from manyclass.calibration.sigmoid import RobustSigmoid, Sigmoid
from manyclass.calibration.unchanged import Unchanged

__all__ = ["Beta", "Calibration", "Isotonic", "RobustSigmoid", "Sigmoid", "Unchanged"]

CALIBRATIONS: dict[str, type[Calibration]] = {
    method.name: method for method in (Sigmoid, RobustSigmoid, Beta, Isotonic)
}
