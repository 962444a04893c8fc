"""Nearest neighbours for two classes, with a bias that favours one of them.

Hastie & Tibshirani (1998), section 3: the number of neighbours and the bias are
chosen for each pair of classes separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.sparse import csr_array, issparse
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import validate_data

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import quoted
from manyclass._lib.row_blocks import row_blocks
from manyclass._lib.rows import without_duplicates
from manyclass._lib.sklearn import in_known_numbers
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass.learners._binary import BinaryMixin, encode_binary
from manyclass.learners.kernels.neighbors import (
    contrast_distances,
    count_distance_errors,
    count_vote_errors,
    count_votes,
    euclidean,
    nearest,
)

# The default limit of J with votes. A choice: larger values take longer and are rarely chosen.
MOST_VOTES = 25
MOST_OF_CLASS = (MOST_VOTES + 1) // 2  # a majority of MOST_VOTES: the default limit per class

_Near = tuple[Floats, Places, Places]
"""Results of :func:`nearest` for some rows: distances, their numbers, and the ties not kept."""


class _ClassDistances:
    """Compare the mean distances to the J nearest samples of each class."""

    among = "samples of the larger class"  # J counts these
    most_by_default = MOST_OF_CLASS

    def most(self, n_of_class: Places) -> int:
        """Return the largest J for these class sizes."""
        return n_of_class.max()

    def count_errors(self, near: _Near, sides, biases, errors) -> None:
        """Add the errors of some rows to the table of errors, shape (biases, J)."""
        count_distance_errors(*near[:2], sides, biases, errors)

    def measure(self, near: _Near, bias: float, J: int) -> Floats:
        """Return the evidence for the second class: its log-odds divided by the slope."""
        contrasts = np.empty(len(near[0]))
        contrast_distances(*near[:2], bias, J, contrasts)
        return contrasts

    def doubt(self, sizes: Floats) -> Floats:
        """Return the sizes of evidence at which pseudo-samples are placed, see _fit_slope."""
        return sizes  # all of them: a duplicate alone has the largest contrast, 1


class _Votes:
    """Let the J nearest samples vote: log-odds by Laplace's rule of succession."""

    among = "other samples of both classes"
    most_by_default = MOST_VOTES

    def most(self, n_of_class: Places) -> int:
        return n_of_class.sum() - 1

    def count_errors(self, near: _Near, sides, biases, errors) -> None:
        count_vote_errors(*near, sides, biases, errors)

    def measure(self, near: _Near, bias: float, J: int) -> Floats:
        votes = np.empty(len(near[0]))
        count_votes(*near, bias, J, votes)
        return np.log((votes + 1.0) / (J - votes + 1.0))

    def doubt(self, sizes: Floats) -> Floats:
        return sizes.max(keepdims=True)  # that of a unanimous vote


_Evidence = _ClassDistances | _Votes

EVIDENCE: dict[str, _Evidence] = {"distances": _ClassDistances(), "votes": _Votes()}


def _fit_slope(
    values: Floats, sides: Places, evidence: _Evidence, lowest: float = 0.01, highest: float = 1e3
) -> float:
    """Return the slope that minimises the log-loss, between ``lowest`` and ``highest``.

    It is positive, so that labels do not change. Two pseudo-samples, a correct and a wrong one,
    are spread over the sizes ``evidence.doubt``: the slope stays finite if no sample is wrong.
    """
    right = np.where(sides == 1, values, -values)
    sizes = np.abs(right)
    doubt = evidence.doubt(sizes)
    weights = np.repeat([1.0, 1.0 / doubt.size], [right.size, 2 * doubt.size])
    right = np.concatenate([right, doubt, -doubt])
    order = np.lexsort((weights, right))  # the sum does not depend on the order of samples
    right, weights = right[order], weights[order]

    def derivative(slope):
        return -(weights * right * expit(-slope * right)).sum()

    if derivative(lowest) >= 0:  # no better than chance
        return lowest
    highest /= min(1.0, sizes.max())  # contrasts are small if all distances are similar
    return highest if derivative(highest) <= 0 else float(brentq(derivative, lowest, highest))


