"""Nearest neighbours of two classes, with distances biased for one of them.

Hastie & Tibshirani (1998), section 3: the number of neighbours and the bias are
chosen for every pair of classes by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from manyclass.learners._neighbors_kernel import count_errors, count_votes, euclidean, nearest
from manyclass.learners._two_classes import encode_binary

MOST_NEIGHBORS = 25
WIDEST, STEPS = 1.4, 14  # biases on either side of 1
SLOPES = 0.01, 1000.0
BLOCK_ENTRIES = 2**20  # distances held at a time: 8 MB


def _fit_slope(log_odds: NDArray[np.float64], sides: NDArray[np.intp]) -> float:
    """Return the slope of least log-loss, positive so that labels remain those of the votes.

    One more sample of the largest log-odds that was seen is right and one is wrong: the
    slope stays finite where no sample is wrong.
    """
    right = np.where(sides == 1, log_odds, -log_odds)
    largest = np.abs(right).max()
    right = np.sort(np.append(right, [largest, -largest]))  # rounded alike in any order

    def derivative(slope):
        return -(right * expit(-slope * right)).sum()

    low, high = SLOPES
    if derivative(low) >= 0:  # no better than chance
        return low
    return high if derivative(high) <= 0 else float(brentq(derivative, low, high))


class PairwiseNeighbors(ClassifierMixin, BaseEstimator):
    """Binary nearest neighbours with a biased distance, chosen by leave-one-out.

    Distances to samples of the second class are multiplied by a bias; the J nearest
    samples vote. Both the bias and J minimise the leave-one-out error of this pair
    of classes (Hastie & Tibshirani 1998, section 3).

    Parameters
    ----------
    n_neighbors : int, array-like of int or None, default=None
        The numbers of neighbours J to choose from; those above the number of samples
        less one are passed over. ``None`` means 1 to 25.
    biases : float, array-like of float or None, default=None
        The factors to choose from. ``None`` means 29 factors from 1/1.4 to 1.4 in
        equal ratios, 1 among them.
    metric : str or callable, default="euclidean"
        A metric of :func:`sklearn.metrics.pairwise_distances` other than
        "precomputed".

    Attributes
    ----------
    n_neighbors_ : int
        The chosen J.
    bias_ : float
        The chosen bias: below 1 the second class is favoured.
    loo_error_ : float
        Leave-one-out error of the training set with both, the least of all.
    slope_ : float
        What the log-odds of the votes are multiplied by.
    classes_ : ndarray of shape (2,)
        The class labels.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, where X has them.

    See Also
    --------
    manyclass.learners.thresholds.ThresholdOptimized : The same for a logit.

    Notes
    -----
    The paper does not say how votes become probabilities. Here m votes for the second
    class give it the share (m + 1) / (J + 2), Laplace's rule of succession, whose
    log-odds are multiplied by a slope that minimises the log-loss of the leave-one-out
    votes. The share alone will not do: the one neighbour of a pair with J = 1 never
    amounts to more than 2/3, the 25 of another pair to 26/27, and coupling favours the
    classes whose pairs have many. With J = 1 the slope makes the probability of the
    label equal to its leave-one-out accuracy, smoothed by Laplace's rule.

    A draw gives half a vote more to the side that is nearer, so the label is always the
    more probable class. Samples at the same distance share the places that are left
    among the J: nothing depends on the order of the training samples. If even so the
    sides are alike, both have probability 1/2 and the label is the first class.

    Among choices with the same leave-one-out error, the bias nearest to 1 is taken,
    which departs least from the plain rule, and then the largest J, whose
    probabilities are the finest and vary least.

    All choices are evaluated in one pass over the distances, which are computed for a
    few rows at a time. Weights of samples are not supported: neighbours are counted,
    and "the J nearest" has no meaning for half a sample.

    References
    ----------
    T. Hastie and R. Tibshirani (1998), Classification by pairwise coupling, Annals of
    Statistics 26, 451-471, section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.learners.neighbors import PairwiseNeighbors
    >>> X, y = load_iris(return_X_y=True)
    >>> pair = PairwiseNeighbors().fit(X[50:], y[50:])
    >>> pair.n_neighbors_, round(pair.bias_, 2), pair.loo_error_
    (21, 1.0, 0.03)
    >>> CoupledClassifier(PairwiseNeighbors(), combiner="ht").fit(X, y).score(X, y)
    0.98
    """

    def __init__(
        self,
        n_neighbors: int | ArrayLike | None = None,
        biases: float | ArrayLike | None = None,
        *,
        metric="euclidean",
    ):
        self.n_neighbors = n_neighbors
        self.biases = biases
        self.metric = metric

    def fit(self, X, y):
        """Keep the samples, and choose the number of neighbours and the bias.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Training data.
        y : array-like of shape (n,)
            Labels of two classes.

        Returns
        -------
        self
        """
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' is not supported: pass the samples and a function of two of "
                "them as metric."
            )
        X = self._check_rows(X, reset=True)
        classes, sides = encode_binary(y, type(self).__name__)
        check_consistent_length(X, sides)
        candidates, biases = self._check_candidates(len(sides)), self._check_biases()
        order = np.argsort(sides, kind="stable")
        X, sides = X[order], sides[order]  # class by class, as the kernels take them
        self._fit_X, self._n_of_class, self.classes_ = X, np.bincount(sides), classes
        errors = np.zeros((len(biases), candidates[-1]), dtype=np.int64)
        left_out = list(self._nearest(X, candidates[-1], leave_out=True))
        for rows, distances, kept, more in left_out:
            count_errors(distances, kept, more, sides[rows], biases, errors)
        self._choose(errors[:, candidates - 1], candidates, biases)
        self.slope_ = _fit_slope(self._log_odds(self._count(left_out, len(sides))), sides)
        return self

    def _choose(self, errors, candidates, biases) -> None:
        """Take the cell of least error; then the bias nearest to 1, then the largest J."""
        rows, columns = np.nonzero(errors == errors.min())
        size = np.abs(np.log(biases)).round(12)  # f and 1/f are equally far from 1
        best = np.lexsort((biases[rows], -candidates[columns], size[rows]))[0]
        self.bias_ = float(biases[rows[best]])
        self.n_neighbors_ = int(candidates[columns[best]])
        self.loo_error_ = float(errors.min() / self._n_of_class.sum())

    def predict_proba(self, X):
        """Return the class probabilities from the votes of the neighbours.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, 2)
        """
        d = self.decision_function(X)
        return expit(np.column_stack([-d, d]))

    def decision_function(self, X):
        """Return the log-odds of the second class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self, "slope_")
        X = self._check_rows(X, reset=False)
        votes = self._count(self._nearest(X, self.n_neighbors_), X.shape[0])
        return self.slope_ * self._log_odds(votes)

    def predict(self, X):
        """Return the class with more votes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(np.intp)]

    def _count(self, blocks: Iterable[tuple[Any, ...]], n: int) -> NDArray[np.float64]:
        """Return the votes of n rows for the second class, draws decided."""
        votes = np.empty(n)
        for rows, distances, kept, more in blocks:
            count_votes(distances, kept, more, self.bias_, self.n_neighbors_, votes[rows])
        return votes

    def _log_odds(self, votes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log-odds of (m + 1) / (J + 2)."""
        return np.log((votes + 1.0) / (self.n_neighbors_ - votes + 1.0))

    def _nearest(self, X, most: int, leave_out: bool = False) -> Iterator[tuple[Any, ...]]:
        """Yield a few rows at a time, with what :func:`nearest` finds for them."""
        step = max(1, BLOCK_ENTRIES // self._fit_X.shape[0])
        for first in range(0, X.shape[0], step):
            rows = slice(first, min(first + step, X.shape[0]))
            D = self._distances(X[rows])
            if not np.isfinite(D).all():
                raise ValueError(
                    f"distances of rows {rows.start} to {rows.stop - 1} of X are not finite with "
                    f"metric={self.metric!r}: scale the features."
                )
            distances = np.empty((len(D), 2, most))
            kept, more = (np.empty((len(D), 2), dtype=np.intp) for _ in range(2))
            own = first if leave_out else -1
            nearest(D, self._n_of_class[0], own, distances, kept, more)
            yield rows, distances, kept, more

    def _distances(self, X) -> NDArray[np.float64]:
        """Return the distances of these rows to all training samples."""
        if issparse(X) != issparse(self._fit_X):
            X = X.toarray() if issparse(X) else csr_array(X)
        if self.metric == "euclidean" and not issparse(X):
            out = np.empty((len(X), len(self._fit_X)))
            euclidean(X, self._fit_X, out)
            return out
        D = pairwise_distances(X, self._fit_X, metric=self.metric)
        return np.require(D, np.float64, ["C", "W"])

    def _check_rows(self, X, reset: bool):
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            accept_large_sparse=self.metric == "euclidean",
            dtype=np.float64,
        )
        # One kind of array, so that the kernels are compiled once.
        return X if issparse(X) else np.require(X, requirements=["C", "W"])

    def _check_candidates(self, n: int) -> NDArray[np.intp]:
        """Return numbers of neighbours, as far as there are as many without the sample itself."""
        if self.n_neighbors is None:
            return np.arange(1, min(MOST_NEIGHBORS, n - 1) + 1)
        given = np.unique(self.n_neighbors)
        if given.dtype.kind not in "iu" or given.size == 0 or given[0] < 1:
            raise ValueError(
                "n_neighbors must be None, a positive integer or several of them, got "
                f"{self.n_neighbors!r}."
            )
        if given[0] > n - 1:
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}, but a sample has only {n - 1} others among the "
                f"n_samples={n} of both classes: choose fewer neighbours."
            )
        return given[given < n].astype(np.intp)

    def _check_biases(self) -> NDArray[np.float64]:
        """Return the factors to choose from."""
        if self.biases is None:
            return WIDEST ** (np.arange(-STEPS, STEPS + 1) / STEPS)
        given = np.unique(self.biases)
        is_real = given.dtype.kind in "fiu" and given.size > 0
        if not is_real or not (np.isfinite(given) & (given > 0)).all():
            raise ValueError(
                f"biases must be None, a positive number or several of them, got {self.biases!r}."
            )
        return given.astype(np.float64)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
