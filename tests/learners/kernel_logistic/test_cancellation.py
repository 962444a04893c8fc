"""Kernel logistic regression with large coefficients that cancel in K a."""

from __future__ import annotations

import warnings
from math import fsum

import naive_logistic
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from manyclass.banks import MARGIN, fit_bank
from manyclass.learners.kernel_logistic.newton import solve
from manyclass.learners.kernel_logistic.regression import (
    KernelLogisticRegression,
    kernel_logistic_path,
)
from manyclass.learners.kernel_logistic.steps import Settings
from manyclass.learners.kernels.symmetric_products import accurate_product

PAIR = np.array([[-1], [1]], dtype=np.int8)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads slow small problems down."""
    with threadpool_limits(1):
        yield


# -- coefficients that cancel ----------------------------------------------------------


def overlapping(n: int = 90, n_features: int = 5):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(n, n_features))
    return data, (data[:, 0] + 2.0 * rng.normal(size=n) > 0).astype(int)


def power(degree: int):
    return lambda A: (A @ A.T + 1.0) ** degree


class TestCancellation:
    """Overlapping classes and a kernel of low rank: a is as large as C, but K a is small."""

    @pytest.mark.parametrize("C", [1e-4, 1.0, 1e4, 1e6])
    @pytest.mark.parametrize("offset", [0.0, 5.0, 1000.0])
    @pytest.mark.parametrize("n_direct", [0, 250])
    def test_linear(self, n_direct, offset, C):
        data, target = overlapping()
        K = (data + offset) @ (data + offset).T
        settings = Settings(n_direct=n_direct)
        found = solve(K, target > 0, np.full(90, C), settings=settings)
        gradient = naive_logistic.exact_gradient(K, 2.0 * target - 1.0, C, *found[:2])
        assert gradient < 1e-8
        assert_allclose(found.gradient, gradient, rtol=0.05, atol=1e-10)  # rounding of each BLAS

    @pytest.mark.parametrize("degree", [2, 3])
    @pytest.mark.parametrize(("offset", "C"), [(0.0, 1e4), (0.0, 1e6), (3.0, 1e4)])
    def test_polynomials(self, offset, C, degree):
        data, target = overlapping(n_features=3)
        K = power(degree)(data + offset)
        found = solve(K, target > 0, np.full(90, C))
        assert naive_logistic.exact_gradient(K, 2.0 * target - 1.0, C, *found[:2]) < 1e-8

    @pytest.mark.parametrize("C", [1e5, 2e5, 3e5, 7e5, 1e6])
    def test_raw_features_of_real_data(self, C):
        """Far from the minimum the steps reduce the objective, but do not halve the gradient."""
        data, target = load_breast_cancer(return_X_y=True)
        found = solve(data @ data.T, target > 0, np.full(len(target), C))
        assert found.gradient < 1e-8

    def test_small_coefficients_absorb_rounding_errors(self):
        """Even if the smallest ones are only a thousand times smaller than the largest."""
        data, target = overlapping(n_features=3)
        K = power(3)(data + 3.0)
        found = solve(K, target > 0, np.full(90, 1e6))
        gradient = naive_logistic.exact_gradient(K, 2.0 * target - 1.0, 1e6, *found[:2])
        assert gradient < 1e-8
        assert_allclose(found.gradient, gradient, rtol=0.05)

    def test_warns_if_coefficients_have_too_few_digits(self):
        """No coefficient is small enough to absorb the rounding errors of the others."""
        data, target = overlapping(n_features=3)
        K = power(3)(data + 12.0)
        found = solve(K, target > 0, np.full(90, 1e6))
        gradient = naive_logistic.exact_gradient(K, 2.0 * target - 1.0, 1e6, *found[:2])
        assert 1e-8 < gradient < 1e-5
        assert_allclose(found.gradient, gradient, rtol=0.05)
        with pytest.warns(ConvergenceWarning, match="did not converge"):
            KernelLogisticRegression(C=1e6, kernel="precomputed").fit(K, target)

    @pytest.mark.parametrize("C", [1.0, 1e4, 1e6])
    def test_offsets_change_the_bias_only(self, C):
        data, target = overlapping()
        near = solve(data @ data.T, target > 0, np.full(90, C))
        far = solve((data + 100.0) @ (data + 100.0).T, target > 0, np.full(90, C))
        assert_allclose(far.dual / C, near.dual / C, atol=1e-4)
        moved = near.intercept - 100.0 * (near.dual @ data).sum()
        assert_allclose(far.intercept, moved, atol=1e-2)
        assert fsum(far.dual) == 0.0

    def test_starts_and_weights(self):
        """Warm starts from another C, with a kernel that has a large mean."""
        data, target = overlapping()
        weights = np.random.default_rng(1).uniform(0.1, 3.0, 90)
        K = (data + 100.0) @ (data + 100.0).T
        first = solve(K, target > 0, 1e3 * weights)
        again = solve(K, target > 0, 1e3 * weights, start=first[:2])
        assert again.n_iter <= 2 and again.gradient < 1e-8
        found = solve(K, target > 0, 2e3 * weights, start=first[:2])
        cold = solve(K, target > 0, 2e3 * weights)
        assert found.n_iter < cold.n_iter
        assert_allclose(found.dual, cold.dual, atol=2e-4)
        gradient = naive_logistic.exact_gradient(K, 2.0 * target - 1.0, 2e3 * weights, *found[:2])
        assert gradient < 1e-8

    def test_few_samples(self):
        for n in (2, 3, 5):
            K = np.full((n, n), 1e6) + np.eye(n)
            found = solve(K, np.arange(n) > 0, np.full(n, 1e6))
            sign = np.where(np.arange(n) > 0, 1.0, -1.0)
            assert naive_logistic.exact_gradient(K, sign, 1e6, *found[:2]) < 1e-8

    def test_kernels_too_large_for_more_digits(self):
        K = 1e302 * np.array([[1.0, 0.95, 0.9], [0.95, 1.0, 0.92], [0.9, 0.92, 1.0]])
        with np.errstate(all="ignore"):
            found = solve(K, np.array([True, False, True]), np.ones(3))
        assert np.isfinite([*found.dual, found.intercept]).all()

    def test_warns_of_rounding_in_float64(self):
        data, target = overlapping(300)
        model = KernelLogisticRegression(C=1e6, kernel="linear")
        message = r"converged, but its gradient is .* relative to C, above tol=1e-08, if K a"
        with pytest.warns(ConvergenceWarning, match=message):
            model.fit(data + 5.0, target)
        with pytest.warns(ConvergenceWarning, match=message):
            kernel_logistic_path(data + 5.0, target, [1.0, 1e6], kernel="linear")
        K = (data + 5.0) @ (data + 5.0).T
        dual = 1e6 * (target - expit(K @ model.dual_coef_[0] + model.intercept_))
        assert abs(model.dual_coef_[0] - dual).max() > 1e-8 * model.C
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.set_params(C=1e3).fit(data, target)

    def test_leave_one_out_needs_no_more_digits(self):
        data, target = overlapping(300)
        model = KernelLogisticRegression(C=2e5, kernel="linear")
        near = fit_bank(model, data, target, PAIR, MARGIN).leave_one_out(
            data, target, PAIR, np.ones(300)
        )
        far = data + 5.0
        with pytest.warns(ConvergenceWarning, match="converged, but"):
            bank = fit_bank(model, far, target, PAIR, MARGIN)
        assert bank.converged
        assert_allclose(bank.leave_one_out(far, target, PAIR, np.ones(300)), near, atol=1e-3)

    @settings(deadline=None, max_examples=20)
    @given(st.integers(0, 10_000), st.sampled_from([1, 2, 5, 63, 64, 65, 130]), st.floats(0, 20))
    def test_accurate_product(self, seed, n, digits):
        """The error is about one rounding of the result, even if terms cancel."""
        rng = np.random.default_rng(seed)
        K, x = rng.normal(size=(2, n, n))
        K, x = K * 10.0 ** rng.uniform(-digits, digits, (n, n)), x[0]
        expected = np.array([float(row) for row in naive_logistic.exact_product(K, x)])
        size = np.abs(K) @ np.abs(x)
        assert (
            abs(accurate_product(K, x) - expected) <= 3e-16 * abs(expected) + 1e-28 * size
        ).all()
