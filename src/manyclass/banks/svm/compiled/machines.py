"""The machines of all columns, in compiled code: solved, and scored with samples left out.

Arrays of a column's members lie one after the other: those of column c are ``starts[c]`` to
``starts[c + 1]``. Columns are independent, so threads may share them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.compiled import kernel
from manyclass.banks.svm.compiled.kernel_rows import Source, kernel_rows
from manyclass.banks.svm.compiled.left_out_scores import leave_each_out, set_fold_scores
from manyclass.banks.svm.compiled.smo import goes_on, intercept, limits, optimise, stretch


class Problems(NamedTuple):
    """The optimisation problems of all columns, and their solutions."""

    source: Source
    starts: Places  # (l + 1,)
    members: Places  # rows of the training data, ascending in each column
    side: Floats  # 1 or -1 of each member
    bound: Floats  # the C of each member
    a: Floats  # signed coefficients
    g: Floats  # gradients: side - K a
    intercept: Floats  # (l,); infinite if there is one side only, 0 without members
    n_iter: NDArray[np.int64]  # (l,) steps of the solver; see :func:`optimise`


@kernel
def count_members(y, code, used, starts):
    """Set the starts of the columns; return nothing."""
    sizes = np.zeros(code.shape[0], np.int64)
    for r in range(y.size):
        sizes[y[r]] += used[r]
    starts[0] = 0
    for c in range(code.shape[1]):
        starts[c + 1] = starts[c]
        for k in range(code.shape[0]):
            if code[k, c] != 0:
                starts[c + 1] += sizes[k]


@kernel
def set_members(y, code, used, bounds, problems):
    """List the members of every column, with their sides and bounds."""
    ends, columns = problems.starts.copy(), np.empty(code.shape, np.int64)
    sizes = np.zeros(code.shape[0], np.int64)  # in how many columns each class takes part
    for k in range(code.shape[0]):
        for c in range(code.shape[1]):
            columns[k, sizes[k]] = c
            sizes[k] += code[k, c] != 0
    for r in range(y.size):
        for at in range(sizes[y[r]] if used[r] else 0):
            c = columns[y[r], at]
            e = ends[c]
            problems.members[e], problems.side[e] = r, code[y[r], c]
            problems.bound[e] = bounds[r]
            ends[c] += 1


@kernel
def solve_columns(problems, first, last, tol, max_iter, growth, store_entries):
    """Solve the problems of some columns.

    The first member is positive in the solver. So the solution for the negative column is the
    negative of this solution, to the last bit.

    If ``growth`` is not 0, the problems hold the solution for bounds that were smaller by this
    factor. The solver goes on from there, unless most support vectors were at their bounds: then
    it is faster without. The steps of both are added.
    """
    store = np.empty(store_entries)
    for c in range(first, last):
        part = slice(problems.starts[c], problems.starts[c + 1])
        a, g, side = problems.a[part], problems.g[part], problems.side[part]
        sign, one_sided = side[0] if side.size > 0 else 0.0, True
        own, warm = np.empty(side.size), goes_on(problems.bound[part], a, growth)
        for t in range(side.size):
            own[t] = sign * side[t]
            a[t], g[t] = (sign * a[t], sign * g[t]) if warm else (0.0, own[t])
            one_sided = one_sided and own[t] > 0.0
        before = max(problems.n_iter[c], 0) if warm else 0
        problems.n_iter[c] = 0
        if one_sided:
            problems.intercept[c] = sign * np.inf if side.size > 0 else 0.0
            continue
        rows = kernel_rows(problems.source, problems.members[part], store)
        lower, upper = limits(own, problems.bound[part])
        if warm:
            stretch(own, a, g, growth, tol)
        n_iter = optimise(rows, lower, upper, a, g, tol, max_iter, np.empty((3, a.size)))
        problems.n_iter[c] = n_iter if n_iter < 0 else n_iter + before
        problems.intercept[c] = sign * intercept(lower, upper, a, g)
        for t in range(side.size):
            a[t] *= sign
            g[t] *= sign


@kernel
def leave_out_columns(
    problems,
    first,
    last,
    starts,
    which,
    share,
    doubtful,
    patience,
    tol,
    store_entries,
    scores,
    counts,
):
    """Set the scores of members of some columns as if each had been left out.

    As in :func:`solve_columns`, the first member is positive.
    ``starts``, ``which`` and ``share`` list the members to leave out; see :func:`leave_each_out`,
    also for ``doubtful`` and the counts (l, 3).
    """
    store = np.empty(store_entries)
    for c in range(first, last):
        part = slice(problems.starts[c], problems.starts[c + 1])
        bound = problems.bound[part]
        if np.isinf(problems.intercept[c]) or bound.size == 0:
            for e in range(starts[c], starts[c + 1]):
                scores[e] = problems.intercept[c]
            continue
        sign = problems.side[problems.starts[c]]
        side, a, g = sign * problems.side[part], sign * problems.a[part], sign * problems.g[part]
        rows = kernel_rows(problems.source, problems.members[part], store)
        max_iter = patience * (abs(problems.n_iter[c]) + bound.size)
        out = slice(starts[c], starts[c + 1])
        left, rest, values = which[out], share[out], scores[out]
        leave_each_out(
            rows, side, bound, a, g, left, rest, doubtful, tol, max_iter, values, counts[c]
        )
        for e in range(values.size):
            values[e] *= sign


@kernel
def leave_folds_out(problems, columns, first, last, fold, patience, tol, store_entries, scores):
    """Set the scores of all members of some columns by folds; ``fold`` is that of each row.

    As in :func:`solve_columns`, the first member is positive.
    """
    store = np.empty(store_entries)
    for c in columns[first:last]:
        part = slice(problems.starts[c], problems.starts[c + 1])
        bound = problems.bound[part]
        if np.isinf(problems.intercept[c]) or bound.size == 0:
            scores[part] = problems.intercept[c]
            continue
        sign = problems.side[problems.starts[c]]
        side, a, g = sign * problems.side[part], sign * problems.a[part], sign * problems.g[part]
        members = problems.members[part]
        rows = kernel_rows(problems.source, members, store)
        max_iter = patience * (abs(problems.n_iter[c]) + bound.size)
        set_fold_scores(rows, side, bound, a, g, fold[members], tol, max_iter, scores[part])
        for e in range(problems.starts[c], problems.starts[c + 1]):
            scores[e] *= sign


@kernel
def duals_by_rows(starts, members, a, start, columns, values):
    """Set the coefficients by rows (CSR), columns in ascending order; ``start`` has n + 2 zeros."""
    for e in range(a.size):
        if a[e] != 0.0:
            start[members[e] + 2] += 1
    for r in range(2, start.size):
        start[r] += start[r - 1]
    for c in range(starts.size - 1):
        for e in range(starts[c], starts[c + 1]):
            if a[e] != 0.0:
                at = start[members[e] + 1]
                columns[at], values[at] = c, a[e]
                start[members[e] + 1] += 1


@kernel
def list_left_out(problems, y, code, used, place, starts, samples, which):
    """List the samples that take part in each column, and which member of the column each is.

    ``place`` is that of each sample among those of the problems.
    """
    n_places = 0
    for s in range(place.size):
        n_places = max(n_places, place[s] + 1)
    member = np.empty(n_places, np.int64)
    for c in range(code.shape[1]):
        for e in range(problems.starts[c], problems.starts[c + 1]):
            if problems.members[e] < n_places:
                member[problems.members[e]] = e - problems.starts[c]
        e = starts[c]
        for s in range(y.size):
            if used[s] and code[y[s], c] != 0:
                samples[e], which[e] = s, member[place[s]]
                e += 1


@kernel
def fill_scores(starts, samples, values, scores):
    """Write the listed values of every column into the scores (m, l)."""
    for c in range(scores.shape[1]):
        for e in range(starts[c], starts[c + 1]):
            scores[samples[e], c] = values[e]
