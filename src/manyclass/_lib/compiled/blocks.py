"""Passes over a kernel block: exponentials, exact distances, and sparse coefficients.

A block is K(S, X), with support vectors by rows; the inner loops run over samples.
"""

from manyclass._lib.compiled import fused_kernel, kernel
from manyclass._lib.compiled.exponential import exponential


@fused_kernel
def exponentiate(values):
    """Replace numbers, of at most 700, by their exponentials; see :func:`exponential`."""
    for i in range(values.size):
        values[i] = exponential(values[i])


@fused_kernel
def spread(K, start, columns, coef, sums):
    """Add ``coef' K`` for sparse coefficients: sums[b] += coef[i, b] K[i]."""
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


@kernel
def measure_far(G, S, X, gamma, far_s, far_x, far, least, rounding):
    """Replace exponents -gamma |s - x|^2 that lost digits in the difference of large squares.

    ``far_s`` and ``far_x`` are gamma times the squares from which the exponents in G, of shape
    (s, x), were computed. Exponents below ``least`` are not replaced: their exponential is
    negligible. ``rounding`` is a bound on their error, relative to the squares.
    """
    for i in range(G.shape[0]):
        for j in range(G.shape[1]):
            size = far_s[i] + far_x[j]
            # Infinite squares give NaN, for which both comparisons are false.
            if size <= far or G[i, j] <= least - rounding * size:
                continue
            square = 0.0
            for c in range(S.shape[1]):
                difference = S[i, c] - X[j, c]
                square += difference * difference
            G[i, j] = -gamma * square


@kernel
def measure_far_sparse(G, s, at_s, start_s, x, at_x, start_x, gamma, far_s, far_x, limits):
    """Do the same for rows of CSR matrices with sorted indices; the limits are in that order."""
    far, least, rounding = limits
    for i in range(G.shape[0]):
        for j in range(G.shape[1]):
            size = far_s[i] + far_x[j]
            if size <= far or G[i, j] <= least - rounding * size:
                continue
            a, b, square = start_s[i], start_x[j], 0.0
            while a < start_s[i + 1] or b < start_x[j + 1]:
                difference = 0.0
                column_a = at_s[a] if a < start_s[i + 1] else -1
                column_b = at_x[b] if b < start_x[j + 1] else -1
                if column_a >= 0 and (column_b < 0 or column_a <= column_b):
                    difference += s[a]
                    a += 1
                if column_b >= 0 and (column_a < 0 or column_b <= column_a):
                    difference -= x[b]
                    b += 1
                square += difference * difference
            G[i, j] = -gamma * square
