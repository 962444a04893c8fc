"""Naive Bayes on cells: arrays in, logarithms of estimates out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from manyclass.learners._binning import Bins

Array = NDArray[np.float64]


class Estimates(NamedTuple):
    """What naive Bayes learns about K classes; all logarithms."""

    prior: Array
    """Of the share of each class, shape (K,)."""
    conditional: Array
    """Of the share of each cell in its attribute, by class, shape (K, cells)."""


class NaiveBayes:
    """Laplace-smoothed naive Bayes on cells, for one training set under any weights."""

    def __init__(
        self, bins: Bins, one_hot: csr_array, y: NDArray[np.intp], k: int, smoothing: float
    ):
        used = bins.sizes > 0
        self.first, self.size = bins.offsets[:-1][used], bins.sizes[used]
        self.log_size = np.log(np.repeat(self.size, self.size))
        self.one_hot, self.y, self.smoothing = one_hot, y, smoothing
        self.shape = k, one_hot.shape[1]
        self.n_known = np.diff(one_hot.indptr)
        self.cells_by_class = one_hot.indices + np.repeat(y * one_hot.shape[1], self.n_known)

    def fit(self, weights: Array) -> Estimates:
        """Estimate from the weight of each row."""
        k, n_cells = self.shape
        share = np.bincount(self.y, weights, minlength=k)
        with np.errstate(divide="ignore"):  # a class without weight
            prior = np.log(share) - np.log(share.sum())
        spread = np.repeat(weights, self.n_known)
        counts = np.bincount(self.cells_by_class, spread, minlength=k * n_cells)
        return Estimates(prior, self._smoothed_logs(counts.reshape(self.shape)))

    def _smoothed_logs(self, counts: NDArray[Any]) -> Array:
        # (count + s) / (total + s V) for the V cells of an attribute; the denominator as
        # V (total / V + s), which cannot overflow.
        mean = np.add.reduceat(counts, self.first, axis=1) / self.size
        mean = np.repeat(mean, self.size, axis=1)
        return np.log(counts + self.smoothing) - np.log(mean + self.smoothing) - self.log_size
