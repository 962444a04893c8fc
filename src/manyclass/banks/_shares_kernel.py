"""Sum the shares of the classes in every column, in one pass."""

from __future__ import annotations

from manyclass._compiled import kernel


@kernel
def sum_shares(shares, start, places, intercept, out):
    """out[s, b] = intercept[b] + the shares at ``places[start[b]:start[b + 1]]``."""
    for s in range(shares.shape[0]):
        for b in range(intercept.shape[0]):
            value = intercept[b]
            for m in range(start[b], start[b + 1]):
                value += shares[s, places[m]]
            out[s, b] = value
