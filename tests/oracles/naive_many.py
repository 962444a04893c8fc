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
