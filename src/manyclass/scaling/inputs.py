"""Checks of probabilities and labels that a scaling is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import quoted
from manyclass._lib.sklearn import check_sample_weight


def normalised(p: Floats) -> Floats:
    """Return rows divided by their sums; rows of zeros become uniform."""
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


def check_probabilities(p, k: int | None = None, name: str = "p") -> Floats:
    """Return rows of probabilities, of k classes if given, normalised to sum to 1."""
    p = check_array(p, dtype=np.float64, input_name=name)
    if k is not None and p.shape[1] != k:
        raise ValueError(f"{name} has {p.shape[1]} columns, but there are {k} classes.")
    total = p.sum(axis=1, keepdims=True)
    if p.shape[1] < 2 or (p < 0).any() or (abs(total - 1.0) > 1e-3).any():
        raise ValueError(
            f"{name} must hold class probabilities: at least two columns, no negative number, and "
            "rows that sum to 1. Turn logits into probabilities with scipy.special.softmax."
        )
    return p / total


def check_training(p, y, sample_weight) -> tuple[Floats, Places, Floats, NDArray[Any]]:
    """Return probabilities, class indices, weights and the labels."""
    p = check_probabilities(p)
    y = column_or_1d(y)
    check_consistent_length(p, y)
    weights = check_sample_weight(sample_weight, p)
    k = p.shape[1]
    if y.dtype.kind in "iu" and y.min() >= 0 and y.max() < k:
        return p, y.astype(np.intp), weights, np.arange(k)
    classes, indices = np.unique(y, return_inverse=True)
    if len(classes) != k:
        raise ValueError(
            f"y has {len(classes)} labels, from {quoted(classes[0])} to {quoted(classes[-1])}, but "
            f"p has {k} columns. Pass class indices from 0 to {k - 1} if some classes are missing."
        )
    return p, indices, weights, classes
