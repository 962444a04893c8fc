"""The measured values of Figure 1 of Wu et al. (2003), with Monte-Carlo errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from experiments.intervals import Interval, normal_interval
from experiments.results import Measurement
from experiments.wu2003.figure1 import CASES, SIZES, data_name, wins_over

LABELS = {"ht": "HT", "wlw1": "δ1", "wlw2": "δ2", "vote": "V", "pkpd": "PKPD", "logit": "logit"}
LEVEL = 0.99  # of the intervals: there are many of them


class Estimate(NamedTuple):
    """A Monte-Carlo mean and its variance."""

    mean: float
    variance: float

    def minus(self, other: Estimate) -> Interval:
        """Return the interval of the difference from an independent estimate."""
        error = float(np.sqrt(self.variance + other.variance))
        return normal_interval(self.mean - other.mean, error, LEVEL)

    def interval(self) -> Interval:
        """Return the interval of the estimate itself."""
        return self.minus(Estimate(0.0, 0.0))


class Outcome:
    """Measured values by case, number of classes and rule."""

    def __init__(self, rows: Iterable[Measurement]):
        self.values = {(row.data, row.method, row.metric): row.value for row in rows}

    def sizes(self, case: str) -> list[int]:
        """Return the numbers of classes that the case was simulated with."""
        return [k for k in SIZES if (data_name(case, k), "ht", "error") in self.values]

    def value(self, case: str, k: int, rule: str, metric: str) -> float:
        """Return one number."""
        return self.values[data_name(case, k), rule, metric]

    def mean(self, case: str, rule: str, metric: str) -> float:
        """Return the mean over the numbers of classes."""
        return float(np.mean([self.value(case, k, rule, metric) for k in self.sizes(case)]))

    def accuracy(self, case: str, k: int, rule: str) -> float:
        """Return one minus the error."""
        return 1.0 - self.value(case, k, rule, "error")

    def gap(self, case: str, k: int, first: str, second: str) -> Estimate:
        """Return the difference in accuracy, from replicates where only one rule is right."""
        wins = self.value(case, k, first, wins_over(second))
        losses = self.value(case, k, second, wins_over(first))
        difference = wins - losses
        replicates = self.values[data_name(case, k), "all", "replicates"]
        return Estimate(difference, max(wins + losses - difference**2, 0.0) / replicates)

    def mean_gap(self, case: str, first: str, second: str) -> Estimate:
        """Return the mean of :meth:`gap` over the numbers of classes."""
        gaps = [self.gap(case, k, first, second) for k in self.sizes(case)]
        means, variances = zip(*gaps, strict=True)
        return Estimate(float(np.mean(means)), sum(variances) / len(gaps) ** 2)

    def lowest(self, rule: str) -> Estimate:
        """Return the lowest accuracy of a rule over all cases and numbers of classes."""
        cells = [(case, k) for case in CASES for k in self.sizes(case)]
        case, k = min(cells, key=lambda cell: self.accuracy(cell[0], cell[1], rule))
        accuracy = self.accuracy(case, k, rule)
        replicates = self.values[data_name(case, k), "all", "replicates"]
        return Estimate(accuracy, accuracy * (1.0 - accuracy) / replicates)
