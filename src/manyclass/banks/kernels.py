"""Kernel functions over blocks of rows: one matrix product and one pass over the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, issparse
from sklearn.utils.extmath import row_norms


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

    K(X, S) is ``product(left(X), right(S))``: what depends on one side alone is
    computed once. Of a precomputed kernel S are column numbers.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
    gamma, degree, coef0 : as in :class:`~sklearn.svm.SVC`
    """

    name: str | Callable[..., NDArray[Any]]
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __call__(self, X, S) -> NDArray[np.floating]:
        """Return the kernel matrix."""
        origin = self.origin(S)
        return self.product(self.left(X, origin), self.right(S, origin))

    def product(self, left, right) -> NDArray[np.floating]:
        """Return the kernel matrix from its prepared sides."""
        if callable(self.name):
            return np.asarray(self.name(left, right))
        if self.name == "precomputed":
            return left[:, right]
        G = left @ right
        return self._finish(G.toarray() if issparse(G) else np.asarray(G))

    def origin(self, S):
        """Where to measure from: distances do not change with it, but their cancellation does."""
        return S.mean(axis=0) if self.name == "rbf" and not issparse(S) else None

    def left(self, X, origin):
        """Prepare a block of rows: for rbf (x, 1, |x|^2)."""
        if self.name != "rbf":
            return X
        if issparse(X):
            squares = row_norms(X, squared=True)[:, None]
            return hstack([X, csr_array(np.ones_like(squares)), csr_array(squares)], format="csr")
        rows = np.empty((X.shape[0], X.shape[1] + 2), dtype=X.dtype)
        np.subtract(X, 0.0 if origin is None else origin, out=rows[:, :-2])
        rows[:, -2] = 1.0
        np.einsum("ij,ij->i", rows[:, :-2], rows[:, :-2], out=rows[:, -1])
        return rows

    def right(self, S, origin):
        """Prepare the other side: for rbf (2 gamma s, -gamma |s|^2, -gamma)'."""
        if callable(self.name) or self.name == "precomputed":
            return S
        if self.name != "rbf":
            return S.T
        if issparse(S):
            squares = row_norms(S, squared=True)[:, None]
            parts = [2.0 * self.gamma * S, csr_array(-self.gamma * squares)]
            return hstack([*parts, csr_array(np.full_like(squares, -self.gamma))], format="csr").T
        columns = np.empty((S.shape[1] + 2, S.shape[0]), dtype=S.dtype)
        centred = S - (0.0 if origin is None else origin)
        columns[:-2] = 2.0 * self.gamma * centred.T
        columns[-2] = -self.gamma * row_norms(centred, squared=True)
        columns[-1] = -self.gamma
        return columns

    def _finish(self, G: NDArray) -> NDArray:
        if self.name == "rbf":
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
