"""Tables 2 to 4 of Duan et al. (2003): test error and log-loss of all methods, section 4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import signature
from itertools import chain
from typing import Any

import numpy as np

from experiments.duan2003.machines import Problem
from experiments.duan2003.methods import (
    DEFAULT,
    FAMILIES,
    PAPER,
    RECIPES,
    TUNED,
    Recipe,
    final_model,
    log_losses,
    make_code,
    of_family,
)
from experiments.duan2003.partitions import N_FOLDS, SOURCES, Partition, draw
from experiments.duan2003.search import Found, Grids, search
from experiments.runner import Row, Task
from manyclass.combiners.softmax import Softmax
from manyclass.search import TwoStepGridSearchCV
from manyclass.svm import CoupledSVC

SIZE, SOFTMAX_C = "training samples", "log2 C of soft-max"
FURTHER = "further partitions, for MWV and PWC"
SCALES: dict[str, dict[str, Any]] = {
    "quick": {
        "partitions": 2,
        FURTHER: 1,
        SIZE: {"ABE": 90, "DNA": 120, "SAT": 120, "SEG": 105, "WAV": 90},
        "test samples": 500,
        "coarse grid": [1.0, 100.0],
        "fine factors": [0.4, 1.0, 4.0],
    },
    "paper": {
        "partitions": 20,
        FURTHER: 20,
        SIZE: {data: source.n_train for data, source in SOURCES.items()},
        "test samples": None,
        "coarse grid": [10.0**power for power in range(-3, 4)],
        "fine factors": list(signature(TwoStepGridSearchCV).parameters["factors"].default),
    },
}
PAIRS = tuple(name for name in PAPER if name.startswith(("MWV", "PWC")))


def tasks(scale: str) -> Sequence[Task]:
    """Return one task for every partition, data set and family of machines."""
    size = SCALES[scale]
    common = size["test samples"], size["coarse grid"], size["fine factors"]
    whole, n = size["partitions"], size["partitions"] + size[FURTHER]
    pairs = [family for family, (_, code) in FAMILIES.items() if code == "one-vs-one"]

    def of(number: int, families: Iterable[str], work: Callable[..., Iterator[Row]]) -> list[Task]:
        return [
            Task(data, str(number), family, work, (data, number, family, n_train, *common))
            for data, n_train in size[SIZE].items()
            for family in families
        ]

    everything = (of(number, FAMILIES, measure) for number in range(1, whole + 1))
    further = (of(number, pairs, measure_pairs) for number in range(whole + 1, n + 1))
    return list(chain(*everything, *further))


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SCALES[scale],
        "test samples": SCALES[scale]["test samples"] or "all others",
        "folds": N_FOLDS,
        "partitions' seed": "1000 * number of the data set + number of the partition, stratified; "
        "that of the folds is the same",
        "inputs": "standardised by the training part; DNA's indicators as they are",
        "choice": "rules (a) to (f) of section 4 in either step, C and sigma^2 both on the grid; "
        f"{TUNED}: the log-loss takes the place of the error",
        "estimates within the grid": "5-fold scores of the machines, of pairs that a sample is not "
        "of as well; sigmoids, soft-max functions and temperatures are fitted on the scores of "
        "four folds and judged on the fifth; SMC "
        "cross-validates its 31 values of C on the scores at every point of the grid, and is "
        "judged by the one it chooses",
        "final model": "machines on all training samples; sigmoids and soft-max functions on the "
        f"scores of section 3.1; {TUNED}: on analytic leave-one-out scores",
        "methods with the machines of another": {
            name: recipe.machines_of for name, recipe in RECIPES.items() if recipe.machines_of
        },
    }


def measure(
    data: str,
    number: int,
    family: str,
    n_train: int,
    n_test: int | None,
    powers: Sequence[float],
    factors: Sequence[float],
) -> Iterator[Row]:
    """Find C and σ² for the methods of a family, fit them, and evaluate them."""
    partition = draw(data, number, n_train, n_test)
    yield from _measure(partition, family, of_family(family), Grids(tuple(powers), tuple(factors)))
    if RECIPES[TUNED].family == FAMILIES[family]:
        yield from _test(DEFAULT, CoupledSVC(), partition, True)
    yield Row(family, SIZE, float(n_train))


def measure_pairs(
    data: str,
    number: int,
    family: str,
    n_train: int,
    n_test: int | None,
    powers: Sequence[float],
    factors: Sequence[float],
) -> Iterator[Row]:
    """Do the same for MWV and PWC alone, without soft-max functions.

    They take a tenth of the time, so that more partitions can decide the claims about them.
    """
    partition = draw(data, number, n_train, n_test)
    recipes = {name: r for name, r in of_family(family).items() if name in PAIRS}
    yield from _measure(partition, family, recipes, Grids(tuple(powers), tuple(factors)))


def _measure(
    partition: Partition, family: str, recipes: dict[str, Recipe], grids: Grids
) -> Iterator[Row]:
    code = make_code(family, int(partition.y.max()) + 1)
    problem = Problem(partition.distances(), partition.y, code, partition.folds)
    searched = {name: recipe for name, recipe in recipes.items() if recipe.machines_of is None}
    best = search(problem, searched, grids)
    for name, recipe in recipes.items():
        found = best[recipe.machines_of or name]
        if name in best:
            yield from _describe(name, found)
        model = final_model(name, found.C, found.sigma2, partition.folds)
        yield from _test(name, model, partition, recipe.gives_probabilities)
        if isinstance(model.combiner_, Softmax):
            yield Row(name, SOFTMAX_C, float(np.log2(model.combiner_.C_)))


def _describe(name: str, found: Found) -> Iterator[Row]:
    yield Row(name, "log10 C", float(np.log10(found.C)))
    yield Row(name, "log10 sigma2", float(np.log10(found.sigma2)))
    yield Row(name, "cv-error", found.estimate.error)
    if not np.isnan(found.estimate.nll):
        yield Row(name, "cv-log-loss", found.estimate.nll)


def _test(name: str, model, partition: Partition, gives_probabilities: bool) -> Iterator[Row]:
    """Fit the model and evaluate it on the test samples."""
    model.fit(partition.X, partition.y)
    y = partition.y_test
    if not gives_probabilities:
        yield Row(name, "error", float((model.predict(partition.X_test) != y).mean()))
        return
    p = model.predict_proba(partition.X_test)
    squares = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)
    yield Row(name, "error", float((p.argmax(axis=1) != y).mean()))
    yield Row(name, "log-loss", float(log_losses(p, y).mean()))
    yield Row(name, "brier", float(squares.mean()))
    yield Row(name, "mse", float(squares.mean()) / p.shape[1])
