"""Support vectors by class: read in chunks, and added to the sums of their columns.

Rows may stay in X until they are needed. With 400 samples of 10,000 features, all of them support
vectors, the peak memory of a fit is 1.4 to 1.6 times X, instead of 3.0 to 3.1 times X if the bank
copies its support vectors at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.compiled.blocks import spread
from manyclass._lib.rows import take_rows
from manyclass._lib.sklearn import n_samples

Adder = Callable[[NDArray[np.floating], NDArray[np.floating]], None]
"""Adds the contribution of a kernel block to the sums of the columns."""
Chunk = tuple["Group", slice]  # some support vectors of a class


@dataclass(frozen=True)
class RowsOf:
    """Some rows of X; a slice of them is copied when it is asked for."""

    X: Any
    places: Places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, part: slice) -> Any:
        return take_rows(self.X, self.places[part])


def size_in_bytes(X: Any) -> int:
    """Return the memory of the numbers of X, an average for :class:`RowsOf`; 0 if unknown."""
    if isinstance(X, RowsOf):
        return size_in_bytes(X.X) * len(X) // max(1, n_samples(X.X))
    if issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes if isinstance(X, np.ndarray) else 0


def by_class(
    support: Places, y: Places, duals: csr_array, k: int
) -> Iterator[tuple[Places, csr_array]]:
    """Yield the support vectors of each class, and their rows of the coefficients."""
    support = support[np.argsort(y[support], kind="stable")]
    ends = np.searchsorted(y[support], np.arange(k + 1))
    begin, sizes = duals.indptr[support], np.diff(duals.indptr)[support]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(begin.dtype)
    entries = np.repeat(begin - starts[:-1], sizes) + np.arange(starts[-1])
    data, indices = duals.data[entries], duals.indices[entries]
    for first, last in pairwise(ends.tolist()):
        part, start = slice(starts[first], starts[last]), starts[first : last + 1]
        rows = copy(duals)  # to make a sparse array, or a slice of one, takes ten times as long
        rows.resize(last - first, duals.shape[1])
        rows.data, rows.indices, rows.indptr = data[part], indices[part], start - start[0]
        yield support[first:last], rows


@dataclass(frozen=True)
class Group:
    """Support vectors of one class and their coefficients in the columns of that class."""

    support: Places  # rows of the training data
    vectors: Any
    """The support vectors. For a precomputed kernel their row numbers; for a callable kernel a
    collection of the type that it was given; while fitting, rows that are still in X."""
    columns: Places  # columns in which the class takes part
    duals: csr_array  # signed dual coefficients, shape (support vectors, all columns)
    numeric: bool  # whether the vectors are numbers to compute with

    @property
    def coef(self) -> Floats:
        """Signed dual coefficients in the columns of the class."""
        return self.duals[:, self.columns].toarray()

    def chunks(self, size: int) -> list[Chunk]:
        """Split the support vectors into chunks of this size."""
        return [(self, slice(a, a + size)) for a in range(0, len(self.support), size)]

    def read(self, part: slice, dtype: type[np.floating]) -> tuple[Any, Adder]:
        """Return some of the support vectors, and the function that adds them to the sums."""
        vectors = take_rows(self.vectors, part)
        vectors = vectors.astype(dtype, copy=False) if self.numeric else vectors
        start = self.duals.indptr[part.start : part.stop + 1]
        inside = slice(start[0], start[-1])
        values = self.duals.data[inside].astype(dtype, copy=False)
        rows = start - start[0], self.duals.indices[inside], values
        return vectors, _adder(*rows, self.columns, self.duals.shape[1])


def in_batches(chunks: list[Chunk], most: int) -> list[list[Chunk]]:
    """Join chunks to batches of at most ``most`` support vectors, but at least one chunk."""
    batches: list[list[Chunk]] = [[]]
    held = 0
    for group, part in chunks:
        size = len(group.support[part])
        if batches[-1] and held + size > most:
            batches.append([])
            held = 0
        batches[-1].append((group, part))
        held += size
    return batches


def _adder(
    start: Places,
    indices: Places,
    values: NDArray[np.floating],
    columns: Places,
    n_columns: int,
    dense: float = 0.3,
) -> Adder:
    """Return the function that adds ``duals' K`` to an array of sums, one row per column.

    The duals are given by rows, as plain arrays: slices of sparse arrays took as long as the
    products. If more than the share ``dense`` of them is not 0, a matrix product is faster.
    """
    n = len(start) - 1
    if len(values) > dense * n * len(columns):
        duals = np.zeros((n, n_columns), dtype=values.dtype)
        duals[np.repeat(np.arange(n), np.diff(start)), indices] = values
        coef = np.take(duals, columns, axis=1).T

        def add(K, sums):
            sums[columns] += coef @ K

    else:

        def add(K, sums):
            spread(K, start, indices, values, sums)

    return add
