"""Kernel logistic regression: minimum, path, and invalid input."""

from __future__ import annotations

import pickle
import warnings
from itertools import product

import naive_logistic
import numpy as np
import pandas as pd
import pytest
from all_pairs import checks_in_turn
from hypothesis import given, settings
from hypothesis import strategies as st
from logistic_problems import KERNELS, cancer, cosines, gram_of, iris_pair
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, make_blobs, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.banks.svm.gamma import scale_gamma
from manyclass.learners.kernel_logistic.newton import solve
from manyclass.learners.kernel_logistic.regression import (
    KernelLogisticRegression,
    kernel_logistic_path,
)
from manyclass.learners.kernel_logistic.steps import Settings

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=4.0, random_state=0)
X_new = make_blobs(40, n_features=3, centers=4, cluster_std=6.0, random_state=1)[0]
TWO = y % 2
PAIRS = codes.one_vs_one(4)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads slow small problems down."""
    with threadpool_limits(1):
        yield


ITERATIVE = Settings(n_direct=0)  # no direct factorisation, even for few samples


def laplacian(a, b):
    return np.exp(-0.2 * np.abs(a[:, None] - b).sum(axis=2))


def gradient_of(model, K, target, weights=None):
    weights = np.ones(len(target)) if weights is None else weights
    a, b = model.dual_coef_[0], model.intercept_[0]
    return naive_logistic.gradient(K, 2.0 * target - 1.0, model.C * weights, a, b)


# -- against scipy ---------------------------------------------------------------------


class TestScipy:
    @each_kernel
    @pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_minimum(self, weighted, C, kernel):
        weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y)) if weighted else np.ones(60)
        K = gram_of(kernel, X)
        a, b = naive_logistic.minimum(K, 2.0 * TWO - 1.0, C * weights)
        model = KernelLogisticRegression(C=C, **kernel).fit(X, TWO, weights)
        assert_allclose(model.dual_coef_[0] / C, a / C, atol=1e-7)
        assert_allclose(model.intercept_, b, rtol=1e-5, atol=1e-5)
        expected = gram_of(kernel, X_new, X) @ a + b
        assert_allclose(model.decision_function(X_new), expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
    def test_landmarks(self, C):
        K = gram_of(KERNELS["rbf"], X)
        a, b = naive_logistic.minimum(K, 2.0 * TWO - 1.0, np.full(60, C))
        found = solve(K, TWO > 0, np.full(60, C), settings=ITERATIVE)
        assert_allclose(found.dual / C, a / C, atol=1e-7)
        assert_allclose(found.intercept, b, atol=1e-6)

    @pytest.mark.parametrize("C", [1e-2, 1.0, 1e2])
    def test_linear_kernel_is_logistic_regression(self, C):
        model = KernelLogisticRegression(C=C, kernel="linear").fit(X, TWO)
        peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, TWO)
        assert_allclose(model.predict_proba(X_new), peer.predict_proba(X_new), atol=1e-5)

    def test_callable_and_precomputed(self):
        K, K_new = laplacian(X, X), laplacian(X_new, X)
        by_hand = KernelLogisticRegression(kernel="precomputed").fit(K, TWO)
        model = KernelLogisticRegression(kernel=laplacian).fit(X, TWO)
        assert gradient_of(model, K, TWO) < 1e-8
        assert_allclose(by_hand.dual_coef_, model.dual_coef_, atol=1e-12)
        f = model.decision_function(X_new)
        assert_allclose(by_hand.decision_function(K_new), f, atol=1e-12)
        assert by_hand.support_vectors_.size == 0


# -- the stationary point --------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10_000),
    st.integers(2, 30),
    st.floats(-4.0, 6.0),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.sampled_from(["overlapping", "separable", "copies", "constant"]),
)
def test_gradient_vanishes(seed, n, power, kernel, how):
    """It is below 1e-8 of C for C from 1e-4 to 1e6, for overlapping and separable classes."""
    rng = np.random.default_rng(seed)
    target = np.arange(n) % 2
    data = rng.normal(size=(n, 3))
    if how == "separable":
        data[:, 0] += 8.0 * target
    elif how == "copies":
        data = data[rng.integers(0, max(1, n // 3), n)]
    elif how == "constant":
        data[:, 1:] = 1.0
    model = KernelLogisticRegression(C=10.0**power, kernel=kernel, gamma=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "kernel logistic regression converged, but")
        model.fit(data, target)
    K = gram_of({"kernel": kernel, "gamma": 0.3}, data)
    assert gradient_of(model, K, target) < 1e-8
    assert abs(model.dual_coef_.sum()) < 1e-8 * model.C
    assert model.n_iter_ < 60


@pytest.mark.parametrize(
    ("kernel", "C"), [*product(["rbf", "poly", "linear"], [0.01, 1.0, 10.0]), ("rbf", 100.0)]
)
@pytest.mark.parametrize("n", [60, 400, 1200])
def test_gradient_in_the_coefficients_vanishes(n, kernel, C):
    """K r, the gradient of a general-purpose optimiser, is larger than r.

    For C = 100 and unbounded kernels it consists of rounding errors of K a: 1e-7 if linear.
    """
    data, target = make_classification(n, 10, n_informative=5, flip_y=0.1, random_state=n)
    model = KernelLogisticRegression(C=C, kernel=kernel).fit(data, target)
    K = gram_of({"kernel": kernel, "gamma": getattr(model.kernel_, "gamma", 1.0)}, data)
    p = expit(K @ model.dual_coef_[0] + model.intercept_[0])
    assert np.abs(K @ (model.dual_coef_[0] - C * (target - p))).max() < 1e-8


@pytest.mark.parametrize("C", [1e2, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("n", [150, 400])
def test_separable_classes_leave_nothing_to_gain(n, kernel, C):
    """Coefficients are far below C, so r must be small relative to them."""
    data, target = make_classification(n, 6, class_sep=5.0, flip_y=0.0, random_state=1)
    options = {"C": C, "kernel": kernel, "gamma": 0.3, "coef0": 1.0}
    model = KernelLogisticRegression(**options).fit(data, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        best = KernelLogisticRegression(**options, tol=1e-14).fit(data, target)
    K, sign = gram_of(options, data), 2.0 * target - 1.0
    f = K @ model.dual_coef_[0] + model.intercept_[0]
    assert np.abs(model.dual_coef_).max() < 0.1 * C
    assert np.abs(K @ (model.dual_coef_[0] - C * sign * expit(-sign * f))).max() < 2e-8
    margins = best.decision_function(data)
    assert_allclose(model.decision_function(data), margins, atol=1e-7 * np.abs(margins).max())


def test_weights_of_all_sizes():
    """Light samples are fitted as accurately as heavy ones, which dominate the norm of r."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        data, target = rng.normal(size=(40, 10)), rng.integers(0, 2, 40)
        weights = 10.0 ** rng.uniform(-6.0, 6.0, 40)
        options = {"C": 1e6, "gamma": 0.1}
        model = KernelLogisticRegression(**options).fit(data, target, weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            best = KernelLogisticRegression(**options, tol=1e-18).fit(data, target, weights)
        new = rng.normal(size=(200, 10))
        assert_allclose(model.predict_proba(new), best.predict_proba(new), atol=1e-7)


def test_from_small_c_to_large():
    """The gradient rises before it falls."""
    rng = np.random.default_rng(10)
    data = rng.normal(size=(60, 4))
    target, weights = data[:, 0] > 0, 10.0 ** rng.uniform(-3.0, 3.0, 60)
    warm = KernelLogisticRegression(C=1e-4, kernel="poly", coef0=1.0, warm_start=True)
    warm.fit(data, target, weights).set_params(C=1e6).fit(data, target, weights)
    cold = KernelLogisticRegression(C=1e6, kernel="poly", coef0=1.0).fit(data, target, weights)
    margins = cold.decision_function(data)
    assert_allclose(warm.decision_function(data), margins, atol=1e-9 * np.abs(margins).max())


@pytest.mark.parametrize("n", [40, 800])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "linear"])
def test_features_that_are_all_the_same(kernel, n):
    """The computed variance of copies of 3.7 is not 0, but gamma must not be 1e30."""
    model = KernelLogisticRegression(kernel=kernel).fit(np.full((n, 5), 3.7), np.arange(n) % 2)
    assert_allclose(model.predict_proba(np.full((1, 5), 3.7)), 0.5, atol=1e-7)
    assert model.n_iter_ < 10


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10_000), st.floats(-3.0, 4.0), st.sampled_from(["rbf", "linear", "poly"]))
def test_landmarks_do_not_change_the_solution(seed, power, kernel):
    rng = np.random.default_rng(seed)
    target = rng.integers(0, 2, 80)
    K = gram_of({"kernel": kernel, "gamma": 0.3}, rng.normal(size=(80, 3)) + target[:, None])
    bound = 10.0**power * rng.uniform(0.5, 2.0, 80)
    expected = solve(K, target > 0, bound)
    iterative = Settings(n_direct=0, max_products=1.0)
    direct_at_last = Settings(n_direct=0, max_products=0.0, landmarks=0.1)
    for way in (iterative, direct_at_last):
        other = solve(K, target > 0, bound, settings=way)
        assert other.gradient < 1e-8
        assert_allclose(K @ other.dual, K @ expected.dual, atol=1e-5 * (1 + 10**power / 1e2))


