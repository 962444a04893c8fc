"""Leave-one-out scores of support vector machines from one fit: spans, and a few refits.

The span formula assumes that each other sample stays what it is when one is left out: a free
support vector, one at its bound, or none. If the score would change by more than a margin, or all
others at their bound with it, this is wrong: other samples take its place, and the score changes by
less. With few free support vectors, as in few dimensions, such samples determine the sigmoid. So
machines are fitted again without them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.rows import is_everything
from manyclass.banks.base import Untrusted
from manyclass.banks.limits import Limits
from manyclass.banks.repeats import Copies
from manyclass.banks.svm.groups import RowsOf, size_in_bytes
from manyclass.banks.svm.spans import (
    Gram,
    in_parts,
    squared_spans_by_blocks,
    symmetric,
    without_only_samples,
)

if TYPE_CHECKING:
    from manyclass.banks.svm.bank import KernelBank

# A choice: a coefficient above this share of its bound C counts as at the bound. LIBSVM sets
# those to C exactly; copies and weights leave rounding.
AT_BOUND = 1.0 - 1e-6
# A choice: up to this share of squared spans may be negative by rounding. Of an indefinite kernel
# far more are.
EXCUSED = 0.01
# Choices: a span is doubtful if the sample's score would change by so many margins,
DOUBTFUL = 1.5
# or if all other samples at their bound would change by so much: they would become free.
DRAGGED = 0.2
# A choice: up to this share of a column's samples, doubtful ones hardly change its sigmoid.
MANY = 0.01


def leave_one_out(
    bank: KernelBank, X, y: Places, code: Code, weights: Floats, rows: Places | None
) -> Floats:
    """Return the scores of :meth:`KernelBank.leave_one_out`, for an X that was read before."""
    if not bank.converged:
        raise Untrusted("the solver stopped before it converged")
    rows = np.arange(len(y)) if rows is None else rows
    size = 8.0 * len(rows) * code.shape[1]
    if size > bank.limits.score_bytes:
        raise Untrusted(f"the scores of all columns would take {size / 2**30:.1f} GB")
    single = not bank.any_rows and bank.is_exact_in_single(X, rows)
    own = X if is_everything(rows, len(y)) else RowsOf(X, rows)
    scores = bank.margins_once(own, np.float32 if single else np.float64)
    place = np.full(len(y), -1)
    place[rows] = np.arange(len(rows))
    copies = Copies(X, y, weights) if bank.once_each else None
    doubts = _subtract_spans(bank, X, weights, copies, place, scores)
    n_doubtful = np.array([len(doubtful) for doubtful in doubts])
    n_members = _members(y, code, weights)
    many = n_doubtful > MANY * _members(y[rows], code, weights[rows])
    affordable = is_affordable(n_doubtful, n_members, bank.n_iter, bank.limits)
    if bank.bound is not None and affordable:
        for column, left_out, refitted in _refits(bank, X, y, code, weights, doubts, bank.bound):
            scores[place[left_out], column] = refitted
        many[:] = False
    scores = without_only_samples(scores, y, code, weights, rows)
    if many.any():
        raise Untrusted("the formula does not tell how far scores would change", many, scores)
    return scores


def _members(y: Places, code: Code, weights: Floats) -> Places:
    """Return how many samples take part in each column."""
    return np.bincount(y[weights > 0], minlength=len(code)) @ (code != 0)


def _subtract_spans(
    bank: KernelBank, X, weights: Floats, copies: Copies | None, place: Places, scores: Floats
) -> list[Places]:
    """Subtract from each score what the sample has added to it; return doubtful samples by column.

    If a sample has copies, their coefficients replace its own, up to their bound. ``place`` is the
    place of each sample among the scores, or -1.
    """
    duals = bank.duals.tocsc()
    below = known = 0
    doubts = []
    for column in range(duals.shape[1]):
        entries = slice(duals.indptr[column], duals.indptr[column + 1])
        support, dual = duals.indices[entries], duals.data[entries]
        if len(support) == 0:
            doubts.append(support)
            continue
        samples, of = (support, slice(None)) if copies is None else copies.of(support)
        total = weights[support] if copies is None else copies.weights_of(support)
        bounds = _bounds(dual, total, bank.bound)
        free, scored = np.abs(dual) < AT_BOUND * bounds, place[samples] >= 0
        n_free = int(free.sum())
        if (size := 8.0 * n_free**2) > bank.limits.gram_bytes:
            raise Untrusted(
                f"a machine has {n_free} free support vectors, whose kernel matrix would take "
                f"{size / 2**30:.1f} GB"
            )
        wanted = np.zeros(len(support), dtype=np.bool_)
        wanted[np.arange(len(support))[of][scored]] = True
        spans = squared_spans_by_blocks(
            _gram(bank, X, support), free, dual > 0, wanted, block_entries=bank.limits.span_entries
        )
        rest = 1.0 - weights[samples] / total[of]
        others = np.multiply(bounds[of], rest, where=rest > 0, out=np.zeros(len(samples)))
        lost = np.sign(dual[of]) * np.maximum(np.abs(dual[of]) - others, 0.0)
        change = (lost * spans.squared[of])[scored]
        scored_rows = samples[scored]
        scores[place[scored_rows], column] -= change
        dragged = ~free[of] & (np.abs(lost) * spans.drag >= DRAGGED)
        doubts.append(scored_rows[(np.abs(change) >= DOUBTFUL) | dragged[scored]])
        below, known = below + spans.below, known + int(wanted.sum())
    if below > EXCUSED * known:
        raise Untrusted("the kernel is not positive definite")
    return doubts


def _refits(
    bank: KernelBank, X, y, code, weights: Floats, doubts: list[Places], bound: float
) -> Iterator[tuple[int, Places, Floats]]:
    """Yield scores of doubtful samples from machines that were fitted without them."""
    for column, doubtful in enumerate(doubts):
        if len(doubtful) == 0:
            continue
        side = code[y, column]
        members = np.flatnonzero((side != 0) & (weights > 0))
        everyone = np.arange(len(members))
        K = _gram(bank, X, members)(everyone, everyone)
        problem = K, side[members] > 0, weights[members], bound
        left_out = np.searchsorted(members, doubtful)
        refitted = scores_without(*problem, left_out, int(bank.n_iter[column]))
        known = ~np.isnan(refitted)
        yield column, doubtful[known], refitted[known]


def _gram(bank: KernelBank, X, support: Places) -> Gram:
    """Return a function for the kernel between support vectors; a small matrix is kept."""
    kernel, origin = bank.kernel, bank.origin

    def block(a: Places, b: Places) -> Floats:
        return kernel.between(X, support[a], support[b], origin)

    if len(support) ** 2 > bank.limits.small_gram:
        return lambda a, b: in_parts(block, *(_parts(bank, X, support, c) for c in (a, b)))
    K = symmetric(block, _parts(bank, X, support, np.arange(len(support))))
    return lambda a, b: K[a[:, None], b]


def _parts(bank: KernelBank, X, support: Places, places: Places) -> list[Places]:
    """Split places of support vectors, so that not all rows of a large X are copied at once."""
    if not bank.kernel.numeric:
        return [places]
    size = size_in_bytes(RowsOf(X, support[places]))
    n_parts = 1 + min(bank.limits.gram_parts, size // bank.few_bytes())
    return np.array_split(places, n_parts)


def _bounds(dual: Floats, weights: Floats, bound: float | None) -> Floats:
    """Return the bounds of coefficients; if C is unknown, the largest of each side is taken."""
    if bound is not None:
        return bound * weights
    size = np.abs(dual) / weights
    largest = {sign: size[np.sign(dual) == sign].max(initial=0.0) for sign in (-1.0, 1.0)}
    return weights * np.where(dual > 0, largest[1.0], largest[-1.0])


def is_affordable(
    n_doubtful: Places, n_samples: Places, n_iter: NDArray[np.int_], limits: Limits
) -> bool:
    """Tell whether the machines can be fitted again without each doubtful sample.

    Arrays (l,): doubtful samples, samples, and steps of the solver in each column.
    """
    work = n_doubtful * n_samples * (n_samples + n_iter.astype(np.float64))
    largest = n_samples[n_doubtful > 0].max(initial=0)
    few = n_doubtful.sum() <= limits.refits and largest <= limits.refit_samples
    return bool(few and work.sum() <= limits.refit_work)


def scores_without(
    K: Floats, positive: Flags, weights: Floats, C: float, left_out: Places, n_iter, patience=10
) -> Floats:
    """Return the margins of samples by machines that were fitted without each of them.

    K (m, m) is the kernel matrix of a column's samples, ``left_out`` are places among them. A
    machine may take ``patience`` times the steps ``n_iter`` of the machine of all samples, and as
    many per sample. A score is NaN if the side has no other sample, or if the solver did not
    converge.
    """
    scores = np.full(len(left_out), np.nan)
    checked = {"assume_finite": True, "skip_parameter_validation": True}
    for i, p in enumerate(left_out):
        others = np.flatnonzero(np.arange(len(K)) != p)
        if not (positive[others] == positive[p]).any():
            continue
        machine = SVC(C=C, kernel="precomputed", max_iter=patience * (n_iter + len(K)))
        with warnings.catch_warnings(), config_context(**checked):
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(K[np.ix_(others, others)], positive[others], weights[others])
        if machine.fit_status_ == 0:
            near = K[p, others[machine.support_]]
            scores[i] = float(machine.dual_coef_[0] @ near + machine.intercept_[0])
    return scores
