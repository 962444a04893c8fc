"""Out-of-sample scores of the training set, for any ternary code.

A sample that a column never used is already out of sample for its model (Duan
et al. 2003, section 3.1, for one-vs-one). Otherwise the score comes from the
model of the fold that left the sample out. Folds are shared by all columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from manyclass._sklearn import take_rows
from manyclass.banks import Bank

ENOUGH_ROWS = 10_000  # to calibrate on
ENOUGH_OF_A_CLASS = 400  # however many classes there are

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def make_folds(
    cv,
    X,
    y: NDArray[np.intp],
    classes: NDArray,
    split_params: Mapping[str, Any] | None = None,
    warn: bool = True,
) -> list[Fold]:
    """Return (train, test) rows, shuffled and stratified by class where ``cv`` is a number.

    A class with fewer samples than folds is spread over as many folds as it has
    samples; the only sample of a class is never left out, and a warning says so.
    """
    if not isinstance(cv, (int, np.integer)) or isinstance(cv, bool):
        return list(check_cv(cv, y, classifier=True).split(X, y, **(split_params or {})))
    counts = np.bincount(y)
    n_splits = min(cv, counts.max())
    if cv < 2 or n_splits < 2:
        raise ValueError(
            f"cv={cv} with at most {counts.max()} sample(s) per class: calibration and temperature "
            "need at least 2 folds and a class with 2 samples. Use cv=None to do without both."
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
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in held_out]


def enough_rows(
    y: NDArray[np.intp], weights: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose the rows that calibration is fitted on, and their weights.

    All of them up to ``ENOUGH_ROWS``. Beyond, the two numbers of a sigmoid are known
    well enough from some hundred samples of each class, spread evenly over the
    class's rows; they stand for the others by their weight.
    """
    used = np.flatnonzero(weights > 0)
    if len(used) <= ENOUGH_ROWS:
        return np.arange(len(y)), weights
    n_classes = y.max() + 1
    counts = np.bincount(y[used], minlength=n_classes)
    quota = np.minimum(counts, max(ENOUGH_OF_A_CLASS, ENOUGH_ROWS // n_classes))
    by_class = np.split(used[np.argsort(y[used], kind="stable")], np.cumsum(counts)[:-1])
    chosen = np.sort(
        np.concatenate(
            [rows[np.arange(m) * len(rows) // m] for rows, m in zip(by_class, quota, strict=True)]
        )
    )
    kept = np.bincount(y[chosen], weights[chosen], minlength=n_classes)
    total = np.bincount(y, weights, minlength=n_classes)
    return chosen, weights[chosen] * total[y[chosen]] / kept[y[chosen]]


def warn_single(y: NDArray[np.intp], classes: NDArray, stacklevel: int) -> None:
    """Warn about classes with a single sample, which cannot be left out."""
    single = classes[np.bincount(y, minlength=len(classes)) == 1]
    if len(single) == 0:
        return
    shown = ", ".join(repr(label) for label in single[:5].tolist())
    more = f" and {len(single) - 5} more" if len(single) > 5 else ""
    warnings.warn(
        f"the following classes have a single sample each: {shown}{more}. It cannot be left "
        "out, so calibration, temperature and combiners that learn do without it; collect more "
        "samples or merge the class with another.",
        UserWarning,
        stacklevel=stacklevel,
    )


def out_of_sample_scores(
    bank: Bank,
    fit: Callable[[NDArray[np.intp]], Bank],
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    folds: Iterable[Fold],
) -> NDArray[np.float64]:
    """Return scores (n, l) of the training set that no sample had a part in.

    Parameters
    ----------
    bank : Bank
        Fitted on everything.
    fit : callable
        Fits a bank of the same kind on the rows it is given.
    X, y, code : as the bank was fitted on
    folds : pairs (train, test)
        A row tested several times gets the mean of its scores.

    Returns
    -------
    array of shape (n, l)
        NaN where a sample takes part in the column but was never left out, or
        only by models that lacked one side.
    """
    takes_part = code[y] != 0
    total = np.zeros(takes_part.shape)
    count = np.zeros(takes_part.shape, dtype=np.int64)
    for train, test in folds:
        fold_bank = fit(train)
        # A column that has one side only with all data says the same in every fold.
        needed = takes_part[test] & (bank.constant | ~fold_bank.constant)
        scores = fold_bank.scores(take_rows(X, test), where=needed)
        check_no_nan(np.where(needed, scores, 0.0), test)
        total[test] += np.where(needed, scores, 0.0)
        count[test] += needed
    with np.errstate(invalid="ignore"):
        left_out = total / count
    if takes_part.all():
        return left_out
    unused = bank.scores(X, where=~takes_part)
    check_no_nan(np.where(takes_part, 0.0, unused), np.arange(len(y)))
    return np.where(takes_part, left_out, unused)


def check_no_nan(scores: NDArray[np.float64], rows: NDArray[np.intp]) -> None:
    """Raise a ``ValueError`` that names the first NaN; ``rows`` are the names of the rows."""
    missing = np.isnan(scores)
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise ValueError(
            f"the binary models' scores are NaN at row {rows[row]}, column {column} of the code: "
            "impute or drop the row, or find out why the model of that column fails."
        )
