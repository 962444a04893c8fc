"""Slow oracles: a Newton step as one dense system, and pivoted Cholesky in plain loops."""

from __future__ import annotations

import numpy as np
from naive_logistic import Array, logistic


def newton_step(K: Array, y: Array, bound: Array, a: Array, b: float) -> tuple[Array, float]:
    """da and db with (I + W K) da + W db = C s (t - p) - a and sum(a + da) = 0."""
    n = len(a)
    system, right = np.zeros((n + 1, n + 1)), np.zeros(n + 1)
    for i in range(n):
        f = sum(K[i, j] * a[j] for j in range(n)) + b
        W = bound[i] * logistic(f) * logistic(-f)
        system[i, :n] = [W * K[i, j] + (i == j) for j in range(n)]
        system[i, n], system[n, i] = W, 1.0
        right[i] = bound[i] * y[i] * logistic(-y[i] * f) - a[i]
    right[n] = -sum(a)
    step = np.linalg.solve(system, right)
    return step[:n], float(step[n])


def rank(K: Array, share: float) -> int:
    """Rank by Cholesky with complete pivoting: steps until the residual is small."""
    left = K.copy()
    for step in range(len(K)):
        pivot = max(range(len(K)), key=lambda i: left[i, i])
        if left[pivot, pivot] <= share * np.trace(K) / len(K):
            return step
        column = left[:, pivot].copy()
        for i in range(len(K)):
            left[i] -= column[i] / column[pivot] * column
    return len(K)