class PairwiseNeighbors(BinaryMixin, BaseEstimator):
    """Binary nearest neighbours with a biased distance, chosen by leave-one-out.

    Distances to samples of the second class are multiplied by a bias. Then the nearest samples
    decide, by the mean distance per class or by votes. The bias and the number of neighbours J
    minimise the leave-one-out error of this pair of classes (Hastie & Tibshirani 1998, section 3).

    Parameters
    ----------
    n_neighbors : int, array-like of int or None, default=None
        Candidates for the number of neighbours J. With distances, J counts the samples
        of each class; numbers above the size of the larger class are ignored, and
        ``None`` means 1 to 13. With votes, J counts the samples of both classes
        together; numbers of n or more are ignored, and ``None`` means 1 to 25.
    biases : float, array-like of float or None, default=None
        Candidates for the bias. ``None`` means 29 factors from 1/1.4 to 1.4 in
        equal ratios, including 1.
    evidence : {"distances", "votes"}, default="distances"
        How neighbours decide. "distances": the distance of a class is the mean distance
        of its J nearest samples (of all of them if it has fewer), and the nearer class
        wins. "votes": the J nearest of all samples vote, as in the paper.
    metric : str or callable, default="euclidean"
        A metric of :func:`sklearn.metrics.pairwise_distances` other than "precomputed".

    Attributes
    ----------
    n_neighbors_ : int
        The chosen J.
    bias_ : float
        The chosen bias; a bias below 1 favours the second class.
    loo_error_ : float
        Leave-one-out error of the training set for the chosen J and bias.
    slope_ : float
        Factor that turns the evidence into log-odds.
    classes_ : ndarray of shape (2,)
        The class labels.
    n_features_in_, feature_names_in_
        Number of features seen in ``fit``, and their names if X has them.

    See Also
    --------
    manyclass.learners.thresholds.ThresholdOptimized : The same idea for a logit.

    Notes
    -----
    Votes and distances are closely related. Among J = 2m - 1 neighbours the second class has
    the majority if and only if its m-th nearest sample, with the bias, is nearer than the m-th
    nearest sample of the first class. But a vote has few outcomes, too few to express the
    confidence that coupling needs, and the paper does not say how its votes became
    probabilities. So the default uses distances: with the distances d_0 and d_1 of the two
    classes and the bias f, the log-odds of the second class are
    a (d_0 - f d_1) / (d_0 + f d_1). The slope a minimises the leave-one-out log-loss of the
    training samples. The mean distance of the J nearest varies less than the distance of the
    J-th. The contrast lies between -1 and 1 and depends only on ratios of distances. If both
    distances are zero, or equal up to rounding, it is 0 and the label is the first class.

    With votes, m of J votes give the second class the share (m + 1) / (J + 2) (Laplace's rule of
    succession). Its log-odds are multiplied by a slope, too. The share alone is not enough: with J
    = 1 it never exceeds 2/3, with J = 25 it reaches 26/27, and coupling would favour classes whose
    pairs have many neighbours. A draw gives half a vote more to the nearer side, so that the label
    is always the more probable class. Samples at the same distance share the remaining places among
    the J. If the sides are still equal, both have probability 1/2 and the label is the first class.

    Two pseudo-samples, a correct and a wrong one, keep the slope finite if all samples are
    correct. With votes they are unanimous; with distances they are spread over the contrasts of
    all samples. If the evidence of all samples has the same size, as with J = 1 and votes, the
    probability of the label is the leave-one-out accuracy, smoothed by Laplace's rule.

    Among candidates with the same leave-one-out error, the bias nearest to 1 is chosen,
    which changes the plain rule least, and then the largest J, whose probabilities vary
    least. The result does not depend on the order of the training samples.

    All candidates are evaluated in one pass over the distances, which are computed for a
    block of rows at a time. Sample weights are not supported: neighbours are counted, and
    "the J nearest" has no meaning for half a sample.

    References
    ----------
    T. Hastie and R. Tibshirani (1998), Classification by pairwise coupling, Annals of
    Statistics 26, 451-471, section 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.learners.pairwise_neighbors import PairwiseNeighbors
    >>> X, y = load_iris(return_X_y=True)
    >>> pair = PairwiseNeighbors().fit(X[50:], y[50:])
    >>> pair.n_neighbors_, round(pair.bias_, 2), pair.loo_error_
    (12, 1.02, 0.03)
    >>> round(CoupledClassifier(PairwiseNeighbors(), combiner="ht").fit(X, y).score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        n_neighbors: int | ArrayLike | None = None,
        biases: float | ArrayLike | None = None,
        *,
        evidence: Literal["distances", "votes"] = "distances",
        metric="euclidean",
    ):
        self.n_neighbors = n_neighbors
        self.biases = biases
        self.evidence = evidence
        self.metric = metric

    def fit(self, X, y):
        """Store the samples, and choose the number of neighbours and the bias.

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
                "metric='precomputed' is not supported: pass the samples as X, and a function of "
                "two samples as metric."
            )
        with unchanged_on_error(self):
            return self._fit(X, y)

    def _fit(self, X, y):
        X = self._check_rows(X, reset=True)
        classes, sides = encode_binary(y, type(self).__name__)
        check_consistent_length(X, sides)
        evidence, n_of_class = self._check_evidence(), np.bincount(sides)
        candidates = self._check_candidates(evidence, evidence.most(n_of_class))
        biases = self._check_biases()
        order = np.argsort(sides, kind="stable")
        X, sides = X[order], sides[order]  # sorted by class, as the compiled functions require
        self._fit_X, self._n_of_class, self.classes_ = X, n_of_class, classes
        errors = np.zeros((len(biases), candidates[-1]), dtype=np.int64)
        left_out = list(self._nearest(X, candidates[-1], leave_out=True))
        for rows, near in left_out:
            evidence.count_errors(near, sides[rows], biases, errors)
        self._choose(errors[:, candidates - 1], candidates, biases)
        self.slope_ = _fit_slope(self._measure(left_out), sides, evidence)
        return self

    def _choose(self, errors, candidates, biases) -> None:
        """Choose the smallest error; among ties the bias nearest to 1, then the largest J."""
        rows, columns = np.nonzero(errors == errors.min())
        size = np.abs(np.log(biases)).round(12)  # f and 1/f are equally far from 1
        best = np.lexsort((biases[rows], -candidates[columns], size[rows]))[0]
        self.bias_ = float(biases[rows[best]])
        self.n_neighbors_ = int(candidates[columns[best]])
        self.loo_error_ = float(errors.min() / self._n_of_class.sum())

    def _log_odds(self, X) -> Floats:
        X = self._check_rows(X, reset=False)
        return self.slope_ * self._measure(self._nearest(X, self.n_neighbors_))

    def _measure(self, blocks: Iterable[tuple[slice, _Near]]) -> Floats:
        """Return the evidence for the second class, for the rows of all blocks."""
        evidence = self._check_evidence()
        return np.concatenate(
            [evidence.measure(near, self.bias_, self.n_neighbors_) for _, near in blocks]
        )

    def _nearest(
        self, X, most: int, leave_out: bool = False, block_entries: int = 2**20
    ) -> Iterator[tuple[slice, _Near]]:
        """Yield blocks of up to ``block_entries`` distances (8 MB) and their nearest samples."""
        largest = 1e300  # such distances can still be added without overflow
        for rows in row_blocks(X.shape[0], self._fit_X.shape[0], block_entries):
            D = self._distances(X[rows])
            if not (D <= largest).all():
                raise ValueError(
                    f"distances of rows {rows.start} to {rows.stop - 1} of X are not finite, or "
                    f"above {largest:g}, with metric={self.metric!r}: scale the features."
                )
            distances = np.empty((len(D), 2, most))
            kept, more = (np.empty((len(D), 2), dtype=np.intp) for _ in range(2))
            own = rows.start if leave_out else -1
            nearest(D, self._n_of_class[0], own, distances, kept, more)
            yield rows, (distances, kept, more)

    def _distances(self, X) -> Floats:
        """Return the distances between these rows and all training samples."""
        if issparse(X) != issparse(self._fit_X):
            X = X.toarray() if issparse(X) else csr_array(X)
        if self.metric == "euclidean" and not issparse(X):
            out = np.empty((len(X), len(self._fit_X)))
            euclidean(X, self._fit_X, out)
            return out
        D = pairwise_distances(X, self._fit_X, metric=self.metric)
        return np.require(D, np.float64, ["C", "W"])

    def _check_rows(self, X, reset: bool):
        options = {"accept_sparse": "csr", "accept_large_sparse": self.metric == "euclidean"}
        X = validate_data(self, in_known_numbers(X), reset=reset, dtype=np.float64, **options)
        # One memory layout, so that functions are compiled only once.
        return without_duplicates(X) if issparse(X) else np.require(X, requirements=["C", "W"])

    def _check_evidence(self) -> _Evidence:
        """Return the object for the name."""
        if not isinstance(self.evidence, str) or self.evidence not in EVIDENCE:
            names = " or ".join(map(repr, EVIDENCE))
            raise ValueError(f"evidence must be {names}, got {quoted(self.evidence)}.")
        return EVIDENCE[self.evidence]

    def _check_candidates(self, evidence: _Evidence, most: int) -> Places:
        """Return the candidates for J that do not exceed the number of samples."""
        if self.n_neighbors is None:
            return np.arange(1, min(evidence.most_by_default, most) + 1)
        given = np.unique(self.n_neighbors)
        if given.dtype.kind not in "iu" or given.size == 0 or given[0] < 1:
            raise ValueError(
                "n_neighbors must be None, a positive integer or a list of them, got "
                f"{self.n_neighbors!r}."
            )
        if given[0] > most:
            raise ValueError(
                f"n_neighbors={self.n_neighbors!r}, but there are only {most} {evidence.among}: "
                "choose fewer neighbours."
            )
        return given[given <= most].astype(np.intp)

    def _check_biases(self) -> Floats:
        """Return the candidates for the bias."""
        if self.biases is None:
            return 1.4 ** (np.arange(-14, 15) / 14)
        given = np.unique(self.biases)
        is_real = given.dtype.kind in "fiu" and given.size > 0
        if not is_real or not (np.isfinite(given) & (given > 0)).all():
            raise ValueError(
                f"biases must be None, a positive number or a list of them, got {self.biases!r}."
            )
        return given.astype(np.float64)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
