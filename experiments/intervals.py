"""Confidence intervals, and the answers they give: yes, no, or undecided."""

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
        """Whether the true value is above the bound; None if the interval contains the bound."""
        return True if self.low > bound else False if self.high <= bound else None

    def below(self, bound: float) -> bool | None:
        """Whether the true value is below the bound; None if the interval contains the bound."""
        return True if self.high < bound else False if self.low >= bound else None

    def within(self, width: float) -> bool | None:
        """Whether the true value is less than ``width`` away from 0; None if undecided."""
        if -width < self.low and self.high < width:
            return True
        return False if self.low >= width or self.high <= -width else None

    def __str__(self) -> str:
        """Write it in points (hundredths). Unbounded intervals are omitted."""
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
    """Return whether all answers are true; None if undecided or if there are no answers."""
    found = set(answers)
    if False in found:
        return False
    return None if None in found or not found else True


def reproduced(distances: Iterable[float], share: float = 0.9, near: float = 2.0) -> bool:
    """Whether enough distances, in standard errors, are near 0."""
    values = np.abs(np.fromiter(distances, dtype=float))
    return bool(np.mean(values < near) >= share)
