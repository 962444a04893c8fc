"""Zadrozny (2001): coupling for any code matrix, with boosted naive Bayes.

Tables 2 and 3, and figure 1. Each data set has one official split. Our splits differ only
in the seed of the sparse random code. The paper drew a single code.
"""

from __future__ import annotations

from typing import Any

from experiments.runner import Experiment, Task
from experiments.zadrozny2001 import divergence, measuring, reliability
from experiments.zadrozny2001.claims import CODES, FIGURE_CLAIMS, TABLE_CLAIMS
from experiments.zadrozny2001.pages import figure_section, tables_section
from manyclass.combiners.coupling.general import Zadrozny

TITLE = "Zadrozny (2001): Reducing multiclass to binary by coupling probability estimates"

DATA = ("satimage", "pendigits", "soybean", "soybean-ignored")
SIZES: dict[str, dict[str, Any]] = {
    "quick": {"data": DATA[:3], "n_seeds": 2, "iterations": 100, "limit": 300},
    "paper": {"data": DATA, "n_seeds": 10, "iterations": 2000, "limit": None},
}


def _codes(scale: str) -> list[tuple[str, str, int]]:
    """Return (split, code, seed). Only the sparse code depends on the seed."""
    fixed = [(_split(scale, "origin"), code, 0) for code in CODES[:2]]
    seeds = range(SIZES[scale]["n_seeds"])
    return fixed + [(_split(scale, f"seed {seed}"), CODES[2], seed) for seed in seeds]


def _split(scale: str, name: str) -> str:
    """Name a split. The two scales have different names."""
    return name if scale == "paper" else f"{scale} {name}"


def table_tasks(scale: str) -> list[Task]:
    """Return one task for every data set and code, and one for its baselines."""
    limit = SIZES[scale]["limit"]
    return [
        task
        for data in SIZES[scale]["data"]
        for task in [
            Task(
                data,
                _split(scale, "origin"),
                "baselines",
                measuring.measure_baselines,
                (data, limit),
            ),
            *(
                Task(data, split, code, measuring.measure_code, (data, code, seed, limit))
                for split, code, seed in _codes(scale)
            ),
        ]
    ]


def figure_tasks(scale: str) -> list[Task]:
    """Return one task for every code."""
    limit, last = SIZES[scale]["limit"], SIZES[scale]["iterations"]
    arguments = [
        (split, ("satimage", code, seed, last, limit)) for split, code, seed in _codes(scale)
    ]
    return [
        Task("satimage", split, values[1], measuring.measure_iterations, values)
        for split, values in arguments
    ]


def _config(scale: str) -> dict[str, Any]:
    size = SIZES[scale]
    return {
        "codes": list(CODES),
        "seeds of the sparse random code": list(range(size["n_seeds"])),
        "rows of each part at most": size["limit"],
        "learner": "BoostedNaiveBayes: 10 rounds, 10 bins, smoothing 1",
        "split": "official",
    }


def table_config(scale: str) -> dict[str, Any]:
    """Return the settings of the tables at a scale."""
    return {
        "data": list(SIZES[scale]["data"]),
        **_config(scale),
        "iteration": Zadrozny().get_params(),
        "folds for calibration and temperature": repr(measuring.splitter()),
    }


def figure_config(scale: str) -> dict[str, Any]:
    """Return the settings of the figure at a scale."""
    return {"data": ["satimage"], **_config(scale), "iterations": SIZES[scale]["iterations"]}


EXPERIMENTS = (
    divergence.EXPERIMENT,
    Experiment(
        "zadrozny2001-tables",
        "Tables 2 and 3: error and mean squared error",
        table_tasks,
        table_config,
        tables_section,
        TABLE_CLAIMS,
    ),
    Experiment(
        "zadrozny2001-figure1",
        "Figure 1: the mean squared error at each iteration",
        figure_tasks,
        figure_config,
        figure_section,
        FIGURE_CLAIMS,
    ),
    reliability.EXPERIMENT,
)
