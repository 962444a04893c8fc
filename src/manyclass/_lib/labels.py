"""Checks of class labels: of any type that has an order, and without missing labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from manyclass._lib.messages import quoted


def check_targets(y) -> None:
    """Raise an error for labels that are not classes, as scikit-learn does; allow unusual types."""
    labels = _as_array(y)
    if (
        labels.ndim == 1
        and labels.dtype.kind in "biuU"
        and 2 * len(np.unique(labels)) < labels.size
    ):
        return  # scikit-learn would find no fault, but takes as long as a small machine
    check_labels(labels)
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(
            f"y has shape {labels.shape}, several labels of each sample. Use MultiOutputClassifier "
            "or ClassifierChain around this classifier. If each row marks one class, pass "
            "y.argmax(axis=1)."
        )
    if not _is_unusual(labels):
        check_classification_targets(y)


def _as_array(y) -> NDArray:
    try:
        return np.asarray(y)
    except ValueError as error:  # sequences of different lengths
        raise ValueError(
            "y has a sequence of labels for each sample. Encode them by MultiLabelBinarizer, and "
            "use MultiOutputClassifier or ClassifierChain around this classifier."
        ) from error


def _is_unusual(y: NDArray) -> bool:
    """Whether labels are of a type that scikit-learn refuses, but that has an order.

    Examples are dates, fractions, tuples, bytes and large integers.
    """
    if y.ndim != 1 or y.size == 0:
        return False
    return y.dtype.kind == "S" or (y.dtype == object and not isinstance(y[0], str | float))


def check_labels(y: NDArray, name: str = "y") -> None:
    """Raise an error for labels that are missing or have no order; ``name`` is the argument."""
    if _is_unusual(y):
        _check_order(y, name)
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise ValueError(
            f"{name} is NaT, a missing time, at row {int(np.isnat(y).argmax())}: drop the row, or "
            "name the class."
        )
    if y.dtype == object and y.size and isinstance(y.flat[0], str):
        strangers = {type(label).__name__ for label in y.flat if not isinstance(label, str)}
        if strangers:
            raise TypeError(
                f"{name} mixes texts with labels of type {', '.join(sorted(strangers))}, and has "
                "no order: fill in missing labels, and make all of them texts."
            )


def _check_order(y: NDArray, name: str) -> None:
    missing = next((i for i, label in enumerate(y) if is_missing(label)), None)
    if missing is not None:
        raise ValueError(
            f"{name} is {y[missing]} at row {missing}, a missing label: drop the row, or name the "
            "class."
        )
    try:
        ordered = np.sort(y)
    except (TypeError, ValueError) as error:  # arrays cannot be ordered
        raise TypeError(
            f"{name} has labels without an order ({error}): make them texts, or of one type."
        ) from error
    apart = next(((a, b) for a, b in pairwise(ordered) if not (a == b or a < b)), None)
    if apart is not None:  # of two sets, neither need be less
        raise TypeError(
            f"{name} has labels without an order, such as {quoted(apart[0])} and "
            f"{quoted(apart[1])}: make them texts."
        )


def is_missing(label) -> bool:
    """Whether a label is None, differs from itself, or cannot be compared at all."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ArithmeticError):  # pandas' NA; a signalling NaN
        return True
    except ValueError:  # an array
        return False
