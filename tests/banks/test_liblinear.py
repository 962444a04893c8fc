"""Numbers with which LIBLINEAR would never end are refused before it gets them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier

X, y = load_iris(return_X_y=True)
OUTLIER = X.copy()
OUTLIER[3, 2] = 1e80
QUICK = {"combiner": "max-wins", "cv": None}


@pytest.mark.parametrize("code", ["one-vs-one", "native"])
@pytest.mark.parametrize("data", [X * 1e150, OUTLIER, X * 1e-310, sparse.csr_matrix(X * 1e150)])
def test_features_out_of_range(code, data):
    options = {} if code == "native" else QUICK
    with pytest.raises(ValueError, match="largest feature of X is .* may never end. Scale the f"):
        CoupledClassifier(LinearSVC(), code=code, **options).fit(data, y)


@pytest.mark.parametrize("weight", [1e300, 1e-300])
def test_weights_out_of_range(weight):
    with pytest.raises(ValueError, match="sample_weight times C is .* Scale the weights"):
        CoupledClassifier(LinearSVC(), **QUICK).fit(X, y, np.full(150, weight))


@pytest.mark.parametrize(("scale", "weight"), [(1e-100, 1e-10), (1e-10, 1e-50), (1e60, 1e10)])
def test_all_others_are_fitted(scale, weight):
    model = CoupledClassifier(LinearSVC(), **QUICK).fit(X * scale, y, np.full(150, weight))
    assert np.isfinite(model.decision_function(X * scale)).all()


def test_zeros_and_what_is_no_number_go_to_the_learner():
    CoupledClassifier(LinearSVC(), **QUICK).fit(np.zeros_like(X), y)
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity")):
        with pytest.raises(ValueError, match=word):
            CoupledClassifier(LinearSVC(), **QUICK).fit(np.where(X == X[0, 0], value, X), y)


def test_the_learner_refuses_rows_that_are_matrices():
    with pytest.raises(ValueError, match="dim 3, while dim <= 2 is required by LinearSVC"):
        CoupledClassifier(LinearSVC(), **QUICK).fit(X[:, :, None], y)
