"""Confidence intervals, and what they say about a claim: yes, no, or not to be told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t


class Interval(NamedTuple):
    """A mean and the confidence interval around it."""

    mean: float
    low: float
    high: float

    def above(self, bound: float) -> bool | None:
        """Whether the true value is above the bound; None if the interval holds both."""
        return True if self.low > bound else False if self.high <= bound else None

    def below(self, bound: float) -> bool | None:
        """Whether the true value is below the bound; None if the interval holds both."""
        return True if self.high < bound else False if self.low >= bound else None

    def within(self, width: float) -> bool | None:
        """Whether the true value is less than ``width`` from 0; None if it may be either."""
        if -width < self.low and self.high < width:
            return True
        return False if self.low >= width or self.high <= -width else None

    def __str__(self) -> str:
        """In points, that is in hundredths; unbounded intervals are left out."""
        if not np.isfinite(self.low):
            return f"{100 * self.mean:+.2f}"
        return f"{100 * self.mean:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"


def normal_interval(mean: float, error: float, level: float) -> Interval:
    """Return the interval of a mean with a known standard error."""
    width = float(norm.ppf(0.5 + level / 2)) * error
    return Interval(mean, mean - width, mean + width)


def t_interval(values: NDArray[np.float64], level: float = 0.95) -> Interval:
    """Return Student's interval of the mean of independent values; unbounded for one."""
    n, mean = len(values), float(values.mean())
    if n < 2:
        return Interval(mean, -np.inf, np.inf)
    width = float(t.ppf(0.5 + level / 2, n - 1)) * float(values.std(ddof=1)) / np.sqrt(n)
    return Interval(mean, mean - width, mean + width)


def all_of(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all are true; None if that cannot be told, as when there are none."""
    found = set(answers)
    if False in found:
        return False
    return None if None in found or not found else True
