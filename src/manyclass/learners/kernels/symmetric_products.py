"""Symmetric matrix-vector products: a fast one, and a compensated one for refinement."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, summing_kernel

# Veltkamp's constant: splits the 53-bit significand of a float64 into two halves of 26 bits.
SPLIT = 2.0**27 + 1.0


@summing_kernel
def symmetric_product(K, x):
    """Return K x from the lower triangle of K: the product is limited by memory bandwidth."""
    n = K.shape[0]
    y = np.zeros(n)
    whole = n - n % 4
    for i in range(0, whole, 4):  # four rows at a time share x[j] and y[j]
        a, b, c, d = K[i], K[i + 1], K[i + 2], K[i + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(i):
            s0 += a[j] * x[j]
            s1 += b[j] * x[j]
            s2 += c[j] * x[j]
            s3 += d[j] * x[j]
            y[j] += a[j] * x[i] + b[j] * x[i + 1] + c[j] * x[i + 2] + d[j] * x[i + 3]
        y[i] += s0
        y[i + 1] += s1
        y[i + 2] += s2
        y[i + 3] += s3
        for row in range(i, i + 4):
            for j in range(i, i + 4):
                y[row] += K[row, j] * x[j]
    for row in range(whole, n):
        for j in range(row):
            y[row] += K[row, j] * x[j]
            y[j] += K[row, j] * x[row]
        y[row] += K[row, row] * x[row]
    return y


@kernel
def accurate_product(K, x):
    """Return K x by compensated dot products: as if computed in twice the working precision.

    T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26
    (2005), algorithm 5.3 (Dot2). The result is NaN if entries of K or x exceed 1e300.
    """
    n = K.shape[0]
    y = np.empty(n)
    lanes = 64  # partial sums that are updated side by side, so that the loop vectorises
    high, low = np.empty(lanes), np.empty(lanes)
    for i in range(n):
        high[:] = 0.0
        low[:] = 0.0
        for first in range(0, n, lanes):
            _add_products(high, low, K[i, first : first + lanes], x[first : first + lanes])
        y[i] = _total(high, low)
    return y


@kernel
def _add_products(high, low, ks, xs):
    """Add products to partial sums, and their exact rounding errors (Dekker, Knuth) to ``low``."""
    for lane in range(len(ks)):
        k, x, before = ks[lane], xs[lane], high[lane]
        product = k * x
        k_high = SPLIT * k - (SPLIT * k - k)
        x_high = SPLIT * x - (SPLIT * x - x)
        k_low, x_low = k - k_high, x - x_high
        error = ((k_high * x_high - product) + k_high * x_low + k_low * x_high) + k_low * x_low
        after = before + product
        part = after - before
        low[lane] += ((before - (after - part)) + (product - part)) + error
        high[lane] = after


@kernel
def _total(high, low):
    """Return the sum of all partial sums and rounding errors, again by TwoSum."""
    value, rest = 0.0, 0.0
    for lane in range(len(high)):
        total = value + high[lane]
        part = total - value
        rest += ((value - (total - part)) + (high[lane] - part)) + low[lane]
        value = total
    return value + rest
