"""Kernels as objects, which :func:`resolve_kernel` makes from an estimator, once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import row_norms

from manyclass._lib.arrays import Places
from manyclass._lib.compiled.blocks import exponentiate, measure_far, measure_far_sparse
from manyclass._lib.messages import quoted
from manyclass._lib.rows import take_rows, without_duplicates
from manyclass._lib.sklearn import n_samples

Reals = NDArray[np.floating]


class Side(NamedTuple):
    """Samples on one side of a kernel matrix, and the values that depend on this side alone."""

    prepared: Any  # what is multiplied with the other side, if the kernel reads numbers
    samples: Any  # the samples themselves
    squares: Reals | None = None  # gamma |x|^2, for rbf
    farthest: float = 0.0  # the largest of these


class Kernel(ABC):
    """A kernel with its parameters.

    K(S, X) is ``product(rows(S), columns(X))``: what depends on one side alone is computed once.
    """

    numeric: ClassVar[bool] = True
    """Whether the kernel is computed from arrays of numbers, here and in LIBSVM."""
    precomputed: ClassVar[bool] = False
    """Whether X is the kernel matrix, and S are numbers of its columns."""
    takes_any_rows: ClassVar[bool] = False  # whether samples may be of any type

    @property
    @abstractmethod
    def for_svc(self) -> str | Callable[..., Any]:
        """What scikit-learn's SVC takes as its parameter ``kernel``."""

    def __call__(self, S, X) -> Reals:
        """Return the kernel matrix, S by rows."""
        origin = self.origin(S)
        return self.product(self.rows(S, origin), self.columns(X, origin))

    def origin(self, S, places: Places | None = None) -> Reals | None:
        """Return the point from which the kernel measures distances, if it does."""
        return None

    def rows(self, S, origin: Reals | None) -> Side:
        """Prepare support vectors."""
        return Side(S, S)

    def columns(self, X, origin: Reals | None) -> Side:
        """Prepare a block of samples."""
        return Side(X, X)

    @abstractmethod
    def product(self, row_side: Side, column_side: Side, out: Reals | None = None) -> Reals:
        """Return the kernel matrix from its sides, in C order; ``out`` is a flat buffer for it."""

    def between(self, X, a: Places, b: Places, origin: Reals | None) -> NDArray[np.float64]:
        """Return the kernel between rows ``a`` and rows ``b`` of the training data."""
        sides = self.rows(take_rows(X, a), origin), self.columns(take_rows(X, b), origin)
        return self.product(*sides).astype(np.float64, copy=False)


# A bound on gamma (|s|^2 + |x|^2). Up to it, rounding in float64 changes sums of kernels in the
# tenth digit at most; beyond it, distances are computed from differences.
FAR = 64.0


class _NumericKernel(Kernel):
    """A function of inner products, or of distances that are computed from them."""

    def columns(self, X, origin):
        """Transpose a block of samples."""
        return Side(_transposed(X), X)

    def product(self, row_side, column_side, out=None):
        """Multiply the sides and apply the function to the products."""
        G = _multiply(row_side.prepared, column_side.prepared, out)
        self._improve(G, row_side, column_side)
        return self._finish(G)

    def _improve(self, G: Reals, row_side: Side, column_side: Side) -> None:
        """Replace products that have lost digits."""

    @abstractmethod
    def _finish(self, G: Reals) -> Reals:
        """Apply the function; G may be overwritten."""


@dataclass(frozen=True)
class LinearKernel(_NumericKernel):
    """s'x."""

    for_svc = "linear"

    def _finish(self, G):
        return G


@dataclass(frozen=True)
class PolyKernel(_NumericKernel):
    """(gamma s'x + coef0)^degree."""

    for_svc = "poly"

    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0

    def _finish(self, G):
        G *= self.gamma
        G += self.coef0
        if self.degree != int(self.degree) or self.degree < 1:
            return G**self.degree
        power = G.copy()
        for _ in range(int(self.degree) - 1):  # an order of magnitude faster than pow
            power *= G
        return power


@dataclass(frozen=True)
class SigmoidKernel(_NumericKernel):
    """tanh(gamma s'x + coef0)."""

    for_svc = "sigmoid"

    gamma: float = 1.0
    coef0: float = 0.0

    def _finish(self, G):
        G *= self.gamma
        G += self.coef0
        return np.tanh(G, out=G)


