"""The measured and the published values of Tables 2 to 4 of Duan et al. (2003)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from experiments import pages
from experiments.duan2003.methods import PAPER
from experiments.duan2003.partitions import SOURCES, Floats
from experiments.duan2003.tables import FURTHER, PAIRS, SCALES, SIZE
from experiments.results import Measurement

PARTITIONS = 20  # of the paper
METRICS = {"error_percent": "error", "nll": "log-loss"}  # the paper's names and ours
ROUNDING = 1e-9  # of values, which are written with ten digits
AS_FRACTION = "SMC1v1"  # whose deviations Table 3 prints as fractions, all others in percent


class Table:
    """Measured values by data set, method, metric and partition."""

    def __init__(self, rows: Iterable[Measurement]):
        self._values: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
        self._sizes: dict[str, int] = {}
        for row in rows:
            self._values[row.data, row.method, row.metric][int(row.split)] = row.value
            if row.metric == SIZE:
                self._sizes[row.data] = int(row.value)

    def data(self, at_least: int = 1) -> list[str]:
        """Return the data sets with that many partitions, in the paper's order."""
        return [name for name in SOURCES if len(self.partitions(name)) >= at_least]

    def partitions(self, *data: str, methods: Iterable[str] = tuple(PAPER)) -> list[int]:
        """Return the partitions on which some methods, all of the paper's, were measured."""
        found = (set(self._values.get((d, m, "error"), ())) for d in data for m in methods)
        return sorted(set.intersection(*found))

    def size(self, data: str) -> int:
        """Return the number of training samples."""
        return self._sizes.get(data, SOURCES[data].n_train)

    def comparable(self, at_least: int = 1) -> list[str]:
        """Return the data sets with that many partitions of the paper's size."""
        return [d for d in self.data(at_least) if self.size(d) == SOURCES[d].n_train]

    def has(self, data: str, method: str, metric: str) -> bool:
        """Whether the method has that metric on all partitions of a data set."""
        return set(self.partitions(data)) <= set(self._values.get((data, method, metric), ()))

    def values(
        self,
        data: str,
        method: str,
        metric: str = "error",
        partitions: Sequence[int] | None = None,
    ) -> Floats:
        """Return the values on some partitions; on all of them when omitted."""
        found = self._values[data, method, metric]
        return np.array([found[i] for i in partitions or self.partitions(data)])

    def relative_differences(
        self, data: Sequence[str], first: Sequence[str], second: str, metric: str = "error"
    ) -> Floats:
        """Return the mean relative difference of the first methods from the second.

        On each data set the difference is divided by the mean of both sides over the
        partitions. The answer has one value, the mean over the data sets, for every partition
        on which all of them have the methods.
        """
        partitions, differences = self.partitions(*data, methods=(*first, second)), []
        for name in data:
            a = np.mean([self.values(name, m, metric, partitions) for m in first], axis=0)
            b = self.values(name, second, metric, partitions)
            scale = (a.mean() + b.mean()) / 2.0
            differences.append((a - b) / scale if scale > 0 else np.zeros_like(a))
        return np.mean(differences, axis=0)


def decisive(rows: Iterable[Measurement]) -> list[Measurement]:
    """Leave out the further partitions until all that were planned are there.

    Claims that were decided as soon as some of them are there could be decided by chance.
    """
    rows = list(rows)
    table = Table(rows)
    whole = {data: table.partitions(data) for data in SOURCES}
    of_pairs = {data: table.partitions(data, methods=PAIRS) for data in SOURCES}
    planned = {size["partitions"]: size["partitions"] + size[FURTHER] for size in SCALES.values()}
    if all(len(of_pairs[data]) == planned.get(len(whole[data])) for data in SOURCES):
        return rows
    return [row for row in rows if int(row.split) in whole[row.data]]


class Published(NamedTuple):
    """Mean and standard deviation over the 20 partitions of the paper."""

    mean: float
    deviation: float

    def standard_error(self, n: int) -> float:
        """Return the standard error of the difference from the mean over n other partitions."""
        return self.deviation * float(np.sqrt(1.0 / PARTITIONS + 1.0 / n))


def published_values() -> dict[tuple[str, str, str], Published]:
    """Return the published values by data set, method and metric, as fractions."""
    found = {}
    for row in pages.published("duan2003_tables2_4"):
        percent = row["metric"] == "error_percent"
        unit = 100.0 if percent else 1.0
        spread = 1.0 if percent and row["method"] == AS_FRACTION else unit
        found[row["dataset"], row["method"], METRICS[row["metric"]]] = Published(
            float(row["mean"]) / unit, float(row["std"]) / spread
        )
    return found


def distances_from_published(
    table: Table, methods: Iterable[str], metric: str
) -> dict[tuple[str, str], float]:
    """Return our means less the published ones, in standard errors, by data set and method."""
    found = {}
    for (data, method, m), theirs in published_values().items():
        if m == metric and method in methods and data in table.comparable():
            ours = table.values(data, method, metric)
            found[data, method] = (ours.mean() - theirs.mean) / theirs.standard_error(len(ours))
    return found


class Comparison(NamedTuple):
    """A pair of methods that section 5 compares."""

    first: str
    second: str
    metric: str


def published_p_values() -> dict[Comparison, dict[str, float]]:
    """Return the p-values of section 5 by data set, for every comparison."""
    found: dict[Comparison, dict[str, float]] = defaultdict(dict)
    for row in pages.published("duan2003_p_values"):
        metric = "error" if row["metric"] == "error" else "log-loss"
        comparison = Comparison(row["first"], row["second"], metric)
        found[comparison][row["dataset"]] = float(row["p"])
    return dict(found)


def p_value(first: Floats, second: Floats) -> float:
    """Return the p-value of section 5: small where the first has the smaller values.

    One-sided, from the t-test on paired differences; NaN for fewer than two.
    """
    difference = first - second
    if len(difference) < 2:
        return float("nan")
    mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(len(difference))
    rounding = ROUNDING * max(np.abs(first).max(), np.abs(second).max())
    if error <= rounding:  # the same difference everywhere
        return (1.0 + float(np.sign(mean)) * (abs(mean) > rounding)) / 2.0
    return float(t.cdf(mean / error, len(difference) - 1))
