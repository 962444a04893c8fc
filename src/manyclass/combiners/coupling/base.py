"""The base class of coupling rules: validation, blocks of rows, threads and warnings."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from joblib import cpu_count, effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from manyclass import codes
from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.interrupts import run_in_threads
from manyclass._lib.jobs import check_n_jobs
from manyclass._lib.messages import warn
from manyclass.combiners.base import Combination, Combiner
from manyclass.combiners.coupling.kernels.by_row import incoherence_of
from manyclass.combiners.coupling.kernels.transposed import condense, find_outside

Reader = Callable[[int, int], Floats]
"""Returns rows ``first`` to ``last`` as a validated (m, l) block."""

Solver = Callable[[Floats, Floats, NDArray[np.int32], Flags], None]
"""Couples a block: reads ``r`` (m, l); fills ``p`` (m, k) and, unless the rule has
a closed form, ``iterations`` and ``converged``."""

CheckingSolver = Callable[[Floats, Floats], bool]
"""Checks and couples a block of values as given into ``p``; returns False if it did not."""


class CouplingRule(Combiner):
    """Base of the rules that turn binary probabilities into class probabilities.

    A rule implements :meth:`prepare`. This class does the validation, the blocks of rows
    and the threads.
    """

    takes = "probabilities"
    gives_probabilities = True
    is_slow: ClassVar[bool] = False
    """Whether a row may take milliseconds. Then blocks are small, so that the user can
    interrupt between them."""

    @property
    def needs_identifiable(self) -> bool:
        """Whether the code has to determine the class probabilities."""
        return True

    def check_identifiable(self, code: Code) -> None:
        """Raise a ``ValueError`` if this rule needs that the code determines p, and it does not."""
        if not self.needs_identifiable or rest_reader(code) is not None:
            return
        try:
            codes.check_identifiable(code)
        except ValueError as error:
            raise ValueError(
                f"{error} Or use the rule 'least-squares', which prefers even distributions "
                "if columns are missing."
            ) from None

    def check_determined(self, code: Code) -> None:
        """Raise an error, or warn, if the code does not determine the class probabilities."""
        if codes.is_identifiable(code):
            return
        self.check_identifiable(code)
        k, n_columns = code.shape
        warn(
            f"code has {n_columns} columns for {k} classes, which do not determine the class "
            f"probabilities: rule {self.key!r} chooses among the possible ones. They are better "
            f"with {k - 1} or more columns. Pass code=lambda k: manyclass.codes.sparse_random(k, "
            "n_columns=...), or another code."
        )

    @abstractmethod
    def prepare(self, code: Code, weights: Floats) -> Solver:
        """Return the function that couples a block of rows under this code.

        Compute here, once, what depends only on the code and the weights.
        """

    def prepare_checking(self, code: Code) -> CheckingSolver | None:
        """Return a function that couples values (m, l), or pairs (m, k, k), if the rule has one.

        It may leave a block to the reader, and must if the reader would find an error.
        """
        return None

    def combine(
        self,
        values: Floats,
        code: Code,
        weights: Floats | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Combination:
        """Couple binary probabilities (n, l) into class probabilities (n, k)."""
        reader = read_columns(values), len(values)
        return couple_blocks(self, *reader, code, weights, n_jobs, given=values)


def couple_blocks(
    rule: CouplingRule,
    read: Reader,
    n: int,
    code: Code,
    weights: ArrayLike | None,
    n_jobs: int | None,
    with_incoherence: bool = False,
    given: NDArray | None = None,
    enough: int = 64,
) -> Combination:
    """Couple ``n`` rows block by block; workspace does not grow with ``n``.

    ``given`` are the values that ``read`` checks: (n, l), or pairs (n, k, k). From ``enough`` rows
    on, a rule may check them by itself; preparing that takes as long as checking fewer.
    """
    rule.check_code(code)
    _check_limits(rule)
    check_n_jobs(n_jobs)
    k, n_columns = code.shape
    column_weights = check_weights(weights, n_columns)
    solve = rule.prepare(code, column_weights)
    lists = column_lists(code) if with_incoherence else None
    p = np.empty((n, k))
    iterations, converged = np.ones(n, dtype=np.int32), np.ones(n, dtype=np.bool_)
    incoherence = np.empty(n if with_incoherence else 0)
    rows = rows_at_a_time(rule, n_columns)
    solve_given = None
    if given is not None and n >= enough and not with_incoherence:
        solve_given = rule.prepare_checking(code)

    def couple_rows(first: int) -> None:
        last = min(first + rows, n)
        if given is not None and solve_given is not None:
            if solve_given(_as_block(given[first:last]), p[first:last]):
                return
        r = read(first, last)
        solve(r, p[first:last], iterations[first:last], converged[first:last])
        if lists is not None:
            incoherence_of(r, column_weights, *lists, p[first:last], incoherence[first:last])

    _for_each(couple_rows, range(0, n, rows), n_jobs)
    return Combination(p, iterations, converged, incoherence)


def rows_at_a_time(
    rule: CouplingRule, n_columns: int, block_bytes: int = 2**20, fewest: int = 32
) -> int:
    """Return how many rows a block has: a multiple of 8, the number of lanes of a kernel.

    1 MB of binary probabilities fits into the cache of a core. A block has 32 rows even if
    there are many columns, because kernels allocate their workspace for every block.
    """
    if rule.is_slow:
        return fewest
    return max(fewest, block_bytes // (8 * n_columns) // 8 * 8)


def _for_each(task: Callable[[int], None], starts: range, n_jobs: int | None) -> None:
    """Run the task on every start, in ``n_jobs`` threads: kernels release the interpreter lock.

    The error of the first failing start is raised, for any number of threads.
    """
    n_threads = len(starts)
    if n_threads > 1:  # effective_n_jobs takes as long as coupling a few rows
        # On a cluster effective_n_jobs counts all its cores, but threads only use this machine.
        n_threads = min(n_threads, effective_n_jobs(n_jobs), cpu_count())
    run_in_threads(task, ((first,) for first in starts), n_threads, work=0.0)


def _check_limits(rule: CouplingRule) -> None:
    """Check the options that all iterative rules have, before a kernel is compiled for them."""
    most = np.iinfo(np.int32).max  # the type of ``iterations``
    options = rule.get_params()
    tol, max_iter = options.get("tol", 1.0), options.get("max_iter", 1)
    if not isinstance(tol, Real) or not float(tol) > 0:
        raise ValueError(f"tol of {type(rule).__name__} must be a positive number, got {tol!r}.")
    if not isinstance(max_iter, Integral) or not 1 <= int(max_iter) <= most:
        raise ValueError(
            f"max_iter of {type(rule).__name__} must be an integer from 1 to {most}, got "
            f"{max_iter!r}."
        )


def warn_unconverged(rule: Combiner, converged: Flags) -> None:
    """Give one warning for all rows that did not reach the rule's tolerance."""
    if converged.all():
        return
    failed = np.flatnonzero(~converged)
    knobs = "max_iter or tol" if hasattr(rule, "tol") else "max_iter"
    warn(
        f"rule {rule.key!r} did not converge on {len(failed)} of {len(converged)} rows (the "
        f"first is row {failed[0]}); their probabilities are the best found. Raise {knobs} "
        f"of {type(rule).__name__}.",
        ConvergenceWarning,
    )


