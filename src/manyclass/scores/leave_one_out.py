"""Leave-one-out by a formula where it can be trusted, by folds where it cannot.

What cannot be trusted is mostly some columns of many. They alone are fitted again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from manyclass.banks import Bank, Untrusted
from manyclass.scores.crossfit import OutOfSample
from manyclass.scores.folds import FOLDS, make_folds

# Columns that are fitted by themselves: one call of LIBSVM for all pairs costs less than more.
FEW, FEW_OF_MANY = 20, 0.05
CLEARLY = 3.0  # standard errors between the mean scores of two sides
TINY = np.finfo(np.float64).tiny
WEAK = "the scores of samples left out are hardly, or not, on their own side"

FitPart = Callable[[NDArray[np.intp] | None, NDArray[np.bool_] | None], Bank]


def leave_one_out(
    bank: Bank,
    fit: FitPart,
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    weights: NDArray[np.float64],
    rows: NDArray[np.intp] | None = None,
) -> tuple[NDArray[np.float64] | OutOfSample, str | None]:
    """Return scores of the training set that no sample had a part in itself.

    Parameters
    ----------
    bank : Bank
        Fitted on everything.
    fit : callable
        Fits a bank of the same kind on the rows and columns that it is given, on all where
        that is None.
    X, y, code : as the bank was fitted on
    weights : array of shape (n,)
        Sample weights.
    rows : int array of shape (m,), optional
        The samples to score; all of them when omitted.

    Returns
    -------
    scores : array of shape (m, l) or OutOfSample
        The latter, of all rows, if all of them come from folds.
    remark : str or None
        What is to be said of folds.
    """
    rows = np.arange(len(y)) if rows is None else rows
    scores, doubtful, reasons = _by_formula(bank, X, y, code, weights, rows)
    if scores is not None and not doubtful.any():
        return scores, None
    n_columns = code.shape[1]
    folds = make_folds(FOLDS, X, y, np.arange(len(code)), used=weights > 0, warn=False)
    where = "" if scores is None else f" in {doubtful.sum()} of {n_columns} columns"
    remark = f"analytic leave-one-out is not used{where}: {'; '.join(reasons)}."
    instead = f" {len(folds)} folds are fitted instead; cv={FOLDS} does so without this warning."
    if scores is None:
        return _all_by_folds(bank, fit, X, y, code, rows, folds), remark + instead
    try:
        if doubtful.sum() > min(max(FEW, FEW_OF_MANY * n_columns), n_columns / 2):
            return _all_by_folds(bank, fit, X, y, code, rows, folds), remark + instead
        some = OutOfSample(None, lambda train: fit(train, doubtful), X, y, code[:, doubtful], folds)
    except ValueError as error:  # what can be fitted on everything need not be on less, as NuSVC
        return (
            scores,
            f"{remark} But folds cannot be fitted, so that it is used all the same: {error}",
        )
    _put(some, np.flatnonzero(doubtful), scores, rows, weights)
    return scores, remark + instead


def _all_by_folds(bank: Bank, fit: FitPart, X, y, code, rows, folds):
    by_folds = OutOfSample(bank, lambda train: fit(train, None), X, y, code, folds)
    return by_folds if len(rows) == len(y) else by_folds[rows]


def left_out_scores(bank: Bank, fit: FitPart, X, y, code, weights) -> NDArray[np.float64]:
    """Return the scores of :func:`leave_one_out`, of all samples at once."""
    scores, _ = leave_one_out(bank, fit, X, y, code, weights)
    return scores.dense() if isinstance(scores, OutOfSample) else scores


def _put(
    some: OutOfSample,
    columns: NDArray[np.intp],
    scores: NDArray[np.float64],
    rows: NDArray[np.intp],
    weights: NDArray[np.float64],
) -> None:
    """Replace the scores (m, l) of rows in some columns, where the samples take part in them."""
    place = np.full(len(weights), -1)
    place[rows] = np.arange(len(rows))
    for block in some.column_blocks(weights):
        to = place[block.rows]
        i, j = np.nonzero((block.sides != 0) & (to >= 0)[:, None])
        scores[to[i], columns[block.columns][j]] = block.scores[i, j]


def _by_formula(
    bank: Bank, X, y, code, weights, rows
) -> tuple[NDArray[np.float64] | None, NDArray[np.bool_], list[str]]:
    """Return scores (m, l) if there are any, the columns not to be trusted, and why."""
    doubtful, reasons = np.zeros(code.shape[1], dtype=np.bool_), []
    try:
        scores = bank.leave_one_out(X, y, code, weights, rows)
    except Untrusted as error:
        reasons = [str(error)]
        if error.scores is None or error.columns is None:
            return None, ~doubtful, reasons
        scores, doubtful = error.scores, error.columns
    weak = hardly_told_apart(scores, y[rows], code, weights[rows])
    return scores, doubtful | weak, reasons + [WEAK] * bool(weak.any())


def hardly_told_apart(
    scores: NDArray[np.float64],
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    weights: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Tell which columns do not clearly score their positive side higher.

    Leaving a sample out moves the constant term towards the other side. Where there are few
    samples, or they are hardly alike to a machine, that is more than all else says: scores are
    the wrong way round, or next to it, and a sigmoid turns the probabilities with them. Folds
    that leave out some of either side do not have this bias.

    Clearly: the mean scores differ by three standard errors.
    """
    weights = weights / max(weights.max(initial=0.0), TINY)  # squares shall not overflow
    # Weights, sums and sums of squares of the scores of each class in each column; the last is
    # of the weights squared.
    moments = np.zeros((4, *code.shape))
    for c in range(len(code)):
        of_class = scores[y == c]
        known = np.isfinite(of_class)
        of_class = np.where(known, of_class, 0.0)
        weight = weights[y == c, None] * known
        moments[:3, c] = [(weight * of_class**power).sum(axis=0) for power in (0, 1, 2)]
        moments[3, c] = (weight**2).sum(axis=0)
    size, total, squares, size_squared = (
        np.array([np.where(code == side, m, 0.0).sum(axis=0) for side in (1, -1)]) for m in moments
    )
    with np.errstate(invalid="ignore", divide="ignore"):  # sides without samples say nothing
        mean = total / size
        variance = np.maximum(squares / size - mean**2, 0.0).mean(axis=0)
        error = np.sqrt(variance * (size_squared / size**2).sum(axis=0))
        return mean[0] - mean[1] < CLEARLY * error
