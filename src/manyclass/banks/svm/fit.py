"""Fit the machines of a kernel bank, by our own solver or by LIBSVM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.messages import warn
from manyclass._lib.rows import is_everything, take_rows, with_narrow_indices, without_duplicates
from manyclass._lib.sklearn import is_finite_array, n_samples
from manyclass._lib.weights import check_heaviest
from manyclass.banks.base import check_square
from manyclass.banks.limits import Limits
from manyclass.banks.repeats import Distinct, distinct_rows
from manyclass.banks.svm.bank import SOLVER_TOLERANCE, KernelBank, check_fits, few_of
from manyclass.banks.svm.compiled.kernel_rows import Source, source
from manyclass.banks.svm.compiled.machines import Problems
from manyclass.banks.svm.gamma import resolve_gamma, scale_gamma
from manyclass.banks.svm.groups import size_in_bytes
from manyclass.banks.svm.kernels import FORMS, Kernel, resolve_kernel
from manyclass.banks.svm.libsvm import fit_by_libsvm
from manyclass.banks.svm.training import Training, make_problems


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
    dtype: type[np.floating] = np.float64,
    factors: WeightFactors | None = None,
    borrow: bool = False,
    limits: Limits | None = None,
) -> KernelBank:
    """Fit the machines of all columns, in threads.

    ``gamma`` is resolved on all of X, so that all columns and folds share a kernel. ``factors`` are
    the factors of the sample weights. With ``borrow`` the support vectors stay in X, which must
    come from :func:`read_by_machines`.
    """
    limits = Limits() if limits is None else limits
    X = X if borrow else read_by_machines(estimator, X)
    if sample_weight is not None:
        check_heaviest(sample_weight)
        rows = rows[sample_weight[rows] > 0]
    of_sample = sample_weight if factors is None else factors.of_sample
    kernel = resolve_kernel(
        estimator, lambda gamma: gamma_of(estimator, gamma, X, of_sample, limits)
    )
    if not kernel.takes_any_rows:
        check_fits(X, dtype)
    if kernel.precomputed:
        if issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass X.toarray().")
        check_square(estimator, X)
    distinct = _distinct(estimator, X, y, rows, of_sample, limits) if kernel.numeric else None
    if distinct is not None:
        rows, sample_weight = distinct.rows, distinct.weights
        if factors is not None:
            sample_weight = factors.of_class[y] * distinct.weights
    task = kernel, X, y, code, rows, sample_weight
    options: dict[str, Any] = {"dtype": dtype, "borrow": borrow, "limits": limits}
    options["once_each"] = distinct is not None
    fit = _bank_of_solver if type(estimator) is SVC else _bank_of_libsvm
    bank = fit(estimator, *task, n_jobs, options)
    if kernel.numeric and not issparse(X) and max(X.max(), -X.min()) > 1e150:  # squares overflow
        if np.isnan(bank.margins_once(take_rows(X, few_of(np.arange(len(y)))))).any():
            raise ValueError(
                "X has features so large that their squares overflow, and margins are NaN: scale "
                "the features, for example by StandardScaler."
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
    """Return X in the form that the machines read, so that it is not converted for every fold."""
    if callable(estimator.kernel) or (is_finite_array(X, np.float64) and X.flags.c_contiguous):
        return X
    X = check_array(
        X, accept_sparse="csr", dtype=np.float64, order="C", input_name="X", estimator=estimator
    )
    return with_narrow_indices(without_duplicates(X))


def _source(kernel: Kernel, X, rows: Places, cache_bytes: float, limits: Limits) -> Source:
    """Return what the solver reads kernel values from.

    The kernel matrix of all samples pays if they are few, or if features are so many that matrix
    products are faster than single rows. Otherwise rows are computed when the solver asks for them.
    """
    n, parameters = len(rows), _parameters(kernel)
    if kernel.precomputed and is_everything(rows, len(X)):
        return source(parameters, gram=X)
    fits = 8.0 * n * n <= cache_bytes
    if kernel.numeric and not (
        fits and (issparse(X) or n <= limits.small or X.shape[1] > limits.wide)
    ):
        part = take_rows(X, rows)
        if issparse(X):
            return source(parameters, csr=part)
        return source(parameters, features=np.ascontiguousarray(part.T))
    return source(parameters, gram=_gram(kernel, X, rows, limits))


def _gram(kernel: Kernel, X, rows: Places, limits: Limits) -> Floats:
    """Return the kernel matrix of some rows; not all rows of a large X are copied at once."""
    origin = kernel.origin(X, rows)
    part = limits.prepared_sparse_bytes if issparse(X) else limits.prepared_dense_bytes
    n_parts = 1 + min(limits.gram_parts, size_in_bytes(X) // part) if kernel.numeric else 1
    n_parts = min(n_parts, len(rows))
    if n_parts == 1:
        return np.ascontiguousarray(kernel.between(X, rows, rows, origin))
    parts, gram = np.array_split(np.arange(len(rows)), n_parts), np.empty((len(rows), len(rows)))
    for i, a in enumerate(parts):
        for b in parts[i:]:
            block = kernel.between(X, rows[a], rows[b], origin)
            gram[a[0] : a[-1] + 1, b[0] : b[-1] + 1] = block
            gram[b[0] : b[-1] + 1, a[0] : a[-1] + 1] = block.T
    return gram


def _parameters(kernel: Kernel) -> tuple[int, float, float, float]:
    """Return the number of the kernel's function, gamma, coef0 and degree."""
    gamma, coef0, degree = (
        float(getattr(kernel, name, 0.0)) for name in ("gamma", "coef0", "degree")
    )
    return FORMS.get(type(kernel), 0), gamma, coef0, degree


