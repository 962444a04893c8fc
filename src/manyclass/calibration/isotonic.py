"""Isotonic regression of the sides on the scores."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import FARTHEST, Code, Floats, plain
from manyclass.calibration.base import Calibration
from manyclass.calibration.kernels.curves import fit_curve


class Isotonic(Calibration):
    """Isotonic regression on Platt's targets, which keeps r away from 0 and 1.

    A column with out-of-sample scores of one side only gets the curve of all other
    columns together.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.calibration import Isotonic
    >>> scores = np.array([[-2.0], [-1.0], [0.5], [1.0], [2.0]])
    >>> sides = np.array([[-1], [-1], [1], [-1], [1]], dtype=np.int8)
    >>> Isotonic().fit(scores, sides, np.ones(5)).transform(scores).round(3).ravel()
    array([0.2  , 0.2  , 0.475, 0.475, 0.75 ])
    """

    name = "isotonic"
    enough_of_a_class = float("inf")

    def _allocate(self, n_columns):
        self.curves_ = []  # knots and levels of each column: lines are drawn between them

    def _fit_block(self, block):
        columns = block.scores.T, block.sides.T, block.of_entries(block.weights).T
        for f, side, weight in zip(*columns, strict=True):
            self.curves_.append(_fit(f, plain(side, np.int8), plain(weight, np.float64)))

    def _fit_empty_columns(self, empty, pooled):
        shared = _fit(*pooled)
        for column in np.flatnonzero(empty):
            self.curves_[column] = shared

    def enforce_monotone(self, positive, negative):
        """Do nothing: isotonic curves are non-decreasing."""

    def transform(self, scores, out=None):
        """Apply the curves."""
        r = np.empty(scores.shape) if out is None else out
        for column, (knots, levels) in enumerate(self.curves_):
            f = scores[:, column]
            unknown = np.isnan(f)
            r[:, column] = np.interp(f, knots, levels)
            r[unknown, column] = np.nan
        return r

    def __setstate__(self, state):
        """Take the knots and levels of curves that earlier versions stored as regressions."""
        curves = state.get("curves_", [])
        former = [not isinstance(curve, tuple) for curve in curves]
        if any(former):
            curves = [(curve.X_thresholds_, curve.y_thresholds_) for curve in curves]
        self.__dict__.update(state, curves_=curves)


def _fit(f: Floats, side: Code, weight: Floats) -> tuple[Floats, Floats]:
    """Return the knots and levels of one column."""
    f = np.clip(f, -FARTHEST, FARTHEST)
    order = np.argsort(f, kind="stable")  # the same sums on every machine
    return fit_curve(f, order, side, weight)
