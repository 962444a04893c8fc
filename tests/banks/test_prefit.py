"""Models that are fitted already are calibrated as they are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from manyclass import CoupledClassifier
from manyclass.storage import load_model, save_model

X, y = load_iris(return_X_y=True)
NAMES = np.array(["c", "a", "b"])[y]  # in another order than the numbers
TRAIN, REST = np.arange(0, 150, 2), np.arange(1, 150, 2)


@pytest.mark.parametrize("learner", [LogisticRegression(max_iter=500), SVC(), SVC(kernel="linear")])
@pytest.mark.parametrize("labels", [y, NAMES])
@pytest.mark.parametrize("combiner", ["auto", "max-wins"])
def test_two_classes_keep_their_order(learner, labels, combiner):
    two = np.flatnonzero(y > 0)
    fitted = learner.fit(X[two[::2]], labels[two[::2]])
    model = CoupledClassifier(FrozenEstimator(fitted), combiner=combiner)
    model.fit(X[two[1::2]], labels[two[1::2]])
    agreement = np.mean(model.predict(X[two]) == fitted.predict(X[two]))
    assert agreement > 0.9
    assert model.score(X[two], labels[two]) > 0.9


@pytest.mark.parametrize(
    "learner", [LogisticRegression(max_iter=500), LinearDiscriminantAnalysis()]
)
@pytest.mark.parametrize("labels", [y, NAMES])
def test_many_classes_are_scaled(learner, labels):
    fitted = learner.fit(X[TRAIN], labels[TRAIN])
    model = CoupledClassifier(FrozenEstimator(fitted), code="native").fit(X[REST], labels[REST])
    assert_array_equal(model.classes_, fitted.classes_)
    assert model.bank_.models[0].estimator is model.estimator  # it was not fitted again
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(model.predict(X) == fitted.predict(X)) > 0.95
    assert log_loss(labels, p) < 1.1 * log_loss(labels, fitted.predict_proba(X))


def test_nothing_is_fitted():
    """A model that knows nothing of the training rows stays as it is."""
    fitted = LogisticRegression(max_iter=500).fit(X[TRAIN], y[TRAIN])
    before = fitted.coef_.copy()
    CoupledClassifier(FrozenEstimator(fitted), code="native").fit(X[REST], y[REST])
    assert_array_equal(fitted.coef_, before)


def test_codes_need_an_unfitted_model():
    fitted = LogisticRegression(max_iter=500).fit(X, y)
    with pytest.raises(ValueError, match="already fitted on 3 classes .* Use code='native'"):
        CoupledClassifier(FrozenEstimator(fitted)).fit(X, y)


@pytest.mark.parametrize("rows", [y < 2, y > 0])
def test_other_classes_are_named(rows):
    fitted = LogisticRegression(max_iter=500).fit(X, y)
    model = CoupledClassifier(FrozenEstimator(fitted), code="native")
    with pytest.raises(ValueError, match="was fitted on the classes 0, 1, 2, but y has"):
        model.fit(X[rows], y[rows])


def test_they_can_be_stored(tmp_path):
    fitted = LogisticRegression(max_iter=500).fit(X[TRAIN], NAMES[TRAIN])
    model = CoupledClassifier(FrozenEstimator(fitted), code="native").fit(X[REST], NAMES[REST])
    save_model(model, tmp_path / "m.skops")
    assert_array_equal(load_model(tmp_path / "m.skops").predict_proba(X), model.predict_proba(X))
