"""A few weights shared by all classes: logits as a weighted sum of features of each class."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from manyclass._lib.arrays import Floats, Places

# Ridge toward the first feature alone, in samples. A choice among 0.02, 0.1, 0.2, 0.5, 1 and 5 on
# random splits of training parts: benchmarks/quality/choices.md.
RIDGE = 0.5


def fit_weights(features: Floats, y: Places, sample_weight: Floats, ridge: float) -> Floats:
    """Return the weights with the least log-loss of softmax(sum_t weight_t feature_t).

    Newton's method with halved steps: the log-loss is convex. The ridge pulls the weights to
    (1, 0, ..., 0), the first feature alone.

    Parameters
    ----------
    features : array of shape (t, n, k)
        Logits of the classes by several sources.
    y : int array of shape (n,)
        True classes.
    sample_weight : array of shape (n,)
        Counts of samples.
    ridge : float
        Ridge on the sum of all samples' log-losses.
    """
    features = features - features.mean(axis=2, keepdims=True)
    t, samples = len(features), np.arange(len(y))
    origin = np.eye(t)[0]
    reached = features[:, samples, y] @ sample_weight

    def evaluate(theta: Floats) -> tuple[float, Floats, Floats]:
        log_p = log_softmax(np.tensordot(theta, features, axes=1), axis=1)
        away = theta - origin
        return -float(sample_weight @ log_p[samples, y]) + ridge * float(away @ away), log_p, away

    theta = origin
    loss, log_p, away = evaluate(theta)
    for _ in range(100):
        p = np.exp(log_p)
        weighted = features * (p * sample_weight[:, None])
        expected = np.einsum("tnk,nk->tn", features, p)
        gradient = weighted.sum(axis=(1, 2)) - reached + 2.0 * ridge * away
        hessian = weighted.reshape(t, -1) @ features.reshape(t, -1).T
        hessian -= (expected * sample_weight) @ expected.T
        hessian += (2.0 * ridge + 1e-12 * (1.0 + np.trace(hessian))) * np.eye(t)
        step = np.linalg.solve(hessian, gradient)
        decrement, share = float(gradient @ step), 1.0
        while True:
            there = evaluate(theta - share * step)
            rounding = 1e-14 * (1.0 + loss)
            if there[0] <= loss - 1e-4 * share * decrement + rounding or share < 1e-8:
                break
            share /= 2.0
        if share < 1e-8:
            break
        theta, (loss, log_p, away) = theta - share * step, there
        if not decrement > 1e-12 * (1.0 + loss):
            break
    return theta
