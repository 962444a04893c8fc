"""Folds of the training set, which all columns share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from manyclass._lib.messages import some_quoted

FOLDS, MOST_FOLDS = 5, 10  # where none are given, and of those given at most

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Rows to train on, and to test."""


def make_folds(
    cv,
    X,
    y: NDArray[np.intp],
    classes: NDArray,
    split_params: Mapping[str, Any] | None = None,
    warn: bool = True,
    used: NDArray[np.bool_] | None = None,
) -> list[Fold]:
    """Return (train, test) rows, shuffled and stratified by class where ``cv`` is a number.

    A class with fewer samples than folds is spread over as many folds as it has
    samples; the only sample of a class is never left out, and a warning says so. Rows that are
    not ``used``, having no weight, have no part in it.
    """
    if not isinstance(cv, (int, np.integer)) or isinstance(cv, bool):
        splits = check_cv(cv, y, classifier=True).split(X, y, **(split_params or {}))
        return [(_places(train, len(y)), _places(test, len(y))) for train, test in splits]
    rows = np.arange(len(y)) if used is None else np.flatnonzero(used)
    y = y[rows]
    counts = np.bincount(y, minlength=1)
    n_splits = min(cv, counts.max())
    if cv < 2 or n_splits < 2:
        raise ValueError(
            f"cv={cv} with at most {counts.max()} sample(s) per class: out-of-sample scores need "
            "at least 2 folds and a class with 2 samples. Add samples; or use cv=None with "
            "calibration='auto' or None, and a combiner that learns nothing from such scores."
        )
    single = counts[y] == 1
    if warn:
        warn_single(y, classes, stacklevel=7)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        # Neighbouring rows are often alike, and folds of them unlike each other. The rows are
        # shuffled, not the folds: names of classes have no part in it.
        order = np.random.RandomState(0).permutation(len(y))
        splits = StratifiedKFold(n_splits).split(np.zeros(len(y)), y[order])
        folds = [np.sort(order[test]) for _, test in splits]
    held_out = [test[~single[test]] for test in folds]
    return [(rows[np.setdiff1d(np.arange(len(y)), test)], rows[test]) for test in held_out]


def _places(rows, n: int) -> NDArray[np.intp]:
    """Return the rows of a split as indices: masks, lists and negative ones will do."""
    rows = np.asarray(rows)
    if rows.dtype == np.bool_ and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (len(rows) and (rows.dtype.kind not in "iu" or _is_beyond(rows, n))):
        raise ValueError(
            f"cv has a split that is not made of rows of X, of which there are {n}: give the "
            "indices of rows, or a mask with True or False for each."
        )
    rows = rows.astype(np.intp)
    return np.where(rows < 0, rows + n, rows)


def _is_beyond(rows: NDArray, n: int) -> bool:
    return bool(rows.max() >= n or rows.min() < -n)


def fold_numbers(folds: Iterable[Fold], n: int) -> NDArray[np.intp] | None:
    """Return the number of the fold that leaves each row out, -1 for none.

    None if there is no such number: some row is left out several times.
    """
    numbers = np.full(n, -1)
    for number, (_, test) in enumerate(folds):
        if (numbers[test] >= 0).any():
            return None
        numbers[test] = number
    return numbers


def folds_again(
    numbers: NDArray[np.intp] | None, y: NDArray[np.intp], n_classes: int
) -> list[Fold]:
    """Return folds for what is learned from out-of-sample scores: those that made the scores.

    What was left out together is left out together again: that is what keeps copies of a
    sample, or a group of them, on one side. Of many folds several are left out at a time. New
    folds, if there were none, know of rows alone.
    """
    if numbers is not None:
        each = np.unique(numbers[numbers >= 0])
        if len(each) >= 2:
            n_folds = len(each) if len(each) <= MOST_FOLDS else FOLDS
            left_out = [np.isin(numbers, each[i::n_folds]) for i in range(n_folds)]
            return [(np.flatnonzero(~out), np.flatnonzero(out)) for out in left_out]
    return make_folds(FOLDS, None, y, np.arange(n_classes), warn=False)


def warn_single(y: NDArray[np.intp], classes: NDArray, stacklevel: int) -> None:
    """Warn about classes with a single sample, which cannot be left out."""
    single = classes[np.bincount(y, minlength=len(classes)) == 1]
    if len(single) == 0:
        return
    warnings.warn(
        f"the following classes have a single sample each: {some_quoted(single)}. It cannot be "
        "left out, so calibration, temperature and combiners that learn do without it; collect "
        "more samples or merge the class with another.",
        UserWarning,
        stacklevel=stacklevel,
    )
