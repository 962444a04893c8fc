"""Class probabilities and columns to features, and features to scaled probabilities.

A block of rows is transposed, so that inner loops run over rows and are vectorised. Every row is
computed alone and in one order: it does not depend on the rows beside it.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import fused_kernel, part
from manyclass._lib.compiled.exponential import exponential, logarithm
from manyclass.combiners.coupling.kernels.transposed import LOWEST

# Largest log-odds of a column. A choice (benchmarks/quality/choices.md): larger ones tell no more.
LARGEST_LOG_ODDS = 8.0
# Factors after which a product becomes a logarithm: 40 factors of 1e-7 are above 1e-300.
FACTORS = 40
# Rows of a block. A choice: long loops, and the blocks of 325 columns stay in the second cache.
ROWS = 32


@fused_kernel
def describe_sources(sources, floor, share, features):
    """Write the logarithms of the sources (m, n, k) as the first m features (t, k, n).

    Probabilities of the first source are at least ``floor``. Into the others, a ``share`` of the
    uniform distribution is mixed.
    """
    m, n, k = sources.shape
    for first in range(0, n, ROWS):
        rows = min(ROWS, n - first)
        for i in range(k):
            for s in range(first, first + rows):
                features[0, i, s] = logarithm(max(sources[0, s, i], floor))
            for o in range(1, m):
                for s in range(first, first + rows):
                    features[o, i, s] = logarithm((1.0 - share) * sources[o, s, i] + share / k)


@fused_kernel
def pool_features(features, theta, share, z):
    """Write the pooled log-probabilities z (k, n) of weighted features (t, k, n)."""
    t, k, n = features.shape
    width = min(ROWS, n)
    pooled, sums = np.empty((k, width)), np.empty(width)
    for first in range(0, n, ROWS):
        rows = min(ROWS, n - first)
        for i in range(k):
            for s in range(rows):
                pooled[i, s] = 0.0
            for f in range(t):
                for s in range(rows):
                    pooled[i, s] += theta[f] * features[f, i, first + s]
        _mix(pooled, rows, share, sums)
        for i in range(k):
            for s in range(rows):
                z[i, first + s] = pooled[i, s]


@fused_kernel
def describe_columns(r, start, columns, sides, log_odds, features):
    """Write the log-odds of all columns, and three features of each class.

    ``r`` (n, l) are probabilities of the positive sides. ``start``, ``columns`` and ``sides`` are
    the rows of the code matrix without its zeros (CSR). The ``features`` (3, n, k) of a class are,
    over the columns that it takes part in: the logarithm of the least probability of its side, the
    mean logarithm, and the mean log-odds of its side. ``log_odds`` (n, l) are clipped to +-8.
    """
    _, n, k = features.shape
    n_columns, width = r.shape[1], min(ROWS, n)
    clipped, odds = np.empty((n_columns, width)), np.empty((n_columns, width))
    found, product = np.empty((3, k, width)), np.empty(width)
    for first in range(0, n, ROWS):
        rows = min(ROWS, n - first)
        _describe(r, first, rows, start, columns, sides, clipped, odds, found, product)
        for b in range(log_odds.shape[1]):
            for s in range(rows):
                log_odds[first + s, b] = odds[b, s]
        for f in range(3):
            for i in range(k):
                for s in range(rows):
                    features[f, first + s, i] = found[f, i, s]


@part
def _describe(r, first, rows, start, columns, sides, clipped, odds, found, product):
    """Do this for a block of rows, transposed."""
    for b in range(r.shape[1]):
        for s in range(rows):
            clipped[b, s] = min(max(r[first + s, b], LOWEST), 1.0 - LOWEST)
        for s in range(rows):
            log_odds = logarithm(clipped[b, s] / (1.0 - clipped[b, s]))
            odds[b, s] = min(max(log_odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)
    for i in range(len(start) - 1):
        least, logs, total = found[0, i], found[1, i], found[2, i]
        for s in range(rows):
            least[s], logs[s], total[s], product[s] = 1.0, 0.0, 0.0, 1.0
        for e in range(start[i], start[i + 1]):
            b, side = columns[e], sides[e]
            for s in range(rows):
                p = clipped[b, s] if side > 0 else 1.0 - clipped[b, s]
                least[s] = min(least[s], p)
                product[s] *= p
                total[s] += side * odds[b, s]
            if (e - start[i]) % FACTORS == FACTORS - 1:
                for s in range(rows):
                    logs[s] += logarithm(product[s])
                    product[s] = 1.0
        count = max(1, start[i + 1] - start[i])
        for s in range(rows):
            least[s] = logarithm(least[s])
            logs[s] = (logs[s] + logarithm(product[s])) / count
            total[s] /= count


@fused_kernel
def scale_rows(sources, r, start, columns, sides, theta, log_prior, floor, share, matrix, out):
    """Write scaled probabilities (n, k).

    The first of the ``sources`` (m, n, k) are the coupled probabilities. ``r`` (n, l) may have no
    columns; see :func:`describe_columns`. ``theta`` are the weights of all sources, of the
    features of the columns and of ``log_prior`` (k,). Coupled probabilities are at least ``floor``.
    ``share`` is that of the uniform distribution. ``matrix`` has the rows of W, b and,
    with column effects, B.
    """
    m, n, k = sources.shape
    n_columns, width = r.shape[1], min(ROWS, n)
    clipped, odds = np.empty((n_columns, width)), np.empty((n_columns, width))
    found, z, logits = np.empty((3, k, width)), np.empty((k, width)), np.empty((k, width))
    sums = np.empty(width)
    for first in range(0, n, ROWS):
        rows = min(ROWS, n - first)
        for i in range(k):
            prior = theta[-1] * log_prior[i] if len(theta) > 1 else 0.0
            for s in range(rows):
                z[i, s] = prior + theta[0] * logarithm(max(sources[0, first + s, i], floor))
            for o in range(1, m):
                for s in range(rows):
                    mixed = (1.0 - share) * sources[o, first + s, i] + share / k
                    z[i, s] += theta[o] * logarithm(mixed)
        if n_columns > 0:
            _describe(r, first, rows, start, columns, sides, clipped, odds, found, sums)
            for f in range(3):
                for i in range(k):
                    for s in range(rows):
                        z[i, s] += theta[m + f] * found[f, i, s]
        _mix(z, rows, share, sums)
        for i in range(k):
            for s in range(rows):
                logits[i, s] = z[i, s] + matrix[k, i]
        _add_products(z, matrix[:k], rows, logits)
        _add_products(odds[: len(matrix) - k - 1], matrix[k + 1 :], rows, logits)
        _normalise(logits, rows, sums)
        for s in range(rows):
            for i in range(k):
                out[first + s, i] = logits[i, s]


@part
def _mix(z, rows, share, sums):
    """Replace logits (k, rows) by log-probabilities, mixed with uniform ones.

    Of two classes they are centred, so that a matrix makes a sigmoid of the log-odds.
    """
    k, smallest = len(z), 2.0**-1022  # the smallest normal float64: others have no logarithm here
    _normalise(z, rows, sums)
    for i in range(k):
        for s in range(rows):
            z[i, s] = logarithm(max((1.0 - share) * z[i, s] + share / k, smallest))
    if k == 2:
        for s in range(rows):
            half = 0.5 * (z[0, s] - z[1, s])
            z[0, s], z[1, s] = half, -half


@fused_kernel
def _add_products(x, M, rows, logits):
    """Add M' x to the logits: (d, k)' times (d, rows), eight at a time."""
    d, k = M.shape
    eight = d - d % 8
    for b in range(0, eight, 8):
        for i in range(k):
            for s in range(rows):
                logits[i, s] += (
                    (M[b, i] * x[b, s] + M[b + 1, i] * x[b + 1, s])
                    + (M[b + 2, i] * x[b + 2, s] + M[b + 3, i] * x[b + 3, s])
                ) + (
                    (M[b + 4, i] * x[b + 4, s] + M[b + 5, i] * x[b + 5, s])
                    + (M[b + 6, i] * x[b + 6, s] + M[b + 7, i] * x[b + 7, s])
                )
    for b in range(eight, d):
        for i in range(k):
            for s in range(rows):
                logits[i, s] += M[b, i] * x[b, s]


@fused_kernel
def _normalise(logits, rows, sums):
    """Replace logits (k, rows) by probabilities."""
    k = len(logits)
    for s in range(rows):
        sums[s] = logits[0, s]
    for i in range(1, k):
        for s in range(rows):
            sums[s] = max(sums[s], logits[i, s])
    for i in range(k):
        for s in range(rows):
            logits[i, s] = exponential(logits[i, s] - sums[s])
    for s in range(rows):
        sums[s] = 0.0
    for i in range(k):
        for s in range(rows):
            sums[s] += logits[i, s]
    for i in range(k):
        for s in range(rows):
            logits[i, s] /= sums[s]
