"""How a coupling rule meets its data: blocks of validated rows, threads, one warning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from threading import Thread
from typing import ClassVar, NamedTuple

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from manyclass import codes
from manyclass._lib.jobs import check_n_jobs
from manyclass._lib.messages import warn
from manyclass.combiners.base import Combination, Combiner
from manyclass.combiners.coupling.kernels.by_block import condense, find_outside
from manyclass.combiners.coupling.kernels.by_row import incoherence_of

BLOCK_BYTES = 2**20  # of binary probabilities: small enough for a core's cache
FEWEST_ROWS = 32  # in a block, however many columns: kernels allocate their workspace for each
MOST_ITERATIONS = 2**31 - 1  # what ``iterations`` can count
LIGHTEST = 1e-9  # weight of a column to the heaviest: what less could decide is lost in rounding
PAIR_SLACK = 1e-6  # how far r_ij + r_ji may be from 1: float32 inputs are off by 1e-7

Reader = Callable[[int, int], NDArray[np.float64]]
"""Gives rows ``first`` to ``last`` as a validated (m, l) block."""

Solver = Callable[
    [NDArray[np.float64], NDArray[np.float64], NDArray[np.int32], NDArray[np.bool_]], None
]
"""Couples a block: reads ``r`` (m, l); fills ``p`` (m, k) and, unless the rule has
a closed form, ``iterations`` and ``converged``."""


class Coupling(NamedTuple):
    """Class probabilities with what is known about each row."""

    p: NDArray[np.float64]
    """Probabilities, shape (n, k)."""
    iterations: NDArray[np.int32]
    """Iterations spent on each row; 1 where the rule has a closed form."""
    converged: NDArray[np.bool_]
    """Whether each row reached the rule's tolerance."""
    incoherence: NDArray[np.float64]
    """Weighted root-mean-square of ``r_b - q_b(p)``: how far the binary models
    contradict each other on this row."""


