"""What every calibration is: scores of all columns in, binary probabilities out."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from manyclass.scores.column_blocks import ColumnBlock, ColumnBlocks, Pooled, pool, which_lack

FARTHEST = 1e300  # stands for infinity where arithmetic needs a number


class Calibration(ABC):
    """Maps the scores of all columns to probabilities of their positive sides."""

    def fit(
        self,
        scores: NDArray[np.float64],
        sides: NDArray[np.int8],
        weights: NDArray[np.float64],
    ) -> Calibration:
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
        self._begin(n_columns)
        lacking = []
        for block in blocks():
            self._fit_block(block)
            lacking.append(which_lack(block))
        alone, lends = (np.concatenate(parts) for parts in zip(*lacking, strict=True))
        if alone.any() and lends.any():
            self._lend(alone, pool(blocks, lends))
        return self

    @abstractmethod
    def _begin(self, n_columns: int) -> None:
        """Make place for the columns."""

    @abstractmethod
    def _fit_block(self, block: ColumnBlock) -> None:
        """Fit the columns of a block."""

    @abstractmethod
    def _lend(self, alone: NDArray[np.bool_], pooled: Pooled) -> None:
        """Give the columns that are alone what fits the pooled scores."""

    @abstractmethod
    def rise(self, positive: NDArray[np.float64], negative: NDArray[np.float64]) -> None:
        """Undo what turns the sides of a column round; by weight, this is what they are.

        That the positive side scores lower, when samples are left out, tells that nothing was
        learned: the share of the side says more than the scores.
        """

    @abstractmethod
    def transform(
        self, scores: NDArray[np.float64], out: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return probabilities of shape (n, l), NaN where the score is.

        They are written to ``out`` if given, which may be ``scores`` itself.
        """
