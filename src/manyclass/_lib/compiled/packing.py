"""Entries of a matrix moved up, column by column."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel


@kernel
def pack_columns(scores, sides, rows, packed_scores, packed_sides, packed_rows):
    """Write the scores, sides and row numbers of entries whose side is not 0 to the first rows."""
    n, n_columns = scores.shape
    used = np.zeros(n_columns, np.int64)
    for s in range(n):
        for b in range(n_columns):
            if sides[s, b] != 0:
                m = used[b]
                packed_scores[m, b], packed_sides[m, b] = scores[s, b], sides[s, b]
                packed_rows[m, b] = rows[s]
                used[b] = m + 1