def test_two_samples_by_hand():
    """f = +-a / 2 (K_11 - 2 K_12 + K_22) + b by symmetry, and a = C / (1 + exp(f))."""
    K = np.array([[1.0, 0.5], [0.5, 1.0]])
    a, b, n_iter, gradient, *_ = solve(K, np.array([True, False]), np.full(2, 3.0))
    assert_allclose(a[0], 3.0 * expit(-0.5 * a[0]), rtol=1e-12)
    assert_allclose([a[1], b], [-a[0], 0.0], atol=1e-12)
    assert gradient < 1e-12 and n_iter < 10


@pytest.mark.parametrize("C", [1e-4, 1.0, 1e6])
@pytest.mark.filterwarnings("ignore:kernel logistic regression converged, but")
def test_nothing_to_learn_from(C):
    """Constant features: the bias is the log-odds of the classes, and a is not zero."""
    model = KernelLogisticRegression(C=C, kernel="linear").fit(np.ones((30, 2)), np.arange(30) < 10)
    assert_allclose(model.predict_proba(np.ones((1, 2))), [[2 / 3, 1 / 3]], atol=1e-8)
    assert_allclose(model.dual_coef_[0, [0, -1]] / C, [2 / 3, -1 / 3], atol=1e-8)


def test_separable_classes_stay_finite():
    data, labels = iris_pair(0)
    norms = []
    for C in (1.0, 1e2, 1e4, 1e6):
        model = KernelLogisticRegression(C=C, kernel="linear").fit(data, labels)
        assert model.score(data, labels) == 1.0
        norms.append(np.linalg.norm(model.dual_coef_[0] @ model.support_vectors_))
    assert np.isfinite(norms).all() and (np.diff(norms) > 0).all() and norms[-1] < 100


