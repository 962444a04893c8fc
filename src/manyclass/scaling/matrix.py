"""Matrix scaling with a ridge: softmax(z + M x), where M is shrunk to 0."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.interrupts import count_threads
from manyclass.scaling.kernels.limited_memory import (
    add_blocks,
    advance,
    begin,
    evaluate_rows,
    minimise_matrix,
)


def log_losses(logits: Floats, y: Places) -> Floats:
    """Return the log-loss of each row of softmax(logits)."""
    highest = logits.max(axis=1)  # scipy's logsumexp takes ten times as long for a hundred rows
    total = np.exp(logits - highest[:, None]).sum(axis=1)
    return np.log(total) + (highest - logits[np.arange(len(y)), y])


class Search(NamedTuple):
    """A matrix that was found, and the steps on the way: another search can start from there.

    Everything is in units of 1 / sqrt(ridge).
    """

    units: Floats
    """Shape (d, k)."""
    v: Floats
    """The matrix, shape (d k,)."""
    steps: Floats
    """Differences of matrices, shape (m, d k)."""
    changes: Floats
    """Changes of the gradient along the steps."""

    @property
    def M(self) -> Floats:
        """The matrix, shape (d, k)."""
        return self.v.reshape(self.units.shape) * self.units

    def in_units(self, units: Floats) -> tuple[Floats, Floats, Floats]:
        """Return v, steps and changes in other units. The ridge alone has the Hessian 2 I."""
        factors = (self.units / units).ravel()
        steps = self.steps * factors
        changes = (self.changes - 2.0 * self.steps) / factors + 2.0 * steps
        return self.v * factors, steps, changes


def search_matrix(
    z: Floats,
    X: Floats,
    y: Places,
    sample_weight: Floats,
    ridge: Floats,
    tol: float,
    start: Search | None = None,
    n_jobs: int | None = None,
    *,
    block: int = 512,
    long: int = 4_000_000,
) -> Search:
    """Search for the matrix M (d, k) with the least mean log-loss of softmax(z + X M) and ridge.

    L-BFGS on the entries of ``M * sqrt(ridge)``: in these units, the ridge is the same for all
    entries, and the problem is strongly convex.

    Parameters
    ----------
    z : array of shape (n, k)
        Logits to begin with. Of z and X, columns are best contiguous.
    X : array of shape (n, d)
        Features.
    y : int array of shape (n,)
        True classes.
    sample_weight : array of shape (n,)
        Weights. Only their ratios matter here.
    ridge : array of shape (d, k)
        Factors of the squared entries of M. They are positive.
    tol : float
        The search stops when a step reduces the objective by less than this.
    start : Search, optional
        Of some of the samples, or with another ridge. By default, the search starts at 0.
    n_jobs : int, optional
        Threads. They do not change the result.
    block : int
        Samples of a block, whose sums are added up in order: so threads do not change any bit. A
        choice: the blocks of letter's 352 features, 1.4 MB, take the least time.
    long : int
        Products of an evaluation from which threads share it. A choice: below, it takes less than
        half a millisecond.
    """
    units = 1.0 / np.sqrt(ridge)
    shares = sample_weight / sample_weight.sum()
    ends = np.append(np.arange(0, len(y), block), len(y))
    # Steps that are remembered, a choice: with 40, the smallest problems take half as many as with
    # 20. The largest find their minimum in fewer, and do without the memory.
    most = 40 if units.size < 10**5 else 20
    steps, changes = np.empty((2, most, units.size))
    v, known = np.zeros(units.size), 0
    if start is not None:
        known = len(start.steps)
        v, steps[:known], changes[:known] = start.in_units(units)
    problem = _in_blocks(z, ends), _in_blocks(X, ends), y, shares, units.ravel(), tol
    search = v, steps, changes, known, ends
    n_threads = count_threads(n_jobs, len(ends) - 1) if units.size * len(y) > long else 1
    if n_threads > 1:
        n_steps = _minimise_in_threads(*problem, *search, n_threads)
    else:
        n_steps = minimise_matrix(*problem, *search)
    if n_steps > most:  # the oldest are not the first
        steps, changes = (np.roll(each, -n_steps % most, axis=0) for each in (steps, changes))
    return Search(units, v, steps[:n_steps], changes[:n_steps])


def _in_blocks(rows: Floats, ends: Places) -> Floats:
    """Return blocks of rows one after the other; in each, loops over samples are long."""
    if len(ends) == 2:
        return np.ascontiguousarray(rows.T).ravel()
    width, out = rows.shape[1], np.empty(rows.size)
    for first, last in pairwise(ends.tolist()):
        out[width * first : width * last].reshape(width, -1)[:] = rows[first:last].T
    return out


def _minimise_in_threads(
    z, X, y, shares, units, tol, v, steps, changes, known, ends, n_threads
) -> int:
    """Do what ``minimise_matrix`` does, to the same bits: threads share the blocks of samples."""
    k, blocks = len(z) // len(y), list(enumerate(pairwise(ends.tolist())))
    losses, parts = np.empty(len(blocks)), np.empty((len(blocks), len(v)))
    work, ahead = begin(v, steps, changes, known), np.empty(len(v))
    there, state, done = work[0], work[7], False

    def evaluate(own) -> None:
        logits = np.empty(k * np.diff(ends).max())
        for b, (first, last) in own:
            losses[b] = evaluate_rows(z, X, y, shares, M, k, first, last, logits, parts[b])

    with ThreadPoolExecutor(n_threads) as pool:
        while not done and state[3] < known + 500:
            M = there * units
            list(pool.map(evaluate, (blocks[thread::n_threads] for thread in range(n_threads))))
            done = advance(add_blocks(losses, parts, units, there, ahead), ahead, tol, *work)
    return int(state[3])
