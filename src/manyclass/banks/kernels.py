"""Kernel functions over blocks of rows: one matrix product and one pass over the block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot


def resolve_gamma(gamma: str | float, X) -> float:
    """Return the number that scikit-learn's "scale" and "auto" stand for."""
    if gamma == "scale":
        if issparse(X):
            variance = X.multiply(X).mean() - X.mean() ** 2
        else:
            variance = X.var()
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    return 1.0 / X.shape[1] if gamma == "auto" else float(gamma)


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters, by scikit-learn's names.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable
    gamma, degree, coef0 : as in :class:`~sklearn.svm.SVC`
    """

    name: str | Callable[..., NDArray[Any]]
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def prepare(self, S) -> Callable[[Any], NDArray[np.floating]]:
        """Return the function of a block X of rows that gives K(X, S).

        Whatever depends on S alone is computed here.
        """
        if callable(self.name):
            name = self.name
            return lambda X: np.asarray(name(X, S))
        if self.name == "rbf":
            return _prepare_rbf(S, self.gamma)
        finish = {"linear": lambda G: G, "poly": self._poly, "sigmoid": self._sigmoid}[self.name]
        return lambda X: finish(safe_sparse_dot(X, S.T, dense_output=True))

    def _poly(self, G: NDArray) -> NDArray:
        G *= self.gamma
        G += self.coef0
        if self.degree != int(self.degree) or self.degree < 1:
            return G**self.degree
        power = G.copy()
        for _ in range(int(self.degree) - 1):  # an order of magnitude faster than pow
            power *= G
        return power

    def _sigmoid(self, G: NDArray) -> NDArray:
        G *= self.gamma
        G += self.coef0
        return np.tanh(G, out=G)

    def diagonal(self, S) -> NDArray[np.floating]:
        """K(s, s) of every row of S (not for "precomputed")."""
        if self.name == "rbf":
            return np.ones(S.shape[0])
        if callable(self.name):
            return np.array(
                [np.asarray(self.name(S[[i]], S[[i]]))[0, 0] for i in range(S.shape[0])]
            )
        squares = row_norms(S, squared=True)
        return {"linear": lambda G: G, "poly": self._poly, "sigmoid": self._sigmoid}[self.name](
            squares.copy()
        )


def _prepare_rbf(S, gamma: float) -> Callable[[Any], NDArray[np.floating]]:
    """exp(-gamma |x - s|^2) with the exponent from a single product of extended rows."""
    if issparse(S):
        squares = gamma * row_norms(S, squared=True)

        def of_sparse(X):
            G = safe_sparse_dot(X, S.T, dense_output=True)
            G *= 2.0 * gamma
            G -= gamma * row_norms(X, squared=True)[:, None]
            G -= squares
            return np.exp(G, out=G)

        return of_sparse
    # Distances do not change with the origin, but their cancellation does.
    origin = S.mean(axis=0)
    centred = S - origin
    extended = np.empty((S.shape[1] + 2, S.shape[0]), dtype=S.dtype)
    extended[:-2] = 2.0 * gamma * centred.T
    extended[-2] = -gamma * row_norms(centred, squared=True)
    extended[-1] = -gamma

    def of_dense(X):
        rows = np.empty((X.shape[0], X.shape[1] + 2), dtype=S.dtype)
        np.subtract(X, origin, out=rows[:, :-2])
        rows[:, -2] = 1.0
        rows[:, -1] = row_norms(rows[:, :-2], squared=True)
        G = rows @ extended
        return np.exp(G, out=G)

    return of_dense
