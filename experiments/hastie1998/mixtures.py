"""Figures 1 and 2 of Hastie & Tibshirani (1998): three classes in the plane."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from experiments.hastie1998.tools import (
    Array,
    Interval,
    Pairs,
    in_pairs,
    interval_of_moments,
    known,
    mean_interval,
    measured,
    measured_pairs,
    metrics_table,
    seed_of,
    split_name,
)
from experiments.pages import paired, save_figure, summarise
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict
from experiments.simulated import gaussian_mixtures
from manyclass import CoupledSVC

COMPONENTS = {"figure1": 3, "figure2": 2}  # of each class: the paper does not say
SIZES = {
    "quick": {"populations": 3, "train_per_class": 200, "test_per_class": 1000, "further": 3},
    "paper": {"populations": 50, "train_per_class": 200, "test_per_class": 20000, "further": 950},
}
AT_ONCE = 50  # further populations of a task
FURTHER_TEST = 5000  # test samples per class of the further populations
TASKS_OF_PAIRS = {"quick": (1, 5), "paper": (41, 500)}  # of Figure 1: tasks, populations of each
DATA, FURTHER = "three mixtures", "three mixtures, further populations"
PAIRS_ALONE = "three mixtures, votes and coupling alone"
COUPLED, WINS = "LDA pairs, coupled", "LDA pairs, max-wins"
DIFFERENCE = f"{WINS} less {COUPLED}"
METHODS = (
    WINS,
    COUPLED,
    "LDA",
    "QDA",
    "LDA pairs, logit",
    "LDA pairs, wlw2",
    "LDA pairs, calibrated, coupled",
    "LDA pairs, calibrated, wlw2, temperature",
    "CoupledSVC",
    "Bayes",
)
TOLERANCE = 0.002  # error rates that differ by less count as equal
COLOURS = ("#8fb8de", "#f3c98b", "#a8d5a2")


# -- measuring -------------------------------------------------------------------------


def draw_mixture(figure: str, seed: int, n_per_class: int):
    """Return the population of a seed and its training set."""
    population = gaussian_mixtures(3, COMPONENTS[figure], random_state=seed)
    return population, *population.sample(n_per_class, random_state=1000 + seed)


def measure_mixture(figure: str, seed: int, n_train: int, n_test: int) -> Iterator[Row]:
    """Yield the errors on a large sample of one population."""
    population, X, y = draw_mixture(figure, seed, n_train)
    X_test, y_test = population.sample(n_test, random_state=2000 + seed)
    pairs = Pairs(in_pairs(LinearDiscriminantAnalysis()).fit(X, y), X_test)
    yield from measured_pairs("LDA pairs", pairs, y_test)
    yield Row(WINS, "undecided", float(pairs.undecided().mean()))
    for rule in ("logit", "wlw2"):
        yield from measured(f"LDA pairs, {rule}", y_test, pairs.coupled(rule))
    for method, model in _others().items():
        yield from measured(method, y_test, model.fit(X, y).predict_proba(X_test))
    yield from measured("Bayes", y_test, population.posterior(X_test))


def measure_further(figure: str, first: int, count: int, n_train: int) -> Iterator[Row]:
    """Yield the errors of the paper's rules on several populations, one after the other."""
    for seed in range(first, first + count):
        population, X, y = draw_mixture(figure, seed, n_train)
        X_test, y_test = population.sample(FURTHER_TEST, random_state=2000 + seed)
        labels = _labels_of_pairs(X, y, X_test)
        for name, model in _multiclass().items():
            labels[name] = model.fit(X, y).predict(X_test)
        for method, found in labels.items():
            yield Row(method, f"error {seed}", float(np.mean(found != y_test)))


