"""Means of the classes, in a space where differences between them can be compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array
from sklearn.utils.extmath import randomized_svd, safe_sparse_dot

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.rows import take_rows


def class_means(
    X: Any,
    y: Places,
    weights: Floats,
    k: int,
    rng: np.random.RandomState,
    most: int = 128,
    rows: int = 20_000,
) -> Floats:
    """Return class means (k, q), such that rows of one class have about unit covariance.

    ``weights`` (n,) are counts of rows; every class has some.
    More than ``most`` features are replaced by as many principal axes of the class means. The
    covariance within classes is that of at most this many ``rows``, shrunk as if as many rows as
    features had uncorrelated features.
    """
    X = _numbers(X)
    counts = np.bincount(y, weights=weights, minlength=k)
    members = csr_array((weights, (y, np.arange(len(y)))), shape=(k, len(y)))
    means = members @ X
    means = (
        means.multiply(1.0 / counts[:, None]).tocsr()
        if issparse(means)
        else (means / counts[:, None])
    )
    if X.shape[1] > most:
        axes = randomized_svd(means, min(most, k, X.shape[1]), random_state=rng)[2].T
        X, means = safe_sparse_dot(X, axes), safe_sparse_dot(means, axes)
    means = means.toarray() if issparse(means) else np.asarray(means)
    chosen = np.flatnonzero(weights > 0)
    if len(chosen) > rows:
        chosen = rng.choice(chosen, rows, replace=False)
    part = take_rows(X, chosen)
    part = part.toarray() if issparse(part) else part
    residuals = (part - means[y[chosen]]) * np.sqrt(weights[chosen])[:, None]
    return _whitened(means, residuals, max(1.0, weights[chosen].sum() - k))


def _whitened(means: Floats, residuals: Floats, n: float) -> Floats:
    """Return the means in units of the residuals' covariance; ``n`` is its degrees of freedom."""
    # Squares of large or small numbers would leave the range of float64; powers of two are exact.
    size = np.maximum(abs(means).max(axis=0), abs(residuals).max(axis=0))
    exponent = -np.frexp(size)[1]
    means, residuals = np.ldexp(means, exponent), np.ldexp(residuals, exponent)
    means = means - means.mean(axis=0)
    within = np.sqrt((residuals**2).sum(axis=0) / n)
    between = means.std(axis=0)
    scale = np.where(within > 0.0, within, np.where(between > 0.0, between, 1.0))
    residuals = residuals / scale
    d = len(scale)
    correlation = (residuals.T @ residuals + d * np.eye(d)) / (n + d)
    factor = cholesky(correlation, lower=True)
    return np.ascontiguousarray(solve_triangular(factor, (means / scale).T, lower=True).T)


def _numbers(X: Any) -> Any:
    """Return X as a float array or CSR matrix, with column means in place of NaN."""
    try:
        X = check_array(
            X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan", copy=None
        )
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"class trees are built from numeric features, but X has others ({error}). Encode "
            "X, or pass another code, such as a Hierarchy or a matrix."
        ) from error
    values = X.data if issparse(X) else X
    if np.isnan(values).any():
        if issparse(X):
            X = X.copy()
            X.data[np.isnan(X.data)] = 0.0
        else:
            present = np.where(np.isnan(X), 0.0, X).sum(axis=0)
            known = np.maximum((~np.isnan(X)).sum(axis=0), 1)
            X = np.where(np.isnan(X), present / known, X)
    return X
