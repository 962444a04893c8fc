"""Weighted moments of the scores of both sides of every column."""

from __future__ import annotations

from manyclass._lib.compiled import kernel


@kernel
def add_moments(scores, y, code, weights, moments):
    """Add to (4, 2, l): sums of weights, scores, squares and squared weights, by side.

    The positive side is the first. Scores that are not finite do not count.
    """
    for s in range(y.size):
        w = weights[s]
        for c in range(code.shape[1]):
            side, f = code[y[s], c], scores[s, c]
            if side != 0 and abs(f) < float("inf"):
                at = 0 if side > 0 else 1
                moments[0, at, c] += w
                moments[1, at, c] += w * f
                moments[2, at, c] += w * (f * f)
                moments[3, at, c] += w * w
