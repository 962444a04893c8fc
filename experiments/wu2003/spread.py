"""Section 5 of Wu et al. (2003): how far apart the rules put the class probabilities.

The spread of a rule is the standard deviation of its p over the classes, divided by that of the
true p. It is below 1 where the rule underestimates the differences between the p_i, and above 1
where it overestimates them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments import pages
from experiments.intervals import Interval, all_of, normal_interval
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict
from experiments.simulated import pairwise_probabilities
from experiments.wu2003.figure1 import (
    CASES,
    NOISE,
    SIZES,
    TRUNCATION,
    class_probabilities,
    data_name,
)
from experiments.wu2003.figure1_results import LABELS
from experiments.wu2003.formulas import FORMULAS, Array
from manyclass import couple

SPREAD = "spread"
RULES = ("ht", "wlw1", "wlw2", "vote")
METHODS = (*FORMULAS, *RULES)
LEVEL = 0.99
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"sizes": [3, 8], "replicates": 200},
    "paper": {"sizes": list(SIZES), "replicates": 10_000},
}


# -- measuring -------------------------------------------------------------------------


def estimates(r: Array) -> dict[str, Array]:
    """Return p by the four formulas and by the four rules as they are used."""
    found = {name: formula(r) for name, formula in FORMULAS.items()}
    return found | {rule: couple(r, rule=rule) for rule in RULES}


def simulate(case: str, k: int, n_replicates: int, seed: int) -> Iterator[Row]:
    """Yield the mean spread of every formula and rule, and of neighbouring differences."""
    p = class_probabilities(case, k)
    r = pairwise_probabilities(p, n_replicates, noise=NOISE, eps=TRUNCATION, random_state=seed)
    spreads = {name: q.std(axis=1) / p.std() for name, q in estimates(r).items()}
    for name, values in spreads.items():
        yield from _mean(name, values)
    for lower, upper in pairwise(FORMULAS):
        yield from _mean(f"{upper} - {lower}", spreads[upper] - spreads[lower])


def _mean(name: str, values: Array) -> Iterator[Row]:
    yield Row(name, SPREAD, float(values.mean()))
    yield Row(name, f"{SPREAD} se", float(values.std(ddof=1) / np.sqrt(len(values))))


def tasks(scale: str) -> list[Task]:
    """Return one task for every case and k."""
    size = SCALES[scale]
    return [
        Task(data_name(case, k), "1", "all", simulate, (case, k, size["replicates"], seed))
        for number, case in enumerate(CASES)
        for k in size["sizes"]
        for seed in [50_000 + 1000 * number + k]
    ]


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {**SCALES[scale], "noise": NOISE, "seed": "50000 + 1000 * number of the case + k"}


# -- the page --------------------------------------------------------------------------


class Spreads:
    """Mean spreads over the numbers of classes, by case."""

    def __init__(self, rows: list[Measurement]):
        self._values = {(row.data, row.method, row.metric): row.value for row in rows}

    def sizes(self, case: str) -> list[int]:
        """Return the numbers of classes that were simulated."""
        return [k for k in SIZES if (data_name(case, k), "(13)", SPREAD) in self._values]

    def value(self, case: str, k: int, method: str) -> float:
        """Return one mean."""
        return self._values[data_name(case, k), method, SPREAD]

    def interval(self, case: str, method: str) -> Interval:
        """Return the mean over the numbers of classes."""
        sizes = self.sizes(case)
        means = [self.value(case, k, method) for k in sizes]
        errors = [self._values[data_name(case, k), method, f"{SPREAD} se"] for k in sizes]
        return normal_interval(
            float(np.mean(means)), float(np.linalg.norm(errors) / len(sizes)), LEVEL
        )


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the figure and the table of mean spreads."""
    found = Spreads(rows)
    picture = pages.save_figure(
        folder / "wu2003-spread.png",
        lambda axes: _draw(found, axes),
        ncols=3,
        figsize=(11, 4.2),
        sharey=True,
    )
    table = [
        [_label(method), *(f"{found.interval(case, method).mean:.2f}" for case in CASES)]
        for method in METHODS
    ]
    return "\n\n".join(
        [
            "The spread of a rule is the standard deviation of its p over the classes, divided by "
            "that of the true p. A rule with a spread below 1 underestimates the differences "
            "between the p_i; above 1 it overestimates them. (13) to (16) are the formulas of "
            "section 5; HT by the distance (2) and V by shares of votes are the rules as they are "
            "used for probabilities. The paper prints no numbers here.",
            picture,
            "Mean spread over k:",
            pages.markdown_table(["", *CASES], table),
        ]
    )


