"""The peak of a process's memory while it does a task (Linux only)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def status(name: str) -> float:
    """An entry of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":"))


def rise_of(task: Callable[[], object]) -> tuple[float, object]:
    """By how many MB the process grows at most while it does the task, and the answer.

    Not by ``ru_maxrss``: a new process begins with the peak of the one that started it, and
    nothing sets it back.
    """
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = status("VmRSS")
    answer = task()
    return status("VmHWM") - before, answer
