"""The low-rank method of kernel logistic regression finds the same solutions."""

from __future__ import annotations

import warnings

import naive_logistic
import naive_low_rank
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from manyclass import codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.learners.kernel_logistic.logistic_bank import left_out_changes
from manyclass.learners.kernel_logistic.loss import Loss, Point
from manyclass.learners.kernel_logistic.low_rank import low_rank_factor
from manyclass.learners.kernel_logistic.newton import solve
from manyclass.learners.kernel_logistic.regression import (
    KernelLogisticRegression,
    kernel_logistic_path,
)
from manyclass.learners.kernel_logistic.steps import Newton, Settings

N = 300  # more than Settings.n_direct
HOW = ("overlapping", "separable", "copies", "constant", "rare", "nothing")
converged_in_theory = pytest.mark.filterwarnings("ignore:kernel logistic regression converged, but")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads slow small problems down."""
    with threadpool_limits(1):
        yield


ITERATIVE = Settings(n_direct=0)  # no direct factorisation, even for few samples
FULL_RANK = Settings(max_rank=0)  # ignore low rank


def table(seed: int = 0, n: int = N, n_features: int = 4, how: str = "overlapping"):
    rng = np.random.default_rng(seed)
    X, target = rng.normal(size=(n, n_features)), np.arange(n) % 2
    X[:, 0] += target
    if how == "separable":
        X[:, 0] += 8.0 * target
    elif how == "copies":
        X = X[rng.integers(0, 5, n)]
    elif how == "constant":
        X[:, 1:] = 1.0
    elif how == "rare":
        X[:, 1:] *= np.arange(n)[:, None] == np.arange(1, n_features)
    elif how == "nothing":
        X[:] = 0.0
    return X, target


def kernel_of(X, degree: int = 1):
    return X @ X.T if degree == 1 else (X @ X.T / X.shape[1] + 1.0) ** degree


def solved_in_full(K, positive, bound):
    """The same problem solved without the low-rank method."""
    return solve(K, positive, bound, settings=FULL_RANK)


def takes_low_rank(K, C: float = 1.0) -> bool:
    return Newton(K, np.full(len(K), C), float(np.diagonal(K).max())).F is not None


# -- the factorisation -----------------------------------------------------------------


class TestFactor:
    @settings(deadline=None, max_examples=20)
    @given(
        st.integers(0, 10_000),
        st.integers(1, 24),
        st.sampled_from(HOW),
        st.sampled_from([1e-6, 1.0, 1e8]),
    )
    def test_finds_the_rank(self, seed, n_features, how, size):
        X, _ = table(seed, 90, n_features, how)
        K = size * kernel_of(X)
        F = low_rank_factor(K, 40)
        assert len(F) == naive_low_rank.rank(K, 1e-10)
        assert_allclose(F.T @ F, K, rtol=0, atol=1e-11 * K.max())

    @settings(deadline=None, max_examples=15)
    @given(st.integers(0, 10_000), st.integers(50, 90), st.integers(1, 40))
    def test_higher_ranks_are_left_alone(self, seed, n_features, highest):
        X, _ = table(seed, 100, n_features)
        assert low_rank_factor(kernel_of(X), highest) is None

    def test_copies_do_not_make_the_rank_low(self):
        """If all samples have a copy, some copies are drawn together."""
        X = np.repeat(np.random.default_rng(0).normal(size=(190, 3)), 2, axis=0)
        K = np.exp(-10.0 * ((X[:, None] - X) ** 2).sum(axis=2))
        assert low_rank_factor(K, 100) is None
        assert low_rank_factor(K[:80, :80], 60).shape == (40, 80)

    def test_kernels_that_are_not_positive_semidefinite(self):
        X, _ = table()
        K = kernel_of(X)
        assert low_rank_factor(K, 40).shape == (4, N)
        lowered, zeros, negative = K - 1e-6 * np.eye(N), K.copy(), -np.eye(N)
        zeros[:2], zeros[:, :2] = 0.0, 0.0
        zeros[0, 1] = zeros[1, 0] = 1.0  # the diagonal does not show it
        for bad in (lowered, zeros, negative):
            assert low_rank_factor(bad, 40) is None

    def test_nothing(self):
        assert low_rank_factor(np.zeros((N, N)), 40).shape == (0, N)

    def test_leaves_the_kernel_alone(self):
        K = kernel_of(table()[0])
        copy = K.copy()
        K.flags.writeable = False
        low_rank_factor(K, 40)
        assert_array_equal(K, copy)


# -- the steps -------------------------------------------------------------------------


def test_which_method_is_chosen():
    X, _ = table(n_features=10)
    assert takes_low_rank(kernel_of(X))
    assert takes_low_rank(kernel_of(X[:, :3], degree=3))
    assert takes_low_rank(np.zeros((N, N)))
    assert not takes_low_rank(np.exp(-((X[:, None] - X) ** 2).sum(axis=2)))
    assert not takes_low_rank(kernel_of(X)[:100, :100])  # few samples: direct method
    assert not takes_low_rank(kernel_of(X), C=1e12)  # the residual K - F'F would matter


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.floats(-3.0, 3.0), st.sampled_from(HOW))
def test_a_step_solves_the_large_system(seed, power, how):
    rng = np.random.default_rng(seed)
    X, target = table(seed, 40, 3, how)
    K, bound = kernel_of(X), 10.0**power * rng.uniform(0.5, 2.0, 40)
    loss = Loss(2.0 * target - 1.0, bound)
    a = rng.normal(size=40) / (1.0 + np.abs(K).sum(axis=0).max())
    at = Point(loss, a, 0.3, K @ a)
    expected, expected_b = naive_low_rank.newton_step(K, loss.sign, bound, a, at.b)
    newton = Newton(K, bound, float(np.diagonal(K).max()), ITERATIVE)
    assert newton.F is not None
    to, _ = newton.towards(loss, at)
    assert_allclose(to.a, expected, atol=1e-7 * bound.max())
    assert_allclose(to.b, expected_b, atol=1e-7 * (1 + abs(expected_b)))
    assert_allclose(to.Ka, K @ expected, atol=1e-7 * (1 + abs(K @ expected).max()))
    assert_allclose(to.slope, at.r @ K @ expected + (at.r - a).sum() * expected_b, rtol=1e-6)


# -- the minimum -----------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10_000),
    st.floats(-4.0, 6.0),
    st.sampled_from(HOW),
    st.sampled_from([1, 2, 3]),
    st.booleans(),
)
def test_the_same_as_in_full(seed, power, how, degree, weighted):
    rng = np.random.default_rng(seed)
    X, target = table(seed, how=how)
    K, C = kernel_of(X, degree), 10.0**power
    bound = C * (rng.uniform(0.1, 3.0, N) if weighted else np.ones(N))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = solve(K, target > 0, bound)
    expected = solved_in_full(K, target > 0, bound)
    assert found.gradient <= 1e-8 or found.gradient <= 2 * expected.gradient
    assert (
        naive_logistic.gradient(K, 2.0 * target - 1.0, bound, *found[:2])
        < 1e-8 + found.gradient_in_float64
    )
    assert abs(found.dual.sum()) < 1e-8 * bound.max()
    assert found.n_iter < 30
    assert_allclose(
        found.dual / C, expected.dual / C, atol=2e-7 + 10 * expected.gradient_in_float64
    )


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("how", HOW)
def test_the_minimum(how, C):
    X, target = table(n=60, n_features=3, how=how)
    K = kernel_of(X)
    bound = C * np.random.default_rng(0).uniform(0.1, 3.0, 60)
    a, b = naive_logistic.minimum(K, 2.0 * target - 1.0, bound)
    found = solve(K, target > 0, bound, settings=ITERATIVE)
    assert_allclose(found.dual / C, a / C, atol=1e-7)
    assert_allclose(found.intercept, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("C", "offset"), [(1e-4, 0.0), (1e-4, 100.0), (1.0, 5.0), (1e4, 0.0), (1e6, 5.0), (1e6, 100.0)]
)
def test_coefficients_that_cancel(C, offset):
    """They are as large as C, and meet the tolerance in float64."""
    X, target = table(n_features=5)
    K = kernel_of(X + offset)
    found = solve(K, target > 0, np.full(N, C))
    gradient = naive_logistic.exact_gradient(K, 2.0 * target - 1.0, C, *found[:2])
    assert gradient < 1e-8
    # A tenth of the tolerance: how coefficients of this size round depends on the processor.
    assert_allclose(found.gradient, gradient, rtol=0.05, atol=1e-9)


def test_is_linear_logistic_regression():
    X, target = table(n_features=8)
    for C in (1e-2, 1.0, 1e2):
        model = KernelLogisticRegression(C=C, kernel="linear").fit(X, target)
        peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, target)
        assert_allclose(model.dual_coef_ @ X, peer.coef_, atol=1e-5)
        assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)


@converged_in_theory
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_nothing_to_learn_from(value, C):
    """Constant features: K has rank 0, or rank 1 before centring."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = KernelLogisticRegression(C=C, kernel="linear")
        model.fit(np.full((N, 2), value), np.arange(N) < N // 3)
    assert_allclose(model.predict_proba(np.full((1, 2), value)), [[2 / 3, 1 / 3]], atol=1e-8)
    assert_allclose(model.dual_coef_[0, [0, -1]] / C, [2 / 3, -1 / 3], atol=1e-8)


def test_a_wrong_factor_is_detected():
    """The result is checked with K itself, and conjugate gradients continue."""
    X, target = table()
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    expected = solve(K, target > 0, np.ones(N))
    newton = Newton(K, np.ones(N), 1.0)
    newton.F = np.linalg.cholesky(K + 1e-3 * np.eye(N))[:, :20].T
    found, _ = newton.minimise(Loss(2.0 * target - 1.0, np.ones(N)), 1e-8, 100, None)
    assert newton.F is None
    assert found.gradient <= 1e-8
    assert_allclose(found.a, expected.dual, atol=1e-7)


def test_indefinite_kernels_whose_positive_part_has_low_rank():
    K = kernel_of(table()[0])
    found = solve(K - 0.1 * np.eye(N), np.arange(N) % 2 > 0, np.full(N, 100.0))
    values, vectors = np.linalg.eigh(K)
    kept = values > 0.1 + 1e-9
    part = (vectors[:, kept] * (values[kept] - 0.1)) @ vectors[:, kept].T
    expected = solve(part, np.arange(N) % 2 > 0, np.full(N, 100.0))
    assert found.gradient <= 1e-8
    assert_allclose(found.negative, 0.1 / (values[-1] - 0.1))
    assert_allclose(part @ found.dual + found.intercept, part @ expected.dual + expected.intercept)


def test_too_few_steps():
    X, target = table()
    found = solve(kernel_of(X), target > 0, np.full(N, 1e3), max_iter=2)
    assert found.n_iter == 2 and found.gradient > 1e-8


def test_steps_do_not_grow_with_C():
    X, target = table(n_features=10)
    steps = [solve(kernel_of(X), target > 0, np.full(N, C)).n_iter for C in (1.0, 1e2, 1e4)]
    assert max(steps) <= 8


# -- all around it ---------------------------------------------------------------------


def test_starts():
    X, target = table()
    K = kernel_of(X + 3.0)
    first = solve(K, target > 0, np.full(N, 1e3))
    again = solve(K, target > 0, np.full(N, 1e3), start=first[:2])
    # Rounding decides how many steps: from one to four in tables like this one.
    assert again.n_iter < first.n_iter and again.gradient < 1e-8
    cold = solve(K, target > 0, np.full(N, 2e3))
    found = solve(K, target > 0, np.full(N, 2e3), start=first[:2])
    assert found.n_iter <= cold.n_iter
    assert_allclose(found.dual, cold.dual, atol=2e-4)


def test_path():
    X, target = table()
    Cs = [1e4, 1e-2, 1.0, 100.0]
    weights = np.arange(N) % 3 * 1.0
    path = kernel_logistic_path(X, target, Cs, kernel="linear", sample_weight=weights)
    for m, C in enumerate(Cs):
        model = KernelLogisticRegression(C=C, kernel="linear").fit(X, target, weights)
        assert_allclose(path.dual_coef[m, model.support_] / C, model.dual_coef_[0] / C, atol=1e-8)
        assert_allclose(path.intercept[m], model.intercept_[0], atol=1e-6)


def test_weight_zero_is_no_sample():
    X, target = table(n=450)
    weights = np.where(np.arange(450) % 3 == 0, 0.0, 1.0)
    kept = weights > 0
    model = KernelLogisticRegression(kernel="linear").fit(X, target, weights)
    expected = KernelLogisticRegression(kernel="linear").fit(X[kept], target[kept])
    assert_array_equal(model.support_, np.flatnonzero(weights))
    assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-9)


