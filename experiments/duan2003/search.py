"""The two-step grid search of Duan et al. (2003), section 4, for all methods of a family."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import NamedTuple

import numpy as np

from experiments.duan2003.machines import Problem
from experiments.duan2003.methods import LOG_LOSS, Estimate, Recipe, estimate
from manyclass.search import SmoothestBest

Point = tuple[float, float]
"""C and σ²."""
Wanted = dict[Point, set[str]]
"""The methods to evaluate at each point."""


class Grids(NamedTuple):
    """The values of both steps, for C and for σ²."""

    powers: tuple[float, ...]
    """The coarse values."""
    factors: tuple[float, ...]
    """Factors on the best coarse value, which give the fine values."""

    def coarse(self) -> list[Point]:
        """Return the points of the coarse grid."""
        return list(product(self.powers, self.powers))

    def fine(self, around: Point) -> list[Point]:
        """Return the points of the fine grid."""
        # Rounded: neighbouring fine grids then have points in common.
        C, sigma2 = ([float(f"{x * f:.12g}") for f in self.factors] for x in around)
        return list(product(C, sigma2))


class Found(NamedTuple):
    """The chosen point of a method, and its cross-validated performance."""

    C: float
    sigma2: float
    estimate: Estimate


def search(problem: Problem, recipes: Mapping[str, Recipe], grids: Grids) -> dict[str, Found]:
    """Return the best point for every method.

    All methods are evaluated on the coarse grid. Fine points that several methods share are
    evaluated once.

    Parameters
    ----------
    problem : Problem
    recipes : mapping of str to Recipe
        Methods of one family.
    grids : Grids
    """
    known: dict[tuple[str, Point], Estimate] = {}
    _judge(problem, recipes, {point: set(recipes) for point in grids.coarse()}, known)
    fine: dict[str, list[Point]] = {}
    wanted: Wanted = {}
    for name, recipe in recipes.items():
        fine[name] = grids.fine(_choose(name, recipe, grids.coarse(), known))
        for point in fine[name]:
            wanted.setdefault(point, set()).add(name)
    _judge(problem, recipes, wanted, known)
    best = {name: _choose(name, recipes[name], points, known) for name, points in fine.items()}
    return {name: Found(*point, known[name, point]) for name, point in best.items()}


def _judge(
    problem: Problem,
    recipes: Mapping[str, Recipe],
    wanted: Wanted,
    known: dict[tuple[str, Point], Estimate],
) -> None:
    """Estimate the wanted points that are not yet known."""
    missing = {
        point: new
        for point, names in wanted.items()
        if (new := {name for name in names if (name, point) not in known})
    }
    learner = next(iter(recipes.values())).method.learner
    for sigma2 in sorted({sigma2 for _, sigma2 in missing}):
        values_of_C = sorted(C for C, s in missing if s == sigma2)
        scores = problem.scores(learner, sigma2, values_of_C)
        for C, F in zip(values_of_C, scores, strict=True):
            for name in missing[C, sigma2]:
                known[name, (C, sigma2)] = estimate(
                    recipes[name], F, problem.y, problem.code, problem.folds
                )


def _choose(
    name: str,
    recipe: Recipe,
    points: Iterable[Point],
    known: Mapping[tuple[str, Point], Estimate],
) -> Point:
    """Choose by the rules (a) to (f). Without a log-loss, use only those about the error."""
    points = list(points)
    error, nll = np.array([known[name, point] for point in points]).T
    by_nll = recipe.goal == LOG_LOSS  # takes the place of the error in all rules
    table = {
        "params": [{"C": C, "sigma2": sigma2} for C, sigma2 in points],
        "param_C": np.array([C for C, _ in points]),
        "param_sigma2": np.array([sigma2 for _, sigma2 in points]),
        "mean_test_accuracy": -nll if by_nll else 1.0 - error,
        "mean_test_neg_log_loss": -nll,
    }
    second = "neg_log_loss" if recipe.gives_probabilities and not by_nll else None
    choice = SmoothestBest(gamma=None, sigma2="sigma2", log_loss=second)
    return points[choice(table)]
