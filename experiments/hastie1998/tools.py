"""Tools for all experiments of Hastie & Tibshirani (1998): pairs of classes, statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.metrics import brier_score_loss, log_loss

from experiments.pages import Summary, markdown_table
from experiments.runner import Row
from manyclass import CoupledClassifier, couple
from manyclass.combiners.decoding import MaxWins
from manyclass.metrics import zadrozny_mse

METRICS = ("error", "log-loss", "brier", "mse")

Array = NDArray[np.float64]


def split_name(scale: str, seed: int) -> str:
    """Name a simulation. The two scales have different names."""
    return f"{seed}" if scale == "paper" else f"{scale}-{seed}"


def seed_of(split: str) -> int:
    """Return the seed of a simulation by its name."""
    return int(split.split("-")[-1])


# -- pairs of classes ------------------------------------------------------------------


def in_pairs(estimator, **options) -> CoupledClassifier:
    """Return a one-vs-one classifier, by default without calibration and scaling."""
    plain = {"combiner": "ht", "calibration": None, "scaling": None, "cv": None} | options
    return CoupledClassifier(estimator, code="one-vs-one", **plain)


class Pairs:
    """The pairwise probabilities of a fitted classifier at some rows."""

    def __init__(self, model: CoupledClassifier, X):
        self.r: Array = model.bank_.scores(X)
        self.code, self.weights = model.code_, model.weights_

    def coupled(self, rule: str = "ht") -> Array:
        """Return coupled class probabilities, eq. (6)."""
        return couple(self.r, self.code, rule, self.weights)

    def votes(self) -> Array:
        """Return how many pairs each class wins. Ties are broken by a small amount."""
        return MaxWins().combine(self.r - 0.5, self.code).values

    def undecided(self) -> NDArray[np.bool_]:
        """Return where several classes have the most votes."""
        votes = np.sort(self.votes(), axis=1)
        return votes[:, -1] - votes[:, -2] < 0.25


def measured(method: str, y, p) -> Iterator[Row]:
    """Yield the four metrics of class probabilities; classes are 0 to k - 1."""
    labels = np.arange(p.shape[1])
    yield Row(method, "error", float(np.mean(p.argmax(axis=1) != y)))
    yield Row(method, "log-loss", float(log_loss(y, p, labels=labels)))
    yield Row(method, "brier", float(brier_score_loss(y, p, labels=labels)))
    yield Row(method, "mse", zadrozny_mse(y, p, classes=labels))


def measured_pairs(method: str, pairs: Pairs, y) -> Iterator[Row]:
    """Yield the metrics of the coupled pairs, and the error of their votes."""
    yield from measured(f"{method}, coupled", y, pairs.coupled())
    yield Row(f"{method}, max-wins", "error", float(np.mean(pairs.votes().argmax(axis=1) != y)))


# -- statistics ------------------------------------------------------------------------


class Interval(NamedTuple):
    """A mean with its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def format(self, form: str = "{:.2f}", scale: float = 1.0) -> str:
        """Write it as "mean (low to high)"."""
        mean, low, high = (form.format(scale * value) for value in self)
        return f"{mean} ({low} to {high})"


def mean_interval(values: Array) -> Interval:
    """Return Student's interval; from minus to plus infinity for fewer than two values."""
    n, mean = len(values), float(values.mean()) if len(values) else float("nan")
    return _interval(n, mean, float(values.std(ddof=1)) if n > 1 else np.inf)


def interval_of_moments(n: int, mean: float, mean_square: float) -> Interval:
    """Return Student's interval from the mean and the mean square of the values."""
    return _interval(n, mean, float(np.sqrt(n / (n - 1) * (mean_square - mean**2))))


def _interval(n: int, mean: float, deviation: float) -> Interval:
    if n < 2:
        return Interval(mean, -np.inf, np.inf)
    half = float(student.ppf(0.975, n - 1)) * deviation / np.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def ratio_interval(first: Array, second: Array) -> Interval:
    """Return the geometric mean of first / second with its interval, from the logarithms."""
    found = mean_interval(np.log(first) - np.log(second))
    return Interval(*(float(np.exp(value)) for value in found))


def known(verdicts: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: False if one does not, None if one is not known."""
    if False in verdicts:
        return False
    return None if None in verdicts or not verdicts else True


def metrics_table(
    summary: dict[tuple[str, str, str], Summary], data: str, methods: Sequence[str]
) -> str:
    """Return mean and standard deviation of the error, and means of the other metrics."""
    rows = []
    for method in methods:
        error = summary.get((data, method, "error"))
        if error is None:
            continue
        others = [summary.get((data, method, metric)) for metric in METRICS[1:]]
        rows.append(
            [method, f"{100 * error.mean:.2f}", f"{100 * error.deviation:.2f}"]
            + ["" if other is None else f"{other.mean:.4f}" for other in others]
        )
    return markdown_table(["", "error %", "deviation", *METRICS[1:]], rows)