class CouplingRule(Combiner):
    """Base of the rules that turn binary probabilities into class probabilities.

    A rule implements :meth:`prepare`; blocks, threads and validation are done
    here.
    """

    takes = "probabilities"
    gives_probabilities = True
    is_slow: ClassVar[bool] = False
    """Whether rows may take milliseconds: few at a time then, for interrupts to be heard."""

    @property
    def needs_identifiable(self) -> bool:
        """Whether the code has to determine the class probabilities."""
        return True

    def check_identifiable(self, code: NDArray[np.int8]) -> None:
        """Raise a ``ValueError`` if this rule cannot do with what the code determines."""
        if not self.needs_identifiable:
            return
        try:
            codes.check_identifiable(code)
        except ValueError as error:
            raise ValueError(
                f"{error} Or use the rule 'least-squares', which prefers even distributions "
                "where columns are missing."
            ) from None

    @abstractmethod
    def prepare(self, code: NDArray[np.int8], weights: NDArray[np.float64]) -> Solver:
        """Return the function that couples a block of rows under this code.

        Whatever depends on the code and the weights alone is computed here, once.
        """

    def combine(
        self,
        values: NDArray[np.float64],
        code: NDArray[np.int8],
        weights: NDArray[np.float64] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Combination:
        """Couple binary probabilities (n, l) into class probabilities (n, k)."""
        coupling = couple_blocks(self, read_columns(values), len(values), code, weights, n_jobs)
        return Combination(*coupling[:3])


def couple_blocks(
    rule: CouplingRule,
    read: Reader,
    n: int,
    code: NDArray[np.int8],
    weights: ArrayLike | None,
    n_jobs: int | None,
    with_incoherence: bool = False,
) -> Coupling:
    """Couple ``n`` rows block by block; workspace does not grow with ``n``."""
    rule.check_code(code)
    _check_limits(rule)
    check_n_jobs(n_jobs)
    k, n_columns = code.shape
    column_weights = check_weights(weights, n_columns)
    solve = rule.prepare(code, column_weights)
    lists = column_lists(code) if with_incoherence else None
    p = np.empty((n, k))
    iterations = np.ones(n, dtype=np.int32)
    converged = np.ones(n, dtype=np.bool_)
    incoherence = np.empty(n if with_incoherence else 0)

    def couple_rows(first: int) -> None:
        last = min(first + rows, n)
        r = read(first, last)
        solve(r, p[first:last], iterations[first:last], converged[first:last])
        if lists is not None:
            incoherence_of(r, column_weights, *lists, p[first:last], incoherence[first:last])

    rows = FEWEST_ROWS
    if not rule.is_slow:
        rows = max(rows, BLOCK_BYTES // (8 * n_columns) // 8 * 8)
    _for_each(couple_rows, range(0, n, rows), n_jobs)
    return Coupling(p, iterations, converged, incoherence)


def _for_each(task: Callable[[int], None], starts: range, n_jobs: int | None) -> None:
    """Run the task on every start, in this thread and as many others as asked for.

    Kernels release the interpreter lock. The error of the first failing start is raised,
    whatever the number of threads.
    """
    waiting, errors = iter(starts), {}

    def work() -> None:
        for first in waiting:
            try:
                task(first)
            except BaseException as error:
                errors[first] = error
            if errors:
                return

    n_threads = len(starts)
    if n_threads > 1:  # asking takes as long as coupling a few rows
        # On a cluster the number of jobs counts its cores; threads are of this machine.
        n_threads = min(n_threads, effective_n_jobs(n_jobs), cpu_count())
    others = [Thread(target=work) for _ in range(n_threads - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        thread.join()
    if errors:
        raise errors[min(errors)]


def _check_limits(rule: CouplingRule) -> None:
    """Check the options that all iterative rules have, before a kernel is compiled for them."""
    options = rule.get_params()
    tol, max_iter = options.get("tol", 1.0), options.get("max_iter", 1)
    if not isinstance(tol, Real) or not float(tol) > 0:
        raise ValueError(f"tol of {type(rule).__name__} must be a positive number, got {tol!r}.")
    if not isinstance(max_iter, Integral) or not 1 <= int(max_iter) <= MOST_ITERATIONS:
        raise ValueError(
            f"max_iter of {type(rule).__name__} must be an integer from 1 to {MOST_ITERATIONS}, "
            f"got {max_iter!r}."
        )


def warn_unconverged(rule: Combiner, converged: NDArray[np.bool_], stacklevel: int = 0) -> None:
    """Warn once for all rows that did not reach the rule's tolerance."""
    if converged.all():
        return
    failed = np.flatnonzero(~converged)
    knobs = "max_iter or tol" if hasattr(rule, "tol") else "max_iter"
    warn(
        f"rule {rule.key!r} did not converge on {len(failed)} of {len(converged)} rows (the "
        f"first is row {failed[0]}); their probabilities are the best reached. Raise {knobs} "
        f"of {type(rule).__name__}.",
        ConvergenceWarning,
    )


def warn_undetermined(code: NDArray[np.int8], rule: Combiner, stacklevel: int = 0) -> None:
    """Warn that a code does not determine the probabilities that the rule will give."""
    k, n_columns = code.shape
    warn(
        f"code has {n_columns} columns for {k} classes, which do not determine the class "
        f"probabilities: rule {rule.key!r} fills in what is missing. They are better with more "
        f"columns; it takes {k - 1} at least to determine them. Pass code=lambda k: "
        "manyclass.codes.sparse_random(k, n_columns=...), or another code.",
        UserWarning,
    )


def check_weights(weights: ArrayLike | None, n_columns: int) -> NDArray[np.float64]:
    """Return one positive weight per column, all ones when ``None``."""
    if weights is None:
        return np.ones(n_columns)
    try:
        if np.iscomplexobj(weights):
            raise TypeError
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers, one per column, got {weights!r}.") from error
    if array.shape != (n_columns,):
        raise ValueError(
            f"weights has shape {array.shape}, but the code has {n_columns} columns: pass one "
            "weight per column."
        )
    if not (np.isfinite(array) & (array > 0)).all():
        bad = int(np.flatnonzero(~(np.isfinite(array) & (array > 0)))[0])
        raise ValueError(
            f"weights[{bad}] is {array[bad]}: weights must be positive and finite. Leave a column "
            "out of the code instead of giving it weight 0."
        )
    return np.maximum(array / array.max(), LIGHTEST)  # only ratios matter


def column_lists(
    code: NDArray[np.int8],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (start, middle, members): the classes of each column, positive side first."""
    classes, columns = np.nonzero(code)
    side = 2 * columns + (code[classes, columns] < 0)
    order = np.argsort(side, kind="stable")  # classes are in order already
    start = np.searchsorted(columns[order], np.arange(code.shape[1] + 1))
    middle = start[:-1] + (code > 0).sum(axis=0)
    return start.astype(np.int64), middle.astype(np.int64), classes[order].astype(np.int64)


def pair_reader(code: NDArray[np.int8]) -> tuple[Callable, NDArray[np.intp]] | None:
    """For a one-vs-one code in any order and sign: the map of its blocks to canonical pairs.

    Returns the function for blocks and the order for weights, or None for other
    codes.
    """
    found = codes.pair_columns(code)
    if found is None:
        return None
    order, flip = found
    if not flip.any() and (order == np.arange(len(order))).all():
        return (lambda r: r), order

    def canonical(r: NDArray[np.float64]) -> NDArray[np.float64]:
        r = r[:, order]
        r[:, flip] = 1.0 - r[:, flip]
        return r

    return canonical, order


def read_columns(r: NDArray) -> Reader:
    """Read blocks of binary probabilities (n, l), whatever their dtype and layout."""

    def read(first: int, last: int) -> NDArray[np.float64]:
        block = _as_block(r[first:last])
        place = find_outside(block)
        if place >= 0:
            row, column = divmod(int(place), block.shape[1])
            _raise_bad_value(block[row, column], f"row {first + row}, column {column}")
        return block

    return read


def read_pairs(r: NDArray) -> Reader:
    """Read blocks of pairwise probabilities (n, k, k) as (n, k (k - 1) / 2)."""
    k = r.shape[1]

    def read(first: int, last: int) -> NDArray[np.float64]:
        square = _as_block(r[first:last])
        block = np.empty((len(square), k * (k - 1) // 2))
        place = condense(square, block, PAIR_SLACK)
        if place < 0:
            place = find_outside(block)
            if place < 0:
                return block
            row, pair = divmod(int(place), block.shape[1])
            i, j = (int(x[pair]) for x in np.triu_indices(k, 1))
        else:
            row, i, j = (int(x) for x in np.unravel_index(place, square.shape))
        r_ij, r_ji = square[row, i, j], square[row, j, i]
        for value, where in ((r_ij, (i, j)), (r_ji, (j, i))):
            if not 0.0 <= value <= 1.0:
                _raise_bad_value(value, f"row {first + row}, pair {where}")
        raise ValueError(
            f"r[{first + row}, {i}, {j}] = {r_ij:g} and r[{first + row}, {j}, {i}] = {r_ji:g} do "
            "not sum to 1: r[:, i, j] is P(i | i or j), so set r[:, j, i] = 1 - r[:, i, j]."
        )

    return read


def _as_block(rows: NDArray) -> NDArray[np.float64]:
    """A writable C-ordered float64 block: one type for the kernels, a copy only if needed."""
    block = np.ascontiguousarray(rows, dtype=np.float64)
    return block if block.flags.writeable else block.copy()


def _raise_bad_value(value: float, place: str) -> None:
    if np.isnan(value):
        raise ValueError(
            f"r is NaN at {place}: a binary model gave no probability there. Impute or drop the "
            "row, or find out which model fails."
        )
    raise ValueError(
        f"r is {float(value)!r} at {place}, outside [0, 1]: couple takes probabilities. Turn "
        "scores into probabilities first, by a sigmoid, or by CoupledClassifier's calibration."
    )
