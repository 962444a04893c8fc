"""Scores to binary probabilities, column by column."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from manyclass._sigmoid_kernel import HEAVIEST, fit_sigmoids
from manyclass.column_blocks import ColumnBlock, ColumnBlocks, Pooled, pool, usable_in, which_lack
from manyclass.tails import draw_in, typical_sizes

# They are at home in temperature.py, and known by this address, too.
from manyclass.temperature import FLOOR as FLOOR
from manyclass.temperature import apply_temperature as apply_temperature
from manyclass.temperature import fit_temperature as fit_temperature

FARTHEST = 1e300  # stands for infinity where arithmetic needs a number
BLOCK_ENTRIES = 2**15  # scores transformed at a time, in a core's cache
FAINTEST = 1e-12  # slope, that tells sides apart where nothing else does
TINY = np.finfo(np.float64).tiny


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


class Sigmoid(Calibration):
    """Platt's sigmoid r = 1/(1 + exp(A f + B)), by maximum likelihood.

    A column with out-of-sample scores of one side only (a class with a single
    sample) gets the sigmoid of all other columns together.

    Newton's method with backtracking in the overflow-safe form of Lin, Lin & Weng,
    "A note on Platt's probabilistic outputs for support vector machines" (2007).

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.calibration import Sigmoid
    >>> scores = np.array([[-2.0], [-1.0], [0.5], [1.0], [2.0]])
    >>> sides = np.array([[-1], [-1], [1], [-1], [1]], dtype=np.int8)
    >>> Sigmoid().fit(scores, sides, np.ones(5)).transform(scores).round(2).ravel()
    array([0.17, 0.27, 0.46, 0.53, 0.67])
    """

    def _begin(self, n_columns):
        self.slopes_, self.intercepts_ = np.empty(n_columns), np.empty(n_columns)

    def _fit_block(self, block):
        scores, sides = _plain(block.scores, np.float64), _plain(block.sides, np.int8)
        weights = _plain(block.weights, np.float64)
        slopes, intercepts = self.slopes_[block.columns], self.intercepts_[block.columns]
        fit_sigmoids(scores, sides, weights, 100, slopes, intercepts)

    def _lend(self, alone, pooled):
        slope, intercept = np.empty(1), np.empty(1)
        f, side, weight = pooled
        fit_sigmoids(f[:, None], side[:, None], weight, 100, slope, intercept)
        self.slopes_[alone], self.intercepts_[alone] = slope, intercept

    def rise(self, positive, negative):
        """Give sigmoids that fall the share of the positive side, and the faintest of slopes."""
        falls = self.slopes_ > 0.0
        positive, negative = positive[falls], negative[falls]
        # The mean of Platt's targets, which is what a sigmoid without a slope is.
        share = positive * (positive + 1.0) / (positive + 2.0) + negative / (negative + 2.0)
        share /= np.maximum(positive + negative, TINY)
        self.slopes_[falls] = -FAINTEST
        self.intercepts_[falls] = np.log1p(-share) - np.log(np.maximum(share, TINY))

    def transform(self, scores, out=None):
        """Apply the sigmoids."""
        r = np.empty(scores.shape) if out is None else out
        rows = max(1, BLOCK_ENTRIES // scores.shape[1])
        with np.errstate(over="ignore"):
            for first in range(0, len(scores), rows):
                block = r[first : first + rows]
                np.clip(scores[first : first + rows], -FARTHEST, FARTHEST, out=block)
                self._prepare(block)
                block *= self.slopes_
                block += self.intercepts_
                np.exp(block, out=block)
                block += 1.0
                np.reciprocal(block, out=block)
        return r

    def _prepare(self, scores: NDArray[np.float64]) -> None:
        """Change scores in place to what the sigmoids are of."""


class RobustSigmoid(Sigmoid):
    """Platt's sigmoid of scores whose tails are drawn in.

    Margins without bound, as of linear and polynomial machines, have long tails: far out, twice
    the margin is not twice the evidence. A sigmoid that is to suit them suits the close cases
    less. Beyond the typical size c of a column's out-of-sample scores, their median, f counts as
    c (1 + log(f / c)), on either side: the odds are a power of the margin there. The scale of
    the scores does not matter, and their order stays.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.calibration import RobustSigmoid, Sigmoid
    >>> scores = np.array([[-90.0], [-1.0], [-0.5], [0.5], [1.0], [70.0]])
    >>> sides = np.array([[-1], [-1], [1], [-1], [1], [1]], dtype=np.int8)
    >>> for method in Sigmoid, RobustSigmoid:
    ...     print(method().fit(scores, sides, np.ones(6)).transform(scores).round(2).ravel())
    [0.18 0.51 0.51 0.51 0.51 0.78]
    [0.18 0.43 0.47 0.54 0.57 0.81]
    """

    def _begin(self, n_columns):
        super()._begin(n_columns)
        self.limits_ = np.empty(n_columns)

    def _fit_block(self, block):
        weights = np.minimum(block.weights, HEAVIEST)
        limits = typical_sizes(block.scores, usable_in(block), weights)
        self.limits_[block.columns] = limits
        super()._fit_block(block._replace(scores=draw_in(block.scores, limits)))

    def _lend(self, alone, pooled):
        f, side, weight = pooled
        f = f[:, None]
        limits = typical_sizes(f, np.ones(f.shape, dtype=bool), np.minimum(weight, HEAVIEST))
        self.limits_[alone] = limits
        super()._lend(alone, (draw_in(f, limits)[:, 0], side, weight))

    def _prepare(self, scores):
        draw_in(scores, self.limits_, out=scores)


class Isotonic(Calibration):
    """Isotonic regression on Platt's targets, which keeps r away from 0 and 1.

    A column with out-of-sample scores of one side only gets the curve of all other
    columns together.
    """

    def _begin(self, n_columns):
        self.curves_ = []

    def _fit_block(self, block):
        for f, side in zip(block.scores.T, block.sides.T, strict=True):
            self.curves_.append(_isotonic(f, side, block.weights))

    def _lend(self, alone, pooled):
        shared = _isotonic(*pooled)
        for column in np.flatnonzero(alone):
            self.curves_[column] = shared

    def rise(self, positive, negative):
        """Do nothing: curves rise as they are."""

    def transform(self, scores, out=None):
        """Apply the curves."""
        r = np.empty(scores.shape) if out is None else out
        for column, curve in enumerate(self.curves_):
            known = ~np.isnan(scores[:, column])
            if known.any():
                r[known, column] = curve.predict(
                    np.clip(scores[known, column], -FARTHEST, FARTHEST)
                )
            r[~known, column] = np.nan
        return r


def _plain(array, dtype) -> NDArray:
    """C order, writable: the one type that kernels are compiled for. Copies only if needed."""
    return np.require(array, dtype, ["C", "W"])


def _isotonic(f, side, weights) -> IsotonicRegression:
    weights = np.minimum(weights, HEAVIEST)  # their sum is finite
    used = (side != 0) & ~np.isnan(f) & (weights > 0)
    positive = side[used] > 0
    n_positive, n_negative = weights[used][positive].sum(), weights[used][~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    curve = IsotonicRegression(out_of_bounds="clip")
    if not used.any():  # nothing was left out: the sign is all there is to go by
        return curve.fit([-1.0, 1.0], [0.0, 1.0])
    return curve.fit(np.clip(f[used], -FARTHEST, FARTHEST), target, sample_weight=weights[used])


CALIBRATIONS: dict[str, type[Calibration]] = {
    "sigmoid": Sigmoid,
    "robust-sigmoid": RobustSigmoid,
    "isotonic": Isotonic,
}
