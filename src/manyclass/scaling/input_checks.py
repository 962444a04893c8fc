"""Checks of probabilities and labels that a scaling is given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.messages import quoted
from manyclass._lib.sklearn import check_sample_weight
from manyclass._lib.weights import HEAVIEST


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


def check_evidence(
    columns, others, code: Code | None, shape: tuple[int, int]
) -> tuple[Floats | None, list[Floats]]:
    """Return the probabilities of columns and of other models, for ``shape`` (n, k)."""
    n, k = shape
    if isinstance(others, np.ndarray):
        raise ValueError("others must be a list of arrays of shape (n, k), got one array.")
    others = [check_probabilities(other, k, "others") for other in others]
    if any(len(other) != n for other in others):
        raise ValueError(f"others must have as many rows as p, {n}.")
    if columns is None:
        return None, others
    if code is None or code.shape[0] != k:
        raise ValueError(f"columns need the code matrix that they belong to, with {k} rows: code=.")
    columns = np.ascontiguousarray(columns, dtype=np.float64)
    if columns.shape != (n, code.shape[1]):
        raise ValueError(
            f"columns must have shape (n, l) = {(n, code.shape[1])}, got {columns.shape}."
        )
    if not ((columns >= 0) & (columns <= 1)).all():
        raise ValueError("columns must be probabilities between 0 and 1, and not NaN.")
    return columns, others


def check_training(p, y, sample_weight) -> tuple[Floats, Places, Floats, NDArray[Any]]:
    """Return probabilities, class indices, weights and the labels."""
    p = check_probabilities(p)
    y = column_or_1d(y)
    check_consistent_length(p, y)
    weights = np.minimum(check_sample_weight(sample_weight, p), HEAVIEST)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("y has NaN or infinite labels: drop these rows.")
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
