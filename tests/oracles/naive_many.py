"""Slow oracle for codes that do not determine the class probabilities, in plain loops."""

from __future__ import annotations

import numpy as np


def penalised_slopes(p, r, code, weights, entropy):
    """The gradient of 1/2 sum w_b (a_b'p)^2 + entropy sum p log p; all equal at the minimum."""
    weights = np.asarray(weights) / np.mean(weights)
    slopes = [entropy * np.log(p_i) for p_i in p]
    for b in range(code.shape[1]):
        a = [(1 - r[b]) if side > 0 else -r[b] if side < 0 else 0.0 for side in code[:, b]]
        residual = sum(a_i * p_i for a_i, p_i in zip(a, p, strict=True))
        for i in range(len(p)):
            slopes[i] += weights[b] * residual * a[i]
    return np.array(slopes)


def tree_product(r, code):
    """Geometric mean over trees of the products along paths, for one row; the slow way."""
    k, n_columns = code.shape
    n_trees = n_columns // (k - 1)
    r = np.clip(r, 1e-7, 1 - 1e-7)
    p = np.ones(k)
    for c in range(k):
        for b in range(n_columns):
            if code[c, b] != 0:
                p[c] *= (r[b] if code[c, b] > 0 else 1 - r[b]) ** (1 / n_trees)
    return p / p.sum()