def test_more_samples_than_a_direct_factorisation_takes():
    data, labels = load_breast_cancer(return_X_y=True)
    data = scale(data)
    for C in (1e-2, 1.0, 1e2, 1e4):
        model = KernelLogisticRegression(C=C, gamma=0.03).fit(data, labels)
        assert gradient_of(model, rbf_kernel(data, gamma=0.03), labels) < 1e-8


# -- sample weights --------------------------------------------------------------------


@each_kernel
def test_weight_zero_is_no_sample(kernel):
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    model = KernelLogisticRegression(**kernel).fit(X, TWO, weights)
    expected = KernelLogisticRegression(**kernel).fit(X[weights > 0], TWO[weights > 0])
    assert_array_equal(model.support_, np.flatnonzero(weights))
    assert_allclose(model.decision_function(X_new), expected.decision_function(X_new), atol=1e-9)


def test_weight_zero_of_a_precomputed_kernel():
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    K, K_new = rbf_kernel(X, gamma=0.05), rbf_kernel(X_new, X, gamma=0.05)
    model = KernelLogisticRegression(kernel="precomputed").fit(K, TWO, weights)
    expected = KernelLogisticRegression(gamma=0.05).fit(X, TWO, weights)
    assert_allclose(model.decision_function(K_new), expected.decision_function(X_new), atol=1e-9)