def measure_pairs(figure: str, seed: int, count: int, n_train: int) -> Iterator[Row]:
    """Yield mean and mean square of the difference of votes and coupling on many populations."""
    rng, gaps = np.random.RandomState(seed), np.empty(count)
    for number in range(count):
        population = gaussian_mixtures(3, COMPONENTS[figure], random_state=rng)
        X, y = population.sample(n_train, random_state=rng)
        X_test, y_test = population.sample(FURTHER_TEST, random_state=rng)
        labels = _labels_of_pairs(X, y, X_test)
        gaps[number] = np.mean(labels[WINS] != y_test) - np.mean(labels[COUPLED] != y_test)
    yield Row(DIFFERENCE, "populations", count)
    yield Row(DIFFERENCE, "mean", float(gaps.mean()))
    yield Row(DIFFERENCE, "mean square", float((gaps**2).mean()))


def _labels_of_pairs(X, y, X_test) -> dict[str, Any]:
    pairs = Pairs(in_pairs(LinearDiscriminantAnalysis()).fit(X, y), X_test)
    return {WINS: pairs.votes().argmax(axis=1), COUPLED: pairs.coupled().argmax(axis=1)}


def _multiclass() -> dict[str, Any]:
    return {"LDA": LinearDiscriminantAnalysis(), "QDA": QuadraticDiscriminantAnalysis()}


def _others() -> dict[str, Any]:
    lda = LinearDiscriminantAnalysis()
    calibrated = {"calibration": "sigmoid", "cv": 5}
    best = {"combiner": "wlw2", "scaling": "temperature", **calibrated}
    return {
        **_multiclass(),
        "LDA pairs, calibrated, coupled": in_pairs(lda, **calibrated),
        "LDA pairs, calibrated, wlw2, temperature": in_pairs(lda, **best),
        "CoupledSVC": CoupledSVC(),
    }


def _tasks(figure: str, scale: str) -> list[Task]:
    size = SIZES[scale]
    numbers = size["train_per_class"], size["test_per_class"]
    found = [
        Task(DATA, split_name(scale, seed), "all", measure_mixture, (figure, seed, *numbers))
        for seed in range(size["populations"])
    ]
    first, end = size["populations"], size["populations"] + size["further"]
    for start in range(first, end, AT_ONCE):
        arguments = figure, start, min(AT_ONCE, end - start), numbers[0]
        found.append(Task(FURTHER, split_name(scale, start), "all", measure_further, arguments))
    n_tasks, count = TASKS_OF_PAIRS[scale] if figure == "figure1" else (0, 0)
    for seed in range(n_tasks):
        split, arguments = split_name(scale, seed), (figure, seed, count, numbers[0])
        found.append(Task(PAIRS_ALONE, split, "all", measure_pairs, arguments))
    return found


def _config(figure: str, scale: str) -> dict[str, Any]:
    return {**SIZES[scale], "classes": 3, "components": COMPONENTS[figure]}


# -- the page --------------------------------------------------------------------------


def _section(figure: str, rows: list[Measurement], folder: Path) -> str:
    summary = summarise(rows)
    undecided = summary[DATA, WINS, "undecided"]
    first = min((row.split for row in rows if row.data == DATA), key=seed_of)
    errors = {row.method: row.value for row in rows if row.split == first and row.metric == "error"}
    panels = [WINS, COUPLED, "LDA"] + (["QDA"] if figure == "figure2" else [])
    picture = save_figure(
        folder / f"{figure}.png",
        partial(_draw, figure=figure, seed=seed_of(first), panels=panels, errors=errors),
        **_layout(len(panels)),
    )
    return "\n\n".join(
        [
            f"Each of three classes is a mixture of {COMPONENTS[figure]} Gaussians in the plane, "
            "with 200 training samples. Every pair of classes has a linear discriminant. The paper "
            "does not say how it drew its mixtures, so we cannot reproduce its picture or its "
            "error rates. We draw many populations from a distribution that leaves some votes "
            "undecided (`simulated.gaussian_mixtures`). The figure shows the first population. "
            "Errors are in parentheses, and the area without a decision is hatched.",
            picture,
            f"The claims are decided by these populations and {_n_further(rows)} further ones, on "
            f"which the four rules of the paper are measured, with {3 * FURTHER_TEST} test samples "
            f"each.{_alone(rows)}",
            f"Test errors over the first {len(undecided.values)} populations. Every class has one "
            f"vote, a tie, for {100 * undecided.mean:.2f} % of the test samples on average, and "
            f"for {100 * undecided.values.max():.2f} % in the worst population. Methods without "
            "probabilities have no log-loss, Brier score or MSE. The rows from `logit` on are not "
            "in the paper.",
            metrics_table(summary, DATA, METHODS),
        ]
    )


