"""Which scores the columns have, in one pass over them."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel


@kernel
def describe_sides(scores, sides, weights, positive, negative, finite, weighted, nonzero, exists):
    """Write what is true of any score of each column; all (l,) are False at first.

    A sample with weight has a score on its positive or negative side, and it is finite; a sample
    with weight takes part; a score is neither 0 nor NaN; a sample takes part, or a score is 0.
    ``weights`` are those of the rows, or of all scores.
    """
    n, n_columns = scores.shape
    for s in range(n):
        for b in range(n_columns):
            has_weight = weights[s] > 0.0 if weights.ndim == 1 else weights[s, b] > 0.0
            score, side = scores[s, b], sides[s, b]
            used = has_weight and side != 0
            known = used and not np.isnan(score)
            positive[b] |= known and side > 0
            negative[b] |= known and side < 0
            finite[b] |= known and np.isfinite(score)
            weighted[b] |= used
            nonzero[b] |= score != 0.0 and not np.isnan(score)
            exists[b] |= side != 0 or score == 0.0
