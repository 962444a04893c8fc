"""What the columns say about each class, row by row.

Every row is computed alone and in one order, so that it does not depend on the rows beside it.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import fused_kernel, kernel
from manyclass._lib.compiled.exponential import logarithm

# Column probabilities are clipped to [CLIP, 1 - CLIP], as the coupling rules do.
CLIP = 1e-7
# Largest log-odds of a column (METHODS: a choice). Beyond it, scores tell no more about classes.
LARGEST_LOG_ODDS = 8.0
# Factors after which a product becomes a logarithm: 40 factors of 1e-7 are above 1e-300.
FACTORS = 40


@kernel
def describe_columns(r, start, columns, sides, log_odds, features):
    """Write the log-odds of all columns, and three features of each class.

    ``r`` (n, l) are probabilities of the positive sides. ``start``, ``columns`` and ``sides`` are
    the rows of the code matrix without its zeros (CSR). The ``features`` (3, n, k) of a class are,
    over the columns that it takes part in: the logarithm of the least probability of its side, the
    mean logarithm, and the mean log-odds of its side. ``log_odds`` (n, l) are clipped to +-8.
    """
    n, n_columns = r.shape
    k = len(start) - 1
    clipped = np.empty(n_columns)
    for s in range(n):
        for b in range(n_columns):
            p = min(max(r[s, b], CLIP), 1.0 - CLIP)
            clipped[b] = p
            odds = logarithm(p / (1.0 - p))
            log_odds[s, b] = min(max(odds, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)
        for i in range(k):
            least, product, logs, total, factors = 1.0, 1.0, 0.0, 0.0, 0
            for e in range(start[i], start[i + 1]):
                b, side = columns[e], sides[e]
                p = clipped[b] if side > 0 else 1.0 - clipped[b]
                least = min(least, p)
                product *= p
                factors += 1
                if factors == FACTORS:
                    logs += np.log(product)
                    product, factors = 1.0, 0
                total += side * log_odds[s, b]
            count = max(1, start[i + 1] - start[i])
            features[0, s, i] = np.log(least)
            features[1, s, i] = (logs + np.log(product)) / count
            features[2, s, i] = total / count


@fused_kernel
def add_products(X, M, logits):
    """Add X M to the logits: (n, d) times (d, k), in one order of the sums for any n."""
    d, k = M.shape
    four = d - d % 4
    for s in range(X.shape[0]):
        for b in range(0, four, 4):  # four at a time: logits are read and written less often
            w, x, y, z = X[s, b], X[s, b + 1], X[s, b + 2], X[s, b + 3]
            for c in range(k):
                logits[s, c] += (w * M[b, c] + x * M[b + 1, c]) + (
                    y * M[b + 2, c] + z * M[b + 3, c]
                )
        for b in range(four, d):
            for c in range(k):
                logits[s, c] += X[s, b] * M[b, c]


@kernel
def pool(features, theta, share, z):
    """Write centred log-probabilities: softmax of the weighted features, mixed with uniform.

    ``features`` (t, n, k), ``theta`` (t,), ``z`` (n, k). ``share`` is that of the uniform
    distribution.
    """
    t, n, k = features.shape
    for s in range(n):
        highest = -np.inf
        for i in range(k):
            z[s, i] = 0.0
            for f in range(t):
                z[s, i] += theta[f] * features[f, s, i]
            highest = max(highest, z[s, i])
        total = 0.0
        for i in range(k):
            z[s, i] = np.exp(z[s, i] - highest)
            total += z[s, i]
        mean = 0.0
        for i in range(k):
            z[s, i] = np.log((1.0 - share) * z[s, i] / total + share / k)
            mean += z[s, i]
        mean /= k
        for i in range(k):
            z[s, i] -= mean


@kernel
def normalise(logits):
    """Replace logits (n, k) by probabilities."""
    n, k = logits.shape
    for s in range(n):
        highest, total = -np.inf, 0.0
        for i in range(k):
            highest = max(highest, logits[s, i])
        for i in range(k):
            logits[s, i] = np.exp(logits[s, i] - highest)
            total += logits[s, i]
        for i in range(k):
            logits[s, i] /= total
