"""Compiled code that reads rows of a CSC matrix in one pass over it."""

from manyclass._lib.compiled import kernel


@kernel
def count_entries(indices, first, counts):
    """Count the entries of the rows to copy; row i is copied to first[i] up to first[i + 1]."""
    for e in range(indices.size):
        row = indices[e]
        for place in range(first[row], first[row + 1]):
            counts[place] += 1


@kernel
def gather_rows(data, indices, start, first, order, end, values, columns):
    """Copy the entries of rows, column by column.

    ``order`` holds the place of each row in the result. ``end`` holds the place of the next entry
    of each row: at first the start of the row, at last the start of the next row.
    """
    for column in range(start.size - 1):
        for e in range(start[column], start[column + 1]):
            row = indices[e]
            for place in range(first[row], first[row + 1]):
                wanted = order[place]
                values[end[wanted]] = data[e]
                columns[end[wanted]] = column
                end[wanted] += 1
