"""What all binary learners share: labels and probabilities from log-odds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from manyclass.learners._binary import BinaryMixin


class Given(BinaryMixin, BaseEstimator):
    """Its log-odds are the only feature."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def _log_odds(self, X):
        return X[:, 0]


F = np.array([0.0, 5e-324, 1e-300, 1e-17, 1e-16, 1e-3, 1.0, 40.0, 1e300, np.inf])
X = np.concatenate([F, -F])[:, None]


def test_the_label_is_the_more_probable_class_however_close():
    model = Given().fit(X, np.repeat(["a", "b"], len(F)))
    p = model.predict_proba(X)
    assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert_array_equal(model.predict(X) == "b", X[:, 0] > 0)
    assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    assert_allclose(np.exp(model.predict_log_proba(X)), p, rtol=0, atol=1e-15)


def test_without_fit():
    with pytest.raises(NotFittedError):
        Given().decision_function(X)
