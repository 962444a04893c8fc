"""Duan et al. (2003), section 1: whether training all classes together is slow.

A linear machine for all classes together (Crammer & Singer) is compared with one machine per class,
both of LIBLINEAR, on the same data and with the same C. It stands for the kernel machines for all
classes that the paper cites.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from experiments.duan2003.partitions import SOURCES, draw
from experiments.pages import markdown_table
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict

KINDS = {"one machine per class": "ovr", "all classes together": "crammer_singer"}
REPEATS = {"quick": 1, "paper": 5}
SIZE_LIMIT = {"quick": 100, "paper": None}


def measure(data: str, n_train: int, repeats: int) -> Iterator[Row]:
    """Yield the least processor time of either machine, in turns."""
    partition = draw(data, 1, n_train)
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        for kind, name in KINDS.items():
            model = LinearSVC(multi_class=name, C=1.0, max_iter=100_000, random_state=0)
            start = process_time()
            model.fit(partition.X, partition.y)
            seconds[kind].append(process_time() - start)
    for kind, found in seconds.items():
        yield Row(kind, "processor seconds", min(found))


def tasks(scale: str) -> list[Task]:
    """Return one task for every data set."""
    limit = SIZE_LIMIT[scale]
    return [
        Task(data, "1", "all", measure, (data, limit or source.n_train, REPEATS[scale]))
        for data, source in SOURCES.items()
    ]


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {"C": 1.0, "repeats, of which the least counts": REPEATS[scale]}


def ratios(rows: list[Measurement]) -> dict[str, float]:
    """Return the time of all classes together, divided by that of one machine per class."""
    times = {(row.data, row.method): row.value for row in rows}
    first, second = KINDS
    return {d: times[d, second] / times[d, first] for d in SOURCES if (d, first) in times}


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the table of ratios."""
    table = [[data, f"{ratio:.2f}"] for data, ratio in ratios(rows).items()]
    return "\n\n".join(
        [
            "Processor time of a linear machine for all classes together (Crammer and Singer), "
            "divided by that of one machine per class, both of LIBLINEAR, C = 1. The paper prints "
            "no times, and speaks of kernel machines.",
            markdown_table(["data", "ratio"], table),
        ]
    )


def _slow(rows: list[Measurement]) -> Verdict:
    found = ratios(rows)
    told = ", ".join(f"{data} {ratio:.2f}" for data, ratio in found.items())
    mean = float(np.exp(np.mean(np.log(list(found.values())))))
    slower = sum(ratio > 1 for ratio in found.values())
    holds = slower >= 4 and mean > 1 if len(found) == len(SOURCES) else None
    return Verdict(holds, f"time ratios: {told}; geometric mean {mean:.2f}.")


CLAIMS = (
    Claim(
        'The training speed of "all-together" methods is usually slow (section 1).',
        "Training all classes together takes more processor time than one machine per class on at "
        "least four of the five data sets, and in the geometric mean. Linear machines only.",
        _slow,
        key="all-together-slow",
    ),
)

EXPERIMENT = Experiment(
    name="duan2003-all-together",
    title="Section 1: training all classes together",
    tasks=tasks,
    config=config,
    section=section,
    claims=CLAIMS,
)
