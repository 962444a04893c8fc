"""Whether published numbers are possible: counts, deviations, p-values, squared errors.

Every function takes numbers as they are printed, and knows that they were rounded. A number that
is called impossible cannot come from any data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import t as student

Kind = Literal["population", "sample"]
SLACK = 1e-9  # of floating point, where a number lies on the edge of its rounding


def unit(digits: int) -> float:
    """Return the last printed place: 0.01 for two digits."""
    return 10.0**-digits


# -- counts ----------------------------------------------------------------------------


def counts(rate: float, n: int, digits: int) -> tuple[list[int], list[int]]:
    """Return the numbers of errors among n that print as this rate: rounded, and truncated.

    Parameters
    ----------
    rate : float
        The printed rate, as a fraction.
    n : int
        Number of test samples.
    digits : int
        Number of printed places of the fraction.

    Notes
    -----
    A rate on the edge between two printed ones may be rounded either way: numbers that are
    rounded are those of the first list, and the second has only those that must be truncated.

    Examples
    --------
    Of 4000 letters, 3.98 % and 3.97 % can only be the same number of errors, 3.975 %:

    >>> from experiments.possible import counts
    >>> counts(0.0398, 4000, 4), counts(0.0397, 4000, 4)
    (([159], []), ([159], []))

    No number of errors among 3 rounds to 66.6 %; two of them are truncated to it:

    >>> counts(0.666, 3, 3)
    ([], [2])
    """
    near = range(max(int(rate * n) - 1, 0), int(rate * n) + 3)
    step = unit(digits)
    rounded = [c for c in near if abs(c / n - rate) <= step / 2 + SLACK]
    cut = [c for c in near if -SLACK <= c / n - rate < step - SLACK and c not in rounded]
    return rounded, cut


# -- standard deviations of counts -----------------------------------------------------


def deviation_fits(
    mean: float, deviation: float, n: int, repeats: int, digits: int, kind: Kind
) -> bool:
    """Whether some counts of errors have this mean and this deviation, both printed as rates.

    The sum S of the counts follows from the mean. Their sum of squares is a whole number of the
    parity of S, which leaves few possible deviations.

    Examples
    --------
    Five error rates of 500 samples, mean 14.08 % and deviation 1.306 points:

    >>> from experiments.possible import deviation_fits
    >>> [deviation_fits(0.1408, 0.01306, 500, 5, 5, kind) for kind in ("population", "sample")]
    [True, False]
    """
    total = round(mean * n * repeats)
    if abs(total / (n * repeats) - mean) > unit(digits) / 2 + SLACK:
        return False
    divisor = repeats if kind == "population" else repeats - 1
    low, high = (max(deviation + side * unit(digits) / 2, 0.0) for side in (-1, 1))
    least, most = (divisor * (n * value) ** 2 + total**2 / repeats for value in (low, high))
    squares = range(int(np.ceil(least - 1e-6)), int(np.floor(most + 1e-6)) + 1)
    return any((square - total) % 2 == 0 and square * repeats >= total**2 for square in squares)


# -- p-values --------------------------------------------------------------------------


class Printed(NamedTuple):
    """A mean and a standard deviation over the same runs, with the last printed place."""

    mean: float
    deviation: float
    step: float = 0.01


def p_value_fits(first: Printed, second: Printed, p: float, runs: int) -> bool:
    """Whether a one-sided paired t-test can have this p-value, given means and deviations.

    The deviation of the differences lies between the difference and the sum of the two
    deviations, whatever the runs are. The p-value is small where the first mean is the lower one.

    Examples
    --------
    >>> from experiments.possible import Printed, p_value_fits
    >>> p_value_fits(Printed(7.65, 0.77), Printed(7.96, 0.77), 0.3818, 20)
    False
    >>> p_value_fits(Printed(7.65, 0.77), Printed(7.69, 0.77), 0.3818, 20)
    True
    """
    low, high = allowed_t(first, second, runs)
    return bool(low <= student.ppf(p, runs - 1) <= high)


def allowed_t(first: Printed, second: Printed, runs: int) -> tuple[float, float]:
    """Return the least and the largest t of a paired test, given means and deviations.

    Examples
    --------
    >>> from experiments.possible import Printed, allowed_t
    >>> low, high = allowed_t(Printed(7.65, 0.77), Printed(7.96, 0.77), 20)
    >>> low, round(high, 2)
    (-inf, -0.87)
    """
    slack = (first.step + second.step) / 2
    gap = first.mean - second.mean
    least = max(abs(first.deviation - second.deviation) - slack, 0.0)
    most = first.deviation + second.deviation + slack
    lower, upper = gap - slack, gap + slack
    low = _t(lower, least if lower < 0 else most, runs)
    high = _t(upper, least if upper > 0 else most, runs)
    return low, high


def _t(gap: float, deviation: float, runs: int) -> float:
    return float(np.sqrt(runs) * gap / deviation if deviation > 0 else np.copysign(np.inf, gap))


def needed_correlation(first: Printed, second: Printed, p: float, runs: int) -> float:
    """Return the least correlation of the two values over the runs that allows this p-value.

    Examples
    --------
    >>> from experiments.possible import Printed, needed_correlation
    >>> round(needed_correlation(Printed(7.56, 0.73), Printed(7.80, 0.74), 9.2922e-20, 20), 3)
    0.999
    """
    wanted = float(student.ppf(p, runs - 1)) / np.sqrt(runs)
    if wanted == 0:
        return -1.0
    slack = (first.step + second.step) / 2
    gaps = first.mean - second.mean + np.array([-slack, slack])
    spread = float(np.max(gaps / wanted))  # the largest deviation of the differences
    a, b = first.deviation, second.deviation
    return float((a**2 + b**2 - spread**2) / (2 * a * b))


def means_that_fit(
    own: Printed, others: Iterable[tuple[Printed, float, bool]], runs: int
) -> list[float]:
    """Return the means near the printed one that fit all its p-values.

    Parameters
    ----------
    own : Printed
        The value in doubt.
    others : iterable of (Printed, p, bool)
        The compared values, the p-values, and whether ``own`` is the first of the comparison.
    runs : int
    """
    tried = own.mean + own.step * np.arange(-100, 101)
    kept = []
    for mean in tried:
        changed = own._replace(mean=float(mean))
        if all(
            p_value_fits(changed, other, p, runs)
            if first
            else p_value_fits(other, changed, p, runs)
            for other, p, first in others
        ):
            kept.append(round(float(mean), 6))
    return kept


# -- squared errors --------------------------------------------------------------------


def squared_error_bounds(error: float, k: int) -> tuple[float, float]:
    """Return the least and the largest possible mean of sum_j (t_j - p_j)^2, given the error.

    A wrong label costs at least 1/2, when two classes have probability 1/2 each, and at most 2.
    A correct label costs at most (k - 1)/k, when all classes have the same probability.
    """
    return error / 2, 2 * error + (1 - error) * (k - 1) / k