@pytest.mark.parametrize("gamma", ["scale", 0.05])
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
def test_weights_are_copies(as_type, gamma):
    weights = np.random.default_rng(0).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    model = KernelLogisticRegression(gamma=gamma).fit(as_type(X), TWO, weights)
    expected = KernelLogisticRegression(gamma=gamma).fit(as_type(X[rows]), TWO[rows])
    assert_allclose(model.decision_function(X_new), expected.decision_function(X_new), atol=1e-8)


def test_weights_multiply_C():
    model = KernelLogisticRegression(C=2.0, gamma=0.05).fit(X, TWO, np.full(60, 1e-3))
    expected = KernelLogisticRegression(C=2e-3, gamma=0.05).fit(X, TWO)
    assert_allclose(model.dual_coef_, expected.dual_coef_, rtol=1e-8)


def test_scale_of_far_and_constant_rows():
    weights = np.array([1.0, 2.0, 0.0])
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [9.0, 9.0]]) + 1e6
    expected = scale_gamma("scale", rows[[0, 1, 1]], np.ones(3))
    assert scale_gamma("scale", rows, weights) == pytest.approx(expected)
    assert scale_gamma("scale", np.ones((3, 2)), weights) == 1.0
    assert scale_gamma("auto", rows, weights) == 0.5


# -- warm starts and the path ----------------------------------------------------------


def test_warm_start():
    model = KernelLogisticRegression(C=100.0, gamma=0.05, warm_start=True).fit(X, TWO)
    steps, f = model.n_iter_, model.decision_function(X_new)
    assert model.fit(X, TWO).n_iter_ == 1 < steps
    assert_allclose(model.decision_function(X_new), f, atol=1e-9)
    model.set_params(C=120.0).fit(X, TWO)
    cold = clone(model).fit(X, TWO)
    assert model.n_iter_ < cold.n_iter_
    assert_allclose(model.decision_function(X_new), cold.decision_function(X_new), atol=1e-8)


