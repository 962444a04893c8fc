"""Table I of Liu & Zheng (2005): errors of one-vs-rest machines with and without reliability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.liu2005.choices import ORIGIN
from experiments.liu2005.machines import (
    SETTINGS,
    SIZES,
    UNCONVERGED,
    Answers,
    Setting,
    Split,
    default_probabilities,
    error_rows,
    fit_machines,
    load_split,
    method_name,
    probability_rows,
)
from experiments.runner import Row, Task

RESAMPLES = {"quick": 1, "paper": 10}
QUICK_C = 1.0
STOPS = {
    "quick": (10_000, 100_000),
    "paper": (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000),
}
STOPPED_C, STOPPED_SIZE = 1.0, 5
DEFAULTS = "CoupledSVC"


def measure_split(name: str, grid: tuple[float, ...]) -> Iterator[Row]:
    """Yield all metrics on the official split, with one fit for each C."""
    setting = SETTINGS[name]
    split = load_split(setting.dataset)
    for C in grid:
        machines, X_test = fit_machines(setting, C, split)
        coupled = machines.coupled(X_test)
        answers = {**machines.decoded(X_test), **machines.by_sizes(X_test), **coupled}
        yield from _answer_rows(answers, coupled, split.y_test, C)
        yield Row(method_name("DRM", C), "neighbours", machines.dynamic.n_neighbors_)
        yield Row(method_name("f(x)", C), "left-out error", machines.cross_validated_error())


def measure_left_out(name: str, C: float, every: int = 1) -> Iterator[Row]:
    """Yield all metrics by leave-one-out of every sample, or of every few."""
    setting, parts, neighbours, errors, labels = SETTINGS[name], [], [], [], []
    for split in list(load_split(setting.dataset).leave_one_out())[::every]:
        machines, X_test = fit_machines(setting, C, split)
        coupled = machines.coupled(X_test)
        parts.append({**machines.decoded(X_test), **coupled})
        labels.append(split.y_test)
        neighbours.append(machines.dynamic.n_neighbors_)
        errors.append(machines.cross_validated_error())
    answers = joined(parts)
    coupled = {rule: answers[rule] for rule in coupled}
    yield from _answer_rows(answers, coupled, np.concatenate(labels), C)
    yield Row(method_name("DRM", C), "neighbours", float(np.median(neighbours)))
    yield Row(method_name("f(x)", C), "left-out error", float(np.mean(errors)))


def joined(parts: list[Answers]) -> Answers:
    """Join the answers for several test sets."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _answer_rows(answers: Answers, coupled: Answers, y, C: float) -> Iterator[Row]:
    yield from error_rows(answers, y, C)
    for rule, p in coupled.items():
        yield from probability_rows(method_name(rule, C), p, y)


def measure_resampled(name: str, grid: tuple[float, ...], seed: int) -> Iterator[Row]:
    """Yield the errors of the three rules on another split."""
    setting = SETTINGS[name]
    split = load_split(setting.dataset, resample=seed)
    for C in grid:
        machines, X_test = fit_machines(setting, C, split)
        yield from error_rows(machines.decoded(X_test), split.y_test, C)


def measure_stopped(name: str, iterations: int) -> Iterator[Row]:
    """Yield the errors of machines on raw inputs whose solver stops early or late."""
    setting, split = SETTINGS[name], load_split(SETTINGS[name].dataset)
    stopped = replace(setting, machine={**setting.machine, "max_iter": iterations})
    machines, X_test = fit_machines(stopped, STOPPED_C, split)
    near = machines.by_sizes(X_test, [STOPPED_SIZE])[f"DRM m={STOPPED_SIZE}"]
    answers = {**machines.simply_decoded(X_test), "DRM": near}
    for rule, scores in answers.items():
        error = float(np.mean(scores.argmax(axis=1) != split.y_test))
        yield Row(f"{rule}, {iterations} iterations", "error", error)
    yield Row(f"f(x), {iterations} iterations", "converged", float(machines.bank.converged))


def measure_default(dataset: str, every: int = 1) -> Iterator[Row]:
    """Yield the metrics of CoupledSVC with its defaults."""
    whole = load_split(dataset)
    parts: list[Split] = [whole]
    if whole.X is whole.X_test:
        parts = list(whole.leave_one_out())[::every]
    p = np.concatenate([default_probabilities(part) for part in parts])
    y = np.concatenate([part.y_test for part in parts])
    yield Row(DEFAULTS, "error", float(np.mean(p.argmax(axis=1) != y)))
    yield from probability_rows(DEFAULTS, p, y)


def tasks(scale: str) -> list[Task]:
    """Return one task per setting and split. Large ones have one task per C."""
    found = []
    for name, setting in SETTINGS.items():
        if scale == "paper" or setting.dataset != "letter":
            found += list(_of_setting(name, setting, scale))
    prefix, every = ("", 1) if scale == "paper" else ("quick-", 10)
    for dataset in dict.fromkeys(SETTINGS[task.data].dataset for task in found):
        arguments = dataset, every
        found.append(Task(dataset, f"{prefix}{ORIGIN}", DEFAULTS, measure_default, arguments))
    return found


def _of_setting(name: str, setting: Setting, scale: str) -> Iterator[Task]:
    grid = setting.grid if scale == "paper" else (QUICK_C,)
    prefix, every = ("", 1) if scale == "paper" else ("quick-", 10)
    origin = f"{prefix}{ORIGIN}"
    if setting.dataset == "iris":
        for C in grid:
            yield Task(name, origin, f"C={C:g}", measure_left_out, (name, C, every))
    elif setting.dataset == "letter":
        for C in grid:
            yield Task(name, origin, f"C={C:g}", measure_split, (name, (C,)))
    else:
        yield Task(name, origin, "all", measure_split, (name, grid))
        if setting.variant == UNCONVERGED:
            for iterations in STOPS[scale]:
                group, arguments = f"{iterations} iterations", (name, iterations)
                yield Task(name, origin, group, measure_stopped, arguments)
        for seed in range(RESAMPLES[scale]):
            split = f"{prefix}resampled-{seed}"
            yield Task(name, split, "all", measure_resampled, (name, grid, seed))


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        "settings": {
            name: {**setting.machine, "C": setting.grid if scale == "paper" else [QUICK_C]}
            for name, setting in SETTINGS.items()
        },
        "resamples": RESAMPLES[scale],
        "sizes": SIZES,
    }
