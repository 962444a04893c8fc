"""The number that ``gamma="scale"`` or ``"auto"`` stands for, as in scikit-learn."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import issparse

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import quoted


def resolve_gamma(gamma: str | float, X) -> float:
    """Return the number that scikit-learn's "scale" and "auto" stand for."""
    if gamma == "scale":
        variance = _sparse_variance(X) if issparse(X) else X.var()
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if isinstance(gamma, str):
        raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {quoted(gamma)}.")
    return float(gamma)


def scale_gamma(gamma: str | float, X, weights: Floats) -> float:
    """Return gamma as a number, where "scale" uses the weighted variance of X."""
    if gamma == "scale" and not issparse(X) and X.min() == X.max():
        return 1.0  # the mean is rounded, so the computed variance would not be 0
    if gamma != "scale" or (weights == weights[0]).all():
        return resolve_gamma(gamma, X)
    share = weights / weights.sum()
    mean = float(share @ np.asarray(X.mean(axis=1)).ravel())
    if issparse(X):
        variance = float(share @ np.asarray(X.multiply(X).mean(axis=1)).ravel()) - mean**2
    else:
        variance = float(share @ ((X - mean) ** 2).mean(axis=1))
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _sparse_variance(X) -> np.float64:
    """Return ``X.multiply(X).mean() - X.mean() ** 2`` to the last bit, without copies of X."""
    values, share = X.data[: X.nnz], 1.0 / math.prod(X.shape)
    with np.errstate(over="ignore"):
        squares = values * values
    if not squares.all():
        squares = squares[squares != 0.0]
    squares *= share
    mean_square = squares.sum()
    del squares
    return mean_square - (values * share).sum() ** 2
