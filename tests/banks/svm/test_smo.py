"""The solver: its solutions satisfy the conditions of the optimum, and are those of LIBSVM."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from manyclass import codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.banks.limits import Limits
from manyclass.banks.svm.compiled.kernel_rows import get_row, kernel_rows, source

PAIR = np.array([[-1], [1]], dtype=np.int8)


def violation(K, side, bound, a):
    """The largest violation of the conditions of the optimum, from the definition."""
    g = side - K @ a
    lower, upper = np.minimum(side * bound, 0), np.maximum(side * bound, 0)
    assert ((a >= lower) & (a <= upper)).all()
    assert abs(a.sum()) < 1e-8 * (1 + np.abs(a).sum())
    return g[a < upper].max(initial=-np.inf) - g[a > lower].min(initial=np.inf)


def objective(K, side, a):
    return a @ K @ a / 2 - side @ a


@settings(deadline=None, max_examples=30)
@given(
    st.integers(2, 60),
    st.integers(0, 10_000),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.sampled_from([200, 1e-3]),
)
def test_conditions_of_the_optimum(n, seed, C, kernel, cache_size):
    """With all rows of the kernel, and with few of them computed again and again."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % 2)
    weights = rng.uniform(0.1, 3.0, n)
    machine = SVC(C=C, kernel=kernel, gamma=0.5, coef0=1.0, tol=1e-4, cache_size=cache_size)
    bank = fit_bank(machine, X, y, PAIR, MARGIN, fit_params={"sample_weight": weights})
    given_kernel = pairwise_kernels(
        X, metric=kernel, gamma=0.5, coef0=1.0, degree=3, filter_params=True
    )
    side, a = np.where(y == 1, 1.0, -1.0), bank.duals.toarray()[:, 0]
    size = 1e-9 * (1 + np.abs(given_kernel @ a).max())  # rounding
    assert violation(given_kernel, side, C * weights, a) < machine.tol + size


@pytest.mark.parametrize("load", [load_digits, load_wine])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_objective_with_a_small_tolerance(load, kernel):
    """Up to 1e-6: with the default ``tol``, LIBSVM itself may be 1e-6 to 1e-5 from the optimum."""
    X, y = load(return_X_y=True)
    X, y = scale(X[::3]), y[::3]
    params = {"C": 10.0, "tol": 1e-5, "coef0": 0.5}
    code = codes.one_vs_one(y.max() + 1)
    bank = fit_bank(SVC(kernel=kernel, **params), X, y, code, MARGIN)
    options = {"gamma": getattr(bank.kernel, "gamma", 1.0), "coef0": 0.5, "degree": 3}
    K = pairwise_kernels(X, metric=kernel, filter_params=True, **options)
    for column, a in zip(code.T[:9], bank.duals.toarray().T, strict=False):
        used = np.flatnonzero(column[y])
        side, block = column[y[used]].astype(float), K[np.ix_(used, used)]
        theirs = SVC(kernel="precomputed", **params).fit(block, side)
        expected = np.zeros(len(used))
        expected[theirs.support_] = theirs.dual_coef_[0]
        others = objective(block, side, expected)
        assert objective(block, side, a[used]) == pytest.approx(others, rel=1e-6)


@pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
def test_the_objective_is_that_of_libsvm(C):
    X, y = load_digits(return_X_y=True)
    X, y = scale(X[:400]), y[:400]
    bank, code = fit_bank(SVC(C=C), X, y, codes.one_vs_one(10), MARGIN), codes.one_vs_one(10)
    K = pairwise_kernels(X, metric="rbf", gamma=bank.kernel.gamma)
    for column, a in zip(code.T, bank.duals.toarray().T, strict=True):
        used = np.flatnonzero(column[y])
        side, block = column[y[used]].astype(float), K[np.ix_(used, used)]
        theirs = SVC(C=C, kernel="precomputed").fit(block, side)
        expected = np.zeros(len(used))
        expected[theirs.support_] = theirs.dual_coef_[0]
        ours, others = (objective(block, side, v) for v in (a[used], expected))
        assert ours == pytest.approx(others, rel=1e-5)
        assert violation(block, side, C * np.ones(len(used)), a[used]) < 1e-3 + 1e-9


def test_the_negative_problem_has_the_negative_solution_to_the_last_bit():
    X, y = load_wine(return_X_y=True)
    code = codes.one_vs_one(3)
    one, other = (fit_bank(SVC(), scale(X), y, c, MARGIN).duals.toarray() for c in (code, -code))
    np.testing.assert_array_equal(one, -other)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_same_bits_for_any_number_of_threads(n_jobs):
    X, y = load_digits(return_X_y=True)
    task = SVC(C=10.0), X[:300], y[:300], codes.one_vs_one(10), MARGIN
    options = {"limits": Limits(least_rows=8, most_rows=32), "borrow": True}
    one, many = (fit_bank(*task, n_jobs=jobs, **options) for jobs in (None, n_jobs))
    left_out = X[:300], y[:300], codes.one_vs_one(10), np.ones(300)
    np.testing.assert_array_equal(one.leave_one_out(*left_out), many.leave_one_out(*left_out))
    np.testing.assert_array_equal(one.margins_once(X), many.margins_once(X, n_jobs=n_jobs))
    np.testing.assert_array_equal(one.duals.toarray(), many.duals.toarray())
    np.testing.assert_array_equal(one.intercept, many.intercept)


def test_it_gives_up_after_as_many_steps_as_libsvm():
    """No plane separates the two, so coefficients grow up to C: with these features, for days."""
    X, y = load_iris(return_X_y=True)
    pair = y > 0
    with pytest.warns(ConvergenceWarning, match=r"max_iter=-1, 10,000,000 steps\). Scale the fea"):
        bank = fit_bank(SVC(kernel="linear"), 1e6 * X[pair], y[pair] - 1, PAIR, MARGIN)
    assert bank.n_iter == [10_000_000] and not bank.converged


def test_rows_that_are_kept_and_rows_that_are_not():
    X = np.random.default_rng(0).normal(size=(30, 4))
    K = pairwise_kernels(X, metric="rbf", gamma=0.3)
    members = np.arange(1, 30, 2)
    for given_source in (
        source((0, 0.3, 0.0, 0.0), gram=K),
        source((0, 0.3, 0.0, 0.0), features=np.ascontiguousarray(X.T)),
    ):
        rows = kernel_rows(given_source, members, np.empty(3 * len(members)))
        for i in (0, 5, 0, 7, 9, 0, 5, 14, 3):
            expected = K[members[i], members]
            np.testing.assert_allclose(get_row(rows, i), expected, rtol=1e-12)
