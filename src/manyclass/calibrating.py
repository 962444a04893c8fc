"""Calibrations of out-of-sample scores, and probabilities that none had a part in itself."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from manyclass.banks.generic import class_sizes
from manyclass.calibration import CALIBRATIONS, Calibration
from manyclass.crossfit import OutOfSample, folds_again

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
    method : {"sigmoid", "isotonic"}
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
    method: str,
    scores: Floats | OutOfSample,
    y: Indices,
    code: NDArray[np.int8],
    weights: Floats,
    numbers: Indices | None = None,
) -> Floats | None:
    """Return probabilities (n, l) of samples by calibrations without them, if samples are few.

    Of few samples a calibration makes the most: by its own probabilities they seem to be told
    apart better than they are, and a temperature of these would make it worse.

    Parameters
    ----------
    method, scores, y, code, weights
        As in :func:`calibrate`.
    numbers : int array of shape (n,), optional
        Those of the folds that the scores come from, -1 for none.

    Returns
    -------
    array of shape (n, l) or None
        NaN for samples that are not left out, or have no weight. None if all are such, or if
        there are twenty samples of a class, on average, or more.
    """
    used = np.flatnonzero(weights > 0)
    in_use = class_sizes(y, len(code), weights)
    enough = in_use.sum() >= FEW_OF_A_CLASS * np.count_nonzero(in_use)
    if enough or np.bincount(y[used]).max(initial=0) < 2:
        return None
    r = np.full((len(y), code.shape[1]), np.nan)
    scores, y, weights = scores[used], y[used], weights[used]
    for train, test in folds_again(None if numbers is None else numbers[used], y, len(code)):
        without = calibrate(method, scores[train], y[train], code, weights[train])
        r[used[test]] = without.transform(scores[test])
    return None if np.isnan(r).any(axis=1).all() else r
