"""The base class of kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Places
from manyclass._lib.rows import take_rows

Floats = NDArray[np.floating]


class Side(NamedTuple):
    """Samples on one side of a kernel matrix, and the values that depend on this side alone."""

    prepared: Any
    """What is multiplied with the other side, if the kernel reads numbers."""
    samples: Any
    """The samples themselves."""
    squares: Floats | None = None
    """gamma |x|^2, for rbf."""
    farthest: float = 0.0
    """The largest of these."""


class Kernel(ABC):
    """A kernel with its parameters.

    K(S, X) is ``product(rows(S), columns(X))``: what depends on one side alone is computed once.
    """

    numeric: ClassVar[bool] = True
    """Whether the kernel is computed from arrays of numbers, here and in LIBSVM."""
    precomputed: ClassVar[bool] = False
    """Whether X is the kernel matrix, and S are numbers of its columns."""
    takes_any_rows: ClassVar[bool] = False
    """Whether samples may be of any type."""

    @property
    @abstractmethod
    def for_svc(self) -> str | Callable[..., Any]:
        """What scikit-learn's SVC takes as its parameter ``kernel``."""

    def __call__(self, S, X) -> Floats:
        """Return the kernel matrix, S by rows."""
        origin = self.origin(S)
        return self.product(self.rows(S, origin), self.columns(X, origin))

    def origin(self, S, places: Places | None = None) -> Floats | None:
        """Return the point from which the kernel measures distances, if it does."""
        return None

    def rows(self, S, origin: Floats | None) -> Side:
        """Prepare support vectors."""
        return Side(S, S)

    def columns(self, X, origin: Floats | None) -> Side:
        """Prepare a block of samples."""
        return Side(X, X)

    @abstractmethod
    def product(self, row_side: Side, column_side: Side, out: Floats | None = None) -> Floats:
        """Return the kernel matrix from its sides, in C order; ``out`` is a flat buffer for it."""

    def between(self, X, a: Places, b: Places, origin: Floats | None) -> NDArray[np.float64]:
        """Return the kernel between rows ``a`` and rows ``b`` of the training data."""
        sides = self.rows(take_rows(X, a), origin), self.columns(take_rows(X, b), origin)
        return self.product(*sides).astype(np.float64, copy=False)
