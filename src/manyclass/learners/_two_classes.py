"""The labels of learners that know two classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d


def encode_binary(y, name: str) -> tuple[NDArray, NDArray[np.intp]]:
    """Return the two classes, and y as 0 and 1; ``name`` is of the estimator that asks."""
    check_classification_targets(y)
    classes, sides = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. y has {len(classes)} classes: use "
            f"CoupledClassifier({name}(...)), which fits one {name} for every pair of them."
        )
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes[0]}: there is nothing to tell apart. Pass samples "
            "of two classes."
        )
    return classes, sides
