"""Isotonic regression of the sides on the scores."""

from __future__ import annotations

import numpy as np
from sklearn.isotonic import IsotonicRegression

from manyclass.calibration.base import FARTHEST, Calibration
from manyclass.calibration.kernels.sigmoids import HEAVIEST


class Isotonic(Calibration):
    """Isotonic regression on Platt's targets, which keeps r away from 0 and 1.

    A column with out-of-sample scores of one side only gets the curve of all other
    columns together.
    """

    name = "isotonic"

    def _allocate(self, n_columns):
        self.curves_ = []

    def _fit_block(self, block):
        for f, side in zip(block.scores.T, block.sides.T, strict=True):
            self.curves_.append(_isotonic(f, side, block.weights))

    def _fit_empty_columns(self, empty, pooled):
        shared = _isotonic(*pooled)
        for column in np.flatnonzero(empty):
            self.curves_[column] = shared

    def enforce_monotone(self, positive, negative):
        """Do nothing: isotonic curves are non-decreasing."""

    def transform(self, scores, out=None):
        """Apply the curves."""
        r = np.empty(scores.shape) if out is None else out
        for column, curve in enumerate(self.curves_):
            known = ~np.isnan(scores[:, column])
            if known.any():
                f = np.clip(scores[known, column], -FARTHEST, FARTHEST)
                r[known, column] = curve.predict(f)
            r[~known, column] = np.nan
        return r


def _isotonic(f, side, weights) -> IsotonicRegression:
    weights = np.minimum(weights, HEAVIEST)  # keeps their sum finite
    used = (side != 0) & ~np.isnan(f) & (weights > 0)
    positive = side[used] > 0
    n_positive, n_negative = weights[used][positive].sum(), weights[used][~positive].sum()
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    curve = IsotonicRegression(out_of_bounds="clip")
    if not used.any():  # nothing was left out: only the sign is known
        return curve.fit([-1.0, 1.0], [0.0, 1.0])
    return curve.fit(np.clip(f[used], -FARTHEST, FARTHEST), target, sample_weight=weights[used])
