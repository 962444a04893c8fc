"""Calibrations of out-of-sample scores, and probabilities that none had a part in itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from manyclass.banks.base import class_sizes
from manyclass.calibration import CALIBRATIONS, Calibration
from manyclass.scores.crossfit import OutOfSample, row_blocks
from manyclass.scores.folds import folds_again

FEW_OF_A_CLASS = 20  # samples, on average, below which calibrations flatter themselves

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def calibrate(
    method: str,
    scores: Floats | OutOfSample,
    y: Indices,
    code: NDArray[np.int8],
    weights: Floats,
    sides: NDArray[np.int8] | None = None,
) -> Calibration:
    """Fit a calibration of all columns, none of which turns the sides round.

    Parameters
    ----------
    method : {"sigmoid", "robust-sigmoid", "isotonic"}
    scores : array of shape (n, l), or OutOfSample
        Out-of-sample scores.
    y, code : class indices and code matrix
    weights : array of shape (n,)
        Sample weights.
    sides : int8 array of shape (n, l), optional
        The sides of the samples, where some are to be left out; else by their class.
    """
    calibration = CALIBRATIONS[method]()
    if isinstance(scores, OutOfSample):
        calibration.fit_blocks(partial(scores.column_blocks, weights), code.shape[1])
    else:
        calibration.fit(scores, code[y] if sides is None else sides, weights)
    of_class = class_sizes(y, len(code), weights)
    calibration.rise(of_class @ (code > 0), of_class @ (code < 0))
    return calibration


def left_out_probabilities(
    calibration: Calibration | None,
    method: str | None,
    scores: Floats | OutOfSample,
    y: Indices,
    code: NDArray[np.int8],
    weights: Floats,
    rows: Indices,
    numbers: Indices | None = None,
) -> Iterator[tuple[Indices, Floats]]:
    """Yield some of the samples at a time, and their probabilities by calibrations without them.

    Of few samples a calibration makes the most: by its own probabilities they seem to be told
    apart better than they are, and a temperature of these would make it worse. Where there are
    twenty samples of a class, on average, the probabilities are those of the calibration itself.

    Parameters
    ----------
    calibration : Calibration or None
        That of all samples; None where scores are probabilities.
    method : str or None
        How to calibrate without some of them; None if all stay in.
    scores, y, code, weights
        As in :func:`calibrate`.
    rows : int array of shape (m,)
        The samples, which have scores in all columns. Those that no fold leaves out are passed
        over, if there are others.
    numbers : int array of shape (n,), optional
        Those of the folds that the scores come from, -1 for none.

    Yields
    ------
    rows : int array
    r : array of shape (rows, l)
    """
    tests = _to_leave_out(y, len(code), weights, rows, numbers)
    if method is None or not tests:
        yield from _blocks(calibration, scores, rows, code.shape[1])
        return
    for test in tests:
        others = weights.copy()
        others[test] = 0.0
        without = calibrate(method, scores, y, code, others)
        yield from _blocks(without, scores, rows[np.isin(rows, test)], code.shape[1])


def _blocks(
    calibration: Calibration | None, scores: Floats | OutOfSample, rows: Indices, n_columns: int
) -> Iterator[tuple[Indices, Floats]]:
    """Yield some rows at a time, and what a calibration makes of their scores."""
    for block in row_blocks(rows, n_columns):
        r = scores[block]
        yield block, r if calibration is None else calibration.transform(r, out=r)


def _to_leave_out(
    y: Indices, n_classes: int, weights: Floats, rows: Indices, numbers: Indices | None
) -> list[Indices]:
    """Return the samples to leave out together: none if there are enough, or one of each class."""
    used, in_use = np.flatnonzero(weights > 0), class_sizes(y, n_classes, weights)
    enough = in_use.sum() >= FEW_OF_A_CLASS * np.count_nonzero(in_use)
    if enough or np.bincount(y[used]).max(initial=0) < 2:
        return []
    folds = folds_again(None if numbers is None else numbers[used], y[used], n_classes)
    return [used[test] for _, test in folds if np.isin(rows, used[test]).any()]
