"""Problems of all columns as they are solved: in threads, and again with samples left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.compiled.blocks import add_intercepts, spread
from manyclass._lib.interrupts import count_threads, run_in_threads
from manyclass.banks.svm.compiled.kernel_rows import Source
from manyclass.banks.svm.compiled.machines import (
    Problems,
    count_members,
    duals_by_rows,
    leave_folds_out,
    leave_out_columns,
    set_members,
    solve_columns,
)

# A choice: a machine that goes on from another may take this many times its steps, and this many
# more for each sample.
PATIENCE = 10


def make_problems(source: Source, y: Places, code: Code, bounds: Floats) -> Problems:
    """Return the problems of all columns, unsolved; ``bounds`` are the C of the samples."""
    used, starts = bounds > 0, np.empty(code.shape[1] + 1, dtype=np.int64)
    y, code = np.ascontiguousarray(y), np.ascontiguousarray(code)
    count_members(y, code, used, starts)
    size, l = starts[-1], code.shape[1]
    side, bound, a, g = np.empty((4, size))
    members, n_iter = np.empty(size, dtype=np.int64), np.empty(l, dtype=np.int64)
    problems = Problems(source, starts, members, side, bound, a, g, np.empty(l), n_iter)
    set_members(y, code, used, bounds, problems)
    return problems


@dataclass(frozen=True)
class Training:
    """The solved problems of a bank, which needs them until the fit has ended.

    Parameters
    ----------
    problems : Problems
    rows : int array
        The rows of the training data that the members of the problems are.
    tol : float
        Tolerance of the solver.
    cache_size : float
        Megabytes for rows of kernel matrices.
    n_jobs : int or None
        Number of threads. The results do not depend on it.
    """

    problems: Problems
    rows: Places
    tol: float
    cache_size: float
    n_jobs: int | None

    def solve(
        self,
        max_iter: int,
        growth: float = 0.0,
        most_steps: int = 10_000_000,
        most_of_a_sample: int = 100,
    ) -> None:
        """Solve the problems of all columns.

        If ``max_iter`` is -1, the limits are LIBSVM's: so many steps, or so many for each sample
        if these are more. Without any, features of 1e6 may take days. With ``growth`` the problems
        hold the solution for bounds that were smaller by this factor.
        """
        if max_iter == -1:
            largest = int(np.diff(self.problems.starts).max(initial=0))
            max_iter = max(most_steps, most_of_a_sample * largest)
        given = self.tol, max_iter, growth
        self._run(lambda *part: solve_columns(self.problems, *part[:2], *given, part[2]))

    @property
    def unbounded(self) -> bool:
        """Whether coefficients are so far from their bounds that larger ones change nothing."""
        return bool((2.0 * np.abs(self.problems.a) < self.problems.bound).all())

    def with_larger_bounds(self, growth: float, max_iter: int) -> Training:
        """Return the training with bounds larger by a factor, solved from this solution."""
        p = self.problems
        own = p.a.copy(), p.g.copy(), p.intercept.copy(), p.n_iter.copy()
        problems = Problems(p.source, p.starts, p.members, p.side, growth * p.bound, *own)
        training = replace(self, problems=problems)
        training.solve(max_iter, growth)
        return training

    def duals(self, n: int) -> csr_array:
        """Return the signed dual coefficients (n, l)."""
        p = self.problems
        size = np.count_nonzero(p.a)
        start = np.zeros(n + 2, dtype=np.int64)
        columns, values = np.empty(size, dtype=np.int64), np.empty(size)
        members = self.rows[p.members]
        duals_by_rows(p.starts, members, p.a, start, columns, values)
        return csr_array((values, columns, start[:-1]), shape=(n, len(p.intercept)))

    def margins(self, duals: csr_array, places: Places) -> Floats | None:
        """Return the margins (m, l) of some of the samples; None without a kernel matrix."""
        gram, b = self.problems.source.gram, self.problems.intercept
        if gram.size == 0:
            return None
        block = gram if len(places) == len(gram) else np.ascontiguousarray(gram[:, places])
        sums, out = np.zeros((len(b), len(places))), np.empty((len(places), len(b)))
        own = duals if len(gram) == duals.shape[0] else duals[self.rows]
        spread(block, own.indptr, own.indices, own.data, sums)
        add_intercepts(sums, b, out)
        return out

    def leave_each_out(
        self, starts: Places, which: Places, share: Floats, doubtful: float, tol: float
    ) -> tuple[Floats, Places]:
        """Return scores of members as if each had been left out, and counts (l, 3).

        The tolerance is ten times that of the fit, or ``tol`` if that is smaller, but at least
        that of the fit. See
        :func:`~manyclass.banks.svm.compiled.machines.leave_out_columns`.
        """
        scores, counts = np.empty(len(which)), np.zeros((len(starts) - 1, 3), dtype=np.int64)
        tol = max(self.tol, min(10.0 * self.tol, tol))
        listed = starts, which, share, doubtful, PATIENCE, tol
        self._run(
            lambda *part: leave_out_columns(
                self.problems, *part[:2], *listed, part[2], scores, counts
            )
        )
        return scores, counts

    def leave_folds_out(self, columns: Flags, fold: Places) -> Floats:
        """Return scores of the members of some columns by folds; ``fold`` is that of a sample."""
        scores, places = np.full(len(self.problems.a), np.nan), np.flatnonzero(columns)
        given = fold, PATIENCE, self.tol
        self._run(
            lambda *part: leave_folds_out(
                self.problems, places, *part[:2], *given, part[2], scores
            ),
            places,
        )
        return scores

    def _run(self, task: Callable[[int, int, int], Any], columns: Places | None = None) -> None:
        """Call ``task(first, last, store_entries)`` for parts of the columns, in threads."""
        sizes = np.diff(self.problems.starts)
        sizes = (sizes if columns is None else sizes[columns]).astype(np.float64)
        work = sizes**2 * (1 + self.problems.source.features.shape[0])
        n_jobs = count_threads(self.n_jobs, len(sizes))
        most = self.cache_size * 2.0**20 / 8 / n_jobs
        ends = _parts(work, 1 if n_jobs == 1 else 8 * n_jobs)
        parts = []
        for first, last in pairwise(ends):
            largest = sizes[first:last].max(initial=1.0)
            parts.append((first, last, int(max(2 * largest, min(largest**2, most)))))
        run_in_threads(task, parts, n_jobs, work=float(work.sum()))


def _parts(work: Floats, n_parts: int) -> list[int]:
    """Return the ends of consecutive parts of about the same work, without empty ones."""
    total = np.cumsum(work)
    ends = np.searchsorted(total, total[-1] * np.arange(1, n_parts) / n_parts) + 1
    return np.unique([0, *ends, len(work)]).tolist()
