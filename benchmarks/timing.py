"""Compare the run times of several functions: interleaved rounds, medians and spread."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timing:
    """Seconds of one function in each round."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))

    @property
    def best(self) -> float:
        """The fastest round. For two threads, it is the one in which the second core was free."""
        return min(self.seconds)

    @property
    def spread(self) -> float:
        """Half the range of the rounds, relative to their median."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median


def touch_memory(megabytes: int = 500) -> None:
    """Write to so much memory and free it: virtual machines are slow to give memory at first."""
    np.ones(megabytes * 2**17)


def interleave(
    tasks: Mapping[str, Callable[[], object]],
    rounds: int = 7,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Run all tasks once to warm up, then in turns.

    The speed of a shared machine changes over time; ratios of interleaved runs change less.
    """
    touch_memory()
    for task in tasks.values() if warm_up else ():
        task()
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            start = clock()
            task()
            seconds[name].append(clock() - start)
    return {name: Timing(tuple(values)) for name, values in seconds.items()}
