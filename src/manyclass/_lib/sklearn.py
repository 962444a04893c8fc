"""The only module that imports private functions of scikit-learn."""

from __future__ import annotations

from functools import cache
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import _safe_indexing as safe_indexing
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
    "in_known_numbers",
    "is_as_fitted",
    "is_finite_array",
    "is_plain_labels",
    "is_plain_numeric",
    "n_samples",
    "routing_enabled",
    "safe_indexing",
]


def check_sample_weight(sample_weight, X, *, allow_all_zero: bool = False) -> NDArray[np.float64]:
    """Return one finite, non-negative weight per row; ones when ``None``.

    Weights that are all zero are an error, unless ``allow_all_zero``.
    """
    if allow_all_zero and sample_weight is not None and not np.asarray(sample_weight).any():
        # scikit-learn refuses such weights from 1.9 on: check the shape with ones.
        ones = np.ones(np.shape(sample_weight))[()]
        return np.zeros_like(check_sample_weight(ones, X))
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if len(weights) and not weights.any():
        raise ValueError("sample_weight must have at least one non-zero number, got only zeros.")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total == np.inf:
        raise ValueError(
            f"sample_weight is as large as {weights.max():.2g}: the sum of the weights is "
            "infinite. Scale them to a mean of 1."
        )
    return weights


def check_shared_parameters(estimator, other: Any) -> None:
    """Check the parameters that ``other`` has as well, as the ``fit`` of that class does.

    Its defaults need no check: it would take 2 % of a fit of a hundred rows.
    """
    constraints, defaults = other._parameter_constraints, _defaults(other)
    shared = {name: value for name, value in vars(estimator).items() if name in constraints}
    changed = {
        name: value for name, value in shared.items() if not _is(value, defaults.get(name, ...))
    }
    validate_parameter_constraints(constraints, changed, caller_name=type(estimator).__name__)


@cache
def _defaults(estimator_class: Any) -> dict[str, Any]:
    """Return the default of each parameter."""
    return {name: p.default for name, p in signature(estimator_class).parameters.items()}


def _is(value: Any, default: Any) -> bool:
    """Tell whether a value is the default: None, or a name or number of the same type."""
    return value is default or (type(value) is type(default) and value == default)


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
    """Convert a sparse matrix of half precision, or of objects, to float64.

    scipy cannot compute with either: it cannot convert their format or take rows. scikit-learn
    converts arrays of half precision to float64, too.
    """
    if not issparse(X) or not (X.dtype == object or X.dtype.newbyteorder("=") == np.float16):
        return X
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X is a sparse matrix of objects that are not all numbers ({error}). Convert it to "
            "float64."
        ) from error


def is_as_fitted(estimator, X) -> bool:
    """Whether X is an array of float64 with the columns of ``fit``: a check would find nothing."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == getattr(estimator, "n_features_in_", 0)
        and not hasattr(estimator, "feature_names_in_")
    )


def is_plain_labels(y) -> bool:
    """Whether y is a vector of whole numbers or texts: ``column_or_1d`` would return it."""
    return type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuU"


def is_finite_array(X, dtype) -> bool:
    """Whether X is a matrix of finite numbers of this type: ``check_array`` would return it.

    False as well if their sum is not finite.
    """
    if type(X) is not np.ndarray or X.dtype != dtype or X.ndim != 2 or X.size == 0:
        return False
    with np.errstate(all="ignore"):
        return bool(np.isfinite(X.sum()))


def check_any_rows(
    estimator, X, reset: bool, *, sparse: tuple[str, ...] = ("csr",), of_any_shape: bool = False
):
    """Check the shape and the feature names of X for a meta-estimator.

    The inner estimator checks the values, and everything that is not a plain array; with
    ``of_any_shape`` also lists and arrays that do not have two dimensions. Sparse matrices keep
    their format if it is in ``sparse``; others are converted to the first of these formats.
    """
    X = in_known_numbers(X if of_any_shape else as_indexable(X))
    if of_any_shape and len(getattr(X, "shape", ())) != 2:
        if reset:
            for name in ("n_features_in_", "feature_names_in_"):
                estimator.__dict__.pop(name, None)
            _check_not_empty(estimator, X)
        return X
    # A matrix of numbers would be returned as it is. scikit-learn's checks take as long as a
    # machine.
    is_matrix = type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.size > 0
    if is_matrix or not is_plain_numeric(X):
        if reset:
            _check_not_empty(estimator, X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return X
    if is_by_columns(X):
        check_columns(X)
    options: dict[str, Any] = {"accept_sparse": sparse, "dtype": None, "allow_nd": True}
    options |= {"ensure_all_finite": False, "ensure_min_samples": int(reset)}
    return validate_data(estimator, X, reset=reset, **options)


def _check_not_empty(estimator, X) -> None:
    """Refuse X without rows or columns, with the message that scikit-learn has for arrays."""
    shape = getattr(X, "shape", None) or (n_samples(X),)
    for size, name in zip(shape[:2], ("sample", "feature"), strict=False):
        if isinstance(size, Integral) and size == 0:  # lazy frames do not know their size
            raise ValueError(
                f"Found array with 0 {name}(s) (shape={tuple(shape)}) while a minimum of 1 is "
                f"required by {type(estimator).__name__}."
            )
