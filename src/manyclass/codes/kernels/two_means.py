"""Splits of classes into two sides by 2-means of their means."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel


@kernel
def best_split(means, weights, starts, features, max_steps, best):
    """Write the best of several splits of the classes; without any, ``best`` stays as it is.

    Candidate t is the result of 2-means from the classes ``starts[t]`` on the ``features[t]``
    (bool). ``means`` (m, d) are class means in a space where every class has unit variance,
    ``weights`` (m,) their weights. ``best`` (m,) gets the split with the lowest :func:`cost_of`.
    """
    lowest, side = np.inf, np.zeros(len(means), dtype=np.bool_)
    for t in range(len(starts)):
        if two_means(means, weights, starts[t], features[t], max_steps, side):
            cost = cost_of(means, weights, side)
            if cost < lowest:
                lowest = cost
                best[:] = side


@kernel
def two_means(means, weights, start, features, max_steps, side):
    """Write the side of each class; return whether both sides have classes."""
    m, d = means.shape
    centres = np.zeros((2, d))
    for f in range(d):
        if features[f]:
            centres[0, f], centres[1, f] = means[start[0], f], means[start[1], f]
    for step in range(max_steps):
        changed, n_positive = step == 0, 0
        for i in range(m):
            nearer = 0.0
            for f in range(d):
                if features[f]:
                    away, other = means[i, f] - centres[0, f], means[i, f] - centres[1, f]
                    nearer += away * away - other * other
            changed = changed or (nearer > 0.0) != side[i]
            side[i] = nearer > 0.0
            n_positive += side[i]
        if n_positive == 0 or n_positive == m:
            return False
        if not changed:
            break
        find_centres(means, weights, side, centres)
    return True


@kernel
def find_centres(means, weights, side, centres):
    """Write the weighted mean of the negative and the positive side; return their weights."""
    m, d = means.shape
    negative, positive = 0.0, 0.0
    centres[:] = 0.0
    for i in range(m):
        s = 1 if side[i] else 0
        negative, positive = negative + (1 - s) * weights[i], positive + s * weights[i]
        for f in range(d):
            centres[s, f] += weights[i] * means[i, f]
    for f in range(d):
        centres[0, f] /= negative
        centres[1, f] /= positive
    return negative, positive


@kernel
def cost_of(means, weights, side):
    """Return the expected log-loss of a linear model of the split, per unit of information.

    Classes are projected on the line between the centres, where they have unit variance. The
    model separates them in the middle between the innermost classes of both sides. Two classes of
    unit variance at distance +-z have log-odds of 2 z. The log-loss is divided by the entropy of
    the sides: a split that separates a single class costs little, but tells little.
    """
    m, d = means.shape
    centres = np.zeros((2, d))
    negative, positive = find_centres(means, weights, side, centres)
    length = 0.0
    for f in range(d):
        length += (centres[1, f] - centres[0, f]) ** 2
    length = max(np.sqrt(length), 1e-300)
    z = np.zeros(m)
    low, high = np.inf, -np.inf  # the innermost classes of the positive and negative side
    for i in range(m):
        for f in range(d):
            z[i] += means[i, f] * (centres[1, f] - centres[0, f]) / length
        if side[i]:
            low = min(low, z[i])
        else:
            high = max(high, z[i])
    loss = 0.0
    for i in range(m):
        margin = z[i] - 0.5 * (low + high)
        f = -2.0 * margin if side[i] else 2.0 * margin
        loss += weights[i] * (max(f, 0.0) + np.log1p(np.exp(-abs(f))))
    share = positive / (negative + positive)
    entropy = -share * np.log(share) - (1.0 - share) * np.log(1.0 - share)
    return loss / (negative + positive) / entropy
