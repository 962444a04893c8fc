"""Consecutive rows, a block at a time, so that temporary arrays stay small."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK_ENTRIES = 2**18
"""Entries of the largest temporary array of a block: 2 MB of float64. A choice: such an array
fits into the second-level cache of most processors, and blocks are still long enough that
numpy's cost per call does not count."""


def row_blocks(n: int, width: int, entries: int = BLOCK_ENTRIES) -> Iterator[slice]:
    """Yield slices of the rows 0 to n - 1, with about ``entries`` numbers in each.

    ``width`` is that of the widest temporary array. A block has at least one row.
    """
    step = max(1, entries // width)
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