def check_weights(weights: ArrayLike | None, n_columns: int) -> Floats:
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
    bad = int((np.isfinite(array) & (array > 0)).argmin())
    if not 0 < array[bad] < np.inf:
        raise ValueError(
            f"weights[{bad}] is {array[bad]}: weights must be positive and finite. Leave a column "
            "out of the code instead of giving it weight 0."
        )
    # Only ratios matter. Smaller ones would be lost in the rounding errors of the solvers.
    return np.maximum(array / array.max(), 1e-9)


def column_lists(code: Code) -> tuple[NDArray[np.int64], ...]:
    """Return (start, middle, members): the classes of each column, positive side first."""
    classes, columns = np.nonzero(code)
    side = 2 * columns + (code[classes, columns] < 0)
    order = np.argsort(side, kind="stable")  # classes are in order already
    start = np.searchsorted(columns[order], np.arange(code.shape[1] + 1))
    middle = start[:-1] + (code > 0).sum(axis=0)
    return tuple(x.astype(np.int64) for x in (start, middle, classes[order]))


def pair_reader(code: Code) -> tuple[Callable, Places] | None:
    """Return how to bring the columns of a one-vs-one code into canonical order and sign.

    Returns a function that maps a block, and the order for the weights; None for other codes.
    """
    found = codes.pair_columns(code)
    if found is None:
        return None
    order, flip = found
    return _reader(order, flip), order


def rest_reader(code: Code) -> tuple[Callable, Places] | None:
    """Do the same for one-vs-rest codes of three classes or more: column i is that of class i."""
    k, n_columns = code.shape
    if k != n_columns or k < 3 or not codes.is_dense(code):
        return None
    flip = (code > 0).sum(axis=0) > 1
    alone = np.where(flip, -code, code) > 0
    order = np.argmax(alone, axis=1)
    if alone.sum() != k or not alone[np.arange(k), order].all():
        return None
    return _reader(order, flip[order]), order


def _reader(order: Places, flip: Flags) -> Callable[[Floats], Floats]:
    """Return the function that orders the columns of a block, and turns the sides of some."""
    unchanged = not flip.any() and (order == np.arange(len(order))).all()

    def canonical(r: Floats) -> Floats:
        if unchanged:
            return r
        r = r.take(order, axis=1)  # by rows, as kernels read it; r[:, order] would be by columns
        r[:, flip] = 1.0 - r[:, flip]
        return r

    return canonical


def read_columns(r: NDArray) -> Reader:
    """Read blocks of binary probabilities (n, l) of any dtype and memory layout."""

    def read(first: int, last: int) -> Floats:
        block = _as_block(r[first:last])
        place = find_outside(block)
        if place >= 0:
            row, column = divmod(int(place), block.shape[1])
            _raise_bad_value(block[row, column], f"row {first + row}, column {column}")
        return block

    return read


def read_pairs(r: NDArray, slack: float = 1e-6) -> Reader:
    """Read blocks of pairwise probabilities (n, k, k) as (n, k (k - 1) / 2).

    ``r_ij + r_ji`` may differ from 1 by ``slack``: ten times the rounding errors of float32.
    """
    k = r.shape[1]

    def read(first: int, last: int) -> Floats:
        square = _as_block(r[first:last])
        block = np.empty((len(square), k * (k - 1) // 2))
        place = condense(square, block, slack)
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


def _as_block(rows: NDArray) -> Floats:
    """Return a writable C-ordered float64 block, the only type that kernels are compiled for."""
    block = np.ascontiguousarray(rows, dtype=np.float64)
    return block if block.flags.writeable else block.copy()


def _raise_bad_value(value: float, place: str) -> None:
    if np.isnan(value):
        raise ValueError(
            f"r is NaN at {place}: a binary model gave no probability there. Impute or drop the "
            "row, or check the model of that column."
        )
    raise ValueError(
        f"r is {float(value)!r} at {place}, outside [0, 1]: couple takes probabilities. Turn "
        "scores into probabilities first, with a sigmoid or with CoupledClassifier's calibration."
    )
