"""The interface of calibrations: scores of all columns in, binary probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from manyclass._lib.arrays import Code, Flags, Floats
from manyclass.calibration.pooling import Pooled, pool_scores, sort_columns
from manyclass.scores.out_of_sample import ColumnBlock, ColumnBlocks

# Stands for infinity in arithmetic: the largest power of ten whose products with slopes below
# 1e8 are finite float64 numbers.
FARTHEST = 1e300
# Scores that are transformed at a time. A choice: 256 KB, which stay in a core's cache.
CACHED_ENTRIES = 2**15


class Calibration(ABC):
    """Maps the scores of all columns to probabilities of their positive sides."""

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
