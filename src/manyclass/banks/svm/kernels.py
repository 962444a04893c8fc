"""Kernels as objects.

:func:`resolve_kernel` makes the object from the parameters of an estimator, once. Nothing else
compares names of kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy.sparse import issparse

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import quoted
from manyclass._lib.sklearn import n_samples
from manyclass.banks.svm.base_kernel import Kernel
from manyclass.banks.svm.numeric_kernels import LinearKernel, PolyKernel, RBFKernel, SigmoidKernel


@dataclass(frozen=True)
class PrecomputedKernel(Kernel):
    """A matrix that the user has computed: X are rows of it, S are numbers of its columns."""

    numeric = False
    precomputed = True
    for_svc = "precomputed"

    def product(self, row_side, column_side, out=None):
        """Return those columns of the matrix."""
        return np.ascontiguousarray(column_side.prepared[:, row_side.prepared].T)

    def between(self, X, a, b, origin):
        """Return entries of the matrix."""
        return np.asarray(X[np.ix_(b, a)]).T


@dataclass(frozen=True)
class CheckedFunction:
    """A function of two collections of samples. The matrix (X by rows) it returns is checked."""

    function: Callable[..., Any]

    def __call__(self, X, S) -> Floats:
        """Return the kernel matrix, X by rows."""
        values = self.function(X, S)
        values = values.toarray() if issparse(values) else values
        matrix: Floats = np.asarray(values, dtype=np.float64)
        expected = n_samples(X), n_samples(S)
        if matrix.shape != expected:
            raise ValueError(
                f"the kernel matrix of {expected[0]} and {expected[1]} samples has shape "
                f"{matrix.shape}: the kernel must return an array of shape {expected}."
            )
        if not np.isfinite(matrix.sum()) and not np.isfinite(matrix).all():
            raise ValueError(
                "values of the kernel are not finite: scale the features, look for missing "
                "values in X, or repair the kernel."
            )
        return matrix


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A function that the user has written.

    As in scikit-learn, it gets the samples unchanged: numbers, texts, graphs, frames, or lists of
    anything that it can compare.
    """

    numeric = False
    takes_any_rows = True

    function: Callable[..., Any]

    @property
    def for_svc(self) -> CheckedFunction:
        """The function, whose values are checked."""
        return CheckedFunction(self.function)

    def product(self, row_side, column_side, out=None):
        """Call the function, with the samples first."""
        values = self.for_svc(column_side.prepared, row_side.prepared).T
        return np.ascontiguousarray(values, np.float64 if out is None else out.dtype)


KERNELS: dict[str, Any] = {
    "linear": LinearKernel,
    "poly": PolyKernel,
    "rbf": RBFKernel,
    "sigmoid": SigmoidKernel,
    "precomputed": PrecomputedKernel,
}
"""Types of kernels, dataclasses of their parameters, by scikit-learn's names."""


def resolve_kernel(estimator, resolve_gamma: Callable[[str | float], float]) -> Kernel:
    """Return the kernel that ``kernel``, ``gamma``, ``degree`` and ``coef0`` of SVC describe.

    ``resolve_gamma`` is called only if the kernel has a gamma.
    """
    if callable(estimator.kernel):
        return CallableKernel(estimator.kernel)
    if not (isinstance(estimator.kernel, str) and estimator.kernel in KERNELS):
        raise ValueError(
            f"kernel must be one of {', '.join(map(repr, KERNELS))} or a callable, got "
            f"{quoted(estimator.kernel)}."
        )
    kernel = KERNELS[estimator.kernel]
    params = {field.name: getattr(estimator, field.name) for field in fields(kernel)}
    if "gamma" in params:
        params["gamma"] = resolve_gamma(params["gamma"])
    resolved: Kernel = kernel(**params)
    return resolved
