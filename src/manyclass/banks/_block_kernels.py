"""What matrix products cannot do to a kernel block: exponentials, and sparse coefficients.

A block is K(S, X), support vectors by rows: the inner loops run over samples.
"""

from __future__ import annotations

from manyclass._compiled import fused_kernel, kernel
from manyclass._exponential import exponential


@fused_kernel
def exponentiate(values):
    """Replace numbers up to 700 by their exponentials; see :func:`exponential`."""
    for i in range(values.size):
        values[i] = exponential(values[i])


@fused_kernel
def spread(K, start, columns, coef, sums):
    """Add ``coef' K``, for coefficients in rows of few entries: sums[b] += coef[i, b] K[i]."""
    for i in range(K.shape[0]):
        for e in range(start[i], start[i + 1]):
            b, c = columns[e], coef[e]
            for s in range(K.shape[1]):
                sums[b, s] += c * K[i, s]


@kernel
def add_intercepts(sums, intercept, out):
    """out[s, b] = intercept[b] + sums[b, s]."""
    for s in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[s, b] = intercept[b] + sums[b, s]
