"""Time several callables against each other: interleaved rounds, medians and spread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Seconds of one callable over the rounds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def best(self) -> float:
        """The quickest round: where a second core is wanted, the one it was free in."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """Half the range of the rounds over their median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median


def interleave(
    tasks: Mapping[str, Callable[[], object]], rounds: int = 7, warm_up: bool = True
) -> dict[str, Timing]:
    """Run all tasks once to warm up, then in turn; shared machines drift, ratios less so."""
    for task in tasks.values() if warm_up else ():
        task()
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}
