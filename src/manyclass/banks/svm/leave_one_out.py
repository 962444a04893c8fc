"""Leave-one-out scores of support vector machines from one fit: spans, and the solver where needed.

The span formula assumes that each other sample stays what it is when one is left out: a free
support vector, one at its bound, or none. If the score would change by half a margin or more, or
all others are at their bound with it, this is wrong: other samples take its place, and the score
changes by less. With few free support vectors, as in few dimensions, such samples determine the
sigmoid. For them the solver goes on without the sample, from the solution with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.rows import is_everything
from manyclass.banks.base import Untrusted
from manyclass.banks.repeats import Copies
from manyclass.banks.svm.compiled.left_out_scores import AT_BOUND
from manyclass.banks.svm.compiled.machines import Problems, fill_scores, list_left_out
from manyclass.banks.svm.groups import RowsOf

if TYPE_CHECKING:
    from manyclass.banks.svm.bank import KernelBank
    from manyclass.banks.svm.training import Training

# A choice: up to this share of squared spans may be negative by rounding. Of an indefinite kernel
# far more are.
EXCUSED = 0.01


def leave_one_out(
    bank: KernelBank, X, y: Places, code: Code, weights: Floats, rows: Places | None
) -> Floats:
    """Return the scores of :meth:`KernelBank.leave_one_out`, for an X that was read before."""
    training = bank.training
    if training is None:
        raise Untrusted("LIBSVM fitted the machines")
    if not bank.converged:
        raise Untrusted("the solver stopped before it converged")
    rows = np.arange(len(y)) if rows is None else rows
    size = 8.0 * len(rows) * code.shape[1]
    if size > bank.limits.score_bytes:
        raise Untrusted(f"the scores of all columns would take {size / 2**30:.1f} GB")
    n_free = _most_free(training.problems)
    if 8.0 * n_free**2 > bank.limits.free_bytes:
        raise Untrusted(
            f"a machine has {n_free} free support vectors, whose kernel matrix would take "
            f"{8.0 * n_free**2 / 2**30:.1f} GB"
        )
    scores = _margins(bank, training, X, y, rows)
    place, share = _places(bank, training, X, y, weights)
    used = weights[rows] > 0
    counts = np.bincount(y[rows][used], minlength=len(code)) @ (code != 0)
    starts = np.concatenate([[0], np.cumsum(counts)])
    samples, which = np.empty((2, starts[-1]), dtype=np.int64)
    problems = training.problems
    list_left_out(problems, y[rows], code, used, place[rows], starts, samples, which)
    rule = bank.limits.doubtful, bank.limits.left_out_tol
    values, found = training.leave_each_out(starts, which, share[rows][samples], *rule)
    fill_scores(starts, samples, values, scores)
    bank.n_solved = found[:, 0]
    scores = without_only_samples(scores, y, code, weights, rows)
    if found[:, 1].sum() > EXCUSED * found[:, 2].sum():
        every = np.ones(code.shape[1], dtype=np.bool_)
        raise Untrusted("the kernel is not positive definite", every, scores)
    return scores


def _most_free(problems: Problems) -> int:
    """Return the largest number of free support vectors of a machine."""
    free = (problems.a != 0.0) & (np.abs(problems.a) < AT_BOUND * problems.bound)
    ends = np.concatenate([[0], np.cumsum(free)])[problems.starts]
    return int(np.diff(ends).max())


def _margins(bank: KernelBank, training: Training, X, y: Places, rows: Places) -> Floats:
    """Return the margins (m, l) of some rows by the machines of all samples."""
    everything = is_everything(rows, len(y))
    if len(training.rows) == len(y) and not bank.once_each:
        margins = training.margins(bank.duals, rows)
        if margins is not None:
            return margins
    single = not bank.any_rows and bank.is_exact_in_single(X, rows)
    own = X if everything else RowsOf(X, rows)
    return bank.margins_once(own, np.float32 if single else np.float64, training.n_jobs)


def _places(
    bank: KernelBank, training: Training, X, y: Places, weights: Floats
) -> tuple[Places, Floats]:
    """Return the place of each sample among the solver's, and its copies' share of the weight."""
    place, share = np.full(len(y), -1), np.zeros(len(y))
    place[training.rows] = np.arange(len(training.rows))
    if bank.once_each:
        copies = Copies(X, y, weights)
        samples, of = copies.of(training.rows)
        place[samples] = of
        share[samples] = 1.0 - weights[samples] / copies.weights_of(training.rows)[of]
    return place, share


def scores_by_folds(
    bank: KernelBank,
    training: Training,
    X,
    y: Places,
    weights: Floats,
    columns: Flags,
    numbers: Places,
) -> Floats:
    """Return scores (n, columns) of samples by machines without their fold; NaN for others."""
    place = _places(bank, training, X, y, weights)[0]
    values = training.leave_folds_out(columns, numbers[training.rows])
    problems, used, n_columns = training.problems, weights > 0, int(columns.sum())
    sizes = np.diff(problems.starts)
    chosen, at = np.repeat(columns, sizes), np.repeat(np.arange(n_columns), sizes[columns])
    of_places = np.full((len(training.rows), n_columns), np.nan)
    of_places[problems.members[chosen], at] = values[chosen]
    out = np.full((len(y), n_columns), np.nan)
    out[used] = of_places[place[used]]
    return out


def without_only_samples(scores, y, code, weights, rows):
    """Set scores to NaN where a sample is the only one of its side: no machine is without it."""
    counts = np.bincount(y[weights > 0], minlength=len(code))
    for side in (1, -1):
        for column in np.flatnonzero(counts @ (code == side) == 1):
            only = (code[y[rows], column] == side) & (weights[rows] > 0)
            scores[only, column] = np.nan
    return scores
