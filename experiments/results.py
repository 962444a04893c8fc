"""The measurements of a paper, in one CSV file. Rows are only ever appended.

The columns are experiment, data, split, method, metric and value. The rows of a task are
written in one call. The last row holds the seconds that the task took. A task without that
row was interrupted, and is run again.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from manyclass._lib.files import replace_file

COLUMNS = ("experiment", "data", "split", "method", "metric", "value")
SECONDS = "seconds"  # metric of the last row of a task


class Measurement(NamedTuple):
    """One number."""

    experiment: str
    data: str
    split: str
    method: str
    metric: str
    value: float


class Results:
    """The measurements of a paper, in a file.

    Parameters
    ----------
    path : Path
        The CSV file; it need not exist yet.
    """

    def __init__(self, path: Path):
        self.path = Path(path)

    def __iter__(self) -> Iterator[Measurement]:
        yield from self._read()[0]

    def finished(self) -> set[tuple[str, str, str, str]]:
        """Return (experiment, data, split, group) of every task that was finished."""
        return {row[:4] for row in self if row.metric == SECONDS}

    def add(self, rows: Iterable[Measurement]) -> None:
        """Append the rows of a finished task with a single write."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = _as_csv(rows)
        if not self.path.exists() or self.path.stat().st_size == 0:
            text = ",".join(COLUMNS) + "\n" + text
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def repair(self) -> None:
        """Remove the incomplete rows that an interrupted write left behind."""
        if not self.path.exists():
            return
        rows, rest = self._read()
        if rest:
            replace_file(self.path, ",".join(COLUMNS) + "\n" + _as_csv(rows))

    def _read(self) -> tuple[list[Measurement], bool]:
        """Return the rows of finished tasks, and whether the file holds anything else."""
        if not self.path.exists():
            return [], False
        text = self.path.read_text(encoding="utf-8")
        complete = text[: text.rfind("\n") + 1]
        try:
            lines = list(csv.reader(io.StringIO(complete)))
        except csv.Error as error:
            raise ValueError(f"{self.path} is damaged: {error}. Move it away.") from error
        if lines and tuple(lines[0]) != COLUMNS:
            raise ValueError(
                f"{self.path} has the columns {', '.join(lines[0])}, not {', '.join(COLUMNS)}: it "
                "is not a file of results. Move it away, or choose another --output."
            )
        rows: list[Measurement] = []
        pending: list[Measurement] = []
        for number, line in enumerate(lines[1:], start=2):
            pending.append(self._parse(line, number))
            if pending[-1].metric == SECONDS:
                rows += pending
                pending = []
        return rows, bool(pending) or len(complete) < len(text)

    def _parse(self, line: list[str], number: int) -> Measurement:
        try:
            experiment, data, split, method, metric, value = line
            return Measurement(experiment, data, split, method, metric, float(value))
        except ValueError as error:
            raise ValueError(
                f"{self.path} is damaged: row {number} is {','.join(line)[:80]!r}. Remove the row, "
                "and its task is run again."
            ) from error


def _as_csv(rows: Iterable[Measurement]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in rows:
        writer.writerow([*row[:5], f"{row.value:.10g}"])
    return buffer.getvalue()
