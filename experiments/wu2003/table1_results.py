"""The measured and the published values of Table 1 of Wu et al. (2003)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from experiments import pages
from experiments.results import Measurement
from experiments.wu2003.search import TRAINING, Floats, method_name
from experiments.wu2003.table1 import ALL_METHODS, DATA, DEFAULT, pair_of

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
        return sorted(self._values.get((data, DEFAULT, "error"), {}))

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


def n_classes() -> dict[str, int]:
    """Return the number of classes of every data set."""
    return {row["dataset"]: int(row["classes"]) for row in pages.published("wu2003_table1")}


def as_paper(rule: str) -> str:
    """Return the paper's method: sigmoids on the scores of the training data."""
    return method_name(rule, TRAINING)
