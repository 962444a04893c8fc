"""Logistic regression by Newton's method, against scikit-learn's minimum."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from manyclass import codes
from manyclass.banks import PROBABILITY, LinearBank, fit_bank
from manyclass.banks.logistic import fit_logistic, is_fitted_by_newton, newton_logistic

rng = np.random.default_rng(0)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("n", "d"), [(6, 3), (30, 40), (200, 5), (500, 1)])
@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_reaches_the_minimum(n, d, C, noise):
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, d) + rng.normal(size=d)
    t = (X[:, 0] + noise * rng.normal(size=n) > np.median(X[:, 0])).astype(np.int64)
    ours = fit_logistic(LogisticRegression(C=C), X, t)
    plain = LogisticRegression(C=C, max_iter=1000).fit(X, t)

    def objective(model):
        margins = np.where(t == 1, -1, 1) * model.decision_function(X)
        return 0.5 * (model.coef_**2).sum() + C * np.logaddexp(0, margins).sum()

    assert objective(ours) <= objective(plain) * (1 + 1e-9)
    slopes = C * X.T @ (ours.predict_proba(X)[:, 1] - t) + ours.coef_[0]
    assert np.abs(slopes).max() <= ours.tol * C * n
    assert vars(ours).keys() == vars(plain).keys()
    for name in ("coef_", "intercept_", "classes_", "n_iter_"):
        own, other = getattr(ours, name), getattr(plain, name)
        assert own.shape == other.shape and own.dtype == other.dtype, name


def test_without_a_minimum_in_reach_the_other_solver_is_used():
    X = rng.normal(size=(40, 3))
    t = (X[:, 0] > 0).astype(float)
    assert newton_logistic(X, t, 1e6, 1e-12, max_steps=2) is None


def test_who_is_fitted_by_it():
    X = rng.normal(size=(40, 3))
    assert is_fitted_by_newton(LogisticRegression(C=3, max_iter=500), X, 100, {})
    for estimator, rows, columns, params in [
        (LogisticRegression(), X, 99, {}),
        (LogisticRegression(), X, 100, {"sample_weight": np.ones(40)}),
        (LogisticRegression(), csr_array(X), 100, {}),
        (LogisticRegression(), X.astype(np.float32), 100, {}),
        (LogisticRegression(), np.full((40, 3), np.nan), 100, {}),
        (LogisticRegression(), np.zeros((40, 200)), 100, {}),
        (LogisticRegression(class_weight="balanced"), X, 100, {}),
        (LogisticRegression(C=-1.0), X, 100, {}),
        (type("Other", (LogisticRegression,), {})(), X, 100, {}),
    ]:
        assert not is_fitted_by_newton(estimator, rows, columns, params)


def test_a_bank_of_many_columns_has_the_same_scores():
    X, y = rng.normal(size=(320, 4)), np.arange(320) % 16
    X += rng.normal(size=(16, 4))[y] * 2
    code = codes.one_vs_one(16)
    bank = fit_bank(LogisticRegression(), X, y, code, PROBABILITY)
    assert isinstance(bank, LinearBank) and bank.models[3].coef_.shape == (1, 4)
    columns = [fit_bank(LogisticRegression(), X, y, code[:, [b]], PROBABILITY) for b in (0, 50, 99)]
    for b, single in zip((0, 50, 99), columns, strict=True):
        assert_allclose(bank.scores(X)[:, b], single.scores(X)[:, 0], atol=5e-3)
