"""Calibrations of out-of-sample scores, and probabilities of rows that they did not see."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.weights import class_sizes
from manyclass.calibration.base import Calibration
from manyclass.scores.folds import folds_again
from manyclass.scores.out_of_sample import OutOfSampleScores, row_blocks


def calibrate(
    method: type[Calibration], scores: OutOfSampleScores, weights: Floats | None = None
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
) -> Iterator[tuple[Places, Floats]]:
    """Yield some rows at a time, and their probabilities by calibrations fitted without them.

    A calibration overfits its own training scores: its probabilities for them are too good, and
    a scaling fitted on these would be too confident. With enough samples of a class, on average,
    the calibration of all samples is used, if it has few parameters.

    ``calibration`` is fitted on all samples; None if the scores are probabilities. ``rows`` have
    scores in all columns. Rows that no fold leaves out are skipped, if there are others.
    """
    in_use = class_sizes(scores.y, len(scores.code), scores.weights)
    enough = getattr(calibration, "enough_of_a_class", 0.0) * np.count_nonzero(in_use)
    if calibration is None or in_use.sum() >= enough:
        return _probabilities(calibration, scores, rows)
    return crossfitted_probabilities(type(calibration), scores, rows, otherwise=calibration)


def crossfitted_probabilities(
    method: type[Calibration],
    scores: OutOfSampleScores,
    rows: Places,
    *,
    otherwise: Calibration | None = None,
) -> Iterator[tuple[Places, Floats]]:
    """Yield some rows at a time, and their probabilities by calibrations fitted without them.

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
    """
    tests = [test for test in left_out_folds(scores) if np.isin(rows, test).any()]
    if not tests:
        otherwise = calibrate(method, scores) if otherwise is None else otherwise
        yield from _probabilities(otherwise, scores, rows)
    for test in tests:
        others = scores.weights.copy()
        others[test] = 0.0
        without = calibrate(method, scores, others)
        yield from _probabilities(without, scores, rows[np.isin(rows, test)])


def _probabilities(
    calibration: Calibration | None, scores: OutOfSampleScores, rows: Places
) -> Iterator[tuple[Places, Floats]]:
    """Yield some rows at a time, and their calibrated scores."""
    for block in row_blocks(rows, scores.n_columns):
        r = scores[block]
        yield block, r if calibration is None else calibration.transform(r, out=r)


def left_out_folds(scores: OutOfSampleScores) -> list[Places]:
    """Return the rows of each fold; no fold if every class has a single sample."""
    used = np.flatnonzero(scores.weights > 0)
    y = scores.y[used]
    if np.bincount(y).max(initial=0) < 2:
        return []
    numbers = None if scores.fold_numbers is None else scores.fold_numbers[used]
    return [used[test] for _, test in folds_again(numbers, y, len(scores.code))]
