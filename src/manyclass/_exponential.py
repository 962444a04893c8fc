"""The exponential in plain arithmetic: loops over it are put into vectors by the compiler."""

from __future__ import annotations

from math import factorial, log

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from manyclass._compiled import fused_kernel

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
def exponential(v):
    """Return exp(v) for v up to 700, to 1e-15; NaN stays.

    exp(v) = 2^m exp(v - m log 2), the last factor by its Taylor series. Below -708
    the answer is 3e-308.
    """
    v = LEAST if v < LEAST else v
    shifted = v * PER_LOG2 + ROUNDER
    m = shifted - ROUNDER
    x = (v - m * LOG2_HIGH) - m * LOG2_LOW
    y = ((C13 * x + C12) * x + C11) * x + C10
    y = (((y * x + C9) * x + C8) * x + C7) * x + C6
    y = (((y * x + C5) * x + C4) * x + C3) * x + C2
    y = (y * x + 1.0) * x + 1.0
    return _number(_bits(y) + (_bits(shifted) << 52))
