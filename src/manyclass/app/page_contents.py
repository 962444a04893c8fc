"""The contents of a report, as plain values."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass import __version__
from manyclass.app.columns import KINDS
from manyclass.app.exports import Export
from manyclass.app.leaderboard import BEHIND, Entry, Leaderboard
from manyclass.app.report import as_text, listed, short_names

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pandas")


@dataclass(frozen=True)
class PageLimits:
    """Limits of a report. All are choices: a page that can be read, and loads at once."""

    classes: int = 200
    """Classes that are listed with their counts."""
    columns: int = 5
    """Columns with missing values that are named."""
    confused: int = 20
    """Rows and columns of the confusion matrix; the other classes are merged."""
    pairs: int = 15
    """Pairs of classes that are confused most often."""
    columns_used: int = 20
    """The most important columns."""
    cost_classes: int = 12
    """The most classes of a cost view, which has a field for each pair of them."""
    cost_rows: int = 2_000
    """Rows whose decisions the cost view shows."""
    incoherent: int = 15
    """Rows with the largest incoherence."""
    panels: int = 12
    """Classes with a reliability diagram of their own."""
    bins: int = 10
    """Bins of the reliability diagrams."""
    name: int = 18
    """Characters of a class name in narrow places."""


LIMITS = PageLimits()


class Row(NamedTuple):
    """A row of the leaderboard."""

    entry: Entry
    cells: list[tuple[str, bool]]
    """Text, and whether it is the best of its column."""
    behind: str
    """Distance from the best, and half of its interval."""
    standing: str
    """The same in words."""


def leaderboard(board: Leaderboard) -> list[Row]:
    """Return a row for each candidate that did not fail, if any was measured."""
    if not board.measured:
        return []
    return [
        Row(
            entry,
            [(board.cell(entry, c), board.is_best(entry, c)) for c in board.columns],
            board.behind(entry),
            board.standing(entry),
        )
        for entry in board.ranked
    ]


class Data(NamedTuple):
    """The table in words and numbers."""

    kinds: str
    classes: list[tuple[Any, int, float]]
    """Label, rows, and their share of the most frequent class's."""
    n_more_classes: int
    missing: list[tuple[str, int]]
    n_more_missing: int


def data(board: Leaderboard) -> Data:
    """Return the most frequent classes, and the columns with most missing values."""
    about = board.description
    by_count = sorted(about.class_counts.items(), key=lambda item: -item[1])
    return Data(
        listed([f"{KINDS[kind]} ({n})" for kind, n in about.kinds.items()]),
        [(label, n, n / by_count[0][1]) for label, n in by_count[: LIMITS.classes]],
        max(0, len(by_count) - LIMITS.classes),
        list(about.missing.items())[: LIMITS.columns],
        max(0, len(about.missing) - LIMITS.columns),
    )


class Confusion(NamedTuple):
    """The confusion matrix of a candidate."""

    entry: Entry
    labels: list[tuple[str, str]]
    """Full and short names of the classes; the last may stand for all other classes."""
    rows: list[list[tuple[int, float, str]]]
    """Count, share of the row, and whether it is "right", "wrong" or "merged"."""
    n_merged: int
    pairs: list[tuple[Any, Any, int, float]]
    """The most frequent confusions: true and predicted class, count, share."""


def confusion(board: Leaderboard) -> Confusion:
    """Return the confusion matrix, for the classes confused most often."""
    entry, k = board.described, len(board.classes)
    rows, p = entry.tested()
    true, predicted = board.target[rows], p.argmax(axis=1)
    counts = count_pairs(true, predicted, k)
    shown = np.arange(k)
    if k > LIMITS.confused:
        wrong = _without_diagonal(counts)
        most = np.argsort(-(wrong.sum(axis=0) + wrong.sum(axis=1)), kind="stable")
        shown = np.sort(most[: LIMITS.confused - 1])
    # All other classes are merged into one more.
    place = np.full(k, len(shown))
    place[shown] = np.arange(len(shown))
    merged = count_pairs(place[true], place[predicted], len(shown) + (len(shown) < k))
    short = short_names(board.classes, LIMITS.name)
    labels = [(as_text(board.classes[c]), short[c]) for c in shown]
    if len(shown) < k:
        labels.append((f"{k - len(shown)} others",) * 2)
    shares = [_shares(row, c, len(shown)) for c, row in enumerate(merged)]
    return Confusion(entry, labels, shares, k - len(shown), _pairs(board, counts, LIMITS.pairs))


def count_pairs(true: Any, predicted: Any, k: int) -> NDArray[np.int64]:
    """Return how often a class (row) was predicted as another one (column)."""
    counts = np.zeros((k, k), dtype=np.int64)
    np.add.at(counts, (true, predicted), 1)
    return counts


