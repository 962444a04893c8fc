"""The cases that choices are made on: random splits of training parts.

No row of an official test split is in a case. A set without one gives a fixed random 70 % of its
rows, and so do segment and soybean, whose official training splits have 210 and 307 rows: the other
30 % are their test splits. The official test splits are looked at once, by ``official``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments import datasets

SHARED = (
    "dna",
    "letter",
    "mnist",
    "mnist5k",
    "pendigits",
    "satimage",
    "segment",
    "soybean",
    "usps",
    "waveform",
)
OWN = ("breast-cancer", "digits", "iris", "wine")
TEST_ROWS = 3000
"""Test rows of a case at most."""
TOO_SMALL = ("segment", "soybean")
"""Sets whose official training split is too small to be split again."""

Parts = tuple[NDArray, NDArray, NDArray, NDArray]
"""X_train, X_test, y_train, y_test."""


@dataclass(frozen=True)
class Case:
    """A training set and a test set, both drawn at random from a training part."""

    data: str
    seed: int
    rows: int
    """Training rows at most. Two thirds of the training part are the most there are."""
    standardised: bool = True
    unbalanced: bool = False
    """Whether classes are made rare: the share of the c-th of a random order falls like 0.6^c."""

    @property
    def key(self) -> str:
        """A name for files."""
        marks = "".join(
            mark for mark, on in (("s", self.standardised), ("u", self.unbalanced)) if on
        )
        return f"{self.data}-{self.rows}{marks}-{self.seed}"

    def parts(self) -> Parts:
        """Return the training and the test set, the same for every call."""
        X, y = training_part(self.data)
        rows = np.arange(len(y))
        rng = np.random.default_rng([self.seed, self.rows])
        if self.unbalanced:
            rows = _make_rare(y, rng)
        size = min(self.rows, 2 * len(rows) // 3)
        train, test = train_test_split(
            rows, train_size=size, stratify=y[rows], random_state=rng.integers(2**31)
        )
        test = test[np.isin(y[test], y[train])]  # a hundred rows may miss a class of letter
        parts = X[train], X[test[:TEST_ROWS]], y[train], y[test[:TEST_ROWS]]
        return prepare(self.data, parts, self.standardised)


def prepare(name: str, parts: Parts, standardised: bool) -> Parts:
    """Encode categories, and standardise features where wanted, as a user would."""
    X_train, X_test, y_train, y_test = parts
    if name == "soybean":
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        X_train = encoder.fit_transform(np.nan_to_num(X_train, nan=-1))
        X_test = encoder.transform(np.nan_to_num(X_test, nan=-1))
    elif standardised:
        imputer, scaler = SimpleImputer(), StandardScaler()
        X_train = scaler.fit_transform(imputer.fit_transform(X_train))
        X_test = scaler.transform(imputer.transform(X_test))
    return X_train, X_test, y_train, y_test


@cache
def both_parts(name: str) -> Parts:
    """Return the training part of a set, and its test part, as X, X_test, y, y_test."""
    data = datasets.load(name)
    y = np.unique(data.y, return_inverse=True)[1]
    if data.split is None or name in TOO_SMALL:
        train, test = train_test_split(
            np.arange(len(y)), train_size=0.7, stratify=y, random_state=20261116
        )
    else:
        train, test = np.flatnonzero(data.split == "train"), np.flatnonzero(data.split == "test")
    return data.X[train], data.X[test], y[train], y[test]


def training_part(name: str) -> tuple[NDArray, NDArray]:
    """Return the rows of a set that choices may be made on."""
    X, _, y, _ = both_parts(name)
    return X, y


def _make_rare(y: NDArray, rng: np.random.Generator, least: int = 6) -> NDArray:
    """Return rows of which the classes have falling shares; at least ``least`` of each class."""
    k = int(y.max()) + 1
    share = np.maximum(0.6 ** rng.permutation(k), 0.02)
    kept = []
    for c in range(k):
        of_class = rng.permutation(np.flatnonzero(y == c))
        kept.append(of_class[: max(least, round(share[c] * len(of_class)))])
    return np.sort(np.concatenate(kept))


def svm_cases(scale: str) -> Iterator[tuple[Case, float]]:
    """Yield cases with a penalty C of the support vector machines."""
    if scale == "core":  # the figures to reach: shared sets, C of 1 and 10
        for name in SHARED:
            for seed in range(3):
                for C in (1.0, 10.0):
                    yield Case(name, seed, 1500, standardised=seed != 1), C
        return
    sizes = (100, 300, 1000, 3000, 5000)
    for number, name in enumerate((*SHARED, *OWN)):  # sizes, C and inputs take turns
        for turn, rows in enumerate(sizes):
            if rows > 300 and rows > len(training_part(name)[1]):
                continue
            C = (1.0, 10.0, 100.0)[(number + turn) % 3]
            for seed in (10, 11) if rows <= 1000 else (10,):
                scaled = (number + turn + seed) % 2 == 0
                yield Case(name, seed, rows, standardised=scaled), C
                yield Case(name, seed, rows, standardised=not scaled, unbalanced=True), C


def learner_cases(scale: str) -> Iterator[Case]:
    """Yield cases for the other learners."""
    if scale == "core":
        for name in SHARED:
            for seed in range(2):
                yield Case(name, 20 + seed, 1000)
        return
    for number, name in enumerate((*SHARED, *OWN)):
        yield Case(name, 30, (100, 300)[number % 2])
        yield Case(name, 31, 1000, unbalanced=True)
        if name in SHARED:
            yield Case(name, 32, 3000)
