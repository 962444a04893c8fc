"""The one place that imports what scikit-learn does not promise to keep."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils.validation import _check_method_params as check_fit_params
from sklearn.utils.validation import _check_sample_weight, validate_data
from sklearn.utils.validation import _num_samples as n_samples

__all__ = [
    "as_indexable",
    "check_any_rows",
    "check_fit_params",
    "check_sample_weight",
    "is_plain_numeric",
    "n_samples",
    "routing_enabled",
    "take_rows",
]


def check_sample_weight(sample_weight, X) -> NDArray[np.float64]:
    """Return one finite, non-negative weight per row; ones when ``None``."""
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def as_indexable(X):
    """Turn plain sequences into an array; leave arrays, frames and sparse matrices alone."""
    if hasattr(X, "shape"):
        return X
    # An array of str would pad all texts to the longest, and turn numbers among them into texts.
    texts = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], str)
    array = np.array(X, dtype=object if texts else None)
    return np.array(X, dtype=object) if array.dtype.kind in "US" else array


def is_plain_numeric(X) -> bool:
    """Whether X is a sparse matrix or an array of numbers, rather than a frame or texts."""
    return issparse(X) or (isinstance(X, np.ndarray) and X.dtype.kind in "fiubc")


def check_any_rows(estimator, X, reset: bool, sparse: tuple[str, ...] = ("csr",)):
    """Check X for a meta-estimator: shape and names.

    Values, and whatever is not a plain array, are left to the estimator within. ``sparse`` are
    the formats that are left as they are; others become the first of them.
    """
    X = as_indexable(X)
    if not is_plain_numeric(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    return validate_data(
        estimator, X, reset=reset, accept_sparse=sparse, dtype=None, ensure_all_finite=False
    )
