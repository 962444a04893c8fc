"""Out-of-sample scores of a few columns at a time, and what they lend to columns without."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

POOLED = 2**20  # scores of all columns together


class ColumnBlock(NamedTuple):
    """Out-of-sample scores of a few columns, and of the rows that take part in any of them."""

    columns: slice
    rows: NDArray[np.intp]
    """In ascending order, shape (m,)."""
    scores: NDArray[np.float64]
    """NaN where there is no out-of-sample score, shape (m, w)."""
    sides: NDArray[np.int8]
    """+1 and -1; 0 where the sample takes no part in the column, shape (m, w)."""
    weights: NDArray[np.float64]
    """Sample weights, shape (m,)."""


Pooled = tuple[NDArray[np.float64], NDArray[np.int8], NDArray[np.float64]]
"""Scores, sides and weights."""

ColumnBlocks = Callable[[], Iterable[ColumnBlock]]
"""Goes through all columns, as often as it is called."""


def which_lack(block: ColumnBlock) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which columns lack scores of a side, and which have both.

    Columns whose scores are all infinite are neither: they are certain. Nor are those without
    a weighted sample, whose scores are 0: they are even, and need no other's scores to say so.
    """
    _, _, scores, sides, weights = block
    if (weights > 0).all() and np.isfinite(scores).all():  # the usual case, told quickly
        opposed = (sides.min(axis=0) == -1) & (sides.max(axis=0) == 1)
        if opposed.all():
            return ~opposed, opposed
    usable = usable_in(block)
    positive, negative = usable & (sides > 0), usable & (sides < 0)
    both = np.asarray(positive.any(axis=0) & negative.any(axis=0))
    certain = np.asarray(usable.any(axis=0) & ~(usable & np.isfinite(scores)).any(axis=0))
    return ~both & ~certain & ~_even(block), both


def _even(block: ColumnBlock) -> NDArray[np.bool_]:
    """Tell which columns nothing was learned for: samples have no weight, and scores are 0."""
    _, _, scores, sides, weights = block
    takes_part, is_zero = sides != 0, scores == 0
    weighted = (takes_part & (weights > 0)[:, None]).any(axis=0)
    speaks = ~(is_zero | np.isnan(scores)).all(axis=0)
    exists = takes_part.any(axis=0) | is_zero.any(axis=0)
    return np.asarray(exists & ~weighted & ~speaks)


def usable_in(block: ColumnBlock) -> NDArray[np.bool_]:
    """Tell which scores are known, of samples that have weight and take part."""
    return ~np.isnan(block.scores) & (block.weights > 0)[:, None] & (block.sides != 0)


def pool(blocks: ColumnBlocks, lends: NDArray[np.bool_]) -> Pooled:
    """Return scores, sides and weights of the columns that lend, row by row, as one column.

    Of more than a million of them every second one, every third and so on will do.
    """
    parts, width = [], len(lends)
    n_scores = sum(np.count_nonzero(usable_in(block) & lends[block.columns]) for block in blocks())
    step = -(-n_scores // POOLED)
    for block in blocks():
        row, column = np.nonzero(usable_in(block) & lends[block.columns])
        place = block.rows[row] * width + column + block.columns.start
        row, column, place = (part[place % step == 0] for part in (row, column, place))
        f, side = block.scores[row, column], block.sides[row, column]
        parts.append((place, f, side, block.weights[row]))
    place, *pooled = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(place)
    f, side, weight = (part[order] for part in pooled)
    return f, side, weight
