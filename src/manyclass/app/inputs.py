"""Checks and conversion of the table and labels of a comparison, and its folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.messages import quoted
from manyclass.app.candidates import Size
from manyclass.app.columns import conform, import_pandas, kinds_of
from manyclass.app.leaderboard import listed
from manyclass.app.report import one_line
from manyclass.scores import folds
from manyclass.scores.folds import Fold


def as_frame(X: Any) -> Any:
    """Return a DataFrame whose columns hold numbers, text or dates."""
    pd = import_pandas()
    if not isinstance(X, pd.DataFrame):
        values = np.asarray(X)
        if values.ndim != 2 or values.dtype.kind not in "fiub":
            raise ValueError(
                f"X is {type(X).__name__} of shape {values.shape} and type {values.dtype}: pass a "
                "DataFrame, or a two-dimensional array of numbers."
            )
        X = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])
    X = X.rename(columns=str)
    twice = X.columns[X.columns.duplicated()].tolist()
    if twice:
        raise ValueError(f"X has more than one column {twice[0]!r}: rename them.")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(f"X has shape {X.shape}: at least one row and one column are needed.")
    return conform(X, kinds_of(X))


def encode(y: ArrayLike, n: int) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the classes, sorted, and the place of each label among them."""
    pd = import_pandas()
    labels = pd.Series(np.asarray(y, dtype=object) if not isinstance(y, pd.Series) else y)
    if labels.ndim != 1 or len(labels) != n:
        raise ValueError(f"y has {len(labels)} labels, but X has {n} rows.")
    if labels.isna().any():
        missing = np.flatnonzero(labels.isna())
        raise ValueError(
            f"y has {len(missing)} missing labels, the first in row {missing[0]}: remove the rows."
        )
    places, found = pd.factorize(labels.astype(object))
    classes = found.tolist()
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {quoted(classes[0])}. A classifier needs two.")
    try:
        order = sorted(range(len(classes)), key=classes.__getitem__)
    except TypeError:  # labels of several types
        order = sorted(range(len(classes)), key=lambda c: str(classes[c]))
    place = np.empty(len(classes), dtype=np.intp)
    place[order] = np.arange(len(classes))
    return [classes[c] for c in order], place[places]


def size_of(target: NDArray[np.intp], n_folds: int) -> Size:
    """Return the size of the data, by which candidates are chosen."""
    counts = np.bincount(target)
    # The only row of a class is never left out.
    left = np.maximum(1, counts - -(-counts // n_folds))
    return Size(rows=len(target), classes=len(counts), rarest=int(left.min()))


def draw(y: NDArray[np.intp], n: int, random_state: int) -> NDArray[np.intp]:
    """Draw about ``n`` rows, stratified by class; at least two of each class if it has them."""
    if n >= len(y):
        return np.arange(len(y))
    rng = np.random.RandomState(random_state)
    counts = np.bincount(y)
    quota = np.minimum(counts, np.maximum(2, np.rint(counts * n / len(y)).astype(int)))
    chosen = [
        rng.choice(np.flatnonzero(y == c), size, replace=False) for c, size in enumerate(quota)
    ]
    return np.sort(np.concatenate(chosen))


def sample(X: Any, y: Any, rows: int | None, *, random_state: int = 0) -> tuple[Any, Any]:
    """Return the table, or about so many rows of it, drawn by class and in their order."""
    if rows is None:
        return X, y
    if rows < 2:
        raise ValueError(f"rows must be at least 2, got {rows}.")
    _, target = encode(y, len(X))
    drawn = draw(target, rows, random_state)
    return X.iloc[drawn], y.iloc[drawn]


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
            f"{_some_have(few)} fewer rows than there are folds: some folds test on none of them."
        )
    if single:
        notes.append(
            f"{_some_have(single)} a single row, which is always trained on and never tested on."
        )
    return notes


def _some_have(names: list[str], most: int = 5) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    kind, verb = ("class", "has") if len(names) == 1 else ("classes", "have")
    return f"{kind} {listed([one_line(name, 60) for name in names[:most]] + more)} {verb}"


def shuffled_folds(n_folds: int, y: NDArray[np.intp], random_state: int) -> list[Fold]:
    """Return stratified folds whose training rows have every class.

    A class with fewer rows than folds is spread over as many folds as it has rows; a
    row that is the only one of its class is never left out.
    """
    order = np.random.RandomState(random_state).permutation(len(y))
    n_classes = int(y.max()) + 1
    parts = folds.make_folds(n_folds, None, y[order], np.arange(n_classes), warn=False)
    return [(np.sort(order[train]), np.sort(order[test])) for train, test in parts]
