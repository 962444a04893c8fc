"""Folds whose training rows have every class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.messages import quoted
from manyclass.app.class_names import one_line
from manyclass.app.leaderboard import listed
from manyclass.scores import folds
from manyclass.scores.folds import Fold


def make_folds(
    cv: int, classes: list[Any], target: NDArray[np.intp], random_state: int
) -> list[Fold]:
    """Return stratified folds, or raise an error if the classes are too small."""
    check_folds(cv)
    if np.bincount(target).max() < 2:
        raise ValueError(
            f"each of the {len(classes)} classes has a single row, so that no row can be "
            "left out for a test. Collect more rows, or merge classes."
        )
    return shuffled_folds(int(cv), target, random_state)


def check_folds(cv: int) -> None:
    """Raise a ``ValueError`` if this is not a number of folds."""
    if not isinstance(cv, int | np.integer) or cv < 2:
        raise ValueError(f"cv (--folds) must be a number of folds, at least 2, got {quoted(cv)}.")


def notes_on_folds(
    cv: int, n_folds: int, classes: list[Any], target: NDArray[np.intp]
) -> list[str]:
    """Name the classes with fewer rows than folds, and the consequence."""
    counts = np.bincount(target, minlength=len(classes))
    single = [repr(classes[c]) for c in np.flatnonzero(counts == 1)]
    few = [repr(classes[c]) for c in np.flatnonzero((counts > 1) & (counts < n_folds))]
    notes = []
    if n_folds < cv:
        notes.append(f"{n_folds} folds instead of {cv}: no class has more than {n_folds} rows.")
    if few:
        notes.append(
            f"{_some(few)} {_have(few)} fewer rows than there are folds: some folds test on none "
            "of them."
        )
    if single:
        notes.append(
            f"{_some(single)} {_have(single)} a single row, which is always trained on and never "
            "tested on."
        )
    return notes


def _some(names: list[str], most: int = 5) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    kind = "class" if len(names) == 1 else "classes"
    return f"{kind} {listed([one_line(name, 60) for name in names[:most]] + more)}"


def _have(names: list[str]) -> str:
    return "has" if len(names) == 1 else "have"


def shuffled_folds(n_folds: int, y: NDArray[np.intp], random_state: int) -> list[Fold]:
    """Return stratified folds whose training rows have every class.

    A class with fewer rows than folds is spread over as many folds as it has rows; a
    row that is the only one of its class is never left out.
    """
    order = np.random.RandomState(random_state).permutation(len(y))
    n_classes = int(y.max()) + 1
    parts = folds.make_folds(n_folds, None, y[order], np.arange(n_classes), warn=False)
    return [(np.sort(order[train]), np.sort(order[test])) for train, test in parts]
