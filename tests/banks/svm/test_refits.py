"""Leave-one-out by fitting again, against scikit-learn's SVC fitted without each sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_circles
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, NuSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.banks import MARGIN, fit_bank
from manyclass.banks.limits import Limits
from manyclass.banks.svm.compiled.kernel_rows import kernel_rows
from manyclass.banks.svm.compiled.left_out_scores import score_without, scores_among_near
from manyclass.banks.svm.compiled.span_formula import squared_spans


def brute_force(X, positive, weights, places, **params):
    """Margins of samples by machines without them, one after the other."""
    out = []
    for p in places:
        others = np.delete(np.arange(len(X)), p)
        machine = SVC(**params).fit(X[others], positive[others], weights[others])
        out.append(machine.decision_function(X[p : p + 1])[0])
    return np.array(out)


@pytest.fixture(scope="module")
def circles():
    X, y = make_circles(400, noise=0.1, factor=0.6, random_state=3)
    order = np.random.RandomState(3).permutation(400)
    return X[order], y[order]


def fitted(X, y, **params):
    """A bank of one column that still has its training data, and the sides of the samples."""
    code = np.array([[-1], [1]], dtype=np.int8)
    limits = Limits(left_out_tol=0.0)  # as precise as the fit
    bank = fit_bank(SVC(**params), X, y, code, MARGIN, borrow=True, limits=limits)
    return bank, np.where(y == 1, 1.0, -1.0)


def scores_without(bank, side, weights, C, places, max_iter=10**6):
    problems, m = bank.training.problems, len(side)
    rows = kernel_rows(problems.source, problems.members, np.empty(m * m))
    parts = rows, side, C * weights, problems.a, problems.g
    limits = bank.training.tol, max_iter
    return np.array([score_without(*parts, p, 0.0, *limits)[0] for p in places])


class TestScoreWithout:
    @pytest.mark.parametrize("kept", [True, False])
    def test_brute_force(self, circles, kept):
        X, y = circles[0][:80], circles[1][:80]
        places = np.arange(0, 80, 7)
        params = {"C": 10.0, "gamma": 2.0, "tol": 1e-6, "cache_size": 200 if kept else 1e-3}
        bank, side = fitted(X, y, **params)
        assert (bank.training.problems.source.gram.size > 0) == kept
        found = scores_without(bank, side, np.ones(80), 10.0, places)
        expected = brute_force(X, y == 1, np.ones(80), places, **params)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)

    def test_no_answer_where_the_solver_does_not_converge(self, circles):
        X, y = circles[0][:80], circles[1][:80]
        bank, side = fitted(X, y, C=1e6, gamma=2.0)
        support = np.flatnonzero(bank.training.problems.a)[:3]
        found = scores_without(bank, side, np.ones(80), 1e6, support, max_iter=0)
        assert np.isnan(found).any()


class TestScoresAmongNear:
    """Machines that only samples near the margin may change."""

    @pytest.mark.parametrize("kernel", ["rbf", "linear"])
    def test_as_by_all_samples(self, circles, kernel):
        X, y = circles
        bank, side = fitted(X, y, C=100.0, gamma=2.0, kernel=kernel, tol=1e-7)
        problems = bank.training.problems
        rows = kernel_rows(problems.source, problems.members, np.empty(400 * 400))
        a, places = problems.a, np.flatnonzero(problems.a)
        given = side, np.full(400, 100.0), a, problems.g, problems.intercept[0], places
        # Blocks of seven machines. All limits are given: fewer would compile the function again.
        rests, limits = np.zeros(len(places)), (1e-7, 10**6, 7, 0, 2**23)
        found, steps = scores_among_near(rows, *given, rests, *limits)
        known = ~np.isnan(found)
        if kernel == "linear":  # most samples are near
            assert not known.any()
            return
        assert 0.5 < known.mean() < 1.0  # others come near
        assert (steps > 0).all()
        expected = scores_without(bank, side, np.ones(400), 100.0, places[known])
        np.testing.assert_allclose(found[known], expected, rtol=0, atol=1e-5)
        params = {"C": 100.0, "gamma": 2.0, "tol": 1e-7}
        some = places[known][::10]
        expected = brute_force(X, y == 1, np.ones(400), some, **params)
        np.testing.assert_allclose(found[known][::10], expected, rtol=0, atol=1e-4)

    def test_few_samples_and_little_memory(self, circles):
        X, y = circles
        bank, side = fitted(X, y, C=100.0, gamma=2.0)
        problems = bank.training.problems
        rows = kernel_rows(problems.source, problems.members, np.empty(400 * 400))
        a, places = problems.a, np.flatnonzero(problems.a)
        given = side, np.full(400, 100.0), a, problems.g, problems.intercept[0], places
        given = *given, np.zeros(len(places)), 1e-3, 10**6, 32
        for least, most in ((10**9, 10**9), (0, 1000)):
            assert np.isnan(scores_among_near(rows, *given, least, most)[0]).all()


class TestFolds:
    @pytest.mark.parametrize("C", [0.1, 100.0])
    def test_brute_force(self, circles, C):
        X, y = circles[0][:120], circles[1][:120]
        params = {"C": C, "gamma": 2.0, "tol": 1e-6}
        bank, _ = fitted(X, y, **params)
        numbers = np.arange(120) % 5 - (np.arange(120) == 119)  # one of them in the third fold
        found = bank.scores_by_folds(X, y, np.ones(120), np.array([True]), numbers)[:, 0]
        for number in range(5):
            out = numbers == number
            machine = SVC(**params).fit(X[~out], y[~out])
            np.testing.assert_allclose(found[out], machine.decision_function(X[out]), atol=1e-4)


class TestLeaveOneOut:
    def test_doubtful_samples_are_solved_again_and_no_others(self, circles):
        X, y = circles[0][:200], circles[1][:200]
        params = {"C": 100.0, "gamma": 2.0, "tol": 1e-5}
        bank, side = fitted(X, y, **params)
        code = np.array([[-1], [1]], dtype=np.int8)
        scores = bank.leave_one_out(X, y, code, np.ones(200))[:, 0]
        problems = bank.training.problems
        a, support = problems.a, np.flatnonzero(problems.a)
        rows = kernel_rows(problems.source, support, np.empty(2 * len(support)))
        spans, _, _ = squared_spans(rows, np.abs(a[support]) < 100.0, a[support] > 0)
        change = np.zeros(200)
        change[support] = np.abs(a[support]) * spans
        doubtful = change >= Limits.doubtful
        assert 0 < doubtful.sum() == bank.n_solved[0] < 20
        by_spans = bank.scores(X)[:, 0] - side * change
        np.testing.assert_allclose(scores[~doubtful], by_spans[~doubtful], atol=1e-8)
        places = np.flatnonzero(doubtful)
        expected = brute_force(X, y == 1, np.ones(200), places, **params)
        np.testing.assert_allclose(scores[doubtful], expected, rtol=0, atol=1e-3)
        assert np.abs(by_spans[doubtful] - expected).mean() > 1.0

    @pytest.mark.parametrize("n", [60, 400])  # by all samples, and by those near the margin
    def test_sides_may_be_exchanged(self, circles, n):
        X, y, ones = circles[0][:n], circles[1][:n], np.ones(n)
        code = np.array([[-1], [1]], dtype=np.int8)
        one, other = (
            fit_bank(SVC(C=100.0, gamma=2.0), X, y, c, MARGIN, borrow=True) for c in (code, -code)
        )
        expected = -one.leave_one_out(X, y, code, ones)
        np.testing.assert_array_equal(other.leave_one_out(X, y, -code, ones), expected)
        assert one.n_solved[0] > 0
        folds = np.array([True]), np.arange(n) % 5
        by_folds = -one.scores_by_folds(X, y, ones, *folds)
        np.testing.assert_array_equal(other.scores_by_folds(X, y, ones, *folds), by_folds)

    @pytest.mark.parametrize("C", [100.0, 1000.0])
    def test_log_loss_in_few_dimensions_is_that_of_folds(self, circles, C):
        X, y = circles
        by_loo, by_folds = (
            log_loss(y[200:], CoupledSVC(C=C, cv=cv).fit(X[:200], y[:200]).predict_proba(X[200:]))
            for cv in ("loo", 5)
        )
        assert by_loo < 1.1 * by_folds

    def test_kernels_that_are_given_as_a_matrix(self):
        X, y = load_iris(return_X_y=True)
        K = rbf_kernel(X[:, 2:], gamma=1.0)
        given = CoupledSVC(C=1000.0, kernel="precomputed", tol=1e-6).fit(K, y).predict_proba(K)
        computed = (
            CoupledSVC(C=1000.0, gamma=1.0, tol=1e-6).fit(X[:, 2:], y).predict_proba(X[:, 2:])
        )
        # Rows of iris repeat, so there are several solutions, and spans differ between them.
        np.testing.assert_allclose(given, computed, atol=0.05)

    def test_rows_without_weight_are_as_if_not_there(self, circles):
        X, y = circles[0][:150], circles[1][:150]
        weights = np.where(np.arange(150) < 120, 1.0, 0.0)
        weighted = CoupledSVC(C=100.0, gamma=2.0).fit(X, y, weights)
        fewer = CoupledSVC(C=100.0, gamma=2.0).fit(X[:120], y[:120])
        np.testing.assert_allclose(weighted.predict_proba(X), fewer.predict_proba(X), atol=1e-6)

    def test_machines_of_libsvm_are_fitted_in_folds(self, circles):
        X, y = circles[0][:100], circles[1][:100]
        model = CoupledClassifier(NuSVC(nu=0.1, gamma=2.0), cv="loo")
        with pytest.warns(UserWarning, match="leave-one-out is not used: LIBSVM"):
            model.fit(X, y)
        by_folds = CoupledClassifier(NuSVC(nu=0.1, gamma=2.0), cv=5).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), by_folds.predict_proba(X))