def _n_further(rows: list[Measurement]) -> int:
    return sum(row.data == FURTHER and row.method == COUPLED for row in rows)


def _alone(rows: list[Measurement]) -> str:
    n = sum(row.value for row in rows if row[1] == PAIRS_ALONE and row.metric == "populations")
    return f" Votes and coupling alone are compared on {n:.0f} more." if n else ""


def _layout(n_panels: int) -> dict[str, Any]:
    if n_panels == 4:
        return {"nrows": 2, "ncols": 2, "figsize": (9, 8.4), "sharex": True, "sharey": True}
    return {"nrows": 1, "ncols": n_panels, "figsize": (13, 4.6), "sharex": True, "sharey": True}


def _draw(axes, figure: str, seed: int, panels: list[str], errors: dict[str, float]) -> None:
    """Draw decision regions with the training samples on them."""
    _, X, y = draw_mixture(figure, seed, SIZES["paper"]["train_per_class"])
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    grid = np.meshgrid(*(np.linspace(a, b, 400) for a, b in zip(low, high, strict=True)))
    regions = _regions(X, y, np.column_stack([g.ravel() for g in grid]))
    for ax, method in zip(np.ravel(axes), panels, strict=True):
        _draw_regions(ax, grid, regions[method].reshape(grid[0].shape))
        for c in range(3):
            ax.scatter(*X[y == c].T, s=9, marker="o^s"[c], color=f"C{c}", lw=0)
        ax.set_title(f"{method} ({errors[method]:.3f})", fontsize=11)
        ax.set_xlabel("$x_1$")
        ax.set_ylabel("$x_2$")
        ax.label_outer()


def _regions(X, y, points) -> dict[str, Any]:
    """Return the class of every point by each method; 3 where votes are tied."""
    pairs = Pairs(in_pairs(LinearDiscriminantAnalysis()).fit(X, y), points)
    return {
        WINS: np.where(pairs.undecided(), 3, pairs.votes().argmax(axis=1)),
        COUPLED: pairs.coupled().argmax(axis=1),
        "LDA": LinearDiscriminantAnalysis().fit(X, y).predict(points),
        "QDA": QuadraticDiscriminantAnalysis().fit(X, y).predict(points),
    }


def _draw_regions(ax, grid, labels) -> None:
    """Fill the region of every class, hatch the region of ties, and draw the boundaries."""
    for label, colour in enumerate((*COLOURS, "white")):
        inside = (labels == label).astype(float)
        if inside.any():
            options = {"colors": [colour], "hatches": ["////" if label == 3 else None]}
            ax.contourf(*grid, inside, levels=[0.5, 1.5], alpha=0.6, **options)
            ax.contour(*grid, inside, levels=[0.5], colors="k", linewidths=0.8)


# -- claims ----------------------------------------------------------------------------


def _difference(rows: list[Measurement], first: str, second: str) -> Interval:
    """Return the interval of the mean difference over the populations."""
    return mean_interval(_differences(rows, first, second))


def _differences(rows: list[Measurement], first: str, second: str) -> Array:
    """Return the differences of all populations of which the errors are stored."""
    a, b = paired(rows, DATA, "error", (first, second))
    found = {
        (row.method, row.metric): row.value
        for row in rows
        if row.data == FURTHER and row.method in (first, second)
    }
    more = [
        found[first, metric] - found[second, metric]
        for method, metric in found
        if method == first and metric.startswith("error")
    ]
    return np.concatenate([a - b, more])


