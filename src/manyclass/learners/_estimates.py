"""Naive Bayes on one-hot cells: estimates the logarithms of priors and conditionals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from manyclass._lib.arrays import Floats, Places
from manyclass.learners._binning import Bins


class Estimates(NamedTuple):
    """Estimates of naive Bayes for K classes, as logarithms."""

    prior: Floats
    """Log prior of each class, shape (K,)."""
    conditional: Floats
    """Log probability of each cell of an attribute given the class, shape (K, cells)."""


class NaiveBayes:
    """Naive Bayes with Laplace smoothing, for one training set and any sample weights."""

    def __init__(self, bins: Bins, one_hot: csr_array, y: Places, k: int, smoothing: float):
        used = bins.sizes > 0
        self.first, self.size = bins.offsets[:-1][used], bins.sizes[used]
        self.log_size = np.log(np.repeat(self.size, self.size))
        self.one_hot, self.y, self.smoothing = one_hot, y, smoothing
        self.shape = k, one_hot.shape[1]
        self.n_known = np.diff(one_hot.indptr)
        self.cells_by_class = one_hot.indices + np.repeat(y * one_hot.shape[1], self.n_known)

    def fit(self, weights: Floats) -> Estimates:
        """Return the estimates for the given sample weights."""
        k, n_cells = self.shape
        share = np.bincount(self.y, weights, minlength=k)
        with np.errstate(divide="ignore"):  # a class of total weight 0
            prior = np.log(share) - np.log(share.sum())
        spread = np.repeat(weights, self.n_known)
        counts = np.bincount(self.cells_by_class, spread, minlength=k * n_cells)
        return Estimates(prior, self._smoothed_logs(counts.reshape(self.shape)))

    def _smoothed_logs(self, counts: NDArray[Any]) -> Floats:
        # (count + s) / (total + s V) for the V cells of an attribute. The denominator is written
        # as V (total / V + s), which cannot overflow.
        mean = np.add.reduceat(counts, self.first, axis=1) / self.size
        mean = np.repeat(mean, self.size, axis=1)
        return np.log(counts + self.smoothing) - np.log(mean + self.smoothing) - self.log_size
