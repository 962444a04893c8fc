"""Fitting the machines of a kernel bank: LIBSVM's pairs in one call, or a call for each column."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils import check_array

from manyclass import codes
from manyclass._lib.interrupts import interruptible
from manyclass._lib.jobs import run_tasks
from manyclass._lib.rows import without_duplicates
from manyclass._lib.sklearn import counts_rows_of_weight, n_samples, take_rows
from manyclass.banks.base import column_batches, with_narrow_indices
from manyclass.banks.precomputed import part_of, rows_at
from manyclass.banks.repeats import LARGE, distinct_rows
from manyclass.banks.svm.bank import FEW_ROWS, SOLVER_TOLERANCE, KernelBank, check_fits
from manyclass.banks.svm.borrowing import share_of_rows, size_in_bytes
from manyclass.banks.svm.callable_kernel import OwnKernel, takes_any_rows
from manyclass.banks.svm.kernels import Kernel, resolve_gamma, scale_gamma

FEW_PRODUCTS = 1e8  # of numbers, for the kernel of a pair: below, a call for each costs too much
SORTED = 2**22  # bytes of an X that is put in the order of the classes, for one call of all pairs


class WeightFactors(NamedTuple):
    """What weights of samples are products of."""

    of_class: NDArray[np.float64]
    """Shape (k,)."""
    of_sample: NDArray[np.float64] | None
    """Shape (n,); 1 when omitted."""


def fit_kernel_bank(
    estimator,
    X,
    y: NDArray[np.intp],
    code: NDArray[np.int8],
    *,
    rows: NDArray[np.intp],
    sample_weight: NDArray[np.float64] | None,
    n_jobs: int | None = None,
    verbose: int = 0,
    dtype: type[np.floating] = np.float64,
    factors: WeightFactors | None = None,
    borrow: bool = False,
) -> KernelBank:
    """Fit the machines of all columns: one-vs-one in a single call of LIBSVM.

    Large pairs are calls of their own: several jobs share them, and an interrupt leaves but one
    of them to its end. The machines are the same. ``gamma`` is resolved on all of X, so that all
    columns and folds share a kernel. ``factors`` are what the sample weights are products of:
    pairs of classes are given both, as SVC gives them to LIBSVM, whose steps depend on the last
    bit of C. With ``borrow`` the support vectors stay in X, as :func:`read_by_machines` returns it.
    """
    X = read_by_machines(estimator, X)
    if not takes_any_rows(estimator):
        check_fits(X, dtype)
    if estimator.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}: with kernel='precomputed' it must be the square matrix of the "
            "kernel between all training samples."
        )
    if sample_weight is not None:
        rows = rows[sample_weight[rows] > 0]
    of_sample = sample_weight if factors is None else factors.of_sample
    gamma = _gamma(estimator, X, of_sample)
    distinct = distinct_rows(X, y, rows, of_sample) if _takes_distinct(estimator) else None
    if distinct is not None:
        rows, sample_weight = distinct.rows, distinct.weights
        if factors is not None:
            sample_weight = factors.of_class[y] * distinct.weights
            factors = factors._replace(of_sample=distinct.weights)
    # Its own probabilities, if it was asked for them, would be fitted for nothing.
    machine = clone(estimator).set_params(gamma=gamma, probability=type(estimator)().probability)
    if callable(estimator.kernel):
        machine.set_params(kernel=OwnKernel(estimator.kernel))
    kernel = Kernel(estimator.kernel, gamma, estimator.degree, estimator.coef0)
    pairs = codes.pair_columns(code)
    weights = factors if pairs is not None and factors is not None else sample_weight
    paired = pairs is not None and estimator.class_weight is None
    as_pairs = paired and len(np.unique(y[rows])) > 2
    jobs = effective_n_jobs(n_jobs)
    if as_pairs and _is_one_call(estimator.kernel, X, len(rows), code, jobs):
        columns = _fit_pairs(machine, X, y, pairs, rows, weights)
    else:
        batches = run_tasks(
            _fit_columns,
            column_batches(code.shape[1], jobs),
            machine,
            X,
            y,
            code,
            rows,
            weights,
            paired,
            n_jobs=n_jobs,
            verbose=verbose,
            prefer="threads",  # LIBSVM releases the interpreter lock
        )
        columns = [column for batch in batches for column in batch]
    support = np.concatenate([column[0] for column in columns])
    index = np.repeat(np.arange(len(columns)), [len(column[0]) for column in columns])
    values = np.concatenate([column[1] for column in columns])
    duals = coo_array((values, (support, index)), shape=(len(y), len(columns))).tocsr()
    intercept = np.array([column[2] for column in columns])
    bank = KernelBank(
        kernel,
        X,
        y,
        code,
        duals,
        intercept,
        bound=estimator.C if type(estimator) is SVC and estimator.class_weight is None else None,
        n_iter=np.array([column[3] for column in columns]),
        converged=all(column[4] for column in columns),
        dtype=dtype,
        borrow=borrow,
        once_each=distinct is not None,
    )
    if dtype == np.float32:
        some = np.arange(0, len(y), 1 + len(y) // FEW_ROWS)
        _warn_of_rounding(bank.error_in_single(take_rows(X, some)))
    return bank


def read_by_machines(estimator, X):
    """Return X as LIBSVM reads it, so that it need not be converted for every machine."""
    if takes_any_rows(estimator):
        return X
    X = check_array(
        X, accept_sparse="csr", dtype=np.float64, order="C", input_name="X", estimator=estimator
    )
    return with_narrow_indices(without_duplicates(X))


def _warn_of_rounding(error: float) -> None:
    if error > SOLVER_TOLERANCE:
        warnings.warn(
            f"with dtype=np.float32 margins are wrong by up to {error:.2g}: scale the features, so "
            "that they are of the size of 1 and around 0, or use dtype=np.float64.",
            UserWarning,
            stacklevel=7,
        )


def _is_one_call(kernel, X, n_rows: int, code: NDArray[np.int8], n_jobs: int) -> bool:
    """Tell whether all pairs are better fitted in one call of LIBSVM than in one for each."""
    if callable(kernel) and n_jobs == 1:  # pairs would compute its values twice
        return True
    products = (2 * n_rows / len(code)) ** 2
    if _is_numeric(kernel):
        products *= X.nnz / X.shape[0] if issparse(X) else X.shape[1]
    return products < FEW_PRODUCTS


def _is_numeric(kernel) -> bool:
    """Tell whether the kernel is computed from numbers, by LIBSVM itself."""
    return isinstance(kernel, str) and kernel != "precomputed"


def _gamma(estimator, X, weights: NDArray[np.float64] | None) -> float:
    """Return gamma as a number: copies and their weights have a part in "scale"."""
    if estimator.kernel not in ("rbf", "poly", "sigmoid"):
        return 1.0
    everything = np.arange(n_samples(X))
    distinct = None
    if estimator.gamma == "scale" and _takes_distinct(estimator):
        distinct = distinct_rows(X, np.zeros_like(everything), everything, weights)
    if distinct is None:
        return resolve_gamma(estimator.gamma, X)
    return scale_gamma("scale", rows_at(X, distinct.rows), distinct.weights[distinct.rows])


Column = tuple[NDArray[np.intp], NDArray[np.float64], float, int, bool]
"""Support rows, signed dual coefficients, intercept, iterations, converged."""


Weights = NDArray[np.float64] | WeightFactors | None


def _fit(machine, X, rows, target, weights: Weights, classes):
    """Fit a machine on some rows; ``classes`` are theirs. Also return its support rows."""
    machine, precomputed = clone(machine), machine.kernel == "precomputed"
    if isinstance(weights, WeightFactors):
        labels, first = np.unique(target, return_index=True)
        by_class = weights.of_class[classes[first]]
        machine.set_params(class_weight=dict(zip(labels, by_class, strict=True)))
        weights = weights.of_sample
    weight = None if weights is None else weights[rows]
    if whole := _is_better_left_whole(machine, X, rows):
        # LIBSVM leaves out what has no weight, whatever its target.
        weight = _among_all(X, rows, np.ones(len(rows)) if weight is None else weight, 0.0)
        target = _among_all(X, rows, target, target[0])
    part = X if whole else part_of(X, rows, precomputed)
    fitted = interruptible(
        machine.fit, part, target, sample_weight=weight, work=_products(machine, part)
    )
    return fitted, rows[fitted.support_]


def _products(machine, X) -> float:
    """Estimate the multiplications in LIBSVM: those of the kernel matrix."""
    if callable(machine.kernel):
        return np.inf
    n, n_features = X.shape
    if machine.kernel == "precomputed":
        return n**2
    return n**2 * (X.nnz / max(1, n) if issparse(X) else n_features)


def _takes_distinct(machine) -> bool:
    """Tell whether a row may be fitted once for all its copies; nu is a share of rows."""
    return type(machine) is SVC and _heeds_weights(machine)


def _heeds_weights(machine) -> bool:
    """Tell whether a row without weight is as good as none."""
    # Weights of classes may be told by the number of rows.
    return _is_numeric(machine.kernel) and not isinstance(machine.class_weight, str)


def _is_better_left_whole(machine, X, rows: NDArray[np.intp]) -> bool:
    """Tell whether a large X is given to LIBSVM as it is, and not the rows of a machine.

    scikit-learn copies the support vectors, which are up to all of the rows: if these are more
    than half of X, it would be more than one copy of X together with their own.
    """
    return (
        _heeds_weights(machine)
        and size_in_bytes(X) > LARGE
        and len(rows) < n_samples(X)
        and share_of_rows(X, rows) > 0.5
        and bool((np.diff(rows) > 0).all())
        and counts_rows_of_weight()
    )


def _among_all(X, rows: NDArray[np.intp], values: NDArray, others) -> NDArray:
    """Return the values of the rows in their places among all rows of X."""
    out = np.full(n_samples(X), others, dtype=values.dtype)
    out[rows] = values
    return out


def _fit_columns(batch: slice, machine, X, y, code, rows, weights, pairs) -> list[Column]:
    columns = code[:, batch].T
    return [_fit_column(machine, X, y, column, rows, weights, pairs) for column in columns]


def _fit_column(machine, X, y, column, rows, weights: Weights, pair: bool) -> Column:
    """Fit one column; of a pair the upper class is positive, as in LIBSVM to the last bit."""
    rows = rows[column[y[rows]] != 0]
    lower_side = column[np.flatnonzero(column)[0]]
    sign = -1 if pair and lower_side > 0 and machine.class_weight is None else 1
    target = (sign * column[y[rows]] > 0).astype(np.intp)
    if len(np.unique(target)) < 2:
        only = column[y[rows[0]]] if len(target) else 0  # without samples it is even
        return rows[:0], np.empty(0), only * np.inf if only else 0.0, 0, True
    fitted, support = _fit(machine, X, rows, target, weights, y[rows])
    duals, intercept = sign * _dense(fitted.dual_coef_)[0], sign * float(fitted.intercept_[0])
    return support, duals, intercept, int(fitted.n_iter_[0]), fitted.fit_status_ == 0


def _fit_pairs(machine, X, y, pairs, rows, weights: Weights) -> list[Column]:
    """All pairs at once. LIBSVM's order is ours: positive is the lower class."""
    order, flip = pairs
    if _is_numeric(machine.kernel) and size_in_bytes(X) <= SORTED:
        # A pair is read from two places in memory then. Within a class the order stays, on which
        # the machines depend.
        rows = rows[np.argsort(y[rows], kind="stable")]
    fitted, support = _fit(machine, X, rows, y[rows], weights, y[rows])
    converged = fitted.fit_status_ == 0
    duals, ends = _dense(fitted.dual_coef_), np.cumsum(fitted.n_support_)
    starts = ends - fitted.n_support_
    place = {c: m for m, c in enumerate(fitted.classes_)}
    k = (1 + int(np.sqrt(1 + 8 * len(order)))) // 2
    columns: list[Any] = [None] * len(order)
    n_pairs = iter(range(len(fitted.intercept_)))
    for q, (i, j) in enumerate(zip(*np.triu_indices(k, 1), strict=True)):
        sign = -1.0 if flip[q] else 1.0
        if i in place and j in place:
            a, b = place[i], place[j]
            of_i, of_j = slice(starts[a], ends[a]), slice(starts[b], ends[b])
            # A class's coefficients against the others: row b - 1 for a < b, row a for b > a.
            values = np.concatenate([duals[b - 1, of_i], duals[a, of_j]])
            used = values != 0
            rows_of_pair = np.concatenate([support[of_i], support[of_j]])[used]
            pair = next(n_pairs)
            signed = sign * values[used], sign * fitted.intercept_[pair]
            columns[order[q]] = (rows_of_pair, *signed, int(fitted.n_iter_[pair]), converged)
        else:
            only = int(i in place) - int(j in place)  # 0 without samples: it is even
            certain = sign * only * np.inf if only else 0.0
            columns[order[q]] = rows[:0], np.empty(0), certain, 0, True
    return columns


def _dense(array) -> NDArray[np.float64]:
    return array.toarray() if hasattr(array, "toarray") else array