def _label(method: str) -> str:
    return f"{LABELS[method]}, the rule" if method in LABELS else method


TICKS = (0.2, 0.5, 1, 2, 5)


def _draw(found: Spreads, axes) -> None:
    lines = {"(13)": "-x", "(14)": ":o", "(15)": "-.*", "(16)": "--s", "ht": "-^", "vote": "--v"}
    for case, panel in zip(CASES, axes, strict=True):
        sizes = found.sizes(case)
        for method, line in lines.items():
            values = [found.value(case, k, method) for k in sizes]
            panel.plot(sizes, values, line, label=_label(method), markerfacecolor="none")
        panel.axhline(1.0, color="0.4", lw=0.8)
        panel.set_title(f"{case} p")
        panel.set_yscale("log")
        panel.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        panel.minorticks_off()
        panel.set_xlabel("number of classes k")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("spread: sd of p / sd of the true p")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[0].figure.legend(handles, labels, loc="outside lower center", ncols=6)


# -- claims ----------------------------------------------------------------------------

Question = tuple[str, Callable[[Interval], bool | None]]


def _below(interval: Interval) -> bool | None:
    return interval.below(1.0)


def _above(interval: Interval) -> bool | None:
    return interval.above(1.0)


def _positive(interval: Interval) -> bool | None:
    return interval.above(0.0)


def _decide(*questions: Question) -> Callable[[list[Measurement]], Verdict]:
    def decide(rows: list[Measurement]) -> Verdict:
        found, told, answers = Spreads(rows), [], []
        for case in CASES:
            for method, answer in questions:
                interval = found.interval(case, method)
                answers.append(answer(interval))
                bounds = f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
                told.append(f"{case} {_label(method)} {bounds}")
        return Verdict(all_of(answers), f"{'; '.join(told)} ({LEVEL:.0%} intervals).")

    return decide


def _extremes(rows: list[Measurement]) -> Verdict:
    """Decide whether (13) has the least and (16) the largest spread of the four."""
    found, told, answers = Spreads(rows), [], []
    for case in CASES:
        spreads = {method: found.interval(case, method) for method in FORMULAS}
        least, *inner, largest = spreads.values()
        for one in inner:
            answers += [one.above(least.high), one.below(largest.low)]
        listed = ", ".join(
            f"{m} {i.mean:.3f} [{i.low:.3f}, {i.high:.3f}]" for m, i in spreads.items()
        )
        told.append(f"{case} {listed}")
    return Verdict(all_of(answers), f"{'; '.join(told)} ({LEVEL:.0%} intervals).")


MEAN = f"Mean spread over k in each of the three cases, {LEVEL:.0%} intervals"
CLAIMS = (
    Claim(
        "(13) underestimates the differences between the p_i, (16) overestimates them (section 5).",
        f"{MEAN}: below 1 for (13), and above 1 for (16).",
        _decide(("(13)", _below), ("(16)", _above)),
        key="formulas-extreme",
    ),
    Claim(
        "Compared with (15), (14) tends to underestimate the differences between the p_i "
        "(section 5).",
        f"{MEAN}: the difference of (15) and (14) on the same replicates is above 0.",
        _decide(("(15) - (14)", _positive)),
        key="formulas-14-15",
    ),
    Claim(
        "(13) and (16) are more extreme than (14) and (15) (section 5).",
        f"{MEAN}: that of (13) lies below those of (14) and (15), that of (16) above them.",
        _extremes,
        key="formulas-ordered",
    ),
    Claim(
        "The rules HT and V, as they are used for probabilities, are extremes in the same way "
        "(section 5).",
        f"{MEAN}: below 1 for HT by the distance (2), above 1 for V by shares of votes.",
        _decide(("ht", _below), ("vote", _above)),
        key="rules-extreme",
    ),
)

EXPERIMENT = Experiment(
    name="wu2003-spread",
    title="Section 5: the spread of the class probabilities",
    tasks=tasks,
    config=config,
    section=section,
    claims=CLAIMS,
)
