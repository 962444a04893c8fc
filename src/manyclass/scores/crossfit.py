"""Out-of-sample scores of the training set, for any ternary code.

A sample that a column never used is already out of sample for its model (Duan
et al. 2003, section 3.1, for one-vs-one). Otherwise the score comes from the
model of the fold that left the sample out. Folds are shared by all columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.messages import some_quoted
from manyclass._lib.rows import is_by_columns, take_rows
from manyclass.banks import Bank
from manyclass.scores.column_blocks import ColumnBlock
from manyclass.scores.folds import Fold

ENOUGH_ROWS = 10_000  # to calibrate on
ENOUGH_OF_A_CLASS = 400  # however many classes there are
BLOCK_ENTRIES = 2**22  # scores held at a time: 32 MB
FEW = 4  # parts of an X that is to be copied
COLUMNS = 16  # gathered at a time for calibration
REMEDY = (
    "Use cv=5, whose folds are stratified, or a splitter that stratifies or shuffles, such as "
    "StratifiedKFold(5, shuffle=True)."
)


def enough_rows(
    y: NDArray[np.intp], weights: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Choose the rows that calibration is fitted on, and their weights.

    All of them up to ``ENOUGH_ROWS``. Beyond, the two numbers of a sigmoid are known
    well enough from some hundred samples of each class, spread evenly over the
    class's rows; they stand for the others by their weight.
    """
    used = np.flatnonzero(weights > 0)
    if len(used) <= ENOUGH_ROWS:
        return np.arange(len(y)), weights
    n_classes = y.max() + 1
    counts = np.bincount(y[used], minlength=n_classes)
    quota = np.minimum(counts, max(ENOUGH_OF_A_CLASS, ENOUGH_ROWS // n_classes))
    by_class = np.split(used[np.argsort(y[used], kind="stable")], np.cumsum(counts)[:-1])
    chosen = np.sort(
        np.concatenate(
            [rows[np.arange(m) * len(rows) // m] for rows, m in zip(by_class, quota, strict=True)]
        )
    )
    kept = np.bincount(y[chosen], weights[chosen], minlength=n_classes)
    total = np.bincount(y, weights, minlength=n_classes)
    return chosen, weights[chosen] * total[y[chosen]] / kept[y[chosen]]


def out_of_sample_scores(
    bank: Bank,
    fit: Callable[[NDArray[np.intp]], Bank],
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    folds: Iterable[Fold],
) -> NDArray[np.float64]:
    """Return scores (n, l) of the training set that no sample had a part in.

    Parameters
    ----------
    bank : Bank
        Fitted on everything.
    fit : callable
        Fits a bank of the same kind on the rows it is given.
    X, y, code : as the bank was fitted on
    folds : pairs (train, test)
        A row tested several times gets the mean of its scores.

    Returns
    -------
    array of shape (n, l)
        NaN where a sample takes part in the column but was never left out, or
        only by models that lacked one side.
    """
    return OutOfSample(bank, fit, X, y, code, folds).dense()


class OutOfSample:
    """Out-of-sample scores of the training set, made where they are asked for.

    Kept are the scores that come from folds: those of samples in the columns that they take
    part in, n (k - 1) numbers for one-vs-one codes and never more than n l. All others are the
    bank's own. Work is done on a few million scores at a time.

    Parameters
    ----------
    bank, fit, X, y, code, folds
        As in :func:`out_of_sample_scores`. Without a bank, scores are to be had of samples in
        the columns that they take part in, if all of those have two sides.
    enough : int, optional
        Folds are passed over once so many rows have been left out.
    """

    def __init__(
        self,
        bank: Bank | None,
        fit: Callable[[NDArray[np.intp]], Bank],
        X,
        y: NDArray[np.intp],
        code: NDArray[np.int8],
        folds: Iterable[Fold],
        enough: int | None = None,
    ):
        self.bank: Any = bank
        self.X, self.y, self.code = X, y, code
        self._constant = np.zeros(code.shape[1], dtype=np.bool_) if bank is None else bank.constant
        self._constants = self._answers_of_constants()
        self._passed_over = False
        # Row by row, the columns that the sample's class takes part in, in order.
        self._start = np.concatenate([[0], np.cumsum(np.count_nonzero(code, axis=1)[y])])
        self._left_out = np.zeros(self._start[-1])
        count = np.zeros(self._start[-1], dtype=np.int32)
        tested = np.zeros(len(y), dtype=np.bool_)
        for train, test in folds:
            if enough is not None and tested.sum() >= enough:
                self._passed_over = True
                break
            self._add_fold(fit(train), test, count)
            tested[test] = True
        with np.errstate(invalid="ignore"):
            self._left_out /= count

    def _answers_of_constants(self) -> NDArray[np.float64]:
        """Return what columns without two sides answer, whatever the row."""
        if not self._constant.any():
            return np.empty(0)
        row = take_rows(self.X, np.arange(1))
        return self.bank.scores(row, where=self._constant[None, :])[0, self._constant]

    def _add_fold(self, fold_bank: Bank, test: NDArray[np.intp], count: NDArray[np.int32]) -> None:
        # A column without two sides in all data says in every fold what it says with all data,
        # also where the fold has left out the only side there is.
        usable = self._constant | ~fold_bank.constant
        for rows in row_blocks(np.asarray(test), self.code.shape[1]):
            takes_part = self.code[self.y[rows]] != 0
            needed = takes_part & usable
            scores = fold_bank.scores_at(self.X, rows, where=needed)
            scores[:, self._constant] = self._constants
            check_no_nan(scores, rows, needed)
            places, kept = self._places(rows), needed[takes_part]
            self._left_out[places[kept]] += scores[needed]
            count[places[kept]] += 1

    def _places(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return where the left-out scores of these rows are kept, row by row."""
        lengths = self._start[rows + 1] - self._start[rows]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self._start[rows] - before, lengths) + np.arange(lengths.sum())

    def complete_rows(self) -> NDArray[np.intp]:
        """Return the rows that have a score in every column."""
        missing = np.concatenate([[0], np.cumsum(np.isnan(self._left_out))])[self._start]
        return np.flatnonzero(np.diff(missing) == 0)

    def check_sides(
        self,
        weights: NDArray[np.float64],
        classes: NDArray,
        *,
        needed: bool,
        tempered: bool,
        stacklevel: int = 2,
    ) -> None:
        """Say which classes the folds leave out as a whole, or not at all.

        Classes with a single sample are not meant, nor are samples without weight.

        Parameters
        ----------
        weights : array of shape (n,)
            Sample weights.
        classes : array of shape (k,)
            Names of the classes.
        needed : bool
            Whether scores of both sides are needed, and not only for the temperature. It is a
            ``ValueError`` then if no column has them.
        tempered : bool
            Whether the temperature is to be fitted.
        stacklevel : int
            Of the warning.
        """
        several = np.bincount(self.y[weights > 0], minlength=len(self.code)) > 1
        complete = np.zeros(len(self.y), dtype=np.bool_)
        complete[self.complete_rows()] = True
        if self._passed_over or complete[several[self.y]].all():  # as with stratified folds
            return
        has_both, lacks = _compare_sides(self.code, self._scored())
        missed = lacks & several[:, None]
        untempered = tempered and not complete.any()
        if not missed.any() and not untempered:
            return
        fatal = bool(needed and missed.any() and not has_both.any())
        message = f"{_what_is_missed(missed, classes)} {_what_follows(fatal, untempered)} {REMEDY}"
        if fatal:
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel)

    def _scored(self) -> NDArray[np.bool_]:
        """Tell which classes have a score at all in the columns they take part in, (k, l)."""
        scored = self.code != 0
        ends = np.cumsum(np.bincount(self.y, minlength=len(self.code)))
        of_class = np.split(np.argsort(self.y, kind="stable"), ends[:-1])
        for own, rows in zip(scored, of_class, strict=True):
            scores = self._left_out[self._places(rows)].reshape(len(rows), own.sum())
            own[own] = ~np.isnan(scores).all(axis=0)
        return scored

    def __getitem__(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the scores (m, l) of these rows, NaN where there is none."""
        takes_part = self.code[self.y[rows]] != 0
        if takes_part.all():
            scores = np.empty(takes_part.shape)
        else:
            scores = self._of_bank(rows, ~takes_part)
            check_no_nan(scores, rows, ~takes_part)
        scores[takes_part] = self._left_out[self._places(rows)]
        return scores

    def _of_bank(self, rows: NDArray[np.intp], where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the scores of the bank itself; from little of X at a time if it is copied."""
        if is_by_columns(self.X):
            parts = np.array_split(np.arange(len(rows)), -(-FEW * len(rows) // len(self.y)))
            scores = [self.bank.scores(take_rows(self.X, rows[p]), where=where[p]) for p in parts]
            return np.concatenate(scores)
        everything = len(rows) == len(self.y) and np.array_equal(rows, np.arange(len(rows)))
        if everything:
            return self.bank.scores(self.X, where=where)
        return self.bank.scores_at(self.X, rows, where=where)

    def dense(self) -> NDArray[np.float64]:
        """Return all scores (n, l) at once."""
        out = np.empty((len(self.y), self.code.shape[1]))
        for rows in row_blocks(np.arange(len(self.y)), self.code.shape[1]):
            out[rows] = self[rows]
        return out

    def column_blocks(self, weights: NDArray[np.float64]) -> Iterator[ColumnBlock]:
        """Yield the left-out scores of a few columns at a time, for calibration."""
        takes_part, n_columns = self.code != 0, self.code.shape[1]
        before = np.zeros(len(self.code), dtype=np.intp)  # columns of each class till now
        width = max(1, min(COLUMNS, BLOCK_ENTRIES // len(self.y)))
        for first in range(0, n_columns, width):
            columns = slice(first, min(first + width, n_columns))
            own = takes_part[:, columns]
            rows = np.flatnonzero(own.any(axis=1)[self.y])
            y = self.y[rows]
            places = (before[:, None] + np.cumsum(own, axis=1) - 1)[y]
            places += self._start[rows][:, None]
            scores = np.full(places.shape, np.nan)
            scores[own[y]] = self._left_out[places[own[y]]]
            yield ColumnBlock(columns, rows, scores, self.code[:, columns][y], weights[rows])
            before += own.sum(axis=1)


def _compare_sides(
    code: NDArray[np.int8], scored: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the columns with scores of both sides, (l,), and the classes of sides without, (k, l).

    ``scored`` tells which classes have scores in which columns, (k, l).
    """
    positive, negative = ((scored & (code == side)).any(axis=0) for side in (1, -1))
    lacks = ((code > 0) & ~positive) | ((code < 0) & ~negative)
    return positive & negative, lacks


def _what_is_missed(missed: NDArray[np.bool_], classes: NDArray) -> str:
    """Name the classes; ``missed`` tells in which columns they are, (k, l)."""
    if not missed.any():
        return "cv leaves out no sample while all its columns keep both of their sides."
    return (
        "cv leaves whole classes out, or never leaves them out: "
        f"{missed.any(axis=0).sum()} of {missed.shape[1]} columns of the code have no "
        f"out-of-sample scores of classes {some_quoted(classes[missed.any(axis=1)])}."
    )


def _what_follows(fatal: bool, untempered: bool) -> str:
    if fatal:
        return "No column has both sides, so that there is nothing to calibrate by."
    if untempered:
        return "No sample has scores in all columns, so that the temperature is not fitted."
    return "Calibration, temperature and combiners that learn do without them."


def row_blocks(rows: NDArray[np.intp], n_columns: int) -> list[NDArray[np.intp]]:
    """Split rows so that the scores of a part are not too many to be held at a time."""
    size = max(1, BLOCK_ENTRIES // n_columns)
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def complete_rows(scores: NDArray[np.float64] | OutOfSample) -> NDArray[np.intp]:
    """Return the rows that have a score in every column."""
    if isinstance(scores, OutOfSample):
        return scores.complete_rows()
    return np.flatnonzero(~np.isnan(scores).any(axis=1))


def enough_for_temperature(k: int, n_columns: int) -> int:
    """Return how many rows the temperature, one number, is fitted on.

    5000, fewer where that makes more than ten million scores: 2020 for one-vs-one with 100
    classes, and not fewer than 1000.
    """
    return min(5000, max(1000, 10_000_000 // max(n_columns, 4 * k)))


def check_no_nan(
    scores: NDArray[np.float64],
    rows: NDArray[np.intp],
    where: NDArray[np.bool_] | None = None,
) -> None:
    """Raise a ``ValueError`` that names the first NaN; ``rows`` are the names of the rows."""
    missing = np.isnan(scores)
    if where is not None:
        missing &= where
    if missing.any():
        row, column = (int(i) for i in np.argwhere(missing)[0])
        raise ValueError(
            f"the binary models' scores are NaN at row {rows[row]}, column {column} of the code: "
            "impute or drop the row, or find out why the model of that column fails."
        )
