"""Naive Bayes on binned attributes, for any number of classes."""

from __future__ import annotations

from scipy.special import log_softmax, softmax
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats
from manyclass._lib.unchanged_on_error import unchanged_on_error
from manyclass.learners._binned_bayes import NaiveBayesBase, read_frame


class BinnedNaiveBayes(NaiveBayesBase):
    """Naive Bayes for any number of classes, on binned and categorical attributes.

    The probability of cell v (a bin or a category) of attribute j in class c is estimated as
    (w + s) / (W + s V). Here w is the weight of the training samples of c in the cell, W the
    weight of the samples of c whose attribute j is known, V the number of cells of j, and s the
    smoothing. Class priors are shares of the weight, without smoothing.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins of equal width for each numeric attribute, between the minimum and
        the maximum in ``fit``. Values outside belong to the first or the last bin.
    smoothing : float, default=1.0
        Added to the weight of each cell; 1 counts as one sample (Laplace smoothing).
    categorical_features : "from_dtype", array-like, bool or None, default="from_dtype"
        Which columns are categorical. Each category is a cell.

        - "from_dtype": columns of dtype category, string or bool, and columns of Python
          objects unless all non-missing training values are numbers.
        - array-like: a mask with one bool per column, or indices of columns, or
          their names if X has names.
        - ``True``: all columns; ``None`` or ``False``: no column, all must be numbers.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The class labels.
    class_log_prior_ : ndarray of shape (k,)
        Logarithm of the prior of each class.
    feature_log_prob_ : ndarray of shape (k, cells)
        Logarithm of the estimates. The columns of attribute j are
        ``cell_offsets_[j]`` to ``cell_offsets_[j + 1]``.
    cell_offsets_ : ndarray of shape (n_features + 1,)
        First cell of each attribute, and the total number of cells.
    bin_edges_ : list of n_features arrays or None
        Edges of the bins; None for a categorical attribute. A constant attribute has one
        bin, and an attribute that is always missing has none.
    categories_ : list of n_features arrays or None
        Categories seen; None for a numeric attribute.
    is_categorical_ : bool ndarray of shape (n_features,)
        Which columns are categorical.
    n_features_in_, feature_names_in_
        Number of features seen in ``fit``, and their names if X has them.

    See Also
    --------
    BoostedNaiveBayes : The same for two classes, boosted.

    Notes
    -----
    Missing values (NaN, None, pandas' NA) are ignored in ``fit`` and in prediction: the
    attribute adds nothing for that sample. So are categories that did not occur in ``fit``. If
    a file marks missing values in another way, convert them when reading, as in
    ``pandas.read_csv(path, na_values="?")``; otherwise the mark is a category.

    References
    ----------
    B. Zadrozny (2001), "Reducing multiclass to binary by coupling probability
    estimates", section 5: the baseline in tables 2 and 3.

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
        self, n_bins: int = 10, smoothing: float = 1.0, *, categorical_features="from_dtype"
    ):
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
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weights; a weight of 2 has the effect of two samples.

        Returns
        -------
        self
        """
        with unchanged_on_error(self):
            learner, weights = self._learner(X, y, sample_weight)
            self.class_log_prior_, self.feature_log_prob_ = learner.fit(weights)
        return self

    def _joint_log_likelihood(self, X) -> Floats:
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

    def __manyclass_rows__(self, X):
        return read_frame(X)
