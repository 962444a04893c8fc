"""Weights of samples, under whatever name metadata routing brings them, and of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from manyclass._lib.sklearn import check_sample_weight


def weights_in_use(
    passed: Mapping[str, Any], X, otherwise: NDArray[np.float64], *, none_at_all: bool = False
) -> tuple[NDArray[np.float64], Mapping[str, Any]]:
    """Return the weights that the estimator within gets, and its arguments with them checked.

    An alias (``set_fit_request(sample_weight="w")``) reaches it without passing
    the caller's own ``sample_weight``, and class weights may have been multiplied in.

    Parameters
    ----------
    passed : mapping
        Arguments for the estimator within.
    X : rows that the weights belong to
    otherwise : array of shape (n,)
        Checked weights, where the estimator gets none.
    none_at_all : bool, default=False
        Whether all of them may be 0.

    Returns
    -------
    weights : array of shape (n,)
    passed : mapping
        The arguments; ``sample_weight`` among them is ``weights``.
    """
    given = passed.get("sample_weight")
    if given is None:
        return otherwise, passed
    weights = check_weights(given, X, none_at_all=none_at_all)
    return weights, {**passed, "sample_weight": weights}


def check_weights(sample_weight, X, *, none_at_all: bool = False) -> NDArray[np.float64]:
    """Return one finite, non-negative weight per row; ones when ``None``.

    Some versions of scikit-learn refuse weights that are all 0; ``none_at_all`` lets them pass.
    """
    if sample_weight is None or not none_at_all or np.any(sample_weight):
        return check_sample_weight(sample_weight, X)
    ones = np.ones(np.shape(sample_weight))[()]
    return np.zeros_like(check_sample_weight(ones, X))


def class_weights(class_weight, classes: NDArray, y: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return what C is multiplied with for each class; as in SVC, weights of samples do not count.

    By numbers of the classes where it can be: scikit-learn does not count labels of every type.
    """
    if isinstance(class_weight, dict):
        weights = compute_class_weight(class_weight, classes=classes, y=classes[y])
        if not (weights >= 0).all():
            at = int(np.argmin(weights >= 0))
            raise ValueError(
                f"class_weight of class {classes[at]} is {weights[at]}: weights of classes must "
                "be 0 or above."
            )
        return weights
    return compute_class_weight(class_weight, classes=np.arange(len(classes)), y=y)


def without_negative(sample_weight):
    """Put 0 in place of negative weights: LIBSVM leaves out both."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if (weights < 0).any() and not (weights > 0).any():
        raise ValueError(
            "sample_weight is zero or negative for every sample: there is nothing to learn from."
        )
    return np.maximum(weights, 0.0)
