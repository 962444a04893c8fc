"""Leave-one-out by a formula, and by folds in the columns where the formula is not reliable.

Usually only some of many columns are unreliable. Only these are fitted again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manyclass._lib.arrays import Code, Flags, Floats, Places, plain
from manyclass._lib.compiled.moments import add_moments
from manyclass.banks import Bank, Untrusted
from manyclass.scores.crossfit import CrossFittedScores
from manyclass.scores.folds import FOLDS, fold_numbers, stratified_folds
from manyclass.scores.out_of_sample import DenseScores, OutOfSampleScores

FitPart = Callable[[Places | None, Flags | None], Bank]


def leave_one_out(
    bank: Bank,
    fit: FitPart,
    X,
    y: Places,
    code: Code,
    weights: Floats,
    rows: Places | None = None,
    row_weights: Floats | None = None,
    n_by_folds: int = 0,
) -> tuple[OutOfSampleScores, str | None]:
    """Return scores of training samples by machines that were fitted without the sample.

    Parameters
    ----------
    bank : Bank
        Fitted on all rows.
    fit : callable
        Fits a bank of the same kind on the rows and columns that it is given; None means all.
    X, y, code : as the bank was fitted on
    weights : array of shape (n,)
        Sample weights.
    rows : int array of shape (m,), optional
        The samples to score; all by default.
    row_weights : array of shape (m,), optional
        Weights of the scores, if not those of their samples.
    n_by_folds : int, default=0
        If folds are fitted, the number of samples that they score in all columns.

    Returns
    -------
    scores : OutOfSampleScores
        Scores of the m rows.
    remark : str or None
        The warning to give if folds were needed.
    """
    rows = np.arange(len(y)) if rows is None else rows
    row_weights = weights[rows] if row_weights is None else row_weights
    values, doubtful, reasons = _by_formula(bank, X, y, code, weights, rows)
    if values is not None and not doubtful.any():
        return _with_sources(DenseScores(values, y[rows], code, row_weights), bank, doubtful), None
    folds = stratified_folds(FOLDS, y, np.arange(len(code)), used=weights > 0, warn=False)
    if values is not None and _refold(bank, X, y, weights, doubtful, folds, values, rows):
        return _with_sources(DenseScores(values, y[rows], code, row_weights), bank, doubtful), None
    where = "" if values is None else f" in {doubtful.sum()} of {code.shape[1]} columns"
    remark = f"analytic leave-one-out is not used{where}: {'; '.join(reasons)}."
    instead = f" {len(folds)} folds are fitted instead; cv={FOLDS} does so without this warning."
    try:
        if values is None or _are_many(doubtful):
            scored = np.zeros_like(weights)
            scored[rows] = weights[rows]
            by_folds = CrossFittedScores(
                bank,
                lambda train: fit(train, None),
                *(X, y, code, scored, folds),
                n_by_folds=n_by_folds,
            )
            if len(rows) == len(y):
                return by_folds, remark + instead
            values = by_folds[rows]
            complete = np.isin(rows, by_folds.rows_of_one_source())
            values[complete] = by_folds.of_one_source(rows[complete])
            return DenseScores(values, y[rows], code, row_weights), remark + instead
        refitted = CrossFittedScores(
            None, lambda train: fit(train, doubtful), X, y, code[:, doubtful], weights, folds
        )
    except ValueError as error:  # NuSVC, for one, may be feasible on all rows but not on fewer
        if values is None:
            raise
        remark = f"{remark} But folds cannot be fitted, so it is used all the same: {error}"
    else:
        _replace_columns(values, rows, refitted, np.flatnonzero(doubtful))
        remark += instead
    return DenseScores(values, y[rows], code, row_weights), remark


def _refold(bank: Bank, X, y, weights, columns: Flags, folds, values: Floats, rows) -> bool:
    """Replace values of some columns by scores of folds, if the bank can compute them by itself."""
    numbers = fold_numbers(folds, len(y))
    if numbers is None:
        return False
    found = bank.scores_by_folds(X, y, weights, columns, numbers)
    if found is None:
        return False
    found, places = found[rows], np.flatnonzero(columns)
    values[:, places] = np.where(np.isnan(found), values[:, places], found)
    return True


def _with_sources(scores: DenseScores, bank: Bank, by_folds: Flags) -> DenseScores:
    """Record how the scores of each column were computed."""
    solved = getattr(bank, "n_solved", None)
    refitted = np.zeros_like(by_folds) if solved is None else solved > 0
    scores.sources = np.where(by_folds, "folds", np.where(refitted, "solver", "formula"))
    return scores


def _are_many(columns: Flags, few: int = 20, share: float = 0.05) -> bool:
    """Whether it is cheaper to fit all columns again than the given ones by themselves.

    A choice: one LIBSVM call for all pairs costs about as much as 20 pairs, or 5 % of them, one
    by one. More than half of the columns are always many.
    """
    return bool(columns.sum() > min(max(few, share * len(columns)), len(columns) / 2))


def _replace_columns(
    values: Floats, rows: Places, refitted: OutOfSampleScores, columns: Places
) -> None:
    """Replace values (m, l) of rows in some columns, where the samples take part in them."""
    place = np.full(len(refitted.y), -1)
    place[rows] = np.arange(len(rows))
    for block in refitted.column_blocks(refitted.weights):
        to = place[block.rows]
        i, j = np.nonzero((block.sides != 0) & (to >= 0)[:, None])
        values[to[i], columns[block.columns][j]] = block.scores[i, j]


def _by_formula(bank: Bank, X, y, code, weights, rows) -> tuple[Floats | None, Flags, list[str]]:
    """Return scores (m, l) if there are any, the unreliable columns, and the reasons."""
    doubtful, reasons = np.zeros(code.shape[1], dtype=np.bool_), []
    try:
        values = bank.leave_one_out(X, y, code, weights, rows)
    except Untrusted as error:
        reasons = [str(error)]
        if error.scores is None or error.columns is None:
            return None, ~doubtful, reasons
        values, doubtful = error.scores, error.columns
    weak = weakly_separated(values, y[rows], code, weights[rows])
    if weak.any():
        reasons.append("the scores of samples left out are hardly, or not, on their own side")
    return values, doubtful | weak, reasons


def weakly_separated(
    scores: Floats, y: Places, code: Code, weights: Floats, standard_errors: float = 3.0
) -> Flags:
    """Return which columns do not clearly score their positive side higher.

    Leaving a sample out moves the constant term towards the other side. With few samples, or
    with samples that are hardly similar for a machine, this shift dominates: scores have the
    wrong order, or nearly, and a sigmoid would reverse the probabilities. Folds that leave out
    some samples of both sides do not have this bias.

    "Clearly" means that the mean scores differ by three standard errors.
    """
    # Scaled, so that squares do not overflow.
    weights = weights / max(weights.max(initial=0.0), np.finfo(np.float64).tiny)
    moments = np.zeros((4, 2, code.shape[1]))
    read = plain(scores, np.float64), plain(y, np.intp), plain(code, np.int8)
    add_moments(*read, plain(weights, np.float64), moments)
    size, total, squares, size_squared = moments
    with np.errstate(invalid="ignore", divide="ignore"):  # sides without samples give NaN
        mean = total / size
        variance = np.maximum(squares / size - mean**2, 0.0).mean(axis=0)
        error = np.sqrt(variance * (size_squared / size**2).sum(axis=0))
        return mean[0] - mean[1] < standard_errors * error