def test_precomputed():
    X, target = table()
    expected = KernelLogisticRegression(kernel="linear").fit(X, target)
    model = KernelLogisticRegression(kernel="precomputed").fit(kernel_of(X), target)
    assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-8)


def test_bank_and_leave_one_out():
    X, _ = table(n=600)
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    code = codes.one_vs_rest(4)
    bank = fit_bank(KernelLogisticRegression(kernel="linear"), X, y, code, MARGIN)
    out = bank.leave_one_out(X, y, code, np.ones(600))
    K = kernel_of(X)
    for column in range(4):
        full = solved_in_full(K, y == column, np.ones(600))
        f = K @ full.dual + full.intercept
        assert_allclose(bank.scores(X)[:, column], f, atol=1e-6)
        changes = left_out_changes(K, full.dual, full.intercept, np.ones(600))
        assert_allclose(out[:, column], f - changes, atol=1e-5)


def test_two_points_by_hand():
    """Copies of two points: the margins are those of two samples with the total weight."""
    target = np.arange(N) % 2
    K = np.where(target[:, None] == target, 1.0, 0.5)
    found = solve(K, target > 0, np.full(N, 6.0 / N))
    a = found.dual[target > 0].sum()
    assert_allclose(a, 3.0 * expit(-0.5 * a), rtol=1e-8)
    assert_allclose(found.intercept, 0.0, atol=1e-8)
