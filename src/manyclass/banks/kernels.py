"""Kernel functions over blocks of rows: one matrix product and one pass over the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse
from sklearn.utils.extmath import row_norms

from manyclass.banks._block_kernels import exponentiate
from manyclass.banks.own_kernels import OwnKernel


def resolve_gamma(gamma: str | float, X) -> float:
    """Return the number that scikit-learn's "scale" and "auto" stand for."""
    if gamma == "scale":
        if issparse(X):
            variance = X.multiply(X).mean() - X.mean() ** 2
        else:
            variance = X.var()
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if isinstance(gamma, str):
        raise ValueError(f"gamma must be 'scale', 'auto' or a number, got {gamma!r}.")
    return float(gamma)


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
        self, rows, columns, out: NDArray[np.floating] | None = None
    ) -> NDArray[np.floating]:
        """Return the kernel matrix from its prepared sides, in C order.

        ``out`` is a flat buffer that dense products are written into.
        """
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
        return self._finish(G)

    def origin(self, S):
        """Where to measure from: distances do not change with it, but their cancellation does."""
        return S.mean(axis=0) if self.name == "rbf" and not issparse(S) else None

    def rows(self, S, origin):
        """Prepare support vectors: for rbf (2 gamma s, -gamma |s|^2, -gamma)."""
        if self.name != "rbf":
            return S
        if issparse(S):
            squares = row_norms(S, squared=True)[:, None]
            parts = [2.0 * self.gamma * S, csr_array(-self.gamma * squares)]
            return hstack([*parts, csr_array(np.full_like(squares, -self.gamma))], format="csr")
        rows = np.empty((S.shape[0], S.shape[1] + 2), dtype=S.dtype)
        centred = S - (0.0 if origin is None else origin)
        np.multiply(centred, 2.0 * self.gamma, out=rows[:, :-2])
        rows[:, -2] = -self.gamma * row_norms(centred, squared=True)
        rows[:, -1] = -self.gamma
        return rows

    def columns(self, X, origin):
        """Prepare a block of samples: for rbf (x, 1, |x|^2)'."""
        if callable(self.name) or self.name == "precomputed":
            return X
        if self.name != "rbf":
            return X.T
        if issparse(X):
            squares = row_norms(X, squared=True)[:, None]
            parts = [X, csr_array(np.ones_like(squares)), csr_array(squares)]
            return hstack(parts, format="csr").T
        columns = np.empty((X.shape[1] + 2, X.shape[0]), dtype=X.dtype)
        np.subtract(X.T, 0.0 if origin is None else origin[:, None], out=columns[:-2])
        columns[-2] = 1.0
        np.einsum("ij,ij->j", columns[:-2], columns[:-2], out=columns[-1])
        return columns

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


def _power(G: NDArray, degree: float) -> NDArray:
    if degree != int(degree) or degree < 1:
        return G**degree
    power = G.copy()
    for _ in range(int(degree) - 1):  # an order of magnitude faster than pow
        power *= G
    return power
