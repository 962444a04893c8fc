"""The data of Duan et al. (2003), Table 1, and their random partitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold, train_test_split

from experiments.datasets import load
from manyclass.scores.folds import Fold

N_FOLDS = 5

Floats = NDArray[np.float64]
Classes = NDArray[np.intp]


class Source(NamedTuple):
    """A line of the paper's Table 1."""

    name: str
    """Name for :func:`experiments.datasets.load`."""
    n_train: int
    labels: str = ""
    """The classes to keep; all when empty."""
    continuous: bool = True
    """Whether to standardise the inputs; those of DNA are indicators."""


SOURCES: dict[str, Source] = {
    "ABE": Source("letter", 560, labels="ABE"),
    "DNA": Source("dna", 500, continuous=False),
    "SAT": Source("satimage", 1500),
    "SEG": Source("segment", 500),
    "WAV": Source("waveform", 300),
}


class Partition(NamedTuple):
    """A training and a test set; classes are numbered from 0."""

    X: Floats
    y: Classes
    X_test: Floats
    y_test: Classes
    folds: list[Fold]
    """Folds of the training set: the same for all methods and hyperparameters."""

    def distances(self) -> Floats:
        """Return the squared distances of the training samples."""
        D = euclidean_distances(self.X, squared=True)
        np.fill_diagonal(D, 0.0)
        return (D + D.T) / 2.0


def seed_of(data: str, number: int) -> int:
    """Return the seed of a partition and of its folds."""
    return 1000 * list(SOURCES).index(data) + number


def draw(data: str, number: int, n_train: int, n_test: int | None = None) -> Partition:
    """Draw a stratified partition. Its training part standardises the inputs.

    Parameters
    ----------
    data : str
        One of :data:`SOURCES`.
    number : int
        Number of the partition.
    n_train : int
    n_test : int, optional
        All other samples when omitted.
    """
    source, seed = SOURCES[data], seed_of(data, number)
    loaded = load(source.name)
    kept = np.isin(loaded.y, list(source.labels)) if source.labels else slice(None)
    X, y = loaded.X[kept], np.unique(loaded.y[kept], return_inverse=True)[1]
    train, test = train_test_split(
        np.arange(len(y)), train_size=n_train, test_size=n_test, stratify=y, random_state=seed
    )
    if source.continuous:
        X = _standardise(X, train)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    return Partition(X[train], y[train], X[test], y[test], list(folds.split(train, y[train])))


def _standardise(X: Floats, train: Classes) -> Floats:
    """Give the training rows mean 0 and deviation 1; inputs constant among them become 0."""
    deviation = X[train].std(axis=0)
    constant = X[train].max(axis=0) == X[train].min(axis=0)
    return np.where(constant, 0.0, (X - X[train].mean(axis=0)) / np.where(constant, 1.0, deviation))
