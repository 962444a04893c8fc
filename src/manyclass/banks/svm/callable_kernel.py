"""Kernels that are functions of one's own, of samples of any type.

A function is given the samples as they are: numbers, texts, graphs, frames or lists of
whatever it can compare, as scikit-learn's machines do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.svm import SVC, NuSVC

from manyclass._lib.sklearn import n_samples

Values = NDArray[np.float64]


def takes_any_rows(estimator) -> bool:
    """Whether samples may be of any type: all that reads them is a function of one's own."""
    return type(estimator) in (SVC, NuSVC) and callable(estimator.kernel)


@dataclass(frozen=True)
class OwnKernel:
    """A function of two collections of samples, whose values are checked.

    Parameters
    ----------
    function : callable
        Returns the kernel matrix, with a row for every sample of the first collection and
        a column for every sample of the second.

    Examples
    --------
    >>> from manyclass.banks.svm.callable_kernel import OwnKernel
    >>> shared = OwnKernel(lambda A, B: [[len(set(a) & set(b)) for b in B] for a in A])
    >>> shared(["abc", "bcd"], ["bc", "d", "cda"])
    array([[2., 0., 2.],
           [2., 1., 2.]])
    """

    function: Callable[..., Any]

    def __call__(self, X, S) -> Values:
        """Return the kernel matrix, X by rows."""
        values = self.function(X, S)
        values = values.toarray() if issparse(values) else values
        matrix: Values = np.asarray(values, dtype=np.float64)
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