def _bank_of_solver(estimator, kernel, X, y, code, rows, weights, n_jobs, options) -> KernelBank:
    own_weights = np.ones(len(rows)) if weights is None else weights[rows]
    values = _source(kernel, X, rows, estimator.cache_size * 2.0**20, options["limits"])
    problems = make_problems(values, y[rows], code, estimator.C * own_weights)
    if estimator.class_weight is not None:
        _weigh_sides(estimator.class_weight, problems)
    training = Training(problems, rows, estimator.tol, estimator.cache_size, n_jobs)
    training.solve(estimator.max_iter)
    return _bank_of_training(estimator, kernel, X, y, code, training, options)


def with_larger_C(bank: KernelBank, estimator, X, y: Places, code: Code) -> KernelBank:
    """Return the bank of ``estimator``, which has a larger C: solved from the solution of a bank.

    X, y and code are those that the bank was fitted on. Kernel values are shared, if the bank has
    the kernel matrix of all samples.
    """
    if bank.training is None or bank.bound is None:
        raise ValueError("the bank must hold its training, and have no class weights.")
    training = bank.training.with_larger_bounds(estimator.C / bank.bound, estimator.max_iter)
    options = {"dtype": bank.dtype, "limits": bank.limits, "once_each": bank.once_each}
    options["borrow"] = bank.borrowed_from is not None
    return _bank_of_training(estimator, bank.kernel, X, y, code, training, options)


def _bank_of_training(
    estimator, kernel, X, y, code, training: Training, options: dict[str, Any]
) -> KernelBank:
    problems = training.problems
    converged = bool((problems.n_iter >= 0).all())
    n_iter = np.where(problems.n_iter < 0, -problems.n_iter - 1, problems.n_iter)
    if not converged:
        warn(
            f"Solver terminated early (max_iter={estimator.max_iter}, {n_iter.max():,} steps). "
            "Scale the features, for example by StandardScaler, or raise max_iter.",
            ConvergenceWarning,
        )
    machines = kernel, X, y, code, training.duals(len(y)), problems.intercept
    bank = KernelBank(
        *machines,
        bound=estimator.C if estimator.class_weight is None else None,
        n_iter=n_iter,
        converged=converged,
        **options,
    )
    bank.training = training
    return bank


def _weigh_sides(class_weight, problems: Problems) -> None:
    """Multiply the bounds by class weights, where the sides 0 and 1 of a column are the classes."""
    for first, last in zip(problems.starts[:-1], problems.starts[1:], strict=True):
        target = (problems.side[first:last] > 0).astype(np.intp)
        if 0 < target.sum() < len(target):
            of_side = compute_class_weight(class_weight, classes=np.array([0, 1]), y=target)
            problems.bound[first:last] *= of_side[target]


def _bank_of_libsvm(estimator, kernel, X, y, code, rows, weights, n_jobs, options) -> KernelBank:
    columns = fit_by_libsvm(estimator, kernel, X, y, code, rows, weights, n_jobs)
    support, values, intercept, n_iter, converged = zip(*columns, strict=True)
    return KernelBank(
        *(kernel, X, y, code, sparse_duals(support, values, len(y)), np.array(intercept)),
        bound=None,
        n_iter=np.array(n_iter),
        converged=all(converged),
        **options,
    )


def sparse_duals(rows: Sequence[Places], values: Sequence[Floats], n: int) -> csr_array:
    """Return the signed dual coefficients (n, l) from the rows and values of each column."""
    columns = np.repeat(np.arange(len(rows)), [len(of_column) for of_column in rows])
    entries = np.concatenate(values), (np.concatenate(rows), columns)
    return csr_array(entries, shape=(n, len(rows)))


def gamma_of(estimator, gamma: str | float, X, weights: Floats | None, limits: Limits) -> float:
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
    if type(estimator) is not SVC or isinstance(estimator.class_weight, str):
        return None
    sizes = limits.repeated, limits.copied_bytes, limits.digest_entries
    return distinct_rows(X, y, rows, weights, *sizes)
