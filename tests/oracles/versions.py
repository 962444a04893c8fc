"""What differs between the versions of scikit-learn that tests run with."""

from __future__ import annotations

from inspect import signature
from typing import Any

from sklearn.linear_model import LogisticRegressionCV


def logistic_regression_cv(**options: Any) -> LogisticRegressionCV:
    """Return one that does not warn: from 1.8 on, it does without parameters that 1.7 lacks."""
    newer = {"l1_ratios": (0,), "use_legacy_attributes": False}
    if "use_legacy_attributes" in signature(LogisticRegressionCV).parameters:
        options = newer | options
    return LogisticRegressionCV(**options)
