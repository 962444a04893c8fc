"""Run tests with the kernels as plain Python, so that coverage sees their lines.

    NUMBA_DISABLE_JIT=1 python -m coverage run tests/without_jit.py PATH ...

The kernels use a few instructions of LLVM, which Python does not have: they are replaced here
by numpy. Plain Python is hundreds of times slower, so a test that takes longer than
``SECONDS`` is skipped; the lines that it has reached count. Results may differ by rounding
(LLVM rounds ``x * y + z`` once), so failures are printed and ignored: ``make test`` judges.
"""

from __future__ import annotations

import os
import signal
import struct
import sys

import numpy as np
import pytest

SECONDS = 20  # a choice: most tests of kernels finish, and the whole run takes some minutes

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

    return {
        "load": load,
        "store": store,
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

    plain = {exponential._bits: _bits, exponential._number: _number}
    plain |= {getattr(lanes, name): value for name, value in _lanes(lanes.WIDTH).items()}
    for name, module in list(sys.modules.items()):
        if name.startswith("manyclass"):
            for key, value in list(vars(module).items()):
                if type(value).__name__ == "_Intrinsic" and value in plain:
                    setattr(module, key, plain[value])


# ------------------------------------------------------------------ tests


class Patience:
    """A pytest plug-in: skip tests that take too long."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        def give_up(number, frame):
            pytest.skip(f"takes more than {SECONDS} s without compiled code")

        before = signal.signal(signal.SIGALRM, give_up)
        signal.alarm(SECONDS)
        try:
            return (yield)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def main() -> int:
    if not os.environ.get("NUMBA_DISABLE_JIT"):
        print("set NUMBA_DISABLE_JIT=1", file=sys.stderr)
        return 2
    replace_instructions()
    with np.errstate(all="ignore"):  # as compiled code does
        pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Patience()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
