"""Measurements for Figure 3 of Hastie & Tibshirani (1998): ten Gaussian classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from experiments.hastie1998.tools import Pairs, in_pairs, measured, measured_pairs, split_name
from experiments.runner import Row, Task
from experiments.simulated import gaussian_classes
from manyclass import CoupledSVC
from manyclass.learners.pairwise_neighbors import MOST_OF_CLASS, PairwiseNeighbors
from manyclass.learners.thresholds import ThresholdOptimized

Reading = Literal["deviations", "eigenvalues"]
READINGS: dict[Reading, str] = {
    "deviations": "square roots of the eigenvalues uniform on [0.01, 1.01]",
    "eigenvalues": "eigenvalues uniform on [0.01, 1.01], as printed",
}
SIZES: dict[str, dict[str, int]] = {
    "quick": {"simulations": 3, "train_per_class": 40, "test_per_class": 50, "further": 2},
    "paper": {"simulations": 20, "train_per_class": 100, "test_per_class": 200, "further": 448},
}
FURTHER = "deviations, further simulations"
MOST_NEIGHBORS = 25


class Printed(NamedTuple):
    """A number that the paper prints about pairwise neighbours, section 3."""

    value: float
    error: float = float("nan")  # standard error, where it is given


PRINTED = {
    "median error": Printed(0.16),
    "bias": Printed(0.07),
    "neighbours per class": Printed(4.47, 0.122),
    "neighbours": Printed(6.70, 0.590),
}

LDA_PAIRS, NN_PAIRS = "LDA pairs", "NN pairs"
DISTANCES = f"{NN_PAIRS}, distances"
THRESHOLDS = "thresholds"
CALIBRATED = "LDA pairs, calibrated"
FAMILIES = {
    "LDA": (LDA_PAIRS, f"{LDA_PAIRS}, {THRESHOLDS}", f"{LDA_PAIRS}, cross-validated {THRESHOLDS}"),
    "J-NN": (
        *(f"{NN_PAIRS}, same J", NN_PAIRS, f"{NN_PAIRS}, {THRESHOLDS}"),
        *(DISTANCES, f"{DISTANCES}, {THRESHOLDS}"),
    ),
}


class Kind(NamedTuple):
    """Pairs of a base rule, with one kind of evidence."""

    base: str
    plain: str
    thresholded: str


KINDS = {
    "LDA": Kind("LDA", *FAMILIES["LDA"][:2]),
    "J-NN by votes": Kind("J-NN", *FAMILIES["J-NN"][1:3]),
    "J-NN by distances": Kind("J-NN", *FAMILIES["J-NN"][3:]),
}
VOTES = KINDS["J-NN by votes"]
THRESHOLDED = {name: kind.thresholded for name, kind in KINDS.items()}
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


def measure_further(seed: int, n_train: int, n_test: int) -> Iterator[Row]:
    """Yield what the claims need: LDA, J-NN, and their pairs without and with thresholds."""
    population = gaussian_classes(uniform="deviations", random_state=seed)
    X, y = population.sample(n_train, random_state=1000 + seed)
    X_test, y_test = population.sample(n_test, random_state=2000 + seed)
    yield from _linear(X, y, X_test, y_test, folds=False)
    yield from _neighbours(X, y, X_test, y_test, only=(VOTES.plain, VOTES.thresholded))
    yield from measured("Bayes", y_test, population.posterior(X_test))


def _linear(X, y, X_test, y_test, folds: bool = True) -> Iterator[Row]:
    """Yield LDA and its pairs: plain, and with thresholds from the training set or from folds."""
    lda = LinearDiscriminantAnalysis()
    learners = [lda, ThresholdOptimized(lda), ThresholdOptimized(lda, cv=5)][: 3 if folds else 2]
    for method, learner in zip(FAMILIES["LDA"], learners, strict=False):
        pairs = Pairs(in_pairs(learner).fit(X, y), X_test)
        yield from measured_pairs(method, pairs, y_test)
        if learner is lda:
            for rule in ("logit", "wlw2"):
                yield from measured(f"LDA pairs, {rule}", y_test, pairs.coupled(rule))
    yield from measured("LDA", y_test, lda.fit(X, y).predict_proba(X_test))


def _neighbours(X, y, X_test, y_test, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """Yield J-NN and its pairs: with the same J, with a J each, and with biased distances.

    Neighbours vote, as in the paper. Pairs with a J each, and with biases, are also measured
    with the distances of the classes.
    """
    J = choose_neighbours(X, y)
    plain = KNeighborsClassifier(J).fit(X, y)
    # Shares of J votes are not estimates of probabilities: their log-loss is infinite.
    yield Row("J-NN", "error", float(np.mean(plain.predict(X_test) != y_test)))
    yield Row("J-NN", "neighbours", J)
    numbers = range(1, MOST_NEIGHBORS + 1)
    learners = (
        PairwiseNeighbors(J, biases=1.0, evidence="votes"),
        PairwiseNeighbors(numbers, biases=1.0, evidence="votes"),
        PairwiseNeighbors(numbers, evidence="votes"),
        PairwiseNeighbors(biases=1.0),
        PairwiseNeighbors(),
    )
    for method, learner in zip(FAMILIES["J-NN"], learners, strict=True):
        if only and method not in only:
            continue
        model = in_pairs(learner).fit(X, y)
        yield from measured_pairs(method, Pairs(model, X_test), y_test)
        fitted = model.estimators_
        yield Row(method, "neighbours per class", _neighbours_per_class(fitted))
        yield Row(method, "bias", _mean_bias([e.bias_ for e in fitted]))


def _neighbours_per_class(fitted: list[PairwiseNeighbors]) -> float:
    """Return the mean number of neighbours per class. Votes come from two classes."""
    return float(np.mean([e.n_neighbors_ / (2 if e.evidence == "votes" else 1) for e in fitted]))


def _mean_bias(biases: list[float]) -> float:
    """Return the mean relative bias of the distances to two classes: 0.07 is 7 %."""
    return float(np.mean(np.exp(np.abs(np.log(biases))) - 1))


def choose_neighbours(X, y, most: int = MOST_NEIGHBORS, n_folds: int = 10) -> int:
    """Return the smallest number of neighbours with the lowest cross-validated error."""
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
    best = {"combiner": "wlw2", "scaling": "temperature", **calibrated}
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
    found = [
        Task(reading, split_name(scale, seed), "all", measure_gaussians, (reading, seed, *numbers))
        for reading in READINGS
        for seed in range(size["simulations"])
    ]
    for seed in range(size["simulations"], size["simulations"] + size["further"]):
        arguments = seed, *numbers
        found.append(Task(FURTHER, split_name(scale, seed), "all", measure_further, arguments))
    return found


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SIZES[scale],
        "readings": READINGS,
        "most_neighbours": MOST_NEIGHBORS,
        "most_neighbours_of_a_class": MOST_OF_CLASS,
    }
