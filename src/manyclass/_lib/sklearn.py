"""The one place that imports what scikit-learn does not promise to keep."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing as take_rows
from sklearn.utils._metadata_requests import _routing_enabled as routing_enabled
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import _check_method_params as check_fit_params
from sklearn.utils.validation import _check_sample_weight, validate_data
from sklearn.utils.validation import _num_samples as n_samples

from manyclass._lib.csc import check_columns, is_by_columns

__all__ = [
    "as_indexable",
    "check_any_rows",
    "check_fit_params",
    "check_sample_weight",
    "check_shared_parameters",
    "counts_rows_of_weight",
    "in_known_numbers",
    "is_plain_numeric",
    "n_samples",
    "routing_enabled",
    "take_rows",
]


def check_sample_weight(sample_weight, X, *, allow_all_zero: bool = False) -> NDArray[np.float64]:
    """Return one finite, non-negative weight per row; ones when ``None``.

    Weights that are all zero are an error, unless ``allow_all_zero``.
    """
    if allow_all_zero and sample_weight is not None and not np.any(sample_weight):
        # scikit-learn refuses such weights from 1.9 on: check the shape with ones.
        ones = np.ones(np.shape(sample_weight))[()]
        return np.zeros_like(check_sample_weight(ones, X))
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if len(weights) and not weights.any():
        raise ValueError("sample_weight must have at least one non-zero number, got only zeros.")
    return weights


def check_shared_parameters(estimator, other: Any) -> None:
    """Check those parameters that the class ``other`` has, too, as its ``fit`` does."""
    constraints = other._parameter_constraints
    shared = {name: value for name, value in vars(estimator).items() if name in constraints}
    validate_parameter_constraints(constraints, shared, caller_name=type(estimator).__name__)


def counts_rows_of_weight() -> bool:
    """Tell whether ``support_`` of SVC are places among the rows that have a weight.

    And not among all rows: it is not documented, and may change.
    """
    machine = SVC(kernel="linear").fit([[0.0], [0.0], [1.0]], [0, 0, 1], [0.0, 1.0, 1.0])
    return machine.support_.tolist() == [0, 1]


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


def in_known_numbers(X):
    """Return a sparse matrix of half precision, or of objects, as one of float64.

    scipy computes with neither: it converts them to no other format, and takes no rows. Arrays of
    half precision become float64 in scikit-learn, too.
    """
    if not issparse(X) or not (X.dtype == object or X.dtype.newbyteorder("=") == np.float16):
        return X
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X is a sparse matrix of objects that are not all numbers ({error}): convert it to "
            "float64."
        ) from error


def check_any_rows(
    estimator,
    X,
    reset: bool,
    *,
    sparse: tuple[str, ...] = ("csr",),
    of_any_shape: bool = False,
):
    """Check X for a meta-estimator: shape and names.

    Values, and whatever is not a plain array, are left to the estimator within; with
    ``of_any_shape`` also lists, and arrays of other dimensions. ``sparse`` are the formats that
    are left as they are; others become the first of them.
    """
    X = in_known_numbers(X if of_any_shape else as_indexable(X))
    if of_any_shape and len(getattr(X, "shape", ())) != 2:
        if reset:
            _forget_features(estimator)
            _check_not_empty(estimator, X)
        return X
    if not is_plain_numeric(X):
        if reset:
            _check_not_empty(estimator, X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    if is_by_columns(X):
        check_columns(X)
    return validate_data(
        estimator, X, reset=reset, accept_sparse=sparse, dtype=None, ensure_all_finite=False
    )


def _check_not_empty(estimator, X) -> None:
    """Refuse what has no rows, or no columns, in the words that arrays are refused with."""
    shape = getattr(X, "shape", None) or (n_samples(X),)
    for size, name in zip(shape[:2], ("sample", "feature"), strict=False):
        if isinstance(size, Integral) and size == 0:  # lazy frames do not know theirs
            raise ValueError(
                f"Found array with 0 {name}(s) (shape={tuple(shape)}) while a minimum of 1 is "
                f"required by {type(estimator).__name__}."
            )


def _forget_features(estimator) -> None:
    for name in ("n_features_in_", "feature_names_in_"):
        estimator.__dict__.pop(name, None)
