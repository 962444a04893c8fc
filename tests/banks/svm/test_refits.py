"""Leave-one-out by fitting again, against scikit-learn's SVC fitted without each sample."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_circles
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, NuSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.banks import Untrusted
from manyclass.banks.limits import Limits
from manyclass.banks.svm.leave_one_out import DOUBTFUL, is_affordable, scores_without


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


class NeverRefits(CoupledSVC):
    def _bank_options(self):
        return {**super()._bank_options(), "limits": Limits(refits=0)}


class TestScoresWithout:
    @pytest.mark.parametrize("uneven", [False, True])
    def test_brute_force(self, circles, uneven):
        X, y = circles[0][:80], circles[1][:80] == 1
        weights = np.where(np.arange(80) % 3 == 0, 2.0, 1.0) if uneven else np.ones(80)
        places = np.arange(0, 80, 7)
        found = scores_without(rbf_kernel(X, gamma=2.0), y, weights, 10.0, places, 1000)
        expected = brute_force(X, y, weights, places, C=10.0, gamma=2.0)
        np.testing.assert_allclose(found, expected, rtol=0, atol=5e-3)  # the solver's tolerance

    def test_the_only_sample_of_a_side_is_not_left_out(self):
        K, positive = np.eye(4), np.array([True, False, False, False])
        found = scores_without(K, positive, np.ones(4), 1.0, np.array([0, 1]), 10)
        assert np.isnan(found).tolist() == [True, False]

    def test_no_answer_where_the_solver_does_not_converge(self, circles):
        X, y = circles
        K = rbf_kernel(X[:80], gamma=2.0)
        with np.testing.assert_no_warnings():
            target, ones = y[:80] == 1, np.ones(80)
            found = scores_without(K, target, ones, 1e6, np.arange(3), -79, patience=1)
        assert np.isnan(found).all()


class TestIsAffordable:
    def test_few_samples_of_small_machines_are(self):
        numbers = np.array([3, 0]), np.array([100, 10**6]), np.array([500, 10**9])
        assert is_affordable(*numbers, Limits())

    @pytest.mark.parametrize(
        ("doubtful", "samples", "steps"), [(10, 3000, 10), (10, 1000, 10**6), (51, 10, 10)]
    )
    def test_more_are_not(self, doubtful, samples, steps):
        numbers = (np.array([x]) for x in (doubtful, samples, steps))
        assert not is_affordable(*numbers, Limits())


class TestLeaveOneOut:
    def test_doubtful_samples_are_fitted_again_and_no_others(self, circles):
        X, y = circles[0][:200], circles[1][:200]
        model = CoupledSVC(C=100.0, gamma=2.0, tol=1e-5).fit(X, y)
        scores = model.bank_.leave_one_out(X, y, model.code_, np.ones(200))[:, 0]
        model.bank_.limits = Limits(refits=0)
        with pytest.raises(Untrusted, match="how far scores would change") as unaffordable:
            model.bank_.leave_one_out(X, y, model.code_, np.ones(200))
        spans = unaffordable.value.scores[:, 0]
        assert unaffordable.value.columns.all()
        doubtful = np.abs(spans - model.bank_.scores(X)[:, 0]) >= DOUBTFUL
        assert 0 < doubtful.sum() < 20
        np.testing.assert_array_equal(scores[~doubtful], spans[~doubtful])
        positive = model.code_[y, 0] > 0
        params = {"C": 100.0, "gamma": 2.0}
        places = np.flatnonzero(doubtful)
        expected = brute_force(X, positive, np.ones(200), places, **params)
        np.testing.assert_allclose(scores[doubtful], expected, rtol=0, atol=5e-3)
        wrong = np.abs(spans[doubtful] - expected)
        assert wrong.mean() > 1.0

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
        given = CoupledSVC(C=1000.0, kernel="precomputed").fit(K, y).predict_proba(K)
        computed = CoupledSVC(C=1000.0, gamma=1.0).fit(X[:, 2:], y).predict_proba(X[:, 2:])
        np.testing.assert_allclose(given, computed, atol=1e-3)

    def test_rows_without_weight_are_as_if_not_there(self, circles):
        X, y = circles[0][:150], circles[1][:150]
        weights = np.where(np.arange(150) < 120, 1.0, 0.0)
        weighted = CoupledSVC(C=100.0, gamma=2.0).fit(X, y, weights)
        fewer = CoupledSVC(C=100.0, gamma=2.0).fit(X[:120], y[:120])
        np.testing.assert_allclose(weighted.predict_proba(X), fewer.predict_proba(X), atol=1e-6)

    def test_not_without_a_known_bound(self, circles):
        X, y = circles[0][:100], circles[1][:100]
        model = CoupledClassifier(NuSVC(nu=0.1, gamma=2.0), cv="loo")
        with pytest.warns(UserWarning, match="leave-one-out is not used in 1 of 1 columns"):
            model.fit(X, y)
        by_folds = CoupledClassifier(NuSVC(nu=0.1, gamma=2.0), cv=5).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), by_folds.predict_proba(X))

    def test_folds_where_it_would_take_long(self, circles):
        X, y = circles[0][:100], circles[1][:100]
        with pytest.warns(UserWarning, match="the formula does not tell"):
            model = NeverRefits(C=100.0).fit(X, y)
        by_folds = CoupledSVC(C=100.0, cv=5).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), by_folds.predict_proba(X))
