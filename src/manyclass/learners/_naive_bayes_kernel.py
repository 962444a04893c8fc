"""Naive Bayes on cells, and boosting it: arrays in, logarithms of estimates out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit

from manyclass.learners._binning import Bins

LEAST_ERROR = np.finfo(np.float64).tiny  # with beta = 0 a round would outvote all by infinity

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


class Round(NamedTuple):
    """One round of boosting."""

    beta: float
    estimates: Estimates


def boost(learner: NaiveBayes, weights: Array, n_rounds: int) -> list[Round]:
    """Boost naive Bayes of two classes (Elkan 1997).

    Parameters
    ----------
    learner : NaiveBayes
        Of classes 0 and 1.
    weights : array of shape (n,)
        Positive weights for the first round; those of later rounds have the same sum.
    n_rounds : int
        The most rounds to make.

    Returns
    -------
    list of Round
        At least one. A beta of 1 or more is that of a single round, to be taken as it is.
    """
    rounds: list[Round] = []
    total, log_weights = weights.sum(), np.log(weights)
    for _ in range(n_rounds):
        estimates = learner.fit(weights)
        evidence = np.diff(estimates.conditional, axis=0)[0]
        log_odds = np.diff(estimates.prior) + learner.one_hot @ evidence
        margins = np.where(learner.y == 1, log_odds, -log_odds)
        wrong, right = expit(-margins), expit(margins)  # |y - h| and 1 - |y - h|
        error = weights @ wrong / total
        beta = max(error, LEAST_ERROR) / max(weights @ right / total, LEAST_ERROR)
        if beta >= 1 and rounds:
            break
        rounds.append(Round(beta, estimates))
        if beta >= 1 or error == 0:
            break
        log_weights += right * np.log(beta)
        log_weights -= log_weights.max()
        weights = np.exp(log_weights)
        weights *= total / weights.sum()
    return rounds
