"""Weights and mean slacks of the samples near a row."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel


@kernel
def share_out(size, weights, squared, tolerance, shares, enough):
    """Fill in ``shares`` and ``enough``, as ``Nearest.shares`` describes them."""
    for i in range(squared.shape[0]):
        left, first = size, 0
        while left > 0.0 and first < squared.shape[1]:
            end, together = first, 0.0
            while end < squared.shape[1] and not squared[i, end] > squared[i, first] + tolerance[i]:
                together += weights[i, end]
                end += 1
            part = min(1.0, left / together) if together > 0.0 else 0.0
            for j in range(first, end):
                shares[i, j] = part * weights[i, j]
            left -= together
            first = end
        enough[i] = first < squared.shape[1]


@kernel
def mean_slacks(samples, shares, slacks, sides, own_sides):
    """Return the mean slack of the neighbours on the same side; NaN where there are none."""
    means, k_x = np.zeros(own_sides.shape), np.empty(own_sides.shape[1])
    for i in range(means.shape[0]):
        k_x[:] = 0.0
        for j in range(samples.shape[1]):
            share, t = shares[i, j], samples[i, j]
            if share > 0.0:
                for b in range(k_x.size):
                    if sides[t, b] == own_sides[i, b]:
                        means[i, b] += share * slacks[t, b]
                        k_x[b] += share
        for b in range(k_x.size):
            means[i, b] = means[i, b] / k_x[b] if k_x[b] > 0.0 else np.nan
    return means
