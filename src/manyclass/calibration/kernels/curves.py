"""Isotonic regression of one column by pooling adjacent violators."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass._lib.weights import HEAVIEST


@kernel
def fit_curve(scores, order, sides, weights):
    """Return the knots and levels of the isotonic regression of Platt's targets.

    ``order`` sorts the scores, which are finite or NaN: those are ignored. ``sides`` is +1, -1 or 0
    (takes no part). Without any score, only the sign decides: a line from 0 at -1 to 1 at 1.
    """
    weight, positive, negative = np.zeros(len(scores)), 0.0, 0.0
    for s in range(len(scores)):
        if weights[s] > 0.0 and sides[s] != 0 and not np.isnan(scores[s]):
            weight[s] = min(weights[s], HEAVIEST)
            if sides[s] > 0:
                positive += weight[s]
            else:
                negative += weight[s]
    if positive + negative == 0.0:
        return np.array([-1.0, 1.0]), np.array([0.0, 1.0])
    high, low = (positive + 1.0) / (positive + 2.0), 1.0 / (negative + 2.0)
    knots, levels, merged, n = _distinct(scores, order, sides, weight, high, low)
    _pool(levels, merged, n)
    return _corners(knots, levels, n)


@kernel
def _distinct(scores, order, sides, weight, high, low):
    """Merge equal scores; returns knots, mean targets, their weights and their number.

    As in scikit-learn, scores are equal if they differ by less than 1e-15.
    """
    knots, levels, merged = np.empty(len(order)), np.empty(len(order)), np.empty(len(order))
    n = 0
    for s in order:
        if weight[s] == 0.0:
            continue
        target = high if sides[s] > 0 else low
        if n > 0 and scores[s] - knots[n - 1] < 1e-15:
            merged[n - 1] += weight[s]
            levels[n - 1] += weight[s] / merged[n - 1] * (target - levels[n - 1])
        else:
            knots[n], levels[n], merged[n] = scores[s], target, weight[s]
            n += 1
    return knots, levels, merged, n


@kernel
def _pool(levels, weight, n):
    """Make ``levels`` non-decreasing, in place: pools of neighbours get their weighted mean."""
    first = np.empty(n + 1, dtype=np.int64)  # first member of each pool
    mean, mass = np.empty(n), np.empty(n)
    pools = 0
    for i in range(n):
        first[pools], mean[pools], mass[pools] = i, levels[i], weight[i]
        pools += 1
        while pools > 1 and mean[pools - 2] >= mean[pools - 1]:
            both = mass[pools - 2] + mass[pools - 1]
            share = mass[pools - 1] / both
            mean[pools - 2] += share * (mean[pools - 1] - mean[pools - 2])
            mass[pools - 2] = both
            pools -= 1
    first[pools] = n
    for pool in range(pools):
        levels[first[pool] : first[pool + 1]] = mean[pool]


@kernel
def _corners(knots, levels, n):
    """Return the knots and levels without those in the middle of a level."""
    kept = 0
    for i in range(n):
        before = levels[kept - 1] if kept > 0 else np.nan
        after = levels[i + 1] if i + 1 < n else np.nan
        if levels[i] != before or levels[i] != after:
            knots[kept], levels[kept] = knots[i], levels[i]
            kept += 1
    return knots[:kept].copy(), levels[:kept].copy()
