"""Medians on the logit scale, one sample at a time."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel


@kernel
def _median(x):
    """Return the median of ``x``, which is sorted by insertion."""
    k = x.shape[0]
    for i in range(1, k):
        j = i
        while j > 0 and x[j - 1] > x[j]:
            x[j - 1], x[j] = x[j], x[j - 1]
            j -= 1
    return 0.5 * (x[(k - 1) // 2] + x[k // 2])


@kernel
def couple_medians(r, first, second, clip, p):
    """Fill ``p`` with the soft-max of the medians of each class's logits."""
    n, k = p.shape
    logits, theta = np.empty((k, k)), np.empty(k)
    for row in range(n):
        for b in range(r.shape[1]):
            x = min(max(r[row, b], clip), 1.0 - clip)
            logits[first[b], second[b]] = np.log(x / (1.0 - x))
            logits[second[b], first[b]] = -logits[first[b], second[b]]
        highest, total = -np.inf, 0.0
        for i in range(k):
            logits[i, i] = 0.0
            theta[i] = _median(logits[i])
            highest = max(highest, theta[i])
        for i in range(k):
            p[row, i] = np.exp(theta[i] - highest)
            total += p[row, i]
        for i in range(k):
            p[row, i] /= total
