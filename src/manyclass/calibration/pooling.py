"""Scores of all columns together, for columns that have no out-of-sample scores of a side."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import Code, Flags, Floats
from manyclass.scores.out_of_sample import ColumnBlock, ColumnBlocks

Pooled = tuple[Floats, Code, Floats]
"""Scores, sides and weights, each of shape (m,)."""


def sort_columns(block: ColumnBlock) -> tuple[Flags, Flags]:
    """Return which columns lack scores of a side, and which have scores of both sides.

    Two kinds of columns are neither. If all scores are infinite, the column is certain. If no
    sample has weight and all scores are 0, nothing was learned and the probability is 1/2.
    """
    _, _, scores, sides, weights = block
    if (weights > 0).all() and np.isfinite(scores).all():  # the usual case, and a fast test
        opposed = (sides.min(axis=0) == -1) & (sides.max(axis=0) == 1)
        if opposed.all():
            return ~opposed, opposed
    usable = block.usable()
    positive, negative = usable & (sides > 0), usable & (sides < 0)
    both = np.asarray(positive.any(axis=0) & negative.any(axis=0))
    certain = np.asarray(usable.any(axis=0) & ~(usable & np.isfinite(scores)).any(axis=0))
    takes_part, is_zero = sides != 0, scores == 0
    weighted = (takes_part & (weights > 0)[:, None]).any(axis=0)
    nonzero = ~(is_zero | np.isnan(scores)).all(axis=0)
    exists = takes_part.any(axis=0) | is_zero.any(axis=0)
    untrained = np.asarray(exists & ~weighted & ~nonzero)
    return ~both & ~certain & ~untrained, both


def pool_scores(blocks: ColumnBlocks, chosen: Flags, most: int = 2**20) -> Pooled:
    """Return scores, sides and weights of the chosen columns, row by row, as one column.

    If there are more than ``most`` scores, only every second, third and so on is kept.
    """
    parts, width = [], len(chosen)
    n_scores = sum(np.count_nonzero(block.usable() & chosen[block.columns]) for block in blocks())
    step = -(-n_scores // most)
    for block in blocks():
        row, column = np.nonzero(block.usable() & chosen[block.columns])
        place = block.rows[row] * width + column + block.columns.start
        row, column, place = (part[place % step == 0] for part in (row, column, place))
        f, side = block.scores[row, column], block.sides[row, column]
        parts.append((place, f, side, block.weights[row]))
    place, *pooled = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(place)
    f, side, weight = (part[order] for part in pooled)
    return f, side, weight
