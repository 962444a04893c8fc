"""Checks and conversion of the table and labels of a comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.messages import quoted
from manyclass.app.candidates import Size
from manyclass.app.columns import conform, import_pandas, kinds_of


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
