"""Ranks of methods over data sets, and their significance (Demšar 2006, section 3.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import friedmanchisquare, rankdata, studentized_range

LEVEL = 0.05
ROUNDING = 1e-9  # ranks are means of halves: differences below are none

Array = NDArray[np.float64]


class Ranking(NamedTuple):
    """Methods from the best mean rank to the worst."""

    names: list[str]
    ranks: Array
    """Mean ranks, increasing; 1 is the best a method can have."""
    n_data: int
    p_value: float
    """p-value of the Friedman test that no methods differ."""
    distance: float
    """Nemenyi's critical difference: larger differences of ranks are significant."""

    def rank_of(self, name: str) -> float:
        """Return the mean rank of a method."""
        return float(self.ranks[self.names.index(name)])

    def as_good_as_best(self) -> list[str]:
        """Return the methods that are not significantly worse than the best."""
        limit = self.ranks[0] + self.distance + ROUNDING
        return [name for name, rank in zip(self.names, self.ranks, strict=True) if rank <= limit]

    def groups(self) -> list[tuple[int, int]]:
        """Return (first, last) of the largest runs of methods that do not differ significantly."""
        ends = np.searchsorted(self.ranks, self.ranks + self.distance + ROUNDING, side="right") - 1
        runs = [(first, int(last)) for first, last in enumerate(ends) if last > first]
        return [run for i, run in enumerate(runs) if i == 0 or run[1] > runs[i - 1][1]]


def rank_methods(names: list[str], losses: Array) -> Ranking:
    """Rank methods by their losses on several data sets.

    Parameters
    ----------
    names : list of str
        At least three.
    losses : array of shape (n_data, len(names))
        Lower is better. Equal losses share their mean rank.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.summary.ranking import rank_methods
    >>> losses = np.array([[0.1, 0.3, 0.2], [0.2, 0.4, 0.2]])
    >>> ranking = rank_methods(["a", "b", "c"], losses)
    >>> ranking.names, ranking.ranks
    (['a', 'c', 'b'], array([1.25, 1.75, 3.  ]))
    """
    ranks = rankdata(losses, axis=1).mean(axis=0)
    order = np.argsort(ranks, kind="stable")
    n_data, k = losses.shape
    alike = bool((losses == losses[:, :1]).all())  # the statistic is 0 / 0 then
    p_value = 1.0 if alike else float(friedmanchisquare(*losses.T).pvalue)
    return Ranking(
        [names[i] for i in order],
        ranks[order],
        n_data,
        p_value,
        critical_difference(k, n_data),
    )


def critical_value(k: int, level: float = LEVEL) -> float:
    """Return q of Nemenyi's test: the studentised range of k means, divided by √2.

    Examples
    --------
    >>> from experiments.summary.ranking import critical_value
    >>> round(critical_value(4), 3)  # Demšar (2006), table 5a
    2.569
    """
    return float(studentized_range.isf(level, k, np.inf) / np.sqrt(2.0))


def critical_difference(k: int, n_data: int, level: float = LEVEL) -> float:
    """Return the smallest significant difference of mean ranks of k methods.

    Parameters
    ----------
    k : int
        Number of methods.
    n_data : int
        Number of data sets.
    level : float, default=0.05
        Level of the test, for all pairs of methods simultaneously.

    References
    ----------
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of
    Machine Learning Research 7 (2006), section 3.2.2.

    Examples
    --------
    >>> from experiments.summary.ranking import critical_difference
    >>> round(critical_difference(4, 14), 2)  # the paper's example
    1.25
    """
    return critical_value(k, level) * float(np.sqrt(k * (k + 1) / (6.0 * n_data)))
