"""Measured figures as rows of a CSV file, to which runs append."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.files import replace_file

GROUPS = ("svm", "learners")
FOLDER = Path(__file__).parent.parent / "results"
LEAST = 1e-15
"""Probabilities are at least this in a log-loss, as they were in scikit-learn before 1.3."""

Key = tuple[str, str, str]
"""Case, setting and model."""


@dataclass(frozen=True)
class Row:
    """What one model reached on one case."""

    case: str
    setting: str
    """``C=1``, or the name of a learner."""
    model: str
    log_loss: float
    brier: float
    error: float
    fit_seconds: float
    k: int
    n: int

    @property
    def key(self) -> Key:
        return self.case, self.setting, self.model

    @property
    def data(self) -> str:
        """The name of the set."""
        return self.case.rsplit("-", 2)[0]


COLUMNS = [column.name for column in fields(Row)]


def path_of(group: str, scale: str) -> Path:
    return FOLDER / f"quality-{group}-{scale}.csv"


def stored() -> Iterator[tuple[str, str]]:
    """Yield group and scale of each file that there is."""
    for group in GROUPS:
        for path in sorted(FOLDER.glob(f"quality-{group}-*.csv")):
            yield group, path.stem.removeprefix(f"quality-{group}-")


def read(path: Path) -> dict[Key, Row]:
    """Return the rows of a file; of rows with the same key, the last."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as lines:
        rows = [_row(cells) for cells in csv.DictReader(lines) if cells["n"]]
    return {row.key: row for row in rows}


def _row(cells: dict[str, str]) -> Row:
    numbers = {name: float(cells[name]) for name in COLUMNS[3:7]}
    return Row(
        *(cells[name] for name in COLUMNS[:3]), **numbers, k=int(cells["k"]), n=int(cells["n"])
    )


def append(path: Path, rows: Iterable[Row]) -> None:
    """Append rows in one write: an interrupt leaves no half of them."""
    text = _text(rows)
    if not path.exists():
        text = ",".join(COLUMNS) + "\n" + text
    with path.open("a", newline="", encoding="utf-8") as file:
        file.write(text)


def tidy(path: Path) -> None:
    """Sort a file and remove rows that later ones replace. Not while a run appends to it."""
    rows = sorted(read(path).values(), key=lambda row: row.key)
    replace_file(path, ",".join(COLUMNS) + "\n" + _text(rows))


def _text(rows: Iterable[Row]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows(_cells(row) for row in rows)
    return text.getvalue()


def _cells(row: Row) -> Iterator[str]:
    for name, value in asdict(row).items():
        yield f"{value:.4g}" if name == "fit_seconds" else str(value)


def measured(p: NDArray, y: NDArray) -> tuple[float, float, float]:
    """Return log-loss, Brier score (summed over classes) and error rate. y are columns of p."""
    p = np.asarray(p, dtype=np.float64)
    if not np.isfinite(p).all():
        raise ValueError("a probability is not finite")
    error = float(np.mean(p.argmax(axis=1) != y))
    brier = float(np.mean(np.sum((p - np.eye(p.shape[1])[y]) ** 2, axis=1)))
    clipped = np.clip(p, LEAST, 1 - LEAST)
    clipped /= clipped.sum(axis=1, keepdims=True)
    return float(-np.mean(np.log(clipped[np.arange(len(y)), y]))), brier, error