def test_warm_start_from_elsewhere():
    """With other labels, other samples or another C, the result is that of a cold start."""
    model = KernelLogisticRegression(C=1e6, gamma=0.05, warm_start=True).fit(X, TWO)
    for data, target, C in ((X, 1 - TWO, 1e-4), (X[:40], TWO[:40], 1.0), (X, y > 1, 1e4)):
        model.set_params(C=C).fit(data, target)
        cold = clone(model).fit(data, target)
        assert_allclose(model.decision_function(X), cold.decision_function(X), atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_path(weighted):
    weights = np.arange(60) % 3 * 1.0 if weighted else None
    Cs = [10.0, 0.01, 1000.0, 1.0]
    names = np.array(["no", "yes"])[TWO]
    path = kernel_logistic_path(X, names, Cs, gamma="scale", sample_weight=weights)
    assert_array_equal(path.Cs, Cs)
    for m, C in enumerate(Cs):
        model = KernelLogisticRegression(C=C).fit(X, names, weights)
        expected = np.zeros(60)
        expected[model.support_] = model.dual_coef_[0]
        assert_allclose(path.dual_coef[m] / C, expected / C, atol=1e-9)
        assert_allclose(path.intercept[m], model.intercept_[0], atol=1e-7)
    assert path.n_iter.min() >= 1


def test_path_saves_steps():
    Cs = np.logspace(-1, 5, 25)
    path = kernel_logistic_path(*cancer(), Cs)
    alone = [KernelLogisticRegression(C=C).fit(*cancer()).n_iter_ for C in Cs]
    assert path.n_iter.sum() < 0.7 * sum(alone)


@pytest.mark.parametrize("Cs", [[], [1.0, 0.0], [np.nan], [[1.0]], [np.inf]])
def test_path_of_nothing(Cs):
    with pytest.raises(ValueError, match="Cs must be a list of positive numbers"):
        kernel_logistic_path(X, TWO, Cs)


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "C must be a positive number, got 0.0"),
        ({"C": "1"}, "C must be a positive number, got '1'"),
        ({"C": np.inf}, "C must be a positive number, got inf"),
        ({"kernel": "cosine"}, "kernel must be in .* or callable, got 'cosine'"),
        ({"gamma": "big"}, "gamma must be 'scale', 'auto' or a number of at least 0, got 'big'"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"degree": -1}, "degree must be a number of at least 0, got -1"),
        ({"coef0": None}, "coef0 must be a number, got None"),
        ({"tol": -1e-8}, "tol must be a positive number"),
        ({"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        ({"max_iter": 1.5}, "max_iter must be a positive integer, got 1.5"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        KernelLogisticRegression(**params).fit(X, TWO)
    with pytest.raises(ValueError, match=message):
        fit_bank(KernelLogisticRegression(**params), X, y, PAIRS, MARGIN)


@pytest.mark.parametrize("name", ["C", "gamma", "degree", "coef0", "tol", "max_iter"])
@pytest.mark.parametrize("value", [True, np.True_])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bools_are_accepted_where_svc_accepts_them(name, value):
    def accepted(cls):
        try:
            cls(**{name: value}).fit(X, TWO)
        except ValueError:
            return False
        return True

    assert accepted(KernelLogisticRegression) == accepted(SVC)


def test_only_two_classes():
    with pytest.raises(ValueError, match=r"4 classes.*CoupledClassifier\(KernelLogisticReg"):
        KernelLogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="only one class, 0.0: .*samples of two classes"):
        KernelLogisticRegression().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="only one class with samples of positive weight, 1:"):
        KernelLogisticRegression().fit(X, TWO, TWO)
    with pytest.raises(ValueError, match="at least one non-zero number|no class with samples"):
        KernelLogisticRegression().fit(X, TWO, np.zeros(60))
    with pytest.raises(ValueError, match="Negative values"):
        KernelLogisticRegression().fit(X, TWO, -np.ones(60))
    with pytest.raises(ValueError, match="Unknown label type"):
        KernelLogisticRegression().fit(X, X[:, 0])


def test_a_failed_fit_leaves_the_model_alone():
    model = KernelLogisticRegression().fit(X, TWO)
    expected = model.decision_function(X_new)
    with pytest.raises(ValueError, match="Only binary"):
        model.fit(X, y)
    assert_array_equal(model.decision_function(X_new), expected)


@pytest.mark.parametrize("seed", range(10))
def test_raw_features_are_no_reason_to_refuse(seed):
    rng = np.random.default_rng(seed)
    Z = np.c_[rng.uniform(18, 80, 100), rng.normal(4e4, 1.5e4, 100)]  # age and income
    t = Z[:, 0] + 10 * rng.normal(size=100) > 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert KernelLogisticRegression(kernel="linear").fit(Z, t).score(Z, t) > 0.75


@pytest.mark.parametrize("n", [30, 240, 500])
@pytest.mark.parametrize("C", [1.0, 1e4, 1e6])
@pytest.mark.parametrize(
    ("centre", "scale"), [(0, 1e3), (1e4, 1), (1e5, 1), ([2e3, 5e4, 0], [5, 2e4, 1])]
)
def test_negative_eigenvalues_by_rounding(n, C, centre, scale):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 3))
    t = Z[:, 0] + Z[:, 1] + rng.normal(size=n) > 0
    Z = centre + scale * Z
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert KernelLogisticRegression(C=C, kernel="linear").fit(Z, t).score(Z, t) > 0.7


@pytest.mark.parametrize("n", [30, 240, 500])
def test_warns_if_float64_has_too_few_digits(n):
    rng = np.random.default_rng(0)
    Z = 1e8 * rng.normal(size=(n, 5))
    t = Z[:, 0] + Z[:, 1] + 1e8 * rng.normal(size=n) > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.warns(ConvergenceWarning, match="did not converge"):
            KernelLogisticRegression(C=1e4, kernel="linear").fit(Z, t)


