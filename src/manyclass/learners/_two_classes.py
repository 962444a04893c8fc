"""Labels of binary learners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from manyclass._lib.arrays import Places
from manyclass._lib.messages import quoted


def encode_binary(y, name: str) -> tuple[NDArray, Places]:
    """Return the two classes, and y as 0 and 1; ``name`` is the name of the estimator."""
    check_classification_targets(y)
    classes, sides = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    check_two(classes, name)
    return classes, sides


def check_two(classes: NDArray, name: str, *, weighed: bool = False) -> None:
    """Raise a ``ValueError`` unless there are two classes (``weighed``: of positive weight)."""
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. y has {len(classes)} classes: use "
            f"CoupledClassifier({name}(...)), which fits one {name} per pair of classes."
        )
    if len(classes) < 2:
        lacking = " with samples of positive weight" if weighed else ""
        only = [f"only one class{lacking}, {quoted(one)}" for one in classes]
        found = only[0] if only else f"no class{lacking}"
        raise ValueError(
            f"y has {found}: a binary classifier needs two. Pass samples of two classes."
        )
