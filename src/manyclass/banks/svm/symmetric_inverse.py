"""The inverse of a symmetric matrix, computed in place.

Arrays are in C order. Only their upper triangles have to be filled; the lower ones are not read,
and not written if the matrix is positive definite. LAPACK reads in Fortran's order, where upper
triangles are lower ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.linalg.blas import dtrmm, dtrmv
from scipy.linalg.lapack import dgetrf, dgetri, dpotrf, dtrtri

from manyclass._lib.arrays import Floats


class SymmetricInverse(ABC):
    """The inverse of a symmetric matrix A."""

    @abstractmethod
    def diagonal(self) -> Floats:
        """Return the diagonal of A^-1."""

    @abstractmethod
    def times(self, x: Floats) -> Floats:
        """Return A^-1 x."""

    @abstractmethod
    def quadratics(self, V: Floats) -> Floats:
        """Return v' A^-1 v of every row v; V, in C order, may be overwritten."""


class InverseFactor(SymmetricInverse):
    """By the inverse of the Cholesky factor, L^-1 with A = L L'; for positive definite matrices."""

    def __init__(self, array: Floats, block_entries: int = 2**16):
        self._lower, self._block_entries = array.T, block_entries

    def diagonal(self) -> Floats:
        """Return the squares of the columns of L^-1."""
        rows, size = self._lower.T, max(1, self._block_entries // len(self._lower))
        out = np.empty(len(rows))
        for first in range(0, len(rows), size):
            part = np.triu(rows[first : first + size, first:])
            out[first : first + size] = np.einsum("ij,ij->i", part, part)
        return out

    def times(self, x: Floats) -> Floats:
        """Return L'^-1 L^-1 x."""
        return dtrmv(self._lower, dtrmv(self._lower, x, lower=1), lower=1, trans=1)

    def quadratics(self, V: Floats) -> Floats:
        """Return |L^-1 v|^2 of every row."""
        image = dtrmm(1.0, self._lower, V.T, lower=1, overwrite_b=1).T
        return np.einsum("ij,ij->i", image, image)


class PlainInverse(SymmetricInverse):
    """By itself, all of it; for matrices that are not positive definite."""

    def __init__(self, array: Floats):
        self._inverse = array

    def diagonal(self) -> Floats:
        """Return a copy."""
        return np.diagonal(self._inverse).copy()

    def times(self, x: Floats) -> Floats:
        """Return the product."""
        return self._inverse @ x

    def quadratics(self, V: Floats) -> Floats:
        """Return the products from both sides."""
        return np.einsum("ij,ij->i", V, V @ self._inverse)


def invert_in_place(
    fill: Callable[[Floats], None], n: int, block_entries: int = 2**16
) -> SymmetricInverse | None:
    """Invert a symmetric matrix in the array that is allocated for it; None if it is singular.

    ``fill`` writes the upper triangle of the matrix into an array of n rows. It is called again if
    the matrix is not positive definite.
    """
    array = np.zeros((n, n))  # pages that are not written usually take no memory
    fill(array)
    _, info = dpotrf(array.T, lower=1, clean=0, overwrite_a=1)
    if info == 0:
        dtrtri(array.T, lower=1, overwrite_c=1)
        return InverseFactor(array, block_entries)
    # LAPACK's routines for indefinite symmetric matrices are an order of magnitude slower.
    fill(array)
    _mirror(array, block_entries)
    _, pivots, info = dgetrf(array.T, overwrite_a=1)
    if info == 0:
        _, info = dgetri(array.T, pivots, lwork=64 * n, overwrite_lu=1)  # blocks of 64 rows
    return PlainInverse(array) if info == 0 else None


def _mirror(array: Floats, block_entries: int) -> None:
    """Copy the upper triangle to the lower one, a few rows at a time."""
    size = max(1, block_entries // len(array))
    for first in range(0, len(array), size):
        part = slice(first, min(first + size, len(array)))
        array[part, :first] = array[:first, part].T
        block = np.triu(array[part, part])
        array[part, part] = block + np.triu(block, 1).T
