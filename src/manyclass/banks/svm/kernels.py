"""Kernel functions over blocks of rows: one matrix product and one pass over the block."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import row_norms

from manyclass._lib.compiled.blocks import exponentiate, measure_far, measure_far_sparse
from manyclass._lib.messages import quoted
from manyclass._lib.rows import without_duplicates
from manyclass.banks.svm.callable_kernel import OwnKernel

# gamma (|s|^2 + |x|^2), from where on rounding is seen in the tenth digit of sums of kernels.
FAR = 64.0
ENOUGH = 1000  # samples for a median
MEDIAN_ENTRIES = 2**17  # of them at a time: 1 MB
LEAST = -45.0  # exponents below add nothing: their exponential is 3e-20


class Side(NamedTuple):
    """Samples on one side of a kernel matrix, with what depends on them alone."""

    prepared: Any
    """What is multiplied with the other side, if it is numbers."""
    samples: Any
    """The samples as they were."""
    squares: NDArray[np.floating] | None = None
    """gamma |x|^2, which distances are taken from, for rbf."""
    farthest: float = 0.0
    """The largest of them."""


def resolve_gamma(gamma: str | float, X) -> float:
    """Return the number that scikit-learn's "scale" and "auto" stand for."""
    if gamma == "scale":
        if issparse(X):
            variance = _sparse_variance(X)
        else:
            variance = X.var()
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if isinstance(gamma, str):
        raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {quoted(gamma)}.")
    return float(gamma)


def scale_gamma(gamma: str | float, X, weights: NDArray[np.float64]) -> float:
    """Return gamma as a number; "scale" is told by the weighted variance of X.

    So that a weight of 2 is a copy, and one of 0 no sample at all.
    """
    if gamma == "scale" and not issparse(X) and X.min() == X.max():
        return 1.0  # rounding of the mean would tell of a variance
    if gamma != "scale" or (weights == weights[0]).all():
        return resolve_gamma(gamma, X)
    share = weights / weights.sum()
    mean = float(share @ np.asarray(X.mean(axis=1)).ravel())
    if issparse(X):
        variance = float(share @ np.asarray(X.multiply(X).mean(axis=1)).ravel()) - mean**2
    else:
        variance = float(share @ ((X - mean) ** 2).mean(axis=1))
    return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0


