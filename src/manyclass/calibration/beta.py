"""Beta calibration of log-odds."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from manyclass._lib.arrays import Code, Floats, plain
from manyclass._lib.row_blocks import row_blocks
from manyclass.calibration.base import (
    CACHED_ENTRIES,
    FAINTEST,
    Calibration,
    flat_log_odds,
)
from manyclass.calibration.kernels.betas import fit_betas

# Log-odds are clipped to +-BOUND. A choice: trees, forests and neighbours return probabilities of
# exactly 0 and 1, whose log-odds are a convention (+-27.6), and a few of them on the wrong side
# would flatten the whole curve. A smaller bound helps these learners. A larger one helps naive
# Bayes, whose far log-odds still differ; but there, a sigmoid does as well.
BOUND = np.log(1e6)


class Beta(Calibration):
    """Beta calibration r = 1/(1 + exp(-(a log p - b log(1 - p) + c))), with a, b >= 0.

    Scores must be log-odds, log(p / (1 - p)), of the probabilities p of a learner. With a = b this
    is Platt's sigmoid of the log-odds. Two slopes correct probabilities that are too sure on one
    side only. With a = b = 1 and c = 0, probabilities stay as they are. A ridge toward these keeps
    parameters finite, and gives columns with few samples nearly the learner's own probabilities.

    A column with out-of-sample scores of one side only gets the calibration of all other columns
    together.

    Kull, Silva Filho & Flach, "Beta calibration: a well-founded and easily implemented improvement
    on logistic calibration for binary classifiers" (2017), with Platt's targets.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.calibration import Beta
    >>> scores = np.array([[-9.0], [-2.0], [-0.5], [0.5], [1.0], [9.0]])
    >>> sides = np.array([[-1], [-1], [1], [-1], [1], [1]], dtype=np.int8)
    >>> Beta().fit(scores, sides, np.ones(6)).transform(scores).round(2).ravel()
    array([0.16, 0.42, 0.49, 0.54, 0.56, 0.82])
    """

    name = "beta"

    def _allocate(self, n_columns):
        self.a_, self.b_, self.c_ = np.empty((3, n_columns))

    def _fit_block(self, block):
        at = block.columns
        parameters = self.a_[at], self.b_[at], self.c_[at]
        _fit(block.scores, block.sides, block.weights, *parameters)

    def _fit_empty_columns(self, empty, pooled):
        f, side, weight = pooled
        a, b, c = np.empty((3, 1))
        _fit(f[:, None], side[:, None], weight, a, b, c)
        self.a_[empty], self.b_[empty], self.c_[empty] = a, b, c

    def enforce_monotone(self, positive, negative):
        """Replace constants by the share of the positive side, with a tiny slope.

        Other columns are non-decreasing, because a and b are not negative.
        """
        flat = (self.a_ == 0.0) & (self.b_ == 0.0)
        self.a_[flat] = self.b_[flat] = FAINTEST
        self.c_[flat] = flat_log_odds(positive[flat], negative[flat])

    def transform(self, scores, out=None):
        """Apply the calibrations."""
        r = np.empty(scores.shape) if out is None else out
        for rows in row_blocks(len(scores), scores.shape[1], CACHED_ENTRIES):
            block = r[rows]
            np.clip(scores[rows], -BOUND, BOUND, out=block)
            # log p = min(x, 0) - near and -log(1 - p) = max(x, 0) + near.
            near = np.log1p(np.exp(-np.abs(block)))
            near *= self.b_ - self.a_
            near += self.c_
            near += self.b_ * np.maximum(block, 0.0)
            near += self.a_ * np.minimum(block, 0.0)
            expit(near, out=block)
        return r


def _fit(scores: Floats, sides: Code, weights: Floats, a: Floats, b: Floats, c: Floats) -> None:
    """Fit the parameters (l,) of all columns, in place."""
    # A choice: the ridge weighs as much as a tenth of a sample does. It decides only where the
    # samples leave the parameters open, as they do if all scores of a column are equal.
    ridge = 0.1
    scores, sides = plain(scores, np.float64), plain(sides, np.int8)
    fit_betas(scores, sides, plain(weights, np.float64), ridge, BOUND, a, b, c)
