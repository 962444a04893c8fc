"""Weights of samples and of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from manyclass._lib.sklearn import check_sample_weight

# Largest weight of a sample: products of two sums of such weights are finite in float64.
HEAVIEST = 1e100


def weights_in_use(
    passed: Mapping[str, Any], X, otherwise: NDArray[np.float64], *, allow_all_zero: bool = False
) -> tuple[NDArray[np.float64], Mapping[str, Any]]:
    """Return the weights that the inner estimator gets, and its arguments with checked weights.

    These may differ from the caller's own ``sample_weight``: metadata routing may use an alias
    (``set_fit_request(sample_weight="w")``), and class weights may have been multiplied in.
    If the estimator gets none, the weights are ``otherwise``, shape (n,).
    """
    given = passed.get("sample_weight")
    if given is None:
        return otherwise, passed
    weights = check_sample_weight(given, X, allow_all_zero=allow_all_zero)
    return weights, {**passed, "sample_weight": weights}


def check_heaviest(weights: NDArray[np.float64]) -> None:
    """Raise a ``ValueError`` if a weight is too large to compute with coefficients of its size."""
    heaviest = float(weights.max(initial=0.0))
    if heaviest > HEAVIEST:
        raise ValueError(
            f"sample_weight, times class_weight if there is one, is as large as {heaviest:.2g}: "
            f"sums of such coefficients have no digits left. Weights may be up to {HEAVIEST:g}. "
            "Scale them to a mean of 1."
        )


def class_sizes(
    y: NDArray[np.intp], n_classes: int, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the total weight of the samples of each class, shape (k,)."""
    return np.bincount(y, weights, minlength=n_classes).astype(np.float64, copy=False)


def column_sizes(
    y: NDArray[np.intp], code: NDArray[np.int8], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the total weight of the samples that take part in each column, shape (l,)."""
    return class_sizes(y, len(code), weights) @ (code != 0)


def class_weights(class_weight, classes: NDArray, y: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the factor of C for each class; as in SVC, sample weights have no influence.

    Class indices are used where possible: scikit-learn cannot count labels of every type.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, dict):
        weights = compute_class_weight(class_weight, classes=classes, y=classes[y])
        if not (weights >= 0).all():
            at = int(np.argmin(weights >= 0))
            raise ValueError(
                f"class_weight of class {classes[at]} is {weights[at]}: class weights must be 0 "
                "or above."
            )
        return weights
    return compute_class_weight(class_weight, classes=np.arange(len(classes)), y=y)


def without_negative(sample_weight):
    """Replace negative weights by 0: LIBSVM ignores samples of either."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if (weights < 0).any() and not (weights > 0).any():
        raise ValueError(
            "sample_weight is zero or negative for every sample: there is nothing to learn from."
        )
    return np.maximum(weights, 0.0)
