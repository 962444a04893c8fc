"""Checks and conversion of the table and labels of a comparison, and its folds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import StratifiedGroupKFold

from manyclass._lib.messages import quoted
from manyclass.app.candidates import Size
from manyclass.app.columns import conform, import_pandas, layout_of
from manyclass.app.report import listed, one_line
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
    return conform(X, layout_of(X))


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


def as_labels(classes: list[Any]) -> NDArray:
    """Return the classes as an array in the same order: by name, or as places if types differ."""
    kinds = {type(label) for label in classes}
    if kinds <= {str} or kinds <= {bool} or kinds <= {int}:
        labels = np.array(classes, dtype=object if kinds == {str} else None)
        if labels.dtype.kind in "Oib":
            return labels
    return np.arange(len(classes))


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
    """Return the table, or about ``rows`` rows of it, drawn by class, in their order."""
    drawn = _sampled(y, rows, random_state)
    return X.iloc[drawn], y.iloc[drawn]


def sample_table(table: Any, rows: int | None, *, random_state: int = 0) -> Any:
    """Return a table that was read, or a sample of its rows."""
    drawn = _sampled(table.y, rows, random_state)
    parts = {name: getattr(table, name) for name in ("X", "y", "groups", "split")}
    return table._replace(
        **{name: part if part is None else part.iloc[drawn] for name, part in parts.items()}
    )


def _sampled(y: Any, rows: int | None, random_state: int) -> NDArray[np.intp]:
    if rows is None:
        return np.arange(len(y))
    if rows < 2:
        raise ValueError(f"rows must be at least 2, got {rows}.")
    return draw(encode(y, len(y))[1], rows, random_state)


def find_folds(
    cv: int | Iterable[Fold],
    classes: list[Any],
    target: NDArray[np.intp],
    groups: ArrayLike | None,
    random_state: int,
) -> tuple[list[Fold], list[str]]:
    """Return the folds and notes on them: given ones, or stratified, without divided groups."""
    if not isinstance(cv, int | np.integer):
        found, notes = _given_folds(cv, classes, target)
        return found, notes + _divided_groups(found, groups)
    check_folds(cv)
    if groups is not None:
        return _grouped_folds(int(cv), classes, target, groups, random_state)
    if np.bincount(target).max() < 2:
        raise ValueError(
            f"each of the {len(classes)} classes has a single row, so that no row can be "
            "left out for a test. Collect more rows, or merge classes."
        )
    found = shuffled_folds(int(cv), target, random_state)
    return found, notes_on_folds(int(cv), len(found), classes, target)


def _given_folds(
    cv: Iterable[Fold], classes: list[Any], target: NDArray[np.intp]
) -> tuple[list[Fold], list[str]]:
    """Check folds; test rows of classes that are not trained on are left out."""
    found, unknown = [], set()
    for train, test in cv:
        train, test = np.asarray(train, dtype=np.intp), np.asarray(test, dtype=np.intp)
        known = np.isin(target[test], target[train])
        unknown |= set(target[test[~known]].tolist())
        found.append((train, test[known]))
    if not found or any(len(train) == 0 or len(test) == 0 for train, test in found):
        raise ValueError(
            "a fold has no rows to train on, or none to test on of the classes that it trains on. "
            "Use fewer folds, or other groups."
        )
    names = [repr(classes[c]) for c in sorted(unknown)]
    note = f"{_some_have(names)} no row to train on in some fold, and is not tested on there."
    return found, [note] if names else []


def _divided_groups(cv: list[Fold], groups: ArrayLike | None) -> list[str]:
    """Return a note if given folds train and test on rows of the same group."""
    names = np.asarray(() if groups is None else groups).astype(str)
    if not len(names):
        return []
    divided = set().union(*(set(names[train]) & set(names[test]) for train, test in cv))
    if not divided:
        return []
    return [
        f"{len(divided)} of {len(set(names))} groups have rows to train on and rows to test on, as "
        "the given folds divide them."
    ]


def _grouped_folds(
    n_folds: int,
    classes: list[Any],
    target: NDArray[np.intp],
    groups: ArrayLike,
    random_state: int,
) -> tuple[list[Fold], list[str]]:
    """Return folds that divide no group, stratified as far as that allows."""
    _, places = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    n_groups = int(places.max()) + 1
    if len(places) != len(target):
        raise ValueError(f"groups has {len(places)} values, but there are {len(target)} rows.")
    if n_groups < 2:
        raise ValueError("all rows are of the same group: nothing can be left out for a test.")
    n_folds = min(n_folds, n_groups)
    splitter = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes that are rarer than folds
        parts = list(splitter.split(np.zeros(len(target)), target, places))
    found, notes = _given_folds((part for part in parts if len(part[1])), classes, target)
    return found, [f"{n_groups} groups, none of which is divided by a fold.", *notes]


def split_folds(split: Any) -> list[Fold]:
    """Return the folds that a column names.

    With "train" and one other value, such as "test", there is one split. Any other values name
    folds, each of which is tested on in turn.
    """
    names = split.str.strip().str.casefold()
    if "train" in set(names):
        return [(np.flatnonzero(names == "train"), np.flatnonzero(names != "train"))]
    if names.nunique() < 2:
        raise ValueError(
            f"--split-column: {split.name!r} has one value only. It must say which rows are "
            '"train" and "test", or name folds.'
        )
    return [
        (np.flatnonzero(names != name), np.flatnonzero(names == name))
        for name in sorted(names.unique())
    ]


def check_folds(cv: int) -> None:
    """Raise a ``ValueError`` if this is not a number of folds."""
    if not isinstance(cv, int | np.integer) or cv < 2:
        raise ValueError(f"folds (cv) must be at least 2, got {quoted(cv)}.")


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
