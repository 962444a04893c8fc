"""Statements of Hastie & Tibshirani (1998) that can be computed: matrix (1), 0/1 inputs, QDA."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)

from experiments.hastie1998.mixtures import FURTHER_TEST, draw_mixture
from experiments.hastie1998.tools import Array, Pairs, in_pairs, mean_interval, split_name
from experiments.pages import markdown_table
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict
from experiments.simulated import gaussian_classes
from manyclass import couple

MATRIX = np.array([[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]])  # matrix (1)
PRINTED = (0.47, 0.25, 0.28)
SWEEPS = 12
SIZES: dict[str, dict[str, Any]] = {
    "quick": {"classes": [3, 5], "tournaments": 200, "populations": 2, "mixtures": 2},
    "paper": {
        "classes": [3, 4, 5, 7, 10],
        "tournaments": 4000,
        "populations": 20,
        "mixtures": 200,
    },
}
EQUAL, WEIGHTED = "equal weights", "weights n_ij"
SAME = 1e-6  # probabilities that differ by less are called equal
SIMILAR = 0.9  # share of samples with the same class, of boundaries that are called similar


# -- measuring -------------------------------------------------------------------------


def sweeps(r: Array, n_sweeps: int) -> Iterator[Array]:
    """Yield p after every sweep of the algorithm of section 2, from the uniform p.

    The classes take turns: one is updated, p is normalised, and the mu_ij are computed again.
    """
    k = len(r)
    p, others = np.full(k, 1.0 / k), ~np.eye(k, dtype=bool)
    for _ in range(n_sweeps):
        for i in range(k):
            mu = p[i] / (p[i] + p[others[i]])
            p[i] *= r[i, others[i]].sum() / mu.sum()
            p /= p.sum()
        yield p.copy()


def measure_matrix() -> Iterator[Row]:
    """Yield the minimiser of (4) for matrix (1), and p after every sweep."""
    answers = {"minimiser": couple(MATRIX[None], rule="ht")[0]}
    answers |= {f"sweep {t}": p for t, p in enumerate(sweeps(MATRIX, SWEEPS), start=1)}
    for method, p in answers.items():
        for i, value in enumerate(p, start=1):
            yield Row(method, f"p{i}", float(value))


def measure_tournaments(k: int, n: int, seed: int) -> Iterator[Row]:
    """Yield how often the label of coupled 0/1 inputs is no winner of the votes."""
    rng, pairs = np.random.default_rng(seed), list(combinations(range(k), 2))
    r = rng.integers(0, 2, (n, len(pairs))).astype(float)
    wins = np.zeros((n, k))
    for b, (i, j) in enumerate(pairs):
        wins[:, i] += r[:, b]
        wins[:, j] += 1.0 - r[:, b]
    sizes = rng.integers(10, 101, k)  # samples of each class
    weights = {EQUAL: None, WEIGHTED: [sizes[i] + sizes[j] for i, j in pairs]}
    for method, n_ij in weights.items():
        labels = couple(r, "one-vs-one", "ht", n_ij).argmax(axis=1)
        off = wins[np.arange(n), labels] < wins.max(axis=1)
        yield Row(method, "label no winner", float(off.mean()))
    yield Row("all", "tournaments", float(n))


def measure_qda(seed: int) -> Iterator[Row]:
    """Yield how far coupled pairs of QDA are from QDA on all classes."""
    population = gaussian_classes(5, 4, random_state=seed)
    X, y = population.sample(60, random_state=1000 + seed)
    X_test, _ = population.sample(200, random_state=2000 + seed)
    pairs = Pairs(in_pairs(QuadraticDiscriminantAnalysis()).fit(X, y), X_test).coupled()
    whole = QuadraticDiscriminantAnalysis().fit(X, y).predict_proba(X_test)
    yield Row("QDA pairs, coupled", "largest difference", float(np.abs(pairs - whole).max()))
    off = pairs.argmax(axis=1) != whole.argmax(axis=1)
    yield Row("QDA pairs, coupled", "other labels", float(off.sum()))


def measure_boundaries(seed: int) -> Iterator[Row]:
    """Yield on which share of the test samples coupled pairs and LDA give the same class."""
    population, X, y = draw_mixture("figure1", seed, 200)
    X_test, _ = population.sample(FURTHER_TEST, random_state=2000 + seed)
    lda = LinearDiscriminantAnalysis()
    coupled = Pairs(in_pairs(lda).fit(X, y), X_test).coupled().argmax(axis=1)
    same = coupled == lda.fit(X, y).predict(X_test)
    yield Row("LDA pairs, coupled", "same class as LDA", float(same.mean()))


def tasks(scale: str) -> list[Task]:
    """Return the matrix, the tournaments of every k, and the populations."""
    size = SIZES[scale]
    found = [Task("matrix (1)", split_name(scale, 1), "all", measure_matrix)]
    for k in size["classes"]:
        arguments = k, size["tournaments"], k
        found.append(
            Task("0/1 inputs", split_name(scale, k), "all", measure_tournaments, arguments)
        )
    for seed in range(size["populations"]):
        found.append(Task("QDA", split_name(scale, seed), "all", measure_qda, (seed,)))
    for seed in range(size["mixtures"]):
        split = split_name(scale, seed)
        found.append(Task("three mixtures", split, "all", measure_boundaries, (seed,)))
    return found


# -- the page and the claims -----------------------------------------------------------


def _values(rows: list[Measurement], data: str, method: str, metric: str) -> list[float]:
    return [row.value for row in rows if row[1] == data and row[3:5] == (method, metric)]


def _vector(rows: list[Measurement], method: str) -> tuple[float, ...]:
    return tuple(_values(rows, "matrix (1)", method, f"p{i}")[0] for i in (1, 2, 3))


def section(rows: list[Measurement], folder: Path) -> str:
    """Return p after every sweep for matrix (1)."""
    methods = [f"sweep {t}" for t in range(1, SWEEPS + 1)] + ["minimiser"]
    table = [[method, *(f"{p:.4f}" for p in _vector(rows, method))] for method in methods]
    return "\n\n".join(
        [
            "Matrix (1) by the algorithm of section 2, from the uniform p, with equal weights. The "
            f"paper prints ({', '.join(f'{p:g}' for p in PRINTED)}).",
            markdown_table(["", "p1", "p2", "p3"], table),
        ]
    )


def _rounds_to_printed(p: tuple[float, ...]) -> bool:
    return tuple(round(value, 2) for value in p) == PRINTED


def _matrix(rows: list[Measurement]) -> Verdict:
    exact = _vector(rows, "minimiser")
    alike = [t for t in range(1, SWEEPS + 1) if _rounds_to_printed(_vector(rows, f"sweep {t}"))]
    listed = ", ".join(map(str, alike)) or "none"
    told = ", ".join(f"{value:.4f}" for value in exact)
    evidence = f"the minimiser is ({told}); sweeps from the uniform p that round to it: {listed}."
    return Verdict(_rounds_to_printed(exact), evidence)


def _excess() -> float:
    """Return how far the distance (4) of the printed vector is above the least one."""
    i, j = np.triu_indices(3, 1)
    r = MATRIX[i, j]

    def cross_entropy(p: Array) -> float:
        mu = p[i] / (p[i] + p[j])
        return float(-(r * np.log(mu) + (1 - r) * np.log(1 - mu)).sum())

    return cross_entropy(np.array(PRINTED)) - cross_entropy(couple(MATRIX[None], rule="ht")[0])


def _shares(rows: list[Measurement], method: str) -> Verdict:
    shares = {
        row.split: row.value
        for row in rows
        if row.data == "0/1 inputs" and row.method == method and row.metric == "label no winner"
    }
    listed = ", ".join(f"k = {k.split('-')[-1]} {share:.2%}" for k, share in shares.items())
    return Verdict(not any(shares.values()), f"inputs whose label is no winner: {listed}.")


def _equal(rows: list[Measurement]) -> Verdict:
    return _shares(rows, EQUAL)


def _weighted(rows: list[Measurement]) -> Verdict:
    return _shares(rows, WEIGHTED)


def _boundaries(rows: list[Measurement]) -> Verdict:
    shares = _values(rows, "three mixtures", "LDA pairs, coupled", "same class as LDA")
    if not shares:
        return Verdict(None, "it was not measured.")
    found = mean_interval(np.array(shares))
    told = f"{found.format('{:.1f}', 100)} % of the test samples, {len(shares)} populations."
    return Verdict(True if found.low > SIMILAR else False if found.high < SIMILAR else None, told)


def _qda(rows: list[Measurement]) -> Verdict:
    largest = max(_values(rows, "QDA", "QDA pairs, coupled", "largest difference"))
    labels = sum(_values(rows, "QDA", "QDA pairs, coupled", "other labels"))
    evidence = f"largest difference of a probability {largest:.1e}, other labels {labels:.0f}."
    return Verdict(largest < SAME, evidence)


ZERO_ONE = "No random tournament has a coupled label that is not among the winners of the votes."
CLAIMS = (
    Claim(
        "The solution for matrix (1) is (0.47, 0.25, 0.28) (section 1).",
        "The minimiser of (4) with equal weights, rounded to two digits, is the printed vector.",
        _matrix,
        lambda: f"printed is {PRINTED}; its distance (4) is {_excess():.1e} above the least.",
        "matrix",
    ),
    Claim(
        "With 0/1 inputs, coupling and max-wins give the same class (section 4), equal weights.",
        ZERO_ONE,
        _equal,
        key="zero-one-equal",
    ),
    Claim(
        "With 0/1 inputs, coupling and max-wins give the same class (section 4), with the weights "
        "n_ij of section 2.",
        f"{ZERO_ONE} The classes have 10 to 100 samples.",
        _weighted,
        key="zero-one-weighted",
    ),
    Claim(
        "Pairs based on QDA perform exactly like QDA on all classes (section 4).",
        f"On no population and test sample do the probabilities differ by {SAME:g} or more.",
        _qda,
        key="pairwise-qda",
    ),
    Claim(
        "Coupled pairs of linear discriminants have boundaries similar to those of LDA (section 1, "
        "Figure 1).",
        "The 95 % interval (Student, over populations) of the mean share of test samples to which "
        f"both give the same class is above {SIMILAR:.0%}.",
        _boundaries,
        key="similar-boundaries",
    ),
)


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {**SIZES[scale], "sweeps": SWEEPS, "samples of a class, for weights": "10 to 100"}


EXPERIMENT = Experiment(
    name="hastie1998-statements",
    title="Statements that can be computed",
    tasks=tasks,
    config=config,
    section=section,
    claims=CLAIMS,
)
