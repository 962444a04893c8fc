"""Analytic leave-one-out for support vector machines: the span estimate.

From one fit, f without sample p is taken at x_p as f(x_p) - y_p alpha_p S_p^2
(V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector
machines", Neural Computation 12, 2000). S_p is the distance of x_p, in feature
space, from the span of the free support vectors. Samples with alpha = 0 keep
their score: leaving them out changes nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

RIDGE = 1e-10  # relative to the kernel's diagonal: duplicates make it singular
# How far below zero, relative to K(x, x) or its mean, a squared span may fall: duplicates leave H
# a condition number of 1 / RIDGE and more, hence errors of 1e-6; kernels that are not positive
# definite give spans of order -1.
ROUNDING = 1e-4


def squared_spans(
    K: NDArray[np.float64], free: NDArray[np.bool_], positive: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], int]:
    """Return S_p^2 of every support vector, and how many fell below zero.

    With H = [[K_FF, 1], [1', 0]] over the free support vectors F, S_p^2 is
    1 / (H^-1)_pp for p in F and K_pp - v' H^-1 v, v = (K_Fp, 1), for p at the bound.
    Where no other is free, a coefficient of the other side has to vanish with that of p, so
    that they still add up to zero. If it is that of the nearest q there, S_p^2 is half the
    squared distance of p and q, which for rbf is K_pp - K_pq. K_pp alone would mean nothing: a
    constant added to the kernel changes no machine.

    Parameters
    ----------
    K : array of shape (s, s)
        Kernel matrix of a machine's support vectors.
    free : bool array of shape (s,)
        Those whose coefficient is below its bound.
    positive : bool array of shape (s,)
        Those of the positive side; there are some of either.
    """
    diagonal = np.diagonal(K).copy()
    f = int(free.sum())
    size = np.abs(diagonal)
    if f == 0:
        lone = _half_distance_to_other_side(K, positive)
        return np.maximum(lone, 0.0), int((lone < -ROUNDING * size.mean()).sum())
    order = np.argsort(~free, kind="stable")  # the free ones first
    K, positive = K[order[:, None], order], positive[order]
    alone = _half_distance_to_other_side(K, positive)[:f] if f == 1 else None
    K = _centred(K, f)
    spans = np.diagonal(K).copy()
    H = np.ones((f + 1, f + 1))
    H[:-1, :-1] = K[:f, :f]
    H.flat[: f * (f + 2) : f + 2] += RIDGE * max(np.diagonal(K).mean(), 1e-300)
    H[-1, -1] = 0.0
    inverse = np.linalg.inv(H)
    own = np.diagonal(inverse)[:-1]
    spans[:f] = 1.0 / own if alone is None else alone
    v = np.ones((f + 1, len(K) - f))
    v[:-1] = K[:f, f:]
    spans[f:] -= np.einsum("ij,ij->j", v, inverse @ v)
    spans[order] = spans.copy()
    below = int((spans < -ROUNDING * np.maximum(size, size.mean())).sum())
    return np.maximum(spans, 0.0), below


def _half_distance_to_other_side(
    K: NDArray[np.float64], positive: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return half the squared distance, in feature space, from the nearest of the other side."""
    diagonal = np.diagonal(K)
    halves = 0.5 * (diagonal[:, None] + diagonal) - K
    return np.where(positive[:, None] != positive, halves, np.inf).min(axis=1)


def _centred(K: NDArray[np.float64], f: int) -> NDArray[np.float64]:
    """Move the origin of feature space to the mean of the free ones.

    It makes no difference to distances from their affine span, but a large one to what
    is lost in taking them.
    """
    means = K[:, :f].mean(axis=1)
    return K - means[:, None] - means + means[:f].mean()


def without_only_samples(scores, y, code, weights, rows):
    """Put NaN where a sample is the only one of its side: without it there is no machine."""
    counts = np.bincount(y[weights > 0], minlength=len(code))
    for side in (1, -1):
        for column in np.flatnonzero(counts @ (code == side) == 1):
            only = (code[y[rows], column] == side) & (weights[rows] > 0)
            scores[only, column] = np.nan
    return scores