@pytest.mark.parametrize("size", [1.0, 1e8])
def test_eigenvalues_that_rounding_does_not_explain(size):
    points = np.random.default_rng(0).normal(size=(40, 3))
    K = size * (points @ points.T - 1e-6 * np.eye(40))
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        KernelLogisticRegression(C=1e8, kernel="precomputed", tol=1e-3).fit(K, TWO[:40])


@pytest.mark.parametrize("params", [{"kernel": cosines}, {"kernel": "sigmoid", "gamma": 1.0}])
def test_negative_eigenvalues_are_set_to_zero(params):
    """Margins are those of the positive part, for new samples with the given kernel."""
    model = KernelLogisticRegression(**params)
    K = cosines(X, X) if params["kernel"] is cosines else np.tanh(X @ X.T)
    values, vectors = np.linalg.eigh(K)
    part = (vectors * np.maximum(values, 0.0)) @ vectors.T
    said = f"not positive semi-definite.*up to {-values[0] / values[-1]:.2g} of the largest"
    for C in (1.0, 100.0):
        with pytest.warns(UserWarning, match=said):
            model.set_params(C=C).fit(X, TWO)
        plain = KernelLogisticRegression(C=C, kernel="precomputed").fit(part, TWO)
        assert_allclose(model.decision_function(X), plain.decision_function(part), atol=1e-6)
        within = vectors[:, values > 0] @ (vectors[:, values > 0].T @ plain.dual_coef_[0])
        assert_allclose(model.dual_coef_[0], within, atol=1e-6 * C)
        found = solve(K, TWO > 0, np.full(60, C), settings=ITERATIVE)
        assert found.negative > 0
        assert_allclose(K @ found.dual + found.intercept, model.decision_function(X), atol=1e-6)
        assert_allclose(found.dual, within, atol=1e-6 * C)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        path = kernel_logistic_path(X, TWO, [1.0, 100.0], **params)
    assert_allclose(path.dual_coef[1], model.dual_coef_[0], atol=1e-4)


def test_a_kernel_without_positive_eigenvalues_gives_the_prior():
    with pytest.warns(UserWarning, match="up to 1 of the largest"):
        model = KernelLogisticRegression(kernel="precomputed", C=10.0).fit(-X @ X.T, TWO)
    assert_array_equal(model.dual_coef_, 0.0)
    assert_allclose(expit(model.intercept_), np.mean(TWO == model.classes_[1]))


def test_leave_one_out_is_not_for_indefinite_kernels():
    model = CoupledClassifier(KernelLogisticRegression(C=100.0, kernel=cosines), cv="loo")
    with pytest.warns(UserWarning) as record:
        model.fit(X, y)
    assert "analytic leave-one-out is not used: the kernel is not positive definite" in " ".join(
        str(warning.message) for warning in record
    )
    assert np.isfinite(model.predict_proba(X)).all()


def test_unusable_kernels():
    with pytest.raises(ValueError, match="has shape \\(60, 3\\): it must be square"):
        KernelLogisticRegression(kernel="precomputed").fit(X, TWO)
    with pytest.raises(ValueError, match="has shape \\(60, 3\\)"):
        KernelLogisticRegression(kernel=lambda a, b: a).fit(X, TWO)
    with pytest.raises(ValueError, match="not symmetric, entries differ by up to"):
        KernelLogisticRegression(kernel=lambda a, b: a @ b.T + a[:, :1]).fit(X, TWO)
    with pytest.raises(ValueError, match="not finite: scale the features"):
        KernelLogisticRegression(kernel=lambda a, b: np.full((60, 60), np.nan)).fit(X, TWO)
    with pytest.raises(TypeError, match="[Ss]parse"):
        KernelLogisticRegression(kernel="precomputed").fit(sparse.csr_array(X @ X.T), TWO)


def test_too_few_steps():
    with pytest.warns(ConvergenceWarning, match="Scale the features, lower C, or raise max_iter"):
        model = KernelLogisticRegression(C=1e4, max_iter=2).fit(X, TWO)
    assert model.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        kernel_logistic_path(X, TWO, [1.0, 1e4], max_iter=2)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        KernelLogisticRegression().predict(X)


