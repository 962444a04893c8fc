"""Calibrations of out-of-sample scores, and probabilities of rows that they did not see."""

from __future__ import annotations

from functools import partial

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.weights import class_sizes
from manyclass.calibration.base import CACHED_ENTRIES, Calibration
from manyclass.scores.folds import folds_again
from manyclass.scores.out_of_sample import OutOfSampleScores, PackedScores, split_rows


def calibrate(
    method: type[Calibration],
    scores: OutOfSampleScores | PackedScores,
    weights: Floats | None = None,
) -> Calibration:
    """Fit a non-decreasing calibration of every column.

    ``weights`` (n,) replace those of the scores.
    """
    weights = scores.weights if weights is None else weights
    calibration = method()
    calibration.fit_blocks(partial(scores.column_blocks, weights), scores.n_columns)
    of_class = class_sizes(scores.y, len(scores.code), weights)
    calibration.enforce_monotone(of_class @ (scores.code > 0), of_class @ (scores.code < 0))
    return calibration


def left_out_probabilities(
    calibration: Calibration | None, scores: OutOfSampleScores, rows: Places
) -> tuple[Places, Floats]:
    """Return rows, and their probabilities by calibrations fitted without them.

    A calibration overfits its own training scores: its probabilities for them are too good, and
    a scaling fitted on these would be too confident. With enough samples of every class, the
    calibration of all samples is used, if it has few parameters.

    ``calibration`` is fitted on all samples; None if the scores are probabilities. ``rows`` have
    scores in all columns. Rows that no fold leaves out are skipped, if there are others.
    """
    in_use = class_sizes(scores.y, len(scores.code), scores.weights)
    fewest = in_use.min(initial=np.inf, where=in_use > 0)
    if calibration is None or fewest >= calibration.enough_of_a_class:
        r = _read(scores, rows)
        return rows, r if calibration is None else calibration.transform(r, out=r)
    return crossfitted_probabilities(type(calibration), scores, rows, otherwise=calibration)


def crossfitted_probabilities(
    method: type[Calibration],
    scores: OutOfSampleScores,
    rows: Places,
    *,
    otherwise: Calibration | None = None,
    few: float = 0.25,
) -> tuple[Places, Floats]:
    """Return rows, and their probabilities by calibrations fitted without them.

    The folds are those that the scores come from, see
    :func:`~manyclass.scores.folds.folds_again`. Rows that no fold leaves out are skipped, such as
    rows without weight. If this would skip all rows, or if every class has a single sample, a
    calibration of all samples is used for all rows.

    Parameters
    ----------
    method : type of Calibration
        Fitted once for each fold.
    scores : OutOfSampleScores
        Scores to calibrate.
    rows : int array of shape (m,)
        Rows to calibrate. The probability is NaN where they have no score.
    otherwise : Calibration, optional
        The calibration of all samples. By default it is fitted if it is needed.
    few : float
        Share of columns that a class takes part in, up to which the scores of others are left away
        first. A choice: that takes about the time of one of the calibrations.
    """
    folds, fold_of = left_out_folds(scores), np.full(len(scores.y), -1)
    for number, test in enumerate(folds):
        fold_of[test] = number
    left_out = fold_of[rows] >= 0
    if not left_out.any():
        otherwise = calibrate(method, scores) if otherwise is None else otherwise
        r = _read(scores, rows)
        return rows, otherwise.transform(r, out=r)
    rows = rows[left_out]
    r, numbers = _read(scores, rows), fold_of[rows]
    sparse = np.count_nonzero(scores.code) <= few * scores.code.size
    evidence = PackedScores(scores) if sparse else scores
    for number, test in enumerate(folds):
        places = np.flatnonzero(numbers == number)
        if len(places) > 0:
            others = scores.weights.copy()
            others[test] = 0.0
            calibration = calibrate(method, evidence, others)
            for block in split_rows(places, scores.n_columns, CACHED_ENTRIES):
                r[block] = calibration.transform(r[block])
    return rows, r


def _read(scores: OutOfSampleScores, rows: Places) -> Floats:
    """Return scores (m, l), read some rows at a time."""
    blocks = split_rows(rows, scores.n_columns)
    if len(blocks) == 1:
        return scores.of_one_source(rows)
    out, first = np.empty((len(rows), scores.n_columns)), 0
    for block in blocks:
        out[first : first + len(block)] = scores.of_one_source(block)
        first += len(block)
    return out


def left_out_folds(scores: OutOfSampleScores) -> list[Places]:
    """Return the rows of each fold; no fold if every class has a single sample."""
    used = np.flatnonzero(scores.weights > 0)
    y = scores.y[used]
    if np.bincount(y).max(initial=0) < 2:
        return []
    numbers = None if scores.fold_numbers is None else scores.fold_numbers[used]
    return [used[test] for _, test in folds_again(numbers, y, len(scores.code))]
