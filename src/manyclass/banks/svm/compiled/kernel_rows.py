"""Rows of a column's kernel matrix: from the matrix of all samples, or from the features.

A column of the code has m samples, its members. The solver asks for few rows of their kernel
matrix, for most of them many times. Rows are kept; the least recently used makes room for another.
"""

from __future__ import annotations

from math import tanh
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.compiled import bare_kernel, fused_kernel, kernel, part
from manyclass._lib.compiled.exponential import exponential


class Source(NamedTuple):
    """What kernel values of all n samples come from."""

    gram: Floats  # the kernel matrix (n, n); without entries if values are computed
    features: Floats  # (d, n), to compute values from; without entries if there is no such array
    start: Places  # (n + 1,) starts of the rows of sparse features; one number if there are none
    columns: Places  # columns of their values
    values: Floats
    form: int  # which function: 0 rbf, 1 linear, 2 poly, 3 sigmoid
    gamma: float
    coef0: float
    degree: float


def source(
    kernel: tuple[int, float, float, float],
    *,
    gram: Floats | None = None,
    features: Floats | None = None,
    csr=None,
) -> Source:
    """Return a source of kernel values: a matrix, features by columns, or sparse features.

    ``kernel`` are form, gamma, coef0 and degree.
    """
    nothing, none = np.empty((0, 0)), np.zeros(1, dtype=np.int64)
    gram, features = (nothing if matrix is None else matrix for matrix in (gram, features))
    start, columns, values = none, none, np.empty(0)
    if csr is not None:
        start, columns = csr.indptr.astype(np.int64), csr.indices.astype(np.int64)
        values = csr.data
    return Source(gram, features, start, columns, values, *kernel)


class KernelRows(NamedTuple):
    """The kernel matrix of one column's members, some of whose rows are kept."""

    source: Source
    members: Places  # (m,), in ascending order
    features: Floats  # (d, m), if there is no matrix
    squares: Floats  # (m,) of sparse features
    expanded: Floats  # zeros, one for each column of sparse features
    diagonal: Floats  # (m,)
    kept: Floats  # (slots, m)
    slot_of: NDArray[np.int64]  # (m,); -1 if the row is not kept
    row_in: NDArray[np.int64]  # (slots,); -1 if empty
    used: NDArray[np.int64]  # (slots,) when each was used last; at the end, how often any was


@kernel
def kernel_rows(source, members, store):
    """Return the kernel matrix of some samples; ``store`` is a buffer for the rows it keeps."""
    m, d = members.size, source.features.shape[0]
    slots = min(m, max(2, store.size // m))
    features = np.empty((d, m))
    for c in range(d):
        for t in range(m):
            features[c, t] = source.features[c, members[t]]
    width = 0
    if source.start.size > 1:
        for e in range(source.columns.size):
            width = max(width, source.columns[e] + 1)
    squares, expanded = np.zeros(m if source.start.size > 1 else 0), np.zeros(width)
    slot_of, row_in = np.empty(m, np.int64), np.empty(slots, np.int64)
    for t in range(m):
        slot_of[t] = -1
    for slot in range(slots):
        row_in[slot] = -1
    diagonal, used = np.zeros(m), np.zeros(slots + 1, np.int64)
    kept = store[: slots * m].reshape(slots, m)
    rows = KernelRows(
        source, members, features, squares, expanded, diagonal, kept, slot_of, row_in, used
    )
    _set_diagonal(rows)
    return rows


@kernel
def get_row(rows, i):
    """Return row i. It is valid until two other rows have been asked for.

    Passing ``rows`` takes as long as 1000 sums, because numba counts references to each array. So
    loops do the same by themselves: :func:`load_row` where ``slot_of`` is negative, and the row of
    ``kept`` that :func:`touch` returns.
    """
    if rows.slot_of[i] < 0:
        load_row(rows, i)
    return rows.kept[touch(rows.slot_of, rows.used, i)]


@kernel
def touch(slot_of, used, i):
    """Return the slot of row i, which is kept, and note that it is used."""
    used[-1] += 1
    used[slot_of[i]] = used[-1]
    return slot_of[i]


@bare_kernel
def load_row(rows, i):
    """Compute row i in the place of the least recently used one."""
    clock = rows.used.size - 1
    slot = 0
    for other in range(1, clock):
        slot = other if rows.used[other] < rows.used[slot] else slot
    if rows.row_in[slot] >= 0:
        rows.slot_of[rows.row_in[slot]] = -1
    rows.row_in[slot], rows.slot_of[i] = i, slot
    _compute(rows, i, rows.kept[slot])


@part
def _compute(rows, i, out):
    """Write row i of the kernel matrix."""
    members, features, source = rows.members, rows.features, rows.source
    if source.gram.size > 0:
        of_i = source.gram[members[i]]
        for t in range(out.size):
            out[t] = of_i[members[t]]
        return
    for t in range(out.size):
        out[t] = 0.0
    if source.start.size > 1:
        _multiply_sparse(rows, i, out)
    for c in range(features.shape[0]):
        x = features[c, i]
        if source.form == 0:
            for t in range(out.size):
                out[t] -= source.gamma * (features[c, t] - x) ** 2
        else:
            for t in range(out.size):
                out[t] += features[c, t] * x
    _apply(out, source)


@kernel
def _multiply_sparse(rows, i, out):
    """Write products of sparse features with those of i, or exponents."""
    start, columns, values = rows.source.start, rows.source.columns, rows.source.values
    own, x = rows.members[i], rows.expanded
    for e in range(start[own], start[own + 1]):
        x[columns[e]] = values[e]
    for t in range(out.size):
        for e in range(start[rows.members[t]], start[rows.members[t] + 1]):
            out[t] += values[e] * x[columns[e]]
        if rows.source.form == 0:
            out[t] = rows.source.gamma * (2.0 * out[t] - rows.squares[i] - rows.squares[t])
    for e in range(start[own], start[own + 1]):
        x[columns[e]] = 0.0


@fused_kernel
def _apply(values, source):
    """Apply the kernel's function to inner products, or exponents."""
    if source.form == 0:
        for t in range(values.size):
            values[t] = exponential(values[t])
    elif source.form == 2:
        for t in range(values.size):
            values[t] = (source.gamma * values[t] + source.coef0) ** source.degree
    elif source.form == 3:
        for t in range(values.size):
            values[t] = tanh(source.gamma * values[t] + source.coef0)


@part
def _set_diagonal(rows):
    """Write the diagonal of the kernel matrix."""
    diagonal, features, source = rows.diagonal, rows.features, rows.source
    if source.gram.size > 0:
        for t in range(diagonal.size):
            diagonal[t] = source.gram[rows.members[t], rows.members[t]]
        return
    for c in range(features.shape[0]):
        for t in range(diagonal.size):
            diagonal[t] += features[c, t] ** 2
    if source.start.size > 1:
        for t in range(diagonal.size):
            for e in range(source.start[rows.members[t]], source.start[rows.members[t] + 1]):
                rows.squares[t] += source.values[e] ** 2
            diagonal[t] = rows.squares[t]
    if source.form == 0:
        for t in range(diagonal.size):
            diagonal[t] = 0.0  # distances
    _apply(diagonal, source)
