"""What matrix products cannot do to a kernel block: exponentials, and sparse coefficients.

A block is K(S, X), support vectors by rows: the inner loops run over samples.
"""

from __future__ import annotations

from math import factorial, log

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from manyclass._compiled import fused_kernel, kernel

LEAST = -708.0  # exp(-708) = 3e-308, the end of normal numbers
PER_LOG2 = 1.0 / log(2.0)
LOG2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # its multiples up to 2^10 are exact
LOG2_LOW = float.fromhex("0x1.ef35793c76730p-45")
ROUNDER = 1.5 * 2.0**52  # added, it leaves the nearest integer in the lowest bits
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1.0 / factorial(i) for i in range(2, 14))


@intrinsic
def _bits(typing, number):
    def generate(context, builder, sig, args):
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _number(typing, bits):
    def generate(context, builder, sig, args):
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), generate


@fused_kernel
def exponentiate(values):
    """Replace numbers up to 700 by their exponentials, to 1e-15; NaN stays.

    exp(v) = 2^m exp(v - m log 2), the last factor by its Taylor series. Below -708
    the answer is 3e-308. A plain loop, so that the compiler can put it into vectors.
    """
    for i in range(values.size):
        v = values[i]
        v = LEAST if v < LEAST else v
        shifted = v * PER_LOG2 + ROUNDER
        m = shifted - ROUNDER
        x = (v - m * LOG2_HIGH) - m * LOG2_LOW
        y = ((C13 * x + C12) * x + C11) * x + C10
        y = (((y * x + C9) * x + C8) * x + C7) * x + C6
        y = (((y * x + C5) * x + C4) * x + C3) * x + C2
        y = (y * x + 1.0) * x + 1.0
        values[i] = _number(_bits(y) + (_bits(shifted) << 52))


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
