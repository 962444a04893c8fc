"""Structured scaling: a temperature, then class and column effects that are shrunk to nothing.

1. Logits are a weighted sum of log-probabilities and, where columns are given, of what they say
   about each class. The few weights are shared by all classes (:mod:`manyclass.scaling.pooling`).
2. A share 1 / (n + 1) of the uniform distribution is mixed in.
3. ``softmax(z + W z + b + B rho)`` with z the log-probabilities (of two classes centred, which
   makes a sigmoid) and rho the log-odds of the columns (:mod:`manyclass.scaling.matrix`). The
   ridge on W and b is that of structured matrix scaling (Berta, Holzmüller, Jordan and Bach 2026).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Code, Floats, Places
from manyclass.scaling.column_ridge import candidates, choose_ridge, ridges
from manyclass.scaling.input_checks import check_evidence, check_probabilities, check_training
from manyclass.scaling.kernels.features import (
    describe_columns,
    describe_sources,
    pool_features,
    scale_rows,
)
from manyclass.scaling.matrix import log_losses, search_matrix
from manyclass.scaling.pooling import RIDGE, fit_weights
from manyclass.scaling.temperature import fit_temperature, floor_of

# Largest k l / n for which columns have effects. A choice: beyond it, the ridge of more than 3
# leaves next to nothing of them, at the price of k l parameters.
MOST_PER_SAMPLE = 10.0
# The search stops when a step gains less than this in log-loss. The minimum is exact without
# columns and in small problems, whatever the order of the classes. In large ones the last digits
# are costly, and the second reaches the log-loss of the minimum on new data.
MATRIX_TOL, COLUMNS_TOL = 1e-15, 1e-7


class StructuredScaling(BaseEstimator):
    """Calibrate class probabilities by a temperature, class effects and column effects.

    With few samples it is a temperature. The more samples there are, the more it corrects: the
    bias of each class, its confidence, and which classes are mistaken for each other. With
    probabilities alone it is structured matrix scaling. The coupled classifiers also pass the
    probabilities of their binary models, which know more about the classes than what coupling
    keeps, and the learner's own probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels.
    weights_ : ndarray of shape (t,)
        Weights of the sources that all classes share: of log p (with p alone it is the power
        of a temperature), of the log-probabilities of ``others``, and if there are columns, of the
        least and the mean log-probability and the mean log-odds of a class's sides; and, with
        others or columns, of the log-prior of the class.
    floor_ : float
        Smaller probabilities p count as this much: the least that ``fit`` saw above 0, but at most
        2^-52 and at least 2^-126.
    share_ : float
        Share of the uniform distribution: 1 / (n + 1).
    log_prior_ : ndarray of shape (k,)
        Logarithms of the class shares.
    matrix_ : ndarray of shape (k + 1, k), or (k + 1 + l, k) with column effects
        W and b, and B, transposed.
    code_ : int8 ndarray of shape (k, l) or None
        The code of the columns.
    columns_ridge_ : float or None
        Ridge of the column effects in units of k l / n, 0.3 or 0.03, or 3 with few samples; None
        if there are none.
    n_others_ : int
        Number of further sources of class probabilities.

    See Also
    --------
    Temperature : A single parameter.

    References
    ----------
    E. Berta, D. Holzmüller, M. I. Jordan and F. Bach (2026), "Structured matrix scaling for
    multi-class calibration", AISTATS.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass.scaling import StructuredScaling
    >>> X, y = load_digits(return_X_y=True)
    >>> p = cross_val_predict(GaussianNB(), X[::2], y[::2], method="predict_proba")
    >>> scaling = StructuredScaling().fit(p, y[::2])
    >>> p_new = GaussianNB().fit(X[::2], y[::2]).predict_proba(X[1::2])
    >>> round(log_loss(y[1::2], p_new), 1)
    4.8
    >>> round(log_loss(y[1::2], scaling.predict_proba(p_new)), 1)
    0.6
    """

    def fit(
        self, p, y, sample_weight=None, *, columns=None, others=(), code: Code | None = None
    ) -> StructuredScaling:
        """Fit the scaling to out-of-sample probabilities.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Class probabilities of samples that the model was not fitted on, such as those of
            :func:`~sklearn.model_selection.cross_val_predict`.
        y : array-like of shape (n,)
            True labels. The columns of p are in their sorted order.
        sample_weight : array-like of shape (n,), optional
            Counts of samples.
        columns : array of shape (n, l), optional
            Probabilities of the positive sides of the binary problems of ``code``.
        others : sequence of arrays of shape (n, k)
            Further class probabilities of the same samples, by other models.
        code : int8 array of shape (k, l), optional
            The code matrix, if there are columns. Columns that no class takes part in, all 0,
            are further evidence: they have effects, but no part in the features of the classes.

        Returns
        -------
        self
        """
        p, y, weights, classes = check_training(p, y, sample_weight)
        columns, others = check_evidence(columns, others, code, p.shape)
        self.fit_checked(p, y, weights, columns=columns, others=others, code=code)
        self.classes_ = classes
        return self

    def fit_checked(
        self,
        p: Floats,
        y: Places,
        weights: Floats,
        *,
        columns=None,
        others=(),
        code=None,
        tol: float = 0.0,
        choose: bool = True,
        n_jobs: int | None = None,
    ) -> StructuredScaling:
        """Do the same without checks; y are class indices.

        The search for the matrix stops when a step gains less than ``tol`` in log-loss, if that is
        sooner than usual. Unless it is to ``choose``, the column effects get the usual ridge.
        Threads, of which there are ``n_jobs``, do not change the result.
        """
        n, k = float(weights.sum()), p.shape[1]
        sizes = np.empty(0) if columns is None else _group_sizes(code)
        kept = k * sizes <= MOST_PER_SAMPLE * n
        evidence = {"columns": columns, "others": others, "code": code}
        X = self.fit_pool(p, y, weights, **evidence, effects=bool(kept.any()))
        tol, self.columns_ridge_ = max(tol, _usual_tol(k * X.size, columns is not None)), None
        sizes, start = sizes[kept], None
        if len(sizes):
            X = X if kept.all() else X[:, np.r_[np.ones(k + 1, dtype=bool), kept]]
            known = candidates(n, self.n_others_ > 0)
            self.columns_ridge_ = known[0]
            if choose:
                self.columns_ridge_, start = choose_ridge(X[:, :k], X, y, weights, sizes, known)
        strengths = ridges(n, k, sizes, self.columns_ridge_)
        found = search_matrix(X[:, :k], X, y, weights, strengths, tol, start, n_jobs).M
        height = len(kept) if len(sizes) else 0
        self.matrix_ = np.zeros((k + 1 + height, k))
        self.matrix_[: k + 1] = found[: k + 1]
        self.matrix_[k + 1 :][kept[:height]] = found[k + 1 :]
        return self

    def fit_pool(
        self,
        p: Floats,
        y: Places,
        weights: Floats,
        *,
        columns=None,
        others=(),
        code=None,
        effects: bool = False,
    ) -> Floats:
        """Fit what all classes share; return what the matrix is multiplied with.

        These are log-probabilities and a constant, with ``effects`` also the columns' log-odds:
        an array of shape (n, k + 1) or (n, k + 1 + l), whose columns are contiguous.
        """
        self.classes_ = np.arange(p.shape[1])
        n, k = float(weights.sum()), p.shape[1]
        self.code_ = None if columns is None else code
        self._sides = rows_of_code(self.code_, k)
        self.n_others_, self.share_ = len(others), 1.0 / (n + 1.0)
        counts = np.bincount(y, weights=weights, minlength=k)
        self.log_prior_ = np.log((counts + 1.0) / (n + k))
        self.floor_ = floor_of(p[weights > 0.0])
        X = np.empty((k + 1 + (columns.shape[1] if effects else 0), len(p))).T
        features = self._features(p, columns, others, X[:, k + 1 :])
        if len(features) == 1:
            self.weights_ = np.array([fit_temperature(p, y, weights, self.floor_)])
        else:
            self.weights_ = fit_weights(features.transpose(0, 2, 1), y, weights, RIDGE)
        pool_features(features, self.weights_, self.share_, X[:, :k].T)
        X[:, k] = 1.0
        return X

    def pooled_losses(self, p: Floats, y: Places, weights: Floats, **evidence) -> Floats:
        """Return the log-loss of each sample after the first stage: five or six parameters."""
        z = self.fit_pool(p, y, weights, **evidence)[:, : p.shape[1]]
        return log_losses(z, y)

    def predict_proba(self, p, *, columns=None, others=()) -> Floats:
        """Return scaled probabilities.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Class probabilities.
        columns : array of shape (n, l), optional
            Probabilities of the positive sides, if ``fit`` had them.
        others : sequence of arrays of shape (n, k)
            Further class probabilities, as many as in ``fit``.

        Returns
        -------
        ndarray of shape (n, k)
        """
        check_is_fitted(self)
        p = check_probabilities(p, len(self.classes_))
        if (columns is None) != (self.code_ is None) or len(others) != self.n_others_:
            raise ValueError(
                "predict_proba needs columns and others where fit had them: fit had "
                f"{'no' if self.code_ is None else 'some'} columns and {self.n_others_} others."
            )
        columns, others = check_evidence(columns, others, self.code_, p.shape)
        return self.scale(p, columns=columns, others=others)

    def scale(self, p: Floats, *, columns=None, others=()) -> Floats:
        """Do the same without checks."""
        columns = np.empty((len(p), 0)) if columns is None else np.ascontiguousarray(columns)
        evidence, out = (_stacked(p, others), columns, *self._sides), np.empty(p.shape)
        pool = self.weights_, self.log_prior_, self.floor_, self.share_
        scale_rows(*evidence, *pool, self.matrix_, out)
        return out

    def _features(self, p: Floats, columns, others, log_odds: Floats) -> Floats:
        """Return the sources (t, k, n), and write the columns' log-odds.

        ``log_odds`` (n, l) may have no columns.
        """
        n, k = p.shape
        width = 0 if columns is None else 3
        alone = width == 0 and len(others) == 0
        features = np.empty((1 if alone else 2 + len(others) + width, k, n))
        sources = _stacked(p, others)
        describe_sources(sources, self.floor_, self.share_, features)
        if not alone:
            features[-1] = self.log_prior_[:, None]
        if columns is not None:
            of_columns = features[len(sources) : -1].transpose(0, 2, 1)
            r = np.ascontiguousarray(columns)
            describe_columns(r, *self._sides, log_odds, of_columns)
        return features


def _usual_tol(n_products: int, with_columns: bool, few: int = 1_000_000) -> float:
    """Return the limit of a step's gain; ``few`` products make a problem small (a choice)."""
    return COLUMNS_TOL if with_columns and n_products > few else MATRIX_TOL


