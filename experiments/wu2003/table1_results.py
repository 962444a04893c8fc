"""The measured and the published values of Table 1 of Wu et al. (2003)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from experiments import pages
from experiments.results import Measurement
from experiments.wu2003.search import TRAINING, Floats, method_name
from experiments.wu2003.table1 import ALL_METHODS, DATA, pair_of

LABELS = {"ht": "HT", "wlw1": "δ1", "wlw2": "δ2", "vote": "V"}
PUBLISHED = {"ht": "ht", "wlw1": "delta1", "wlw2": "delta2", "vote": "vote"}  # names of columns


class Table:
    """Measured values: repeats by data set, method, metric and pair."""

    def __init__(self, rows: Iterable[Measurement]):
        self._values: dict[tuple[str, str, str], dict[int, list[float]]] = defaultdict(dict)
        for row in rows:
            if row.method in ALL_METHODS:
                pairs = self._values[row.data, row.method, row.metric]
                pairs.setdefault(pair_of(row.split), []).append(row.value)

    def data(self, at_least: int = 1) -> list[str]:
        """Return the data sets with that many pairs, in the paper's order."""
        return [name for name in DATA if len(self.pairs(name)) >= at_least]

    def pairs(self, data: str) -> list[int]:
        """Return the pairs that were measured."""
        return sorted(self._values.get((data, as_paper("ht"), "error"), {}))

    def repeats(self, data: str, pair: int, method: str, metric: str = "error") -> Floats:
        """Return the values of all repeats."""
        return np.array(self._values[data, method, metric][pair])

    def has(self, data: str, method: str, metric: str) -> bool:
        """Whether the method has that metric: votes have no metrics of probabilities."""
        return (data, method, metric) in self._values

    def means(self, data: str, method: str, metric: str = "error") -> Floats:
        """Return the mean over the repeats, for every pair."""
        return np.array([self.repeats(data, p, method, metric).mean() for p in self.pairs(data)])

    def differences(
        self, data: Iterable[str], first: str, second: str, metric: str = "error"
    ) -> Floats:
        """Return first minus second for all pairs of the data sets."""
        gaps = [self.means(d, first, metric) - self.means(d, second, metric) for d in data]
        return np.concatenate(gaps) if gaps else np.empty(0)


def published_errors() -> dict[tuple[str, int, str], tuple[float, float]]:
    """Return mean and deviation of the published errors, by data set, pair and rule."""
    return {
        (row["dataset"], int(row["pair"]), rule): (
            float(row[f"{column}_mean"]) / 100,
            float(row[f"{column}_std"]) / 100,
        )
        for row in pages.published("wu2003_table1")
        for rule, column in PUBLISHED.items()
    }


def published_means(data: str, rule: str) -> Floats:
    """Return the published errors of a rule for all pairs of a data set."""
    return np.array(
        [
            mean
            for (name, _, r), (mean, _) in published_errors().items()
            if (name, r) == (data, rule)
        ]
    )


def published_rows() -> list[Measurement]:
    """Return the published means as measurements, so that the same criteria apply to them."""
    return [
        Measurement("published", data, f"pair {pair} repeat 1", as_paper(rule), "error", mean)
        for (data, pair, rule), (mean, _) in published_errors().items()
    ]


def mean_distances(table: Table) -> dict[tuple[str, str], float]:
    """Return our means less the published ones, in standard errors, by data set and rule."""
    found = {}
    for name in table.data(at_least=2):
        for rule in LABELS:
            ours, theirs = table.means(name, as_paper(rule)), published_means(name, rule)
            error = standard_error(ours, theirs)
            if error > 0:
                found[name, rule] = float((ours.mean() - theirs.mean()) / error)
    return found


def standard_error(ours: Floats, theirs: Floats) -> float:
    """Return the standard error of the difference of means; 0 if there are too few values."""
    if len(ours) < 2:
        return 0.0
    return float(np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs)))


def n_classes() -> dict[str, int]:
    """Return the number of classes of every data set."""
    return {row["dataset"]: int(row["classes"]) for row in pages.published("wu2003_table1")}


def as_paper(rule: str) -> str:
    """Return the paper's method: sigmoids on the scores of the training data."""
    return method_name(rule, TRAINING)