def _below(found: Interval, bound: float = 0.0) -> bool | None:
    """Decide whether a mean is below a bound, by its interval."""
    if found.high < bound:
        return True
    return False if found.low > bound else None


def _points(name: str, found: Interval) -> str:
    return f"{name} {found.format('{:+.2f}', 100)} points"


def _of_pairs(rows: list[Measurement]) -> tuple[Interval, int]:
    """Return the interval of max-wins less coupled, and the number of populations.

    It takes in the populations of which mean and mean square of the difference are stored.
    """
    parts: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.data == PAIRS_ALONE and row.method == DIFFERENCE:
            parts[row.split][row.metric] = row.value
    gaps = _differences(rows, WINS, COUPLED)
    moments = [(float(len(gaps)), float(gaps.mean()), float((gaps**2).mean()))]
    moments += [(p["populations"], p["mean"], p["mean square"]) for p in parts.values()]
    sizes, means, squares = np.array(moments).T
    n = int(sizes.sum())
    return interval_of_moments(n, sizes @ means / n, sizes @ squares / n), n


def _wins_no_worse(rows: list[Measurement]) -> Verdict:
    found, n = _of_pairs(rows)
    distance = max(abs(found.mean - TOLERANCE), 1e-6)
    needed = n * ((found.high - found.mean) / distance) ** 2
    power = f"To tell, about {needed:.2g} populations would be needed; there are {n}."
    told = f"{_points('max-wins less coupled', found)}, {n} populations"
    return Verdict(_below(found, TOLERANCE), told, power)


def _both_beat_lda(rows: list[Measurement]) -> Verdict:
    found = {name: _difference(rows, name, "LDA") for name in (WINS, COUPLED)}
    evidence = "; ".join(_points(f"{name} less LDA", value) for name, value in found.items())
    return Verdict(known([_below(value) for value in found.values()]), evidence)


def _compromise(rows: list[Measurement]) -> Verdict:
    to_lda, to_qda = _difference(rows, COUPLED, "LDA"), _difference(rows, "QDA", COUPLED)
    evidence = f"{_points('coupled less LDA', to_lda)}; {_points('QDA less coupled', to_qda)}"
    return Verdict(known([_below(to_lda), _below(to_qda)]), evidence)


def _resolves(rows: list[Measurement]) -> Verdict:
    found = _difference(rows, COUPLED, WINS)
    return Verdict(_below(found), _points("coupled less max-wins", found))


def _not_at_hand() -> str:
    return "the figure prints error rates for one population, which our text does not contain."


PAIRED = "The 95 % interval (Student, paired over the populations) of the mean difference of errors"
CLAIMS = {
    "figure1": (
        Claim(
            "Despite the indeterminacy, max-wins performs no worse than coupling (section 1).",
            f"{PAIRED} ends below {100 * TOLERANCE:g} points.",
            _wins_no_worse,
            _not_at_hand,
            key="no-worse",
        ),
        Claim(
            "Both perform better than LDA (section 1).",
            f"{PAIRED} is below 0 for each of the two.",
            _both_beat_lda,
            _not_at_hand,
            key="beat-lda",
        ),
    ),
    "figure2": (
        Claim(
            "Coupling resolves the indeterminacy of max-wins to advantage (section 2).",
            f"{PAIRED} is below 0.",
            _resolves,
            _not_at_hand,
            key="resolves",
        ),
        Claim(
            "Pairwise LDA with coupling is a compromise between LDA and QDA (section 4).",
            f"{PAIRED} is below 0 for coupled less LDA, and for QDA less coupled.",
            _compromise,
            _not_at_hand,
            key="compromise",
        ),
    ),
}


def mixture_experiment(figure: str) -> Experiment:
    """Return the description of "figure1" or "figure2"."""
    return Experiment(
        name=f"hastie1998-{figure}",
        title=f"Figure {figure[-1]}: three classes, mixtures of Gaussians",
        tasks=partial(_tasks, figure),
        config=partial(_config, figure),
        section=partial(_section, figure),
        claims=CLAIMS[figure],
    )
