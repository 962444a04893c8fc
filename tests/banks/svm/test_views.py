"""Columns of a kernel bank as estimators."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.svm import SVC, NuSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.learners import KernelLogisticRegression

X, y = load_iris(return_X_y=True)
LEARNERS = [SVC(C=3.0, gamma=0.1), NuSVC(nu=0.2), KernelLogisticRegression(C=3.0)]


@pytest.mark.parametrize("learner", LEARNERS)
def test_parameters_score_and_clone(learner):
    model = CoupledClassifier(learner, combiner="max-wins", cv=None).fit(X, y)
    for place, machine in enumerate(model.estimators_):
        assert machine.get_params() == learner.get_params()
        assert machine.gamma == learner.gamma and is_classifier(machine)
        assert machine.n_features_in_ == 4
        rows = model.code_[y, place] != 0
        side = (model.code_[y[rows], place] > 0).astype(int)
        assert machine.score(X[rows], side) > 0.9
        copy = clone(machine)
        assert type(copy) is type(learner) and copy.get_params() == learner.get_params()
        assert not hasattr(copy, "classes_")


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix])
def test_linear_weights(as_type):
    """Positive is the first class of the pair, as in SVC for several classes."""
    data = as_type(X)
    machine = CoupledSVC(kernel="linear", tol=1e-8).fit(data, y).estimators_[0]
    two = y < 2
    expected = SVC(kernel="linear", tol=1e-8).fit(X[two], y[two] == 0)
    assert sparse.issparse(machine.coef_) == sparse.issparse(data)
    coef = machine.coef_.toarray() if sparse.issparse(data) else machine.coef_
    assert_allclose(coef, expected.coef_, atol=1e-6)
    assert_allclose(machine.decision_function(data), X @ coef[0] + machine.intercept_, atol=1e-9)


def test_what_is_missing_is_said():
    machine = CoupledSVC().fit(X, y).estimators_[0]
    for name in ("coef_", "nothing"):
        assert not hasattr(machine, name)
    with pytest.raises(AttributeError, match="only available with kernel='linear'"):
        _ = machine.coef_
    with pytest.raises(AttributeError, match="clone it"):
        machine.set_params(C=3)
    texts = CoupledSVC(kernel=lambda a, b: np.ones((len(a), len(b)))).fit([*"abcdef"], [0, 1] * 3)
    assert not hasattr(texts.estimators_[0], "n_features_in_")


def test_precomputed_kernels_have_a_feature_per_sample():
    model = CoupledClassifier(SVC(kernel="precomputed"), combiner="max-wins", cv=None)
    model.fit(X @ X.T, y)
    assert model.estimators_[0].n_features_in_ == 150
    assert [len(rows) for rows in model.pairwise_indices_] == [100] * 3
    assert_array_equal(model.pairwise_indices_[0], np.arange(100))
    assert CoupledSVC().fit(X, y).pairwise_indices_ is None


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "coef_", "support_", "classes_"])
def test_arrays_are_read_only(name):
    machine = CoupledSVC(kernel="linear").fit(X, y).estimators_[0]
    with pytest.raises(ValueError, match="read-only"):
        getattr(machine, name)[..., 0] = 99
