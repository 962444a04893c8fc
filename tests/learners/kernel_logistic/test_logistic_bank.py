"""KernelLogisticBank: all columns at once, and analytic leave-one-out."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import naive_logistic
import naive_svm
import numpy as np
import pandas as pd
import pytest
from all_pairs import all_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from logistic_problems import KERNELS, cancer, cosines, digits_pair, gram_of, iris_pair
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, codes
from manyclass.banks import (
    CENTRED,
    LOG_ODDS,
    MARGIN,
    PROBABILITY,
    Bank,
    Untrusted,
    fit_bank,
)
from manyclass.banks.svm.gamma import scale_gamma
from manyclass.learners.kernel_logistic.logistic_bank import KernelLogisticBank, left_out_changes
from manyclass.learners.kernel_logistic.newton import solve
from manyclass.learners.kernel_logistic.regression import KernelLogisticRegression

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=4.0, random_state=0)
X_new = make_blobs(40, n_features=3, centers=4, cluster_std=6.0, random_state=1)[0]
TWO = y % 2
PAIR = np.array([[-1], [1]], dtype=np.int8)
PAIRS = codes.one_vs_one(4)
SPARSE = np.array(
    [[1, 1, 0, -1, 1], [-1, 0, 1, -1, 0], [0, -1, 1, 1, 0], [0, -1, -1, 1, -1]], dtype=np.int8
)
CODES = {"one-vs-one": PAIRS, "one-vs-rest": codes.one_vs_rest(4), "sparse": SPARSE}
KINDS = (MARGIN, PROBABILITY, LOG_ODDS, CENTRED)
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
each_code = pytest.mark.parametrize("code", CODES.values(), ids=CODES)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """BLAS threads slow small problems down."""
    with threadpool_limits(1):
        yield


# -- the bank --------------------------------------------------------------------------


def bank_of(model, X=X, y=y, code=PAIRS, kind=MARGIN, **options):
    bank = fit_bank(model, X, y, code, kind, **options)
    assert type(bank) is KernelLogisticBank
    return bank


class TestBank:
    model = KernelLogisticRegression(C=2.0, gamma=0.05)

    @each_code
    @each_kernel
    def test_scores_are_those_of_single_models(self, kernel, code):
        model = KernelLogisticRegression(C=2.0, **kernel)
        expected = naive_svm.scores(model, X, y, code, X_new)
        assert_allclose(bank_of(model, code=code).scores(X_new), expected, rtol=0, atol=1e-8)

    @each_code
    def test_weights_and_rows(self, code):
        weights = np.random.default_rng(0).uniform(0.2, 3.0, 60) * (np.arange(60) % 4 > 0)
        rows = np.random.default_rng(1).permutation(60)[:45]
        kept = rows[weights[rows] > 0]
        expected = naive_svm.scores(self.model, X, y, code, X_new, kept, weights)
        bank = bank_of(self.model, code=code, rows=rows, fit_params={"sample_weight": weights})
        assert_allclose(bank.scores(X_new), expected, rtol=0, atol=1e-8)

    @each_code
    @pytest.mark.parametrize("absent", [(0,), (0, 3), (1, 2, 3)])
    def test_missing_classes(self, code, absent):
        rows = np.flatnonzero(~np.isin(y, absent))
        expected = naive_svm.scores(self.model, X, y, code, X_new, rows)
        bank = bank_of(self.model, code=code, rows=rows)
        assert_allclose(bank.scores(X_new), expected, atol=1e-8)
        assert_array_equal(bank.constant, (expected == expected[0]).all(axis=0))
        weights = np.where(np.isin(y, absent), 0.0, 1.0)
        weighted = bank_of(self.model, code=code, fit_params={"sample_weight": weights})
        assert_allclose(weighted.scores(X_new), expected, atol=1e-8)
        out = weighted.leave_one_out(X, y, code, weights)
        assert_array_equal(out[:, bank.constant] > 0, expected[:1, bank.constant] > [[0]] * 60)

    @pytest.mark.parametrize("code", [PAIRS, SPARSE], ids=["one-vs-one", "sparse"])
    def test_precomputed_callable_and_sparse(self, code):
        expected = bank_of(self.model, code=code).scores(X_new)
        K, K_new = rbf_kernel(X, gamma=0.05), rbf_kernel(X_new, X, gamma=0.05)
        given = bank_of(self.model.__class__(C=2.0, kernel="precomputed"), K, code=code)
        assert_allclose(given.scores(K_new), expected, atol=1e-8)
        called = KernelLogisticRegression(C=2.0, kernel=lambda a, b: rbf_kernel(a, b, gamma=0.05))
        assert_allclose(bank_of(called, code=code).scores(X_new), expected, atol=1e-8)
        thin = bank_of(self.model, sparse.csr_array(X), code=code)
        assert_allclose(thin.scores(sparse.csr_array(X_new)), expected, atol=1e-8)

    @pytest.mark.parametrize("kind", KINDS)
    def test_kinds(self, kind):
        """The scores are those of the single models, also for columns with one side only."""
        rows = np.flatnonzero(y != 3)
        bank = bank_of(self.model, kind=kind, rows=rows)
        expected = Bank(bank.models, kind).scores(50 * X_new)
        assert_allclose(bank.scores(50 * X_new), expected, atol=1e-9)
        assert bank.constant.sum() == 3 and not np.isnan(bank.scores(X_new)).any()
        left_out = bank_of(self.model, kind=kind).leave_one_out(X, y, PAIRS, np.ones(60))
        margins = bank_of(self.model).leave_one_out(X, y, PAIRS, np.ones(60))
        expected = {
            MARGIN: margins,
            LOG_ODDS: margins,
            PROBABILITY: expit(margins),
            CENTRED: expit(margins) - 0.5,
        }
        assert_allclose(left_out, expected[kind], atol=1e-12)

    def test_one_gamma_for_all(self):
        weights = np.arange(60) % 3 + 1.0
        model = KernelLogisticRegression()
        for options in ({}, {"rows": np.arange(0, 60, 2)}):
            bank = bank_of(model, code=SPARSE, fit_params={"sample_weight": weights}, **options)
            assert bank.kernel.gamma == pytest.approx(scale_gamma("scale", X, weights))

    def test_models(self):
        bank = bank_of(self.model, code=SPARSE)
        for column, machine in enumerate(bank.models):
            used, target = naive_svm.column_rows(y, SPARSE[:, column])
            alone = clone(self.model).fit(X[used], target)
            assert_array_equal(machine.classes_, [0, 1])
            assert_array_equal(machine.support_, used)
            assert_allclose(machine.dual_coef_, alone.dual_coef_, atol=1e-9)
            assert_allclose(machine.intercept_, alone.intercept_, atol=1e-8)
            assert_allclose(machine.predict_proba(X_new), alone.predict_proba(X_new), atol=1e-9)
            assert_array_equal(machine.predict(X_new), alone.predict(X_new))

    def test_others_have_their_own_bank(self):
        class Renamed(KernelLogisticRegression):
            pass

        bank = fit_bank(Renamed(gamma=0.05), X, y, PAIRS, PROBABILITY)
        assert type(bank) is Bank
        expected = bank_of(KernelLogisticRegression(gamma=0.05), kind=PROBABILITY).scores(X_new)
        assert_allclose(bank.scores(X_new), expected, atol=1e-8)

    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
    def test_jobs_threads_and_pickles_change_no_bits(self, code):
        models = [
            CoupledClassifier(self.model, code=code, combiner="kl", cv="loo", n_jobs=n).fit(X, y)
            for n in (1, 2)
        ]
        expected = models[0].predict_proba(X_new)
        assert_array_equal(models[1].predict_proba(X_new), expected)
        again = pickle.loads(pickle.dumps(models[0]))
        with ThreadPoolExecutor(2) as pool:
            for answer in pool.map(again.predict_proba, [X_new] * 4):
                assert_array_equal(answer, expected)
        assert_array_equal(
            again.estimators_[0].decision_function(X_new),
            models[0].estimators_[0].decision_function(X_new),
        )

    def test_pairs_never_hold_the_matrix_of_all(self):
        rng = np.random.default_rng(0)
        labels = np.arange(900) % 15
        data = rng.normal(size=(900, 4)) + labels[:, None]
        tracemalloc.start()
        try:
            bank_of(KernelLogisticRegression(), data, labels, codes.one_vs_one(15))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 0.5 * 8 * 900**2

    def test_all_columns_share_one_matrix(self):
        calls = []

        def counted(a, b):
            calls.append(len(a))
            return rbf_kernel(a, b, gamma=0.05)

        bank_of(KernelLogisticRegression(kernel=counted), code=codes.one_vs_rest(4))
        assert calls == [60]

    def test_unfinished_columns(self):
        model = KernelLogisticRegression(C=1e3, max_iter=2)
        with pytest.warns(ConvergenceWarning, match="did not converge") as record:
            bank = bank_of(model)
        assert len(record) == 1
        with pytest.raises(Untrusted, match="before it converged"):
            bank.leave_one_out(X, y, PAIRS, np.ones(60))

    def test_bad_kernels(self):
        with pytest.warns(UserWarning, match="not positive semi-definite") as record:
            bank = bank_of(KernelLogisticRegression(C=100.0, kernel=cosines))
        assert len(record) == 1
        with pytest.raises(Untrusted, match="not positive definite"):
            bank.leave_one_out(X, y, PAIRS, np.ones(60))
        with pytest.raises(ValueError, match="must be square"):
            bank_of(KernelLogisticRegression(kernel="precomputed"))
        with pytest.raises(TypeError, match="[Ss]parse"):
            bank_of(KernelLogisticRegression(kernel="precomputed"), sparse.csr_array(X @ X.T))

    def test_no_reliability(self):
        with pytest.raises(ValueError, match="reliability of KernelLogisticMachine"):
            bank_of(self.model).objective_terms(X, y, PAIRS, np.ones(60))


# -- leave-one-out ---------------------------------------------------------------------


def left_out(model, X, y, code=PAIR, weights=None, **options):
    weights = np.ones(len(y)) if weights is None else weights
    bank = bank_of(model, X, y, code, fit_params={"sample_weight": weights})
    return bank.scores(X), bank.leave_one_out(X, y, code, weights, **options)


class TestLeaveOneOut:
    @settings(deadline=None, max_examples=20)
    @given(st.integers(0, 10_000), st.floats(-3.0, 3.0), st.sampled_from(["rbf", "linear"]))
    def test_is_the_formula(self, seed, power, kernel):
        rng = np.random.default_rng(seed)
        target = np.arange(20) % 2
        data = rng.normal(size=(20, 3)) + target[:, None]
        K = gram_of({"kernel": kernel, "gamma": 0.3}, data)
        bound = 10.0**power * rng.uniform(0.5, 2.0, 20)
        a, b, *_ = solve(K, target > 0, bound)
        expected = naive_logistic.left_out(K, a, b, bound)
        answer = K @ a + b - left_out_changes(K, a, b, bound)
        assert_allclose(answer, expected, rtol=1e-5, atol=1e-5)

    @all_pairs(load=[iris_pair, digits_pair, cancer], C=[0.1, 1.0, 100.0], kernel=["rbf", "linear"])
    def test_is_close_to_leaving_out(self, load, C, kernel):
        data, labels = load()
        model = KernelLogisticRegression(C=C, kernel=kernel, gamma=1.0 / data.shape[1])
        inside, outside = left_out(model, data, labels)
        some = np.arange(0, len(labels), 3)
        expected = naive_svm.leave_one_out(model, data, labels, PAIR[:, 0], some)
        error = np.abs(outside[some, 0] - expected).mean()
        assert np.corrcoef(outside[some, 0], expected)[0, 1] > 0.999
        assert error < 0.3 * np.abs(inside[some, 0] - expected).mean()
        assert (PAIR[labels] * (inside - outside) >= 0).all()

    @each_code
    def test_every_column(self, code):
        data, labels = load_wine(return_X_y=True)
        data, labels = scale(data), np.r_[labels[:-20], np.full(20, 3)]
        weights = np.random.default_rng(0).uniform(0.2, 3.0, len(labels)) * (np.arange(178) % 7 > 0)
        model = KernelLogisticRegression(gamma=0.1)
        inside, outside = left_out(model, data, labels, code, weights)
        unused = (code[labels] == 0) | (weights == 0)[:, None]
        assert_allclose(outside[unused], inside[unused], atol=1e-9)
        rows = np.flatnonzero(weights > 0)
        for column in (0, code.shape[1] - 1):
            some = rows[code[labels[rows], column] != 0][::9]
            others = [rows[rows != s] for s in some]
            expected = [
                naive_svm.column_scores(
                    model, data, labels, code[:, column], data[[s]], rest, weights
                )[0]
                for s, rest in zip(some, others, strict=True)
            ]
            assert_allclose(outside[some, column], expected, atol=0.05)

    def test_some_rows(self):
        model, rows = KernelLogisticRegression(gamma=0.05), np.array([7, 3, 50])
        _, whole = left_out(model, X, y, SPARSE)
        _, part = left_out(model, X, y, SPARSE, rows=rows)
        assert_allclose(part, whole[rows], atol=1e-12)

    def test_precomputed_as_given(self):
        K = rbf_kernel(X, gamma=0.05)
        _, expected = left_out(KernelLogisticRegression(gamma=0.05), X, y, SPARSE)
        _, given_kernel = left_out(KernelLogisticRegression(kernel="precomputed"), K, y, SPARSE)
        assert_allclose(given_kernel, expected, atol=1e-9)

    def test_only_samples_have_no_score(self):
        labels = np.where(np.arange(60) == 5, 2, TWO)
        _, outside = left_out(KernelLogisticRegression(), X, labels, codes.one_vs_one(3))
        assert_array_equal(np.argwhere(np.isnan(outside)), [[5, 1], [5, 2]])

    def test_sure_samples_keep_their_score(self):
        """Far on the correct side W vanishes, and so does the change."""
        data, labels = iris_pair(0)
        data, labels = np.r_[data, 400.0 * data[[0, -1]]], np.r_[labels, labels[[0, -1]]]
        inside, outside = left_out(KernelLogisticRegression(kernel="linear"), data, labels)
        assert np.abs(inside[-2:]).min() > 700
        assert_allclose(outside[-2:], inside[-2:], rtol=1e-9)

    @pytest.mark.parametrize("distance", [3.0, 10.0, 30.0, 300.0])
    def test_samples_far_on_the_wrong_side(self, distance):
        """W vanishes while a is C: the change is C times the variance of f."""
        rng = np.random.default_rng(0)
        data = np.r_[rng.normal(size=40) + 1.0, rng.normal(size=40) - 1.0, distance][:, None]
        positive = np.arange(81) < 40
        K, bound = data @ data.T, np.where(np.arange(81) < 80, 1.0, 1e-6)
        a, b, *_ = solve(K, positive, bound)
        f = K @ a + b
        assert f[-1] > 1.5 * distance
        change = left_out_changes(K, a, b, bound)
        assert ((2 * positive - 1) * change >= 0).all()
        alone = solve(K[:-1, :-1], positive[:-1], bound[:-1])
        expected = f[-1] - K[-1, :-1] @ alone.dual - alone.intercept
        assert_allclose(change[-1], expected, rtol=1e-2)

    def test_not_trusted(self):
        K = np.array([[1.0, 3.0], [3.0, 1.0]])
        with pytest.raises(Untrusted, match="positive definite"):
            left_out_changes(K, np.array([0.1, -0.1]), 0.0, np.full(2, 10.0))
        with pytest.raises(Untrusted, match="positive definite"):
            left_out_changes(-np.eye(20), np.where(np.arange(20) < 10, 0.1, -0.1), 0.0, np.ones(20))


# -- all together ----------------------------------------------------------------------


class TestCoupled:
    def test_leave_one_out_in_place_of_folds(self):
        data, labels = load_digits(return_X_y=True)
        train, test = np.arange(0, 600, 2), np.arange(1, 600, 2)
        losses = {}
        for cv in ("loo", 5, None):
            model = CoupledClassifier(KernelLogisticRegression(C=10.0, gamma=0.001), cv=cv)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model.fit(data[train], labels[train])
            losses[cv] = log_loss(labels[test], model.predict_proba(data[test]))
        # Rows are in the order of the writers: left out one by one, they are easier than new ones.
        assert losses["loo"] < 1.25 * losses[5] < 0.6 * losses[None]
        assert type(model.bank_) is KernelLogisticBank

    @pytest.mark.parametrize("calibration", ["auto", "sigmoid", "isotonic", None])
    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest", SPARSE])
    def test_every_way_to_calibrate(self, code, calibration):
        model = CoupledClassifier(
            KernelLogisticRegression(), code=code, combiner="kl", calibration=calibration, cv="loo"
        )
        p = model.fit(X, y).predict_proba(X_new)
        assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
        assert_array_equal(model.predict(X_new), p.argmax(axis=1))

    def test_two_classes_are_one_model(self):
        names = np.array(["no", "yes"])[TWO]
        model = CoupledClassifier(KernelLogisticRegression()).fit(X, names)
        alone = KernelLogisticRegression().fit(X, names)
        assert_allclose(model.predict_proba(X_new), alone.predict_proba(X_new), atol=1e-7)

    def test_unfinished_columns_go_to_folds(self):
        model = CoupledClassifier(KernelLogisticRegression(C=1e3, max_iter=2), cv="loo")
        with pytest.warns() as record:
            model.fit(X, y)
        messages = [str(warning.message) for warning in record]
        assert any("analytic leave-one-out is not used" in message for message in messages)

    def test_frames_and_decoders(self):
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        model = CoupledClassifier(KernelLogisticRegression(), combiner="max-wins").fit(frame, y)
        assert model.bank_.kind == MARGIN
        assert model.score(frame, y) > 0.5


def test_a_residual_that_rounds_to_nothing():
    """Five copies of one point: the residual is 0 at once, and must not be divided by."""
    point = np.random.default_rng(0).normal(size=(5, 3))[[0, 0, 0, 0, 0]]
    model = KernelLogisticRegression(C=10.0**-2.9861003595583977, gamma=0.3)
    model.fit(point, [0, 1, 0, 1, 0])
    assert_allclose(model.predict_proba(point)[:, 1], 0.4, atol=1e-6)
