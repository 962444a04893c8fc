"""Platt's sigmoid, and one that long tails of the scores do not bend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manyclass.calibration.base import FARTHEST, Calibration
from manyclass.calibration.kernels.sigmoids import HEAVIEST, fit_sigmoids
from manyclass.calibration.tails import draw_in, typical_sizes
from manyclass.scores.column_blocks import usable_in

BLOCK_ENTRIES = 2**15  # scores transformed at a time, in a core's cache
FAINTEST = 1e-12  # slope, that tells sides apart where nothing else does
TINY = np.finfo(np.float64).tiny


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


def _plain(array, dtype) -> NDArray:
    """C order, writable: the one type that kernels are compiled for. Copies only if needed."""
    return np.require(array, dtype, ["C", "W"])
