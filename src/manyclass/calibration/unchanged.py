"""The learner's own probabilities."""

from __future__ import annotations

from scipy.special import expit

from manyclass.calibration.base import Calibration


class Unchanged(Calibration):
    """Read scores as log-odds: r = 1/(1 + exp(-f)), the learner's own probabilities.

    Nothing is fitted. Infinite log-odds give probabilities 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.calibration import Unchanged
    >>> Unchanged().transform(np.array([[-np.inf], [0.0], [np.log(3.0)]])).ravel()
    array([0.  , 0.5 , 0.75])
    """

    name = "unchanged"

    def fit_blocks(self, blocks, n_columns):
        """Do nothing: there are no parameters."""
        return self

    def _allocate(self, n_columns):
        """Do nothing: there are no parameters."""

    def _fit_block(self, block):
        """Do nothing: there are no parameters."""

    def _fit_empty_columns(self, empty, pooled):
        """Do nothing: there are no parameters."""

    def enforce_monotone(self, positive, negative):
        """Do nothing: probabilities increase with their log-odds."""

    def transform(self, scores, out=None):
        """Return the probabilities that have these log-odds."""
        return expit(scores, out=out)
