"""A line of plain text that shows how many columns are fitted, and how long the rest takes."""

from __future__ import annotations

import sys
import time


class ColumnBar:
    """Columns fitted so far, of all folds together.

    On a terminal one line is written again and again. Elsewhere, as in a log, a line is
    written for every tenth of the columns.
    """

    def __init__(self, total: int, width: int = 30):
        self.total, self.width, self.done, self.tenths = total, width, 0.0, 0
        self.start = time.monotonic()

    def add(self, n_columns: float) -> None:
        """Count columns as fitted."""
        self.done += n_columns
        share = min(1.0, self.done / self.total)
        tenths = int(10 * share + 1e-9)
        if sys.stdout.isatty():
            print(f"\r{self.line(share)}", end="\n" if share == 1.0 else "", flush=True)
        elif tenths > self.tenths:
            print(self.line(share), flush=True)
        self.tenths = tenths

    def line(self, share: float) -> str:
        """Return the bar, the columns done and the time left."""
        seconds = time.monotonic() - self.start
        bar = ("#" * round(self.width * share)).ljust(self.width, ".")
        left = f"{seconds * (1 / share - 1):.0f} s left" if share < 1 else f"{seconds:.1f} s"
        return f"[{bar}] {min(self.done, self.total):.0f} of {self.total} columns, {left:12}"
