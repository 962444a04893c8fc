"""Analytic leave-one-out for support vector machines: the span estimate.

From one fit, f without sample p is taken at x_p as f(x_p) - y_p alpha_p S_p^2
(V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector
machines", Neural Computation 12, 2000). S_p is the distance of x_p, in feature
space, from the span of the free support vectors. Samples with alpha = 0 keep
their score: leaving them out changes nothing.

One array of the size of the free support vectors' kernel is held, and turned into what is
needed of its inverse in place; all others are a block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass.banks.svm.symmetric_inverse import invert_in_place

RIDGE = 1e-10  # relative to the kernel's diagonal: duplicates make it singular
# How far below zero, relative to K(x, x) or its mean, a squared span may fall: duplicates leave H
# a condition number of 1 / RIDGE and more, hence errors of 1e-6; kernels that are not positive
# definite give spans of order -1.
ROUNDING = 1e-4
BLOCK_ENTRIES = 2**22  # of the kernel that are held besides the free ones': 32 MB
LEAST = 1e-100  # size of a kernel, so that squares of its inverse are finite
FEW = 256  # samples at a time for the diagonal
SEVERAL, MOST = 10, 64  # samples at the bound that tell how they move each other

Array = NDArray[np.float64]
Places = NDArray[np.intp]
Gram = Callable[[Places, Places], Array]
"""Gives the kernel between some support vectors and others."""


class Spans(NamedTuple):
    """Of the support vectors of a machine."""

    squared: Array
    """S_p^2 of each."""
    below: int
    """How many fell below zero."""
    drag: float
    """By how much samples at the bound would move, on average, with one of them that is left
    out, if its coefficient was 1; 0 if they are few."""


def squared_spans(K: Array, free: NDArray[np.bool_], positive: NDArray[np.bool_]) -> Spans:
    """Return S_p^2 of every support vector.

    Parameters
    ----------
    K : array of shape (s, s)
        Kernel matrix of a machine's support vectors.
    free, positive : bool arrays of shape (s,)
        As in :func:`squared_spans_by_blocks`.
    """
    return squared_spans_by_blocks(lambda a, b: K[a[:, None], b], free, positive)


def squared_spans_by_blocks(
    gram: Gram,
    free: NDArray[np.bool_],
    positive: NDArray[np.bool_],
    wanted: NDArray[np.bool_] | None = None,
) -> Spans:
    """Return S_p^2 of the wanted support vectors.

    With H = [[K_FF, 1], [1', 0]] over the free support vectors F, S_p^2 is
    1 / (H^-1)_pp for p in F and K_pp - v' H^-1 v, v = (K_Fp, 1), for p at the bound.
    Where no other is free, a coefficient of the other side has to vanish with that of p, so
    that they still add up to zero. If it is that of the nearest q there, S_p^2 is half the
    squared distance of p and q, which for rbf is K_pp - K_pq. K_pp alone would mean nothing: a
    constant added to the kernel changes no machine.

    Parameters
    ----------
    gram : callable
        Gives the kernel between support vectors, by their places in a machine.
    free : bool array of shape (s,)
        Those whose coefficient is below its bound.
    positive : bool array of shape (s,)
        Those of the positive side; there are some of either.
    wanted : bool array of shape (s,), optional
        Those to be known, others are 0; all when omitted.
    """
    wanted = np.ones(len(free), dtype=np.bool_) if wanted is None else wanted
    diagonal = _diagonal(gram, len(free))
    inside, outside = np.flatnonzero(free), np.flatnonzero(~free & wanted)
    spans, drag = np.zeros(len(free)), 0.0
    if len(inside) < 2:
        lone = inside if len(inside) == 1 else outside
        spans[lone] = _half_distances_to_other_side(gram, lone, diagonal, positive)
    if len(inside) == 1:
        between = gram(outside, inside)[:, 0]
        spans[outside] = diagonal[outside] - 2.0 * between + diagonal[inside]
    if len(inside) > 1:
        affine = _AffineSpan(gram, inside, diagonal)
        spans[inside] = affine.own()
        for rows in _blocks(outside, len(inside)):
            spans[rows] = affine.squared_distances(gram(rows, inside), diagonal[rows])
        if len(outside) >= SEVERAL:
            some = outside[:: 1 + len(outside) // MOST]
            product = affine.products_with_mean(gram(some, inside), gram(some, some))
            drag = float(np.abs(product - spans[some] / len(some)).mean())
    size = np.abs(diagonal)
    below = wanted & ~(spans >= -ROUNDING * np.maximum(size, size.mean()))
    return Spans(np.where(wanted & (spans > 0), spans, 0.0), int(below.sum()), drag)


class _AffineSpan:
    """The affine span of free support vectors.

    A = K + ridge + tau 11' stands in place of K_FF, with the origin of feature space in the mean
    of the free ones: neither makes a difference to distances from their affine span, but both to
    what is lost in taking them. With u = A^-1 1 and k = K_Fp, the inverse of H is
    (H^-1)_pp = (A^-1)_pp - u_p^2 / 1'u and v' H^-1 v = k' A^-1 k - (u'k - 1)^2 / 1'u + tau.
    """

    def __init__(self, gram: Gram, free: Places, diagonal: Array):
        self._gram, self._free, self._diagonal = gram, free, diagonal
        self._inverse = invert_in_place(self._fill, len(free))
        if self._inverse is not None:
            self._u = self._inverse.times(np.ones(len(free)))

    def _fill(self, A: Array) -> None:
        """Put the upper triangle of A into an array."""
        f, sums = len(self._free), np.zeros(len(self._free))
        blocks = list(_blocks(np.arange(f), f))
        for rows in blocks:
            first, last = rows[0], rows[-1] + 1
            block = self._gram(self._free[rows], self._free[first:])
            sums[first:last] += block.sum(axis=1)
            sums[last:] += block[:, last - first :].sum(axis=0)
            A[first:last, first:] = block
        self._means = sums / f
        self._centre = self._means.mean()
        diagonal = self._diagonal[self._free] - 2.0 * self._means + self._centre
        # Of one point and its duplicates nothing remains but rounding.
        size = max(abs(diagonal.mean()), RIDGE * np.abs(self._diagonal).mean(), LEAST)
        self._tau = size / f
        for rows in blocks:
            first, last = rows[0], rows[-1] + 1
            A[first:last, first:] -= self._means[first:]
            A[first:last, first:] += (self._centre + self._tau - self._means[rows])[:, None]
        A.flat[:: f + 1] += RIDGE * size

    def own(self) -> Array:
        """Return the squared distance of each free one from the span of the others."""
        if self._inverse is None:
            return np.full(len(self._free), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 / (self._inverse.diagonal() - self._u**2 / self._u.sum())

    def squared_distances(self, K: Array, diagonal: Array) -> Array:
        """Return those of other samples, from their kernel with the free ones, by rows."""
        if self._inverse is None:
            return np.full(len(K), np.nan)
        means, K = self._centred(K)
        along = (K @ self._u - 1.0) ** 2 / self._u.sum()
        square = diagonal - 2.0 * means + self._centre
        return square - self._inverse.quadratics(K) + along - self._tau

    def products_with_mean(self, K: Array, among: Array) -> Array:
        """Return inner products of samples' offsets from the span with the mean of them all.

        K is their kernel with the free ones, ``among`` that among themselves.
        """
        if self._inverse is None:
            return np.full(len(K), np.nan)
        means, K = self._centred(K)
        mean = K.mean(axis=0)
        along = (K @ self._u - 1.0) * (mean @ self._u - 1.0) / self._u.sum()
        product = among.mean(axis=1) - means - means.mean() + self._centre
        return product - K @ self._inverse.times(mean) + along - self._tau

    def _centred(self, K: Array) -> tuple[Array, Array]:
        """Return means of kernels with the free ones, and what these and their own leave."""
        means = K.mean(axis=1)
        K = np.subtract(K, self._means, order="C")
        K += (self._centre - means)[:, None]
        return means, K


def _blocks(rows: Places, width: int) -> Iterator[Places]:
    """Yield a few rows at a time, whose kernel with so many others is not too large."""
    size = max(1, BLOCK_ENTRIES // max(width, 1))
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def _diagonal(gram: Gram, s: int) -> Array:
    out = np.empty(s)
    for first in range(0, s, FEW):
        part = np.arange(first, min(first + FEW, s))
        out[part] = np.diagonal(gram(part, part))
    return out


def _half_distances_to_other_side(
    gram: Gram, rows: Places, diagonal: Array, positive: NDArray[np.bool_]
) -> Array:
    """Return half the squared distance, in feature space, from the nearest of the other side."""
    out = np.empty(len(diagonal))
    for side in (True, False):
        others = np.flatnonzero(positive != side)
        for part in _blocks(rows[positive[rows] == side], len(others)):
            nearness = gram(part, others) - 0.5 * diagonal[others]
            out[part] = 0.5 * diagonal[part] - nearness.max(axis=1)
    return out[rows]


def in_parts(block: Gram, rows: list[Places], columns: list[Places]) -> Array:
    """Return the kernel between rows and columns from the blocks of their parts."""
    if len(rows) == len(columns) == 1:
        return block(rows[0], columns[0])
    return np.block([[block(a, b) for b in columns] for a in rows])


def symmetric(block: Gram, parts: list[Places]) -> Array:
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
    """Put NaN where a sample is the only one of its side: without it there is no machine."""
    counts = np.bincount(y[weights > 0], minlength=len(code))
    for side in (1, -1):
        for column in np.flatnonzero(counts @ (code == side) == 1):
            only = (code[y[rows], column] == side) & (weights[rows] > 0)
            scores[only, column] = np.nan
    return scores
