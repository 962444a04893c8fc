"""Folds of the training set, which all columns share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from manyclass._lib.arrays import Flags, Places, plain
from manyclass._lib.compiled.dealing import deal
from manyclass._lib.messages import some_quoted, warn

# Number of folds if none is given: the default of scikit-learn's cross-validation.
FOLDS = 5

Fold = tuple[Places, Places]
"""Training rows and test rows."""

# The seed is a choice: any other would do as well.
_shuffler, _shuffling = np.random.RandomState(0), Lock()


def make_folds(
    cv,
    X,
    y: Places,
    classes: NDArray,
    split_params: Mapping[str, Any] | None = None,
    warn: bool = True,
    used: Flags | None = None,
) -> list[Fold]:
    """Return the training and test rows of each fold.

    Parameters
    ----------
    cv : int, splitter or iterable of splits
        A number means :func:`stratified_folds`.
    X : training data, for a splitter
    y : int array of shape (n,)
        Class indices.
    classes : array of shape (k,)
        Names of the classes, for the warning.
    split_params : mapping, optional
        Further arguments of the splitter, such as groups.
    warn : bool, default=True
        Whether to warn about classes with a single sample.
    used : bool array of shape (n,), optional
        Rows to use, if ``cv`` is a number; all by default.
    """
    if is_number_of_folds(cv):
        return stratified_folds(cv, y, classes, warn=warn, used=used)
    splits = check_cv(cv, y, classifier=True).split(X, y, **(split_params or {}))
    return [(_as_indices(train, len(y)), _as_indices(test, len(y))) for train, test in splits]


def is_number_of_folds(cv) -> bool:
    """Whether ``cv`` is a number rather than a splitter or splits."""
    return isinstance(cv, Integral) and not isinstance(cv, bool)


def stratified_folds(
    n_folds: int, y: Places, classes: NDArray, *, warn: bool = True, used: Flags | None = None
) -> list[Fold]:
    """Return shuffled folds, stratified by class.

    A class with fewer samples than folds is spread over as many folds as it has samples. The
    only sample of a class is never left out, and a warning says so. Rows that are not ``used``
    are in no fold.
    """
    rows = np.arange(len(y)) if used is None else np.flatnonzero(used)
    y = y[rows]
    counts = np.bincount(y, minlength=1)
    n_splits = min(n_folds, counts.max())
    if n_folds < 2 or n_splits < 2:
        raise ValueError(
            f"cv={n_folds} with at most {counts.max()} sample(s) per class: out-of-sample scores "
            "need at least 2 folds and a class with 2 samples. Add samples; or use cv=None with "
            "calibration='auto' or None, and a combiner that is not trained."
        )
    single = counts[y] == 1
    if warn:
        warn_single(y, classes)
    # Neighbouring rows are often similar, so rows are shuffled. The folds of a class do not depend
    # on the names of the others.
    order, dealt = _shuffled(len(y)), np.empty(len(y), dtype=np.intp)
    deal(plain(y[order], np.intp), len(counts), n_splits, dealt)
    numbers = np.empty_like(dealt)
    numbers[order] = dealt
    numbers[single] = -1
    return [(rows[numbers != number], rows[numbers == number]) for number in range(n_splits)]


def _shuffled(n: int) -> Places:
    """Return n places in random order, always the same.

    A new generator would take 70 us, longer than all else here for 100 rows.
    """
    with _shuffling:
        _shuffler.seed(0)
        return _shuffler.permutation(n)


def _as_indices(rows, n: int) -> Places:
    """Return the rows of a split as non-negative indices; masks and lists are allowed."""
    rows = np.asarray(rows)
    if rows.dtype == np.bool_ and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (
        len(rows) and (rows.dtype.kind not in "iu" or rows.max() >= n or rows.min() < -n)
    ):
        raise ValueError(
            f"cv has a split with rows that X does not have; X has {n} rows. Pass the indices of "
            "rows, or a mask with True or False for each row."
        )
    rows = rows.astype(np.intp)
    return np.where(rows < 0, rows + n, rows)


def fold_numbers(folds: Iterable[Fold], n: int) -> Places | None:
    """Return the number of the fold that leaves each row out, -1 for none.

    None if a row is left out several times.
    """
    numbers = np.full(n, -1)
    for number, (_, test) in enumerate(folds):
        if (numbers[test] >= 0).any():
            return None
        numbers[test] = number
    return numbers


def folds_again(
    numbers: Places | None, y: Places, n_classes: int, most_folds: int = 10, n_folds: int = FOLDS
) -> list[Fold]:
    """Return folds for learning from out-of-sample scores: the folds that the scores come from.

    Rows that were left out together are left out together again. So copies of a sample, or the
    members of a group, are never on both sides. Without fold numbers, new folds are made.

    If there are more than ``most_folds``, several are left out at a time, so that there are
    ``n_folds``.
    """
    if numbers is not None:
        each = np.unique(numbers[numbers >= 0])
        if len(each) >= 2:
            n_folds = len(each) if len(each) <= most_folds else n_folds
            left_out = [np.isin(numbers, each[i::n_folds]) for i in range(n_folds)]
            return [(np.flatnonzero(~out), np.flatnonzero(out)) for out in left_out]
    return stratified_folds(n_folds, y, np.arange(n_classes), warn=False)


def warn_single(y: Places, classes: NDArray) -> None:
    """Warn about classes with a single sample, which cannot be left out."""
    single = classes[np.bincount(y, minlength=len(classes)) == 1]
    if len(single) > 0:
        warn(
            f"the following classes have a single sample each: {some_quoted(single)}. It cannot be "
            "left out, so calibration, scaling and trained combiners do not use it; collect "
            "more samples or merge the class with another."
        )
