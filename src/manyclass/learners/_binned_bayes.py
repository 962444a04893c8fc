"""Naive Bayes on binned and categorical attributes: estimates, and the base of the classifiers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.sklearn import as_indexable, check_sample_weight
from manyclass.learners._binning import (
    Bins,
    Categories,
    EqualWidth,
    Table,
    categorical_mask,
    is_frame,
    read_table,
)


class Estimates(NamedTuple):
    """Estimates of naive Bayes for K classes, as logarithms."""

    prior: Floats  # log prior of each class, shape (K,)
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


def read_frame(X):
    """Convert a frame to a table, once for all pairs of classes; return any other X unchanged."""
    return read_table(X) if is_frame(X) and 0 not in X.shape else X


class NaiveBayesBase(ClassifierMixin, BaseEstimator):
    """Base of the classifiers with ``n_bins``, ``smoothing`` and ``categorical_features``."""

    n_bins: int
    smoothing: float

    def _learner(self, X, y, sample_weight) -> tuple[NaiveBayes, Floats]:
        """Set the attributes for classes and cells; return naive Bayes and its sample weights."""
        check_count("n_bins", self.n_bins)
        _check_smoothing(self.smoothing)
        check_classification_targets(y)
        table = self._read(X, reset=True)
        y = column_or_1d(y, warn=True)
        check_consistent_length(table.columns[0], y)
        weights = check_sample_weight(sample_weight, table.columns[0])
        classes, indices = np.unique(y, return_inverse=True)
        self._check_classes(classes, np.bincount(indices, weights=weights))
        weighty = weights > 0  # rows of weight 0 are ignored
        if not weighty.all():
            table, indices, weights = table[weighty], indices[weighty], weights[weighty]
        self.classes_ = classes
        self.is_categorical_ = categorical_mask(self.categorical_features, table)
        self.bins_ = Bins.fit(table, self.is_categorical_, self.n_bins)
        one_hot = self.bins_.one_hot(table)
        learner = NaiveBayes(self.bins_, one_hot, indices, len(classes), self.smoothing)
        return learner, weights

    def _check_classes(self, classes: NDArray, shares: NDArray) -> None:
        """Raise a ``ValueError`` for classes that cannot be learned."""

    def _read(self, X, reset: bool) -> Table:
        if isinstance(X, Table):  # from ``read_frame``
            validate_data(self, X.header, reset=reset, skip_check_array=True)
            return X
        X = as_indexable(X)
        if not is_frame(X):
            X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
            return read_table(X)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if 0 in X.shape:
            raise ValueError(
                f"X has {X.shape[0]} sample(s) and {X.shape[1]} feature(s): at least one "
                "of each is needed."
            )
        return read_table(X)

    @property
    def bin_edges_(self) -> list[Floats | None]:
        """Edges of the bins of each numeric attribute; None for categorical ones."""
        return [a.edges if isinstance(a, EqualWidth) else None for a in self.bins_.attributes]

    @property
    def categories_(self) -> list[NDArray | None]:
        """Categories of each categorical attribute; None for numeric ones."""
        return [a.values if isinstance(a, Categories) else None for a in self.bins_.attributes]

    @property
    def cell_offsets_(self) -> Places:
        """First cell of each attribute, and the total number of cells."""
        return self.bins_.offsets

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        chosen = self.categorical_features
        tags.input_tags.categorical = chosen is not None and chosen is not False
        # Strings are accepted, too. But the tag `string` would promise any object.
        return tags


def check_count(name: str, value) -> None:
    """Raise a ``ValueError`` unless ``value`` is a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}.")


def _check_smoothing(value) -> None:
    """Raise a ``ValueError`` unless ``value`` is positive and finite."""
    if not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(
            f"smoothing must be a positive number, got {value!r}: without smoothing, one unseen "
            "value would give a class probability 0."
        )
