"""Figure 3 of Hastie & Tibshirani (1998): ten Gaussian classes in 20 dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from manyclass import CoupledSVC
from manyclass.experiments.hastie1998.tools import (
    Pairs,
    in_pairs,
    mean_interval,
    measured,
    measured_pairs,
    metrics_table,
    ratio_interval,
    split_name,
)
from manyclass.experiments.pages import Summary, paired, save_figure, summarise
from manyclass.experiments.results import Measurement
from manyclass.experiments.runner import Row, Task
from manyclass.learners.neighbors import PairwiseNeighbors
from manyclass.learners.thresholds import ThresholdOptimized
from manyclass.report import markdown_table
from manyclass.simulated import gaussian_classes

Reading = Literal["deviations", "eigenvalues"]
READINGS: dict[Reading, str] = {
    "deviations": "square roots of the eigenvalues uniform on [0.01, 1.01]",
    "eigenvalues": "eigenvalues uniform on [0.01, 1.01], as printed",
}
SIZES: dict[str, dict[str, int]] = {
    "quick": {"simulations": 3, "train_per_class": 40, "test_per_class": 50},
    "paper": {"simulations": 20, "train_per_class": 100, "test_per_class": 200},
}
MOST_NEIGHBORS = 25


class Printed(NamedTuple):
    """What the paper says of pairwise neighbours, section 3."""

    value: float
    error: float = float("nan")  # standard error, where it is given


PRINTED = {
    "median error": Printed(0.16),
    "bias": Printed(0.07),
    "neighbours per class": Printed(4.47, 0.122),
    "neighbours": Printed(6.70, 0.590),
}

LDA_PAIRS, NN_PAIRS = "LDA pairs", "NN pairs"
THRESHOLDS = "thresholds"
CALIBRATED = "LDA pairs, calibrated"
FAMILIES = {
    "LDA": (LDA_PAIRS, f"{LDA_PAIRS}, {THRESHOLDS}", f"{LDA_PAIRS}, cross-validated {THRESHOLDS}"),
    "J-NN": (f"{NN_PAIRS}, same J", NN_PAIRS, f"{NN_PAIRS}, {THRESHOLDS}"),
}
THRESHOLDED = {"LDA": FAMILIES["LDA"][1], "J-NN": FAMILIES["J-NN"][2]}
PLAIN = {"LDA": FAMILIES["LDA"][0], "J-NN": FAMILIES["J-NN"][1]}
METHODS = (
    *(
        method
        for base, pairs in FAMILIES.items()
        for method in (base, *(f"{p}, {rule}" for p in pairs for rule in ("coupled", "max-wins")))
    ),
    "LDA pairs, logit",
    "LDA pairs, wlw2",
    f"{CALIBRATED}, coupled",
    f"{CALIBRATED}, wlw2, temperature",
    "CoupledSVC",
    "QDA",
    "Bayes",
)


# -- measuring -------------------------------------------------------------------------


def measure_gaussians(
    reading: Reading, seed: int, n_train: int, n_test: int, shape: tuple[int, int] = (10, 20)
) -> Iterator[Row]:
    """Yield the errors of all rules in one simulation, of ``shape`` classes and features."""
    population = gaussian_classes(*shape, uniform=reading, random_state=seed)
    X, y = population.sample(n_train, random_state=1000 + seed)
    X_test, y_test = population.sample(n_test, random_state=2000 + seed)
    yield from _linear(X, y, X_test, y_test)
    yield from _neighbours(X, y, X_test, y_test)
    for method, model in _others().items():
        yield from measured(method, y_test, model.fit(X, y).predict_proba(X_test))
    yield from measured("Bayes", y_test, population.posterior(X_test))


def _linear(X, y, X_test, y_test) -> Iterator[Row]:
    """Yield LDA and its pairs: as they are, with thresholds from the training set, from folds."""
    lda = LinearDiscriminantAnalysis()
    learners = lda, ThresholdOptimized(lda), ThresholdOptimized(lda, cv=5)
    for method, learner in zip(FAMILIES["LDA"], learners, strict=True):
        pairs = Pairs(in_pairs(learner).fit(X, y), X_test)
        yield from measured_pairs(method, pairs, y_test)
        if learner is lda:
            for rule in ("logit", "wlw2"):
                yield from measured(f"LDA pairs, {rule}", y_test, pairs.coupled(rule))
    yield from measured("LDA", y_test, lda.fit(X, y).predict_proba(X_test))


def _neighbours(X, y, X_test, y_test) -> Iterator[Row]:
    """Yield J-NN and its pairs: with the same J, with a J each, and with biased distances."""
    J = choose_neighbours(X, y)
    plain = KNeighborsClassifier(J).fit(X, y)
    # Shares of J votes are no estimates of probabilities: their log-loss is infinite.
    yield Row("J-NN", "error", float(np.mean(plain.predict(X_test) != y_test)))
    yield Row("J-NN", "neighbours", J)
    learners = (
        PairwiseNeighbors(J, biases=1.0),
        PairwiseNeighbors(range(1, MOST_NEIGHBORS + 1), biases=1.0),
        PairwiseNeighbors(range(1, MOST_NEIGHBORS + 1)),
    )
    for method, learner in zip(FAMILIES["J-NN"], learners, strict=True):
        model = in_pairs(learner).fit(X, y)
        yield from measured_pairs(method, Pairs(model, X_test), y_test)
        fitted = model.estimators_
        yield Row(method, "neighbours per class", np.mean([e.n_neighbors_ for e in fitted]) / 2)
        yield Row(method, "bias", _mean_bias([e.bias_ for e in fitted]))


def _mean_bias(biases: list[float]) -> float:
    """Return how far apart the distances to two classes are, on average: 0.07 is 7 %."""
    return float(np.mean(np.exp(np.abs(np.log(biases))) - 1))


def choose_neighbours(X, y, most: int = MOST_NEIGHBORS, n_folds: int = 10) -> int:
    """Return the number of neighbours of least cross-validated error; of several, the least."""
    wrong = np.zeros(most)
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
        nearest = NearestNeighbors(n_neighbors=most).fit(X[train])
        labels = y[train][nearest.kneighbors(X[test], return_distance=False)]
        votes = np.cumsum(np.eye(y.max() + 1)[labels], axis=1)
        wrong += (votes.argmax(axis=2) != y[test][:, None]).sum(axis=0)
    return int(wrong.argmin()) + 1


def _others() -> dict[str, Any]:
    lda = LinearDiscriminantAnalysis()
    calibrated = {"calibration": "sigmoid", "cv": 5}
    best = {"combiner": "wlw2", "temperature": True, **calibrated}
    return {
        f"{CALIBRATED}, coupled": in_pairs(lda, **calibrated),
        f"{CALIBRATED}, wlw2, temperature": in_pairs(lda, **best),
        "CoupledSVC": CoupledSVC(),
        "QDA": QuadraticDiscriminantAnalysis(tol=1e-12),  # variances are as small as 1e-4
    }


def tasks(scale: str) -> list[Task]:
    """Return one task per reading and simulation."""
    size = SIZES[scale]
    numbers = size["train_per_class"], size["test_per_class"]
    return [
        Task(reading, split_name(scale, seed), "all", measure_gaussians, (reading, seed, *numbers))
        for reading in READINGS
        for seed in range(size["simulations"])
    ]


def config(scale: str) -> dict[str, Any]:
    """Return what the scale means."""
    return {**SIZES[scale], "readings": READINGS, "most_neighbours": MOST_NEIGHBORS}


# -- the page --------------------------------------------------------------------------


def section(rows: list[Measurement], folder: Path) -> str:
    """Return errors, boxplots, and where the gain comes from, for both readings."""
    summary = summarise(rows)
    parts = [
        "Ten Gaussian classes in 20 dimensions, means uniform on [0, 1], random principal axes. "
        "What is printed about the covariances has two readings: see the Bayes error. Thresholds "
        "are chosen on the training set, by leave-one-out for neighbours; the paper does not say "
        "how it chose them. Rows below the pairs of neighbours are not in the paper."
    ]
    for reading, meaning in READINGS.items():
        if (reading, "LDA", "error") in summary:
            parts += [f'### Reading "{reading}": {meaning}', *_of_reading(rows, reading, folder)]
    return "\n\n".join(parts)


def _of_reading(rows: list[Measurement], reading: str, folder: Path) -> list[str]:
    summary = summarise(rows)
    n = len(summary[reading, "LDA", "error"].values)
    picture = save_figure(
        folder / f"figure3_{reading}.png",
        partial(_boxplots, summary=summary, reading=reading),
        ncols=2,
        figsize=(11, 5),
        sharey=True,
    )
    return [
        picture,
        f"Means over {n} simulations, with the standard deviation of the error:",
        metrics_table(summary, reading, METHODS),
        "What pairing, choosing J for each pair, and thresholds contribute to the coupled rule "
        "(ratio of errors, geometric mean and 95 % interval over the simulations):",
        _contributions(rows, reading),
        _reading_of_contributions(rows, reading),
        "Pairwise neighbours beside the paper's (the difference in its standard errors). Of "
        "several numbers of neighbours that are equally good for a pair we take the largest, "
        "of several biases the one nearest to 1; the paper does not say:",
        _beside_paper(summary, reading),
    ]


def _boxplots(axes, summary: dict[tuple[str, str, str], Summary], reading: str) -> None:
    """Draw the test errors as the paper does, with unthresholded pairs beside."""
    for ax, base in zip(axes, FAMILIES, strict=True):
        pairs = [f"{p}, {rule}" for p in (PLAIN[base], THRESHOLDED[base]) for rule in _RULES]
        values = [100 * summary[reading, m, "error"].values for m in (base, *pairs)]
        labels = [base] + [f"{w}\n{r}" for w in ("pairs,", "thresholds,") for r in _RULES]
        ax.boxplot(values, widths=0.6, medianprops={"color": "C3"})
        ax.set_xticks(range(1, len(labels) + 1), labels, fontsize=9)
        ax.set_title(f"{base} and its pairs")
        ax.grid(axis="y", alpha=0.3)
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("test error, %")


_RULES = ("coupled", "max-wins")


def _contributions(rows: list[Measurement], reading: str) -> str:
    table = []
    for base, pairs in FAMILIES.items():
        steps = [base, *(f"{p}, coupled" for p in pairs)]
        if base == "LDA":  # the thresholds from folds are an alternative, not a further step
            steps = steps[:3]
        for before, after in [*pairwise(steps), (steps[0], steps[-1])]:
            first, second = paired(rows, reading, "error", (after, before))
            ratio = ratio_interval(first, second)
            table.append([f"{after}", before, ratio.format()])
    return markdown_table(["error of", "divided by that of", "ratio"], table)


def _reading_of_contributions(rows: list[Measurement], reading: str) -> str:
    """Say what is left of the error with thresholds, and without."""
    sentences = []
    for base in FAMILIES:
        whole = ratio_interval(*_errors(rows, reading, THRESHOLDED[base], base))
        plain = ratio_interval(*_errors(rows, reading, PLAIN[base], base))
        sentences.append(
            f"Pairs of {base} with thresholds have {100 * whole.mean:.0f} % of the error of "
            f"{base}, without thresholds {100 * plain.mean:.0f} %."
        )
    return " ".join(sentences)


def _errors(rows: list[Measurement], reading: str, pairs: str, base: str):
    return paired(rows, reading, "error", (f"{pairs}, coupled", base))


def _beside_paper(summary: dict[tuple[str, str, str], Summary], reading: str) -> str:
    method = THRESHOLDED["J-NN"]
    table = []
    for metric, owner in (("neighbours per class", method), ("neighbours", "J-NN")):
        printed, error = PRINTED[metric]
        ours = summary[reading, owner, metric]
        own_error = ours.deviation / np.sqrt(len(ours.values))
        distance = f"{(ours.mean - printed) / error:+.1f}"
        table.append(
            [
                f"{owner}: {metric}",
                f"{ours.mean:.2f} ({own_error:.3f})",
                f"{printed:.2f} ({error:.3f})",
                distance,
            ]
        )
    bias = mean_interval(summary[reading, method, "bias"].values)
    table.append(
        [f"{method}: bias, %", bias.format("{:.1f}", 100), f"{100 * PRINTED['bias'].value:g}", ""]
    )
    for rule in _RULES:
        median = np.median(summary[reading, f"{method}, {rule}", "error"].values)
        printed_median = f"{100 * PRINTED['median error'].value:g}" if rule == "max-wins" else ""
        table.append(
            [f"{method}, {rule}: median error, %", f"{100 * median:.1f}", printed_median, ""]
        )
    return markdown_table(["", "ours (standard error)", "paper", "difference"], table)