def _stacked(p: Floats, others) -> Floats:
    """Return the class probabilities of all sources, (m, n, k)."""
    return np.stack([p, *others]) if others else np.ascontiguousarray(p)[None]


def rows_of_code(code: Code | None, k: int) -> tuple[NDArray[Any], ...]:
    """Return the rows of the code without zeros: where each begins, columns and sides (CSR)."""
    code = np.empty((k, 0), dtype=np.int8) if code is None else code
    rows, columns = np.nonzero(code)
    start = np.searchsorted(rows, np.arange(k + 1)).astype(np.int32)
    return start, columns.astype(np.int32), code[rows, columns]


def _group_sizes(code: Code) -> Places:
    """Return for each column how many are of its kind: of the code, or further evidence."""
    of_code = code.any(axis=0)
    return np.where(of_code, of_code.sum(), (~of_code).sum())


def rows_for_scaling(k: int, n_columns: int) -> int:
    """Return the number of rows that the scaling is fitted on.

    5000. Fewer if column effects need more than 25 million products for each step (2958 for
    one-vs-one with 26 classes), but at least 2000. Still fewer if that is more than ten million
    scores, but at least 1000.
    """
    by_time = max(2000, 25_000_000 // (k * n_columns))
    by_memory = max(1000, 10_000_000 // max(n_columns, 4 * k))
    return min(5000, by_time, by_memory)
