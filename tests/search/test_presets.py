"""Duan's methods by their names."""

from __future__ import annotations

import numpy as np
import pytest
from all_pairs import checks_in_turn
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier
from manyclass.search import SmoothestBest, TwoStepGridSearchCV
from manyclass.search.presets import DUAN, duan

X, y = load_iris(return_X_y=True)
with_probabilities = [name for name in DUAN if not name.endswith("_SVM") and name != "MWV_KLR"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def test_the_names_are_those_of_the_tables():
    one_vs_rest = ["SMC1va", "SSMC1va", "WTA_SVM", "WTA_PSVM", "WTA_KLR"]
    voting = ["MWV_SVM", "MWV_PSVM", "MWV_KLR"]
    assert list(DUAN) == [*one_vs_rest, "SMC1v1", "SSMC1v1", *voting, "PWC_PSVM", "PWC_KLR"]


@pytest.mark.parametrize("name", DUAN)
def test_every_method_works(name):
    model = duan(name, C=10.0, gamma=0.1).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    assert model.scaling_ is None
    assert hasattr(model, "predict_proba") == (name in with_probabilities)
    assert clone(model).get_params()["estimator__C"] == 10.0


def test_winner_takes_all_is_that_of_the_machines():
    """No calibration comes between the margins and the label."""
    model = duan("WTA_SVM", C=2.0, gamma=0.5).fit(X, y)
    margins = [SVC(C=2.0, gamma=0.5).fit(X, y == c).decision_function(X) for c in range(3)]
    assert_array_equal(model.predict(X), np.argmax(margins, axis=0))


def test_pairs_of_probabilistic_machines_are_coupled_as_in_the_paper():
    model = duan("PWC_PSVM", cv=StratifiedKFold(5)).fit(X, y)
    same = CoupledClassifier(
        SVC(), combiner="ht", calibration="sigmoid", cv=StratifiedKFold(5), scaling=None
    ).fit(X, y)
    assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def test_in_a_search():
    search = TwoStepGridSearchCV(
        duan("MWV_SVM"),
        {"estimator__C": [1.0, 10.0], "estimator__gamma": [0.1, 1.0]},
        C="estimator__C",
        gamma="estimator__gamma",
        factors=(0.5, 1.0, 2.0),
        refit=SmoothestBest(accuracy="score", log_loss=None),
        cv=3,
    ).fit(X, y)
    assert len(search.cv_results_["params"]) == 4 + 9
    assert search.best_estimator_.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SMC1vo", r"no method 'SMC1vo' in the paper \(did you mean SMC1v[a1] or SMC1v[a1]\?\): "),
        ("pwc_psvm", r"did you mean PWC_PSVM or .*\?\): choose from SMC1va, .*, PWC_KLR\."),
        ("MWVSVM", "did you mean MWV_SVM"),
        ("WTA", r"\(did you mean WTA_SVM or WTA_PSVM or WTA_KLR\?\)"),
        ("smc", r"\(did you mean SMC1va or SMC1v1\?\)"),
        ("", "no method '' in the paper: choose from SMC1va"),
        ("x" * 10_000, r"^no method '.{,60} in the paper: choose from SMC1va"),
        ("libsvm!", "no method 'libsvm!' in the paper: choose from SMC1va"),
        (["SMC1va"], "choose from"),
        (None, "no method None in the paper: choose from SMC1va"),
    ],
)
def test_unknown_names(name, message):
    with pytest.raises(ValueError, match=message):
        duan(name)


def test_votes_are_shares_and_no_probabilities():
    """The docstring says so: of k (k - 1) / 2 votes a class has at most k - 1."""
    model = duan("MWV_PSVM", C=10.0).fit(X, y)
    p = model.predict_proba(X)
    assert set(np.round(3 * p, 6).ravel()) <= {0.0, 1.0, 2.0}
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert p.max() <= 2 / 3 + 1e-8


# -- scikit-learn's checks -------------------------------------------------------------


@checks_in_turn([duan(name) for name in DUAN], expected_failed_checks=lambda model: {})
def test_scikit_learn_checks(estimator, check):
    check(estimator)
