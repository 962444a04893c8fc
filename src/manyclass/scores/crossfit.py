"""Out-of-sample scores of the training set, for any ternary code.

A sample that a column never used is already out of sample for its model (Duan
et al. 2003, section 3.1, for one-vs-one). Otherwise the score comes from the
model of the fold that left the sample out. Folds are shared by all columns.

These scores tell the class by their source: models of all rows are surer, or less sure, than models
of a fold. A scaling that reads all columns would learn that difference, which new rows do not
have. So it gets scores of rows whose columns all come from the same fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.messages import some_quoted, warn
from manyclass._lib.rows import is_by_columns, take_rows
from manyclass._lib.weights import class_sizes
from manyclass.banks import Bank
from manyclass.scores.folds import Fold
from manyclass.scores.out_of_sample import ColumnBlock, OutOfSampleScores, check_no_nan, split_rows

REMEDY = (
    "Use cv=5, whose folds are stratified, or a splitter that stratifies or shuffles, such as "
    "StratifiedKFold(5, shuffle=True)."
)


def calibration_rows(
    y: Places, weights: Floats, *, enough: int = 10_000, of_a_class: int = 400
) -> tuple[Places, Floats]:
    """Choose the rows that calibration is fitted on, and their weights.

    Up to ``enough`` rows, these are all rows. Beyond that, a sigmoid has only two parameters and
    needs no more than some hundred samples of each class. They are spread evenly over the rows
    of the class, and their weights add up to the weight of the class.

    At least ``of_a_class`` rows of each class are kept, however many classes there are.
    """
    used = np.flatnonzero(weights > 0)
    if len(used) <= enough:
        return np.arange(len(y)), weights
    n_classes = y.max() + 1
    counts = np.bincount(y[used], minlength=n_classes)
    quota = np.minimum(counts, max(of_a_class, enough // n_classes))
    by_class = np.split(used[np.argsort(y[used], kind="stable")], np.cumsum(counts)[:-1])
    pairs = zip(by_class, quota, strict=True)
    chosen = np.sort(np.concatenate([rows[np.arange(m) * len(rows) // m] for rows, m in pairs]))
    kept = class_sizes(y[chosen], n_classes, weights[chosen])
    total = class_sizes(y, n_classes, weights)
    return chosen, weights[chosen] * total[y[chosen]] / kept[y[chosen]]


def out_of_sample_scores(
    bank: Bank, fit: Callable[[Places], Bank], X, y: Places, code: Code, folds: Iterable[Fold]
) -> Floats:
    """Return scores (n, l) of the training set, from models that did not see the sample.

    Parameters
    ----------
    bank : Bank
        Fitted on all rows.
    fit : callable
        Fits a bank of the same kind on the rows it is given.
    X, y, code : as the bank was fitted on
    folds : pairs (train, test)
        A row that is tested several times gets the mean of its scores.

    Returns
    -------
    array of shape (n, l)
        NaN where a sample takes part in the column but was never left out, or
        only by models that lacked one side.
    """
    return CrossFittedScores(bank, fit, X, y, code, np.ones(len(y)), folds).dense()


class CrossFittedScores(OutOfSampleScores):
    """Out-of-sample scores from folds, computed when they are needed.

    Scores that come from folds are stored: those of samples in the columns that they take part in,
    which are n (k - 1) numbers for one-vs-one codes and never more than n l, and those of
    ``n_by_folds`` samples in all columns. All other scores are computed by the bank. A few
    million scores are held at a time.

    Without a bank, only scores of samples in the columns that they take part in are available, and
    all columns must have two sides. No more folds are fitted after ``enough`` rows have been left
    out. ``block_entries`` scores are computed at a time: 32 MB by default. For the other parameters
    see :func:`out_of_sample_scores`.
    """

    def __init__(
        self,
        bank: Bank | None,
        fit: Callable[[Places], Bank],
        X,
        y: Places,
        code: Code,
        weights: Floats,
        folds: Iterable[Fold],
        *,
        fold_numbers: Places | None = None,
        enough: int | None = None,
        n_by_folds: int = 0,
        block_entries: int = 2**22,
    ):
        super().__init__(y, code, weights, fold_numbers)
        self.bank: Any = bank
        self.X, self.block_entries = X, block_entries
        self._constant = np.zeros(code.shape[1], dtype=np.bool_) if bank is None else bank.constant
        self._constants = self._constant_scores()
        self._stopped_early = False
        # Row by row, the columns that the sample's class takes part in, in order.
        self._start = np.concatenate([[0], np.cumsum(np.count_nonzero(code, axis=1)[y])])
        self._left_out = np.zeros(self._start[-1])
        count = np.zeros(self._start[-1], dtype=np.int32)
        folds = list(folds)
        self._mixed = not code.all()  # otherwise all scores are by folds
        self._by_folds = self._choose_rows(folds, enough, n_by_folds * self._mixed)
        shape = len(self._by_folds), self.n_columns
        self._all_columns, self._n_models = np.zeros(shape), np.zeros(shape, dtype=np.int16)
        tested = np.zeros(len(y), dtype=np.bool_)
        for train, test in folds:
            if enough is not None and tested.sum() >= enough:
                self._stopped_early = True
                break
            self._add_fold(fit(train), test, count)
            tested[test] = True
        with np.errstate(invalid="ignore"):
            self._left_out /= count
            self._all_columns /= self._n_models

    def _choose_rows(self, folds: list[Fold], enough: int | None, most: int) -> Places:
        """Return rows to score in all columns by folds: at random, of those that are left out."""
        left_out = np.zeros(len(self.y), dtype=np.bool_)
        for _, test in folds:
            if enough is not None and left_out.sum() >= enough:
                break
            left_out[test] = True
        rows = np.flatnonzero(left_out & (self.weights > 0))
        if len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
        return rows

    def _constant_scores(self) -> Floats:
        """Return the scores of columns that have only one side: the same for every row."""
        if not self._constant.any():
            return np.empty(0)
        row = take_rows(self.X, np.arange(1))
        return self.bank.scores(row, where=self._constant[None, :])[0, self._constant]

    def _add_fold(self, fold_bank: Bank, test: Places, count: NDArray[np.int32]) -> None:
        # A column that has only one side in all data has the same score in every fold, also in
        # a fold that leaves this side out.
        usable = self._constant | ~fold_bank.constant
        for rows in split_rows(np.asarray(test), self.n_columns, self.block_entries):
            takes_part = self.code[self.y[rows]] != 0
            whole = np.isin(rows, self._by_folds)
            needed = (takes_part | whole[:, None]) & usable
            scores = fold_bank.scores_at(self.X, rows, where=needed)
            scores[:, self._constant] = self._constants
            check_no_nan(scores, rows, needed)
            places, kept = self._places(rows), needed[takes_part]
            self._left_out[places[kept]] += scores[needed & takes_part]
            count[places[kept]] += 1
            places = np.searchsorted(self._by_folds, rows[whole])
            self._all_columns[places] += np.where(needed[whole], scores[whole], 0.0)
            self._n_models[places] += needed[whole]

    def _places(self, rows: Places) -> Places:
        """Return where the left-out scores of these rows are stored, row by row."""
        lengths = self._start[rows + 1] - self._start[rows]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self._start[rows] - before, lengths) + np.arange(lengths.sum())

    def complete_rows(self) -> Places:
        """Return the rows that have a score in every column."""
        missing = np.concatenate([[0], np.cumsum(np.isnan(self._left_out))])[self._start]
        return np.flatnonzero(np.diff(missing) == 0)

    def rows_of_one_source(self) -> Places:
        """Return the rows that have scores by folds in all columns."""
        rows = self.complete_rows()
        return np.intersect1d(self._by_folds, rows) if self._mixed else rows

    def of_one_source(self, rows: Places) -> Floats:
        """Return the scores (m, l) of such rows by the models that left them out.

        Where a fold left out a whole side of a column, and the row takes no part in it, the score
        is that of the bank.
        """
        if not self._mixed:
            return self[rows]
        scores = self._all_columns[np.searchsorted(self._by_folds, rows)]
        missing = np.isnan(scores)
        some = missing.any(axis=1)
        if some.any():
            scores[some] = np.where(missing[some], self[rows[some]], scores[some])
        return scores

    def check_sides(self, classes, *, needed, scaled):
        """Report classes whose samples were all left out together, or never left out.

        Classes with a single sample are not reported, nor are samples without weight.
        """
        several = np.bincount(self.y[self.weights > 0], minlength=len(self.code)) > 1
        complete = np.zeros(len(self.y), dtype=np.bool_)
        complete[self.complete_rows()] = True
        if self._stopped_early or complete[several[self.y]].all():  # as with stratified folds
            return
        scored = self._scored()
        positive, negative = ((scored & (self.code == side)).any(axis=0) for side in (1, -1))
        lacks = ((self.code > 0) & ~positive) | ((self.code < 0) & ~negative)
        missed = lacks & several[:, None]
        unscaled = scaled and not complete.any()
        if not missed.any() and not unscaled:
            return
        missing = _missing_scores(missed, classes)
        if needed and missed.any() and not (positive & negative).any():
            raise ValueError(
                f"{missing} No column has scores of both sides, so no calibration can be fitted. "
                f"{REMEDY}"
            )
        consequence = "Calibration, scaling and trained combiners do not use them."
        if unscaled:
            consequence = "No sample has scores in all columns, so the scaling is not fitted."
        warn(f"{missing} {consequence} {REMEDY}")

    def _scored(self) -> Flags:
        """Return which classes have any score in the columns they take part in, shape (k, l)."""
        scored = self.code != 0
        ends = np.cumsum(np.bincount(self.y, minlength=len(self.code)))
        of_class = np.split(np.argsort(self.y, kind="stable"), ends[:-1])
        for own, rows in zip(scored, of_class, strict=True):
            scores = self._left_out[self._places(rows)].reshape(len(rows), own.sum())
            own[own] = ~np.isnan(scores).all(axis=0)
        return scored

    def __getitem__(self, rows: Places) -> Floats:
        """Return the scores (m, l) of these rows, NaN where there is none."""
        takes_part = self.code[self.y[rows]] != 0
        if takes_part.all():
            scores = np.empty(takes_part.shape)
        else:
            scores = self._bank_scores(rows, ~takes_part)
            check_no_nan(scores, rows, ~takes_part)
        scores[takes_part] = self._left_out[self._places(rows)]
        return scores

    def _bank_scores(self, rows: Places, where: Flags) -> Floats:
        """Return the scores of the bank itself.

        If X is stored by columns, rows are copies: they are taken a quarter of X at a time.
        """
        if is_by_columns(self.X):
            parts = np.array_split(np.arange(len(rows)), -(-4 * len(rows) // len(self.y)))
            scores = [self.bank.scores(take_rows(self.X, rows[p]), where=where[p]) for p in parts]
            return np.concatenate(scores)
        if len(rows) == len(self.y) and np.array_equal(rows, np.arange(len(rows))):
            return self.bank.scores(self.X, where=where)
        return self.bank.scores_at(self.X, rows, where=where)

    def dense(self) -> Floats:
        """Return all scores at once, shape (n, l)."""
        out = np.empty((len(self.y), self.n_columns))
        for rows in split_rows(np.arange(len(self.y)), self.n_columns, self.block_entries):
            out[rows] = self[rows]
        return out

    def column_blocks(self, weights: Floats, most_columns: int = 16) -> Iterator[ColumnBlock]:
        """Yield the left-out scores of at most 16 columns at a time, for calibration."""
        takes_part, n_columns = self.code != 0, self.n_columns
        before = np.zeros(len(self.code), dtype=np.intp)  # columns of each class so far
        width = max(1, min(most_columns, self.block_entries // len(self.y)))
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


def _missing_scores(missed: Flags, classes: NDArray) -> str:
    """Name the classes that miss scores; ``missed`` says in which columns, shape (k, l)."""
    if not missed.any():
        return "cv leaves out no sample while all its columns keep both of their sides."
    return (
        "cv leaves whole classes out, or never leaves them out: "
        f"{missed.any(axis=0).sum()} of {missed.shape[1]} columns of the code have no "
        f"out-of-sample scores of classes {some_quoted(classes[missed.any(axis=1)])}."
    )
