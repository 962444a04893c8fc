"""Usual implementations of coupling rules, to compare our kernels with."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray


def square(r: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return condensed pairs (n, l) as (n, k, k)."""
    out = np.zeros((len(r), k, k))
    first, second = np.triu_indices(k, 1)
    out[:, first, second] = r
    out[:, second, first] = 1 - r
    return out


def wlw2_numpy(r: NDArray[np.float64]) -> NDArray[np.float64]:
    """Wu, Lin & Weng's second rule by one batched numpy.linalg.solve."""
    n, k, _ = r.shape
    diagonal = np.arange(k)
    q = -r * r.transpose(0, 2, 1)
    q[:, diagonal, diagonal] = (r * r).sum(axis=1)
    q += 0.25 * k
    x = np.linalg.solve(q, np.ones((n, k, 1)))[..., 0]
    return x / x.sum(axis=1, keepdims=True)


def printed_numpy(r: NDArray[np.float64], tol: float) -> NDArray[np.float64]:
    """Hastie and Tibshirani's iteration on all rows at once; converged rows are removed."""
    n, k, _ = r.shape
    diagonal = np.arange(k)
    r = np.clip(r, 1e-7, 1 - 1e-7)
    r[:, diagonal, diagonal] = 0
    wins = r.sum(axis=2)
    answer = wins / wins.sum(axis=1, keepdims=True)
    active, p = np.arange(n), answer.copy()
    while len(active):
        mu = p[:, :, None] / (p[:, :, None] + p[:, None, :])
        mu[:, diagonal, diagonal] = 0
        new = p * wins[active] / mu.sum(axis=2)
        new /= new.sum(axis=1, keepdims=True)
        done = np.abs(new - p).max(axis=1) < tol
        answer[active] = new
        active, p = active[~done], new[~done]
    return answer


@njit(nogil=True, error_model="numpy")
def printed_compiled(r, k, tol, p):
    """The same iteration compiled, on condensed pairs, row by row."""
    n = r.shape[0]
    wins, expected, last = np.empty(k), np.empty(k), np.empty(k)
    for s in range(n):
        wins[:] = 0.0
        q = 0
        for i in range(k):
            for j in range(i + 1, k):
                value = min(max(r[s, q], 1e-7), 1 - 1e-7)
                wins[i] += value
                wins[j] += 1.0 - value
                q += 1
        for i in range(k):
            p[s, i] = wins[i] / (0.5 * k * (k - 1))
        change = 1.0
        while change >= tol:
            expected[:] = 0.0
            for i in range(k):
                for j in range(i + 1, k):
                    mu = p[s, i] / (p[s, i] + p[s, j])
                    expected[i] += mu
                    expected[j] += 1.0 - mu
            total = 0.0
            for i in range(k):
                last[i] = p[s, i]
                p[s, i] *= wins[i] / expected[i]
                total += p[s, i]
            change = 0.0
            for i in range(k):
                p[s, i] /= total
                change = max(change, abs(p[s, i] - last[i]))
    return p
