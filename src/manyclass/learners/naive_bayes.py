"""Naive Bayes on binned attributes: of many classes, and boosted of two (Elkan 1997)."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from manyclass._sklearn import as_indexable, check_sample_weight
from manyclass.learners._binning import (
    Bins,
    Categories,
    EqualWidth,
    Table,
    categorical_mask,
    is_frame,
    read_table,
)
from manyclass.learners._naive_bayes_kernel import NaiveBayes, boost

__all__ = ["BinnedNaiveBayes", "BoostedNaiveBayes"]

EVEN = 4 * np.finfo(np.float64).eps  # log-odds that no probability can tell from 0

Array = NDArray[np.float64]


class _OnCells(ClassifierMixin, BaseEstimator):
    """What both classifiers share: the way from X and y to cells, classes and weights.

    Subclasses have the parameters ``n_bins``, ``smoothing`` and
    ``categorical_features``.
    """

    n_bins: int
    smoothing: float

    def _learner(self, X, y, sample_weight) -> tuple[NaiveBayes, Array]:
        """Set what describes classes and cells; return naive Bayes, and weights for it."""
        _check_count("n_bins", self.n_bins)
        _check_smoothing(self.smoothing)
        check_classification_targets(y)
        table = self._read(X, reset=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(table.columns[0], y)
        weights = check_sample_weight(sample_weight, table.columns[0])
        _check_total(weights)
        classes, indices = np.unique(y, return_inverse=True)
        self._check_classes(classes, np.bincount(indices, weights=weights))
        weighty = weights > 0  # a row of no weight is as if it were not there
        if not weighty.all():
            table, indices, weights = table.take(weighty), indices[weighty], weights[weighty]
        self.classes_ = classes
        self.is_categorical_ = categorical_mask(self.categorical_features, table)
        self.bins_ = Bins.fit(table, self.is_categorical_, self.n_bins)
        one_hot = self.bins_.one_hot(table)
        learner = NaiveBayes(self.bins_, one_hot, indices, len(classes), self.smoothing)
        return learner, weights

    def _check_classes(self, classes: NDArray, shares: NDArray) -> None:
        """Raise a ``ValueError`` for classes that cannot be learned."""

    def _read(self, X, reset: bool) -> Table:
        X = as_indexable(X)
        if not is_frame(X):
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
            return read_table(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(
                f"X has {X.shape[0]} sample(s) and {X.shape[1]} feature(s): at least one of each "
                "is needed."
            )
        return read_table(X)

    @property
    def bin_edges_(self) -> list[Array | None]:
        """Edges of the bins of each numeric attribute; None for categorical ones."""
        return [a.edges if isinstance(a, EqualWidth) else None for a in self.bins_.attributes]

    @property
    def categories_(self) -> list[NDArray | None]:
        """Categories of each categorical attribute; None for numeric ones."""
        return [a.values if isinstance(a, Categories) else None for a in self.bins_.attributes]

    @property
    def cell_offsets_(self) -> NDArray[np.intp]:
        """First cell of each attribute, and the number of all cells."""
        return self.bins_.offsets

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.categorical_features is not None
        # Strings are taken too. The tag `string` would promise that any object is.
        return tags


def _check_count(name: str, value) -> None:
    """Raise a ``ValueError`` unless ``value`` is a whole number from 1 on."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")


