"""Support vector machines of all columns as one: shared support vectors, one kernel block.

The support vectors are arranged by class. A class takes no part in the columns where its code is
zero: in one-vs-one it takes part in k - 1 of the k (k - 1) / 2 columns. In these, most support
vectors of one pair have zero coefficients in the other pairs, and zeros are not multiplied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.compiled.blocks import add_intercepts
from manyclass._lib.interrupts import count_threads, run_in_threads
from manyclass._lib.rows import take_rows, without_duplicates
from manyclass._lib.sklearn import is_finite_array, n_samples
from manyclass._lib.weights import column_sizes
from manyclass.banks.base import Bank, ObjectiveTerms, Scorer
from manyclass.banks.limits import Limits
from manyclass.banks.score_kinds import MARGIN, ScoreKind
from manyclass.banks.svm.groups import (
    Adder,
    Chunk,
    Group,
    RowsOf,
    by_class,
    in_batches,
    size_in_bytes,
)
from manyclass.banks.svm.kernels import Kernel, Side
from manyclass.banks.svm.leave_one_out import leave_one_out, scores_by_folds
from manyclass.banks.svm.training import Training
from manyclass.banks.svm.views import KernelMachine

SOLVER_TOLERANCE = 1e-3  # LIBSVM's default ``tol``, on the gradient and hence on margins

Prepared = list[tuple[Side, Adder]]
"""Prepared support vectors, and how to add their kernel blocks to the sums."""


def _aligned(size: int, dtype: type[np.floating]) -> NDArray[np.floating]:
    """Return an array that begins with a cache line, so that no vector crosses two lines."""
    line = 64  # bytes
    array = np.empty(size + line // np.dtype(dtype).itemsize, dtype)
    first = -array.ctypes.data % line // array.itemsize
    return array[first : first + size]


class KernelBank(Bank):
    """The support vector machines of all columns.

    Parameters
    ----------
    kernel : Kernel
        Shared by all columns.
    X : array or sparse matrix
        Training data; the support vectors are copied out of it.
    y, code : class indices and code matrix
    duals : sparse array of shape (n, l)
        Signed dual coefficients of the training rows in every column.
    intercept : array of shape (l,)
        Infinite where a column had samples of one side only, 0 where it had none.
    bound : float or None
        The C that bounds the coefficients of samples of weight 1; None where it is
        not known (NuSVC).
    n_iter : int array of shape (l,)
        Iterations of the solver.
    converged : bool
        Whether the solver reached its tolerance in every column.
    dtype : float64 or float32
        What scores are computed in.
    borrow : bool
        Whether the support vectors stay in X until :meth:`own_rows` is called.
    once_each : bool
        Whether equal rows of one class were fitted as one row.
    limits : Limits, optional
        Sizes of blocks, and limits of memory and time. They are not stored with the bank.
    """

    machine: ClassVar[type[KernelMachine]] = KernelMachine
    """The class of :attr:`models`."""
    borrowed_from: Any = None
    """The X that still holds the support vectors, if it does."""
    kept: tuple[type[np.floating], Prepared] | None = None
    """Support vectors that stay prepared because they are few, and their type."""
    limits: Limits = Limits()
    training: Training | None = None
    """The solved problems, until :meth:`own_rows` is called; None if LIBSVM solved them."""
    n_solved: Places | None = None
    """In how many samples of each column leave-one-out asked the solver, if it was computed."""

    def __init__(
        self,
        kernel: Kernel,
        X,
        y: Places,
        code: Code,
        duals: csr_array,
        intercept: Floats,
        *,
        bound: float | None,
        n_iter: NDArray[np.int_],
        converged: bool,
        dtype: type[np.floating] = np.float64,
        borrow: bool = False,
        once_each: bool = False,
        limits: Limits | None = None,
    ):
        if limits is not None:
            self.limits = limits
        self.kind: ScoreKind = MARGIN
        self.once_each = once_each
        self.kernel, self.duals, self.intercept = kernel, duals, intercept
        self.bound, self.n_iter, self.converged, self.dtype = bound, n_iter, converged, dtype
        unsupported = np.bincount(duals.indices, minlength=len(intercept)) == 0
        self.constant = np.isinf(intercept) | ((intercept == 0) & unsupported)
        self.sparse = issparse(X)
        every = np.flatnonzero(np.diff(duals.indptr) > 0)
        self.groups = []
        for c, (support, of_class) in enumerate(by_class(every, y, duals, len(code))):
            vectors = support if kernel.precomputed else RowsOf(X, support)
            columns = np.flatnonzero(code[c])
            self.groups.append(Group(support, vectors, columns, of_class, kernel.numeric))
        self.origin = kernel.origin(X, every) if len(every) else None
        self.borrowed_from = X
        if not borrow:
            self.own_rows()

    @property
    def models(self) -> list[Any]:
        """One machine per column. They refer to the bank, so they are made on request."""
        return self.models_of(None)

    def models_of(self, learner: Any) -> list[Any]:
        """Return views of the machines, with the parameters of the learner."""
        return [self.machine(self, column, learner) for column in range(len(self.intercept))]

    @property
    def n_features(self) -> int | None:
        """Number of features of the training data; None for a callable kernel."""
        if self.kernel.numeric:
            return self.groups[0].vectors.shape[1]
        return self.duals.shape[0] if self.kernel.precomputed else None

    def coef_of(self, columns: Places | list[int]) -> Floats:
        """Return the weights of the features (columns, n_features) for a linear kernel."""
        coef = np.zeros((len(columns), self.n_features or 0))
        for group in self.groups:
            of_class = group.duals[:, columns].T @ group.vectors
            coef += of_class.toarray() if self.sparse else of_class
        return coef

    def own_rows(self) -> None:
        """Copy the support vectors, if they are still in X."""
        self.__dict__.pop("training", None)  # before more memory is needed
        for c, group in enumerate(self.groups):
            if isinstance(group.vectors, RowsOf):
                self.groups[c] = replace(group, vectors=group.vectors[:])
        self.__dict__.pop("borrowed_from", None)

    def scorer(self, dtype: type[np.floating] | None = None) -> Scorer:
        """Prepare the support vectors once, for many blocks of rows; few of them stay prepared."""
        dtype, kept = self.dtype if dtype is None else dtype, self.kept
        if kept is not None and kept[0] is dtype:
            prepared = kept[1]
        else:
            prepared = self._prepare(self._chunks(self.limits.chunk), dtype)
            size = sum(size_in_bytes(group.vectors) for group in self.groups)
            owned = self.borrowed_from is None and not self.any_rows
            if owned and size <= self.limits.kept_bytes:
                self.kept = dtype, prepared
        return partial(self._margins, batches=[lambda: prepared], dtype=dtype)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be prepared again, and what only a fit needs."""
        left_out = ("kept", "limits", "training", "n_solved")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def margins_once(
        self, X, dtype: type[np.floating] | None = None, n_jobs: int | None = None
    ) -> Floats:
        """Return the margins of rows that are scored once, in less memory than :meth:`scorer`."""
        dtype, limits = self.dtype if dtype is None else dtype, self.limits
        total = sum(size_in_bytes(group.vectors) for group in self.groups)
        n_support = sum(len(group.support) for group in self.groups)
        most = n_support * max(self.few_bytes(), total // limits.batches) // max(1, total)
        chunks = self._chunks(int(np.clip(most, limits.least_chunk, limits.chunk)))
        batches = [partial(self._prepare, part, dtype) for part in in_batches(chunks, most)]
        return self._margins(X, batches, dtype, max(limits.least_block, most), n_jobs)

    def few_bytes(self) -> int:
        """Return the size up to which it does not pay to read X in parts."""
        dense = self.limits.prepared_dense_bytes
        return self.limits.prepared_sparse_bytes if self.sparse else dense

    def _chunks(self, size: int) -> list[Chunk]:
        return [chunk for group in self.groups for chunk in group.chunks(size)]

    def _prepare(self, chunks: list[Chunk], dtype: type[np.floating]) -> Prepared:
        origin = None if self.origin is None else self.origin.astype(dtype)
        read = (group.read(part, dtype) for group, part in chunks)
        return [(self.kernel.rows(vectors, origin), add) for vectors, add in read]

    def _margins(
        self,
        X,
        batches: Sequence[Callable[[], Prepared]],
        dtype: type[np.floating],
        most: int | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the margins of rows, from batches of support vectors one after the other.

        At most ``most`` rows are read at a time. With several batches, the sums of all rows are
        held until the last one; with one batch, the sums of one block of rows. Threads share the
        blocks of rows, which do not depend on ``n_jobs``.
        """
        limits, X = self.limits, self._readable(X, dtype)
        origin = None if self.origin is None else self.origin.astype(dtype)
        n, n_columns, last = n_samples(X), len(self.intercept), len(batches) - 1
        widest = max(1, *(min(limits.chunk, len(group.support)) for group in self.groups))
        size = limits.block_entries // widest
        size = max(size, limits.least_rows)
        size = min(size, limits.most_rows, limits.sum_entries // n_columns)
        size = max(1, size if most is None else min(size, most))
        out = np.empty((n, n_columns))
        all_sums = _aligned(n_columns * n if last else 0, dtype)
        starts = range(0, n, size)
        # A callable kernel is the user's, who may not expect threads.
        n_threads = 1 if self.any_rows else count_threads(n_jobs, len(starts))
        for place, prepare in enumerate(batches):
            prepared = prepare()

            def add_blocks(own: range, place=place, prepared=prepared) -> None:
                buffer = _aligned(widest * size, dtype)
                own_sums = _aligned(0 if last else n_columns * size, dtype)
                for first in own:
                    block = self._block(X, slice(first, first + size), dtype)
                    columns = self.kernel.columns(block, origin)
                    begin = n_columns * first if last else 0
                    end = begin + n_columns * n_samples(block)
                    sums = (all_sums if last else own_sums)[begin:end].reshape(n_columns, -1)
                    if place == 0:
                        sums[:] = 0.0
                    for rows, add in prepared:
                        add(self.kernel.product(rows, columns, buffer), sums)
                    if place == last:
                        add_intercepts(sums, self.intercept, out[first : first + size])

            if n_threads == 1:  # for a single row, every call counts
                add_blocks(starts)
            else:
                shares = [(starts[thread::n_threads],) for thread in range(n_threads)]
                run_in_threads(add_blocks, shares, n_threads, work=0.0)
            del prepared, add_blocks  # before the next ones
        return out

    def _block(self, X, part: slice, dtype: type[np.floating]):
        """Return some rows as the kernel reads them."""
        block = take_rows(X, part)
        if self.any_rows:
            return block
        if issparse(block) and not self.sparse:
            block = block.toarray()
        return block.astype(dtype, copy=False)

    @property
    def any_rows(self) -> bool:
        """Whether samples may be of any type, since only a callable kernel reads them."""
        return self.kernel.takes_any_rows

    def _readable(self, X, dtype: type[np.floating] = np.float64):
        """Return X in a form whose rows can be sliced. :class:`RowsOf` has it already."""
        if self.any_rows or isinstance(X, RowsOf) or is_finite_array(X, dtype):
            return X
        as_given = getattr(X, "dtype", None) == dtype
        X = check_array(
            X, accept_sparse="csr", dtype=dtype if as_given else np.float64, input_name="X"
        )
        X = without_duplicates(X)
        check_fits(X, dtype)
        return X

    def scores(self, X, where: Flags | None = None) -> Floats:
        """Return the margins (n, l) of every column; all entries are computed."""
        return self.scorer()(X) if self.borrowed_from is None else self.margins_once(X)

    def scores_at(self, X, rows: Places, where: Flags | None = None) -> Floats:
        """Return the margins of some rows of X. If X is the training data, they are not copied."""
        if X is not self.borrowed_from:
            return super().scores_at(X, rows, where)
        return self.margins_once(RowsOf(X, rows))

    def error_in_single(self, X) -> float:
        """Return the largest error of the margins of some rows in single precision.

        It depends on the kernel, on the distance of the features from their mean, and on the
        coefficients, so it is measured.
        """
        finite, X = ~self.constant, self._readable(X)
        if not (self.any_rows or fits(X, np.float32)):
            return np.inf
        with np.errstate(over="ignore", invalid="ignore"):
            single, double = (self.margins_once(X, dtype) for dtype in (np.float32, np.float64))
            error = np.abs(single - double)[:, finite].max(initial=0.0)
        return float(np.nan_to_num(error, nan=np.inf))

    def is_exact_in_single(self, X, rows: Places) -> bool:
        """Tell whether single precision's error is smaller than the solver's tolerance."""
        some = take_rows(X, few_of(rows))
        return fits(X, np.float32) and self.error_in_single(some) < SOLVER_TOLERANCE

    def leave_one_out(
        self, X, y: Places, code: Code, weights: Floats, rows: Places | None = None
    ) -> Floats:
        """Return scores (m, l) of training samples as if each had been left out.

        Parameters
        ----------
        X, y, code : as the bank was fitted on
        weights : array of shape (n,)
            Weights of samples, by which C was multiplied.
        rows : int array of shape (m,), optional
            The samples to score; all of them when omitted.

        Raises
        ------
        Untrusted
            If the machines did not converge, if LIBSVM fitted them, or if the kernel is not
            positive definite.
        """
        read = X if X is self.borrowed_from else self._readable(X)
        return leave_one_out(self, read, y, code, weights, rows)

    def scores_by_folds(self, X, y: Places, weights: Floats, columns: Flags, numbers: Places):
        """Return scores of some columns by machines without the sample's fold, by its number."""
        if self.training is None:
            return None
        return scores_by_folds(self, self.training, X, y, weights, columns, numbers)

    def objective_terms(self, X, y: Places, code: Code, weights: Floats) -> ObjectiveTerms:
        """Return |w|^2 / (2 C N) of every machine and the margins of the training set."""
        if self.bound is None:
            raise ValueError(
                "the reliability of a machine needs its C: use SVC without class_weight, or "
                "CoupledSVC, whose class_weight are weights of samples."
            )
        margins = self.margins_once(X)
        # |w|^2 = sum_i a_i y_i (f(x_i) - b), over the support vectors.
        finite = np.where(self.constant, 0.0, self.intercept)
        inner = np.where(self.constant, 0.0, margins) - finite
        squares = np.asarray(self.duals.multiply(inner).sum(axis=0)).ravel()
        sizes = column_sizes(y, code, weights)
        penalty = squares / (2.0 * self.bound * np.where(sizes > 0, sizes, 1.0))
        return ObjectiveTerms(penalty, margins, weights, pairwise=self.kernel.precomputed)


def few_of(rows: Places, most: int = 128) -> Places:
    """Return some of the rows, evenly spread, to measure rounding on."""
    return rows[:: 1 + len(rows) // most]


def fits(X, dtype: type[np.floating]) -> bool:
    """Tell whether the values of X are in the range of a floating point type."""
    return X.dtype == dtype or _largest(X) <= float(np.finfo(dtype).max)


def check_fits(X, dtype: type[np.floating]) -> None:
    """Raise a ``ValueError`` if values of X are out of the range of a floating point type."""
    if not fits(X, dtype):
        raise ValueError(
            f"X has values as large as {_largest(X):.2g}, beyond the range of "
            f"dtype=np.{np.dtype(dtype).name}: scale the features, or use dtype=np.float64."
        )


def _largest(X) -> float:
    """Return the largest of the absolute values."""
    values = X.data if issparse(X) else X
    return float(max(values.max(initial=0.0), -values.min(initial=0.0)))
