"""Compression of long tails of scores: large scores count by their logarithm."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import Flags, Floats
from manyclass.calibration.base import CACHED_ENTRIES


def median_sizes(scores: Floats, usable: Flags, weights: Floats) -> Floats:
    """Return the weighted median of the absolute usable scores, for every column.

    A sample of weight two counts as two samples. The result is infinite, which means no
    compression, if a column has no score or if half of its scores are 0.

    Weights must be finite.
    """
    medians = np.full(scores.shape[1], np.inf)
    for column, used in enumerate(usable.T):
        if used.any():
            sizes = np.abs(scores[used, column])
            order = np.argsort(sizes)
            reached = np.cumsum(weights[used][order])
            # A little less than one half: rounding errors of the sum must not skip a sample.
            medians[column] = sizes[order[np.searchsorted(reached, (0.5 - 1e-9) * reached[-1])]]
    return np.where(medians > 0, medians, np.inf)


def compress_tails(scores: Floats, limits: Floats, out: Floats | None = None) -> Floats:
    """Return f up to the limit c of its column, and c (1 + log(f / c)) beyond, on either side.

    The order of the scores stays. The function is smooth: its slope at the limit is 1.

    An infinite limit leaves a column unchanged. ``out`` may be ``scores`` itself.
    """
    compressed = np.empty(scores.shape) if out is None else out
    rows = max(1, CACHED_ENTRIES // scores.shape[1])
    with np.errstate(all="ignore"):
        for first in range(0, len(scores), rows):
            f = scores[first : first + rows]
            sizes = np.abs(f)
            beyond = np.log(sizes)
            beyond -= np.log(limits)
            np.fmax(beyond, 0.0, out=beyond)  # NaN where both are infinite
            beyond += 1.0
            beyond *= limits
            np.minimum(sizes, beyond, out=sizes)
            np.copysign(sizes, f, out=compressed[first : first + rows])
    return compressed
