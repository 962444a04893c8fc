"""Long tails of scores, drawn in: what lies far out counts by its logarithm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BLOCK_ENTRIES = 2**15  # scores drawn in at a time, in a core's cache

Floats = NDArray[np.float64]


def typical_sizes(scores: Floats, usable: NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the weighted median of the sizes of the usable scores, for every column.

    A sample of weight two counts as two samples. Where there is no score, or half of them are 0,
    it is infinity: no size is far out.

    Parameters
    ----------
    scores : array of shape (n, l)
    usable : bool array of shape (n, l)
    weights : array of shape (n,)
        Finite sample weights.
    """
    typical = np.full(scores.shape[1], np.inf)
    for column, used in enumerate(usable.T):
        if used.any():
            typical[column] = _weighted_median(np.abs(scores[used, column]), weights[used])
    return np.where(typical > 0, typical, np.inf)


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    # A little less than half: sums are not exact, and must not pass over a sample by that.
    return values[order[np.searchsorted(reached, (0.5 - 1e-9) * reached[-1])]]


def draw_in(scores: Floats, limits: Floats, out: Floats | None = None) -> Floats:
    """Return f up to the limit c of its column, and c (1 + log(f / c)) beyond, on either side.

    It has the order of the scores, and no corner: the slope at the limit is 1.

    Parameters
    ----------
    scores : array of shape (n, l)
    limits : array of shape (l,)
        Positive; infinity leaves a column as it is.
    out : array of shape (n, l), optional
        Where to write, which may be ``scores`` itself.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.calibration.tails import draw_in
    >>> draw_in(np.array([[-100.0], [-2.0], [0.5], [10.0]]), np.array([2.0])).round(2).ravel()
    array([-9.82, -2.  ,  0.5 ,  5.22])
    """
    drawn = np.empty(scores.shape) if out is None else out
    rows = max(1, BLOCK_ENTRIES // scores.shape[1])
    with np.errstate(all="ignore"):
        for first in range(0, len(scores), rows):
            f = scores[first : first + rows]
            sizes = np.abs(f)
            beyond = np.log(sizes)
            beyond -= np.log(limits)
            np.fmax(beyond, 0.0, out=beyond)  # not a number where both are infinite
            beyond += 1.0
            beyond *= limits
            np.minimum(sizes, beyond, out=sizes)
            np.copysign(sizes, f, out=drawn[first : first + rows])
    return drawn
