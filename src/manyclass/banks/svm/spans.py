"""Analytic leave-one-out for support vector machines: the span estimate.

From one fit, f without sample p is taken at x_p as f(x_p) - y_p alpha_p S_p^2 (V. Vapnik, O.
Chapelle, "Bounds on error expectation for support vector machines", Neural Computation 12, 2000).
S_p is the distance of x_p, in feature space, from the span of the free support vectors. Samples
with alpha = 0 keep their score: leaving them out changes nothing.

Memory: one array of the size of the free support vectors' kernel, which is inverted in place, and
blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dtrmm, dtrmv
from scipy.linalg.lapack import dgetrf, dgetri, dpotrf, dtrtri

from manyclass._lib.arrays import Flags, Floats, Places

# A choice, relative to the kernel's diagonal, since duplicates make the kernel singular. It leaves
# squared spans six digits; see ROUNDING.
RIDGE = 1e-10
# A squared span may be negative by so much, relative to K(x, x) or its mean. Duplicates give H
# a condition number of 1 / RIDGE and more, hence errors of 1e-6; kernels that are not positive
# definite give squared spans of order -1.
ROUNDING = 1e-4

Gram = Callable[[Places, Places], Floats]
"""Returns the kernel between some support vectors and others."""


class Spans(NamedTuple):
    """Spans of the support vectors of a machine."""

    squared: Floats  # S_p^2 of each
    below: int  # how many were negative
    drag: float
    """How much the scores of samples at the bound would change, on average, if one of them with
    coefficient 1 is left out; 0 if they are few."""


def squared_spans_by_blocks(
    gram: Gram,
    free: Flags,
    positive: Flags,
    wanted: Flags | None = None,
    *,
    block_entries: int = 2**22,
    diagonal_rows: int = 256,
) -> Spans:
    """Return S_p^2 of the wanted support vectors; 0 for the others.

    With H = [[K_FF, 1], [1', 0]] over the free support vectors F, S_p^2 is
    1 / (H^-1)_pp for p in F and K_pp - v' H^-1 v, v = (K_Fp, 1), for p at the bound.
    If no other support vector is free, a coefficient of the other side has to vanish with that of
    p, since their sum stays zero. If it is that of the nearest q there, S_p^2 is half the
    squared distance of p and q, which for rbf is K_pp - K_pq. K_pp alone would have no meaning: a
    constant added to the kernel changes no machine.

    ``gram`` returns the kernel between support vectors by their places. Each side has some of them.
    Up to ``block_entries`` of the kernel are held besides those of the free ones.
    """
    wanted = np.ones(len(free), dtype=np.bool_) if wanted is None else wanted
    diagonal = _diagonal(gram, len(free), diagonal_rows)
    inside, outside = np.flatnonzero(free), np.flatnonzero(~free & wanted)
    spans, drag = np.zeros(len(free)), 0.0
    if len(inside) < 2:
        lone = inside if len(inside) == 1 else outside
        spans[lone] = _half_distances_to_other_side(gram, lone, diagonal, positive, block_entries)
    if len(inside) == 1:
        between = gram(outside, inside)[:, 0]
        spans[outside] = diagonal[outside] - 2.0 * between + diagonal[inside]
    if len(inside) > 1:
        affine = _AffineSpan(gram, inside, diagonal, block_entries)
        spans[inside] = affine.own()
        for rows in _blocks(outside, len(inside), block_entries):
            spans[rows] = affine.squared_distances(gram(rows, inside), diagonal[rows])
        drag = _drag(gram, affine, inside, outside, spans)
    size = np.abs(diagonal)
    below = wanted & ~(spans >= -ROUNDING * np.maximum(size, size.mean()))
    return Spans(np.where(wanted & (spans > 0), spans, 0.0), int(below.sum()), drag)


def _drag(gram, affine, inside, outside, spans, least: int = 10, most: int = 64) -> float:
    """Return :attr:`Spans.drag` from some of the samples at the bound, or 0 if they are few."""
    if len(outside) < least:
        return 0.0
    some = outside[:: 1 + len(outside) // most]
    product = affine.products_with_mean(gram(some, inside), gram(some, some))
    return float(np.abs(product - spans[some] / len(some)).mean())


class _AffineSpan:
    """The affine span of free support vectors.

    A = K + ridge + tau 11' replaces K_FF, and the origin of feature space is the mean of the free
    support vectors. Neither changes distances from their affine span, but both reduce rounding.
    With u = A^-1 1 and k = K_Fp, the inverse of H is
    (H^-1)_pp = (A^-1)_pp - u_p^2 / 1'u and v' H^-1 v = k' A^-1 k - (u'k - 1)^2 / 1'u + tau.
    """

    def __init__(self, gram: Gram, free: Places, diagonal: Floats, block_entries: int):
        self._gram, self._free, self._diagonal = gram, free, diagonal
        self._block_entries = block_entries
        self._inverse = invert_in_place(self._fill, len(free))
        if self._inverse is not None:
            self._u = self._inverse.times(np.ones(len(free)))

    def _fill(self, A: Floats) -> None:
        """Write the upper triangle of A into an array."""
        f, sums = len(self._free), np.zeros(len(self._free))
        blocks = list(_blocks(np.arange(f), f, self._block_entries))
        for rows in blocks:
            first, last = rows[0], rows[-1] + 1
            block = self._gram(self._free[rows], self._free[first:])
            sums[first:last] += block.sum(axis=1)
            sums[last:] += block[:, last - first :].sum(axis=0)
            A[first:last, first:] = block
        self._means = sums / f
        self._centre = self._means.mean()
        diagonal = self._diagonal[self._free] - 2.0 * self._means + self._centre
        # If all are duplicates of one point, only rounding remains.
        least = 1e-100  # squares of the inverse stay finite
        size = max(abs(diagonal.mean()), RIDGE * np.abs(self._diagonal).mean(), least)
        self._tau = size / f
        for rows in blocks:
            first, last = rows[0], rows[-1] + 1
            A[first:last, first:] -= self._means[first:]
            A[first:last, first:] += (self._centre + self._tau - self._means[rows])[:, None]
        A.flat[:: f + 1] += RIDGE * size

    def own(self) -> Floats:
        """Return the squared distance of each free support vector from the span of the others."""
        if self._inverse is None:
            return np.full(len(self._free), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 / (self._inverse.diagonal() - self._u**2 / self._u.sum())

    def squared_distances(self, K: Floats, diagonal: Floats) -> Floats:
        """Return those of other samples, from their kernel K with the free support vectors."""
        if self._inverse is None:
            return np.full(len(K), np.nan)
        means, K = self._centred(K)
        along = (K @ self._u - 1.0) ** 2 / self._u.sum()
        square = diagonal - 2.0 * means + self._centre
        return square - self._inverse.quadratics(K) + along - self._tau

    def products_with_mean(self, K: Floats, among: Floats) -> Floats:
        """Return inner products of the samples' offsets from the span with their mean offset."""
        if self._inverse is None:
            return np.full(len(K), np.nan)
        means, K = self._centred(K)
        mean = K.mean(axis=0)
        along = (K @ self._u - 1.0) * (mean @ self._u - 1.0) / self._u.sum()
        product = among.mean(axis=1) - means - means.mean() + self._centre
        return product - K @ self._inverse.times(mean) + along - self._tau

    def _centred(self, K: Floats) -> tuple[Floats, Floats]:
        """Return the row means of K, and K centred in feature space."""
        means = K.mean(axis=1)
        K = np.subtract(K, self._means, order="C")
        K += (self._centre - means)[:, None]
        return means, K


def _blocks(rows: Places, width: int, block_entries: int) -> Iterator[Places]:
    """Yield as many rows at a time as their kernel with ``width`` others allows."""
    size = max(1, block_entries // max(width, 1))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def _diagonal(gram: Gram, s: int, size: int) -> Floats:
    out = np.empty(s)
    for first in range(0, s, size):
        part = np.arange(first, min(first + size, s))
        out[part] = np.diagonal(gram(part, part))
    return out


def _half_distances_to_other_side(
    gram: Gram, rows: Places, diagonal: Floats, positive: Flags, block_entries: int
) -> Floats:
    """Return half the squared distance, in feature space, to the nearest of the other side."""
    out = np.empty(len(diagonal))
    for side in (True, False):
        others = np.flatnonzero(positive != side)
        for part in _blocks(rows[positive[rows] == side], len(others), block_entries):
            nearness = gram(part, others) - 0.5 * diagonal[others]
            out[part] = 0.5 * diagonal[part] - nearness.max(axis=1)
    return out[rows]


def in_parts(block: Gram, rows: list[Places], columns: list[Places]) -> Floats:
    """Return the kernel between rows and columns, one block for each pair of parts."""
    if len(rows) == len(columns) == 1:
        return block(rows[0], columns[0])
    return np.block([[block(a, b) for b in columns] for a in rows])


def symmetric(block: Gram, parts: list[Places]) -> Floats:
    """Return the kernel between all support vectors; blocks below the diagonal are mirrored."""
    if len(parts) == 1:
        return block(parts[0], parts[0])
    n = parts[-1][-1] + 1
    K = np.empty((n, n))
    for i, a in enumerate(parts):
        for b in parts[i:]:
            rows, columns = slice(a[0], a[-1] + 1), slice(b[0], b[-1] + 1)
            K[rows, columns] = block(a, b)
            K[columns, rows] = K[rows, columns].T
    return K


def without_only_samples(scores, y, code, weights, rows):
    """Set scores to NaN where a sample is the only one of its side: no machine is without it."""
    counts = np.bincount(y[weights > 0], minlength=len(code))
    for side in (1, -1):
        for column in np.flatnonzero(counts @ (code == side) == 1):
            only = (code[y[rows], column] == side) & (weights[rows] > 0)
            scores[only, column] = np.nan
    return scores


class InverseFactor:
    """A^-1 of a positive definite matrix, by the inverse of its Cholesky factor, A = L L'."""

    def __init__(self, array: Floats, block_entries: int = 2**16):
        self._lower, self._block_entries = array.T, block_entries

    def diagonal(self) -> Floats:
        """Return the diagonal of A^-1: the squares of the columns of L^-1."""
        rows, size = self._lower.T, max(1, self._block_entries // len(self._lower))
        out = np.empty(len(rows))
        for first in range(0, len(rows), size):
            part = np.triu(rows[first : first + size, first:])
            out[first : first + size] = np.einsum("ij,ij->i", part, part)
        return out

    def times(self, x: Floats) -> Floats:
        """Return A^-1 x = L'^-1 L^-1 x."""
        return dtrmv(self._lower, dtrmv(self._lower, x, lower=1), lower=1, trans=1)

    def quadratics(self, V: Floats) -> Floats:
        """Return v' A^-1 v = |L^-1 v|^2 of every row v; V, in C order, is overwritten."""
        image = dtrmm(1.0, self._lower, V.T, lower=1, overwrite_b=1).T
        return np.einsum("ij,ij->i", image, image)


class PlainInverse:
    """A^-1 of a matrix that is not positive definite."""

    def __init__(self, array: Floats):
        self._inverse = array

    def diagonal(self) -> Floats:
        """Return the diagonal of A^-1."""
        return np.diagonal(self._inverse).copy()

    def times(self, x: Floats) -> Floats:
        """Return A^-1 x."""
        return self._inverse @ x

    def quadratics(self, V: Floats) -> Floats:
        """Return v' A^-1 v of every row v."""
        return np.einsum("ij,ij->i", V, V @ self._inverse)


def invert_in_place(
    fill: Callable[[Floats], None], n: int, block_entries: int = 2**16
) -> InverseFactor | PlainInverse | None:
    """Invert a symmetric matrix in the array that is allocated for it; None if it is singular.

    Arrays are in C order. Only their upper triangles have to be filled; the lower ones are not
    read, and not written if the matrix is positive definite. LAPACK reads in Fortran's order, where
    upper triangles are lower ones.

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