# -- among others ----------------------------------------------------------------------


def test_predictions_agree():
    names = np.array(["no", "yes"])[TWO]
    model = KernelLogisticRegression(C=1e5, gamma=0.05).fit(pd.DataFrame(X).values, names)
    f, p = model.decision_function(X_new), model.predict_proba(X_new)
    assert_allclose(p, np.column_stack([expit(-f), expit(f)]), rtol=1e-14)
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-15)
    assert_allclose(np.exp(model.predict_log_proba(X_new)), p, rtol=1e-10)
    assert_array_equal(model.predict(X_new), model.classes_[p.argmax(axis=1)])


def test_logarithms_of_tiny_probabilities():
    """Far from the boundary the probability itself underflows to 0."""
    model = KernelLogisticRegression(kernel="linear", C=100.0).fit(X, TWO)
    logs = model.predict_log_proba(1e6 * X_new[:3])
    assert np.isfinite(logs).all() and logs.min() < -800


@each_kernel
def test_sparse_as_dense(kernel):
    dense = KernelLogisticRegression(**kernel).fit(X, TWO)
    thin = KernelLogisticRegression(**kernel).fit(sparse.csc_array(X), TWO)
    f = dense.decision_function(X_new)
    for model, data in (
        (thin, X_new),
        (thin, sparse.coo_array(X_new)),
        (dense, sparse.csr_matrix(X_new)),
    ):
        assert_allclose(model.decision_function(data), f, atol=1e-7)


def test_kinds_of_arrays():
    expected = KernelLogisticRegression().fit(X, TWO)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = KernelLogisticRegression().fit(frame, pd.Series(TWO))
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    assert_array_equal(model.decision_function(frame), expected.decision_function(X))
    locked, target = X.copy(), TWO.copy()
    locked.flags.writeable = target.flags.writeable = False
    assert_array_equal(KernelLogisticRegression().fit(locked, target).dual_coef_, model.dual_coef_)
    single = KernelLogisticRegression().fit(X.astype(np.float32), TWO)
    assert single.dual_coef_.dtype == np.float64
    assert_allclose(single.decision_function(X), expected.decision_function(X), atol=1e-4)
    assert_allclose(
        KernelLogisticRegression().fit(X.tolist(), TWO.tolist()).dual_coef_, model.dual_coef_
    )


def test_later_changes_of_the_data_do_not_matter():
    data = X.copy()
    model = KernelLogisticRegression().fit(data, TWO)
    expected = model.decision_function(X_new)
    data[:] = 0.0
    assert_array_equal(model.decision_function(X_new), expected)


def test_blocks_of_rows():
    model = KernelLogisticRegression().fit(X, TWO)
    expected = model.decision_function(X_new)
    assert_allclose(model._log_odds(X_new, block_entries=7 * 60), expected, atol=1e-12)
    assert_allclose(model.decision_function(X_new[:1]), expected[:1], atol=1e-12)


def test_pickled_cloned_and_searched():
    model = KernelLogisticRegression(C=3.0).fit(X, TWO)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.decision_function(X_new), model.decision_function(X_new))
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(KernelLogisticRegression(), {"C": [0.1, 10.0]}, scoring="neg_log_loss")
    assert search.fit(X, TWO).best_params_["C"] in (0.1, 10.0)


def of_scikit_learn(estimator):
    """Return the checks that SVC fails as well, and why."""
    if getattr(estimator, "kernel", None) != "precomputed":
        return {}
    return {"check_decision_proba_consistency": "it gives a matrix that is not square"}


@checks_in_turn(
    [KernelLogisticRegression()],
    [KernelLogisticRegression(kernel="precomputed")],
    [
        KernelLogisticRegression(kernel="linear"),
        KernelLogisticRegression(kernel="poly", degree=2, coef0=1.0),
        KernelLogisticRegression(kernel="sigmoid"),
        CoupledClassifier(KernelLogisticRegression()),
    ],
    expected_failed_checks=of_scikit_learn,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive semi-definite")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
