"""The temperature of the classifiers, for many rules on the same out-of-sample scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manyclass.calibration import Calibration
from manyclass.calibration.crossfitting import left_out_probabilities
from manyclass.combiners.base import Combiner
from manyclass.scaling import Temperature
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scores.out_of_sample import OutOfSampleScores

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def probabilities_of_columns(
    calibration: Calibration | None, scores: OutOfSampleScores
) -> tuple[Rows, Floats]:
    """Return the rows that a temperature is fitted on, and their binary probabilities (m, l).

    Each part of the rows is calibrated by a calibration that is fitted without it. ``calibration``
    is that of all rows; None if the scores are probabilities.
    """
    rows, enough = scores.rows_of_one_source(), rows_for_scaling(*scores.code.shape)
    if len(rows) > enough:
        rows = np.random.default_rng(0).choice(rows, enough, replace=False)
    return left_out_probabilities(calibration, scores, rows)


def temperature_of(
    combiner: Combiner, scores: OutOfSampleScores, rows: Rows, r: Floats, weights: Floats
) -> Temperature:
    """Return the temperature of a rule; ``weights`` (l,) are those of the columns."""
    p = combiner.combine(r, scores.code, weights).values
    return Temperature().fit_checked(p, scores.y[rows], np.ones(len(rows)))
