"""Boosted naive Bayes on binned attributes, for two classes (Elkan 1997)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from manyclass._lib.arrays import Floats
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass.learners._binary import BinaryMixin, check_two
from manyclass.learners._binned_bayes import (
    Estimates,
    NaiveBayes,
    NaiveBayesBase,
    check_count,
    read_frame,
)


class BoostedNaiveBayes(BinaryMixin, NaiveBayesBase):
    """Boosted naive Bayes for two classes, on binned and categorical attributes.

    Each round fits naive Bayes (as :class:`BinnedNaiveBayes` does) to weighted samples.
    Its probability h of the second class has the error |y - h|. With the weighted mean
    error e and b = e / (1 - e), the weights of the next round are multiplied by
    b^(1 - |y - h|) and scaled to their first sum. The probability of the second class
    after all rounds is 1 / (1 + prod_t b_t^(2 h_t - 1)).

    Parameters
    ----------
    n_rounds : int, default=10
        Rounds of boosting. It stops before a round with e >= 1/2, and after one with
        e = 0. If the first round has e >= 1/2, its h is used: plain naive Bayes.
    n_bins, smoothing, categorical_features
        As in :class:`BinnedNaiveBayes`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The class labels.
    n_rounds_ : int
        Number of rounds kept.
    betas_ : ndarray of shape (n_rounds_,)
        b of each round; below 1, except for a first round with e >= 1/2.
    class_log_prior_ : ndarray of shape (n_rounds_, 2)
        Logarithm of the class priors in each round.
    feature_log_prob_ : ndarray of shape (n_rounds_, 2, cells)
        Logarithm of the estimates. The cells of attribute j are
        ``cell_offsets_[j]`` to ``cell_offsets_[j + 1]``.
    cell_offsets_, bin_edges_, categories_, is_categorical_, n_features_in_, feature_names_in_
        As in :class:`BinnedNaiveBayes`.

    See Also
    --------
    BinnedNaiveBayes : Without boosting, for any number of classes.
    manyclass.CoupledClassifier : For more than two classes.

    Notes
    -----
    Missing values and new categories are ignored as by :class:`BinnedNaiveBayes`.

    The weights of each round sum to the sum of ``sample_weight``, or to the number of samples,
    and not to 1. So smoothing has the same effect in every round.

    References
    ----------
    C. Elkan (1997), "Boosting and naive Bayesian learning", report CS97-557,
    University of California, San Diego.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.learners import BoostedNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedNaiveBayes().fit(X, y == 1)
    >>> model.predict_proba(X[[0, 70, 77]]).round(2)
    array([[1.  , 0.  ],
           [0.71, 0.29],
           [0.04, 0.96]])
    >>> CoupledClassifier(model, combiner="ht").fit(X, y).predict_proba(X[[0, 70, 77]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.75, 0.25],
           [0.  , 0.8 , 0.2 ]])
    """

    def __init__(
        self,
        n_rounds: int = 10,
        n_bins: int = 10,
        smoothing: float = 1.0,
        *,
        categorical_features="from_dtype",
    ):
        self.n_rounds = n_rounds
        self.n_bins = n_bins
        self.smoothing = smoothing
        self.categorical_features = categorical_features

    def fit(self, X, y, sample_weight=None):
        """Fit the model.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            Numbers and categories.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the first round; a weight of 2 has the effect of two samples.

        Returns
        -------
        self
        """
        check_count("n_rounds", self.n_rounds)
        with unchanged_on_error(self):
            rounds = boost(*self._learner(X, y, sample_weight), self.n_rounds)
        self.n_rounds_ = len(rounds)
        self.betas_ = np.array([one.beta for one in rounds])
        self.class_log_prior_ = np.array([one.estimates.prior for one in rounds])
        self.feature_log_prob_ = np.array([one.estimates.conditional for one in rounds])
        return self

    def _check_classes(self, classes: NDArray, shares: NDArray) -> None:
        check_two(classes, type(self).__name__)
        check_two(classes[shares > 0], type(self).__name__, weighed=True)

    def _log_odds(self, X) -> Floats:
        table = self._read(X, reset=False)
        evidence = np.diff(self.feature_log_prob_, axis=1)[:, 0].T
        log_odds = np.diff(self.class_log_prior_)[:, 0] + self.bins_.dot(table, evidence)
        if self.betas_[0] >= 1:
            total: Floats = log_odds[:, 0]
        else:  # (2 rho - 1) sum_t log(1/b_t) = sum_t (2 h_t - 1) log(1/b_t), 2 h - 1 = tanh
            total = -(np.tanh(log_odds / 2) * np.log(self.betas_)).sum(axis=1)
        even = 4 * np.finfo(np.float64).eps  # below it both probabilities round to 0.5
        return np.where(np.abs(total) < even, 0.0, total)

    def __manyclass_rows__(self, X):
        return read_frame(X)


class Round(NamedTuple):
    """One round of boosting."""

    beta: float
    estimates: Estimates


def boost(learner: NaiveBayes, weights: Floats, n_rounds: int) -> list[Round]:
    """Boost binary naive Bayes (Elkan 1997) from positive weights, for at most ``n_rounds``.

    If the first beta is 1 or more, there is only this round: its probabilities are not boosted.
    """
    rounds: list[Round] = []
    total, log_weights = weights.sum(), np.log(weights)
    least = np.finfo(np.float64).tiny  # keeps log(beta) finite
    for _ in range(n_rounds):
        estimates = learner.fit(weights)
        evidence = np.diff(estimates.conditional, axis=0)[0]
        log_odds = np.diff(estimates.prior) + learner.one_hot @ evidence
        margins = np.where(learner.y == 1, log_odds, -log_odds)
        wrong, right = expit(-margins), expit(margins)  # |y - h| and 1 - |y - h|
        error = weights @ wrong / total
        beta = max(error, least) / max(weights @ right / total, least)
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
