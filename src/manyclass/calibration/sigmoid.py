"""Platt's sigmoid, and a variant that is robust to long tails of the scores."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import FARTHEST, Flags, Floats, plain
from manyclass._lib.row_blocks import row_blocks
from manyclass._lib.weights import HEAVIEST
from manyclass.calibration.base import (
    CACHED_ENTRIES,
    FAINTEST,
    Calibration,
    flat_log_odds,
)
from manyclass.calibration.kernels.sigmoids import apply_sigmoids, fit_sigmoids


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

    name = "sigmoid"

    def _allocate(self, n_columns):
        self.slopes_, self.intercepts_ = np.empty(n_columns), np.empty(n_columns)

    def _fit_block(self, block):
        scores, sides = plain(block.scores, np.float64), plain(block.sides, np.int8)
        weights = plain(block.weights, np.float64)
        slopes, intercepts = self.slopes_[block.columns], self.intercepts_[block.columns]
        fit_sigmoids(scores, sides, weights, slopes, intercepts)

    def _fit_empty_columns(self, empty, pooled):
        slope, intercept = np.empty(1), np.empty(1)
        f, side, weight = pooled
        fit_sigmoids(f[:, None], side[:, None], weight, slope, intercept)
        self.slopes_[empty], self.intercepts_[empty] = slope, intercept

    def enforce_monotone(self, positive, negative):
        """Replace decreasing sigmoids by the share of the positive side, with a tiny slope."""
        falls = self.slopes_ > 0.0
        if not falls.any():
            return
        self.slopes_[falls] = -FAINTEST
        self.intercepts_[falls] = -flat_log_odds(positive[falls], negative[falls])

    def transform(self, scores, out=None):
        """Apply the sigmoids."""
        r = np.empty(scores.shape) if out is None else out
        apply_sigmoids(self._prepared(scores), self.slopes_, self.intercepts_, FARTHEST, r)
        return r

    def _prepared(self, scores: Floats) -> Floats:
        """Return what the sigmoids are applied to."""
        return plain(scores, np.float64)


class RobustSigmoid(Sigmoid):
    """Platt's sigmoid of scores whose long tails are compressed.

    Unbounded margins, such as those of linear and polynomial machines, have long tails: far from
    the boundary, twice the margin is not twice the evidence. A sigmoid that fits these scores
    fits the close cases less well. Let c be the median absolute out-of-sample score of a column.
    Beyond c, a score f counts as c (1 + log(f / c)), on either side, so that the odds there are
    a power of the margin. The scale of the scores does not matter, and their order stays.

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

    name = "robust-sigmoid"

    def _allocate(self, n_columns):
        super()._allocate(n_columns)
        self.limits_ = np.empty(n_columns)

    def _fit_block(self, block):
        weights = np.minimum(block.of_entries(block.weights), HEAVIEST)
        limits = median_sizes(block.scores, block.usable(), weights)
        self.limits_[block.columns] = limits
        super()._fit_block(block._replace(scores=compress_tails(block.scores, limits)))

    def _fit_empty_columns(self, empty, pooled):
        f, side, weight = pooled
        f = f[:, None]
        weights = np.minimum(weight, HEAVIEST)[:, None]
        limits = median_sizes(f, np.ones(f.shape, dtype=bool), weights)
        self.limits_[empty] = limits
        super()._fit_empty_columns(empty, (compress_tails(f, limits)[:, 0], side, weight))

    def _prepared(self, scores):
        return compress_tails(np.clip(scores, -FARTHEST, FARTHEST), self.limits_)


def median_sizes(scores: Floats, usable: Flags, weights: Floats) -> Floats:
    """Return the weighted median of the absolute usable scores, for every column.

    A sample of weight two counts as two samples. The result is infinite, which means no
    compression, if a column has no score or if half of its scores are 0.

    Weights, those of all scores, must be finite.
    """
    medians = np.full(scores.shape[1], np.inf)
    for column, used in enumerate(usable.T):
        if used.any():
            sizes = np.abs(scores[used, column])
            order = np.argsort(sizes)
            reached = np.cumsum(weights[used, column][order])
            # A little less than one half: rounding errors of the sum must not skip a sample.
            medians[column] = sizes[order[np.searchsorted(reached, (0.5 - 1e-9) * reached[-1])]]
    return np.where(medians > 0, medians, np.inf)


def compress_tails(scores: Floats, limits: Floats, out: Floats | None = None) -> Floats:
    """Return f up to the limit c of its column, and c (1 + log(f / c)) beyond, on either side.

    The order of the scores stays. The function is smooth: its slope at the limit is 1.

    An infinite limit leaves a column unchanged. ``out`` may be ``scores`` itself.
    """
    compressed = np.empty(scores.shape) if out is None else out
    with np.errstate(all="ignore"):
        for rows in row_blocks(len(scores), scores.shape[1], CACHED_ENTRIES):
            f = scores[rows]
            sizes = np.abs(f)
            beyond = np.log(sizes)
            beyond -= np.log(limits)
            np.fmax(beyond, 0.0, out=beyond)  # NaN where both are infinite
            beyond += 1.0
            beyond *= limits
            np.minimum(sizes, beyond, out=sizes)
            np.copysign(sizes, f, out=compressed[rows])
    return compressed
