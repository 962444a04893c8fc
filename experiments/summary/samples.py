"""Stratified splits of the data sets, with inputs prepared for the learners."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.datasets import load

UNITS = ("segment", "wine")  # sets whose features have different units

Array = NDArray[np.float64]
Classes = NDArray[np.intp]


class Part(NamedTuple):
    """Training or test rows."""

    inputs: dict[str, Array]
    """For every learner."""
    y: Classes
    """Classes, from 0 to k - 1."""


def draw(name: str, repeat: int, limit: int) -> tuple[Part, Part]:
    """Draw training and test rows, at most ``limit`` each, stratified by class.

    A data set with too few rows is split into halves.
    """
    data = load(name)
    _, y = np.unique(data.y, return_inverse=True)
    n_train = min(limit, len(y) // 2)
    train, test = train_test_split(
        np.arange(len(y)),
        train_size=n_train,
        test_size=min(limit, len(y) - n_train),
        stratify=y,
        random_state=repeat,
    )
    X, X_test = data.X[train], data.X[test]
    if data.categorical:
        X, X_test = _indicators(X, X_test)
    standard, standard_test = _standardised(X, X_test)
    if name in UNITS:
        X, X_test = standard, standard_test
    return (
        Part({"svc": X, "logistic": standard}, y[train]),
        Part({"svc": X_test, "logistic": standard_test}, y[test]),
    )


def _indicators(X: Array, X_test: Array) -> tuple[Array, Array]:
    """Return an indicator of every category; a missing value is a category of its own."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    X, X_test = (np.nan_to_num(part, nan=-1.0) for part in (X, X_test))
    return encoder.fit_transform(X), encoder.transform(X_test)


def _standardised(X: Array, X_test: Array) -> tuple[Array, Array]:
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test)
