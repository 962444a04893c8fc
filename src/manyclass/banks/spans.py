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
ROUNDING = 1e-6  # how far below zero, relative to K(x, x), a squared span may fall


def squared_spans(
    K: NDArray[np.float64], free: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], int]:
    """Return S_p^2 of every support vector, and how many fell below zero.

    With H = [[K_FF, 1], [1', 0]] over the free support vectors F, S_p^2 is
    1 / (H^-1)_pp for p in F and K_pp - v' H^-1 v, v = (K_Fp, 1), for p at the bound.
    Without free support vectors S_p^2 = K_pp.

    Parameters
    ----------
    K : array of shape (s, s)
        Kernel matrix of a machine's support vectors.
    free : bool array of shape (s,)
        Those whose coefficient is below its bound.
    """
    diagonal = np.diagonal(K).copy()
    n_free = int(free.sum())
    if n_free == 0:
        return np.maximum(diagonal, 0.0), int((diagonal < 0).sum())
    H = np.ones((n_free + 1, n_free + 1))
    H[:-1, :-1] = K[np.ix_(free, free)]
    H[np.arange(n_free), np.arange(n_free)] += RIDGE * max(diagonal.mean(), 1e-300)
    H[-1, -1] = 0.0
    inverse = np.linalg.inv(H)
    spans = np.empty(len(K))
    with np.errstate(divide="ignore"):
        spans[free] = 1.0 / np.diagonal(inverse)[:-1]
    bound = ~free
    v = np.ones((n_free + 1, len(K) - n_free))
    v[:-1] = K[np.ix_(free, bound)]
    spans[bound] = diagonal[bound] - np.einsum("ij,ij->j", v, inverse @ v)
    below = int((spans < -ROUNDING * np.abs(diagonal)).sum())
    # A single free vector spans nothing: (H^-1)_11 = 0, and it is as far as a span can be.
    spans = np.where(np.isfinite(spans), spans, diagonal)
    return np.maximum(spans, 0.0), below
