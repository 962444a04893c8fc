"""A report of the properties and problems of a code matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.arrays import Code
from manyclass.codes.checks import as_ternary, listing, problems_of
from manyclass.codes.identifiability import is_identifiable

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """The result of :func:`audit`; print it."""

    n_classes: int
    n_columns: int
    valid: bool
    """Whether :func:`check_code` accepts the code."""
    problems: tuple[str, ...]
    """Everything :func:`check_code` objects to."""
    min_row_distance: float
    """Smallest distance of two rows; a zero counts one half."""
    closest_rows: tuple[int, int]
    """The first two classes at that distance."""
    duplicate_columns: Pairs
    """Columns that repeat an earlier one, as (earlier, later)."""
    complementary_columns: Pairs
    """Columns that negate an earlier one, as (earlier, later): both are the same problem."""
    balance: NDArray[np.float64]
    """Per column, the fraction on the + side of the classes that take part."""
    sparsity: float
    """Fraction of zeros."""
    identifiable: bool
    """Whether the columns determine the class probabilities."""

    def __repr__(self) -> str:
        i, j = self.closest_rows
        known = self.balance[~np.isnan(self.balance)]
        spread = f"{known.min():.2f} to {known.max():.2f}" if known.size else "no class takes part"
        lines = {
            "usable": "yes" if self.valid else f"no, {len(self.problems)} problem(s)",
            "identifiable": "yes" if self.identifiable else "no (see check_identifiable)",
            "min row distance": f"{self.min_row_distance:g} (classes {i} and {j})",
            "zeros": f"{self.sparsity:.1%}",
            "balance": spread,
            "duplicate columns": listing(self.duplicate_columns or ["none"]),
            "complementary columns": listing(self.complementary_columns or ["none"]),
        }
        head = f"Code of {self.n_classes} classes and {self.n_columns} column(s)"
        body = [f"  {name + ':':<23}{value}" for name, value in lines.items()]
        return "\n".join([head, *body, *(f"  - {problem}" for problem in self.problems)])


def audit(code: ArrayLike) -> Audit:
    """Examine a code matrix.

    Parameters
    ----------
    code : array-like of shape (k, l)
        Any matrix of -1, 0 and +1, usable as a code or not.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from manyclass.codes import audit
    >>> audit([[1, 1, 0], [-1, 1, 1], [0, 1, -1]])
    Code of 3 classes and 3 column(s)
      usable:                no, 1 problem(s)
      identifiable:          yes
      min row distance:      1 (classes 0 and 2)
      zeros:                 22.2%
      balance:               0.50 to 1.00
      duplicate columns:     none
      complementary columns: none
      - column 1 has no -1: put at least one class on each side, or drop the column.
    """
    matrix = as_ternary(code)
    problems = tuple(problems_of(matrix))
    rows = matrix.astype(np.float32)
    dots = rows @ rows.T  # the distance is rho(u, v) = (n_columns - u.v) / 2
    np.fill_diagonal(dots, -np.inf)
    i, j = divmod(int(dots.argmax()), len(matrix))
    duplicate, complementary = _related_columns(matrix)
    positive, taking_part = (matrix == 1).sum(axis=0), (matrix != 0).sum(axis=0)
    return Audit(
        n_classes=matrix.shape[0],
        n_columns=matrix.shape[1],
        valid=not problems,
        problems=problems,
        min_row_distance=float(matrix.shape[1] - dots[i, j]) / 2,
        closest_rows=(i, j),
        duplicate_columns=duplicate,
        complementary_columns=complementary,
        balance=np.where(taking_part > 0, positive / np.maximum(taking_part, 1), np.nan),
        sparsity=float((matrix == 0).mean()),
        identifiable=is_identifiable(matrix),
    )


def _related_columns(code: Code) -> tuple[Pairs, Pairs]:
    """Return the columns that equal, and those that negate, an earlier one."""
    duplicate, complementary = [], []
    first_with: dict[bytes, int] = {}
    for b, column in enumerate(np.ascontiguousarray(code.T)):
        twin = first_with.setdefault(column.tobytes(), b)
        opposite = first_with.get((-column).tobytes(), b)
        if twin < b:
            duplicate.append((twin, b))
        elif opposite < b:
            complementary.append((opposite, b))
    return tuple(duplicate), tuple(complementary)