@dataclass(frozen=True)
class RBFKernel(_NumericKernel):
    """exp(-gamma |s - x|^2)."""

    for_svc = "rbf"

    gamma: float = 1.0

    def origin(self, S, places=None, *, most_rows: int = 1000, block_entries: int = 2**17):
        """Return the median of at most ``most_rows`` samples, or None if they are sparse.

        Distances do not depend on the origin, but the digits that they lose do. A mean would be
        far from all samples if one of them is far away; a median is not.
        """
        if issparse(S):
            return None
        places = np.arange(S.shape[0]) if places is None else places
        some = places[:: 1 + len(places) // most_rows]
        width = max(1, block_entries // len(some))
        parts = [slice(a, a + width) for a in range(0, S.shape[1], width)]
        return np.concatenate([np.median(S[some, part], axis=0) for part in parts])

    def rows(self, S, origin):
        """Prepare support vectors: (2 gamma s, -gamma |s|^2, -gamma)."""
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

    def columns(self, X, origin):
        """Prepare a block of samples: (x, 1, |x|^2)'."""
        if issparse(X):
            squares = row_norms(X, squared=True)
            wide = _with_two_columns(X, X.data[: X.nnz], 1.0, squares)
            return self._side(_transposed(wide), X, squares)
        columns = np.empty((X.shape[1] + 2, X.shape[0]), dtype=X.dtype)
        np.subtract(X.T, 0.0 if origin is None else origin[:, None], out=columns[:-2])
        columns[-2] = 1.0
        np.einsum("ij,ij->j", columns[:-2], columns[:-2], out=columns[-1])
        return self._side(columns, X, columns[-1])

    def _side(self, prepared, samples, squares: Reals) -> Side:
        squares = self.gamma * squares
        return Side(prepared, samples, squares, float(squares.max(initial=0.0)))

    def _improve(self, G, row_side, column_side):
        """Compute a distance from differences where the squares are much larger than it."""
        if not row_side.farthest + column_side.farthest > FAR or G.dtype != np.float64:
            return
        S, X = row_side.samples, column_side.samples
        squares = row_side.squares, column_side.squares
        negligible = -45.0  # the exponential of a smaller exponent is below 3e-20
        limits = FAR, negligible, (S.shape[1] + 8) * np.finfo(np.float64).eps
        if issparse(S) or issparse(X):
            parts = (part for side in (S, X) for part in _sorted_parts(side))
            measure_far_sparse(G, *parts, self.gamma, *squares, limits)
        else:
            S, X = (np.require(side, np.float64, ["C", "W"]) for side in (S, X))
            measure_far(G, S, X, self.gamma, *squares, *limits)

    def _finish(self, G):
        if G.dtype != np.float64:
            return np.exp(G, out=G)
        exponentiate(G.reshape(-1))
        return G


def _multiply(rows, columns, out: Reals | None) -> Reals:
    """Return the matrix product as a dense array in C order, in ``out`` if it is given."""
    if not (isinstance(rows, np.ndarray) and isinstance(columns, np.ndarray)):
        G = rows @ columns
        return np.ascontiguousarray(G.toarray() if issparse(G) else G)
    if out is None:
        return np.dot(rows, columns)
    shape = rows.shape[0], columns.shape[1]
    return np.dot(rows, columns, out=out[: shape[0] * shape[1]].reshape(shape))


def _transposed(X):
    """Return the transposed matrix; a sparse one is stored by rows, for many products."""
    return X.T.tocsr() if issparse(X) else X.T


def _with_two_columns(X, values: Reals, first, second) -> csr_array:
    """Return a sparse matrix with other values, and two more columns without zeros."""
    starts = X.indptr + 2 * np.arange(len(X.indptr), dtype=X.indptr.dtype)
    data = np.empty(starts[-1], values.dtype)
    indices = np.empty(starts[-1], X.indices.dtype)
    own = np.ones(starts[-1], dtype=np.bool_)
    for place, column in enumerate((first, second)):
        at = starts[1:] - 2 + place
        data[at], indices[at], own[at] = column, X.shape[1] + place, False
    data[own], indices[own] = values, X.indices[: X.nnz]
    return csr_array((data, indices, starts), shape=(X.shape[0], X.shape[1] + 2))


def _sorted_parts(X) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return values, column numbers in ascending order, and starts of the rows."""
    X = without_duplicates(csr_array(X))
    data = np.require(X.data, np.float64, ["C", "W"])
    return data, X.indices.astype(np.int64), X.indptr.astype(np.int64)


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

    def __call__(self, X, S) -> Reals:
        """Return the kernel matrix, X by rows."""
        values = self.function(X, S)
        values = values.toarray() if issparse(values) else values
        matrix: Reals = np.asarray(values, dtype=np.float64)
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

FORMS: dict[type[Kernel], int] = {RBFKernel: 0, LinearKernel: 1, PolyKernel: 2, SigmoidKernel: 3}
"""Numbers of the kernels that the solver computes from features."""


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
