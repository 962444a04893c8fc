"""Slow oracles of the comparison: plain loops over rows and folds."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import t


def log_loss(y, p) -> float:
    eps = np.finfo(float).eps
    return -sum(math.log(min(max(p[i][c], eps), 1 - eps)) for i, c in enumerate(y)) / len(y)


def brier(y, p) -> float:
    total = 0.0
    for row, c in zip(p, y, strict=True):
        total += sum((q - (j == c)) ** 2 for j, q in enumerate(row))
    return total / len(y)


def error(y, p) -> float:
    wrong = 0
    for row, c in zip(p, y, strict=True):
        wrong += max(range(len(row)), key=list(row).__getitem__) != c
    return wrong / len(y)


def calibration(y, p, n_bins=15) -> float:
    """Mean over the classes of the calibration error, with bins (a, b]."""
    n, k = len(p), len(p[0])
    total = 0.0
    for c in range(k):
        for b in range(n_bins):
            low, high = b / n_bins, (b + 1) / n_bins
            rows = [
                i
                for i in range(n)
                if (low < p[i][c] or (b == 0 and p[i][c] == 0)) and p[i][c] <= high
            ]
            stated = sum(p[i][c] for i in rows)
            observed = sum(y[i] == c for i in rows)
            total += abs(stated - observed) / n
    return total / k


def corrected_interval(first, second, sizes, level=0.95):
    """Nadeau & Bengio (2003), section 3: the variance of the mean of J overlapping splits."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    J = len(differences)
    mean = sum(differences) / J
    variance = sum((d - mean) ** 2 for d in differences) / (J - 1)
    ratio = sum(n_test / n_train for n_train, n_test in sizes) / J
    half = t.ppf(0.5 + level / 2, J - 1) * math.sqrt((1 / J + ratio) * variance)
    return mean, mean - half, mean + half
