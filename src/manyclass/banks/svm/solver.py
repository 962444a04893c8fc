"""Fit the machines of a kernel bank: all pairs in one call of LIBSVM, or one call per column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils import check_array

from manyclass import codes
from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.interrupts import interruptible
from manyclass._lib.jobs import run_tasks
from manyclass._lib.messages import warn
from manyclass._lib.rows import take_part, take_rows, with_narrow_indices, without_duplicates
from manyclass._lib.sklearn import counts_rows_of_weight, n_samples
from manyclass.banks.base import check_square
from manyclass.banks.by_column import column_batches
from manyclass.banks.limits import Limits
from manyclass.banks.repeats import Distinct, distinct_rows
from manyclass.banks.svm.bank import SOLVER_TOLERANCE, KernelBank, check_fits, few_of
from manyclass.banks.svm.gamma import resolve_gamma, scale_gamma
from manyclass.banks.svm.groups import share_of_rows, size_in_bytes
from manyclass.banks.svm.kernels import Kernel, resolve_kernel


class WeightFactors(NamedTuple):
    """The factors of sample weights: a weight per class and a weight per sample."""

    of_class: Floats  # shape (k,)
    of_sample: Floats | None  # shape (n,); None for 1


def fit_kernel_bank(
    estimator,
    X,
    y: Places,
    code: Code,
    *,
    rows: Places,
    sample_weight: Floats | None,
    n_jobs: int | None = None,
    verbose: int = 0,
    dtype: type[np.floating] = np.float64,
    factors: WeightFactors | None = None,
    borrow: bool = False,
    limits: Limits | None = None,
) -> KernelBank:
    """Fit the machines of all columns: one-vs-one in a single call of LIBSVM.

    Large pairs are single calls: several jobs share them, and after an interrupt only one of them
    runs to its end. The machines are the same. ``gamma`` is resolved on all of X, so that all
    columns and folds share a kernel. ``factors`` are the factors of the sample weights. For pairs
    of classes, LIBSVM gets both, as from SVC, since its steps depend on the last bit of C. With
    ``borrow`` the support vectors stay in X, which must come from :func:`read_by_machines`.
    """
    limits = Limits() if limits is None else limits
    X = read_by_machines(estimator, X)
    if sample_weight is not None:
        rows = rows[sample_weight[rows] > 0]
    of_sample = sample_weight if factors is None else factors.of_sample
    kernel = resolve_kernel(estimator, lambda gamma: _gamma(estimator, gamma, X, of_sample, limits))
    if not kernel.takes_any_rows:
        check_fits(X, dtype)
    if kernel.precomputed:
        check_square(estimator, X)
    distinct = _distinct(estimator, X, y, rows, of_sample, limits) if kernel.numeric else None
    if distinct is not None:
        rows, sample_weight = distinct.rows, distinct.weights
        if factors is not None:
            sample_weight = factors.of_class[y] * distinct.weights
            factors = factors._replace(of_sample=distinct.weights)
    task = estimator, kernel, limits, X, y, code, rows, sample_weight, factors
    columns = _fit_all(*task, n_jobs=n_jobs, verbose=verbose)
    support, values, intercept, n_iter, converged = zip(*columns, strict=True)
    options: dict[str, Any] = {"dtype": dtype, "borrow": borrow, "limits": limits}
    machines = kernel, X, y, code, sparse_duals(support, values, len(y)), np.array(intercept)
    bank = KernelBank(
        *machines,
        bound=estimator.C if type(estimator) is SVC and estimator.class_weight is None else None,
        n_iter=np.array(n_iter),
        converged=all(converged),
        once_each=distinct is not None,
        **options,
    )
    if dtype == np.float32:
        error = bank.error_in_single(take_rows(X, few_of(np.arange(len(y)))))
        if error > SOLVER_TOLERANCE:
            warn(
                f"with dtype=np.float32 margins are wrong by up to {error:.2g}: scale the features "
                "to a mean near 0 and a size near 1, or use dtype=np.float64."
            )
    return bank


def read_by_machines(estimator, X):
    """Return X in the form that LIBSVM reads, so that it is not converted for every machine."""
    if callable(estimator.kernel):
        return X
    X = check_array(
        X, accept_sparse="csr", dtype=np.float64, order="C", input_name="X", estimator=estimator
    )
    return with_narrow_indices(without_duplicates(X))


def _machine(estimator, kernel: Kernel):
    """Return the estimator that is fitted: with this kernel, and without probabilities."""
    return clone(estimator).set_params(
        kernel=kernel.for_svc,
        gamma=getattr(kernel, "gamma", 1.0),
        probability=type(estimator)().probability,
    )


def sparse_duals(rows: Sequence[Places], values: Sequence[Floats], n: int) -> csr_array:
    """Return the signed dual coefficients (n, l) from the rows and values of each column."""
    columns = np.repeat(np.arange(len(rows)), [len(of_column) for of_column in rows])
    entries = np.concatenate(values), (np.concatenate(rows), columns)
    return coo_array(entries, shape=(n, len(rows))).tocsr()


def _is_one_call(
    kernel: Kernel, X, n_rows: int, code: Code, n_jobs: int, most_products: float
) -> bool:
    """Tell whether it is better to fit all pairs in one call of LIBSVM than in one each."""
    if kernel.takes_any_rows and n_jobs == 1:  # single calls would compute its values twice
        return True
    products = (2 * n_rows / len(code)) ** 2
    if kernel.numeric:
        products *= X.nnz / X.shape[0] if issparse(X) else X.shape[1]
    return products < most_products


def _gamma(estimator, gamma: str | float, X, weights: Floats | None, limits: Limits) -> float:
    """Return gamma as a number. If copies are merged, "scale" uses the weighted variance."""
    everything = np.arange(n_samples(X))
    distinct = None
    if gamma == "scale":
        distinct = _distinct(estimator, X, np.zeros_like(everything), everything, weights, limits)
    if distinct is None:
        return resolve_gamma(gamma, X)
    return scale_gamma("scale", take_rows(X, distinct.rows), distinct.weights[distinct.rows])


def _distinct(estimator, X, y, rows, weights: Floats | None, limits: Limits) -> Distinct | None:
    """Return distinct rows if copies are merged. With nu or balanced weights, they count."""
    if type(estimator) is not SVC or _counts_rows(estimator):
        return None
    sizes = limits.repeated, limits.copied_bytes, limits.digest_entries
    return distinct_rows(X, y, rows, weights, *sizes)


def _counts_rows(machine) -> bool:
    """Tell whether class weights depend on the number of rows."""
    return isinstance(machine.class_weight, str)


Column = tuple[Places, Floats, float, int, bool]
"""Support rows, signed dual coefficients, intercept, iterations, converged."""


Weights = Floats | WeightFactors | None


def _fit(machine, kernel: Kernel, limits: Limits, X, rows, target, weights: Weights, classes):
    """Fit a machine on some rows, whose classes are given. Also return its support rows."""
    machine = clone(machine)
    if isinstance(weights, WeightFactors):
        labels, first = np.unique(target, return_index=True)
        by_class = weights.of_class[classes[first]]
        machine.set_params(class_weight=dict(zip(labels, by_class, strict=True)))
        weights = weights.of_sample
    weight = None if weights is None else weights[rows]
    heeds_weights = kernel.numeric and not _counts_rows(machine)
    if whole := heeds_weights and _is_better_left_whole(X, rows, limits.copied_bytes):
        # LIBSVM leaves out samples without weight, whatever their target.
        weight = _among_all(X, rows, np.ones(len(rows)) if weight is None else weight, 0.0)
        target = _among_all(X, rows, target, target[0])
    part = X if whole else take_part(X, rows, rows if kernel.precomputed else None)
    fitted = interruptible(
        machine.fit, part, target, sample_weight=weight, work=_products(kernel, part)
    )
    return fitted, rows[fitted.support_]


def _products(kernel: Kernel, X) -> float:
    """Estimate the multiplications in LIBSVM: those of the kernel matrix."""
    if kernel.precomputed:
        return float(len(X) ** 2)
    if not kernel.numeric:
        return np.inf
    n, n_features = X.shape
    return n**2 * (X.nnz / max(1, n) if issparse(X) else n_features)


def _is_better_left_whole(X, rows: Places, copied_bytes: int) -> bool:
    """Tell whether LIBSVM gets all of a large X, where other rows have no weight.

    scikit-learn copies the support vectors, which may be all rows: more than half of X twice.
    """
    return (
        size_in_bytes(X) > copied_bytes
        and len(rows) < n_samples(X)
        and share_of_rows(X, rows) > 0.5
        and bool((np.diff(rows) > 0).all())
        and counts_rows_of_weight()
    )


def _among_all(X, rows: Places, values: NDArray, others) -> NDArray:
    """Return an array for all rows of X: these values at these rows, ``others`` elsewhere."""
    out = np.full(n_samples(X), others, dtype=values.dtype)
    out[rows] = values
    return out


def _fit_all(
    estimator, kernel, limits, X, y, code, rows, sample_weight, factors, *, n_jobs, verbose
) -> list[Column]:
    """Fit all columns: pairs in one call of LIBSVM unless they are large, or one call each."""
    pairs = codes.pair_columns(code)
    weights = factors if pairs is not None and factors is not None else sample_weight
    paired = pairs is not None and estimator.class_weight is None
    as_pairs = paired and len(np.unique(y[rows])) > 2
    jobs = effective_n_jobs(n_jobs)
    task = _machine(estimator, kernel), kernel, limits, X, y
    if as_pairs and _is_one_call(kernel, X, len(rows), code, jobs, limits.one_call):
        return _fit_pairs(*task, pairs, rows, weights)
    shared = *task, code, rows, weights, paired
    options = {"n_jobs": n_jobs, "verbose": verbose, "prefer": "threads"}  # LIBSVM frees the GIL
    batches = run_tasks(_fit_columns, column_batches(code.shape[1], jobs), *shared, **options)
    return [column for batch in batches for column in batch]


def _fit_columns(
    batch: slice, machine, kernel, limits, X, y, code, rows, weights, pairs
) -> list[Column]:
    task = machine, kernel, limits, X, y
    return [_fit_column(*task, column, rows, weights, pairs) for column in code[:, batch].T]


def _fit_column(
    machine, kernel, limits, X, y, column, rows, weights: Weights, pair: bool
) -> Column:
    """Fit one column. In a pair the upper class is positive, which gives LIBSVM's last bits."""
    rows = rows[column[y[rows]] != 0]
    lower_side = column[np.flatnonzero(column)[0]]
    sign = -1 if pair and lower_side > 0 and machine.class_weight is None else 1
    target = (sign * column[y[rows]] > 0).astype(np.intp)
    if len(np.unique(target)) < 2:
        only = column[y[rows[0]]] if len(target) else 0  # 0 without samples
        return rows[:0], np.empty(0), only * np.inf if only else 0.0, 0, True
    fitted, support = _fit(machine, kernel, limits, X, rows, target, weights, y[rows])
    duals, intercept = sign * _dense(fitted.dual_coef_)[0], sign * float(fitted.intercept_[0])
    return support, duals, intercept, int(fitted.n_iter_[0]), fitted.fit_status_ == 0


def _fit_pairs(machine, kernel, limits, X, y, pairs, rows, weights: Weights) -> list[Column]:
    """Fit all pairs at once, in LIBSVM's order: the lower class is positive."""
    order, flip = pairs
    if kernel.numeric and size_in_bytes(X) <= limits.sorted_bytes:
        # The order within a class stays: the machines depend on it.
        rows = rows[np.argsort(y[rows], kind="stable")]
    fitted, support = _fit(machine, kernel, limits, X, rows, y[rows], weights, y[rows])
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
            only = int(i in place) - int(j in place)  # 0 without samples
            certain = sign * only * np.inf if only else 0.0
            columns[order[q]] = rows[:0], np.empty(0), certain, 0, True
    return columns


def _dense(array) -> Floats:
    return array.toarray() if hasattr(array, "toarray") else array