def _check_smoothing(value) -> None:
    """Raise a ``ValueError`` unless ``value`` is positive and finite."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(
            f"smoothing must be a positive number, got {value!r}: without any, one unseen value "
            "would make a class impossible."
        )


def _check_total(weights: Array) -> None:
    """Raise a ``ValueError`` unless the weights have a positive, finite sum."""
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not 0 < total < np.inf:
        raise ValueError(f"sample_weight sums to {total}: a positive, finite sum is needed.")


class BinnedNaiveBayes(_OnCells):
    """Naive Bayes for any number of classes, on binned and categorical attributes.

    The share of cell v (a bin or a category) of attribute j in class c is estimated as
    (w + s) / (W + s V): w is the weight of the training samples of c in the cell, W that
    of the samples of c whose attribute j is known, V the number of cells of j, and s
    the smoothing. Classes have their share of the weight, unsmoothed.

    Parameters
    ----------
    n_bins : int, default=10
        Bins of equal width for each numeric attribute, between the least and the
        greatest value seen in ``fit``. Values outside belong to the first or the last.
    smoothing : float, default=1.0
        What is added to the weight of each cell, 1 being one sample (Laplace).
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns hold categories, each of which is a cell of its own.

        - "from_dtype": columns of type category, string or bool; columns of Python
          objects, unless all values of the training set that are not missing are
          numbers.
        - array-like: a mask of one bool per column, or the indices of columns, or
          their names where X has them.
        - ``None``: none; all must be numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The class labels.
    class_log_prior_ : ndarray of shape (k,)
        Logarithm of the share of each class.
    feature_log_prob_ : ndarray of shape (k, cells)
        Logarithm of the estimates; attribute j has the columns from
        ``cell_offsets_[j]`` to ``cell_offsets_[j + 1]``.
    cell_offsets_ : ndarray of shape (n_features + 1,)
        First cell of each attribute, and the number of all cells.
    bin_edges_ : list of n_features arrays or None
        Edges of the bins; None for a categorical attribute. A constant has one bin,
        and an attribute that is always missing none.
    categories_ : list of n_features arrays or None
        Categories seen; None for a numeric attribute.
    is_categorical_ : bool ndarray of shape (n_features,)
        Which columns hold categories.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, where X has them.

    See Also
    --------
    BoostedNaiveBayes : The same for two classes, boosted.

    Notes
    -----
    Missing values (NaN, None, pandas' NA) are ignored: the attribute adds nothing for
    that sample, in ``fit`` as in prediction. So are categories that were not
    seen in ``fit``.

    References
    ----------
    B. Zadrozny (2001), "Reducing multiclass to binary by coupling probability
    estimates", section 5: the baseline of tables 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.learners.naive_bayes import BinnedNaiveBayes
    >>> X = np.array([["red", 1.0], ["red", 2.0], ["blue", 2.5], [None, 9.0]], dtype=object)
    >>> model = BinnedNaiveBayes(n_bins=2).fit(X, ["a", "a", "b", "c"])
    >>> model.predict_proba([["blue", None], ["green", 8.0]]).round(2)
    array([[0.3 , 0.4 , 0.3 ],
           [0.33, 0.22, 0.44]])
    """

    def __init__(
        self,
        n_bins: int = 10,
        smoothing: float = 1.0,
        *,
        categorical_features="from_dtype",
    ):
        self.n_bins = n_bins
        self.smoothing = smoothing
        self.categorical_features = categorical_features

    def fit(self, X, y, sample_weight=None):
        """Fit.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            Numbers and categories.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weights; a weight of 2 is as good as two samples.

        Returns
        -------
        self
        """
        learner, weights = self._learner(X, y, sample_weight)
        self.class_log_prior_, self.feature_log_prob_ = learner.fit(weights)
        return self

    def _joint_log_likelihood(self, X) -> Array:
        check_is_fitted(self)
        table = self._read(X, reset=False)
        return self.class_log_prior_ + self.bins_.dot(table, self.feature_log_prob_.T)

    def predict(self, X):
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        winners = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winners]

    def predict_proba(self, X):
        """Return class probabilities.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
            Columns in the order of ``classes_``.
        """
        return softmax(self._joint_log_likelihood(X), axis=1)

    def predict_log_proba(self, X):
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k)
        """
        return log_softmax(self._joint_log_likelihood(X), axis=1)


class BoostedNaiveBayes(_OnCells):
    """Boosted naive Bayes: a classifier of two classes, on binned and categorical attributes.

    Each round fits naive Bayes (as :class:`BinnedNaiveBayes` does) to weighted samples;
    its probability h of the second class errs by |y - h|. With e the mean error
    under the weights and b = e / (1 - e), the weights are multiplied by
    b^(1 - |y - h|) for the next round, and scaled to the sum they had at first. The
    answer of all rounds is 1 / (1 + prod_t b_t^(2 h_t - 1)).

    Parameters
    ----------
    n_rounds : int, default=10
        Rounds of boosting. It stops before a round with e >= 1/2, and after one with
        e = 0. If the first has e >= 1/2, the answer is its h: plain naive Bayes.
    n_bins : int, default=10
        Bins of equal width for each numeric attribute, between the least and the
        greatest value seen in ``fit``. Values outside belong to the first or the last.
    smoothing : float, default=1.0
        What is added to the weight of each cell, 1 being one sample (Laplace).
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns hold categories, each of which is a cell of its own.

        - "from_dtype": columns of type category, string or bool; columns of Python
          objects, unless all values of the training set that are not missing are
          numbers.
        - array-like: a mask of one bool per column, or the indices of columns, or
          their names where X has them.
        - ``None``: none; all must be numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The class labels.
    n_rounds_ : int
        Number of rounds kept.
    betas_ : ndarray of shape (n_rounds_,)
        b of each round, less than 1 but for a first round with e >= 1/2.
    class_log_prior_ : ndarray of shape (n_rounds_, 2)
        Logarithm of the share of each class in the weights of each round.
    feature_log_prob_ : ndarray of shape (n_rounds_, 2, cells)
        Logarithm of the estimates; attribute j has those from
        ``cell_offsets_[j]`` to ``cell_offsets_[j + 1]``.
    cell_offsets_ : ndarray of shape (n_features + 1,)
        First cell of each attribute, and the number of all cells.
    bin_edges_ : list of n_features arrays or None
        Edges of the bins; None for a categorical attribute. A constant has one bin,
        and an attribute that is always missing none.
    categories_ : list of n_features arrays or None
        Categories seen; None for a numeric attribute.
    is_categorical_ : bool ndarray of shape (n_features,)
        Which columns hold categories.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, where X has them.

    See Also
    --------
    BinnedNaiveBayes : Without boosting, for any number of classes.
    manyclass.CoupledClassifier : Makes many classes of two.

    Notes
    -----
    Missing values (NaN, None, pandas' NA) are ignored: the attribute adds nothing for
    that sample, in ``fit`` as in prediction. So are categories that were not
    seen in ``fit``.

    The weights of a round sum to that of ``sample_weight``, or to the number of samples,
    and not to 1: smoothing weighs the same in every round and against any number of samples.

    References
    ----------
    C. Elkan (1997), "Boosting and naive Bayesian learning", report CS97-557,
    University of California, San Diego.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.learners.naive_bayes import BoostedNaiveBayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedNaiveBayes().fit(X, y == 1)
    >>> model.predict_proba(X[[0, 70, 77]]).round(2)
    array([[1.  , 0.  ],
           [0.71, 0.29],
           [0.04, 0.96]])
    >>> CoupledClassifier(model, combiner="ht").fit(X, y).predict_proba(X[[0, 70, 77]]).round(2)
    array([[0.99, 0.01, 0.  ],
           [0.  , 0.56, 0.43],
           [0.  , 0.61, 0.38]])
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
        """Fit.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)
            Numbers and categories.
        y : array-like of shape (n,)
            Labels of two classes.
        sample_weight : array-like of shape (n,), optional
            Weights in the first round; a weight of 2 is as good as two samples.

        Returns
        -------
        self
        """
        _check_count("n_rounds", self.n_rounds)
        rounds = boost(*self._learner(X, y, sample_weight), self.n_rounds)
        self.n_rounds_ = len(rounds)
        self.betas_ = np.array([one.beta for one in rounds])
        self.class_log_prior_ = np.array([one.estimates.prior for one in rounds])
        self.feature_log_prob_ = np.array([one.estimates.conditional for one in rounds])
        return self

    def _check_classes(self, classes: NDArray, shares: NDArray) -> None:
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"y has {len(classes)} classes. Use CoupledClassifier(BoostedNaiveBayes())."
            )
        present = classes[shares > 0]
        if len(present) < 2:
            lacking = "" if len(classes) < 2 else " with samples of positive weight"
            raise ValueError(
                f"y has only one class{lacking}, {present[0]}: there is nothing to tell apart. "
                "Pass samples of two classes."
            )

    def decision_function(self, X):
        """Return the log-odds of the second class.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        table = self._read(X, reset=False)
        evidence = np.diff(self.feature_log_prob_, axis=1)[:, 0].T
        log_odds = np.diff(self.class_log_prior_)[:, 0] + self.bins_.dot(table, evidence)
        if self.betas_[0] >= 1:
            total = log_odds[:, 0]
        else:  # (2 rho - 1) sum_t log(1/b_t) = sum_t (2 h_t - 1) log(1/b_t), 2 h - 1 = tanh
            total = -(np.tanh(log_odds / 2) * np.log(self.betas_)).sum(axis=1)
        return np.where(np.abs(total) < EVEN, 0.0, total)

    def predict(self, X):
        """Return the more probable class of each row, the first where both are.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        winners = (self.decision_function(X) > 0).astype(np.intp)
        return self.classes_[winners]

    def predict_proba(self, X):
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, 2)
            Columns in the order of ``classes_``.
        """
        log_odds = self.decision_function(X)
        return np.column_stack([expit(-log_odds), expit(log_odds)])

    def predict_log_proba(self, X):
        """Return the logarithm of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, 2)
        """
        log_odds = self.decision_function(X)
        return np.column_stack([log_expit(-log_odds), log_expit(log_odds)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
