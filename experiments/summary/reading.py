"""Measured values, averaged over the splits of each data set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from experiments.pages import Summary, summarise
from experiments.results import Measurement
from experiments.summary.methods import Method
from experiments.summary.ranking import Array, Ranking, rank_methods

LOSS_FLOOR = 1e-6  # for ratios, where a loss may be 0


class Table:
    """Means over splits, by data set, method and metric."""

    def __init__(self, rows: Iterable[Measurement]):
        self._summary: dict[tuple[str, str, str], Summary] = summarise(rows)
        self.data = [data for data, name, metric in self._summary if metric == "classes"]

    def has(self, name: str, metric: str = "error") -> bool:
        """Whether a method was measured on all data sets."""
        return all((data, name, metric) in self._summary for data in self.data)

    def mean(self, data: str, name: str, metric: str) -> float:
        """Return the mean over the splits of one data set."""
        return self._summary[data, name, metric].mean

    def n_splits(self) -> int:
        """Return the smallest number of splits of a data set."""
        return min(len(self._summary[data, "data", "classes"].values) for data in self.data)

    def losses(self, name: str, metric: str) -> Array:
        """Return the means of a method on every data set."""
        return np.array([self.mean(data, name, metric) for data in self.data])

    def medians(self, name: str, metric: str) -> Array:
        """Return the medians over the splits. The first split is slower: it loads the kernels."""
        return np.array([np.median(self._summary[d, name, metric].values) for d in self.data])

    def ratios(self, first: str, second: str, metric: str) -> Array:
        """Return the mean of the first divided by the mean of the second, on every data set."""
        return np.maximum(self.losses(first, metric), LOSS_FLOOR) / np.maximum(
            self.losses(second, metric), LOSS_FLOOR
        )

    def rank(self, methods: Sequence[Method], metric: str, full: bool = True) -> Ranking:
        """Rank methods, by labels with the code if ``full``."""
        losses = np.column_stack([self.losses(method.name, metric) for method in methods])
        return rank_methods([m.full_label if full else m.label for m in methods], losses)


def geometric_mean(values: Array) -> float:
    """Return the geometric mean of positive values."""
    return float(np.exp(np.log(values).mean()))
