"""A table in numbers, for the report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass.app.columns import kinds_of


@dataclass(frozen=True)
class Description:
    """A table in numbers; see :func:`describe`."""

    n_rows: int
    n_columns: int
    """Columns, without the target."""
    kinds: dict[str, int]
    """Number of columns of each kind: "number", "category", "bool", "date"."""
    missing: dict[str, int]
    """Missing values of each column that has some, most first."""
    class_counts: dict[Any, int]
    """Rows of each class, in the order of the classes."""

    @property
    def n_missing(self) -> int:
        """Missing values in all."""
        return sum(self.missing.values())


def describe(X: Any, classes: list[Any], target: NDArray[np.intp]) -> Description:
    """Describe a DataFrame and its target."""
    missing = Counter({str(name): int(X[name].isna().sum()) for name in X.columns})
    counts = np.bincount(target, minlength=len(classes))
    return Description(
        n_rows=len(X),
        n_columns=X.shape[1],
        kinds=dict(Counter(kinds_of(X).values()).most_common()),
        missing={name: n for name, n in missing.most_common() if n > 0},
        class_counts=dict(zip(classes, counts.tolist(), strict=True)),
    )
