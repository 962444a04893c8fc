"""The interface of calibrations: scores of all columns in, binary probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from manyclass._lib.arrays import Code, Flags, Floats, plain
from manyclass._lib.weights import HEAVIEST
from manyclass.calibration.kernels.sides import describe_sides
from manyclass.scores.out_of_sample import ColumnBlock, ColumnBlocks

# Scores that are transformed at a time. A choice: 256 KB, which stay in a core's cache.
CACHED_ENTRIES = 2**15
# Slope of a column that learned nothing. A choice: too small to change a probability visibly,
# but not 0, so that equal probabilities are still ordered by the score.
FAINTEST = 1e-12

Pooled = tuple[Floats, Code, Floats]
"""Scores, sides and weights, each of shape (m,)."""


class Calibration(ABC):
    """Maps the scores of all columns to probabilities of their positive sides."""

    name: ClassVar[str]
    """Its name as a parameter of classifiers, and in reports."""
    enough_of_a_class: ClassVar[float] = 100.0
    """Samples of the rarest class from which it does not overfit its own scores. A choice:
    two or three parameters of a column hardly notice one of them more or less."""

    def fit(self, scores: Floats, sides: Code, weights: Floats) -> Calibration:
        """Fit every column on out-of-sample scores.

        Parameters
        ----------
        scores : array of shape (n, l)
            NaN where there is no out-of-sample score.
        sides : int8 array of shape (n, l)
            +1 and -1; 0 where the sample takes no part in the column.
        weights : array of shape (n,)
            Sample weights.
        """
        n, n_columns = scores.shape
        whole = ColumnBlock(slice(0, n_columns), np.arange(n), scores, sides, weights)
        return self.fit_blocks(lambda: [whole], n_columns)

    def fit_blocks(self, blocks: ColumnBlocks, n_columns: int) -> Calibration:
        """Fit every column, a few at a time: scores (n, l) need not exist.

        Parameters
        ----------
        blocks : callable
            Returns the blocks of all columns, in order.
        n_columns : int
            Their number.
        """
        self._allocate(n_columns)
        sorted_columns = []
        for block in blocks():
            self._fit_block(block)
            sorted_columns.append(sort_columns(block))
        empty, complete = (np.concatenate(parts) for parts in zip(*sorted_columns, strict=True))
        if empty.any() and complete.any():
            self._fit_empty_columns(empty, pool_scores(blocks, complete))
        return self

    @abstractmethod
    def _allocate(self, n_columns: int) -> None:
        """Allocate the fitted parameters of all columns."""

    @abstractmethod
    def _fit_block(self, block: ColumnBlock) -> None:
        """Fit the columns of a block."""

    @abstractmethod
    def _fit_empty_columns(self, empty: Flags, pooled: Pooled) -> None:
        """Fit the columns without scores of a side on the pooled scores of all others."""

    @abstractmethod
    def enforce_monotone(self, positive: Floats, negative: Floats) -> None:
        """Force the calibration to be non-decreasing.

        If the positive side has lower out-of-sample scores than the negative side, the column
        learned nothing. The share of the positive side is then the better estimate.

        Parameters
        ----------
        positive, negative : arrays of shape (l,)
            Training weight of the sides of each column.
        """

    @abstractmethod
    def transform(self, scores: Floats, out: Floats | None = None) -> Floats:
        """Return probabilities of shape (n, l), NaN where the score is NaN.

        They are written to ``out`` if given, which may be ``scores`` itself.
        """


def sort_columns(block: ColumnBlock) -> tuple[Flags, Flags]:
    """Return which columns lack scores of a side, and which have scores of both sides.

    Two kinds of columns are neither. If all scores are infinite, the column is certain. If no
    sample has weight and all scores are 0, nothing was learned and the probability is 1/2.
    """
    found = np.zeros((6, block.scores.shape[1]), dtype=np.bool_)
    scores, sides = plain(block.scores, np.float64), plain(block.sides, np.int8)
    describe_sides(scores, sides, plain(block.weights, np.float64), *found)
    positive, negative, finite, weighted, nonzero, exists = found
    both = positive & negative
    certain = (positive | negative) & ~finite
    untrained = exists & ~weighted & ~nonzero
    return ~(both | certain | untrained), both


def pool_scores(blocks: ColumnBlocks, chosen: Flags, most: int = 2**20) -> Pooled:
    """Return scores, sides and weights of the chosen columns, row by row, as one column.

    If there are more than ``most`` scores, only every second, third and so on is kept.
    """
    parts, width = [], len(chosen)
    n_scores = sum(np.count_nonzero(block.usable() & chosen[block.columns]) for block in blocks())
    step = -(-n_scores // most)
    for block in blocks():
        row, column = np.nonzero(block.usable() & chosen[block.columns])
        place = block.of_entries(block.rows)[row, column] * width + column + block.columns.start
        row, column, place = (part[place % step == 0] for part in (row, column, place))
        f, side = block.scores[row, column], block.sides[row, column]
        parts.append((place, f, side, block.of_entries(block.weights)[row, column]))
    place, *pooled = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(place)
    f, side, weight = (part[order] for part in pooled)
    return f, side, weight


def flat_log_odds(positive: Floats, negative: Floats) -> Floats:
    """Return the log-odds of the mean of Platt's targets: the best calibration without a slope.

    ``positive`` and ``negative`` (l,) are the training weights of the sides.
    """
    tiny = np.finfo(np.float64).tiny
    positive, negative = (np.minimum(side, HEAVIEST) for side in (positive, negative))
    share = positive * (positive + 1.0) / (positive + 2.0) + negative / (negative + 2.0)
    share /= np.maximum(positive + negative, tiny)
    return np.log(np.maximum(share, tiny)) - np.log1p(-share)
