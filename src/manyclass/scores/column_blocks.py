"""Out-of-sample scores of a few columns at a time, so that (n, l) scores need not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from manyclass._lib.arrays import Code, Flags, Floats, Places


class ColumnBlock(NamedTuple):
    """Out-of-sample scores of a few columns, for the rows that take part in any of them."""

    columns: slice
    rows: Places
    """In ascending order, shape (m,)."""
    scores: Floats
    """NaN where there is no out-of-sample score, shape (m, w)."""
    sides: Code
    """+1 and -1; 0 where the sample takes no part in the column, shape (m, w)."""
    weights: Floats
    """Sample weights, shape (m,)."""

    def usable(self) -> Flags:
        """Return which scores are known and belong to samples with weight that take part."""
        return ~np.isnan(self.scores) & (self.weights > 0)[:, None] & (self.sides != 0)


ColumnBlocks = Callable[[], Iterable[ColumnBlock]]
"""Goes through the blocks of all columns, each time it is called."""
