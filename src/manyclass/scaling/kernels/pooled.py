"""Newton's method for the weights that all classes share."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, part, summing_kernel
from manyclass._lib.compiled.exponential import exponential, logarithm


@summing_kernel
def _evaluate(features, y, weights, ridge, theta, gradient, hessian):
    """Write the gradient and the lower triangle of the Hessian; returns the objective."""
    t, k, n = features.shape
    block = min(64, n)  # rows at a time, which stay in the first cache
    p, away = np.empty((k, block)), np.empty((t, k, block))
    highest, sums = np.empty(block), np.empty(block)
    loss = 0.0
    for f in range(t):
        toward = theta[f] - (1.0 if f == 0 else 0.0)
        loss += ridge * toward * toward
        gradient[f] = 2.0 * ridge * toward
        for g in range(f):
            hessian[f, g] = 0.0
        hessian[f, f] = 2.0 * ridge
    for first in range(0, n, block):
        rows = min(block, n - first)
        part, true, weight = features[:, :, first : first + rows], y[first:], weights[first:]
        for i in range(k):
            for s in range(rows):
                p[i, s] = 0.0
            for f in range(t):
                for s in range(rows):
                    p[i, s] += theta[f] * part[f, i, s]
        loss += _to_probabilities(p, rows, true, weight, highest, sums)
        for f in range(t):
            for s in range(rows):
                sums[s] = 0.0
            for i in range(k):
                for s in range(rows):
                    sums[s] += p[i, s] * part[f, i, s]
            for i in range(k):
                for s in range(rows):
                    away[f, i, s] = part[f, i, s] - sums[s]
            slope = 0.0
            for s in range(rows):
                slope -= weight[s] * away[f, true[s], s]
            gradient[f] += slope
        for i in range(k):
            for s in range(rows):
                p[i, s] *= weight[s]
        for f in range(t):
            for g in range(f + 1):
                spread = 0.0
                for i in range(k):
                    for s in range(rows):
                        spread += p[i, s] * away[f, i, s] * away[g, i, s]
                hessian[f, g] += spread
    return loss


@part
def _to_probabilities(p, rows, true, weight, highest, total):
    """Replace logits (k, rows) by probabilities; returns the weighted log-loss of true classes."""
    loss = 0.0
    for s in range(rows):
        highest[s], total[s] = p[0, s], 0.0
    for i in range(1, len(p)):
        for s in range(rows):
            highest[s] = max(highest[s], p[i, s])
    for s in range(rows):
        loss -= weight[s] * (p[true[s], s] - highest[s])
    for i in range(len(p)):
        for s in range(rows):
            p[i, s] = exponential(p[i, s] - highest[s])
            total[s] += p[i, s]
    for s in range(rows):
        loss += weight[s] * logarithm(total[s])
    for i in range(len(p)):
        for s in range(rows):
            p[i, s] /= total[s]
    return loss


@part
def _solve(hessian, right, x):
    """Write H^-1 times the right side; the lower triangle of H becomes its Cholesky factor."""
    t, trace = len(x), 0.0
    for f in range(t):
        trace += hessian[f, f]
    for f in range(t):
        x[f] = right[f]
        hessian[f, f] += 1e-12 * (1.0 + trace)  # sources may be equal
        for g in range(f + 1):
            for h in range(g):
                hessian[f, g] -= hessian[f, h] * hessian[g, h]
            if g < f:
                hessian[f, g] /= hessian[g, g]
                x[f] -= hessian[f, g] * x[g]
        hessian[f, f] = np.sqrt(max(hessian[f, f], 1e-14 * (1.0 + trace)))
        x[f] /= hessian[f, f]
    for f in range(t - 1, -1, -1):
        for g in range(f + 1, t):
            x[f] -= hessian[g, f] * x[g]
        x[f] /= hessian[f, f]


@kernel
def minimise_weights(features, y, weights, ridge, theta):
    """Minimise the log-loss of softmax(sum_t theta_t feature_t), plus a ridge, from ``theta`` on.

    ``features`` (t, k, n) have samples last. The log-loss is convex: Newton's method with halved
    steps.
    """
    t = len(theta)
    gradient, step, hessian = np.empty(t), np.empty(t), np.empty((t, t))
    there, loss, decrement, share, steps = theta.copy(), np.inf, 0.0, 1.0, 0
    while share >= 1e-8:
        ahead = _evaluate(features, y, weights, ridge, there, gradient, hessian)
        if steps == 0 or ahead <= loss - 1e-4 * share * decrement + 1e-14 * (1.0 + loss):
            loss = ahead
            for f in range(t):
                theta[f] = there[f]
            if steps == 100 or (steps > 0 and not decrement > 1e-12 * (1.0 + loss)):
                return
            _solve(hessian, gradient, step)
            decrement, share = 0.0, 1.0
            for f in range(t):
                decrement += gradient[f] * step[f]
            steps += 1
        else:
            share /= 2.0
        for f in range(t):
            there[f] = theta[f] - share * step[f]
