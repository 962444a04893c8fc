"""Machines without some of their samples: the solver goes on from the machine of all samples."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import bare_kernel, kernel, part
from manyclass.banks.svm.compiled.kernel_rows import kernel_rows, load_row, touch
from manyclass.banks.svm.compiled.smo import follow, intercept, limits, optimise, violation
from manyclass.banks.svm.compiled.span_formula import squared_spans

# A choice: a coefficient above this share of its bound C counts as at the bound. The solver sets
# those to C exactly; copies and weights leave rounding.
AT_BOUND = 1.0 - 1e-6
# A choice: a span is also doubtful if the scores of all other samples at their bound would change
# by this much, because these would become free.
DRAGGED = 0.2
# A choice: the machines of a column, each without one sample, take together at most this many times
# the steps that one of them may take. After that, doubtful spans stay.
MOST_PATIENCE = 10
# A choice: without a sample, the solver stops at this many times ``tol``, which is 0.01 by default.
# Scores are then wrong by up to 0.1 where they have changed by half a margin and more.
ROUGHER = 10.0
# A choice: samples whose margin is less than 1 + NEAR are near. Nine of ten machines without a
# sample have support vectors among these only (waveform and satimage, 3000 rows, C = 100).
NEAR = 0.5


@part
def leave_each_out(rows, side, bound, a, g, which, share, doubtful, tol, max_iter, scores, counts):
    """Set the scores of members as if each had been left out: by its span, or by the solver.

    ``which`` are the members; ``share`` is the part of each bound that remains: that of copies.
    A span is doubtful if the score would change by at least ``doubtful``.
    The counts are how many scores the solver found, how many spans were negative, and of how many.
    """
    lower, upper = limits(side, bound)
    b = intercept(lower, upper, a, g)
    place, n_support = np.empty(a.size, np.int64), 0
    for p in range(a.size):
        place[p] = n_support if a[p] != 0.0 else -1
        n_support += a[p] != 0.0
    members, size = np.empty(n_support, np.int64), np.empty(n_support)
    free, positive = np.empty(n_support, np.bool_), np.empty(n_support, np.bool_)
    for p in range(a.size):
        s = place[p]
        if s >= 0:
            members[s], size[s], positive[s] = rows.members[p], abs(a[p]), a[p] > 0.0
            free[s] = size[s] < AT_BOUND * bound[p]
    among = kernel_rows(rows.source, members, np.empty(2 * n_support))
    spans, n_negative, drag = squared_spans(among, free, positive)
    doubted, rests = np.empty(which.size, np.int64), np.empty(which.size)
    n_doubted, n_solved, steps_left, rough = 0, 0, MOST_PATIENCE * max_iter, ROUGHER * tol
    for q in range(which.size):
        p = which[q]
        scores[q] = side[p] - g[p] + b
        s = place[p]
        if s < 0:
            continue
        rest = share[q] * bound[p] if share[q] > 0.0 else 0.0
        lost = max(size[s] - rest, 0.0)
        scores[q] -= side[p] * lost * spans[s]
        dragged = not free[s] and lost * drag >= DRAGGED
        if dragged or lost * spans[s] >= doubtful:
            doubted[n_doubted], rests[n_doubted] = q, rest
            n_doubted += 1
    doubted, rests = doubted[:n_doubted], rests[:n_doubted]
    found, taken = scores_among_near(
        rows, side, bound, a, g, b, which[doubted], rests, rough, max_iter
    )
    for e in range(n_doubted):
        score, n_iter = found[e], taken[e]
        if steps_left > 0 and np.isnan(score):
            p = which[doubted[e]]
            score, n_iter = score_without(rows, side, bound, a, g, p, rests[e], rough, max_iter)
        if steps_left > 0 and not np.isnan(score):
            scores[doubted[e]] = score
            n_solved += 1
        steps_left -= n_iter
    counts[0], counts[1], counts[2] = n_solved, n_negative, n_support


@kernel
def scores_among_near(
    rows, side, bound, a, g, b, left, rests, tol, max_iter, block=32, least=2**14, most=2**23
):
    """Return the scores of members by machines without them, NaN where unknown, and the steps.

    Hardly any sample far from the margin becomes a support vector when another is left out. So the
    solver moves only the near ones; afterwards, it is checked whether the solution is that of all.
    The gradients of the others come from one matrix product for a block of machines. With few
    samples, or if many are near, it takes no less time. Kernel rows take at most 64 MB.
    """
    m, n = a.size, left.size
    scores, steps = np.full(n, np.nan), np.zeros(n, np.int64)
    is_near = (a != 0.0) | (side * (b - g) < NEAR)
    near = is_near.sum()
    if n * m < least or 2 * near > m or near * m > most:
        return scores, steps
    order = np.concatenate((np.flatnonzero(is_near), np.flatnonzero(~is_near)))
    place = np.empty(m, np.int64)
    place[order] = np.arange(m)
    left, a, g, side = place[left], a[order], g[order], side[order]
    lower, upper = limits(side, bound[order])
    ordered = kernel_rows(rows.source, rows.members[order], np.empty(max(2, near) * m))
    A, G, solved = np.empty((block, m)), np.empty((block, m)), np.empty(block, np.bool_)
    work = np.empty((3, near))
    for first in range(0, n, block):
        if steps.sum() > MOST_PATIENCE * max_iter:
            break
        part = left[first : first + block]
        for e in range(part.size):
            p = part[e]
            low, up = lower[:near].copy(), upper[:near].copy()
            low[p], up[p] = _narrow(side[p], rests[first + e])
            A[e], G[e] = a, g
            own = A[e, :near], G[e, :near]
            feasible = push_out(ordered, p, low, up, *own)
            taken = optimise(ordered, low, up, *own, tol, max_iter, work) if feasible else -1
            solved[e], steps[first + e] = taken >= 0, abs(taken)
        n_kept = 0  # rows that were needed so far
        while n_kept < near and ordered.row_in[n_kept] >= 0:
            n_kept += 1
        kept = ordered.row_in[:n_kept]
        change = A[: part.size][:, kept] - a[kept]
        product = np.dot(change, ordered.kept[:n_kept])
        for e in range(part.size):
            p = part[e]
            G[e, near:] -= product[e, near:]
            low_p, up_p = lower[p], upper[p]
            lower[p], upper[p] = _narrow(side[p], rests[first + e])
            if solved[e] and violation(lower, upper, A[e], G[e]) < tol:
                scores[first + e] = side[p] - G[e, p] + intercept(lower, upper, A[e], G[e])
            lower[p], upper[p] = low_p, up_p
    return scores, steps


@kernel
def _narrow(side, rest):
    """Return the limits of a coefficient whose bound is ``rest``."""
    return min(side * rest, 0.0), max(side * rest, 0.0)


@kernel
def score_without(rows, side, bound, a, g, p, rest, tol, max_iter):
    """Return the score of sample p by the machine whose bound of p is ``rest``, and the steps.

    The score is NaN if the solver does not converge.
    """
    lower, upper = limits(side, bound)
    lower[p], upper[p] = _narrow(side[p], rest)
    a, g = a.copy(), g.copy()
    if not push_out(rows, p, lower, upper, a, g):
        return np.nan, 1
    work = np.empty((3, a.size))
    n_iter = optimise(rows, lower, upper, a, g, tol, max_iter, work)
    if n_iter < 0:
        return np.nan, max_iter
    return side[p] - g[p] + intercept(lower, upper, a, g), n_iter


@part
def set_fold_scores(rows, side, bound, a, g, fold, tol, max_iter, scores):
    """Set the scores of each fold's members by the machine of the others.

    ``fold`` is the number of each member's fold, -1 for none. Scores are NaN where a machine has
    only one side, or does not converge.
    """
    work = np.empty((3, a.size))
    for number in range(fold.max() + 1):
        kept, n_positive, n_negative = bound.copy(), 0, 0
        for p in range(fold.size):
            if fold[p] == number:
                kept[p], scores[p] = 0.0, np.nan
            elif side[p] > 0.0:
                n_positive += 1
            else:
                n_negative += 1
        if n_positive == 0 or n_negative == 0 or n_positive + n_negative == fold.size:
            continue
        lower, upper = limits(side, kept)
        a_fold, g_fold, feasible = a.copy(), g.copy(), True
        for p in range(fold.size):
            if fold[p] == number:
                feasible = feasible and push_out(rows, p, lower, upper, a_fold, g_fold)
        if not feasible or optimise(rows, lower, upper, a_fold, g_fold, tol, max_iter, work) < 0:
            continue
        b = intercept(lower, upper, a_fold, g_fold)
        for p in range(fold.size):
            if fold[p] == number:
                scores[p] = side[p] - g_fold[p] + b


@bare_kernel
def push_out(rows, p, lower, upper, a, g):
    """Move a_p within its bounds, by steps with the samples that lose least; tell if it worked."""
    end = min(max(a[p], lower[p]), upper[p])
    sign, diagonal = np.sign(a[p] - end), rows.diagonal
    kept, slot_of, used = rows.kept, rows.slot_of, rows.used
    while a[p] != end:
        if slot_of[p] < 0:
            load_row(rows, p)
        size, K_p = abs(a[p] - end), kept[touch(slot_of, used, p)]
        partner, least = p, np.inf
        for t in range(a.size):
            room = upper[t] - a[t] if sign > 0.0 else a[t] - lower[t]
            if t == p or room <= 0.0:
                continue
            step = min(size, room)
            curvature = diagonal[p] + diagonal[t] - 2.0 * K_p[t]
            loss = 0.5 * step * curvature - sign * (g[t] - g[p])  # of each unit of the step
            if loss < least:
                partner, least = t, loss
        if partner == p:
            return False
        limit = upper[partner] if sign > 0.0 else lower[partner]
        room = abs(limit - a[partner])
        step = sign * min(size, room)
        a[p] = end if room >= size else a[p] - step
        a[partner] = limit if room <= size else a[partner] + step
        if slot_of[partner] < 0:
            load_row(rows, partner)
        follow(g, kept[touch(slot_of, used, partner)], K_p, step)
    return True
