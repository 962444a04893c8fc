"""Out-of-sample scores of the training set: the one type that calibration and scaling read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.compiled.packing import pack_columns
from manyclass._lib.row_blocks import row_blocks


class ColumnBlock(NamedTuple):
    """Out-of-sample scores of a few columns, for the rows that take part in any of them."""

    columns: slice
    rows: Places
    """In ascending order, shape (m,), or those of each column, shape (m, w)."""
    scores: Floats
    """NaN where there is no out-of-sample score, shape (m, w)."""
    sides: Code
    """+1 and -1; 0 where the sample takes no part in the column, shape (m, w)."""
    weights: Floats
    """Sample weights of the rows, in their shape."""

    def usable(self) -> Flags:
        """Return which scores are known and belong to samples with weight that take part."""
        return ~np.isnan(self.scores) & (self.of_entries(self.weights) > 0) & (self.sides != 0)

    def of_entries(self, of_rows: NDArray) -> NDArray:
        """Return what is known of each row for each score, shape (m, w)."""
        return of_rows if of_rows.ndim == 2 else np.broadcast_to(of_rows[:, None], self.sides.shape)


ColumnBlocks = Callable[[], Iterable[ColumnBlock]]
"""Goes through the blocks of all columns, each time it is called."""


class OutOfSampleScores(ABC):
    """Scores of n training rows in l columns, from models that did not see the row.

    A score is NaN where the row takes part in the column but was never left out. Index with an
    array of rows to get their scores, shape (m, l).

    Parameters
    ----------
    y : int array of shape (n,)
        Class indices of the rows.
    code : int8 array of shape (k, l)
        Code matrix.
    weights : array of shape (n,)
        Sample weights.
    fold_numbers : int array of shape (n,), optional
        Number of the fold that left each row out, -1 for none. None if there is no such number.
    """

    sources: NDArray[np.str_] | None = None
    """How the scores of each column were computed: "formula", "solver" where some samples of the
    column were left out by the solver, or "folds"; None if there was one way only."""

    def __init__(self, y: Places, code: Code, weights: Floats, fold_numbers: Places | None = None):
        self.y, self.code, self.weights, self.fold_numbers = y, code, weights, fold_numbers

    @property
    def n_columns(self) -> int:
        """Number l of columns."""
        return self.code.shape[1]

    @abstractmethod
    def complete_rows(self) -> Places:
        """Return the rows that have a score in every column."""

    @abstractmethod
    def __getitem__(self, rows: Places) -> Floats:
        """Return a copy of the scores (m, l) of these rows."""

    def rows_of_one_source(self) -> Places:
        """Return rows whose scores in all columns come from models of the same training rows.

        Leave-one-out is such a source: models that never used a row stay as they are without it.
        """
        return self.complete_rows()

    def of_one_source(self, rows: Places) -> Floats:
        """Return a copy of the scores (m, l) of such rows."""
        return self[rows]

    @abstractmethod
    def dense(self) -> Floats:
        """Return all scores at once, shape (n, l)."""

    @abstractmethod
    def column_blocks(self, weights: Floats) -> Iterable[ColumnBlock]:
        """Yield the scores of a few columns at a time, with these sample weights."""

    @abstractmethod
    def check_sides(self, classes: NDArray, *, needed: bool, scaled: bool) -> None:
        """Report classes whose samples were all left out together, or never left out.

        Parameters
        ----------
        classes : array of shape (k,)
            Names of the classes.
        needed : bool
            Whether anything but the scaling needs scores of both sides. If so and no column
            has them, this is a ``ValueError`` instead of a warning.
        scaled : bool
            Whether a scaling will be fitted.
        """


class DenseScores(OutOfSampleScores):
    """Out-of-sample scores in one array.

    Parameters
    ----------
    scores : array of shape (n, l)
        NaN where there is no out-of-sample score.
    y, code, weights, fold_numbers
        See :class:`OutOfSampleScores`.
    sides : int8 array of shape (n, l), optional
        Side of each row in each column; 0 excludes a row from the calibration of a column. By
        default each row has the side of its class.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass import codes
    >>> from manyclass.scores.out_of_sample import DenseScores
    >>> values = np.array([[0.9, 0.1, np.nan], [0.2, 0.5, 0.7]])
    >>> scores = DenseScores(values, np.array([0, 1]), codes.one_vs_one(3), np.ones(2))
    >>> scores.complete_rows()
    array([1])
    """

    def __init__(
        self,
        scores: Floats,
        y: Places,
        code: Code,
        weights: Floats,
        fold_numbers: Places | None = None,
        sides: Code | None = None,
    ):
        super().__init__(y, code, weights, fold_numbers)
        self._scores, self._sides = scores, sides

    def complete_rows(self):
        """Return the rows that have a score in every column."""
        return np.flatnonzero(~np.isnan(self._scores).any(axis=1))

    def __getitem__(self, rows):
        """Return a copy of the scores (m, l) of these rows."""
        return self._scores[rows]

    def dense(self):
        """Return the array itself."""
        return self._scores

    def column_blocks(self, weights):
        """Return all columns as one block."""
        sides = self.code[self.y] if self._sides is None else self._sides
        rows = np.arange(len(self.y))
        return [ColumnBlock(slice(0, self.n_columns), rows, self._scores, sides, weights)]

    def check_sides(self, classes, *, needed, scaled):
        """Do nothing: rows are left out one by one here, never a whole class."""


class PackedScores:
    """The scores of samples in the columns that they take part in, without gaps.

    For codes with many zeros, this is a small part of all scores, and columns are calibrated
    several times on it. :class:`OutOfSampleScores` has the meaning of the attributes.
    """

    def __init__(self, scores: OutOfSampleScores):
        self.y, self.code, self.weights = scores.y, scores.code, scores.weights
        self.n_columns = scores.n_columns
        of_class = np.bincount(self.y, minlength=len(self.code))
        shape = int((of_class @ (self.code != 0)).max(initial=0)), self.n_columns
        self._scores, self._sides = np.full(shape, np.nan), np.zeros(shape, dtype=np.int8)
        self._rows = np.zeros(shape, dtype=np.intp)
        for block in scores.column_blocks(self.weights):
            to = (each[:, block.columns] for each in (self._scores, self._sides, self._rows))
            pack_columns(block.scores, block.sides, block.rows, *to)

    def column_blocks(self, weights: Floats) -> list[ColumnBlock]:
        """Return all columns as one block, with the rows of each column."""
        columns = slice(0, self.n_columns)
        return [ColumnBlock(columns, self._rows, self._scores, self._sides, weights[self._rows])]


def split_rows(rows: Places, n_columns: int, entries: int = 2**22) -> list[Places]:
    """Split rows into blocks with at most ``entries`` scores each: 32 MB by default."""
    return [rows[block] for block in row_blocks(len(rows), n_columns, entries)]


def check_no_nan(scores: Floats, rows: Places, where: Flags | None = None) -> None:
    """Raise a ``ValueError`` for the first NaN among the scores of a bank.

    ``rows`` (n,) are the row numbers for the message; ``where`` (n, l) are the scores to check.
    """
    missing = np.isnan(scores)
    if where is not None:
        missing &= where
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise ValueError(
            f"the binary models' scores are NaN at row {rows[row]}, column {column} of the code: "
            "impute or drop the row, or find out why the model of that column fails."
        )
