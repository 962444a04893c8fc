"""Weights of samples, under whatever name metadata routing brings them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass._sklearn import check_sample_weight


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
