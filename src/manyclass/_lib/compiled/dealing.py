"""Stratified folds, in compiled code."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, part


@kernel
def deal(y, n_classes, n_folds, numbers):
    """Write the fold of each row: those of scikit-learn's ``StratifiedKFold``.

    Sorted by class, rows are dealt to the folds in turn. The classes come in the order of their
    first rows. Within a class, earlier rows are in earlier folds.
    """
    sizes, start = np.zeros(n_classes, np.int64), np.full(n_classes, -1, np.int64)
    fold, left = np.zeros(n_classes, np.int64), np.empty(n_classes, np.int64)
    for r in range(y.size):
        sizes[y[r]] += 1
    place = 0
    for r in range(y.size):
        c = y[r]
        if start[c] < 0:
            start[c], left[c] = place, _dealt(place, sizes[c], 0, n_folds)
            place += sizes[c]
        while left[c] == 0:
            fold[c] += 1
            left[c] = _dealt(start[c], sizes[c], fold[c], n_folds)
        numbers[r] = fold[c]
        left[c] -= 1


@part
def _dealt(start, size, fold, n_folds):
    """Return how many of some consecutive rows are dealt to a fold."""
    return (start + size - fold + n_folds - 1) // n_folds - (start - fold + n_folds - 1) // n_folds
