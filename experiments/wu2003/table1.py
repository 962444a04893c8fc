"""Table 1 of Wu et al. (2003): test errors of the rules on five data sets, section 6.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold

from experiments.datasets import load
from experiments.runner import Row, Task
from experiments.wu2003.search import (
    METHODS,
    TUNED,
    Classes,
    Floats,
    Grid,
    Machines,
    Point,
    class_probabilities,
    cross_validate,
    log_losses,
)
from manyclass.svm import CoupledSVC

DATA = ("satimage", "segment", "usps", "mnist", "letter")
PIXELS = {"usps": (-1.0, 1.0), "mnist": (0.0, 255.0)}  # their range
DEFAULT = "CoupledSVC, default"
EXPONENTS = tuple(range(-5, 16, 2))  # of C and of gamma, to the base 2
N_FOLDS = 5
SCALES: dict[str, dict[str, Any]] = {
    "quick": {
        "data": ["satimage", "segment", "letter"],
        "pairs": 2,
        "repeats": 2,
        "training samples": 300,
        "test samples": 500,
        "log2 C": [-1, 5, 11],
        "log2 gamma": [-5, -1, 3],
    },
    "paper": {
        "data": list(DATA),
        "pairs": 5,
        "repeats": 5,
        "training samples": 300,
        "test samples": 500,
        "log2 C": list(EXPONENTS),
        "log2 gamma": list(EXPONENTS),
    },
}


def tasks(scale: str) -> Sequence[Task]:
    """Return one task for every data set, pair of samples and repeat of cross-validation."""
    size = SCALES[scale]
    common = size["training samples"], size["test samples"], size["log2 C"], size["log2 gamma"]
    return [
        Task(name, split_name(pair, repeat), "all", measure, (name, pair, repeat, *common))
        for pair in range(1, size["pairs"] + 1)
        for name in size["data"]
        for repeat in range(1, size["repeats"] + 1)
    ]


def split_name(pair: int, repeat: int) -> str:
    """Return the name of a repeat on a pair of samples in the results."""
    return f"pair {pair} repeat {repeat}"


def pair_of(split: str) -> int:
    """Return the pair of a split."""
    return int(split.split()[1])


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SCALES[scale],
        "folds": N_FOLDS,
        "features": "satimage, segment and letter: each scaled to [-1, 1] over the whole set; usps "
        "and mnist: the pixels' range to [0, 1]",
        "samples": "drawn without replacement from all rows, seed (number of the data set, pair)",
        "folds' seed": "100 * pair + repeat, stratified",
        "choice": "smallest error, then smallest C, then smallest gamma; "
        f"{TUNED}: smallest log-loss",
    }


class Samples(NamedTuple):
    """A pair of training and test samples."""

    X: Floats
    y: Classes
    X_test: Floats
    y_test: Classes
    n_classes: int


def draw(name: str, pair: int, n_train: int, n_test: int) -> Samples:
    """Draw a pair of samples; the classes are numbered from 0."""
    data = load(name)
    rng = np.random.default_rng([DATA.index(name), pair])
    rows = rng.choice(len(data.y), n_train + n_test, replace=False)
    X, (classes, y) = _scale(name, data.X, rows), np.unique(data.y, return_inverse=True)
    train, test = np.split(rows, [n_train])
    return Samples(X[:n_train], y[train], X[n_train:], y[test], len(classes))


def _scale(name: str, X: Floats, rows: Classes) -> Floats:
    """Return rows with features in [-1, 1], or pixels in [0, 1]. Constant features become 0.

    The paper does not say how it scaled. With pixels in [-1, 1], even the smallest gamma of its
    grid makes all kernel values between samples tiny: errors are several times the published.
    """
    if name in PIXELS:
        low, high = PIXELS[name]
        return (X[rows] - low) / (high - low)
    least, most = X.min(axis=0), X.max(axis=0)
    half = (most - least) / 2.0
    return (X[rows] - (least + most) / 2.0) / np.where(half > 0, half, 1.0)


def measure(
    name: str,
    pair: int,
    repeat: int,
    n_train: int,
    n_test: int,
    log2_C: Sequence[int],
    log2_gamma: Sequence[int],
) -> Iterator[Row]:
    """Search for the best C and gamma of every method, fit with them, and evaluate."""
    samples = draw(name, pair, n_train, n_test)
    distances = euclidean_distances(samples.X, squared=True)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=100 * pair + repeat)
    best = cross_validate(
        distances,
        samples.y,
        list(folds.split(samples.X, samples.y)),
        Grid(tuple(2.0**e for e in log2_C), tuple(2.0**e for e in log2_gamma)),
        samples.n_classes,
    )
    for method, p in _test(samples, distances, best):
        yield Row(method, "cv-loss", best[method].loss)
        yield Row(method, "log2 C", float(np.log2(best[method].C)))
        yield Row(method, "log2 gamma", float(np.log2(best[method].gamma)))
        yield from _judge(method, p, samples.y_test)
    yield from _judge(DEFAULT, _default(samples), samples.y_test)


def _test(
    samples: Samples, distances: Floats, best: dict[str, Point]
) -> Iterator[tuple[str, Floats]]:
    """Yield every method's test probabilities, methods of the same C and gamma together."""
    to_test = euclidean_distances(samples.X_test, samples.X, squared=True)
    for C, gamma in sorted({point[:2] for point in best.values()}):
        machines = [Machines(np.exp(-gamma * distances), samples.y, C)]
        K = np.exp(-gamma * to_test)
        for method, p in class_probabilities(machines, K, samples.n_classes):
            if best[method][:2] == (C, gamma):
                yield method, p[0]


def _default(samples: Samples) -> Floats:
    model = CoupledSVC().fit(samples.X, samples.y)
    p = np.zeros((len(samples.y_test), samples.n_classes))
    p[:, model.classes_] = model.predict_proba(samples.X_test)
    return p


def _judge(method: str, p: Floats, y: Classes) -> Iterator[Row]:
    yield Row(method, "error", float((p.argmax(axis=1) != y).mean()))
    if not method.startswith("vote"):  # shares of votes are not meant as probabilities
        squares = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)
        yield Row(method, "log-loss", float(log_losses(p, y).mean()))
        yield Row(method, "brier", float(squares.mean()))


ALL_METHODS = (*METHODS, DEFAULT)
