"""The exponential and the logarithm in plain arithmetic, so that loops over them are vectorised."""

from math import log

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from manyclass._lib.compiled import fused_kernel

LEAST = -708.0  # exp(-708) = 3e-308, about the smallest normal float64
PER_LOG2 = 1.0 / log(2.0)  # log2(e)
LOG2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # the first digits of log(2): its multiples
LOG2_LOW = float.fromhex("0x1.ef35793c76730p-45")  # up to 2^10 are exact. And the other digits
ROUNDER = 1.5 * 2.0**52  # x + ROUNDER has the integer nearest to x in its lowest bits
HALF_ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
ROUNDER_BITS = 0x4338000000000000  # the bits of ROUNDER: adding an integer adds it to the number
POLYNOMIAL = tuple(
    float.fromhex(number)
    for number in (
        "0x1.0000000000001p-1",
        "0x1.5555555555556p-3",
        "0x1.5555555553d68p-5",
        "0x1.11111111109b5p-7",
        "0x1.6c16c17889ef1p-10",
        "0x1.a01a01a7c2efep-13",
        "0x1.a019b9149a41cp-16",
        "0x1.71de0db2f6b19p-19",
        "0x1.28917c89a43a7p-22",
        "0x1.af389ecfc4b9cp-26",
    )
)
"""Coefficients of (exp(x) - 1 - x) / x^2, the lowest first. They interpolate it at ten Chebyshev
points of |x| <= log(2) / 2, within 1.3e-17 of exp(x). A Taylor series needs two more terms."""


@intrinsic
def bits(typing, number):
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

    exp(v) = 2^m exp(v - m log 2), where a polynomial gives the last factor. Below -708 the
    result is 3e-308.
    """
    v = LEAST if v < LEAST else v
    shifted = v * PER_LOG2 + ROUNDER
    m = shifted - ROUNDER
    x = (v - m * LOG2_HIGH) - m * LOG2_LOW
    C = POLYNOMIAL
    y = (((C[9] * x + C[8]) * x + C[7]) * x + C[6]) * x + C[5]
    y = ((((y * x + C[4]) * x + C[3]) * x + C[2]) * x + C[1]) * x + C[0]
    y = (y * x + 1.0) * x + 1.0
    return _number(bits(y) + (bits(shifted) << 52))


@fused_kernel
def logarithm(v):
    """Return log(v) for positive normal numbers, to 1e-15.

    log(v) = e log 2 + log(m) with m within [sqrt(1/2), sqrt(2)), and log(m) = 2 artanh(s) with
    s = (m - 1) / (m + 1), by its series: ten terms, as |s| < 0.172.
    """
    e = (bits(v) - HALF_ROOT) >> 52
    m = _number(bits(v) - (e << 52))
    power = _number(e + ROUNDER_BITS) - ROUNDER
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    y = ((q / 21.0 + 1.0 / 19.0) * q + 1.0 / 17.0) * q + 1.0 / 15.0
    y = (((y * q + 1.0 / 13.0) * q + 1.0 / 11.0) * q + 1.0 / 9.0) * q + 1.0 / 7.0
    y = ((y * q + 1.0 / 5.0) * q + 1.0 / 3.0) * q
    return power * LOG2_HIGH + (2.0 * s + (2.0 * s * y + power * LOG2_LOW))
