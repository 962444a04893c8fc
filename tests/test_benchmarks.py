"""The benchmarks' own instruments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
RISE = (
    "import numpy as np\n"
    "from benchmarks.memory import rise_of\n"
    "{before}\n"
    "print(rise_of(lambda: np.ones({size} * 2**17).sum())[0])\n"  # of a MB each
)


def rise_elsewhere(before: str, size: int) -> float:
    code = RISE.format(before=before, size=size)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="peak memory is read from Linux's /proc",
)
def test_the_rise_of_memory_is_the_task_s_own():
    """Neither an earlier peak nor that of the process that starts it is counted."""
    large = np.ones(300 * 2**17)  # held here, while the other process starts
    assert rise_elsewhere("", 50) == pytest.approx(50, abs=10)
    assert rise_elsewhere("np.ones(200 * 2**17).sum()", 50) == pytest.approx(50, abs=10)
    assert large.all()
