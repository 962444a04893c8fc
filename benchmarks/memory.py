"""Peak memory of a process during a task (Linux only)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def status(name: str) -> float:
    """Return an entry of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":"))


def rise_of(task: Callable[[], object]) -> tuple[float, object]:
    """Run a task; returns by how many MB the process grew at its peak, and the task's answer.

    ``ru_maxrss`` cannot be used: a new process starts with the peak of its parent process, and
    nothing resets it.
    """
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = status("VmRSS")
    answer = task()
    return status("VmHWM") - before, answer
