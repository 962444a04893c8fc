"""Rows of a sparse matrix that is stored by its columns, in one pass over it."""

from __future__ import annotations

from manyclass._lib.compiled import kernel


@kernel
def count_entries(indices, first, counts):
    """Count the entries of every row that is taken; row i is first[i] to first[i + 1] of them."""
    for e in range(indices.size):
        row = indices[e]
        for place in range(first[row], first[row + 1]):
            counts[place] += 1


@kernel
def gather_rows(data, indices, start, first, order, end, values, columns):
    """Write the entries of the rows that are taken, column by column.

    ``order`` tells where each of them is wanted. ``end`` is where the next entry of each row
    goes: where the row begins at first, and the next one begins after all.
    """
    for column in range(start.size - 1):
        for e in range(start[column], start[column + 1]):
            row = indices[e]
            for place in range(first[row], first[row + 1]):
                wanted = order[place]
                values[end[wanted]] = data[e]
                columns[end[wanted]] = column
                end[wanted] += 1