def _without_diagonal(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of wrong predictions alone."""
    return counts - np.diag(np.diag(counts))


def _shares(row: NDArray[np.int64], c: int, n_shown: int) -> list[tuple[int, float, str]]:
    kinds = ["wrong"] * len(row)
    kinds[c] = "right" if c < n_shown else "merged"
    total = max(1, int(row.sum()))
    return [(n, n / total, kind) for n, kind in zip(row.tolist(), kinds, strict=True)]


def _pairs(
    board: Leaderboard, counts: NDArray[np.int64], most: int
) -> list[tuple[Any, Any, int, float]]:
    """Return the most frequent confusions, and their share of the tested rows of the class."""
    wrong, sizes = _without_diagonal(counts), counts.sum(axis=1)
    order = np.argsort(-wrong, axis=None, kind="stable")[:most]
    found = [divmod(int(place), len(board.classes)) for place in order]
    return [
        (board.classes[i], board.classes[j], int(wrong[i, j]), float(wrong[i, j] / sizes[i]))
        for i, j in found
        if wrong[i, j] > 0
    ]


class ClassScore(NamedTuple):
    """How well a candidate knows a class."""

    label: Any
    precision: float
    recall: float
    f1: float
    support: int


def class_scores(board: Leaderboard) -> list[ClassScore]:
    """Return the scores of each class, the lowest F1 first."""
    rows, p = board.described.tested()
    counts = count_pairs(board.target[rows], p.argmax(axis=1), len(board.classes))
    right, true, said = np.diag(counts), counts.sum(axis=1), counts.sum(axis=0)
    precision, recall = right / np.maximum(1, said), right / np.maximum(1, true)
    f1 = 2 * right / np.maximum(1, true + said)
    found = [
        ClassScore(label, float(precision[c]), float(recall[c]), float(f1[c]), int(true[c]))
        for c, label in enumerate(board.classes)
    ]
    return sorted(found, key=lambda one: one.f1)


class Costs(NamedTuple):
    """Probabilities and classes of rows, for decisions by cost."""

    labels: list[str]
    probabilities: list[list[float]]
    target: list[int]


def costs(board: Leaderboard) -> Costs | None:
    """Return what the cost view computes with; None for many classes."""
    if len(board.classes) > LIMITS.cost_classes:
        return None
    rows, p = board.described.tested()
    drawn = np.random.RandomState(0).permutation(len(rows))[: LIMITS.cost_rows]
    return Costs(
        short_names(board.classes, LIMITS.name),
        p[drawn].round(4).tolist(),
        board.target[rows[drawn]].tolist(),
    )


class Incoherent(NamedTuple):
    """A row on which the binary models disagree."""

    index: Any
    label: Any
    top: list[tuple[Any, float]]
    """The two most probable classes."""
    incoherence: float
    right: bool


def most_incoherent(board: Leaderboard, entry: Entry) -> list[Incoherent]:
    """Return the rows on which the binary models disagree most."""
    assert entry.incoherence is not None
    rows, p = entry.tested()
    values = entry.incoherence[rows]
    found = []
    for i in np.argsort(-values, kind="stable")[: LIMITS.incoherent].tolist():
        row = rows[i]
        top = np.argsort(-p[i], kind="stable")[:2].tolist()
        found.append(
            Incoherent(
                board.index[row],
                board.classes[board.target[row]],
                [(board.classes[c], float(p[i, c])) for c in top],
                float(values[i]),
                bool(top[0] == board.target[row]),
            )
        )
    return found


def exports(board: Leaderboard, studies: Any) -> dict[str, Export]:
    """Return the tables of the page in full, for a spreadsheet or a program."""
    found = [
        Export(
            "leaderboard",
            ["candidate", *board.columns, BEHIND, "standing"],
            [
                [e.name, *(e.mean(c) for c in board.columns), board.behind(e), board.standing(e)]
                for e in board.ranked
            ]
            if board.measured
            else [],
        ),
        Export(
            "classes",
            ["class", "rows"],
            [[as_text(label), n] for label, n in board.description.class_counts.items()],
        ),
    ]
    if board.measured:
        found += _exports_of_described(board)
    found += [
        Export(
            "importance", ["column", "increase", "deviation"], list(map(list, studies.importance))
        ),
        Export("learning-curve", ["rows", "mean", "deviation"], list(map(list, studies.curve))),
    ]
    return {export.name: export for export in found}


def _exports_of_described(board: Leaderboard) -> list[Export]:
    rows, p = board.described.tested()
    names = [as_text(label) for label in board.classes]
    counts = count_pairs(board.target[rows], p.argmax(axis=1), len(names))
    pairs = [
        [as_text(i), as_text(j), n, share] for i, j, n, share in _pairs(board, counts, counts.size)
    ]
    by_class = [[as_text(one.label), *one[1:]] for one in class_scores(board)]
    return [
        Export("by-class", ["class", "precision", "recall", "f1", "support"], by_class),
        Export("pairs", ["true", "predicted", "count", "share"], pairs),
        Export(
            "confusion",
            ["true", *names],
            [[name, *row] for name, row in zip(names, counts.tolist(), strict=True)],
        ),
    ]


def versions() -> list[tuple[str, str]]:
    """Return the versions of the packages that were used."""
    found = [("manyclass", __version__), ("Python", platform.python_version())]
    for name in PACKAGES:
        try:
            found.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return found
