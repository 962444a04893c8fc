"""A pytest plugin: the kernels run as plain Python, so that coverage sees their lines.

    NUMBA_DISABLE_JIT=1 python -m coverage run -m pytest -p tests.without_jit PATH ...

The kernels use a few instructions of LLVM, which Python does not have: they are replaced here
by numpy. Plain Python is hundreds of times slower. So a test that takes more than ``SECONDS`` of
processor time is skipped; the lines that it has reached count. Results may differ by rounding
(LLVM rounds ``x * y + z`` once), so failures are ignored: ``make test`` judges.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from contextlib import contextmanager

import numpy as np
import pytest

SECONDS = 1  # a choice: most tests of kernels finish, and the whole run takes a few minutes

# ------------------------------------------------------------------ instructions


def _bits(number: float) -> int:
    return struct.unpack("<q", struct.pack("<d", number))[0]


def _number(bits: int) -> float:
    return np.float64(struct.unpack("<d", struct.pack("<Q", bits & (2**64 - 1)))[0])


def _lanes(width: int) -> dict[str, object]:
    """The instructions of ``kernels/lanes.py``, on arrays of ``width`` numbers."""

    def load(workspace, i):
        return workspace.reshape(-1)[i * width : (i + 1) * width].copy()

    def store(workspace, i, value):
        workspace.reshape(-1)[i * width : (i + 1) * width] = value

    def poke(array, i, number):
        array.reshape(-1)[i] = number

    def tile(array, at, stride):
        return array.reshape(-1)[at + stride * np.arange(width)[:, None] + np.arange(width)]

    def transpose_in(source, at, stride, workspace, i):
        workspace[i * width : (i + width) * width] = tile(source, at, stride).T.reshape(-1)

    def transpose_out(workspace, i, target, at, stride):
        places = at + stride * np.arange(width)[:, None] + np.arange(width)
        tiles = workspace[i * width : (i + width) * width].reshape(width, width)
        target.reshape(-1)[places] = tiles.T

    return {
        "load": load,
        "store": store,
        "transpose_in": transpose_in,
        "transpose_out": transpose_out,
        "peek": lambda array, i: array.reshape(-1)[i],
        "poke": poke,
        "broadcast": lambda number: np.full(width, number),
        "multiply_add": lambda x, y, z: x * y + z,
        "subtract_product": lambda z, x, y: z - x * y,
        "square_root": np.sqrt,
        "absolute": np.abs,
        "where_less": lambda x, y, then, otherwise: np.where(x < y, then, otherwise),
        "total": np.sum,
    }


def replace_instructions() -> None:
    """Replace LLVM's instructions wherever the package has imported them."""
    import manyclass.learners  # noqa: F401  (imports all kernels)
    from manyclass._lib.compiled import exponential
    from manyclass.combiners.coupling.kernels import lanes

    plain = {exponential.bits: _bits, exponential._number: _number}
    plain |= {getattr(lanes, name): value for name, value in _lanes(lanes.WIDTH).items()}
    for name, module in list(sys.modules.items()):
        if name.startswith("manyclass"):
            for key, value in list(vars(module).items()):
                if type(value).__name__ == "_Intrinsic" and value in plain:
                    setattr(module, key, plain[value])


# ------------------------------------------------------------------ hooks of pytest


def pytest_configure(config):
    """Replace the instructions before any test is imported; numpy is as quiet as kernels are."""
    if not os.environ.get("NUMBA_DISABLE_JIT"):
        raise pytest.UsageError("set NUMBA_DISABLE_JIT=1")
    replace_instructions()
    np.seterr(all="ignore")
    signal.signal(signal.SIGPROF, _skip)


def _skip(number, frame):
    pytest.skip(f"takes more than {SECONDS} s without compiled code")


@contextmanager
def _limited():
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Skip a test whose fixtures take too long."""
    with _limited():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that takes too long."""
    with _limited():
        return (yield)