def _sparse_variance(X) -> np.float64:
    """Return ``X.multiply(X).mean() - X.mean() ** 2``, to the last bit but without copies of X.

    X is stored by rows, with one entry for a place.
    """
    values, share = X.data[: X.nnz], 1.0 / math.prod(X.shape)
    with np.errstate(over="ignore"):
        squares = values * values
    if not squares.all():
        squares = squares[squares != 0.0]
    squares *= share
    mean_square = squares.sum()
    del squares
    return mean_square - (values * share).sum() ** 2


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters, by scikit-learn's names.

    K(S, X) is ``product(rows(S), columns(X))``: what depends on one side alone is
    computed once. Of a precomputed kernel S are the column numbers in X.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
    gamma, degree, coef0 : as in :class:`~sklearn.svm.SVC`
    """

    name: str | Callable[..., NDArray[Any]]
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __call__(self, S, X) -> NDArray[np.floating]:
        """Return the kernel matrix, S by rows."""
        origin = self.origin(S)
        return self.product(self.rows(S, origin), self.columns(X, origin))

    def product(
        self, row_side: Side, column_side: Side, out: NDArray[np.floating] | None = None
    ) -> NDArray[np.floating]:
        """Return the kernel matrix from its prepared sides, in C order.

        ``out`` is a flat buffer that dense products are written into.
        """
        rows, columns = row_side.prepared, column_side.prepared
        if callable(self.name):
            values = OwnKernel(self.name)(columns, rows).T
            return np.ascontiguousarray(values, np.float64 if out is None else out.dtype)
        if self.name == "precomputed":
            return np.ascontiguousarray(columns[:, rows].T)
        if issparse(rows) or issparse(columns):
            G = rows @ columns
            G = np.ascontiguousarray(G.toarray() if issparse(G) else G)
        elif out is None:
            G = np.dot(rows, columns)
        else:
            shape = rows.shape[0], columns.shape[1]
            G = np.dot(rows, columns, out=out[: shape[0] * shape[1]].reshape(shape))
        if row_side.farthest + column_side.farthest > FAR and G.dtype == np.float64:
            self._measure_far(G, row_side, column_side)
        return self._finish(G)

    def _measure_far(self, G: NDArray, row_side: Side, column_side: Side) -> None:
        """Take distances from differences where they are small next to what they are lost in."""
        S, X = row_side.samples, column_side.samples
        squares = row_side.squares, column_side.squares
        limits = FAR, LEAST, (S.shape[1] + 8) * np.finfo(np.float64).eps
        if issparse(S) or issparse(X):
            parts = (part for side in (S, X) for part in _sorted_parts(side))
            measure_far_sparse(G, *parts, self.gamma, *squares, limits)
        else:
            S, X = (np.require(side, np.float64, ["C", "W"]) for side in (S, X))
            measure_far(G, S, X, self.gamma, *squares, *limits)

    def origin(self, S, places: NDArray[np.intp] | None = None):
        """Where to measure from: distances do not change with it, but their cancellation does.

        The median, and not the mean, which a single sample far away would move far from all.
        ``places`` are those of the rows of S that count; all of them when omitted.
        """
        if self.name != "rbf" or issparse(S):
            return None
        places = np.arange(S.shape[0]) if places is None else places
        some = places[:: 1 + len(places) // ENOUGH]
        width = max(1, MEDIAN_ENTRIES // len(some))  # not all features at once
        parts = [slice(a, a + width) for a in range(0, S.shape[1], width)]
        return np.concatenate([np.median(S[some, part], axis=0) for part in parts])

    def rows(self, S, origin) -> Side:
        """Prepare support vectors: for rbf (2 gamma s, -gamma |s|^2, -gamma)."""
        if self.name != "rbf":
            return Side(S, S)
        if issparse(S):
            squares = row_norms(S, squared=True)
            parts = 2.0 * self.gamma * S.data[: S.nnz], -self.gamma * squares, -self.gamma
            return self._side(_with_two_columns(S, *parts), S, squares)
        rows = np.empty((S.shape[0], S.shape[1] + 2), dtype=S.dtype)
        centred = S - (0.0 if origin is None else origin)
        np.multiply(centred, 2.0 * self.gamma, out=rows[:, :-2])
        squares = row_norms(centred, squared=True)
        rows[:, -2] = -self.gamma * squares
        rows[:, -1] = -self.gamma
        return self._side(rows, S, squares)

    def columns(self, X, origin) -> Side:
        """Prepare a block of samples: for rbf (x, 1, |x|^2)'."""
        if callable(self.name) or self.name == "precomputed":
            return Side(X, X)
        if self.name != "rbf":
            return Side(_transposed(X), X)
        if issparse(X):
            squares = row_norms(X, squared=True)
            wide = _with_two_columns(X, X.data[: X.nnz], 1.0, squares)
            return self._side(_transposed(wide), X, squares)
        columns = np.empty((X.shape[1] + 2, X.shape[0]), dtype=X.dtype)
        np.subtract(X.T, 0.0 if origin is None else origin[:, None], out=columns[:-2])
        columns[-2] = 1.0
        np.einsum("ij,ij->j", columns[:-2], columns[:-2], out=columns[-1])
        return self._side(columns, X, columns[-1])

    def _side(self, prepared, samples, squares: NDArray[np.floating]) -> Side:
        squares = self.gamma * squares
        return Side(prepared, samples, squares, float(squares.max(initial=0.0)))

    def _finish(self, G: NDArray) -> NDArray:
        if self.name == "rbf":
            if G.dtype == np.float64:
                exponentiate(G.reshape(-1))
                return G
            return np.exp(G, out=G)
        if self.name == "linear":
            return G
        G *= self.gamma
        G += self.coef0
        return np.tanh(G, out=G) if self.name == "sigmoid" else _power(G, self.degree)


def _transposed(X):
    """Return the transposed matrix, of a sparse one stored by rows: it is multiplied often."""
    return X.T.tocsr() if issparse(X) else X.T


def _with_two_columns(X, values: NDArray[np.floating], first, second) -> csr_array:
    """Return a sparse matrix with other values, and two more columns, without zeros."""
    starts = X.indptr + 2 * np.arange(len(X.indptr), dtype=X.indptr.dtype)
    data = np.empty(starts[-1], values.dtype)
    indices = np.empty(starts[-1], X.indices.dtype)
    own = np.ones(starts[-1], dtype=np.bool_)
    for place, column in enumerate((first, second)):
        at = starts[1:] - 2 + place
        data[at], indices[at], own[at] = column, X.shape[1] + place, False
    data[own], indices[own] = values, X.indices[: X.nnz]
    return csr_array((data, indices, starts), shape=(X.shape[0], X.shape[1] + 2))


def _power(G: NDArray, degree: float) -> NDArray:
    if degree != int(degree) or degree < 1:
        return G**degree
    power = G.copy()
    for _ in range(int(degree) - 1):  # an order of magnitude faster than pow
        power *= G
    return power


def _sorted_parts(X) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return values, column numbers in ascending order, and starts of the rows."""
    X = without_duplicates(csr_array(X))
    data = np.require(X.data, np.float64, ["C", "W"])
    return data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
