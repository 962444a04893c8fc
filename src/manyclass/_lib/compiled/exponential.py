"""The exponential in plain arithmetic: loops over it are put into vectors by the compiler."""

from __future__ import annotations

from math import log

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from manyclass._lib.compiled import fused_kernel

LEAST = -708.0  # exp(-708) = 3e-308, the end of normal numbers
PER_LOG2 = 1.0 / log(2.0)
LOG2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # its multiples up to 2^10 are exact
LOG2_LOW = float.fromhex("0x1.ef35793c76730p-45")
ROUNDER = 1.5 * 2.0**52  # added, it leaves the nearest integer in the lowest bits
# (exp(x) - 1 - x) / x^2 interpolated at ten Chebyshev points of |x| <= log(2) / 2: within 1.3e-17
# of exp(x), where Taylor's series takes two terms more.
C2, C3 = float.fromhex("0x1.0000000000001p-1"), float.fromhex("0x1.5555555555556p-3")
C4, C5 = float.fromhex("0x1.5555555553d68p-5"), float.fromhex("0x1.11111111109b5p-7")
C6, C7 = float.fromhex("0x1.6c16c17889ef1p-10"), float.fromhex("0x1.a01a01a7c2efep-13")
C8, C9 = float.fromhex("0x1.a019b9149a41cp-16"), float.fromhex("0x1.71de0db2f6b19p-19")
C10, C11 = float.fromhex("0x1.28917c89a43a7p-22"), float.fromhex("0x1.af389ecfc4b9cp-26")


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

    exp(v) = 2^m exp(v - m log 2), the last factor by a polynomial. Below -708 the
    answer is 3e-308.
    """
    v = LEAST if v < LEAST else v
    shifted = v * PER_LOG2 + ROUNDER
    m = shifted - ROUNDER
    x = (v - m * LOG2_HIGH) - m * LOG2_LOW
    y = (((C11 * x + C10) * x + C9) * x + C8) * x + C7
    y = ((((y * x + C6) * x + C5) * x + C4) * x + C3) * x + C2
    y = (y * x + 1.0) * x + 1.0
    return _number(_bits(y) + (_bits(shifted) << 52))
