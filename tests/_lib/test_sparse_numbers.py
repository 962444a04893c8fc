"""Sparse matrices of numbers that scipy does not compute with."""

from __future__ import annotations

import numpy as np
import pytest
from all_pairs import all_pairs
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.sklearn import in_known_numbers
from manyclass.decisions import DecisionClassifier
from manyclass.learners import KernelLogisticRegression, PairwiseNeighbors, ThresholdOptimized

FORMS = [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix]
D = np.random.default_rng(0).integers(0, 5, (60, 6)).astype(np.float64)
Y = np.arange(60) % 3
COUPLED = {
    "classifier": CoupledClassifier(LogisticRegression(), cv=2),
    "machines": CoupledSVC(cv=2),
    "decisions": DecisionClassifier(CoupledClassifier(LogisticRegression(), cv=2)),
}
BINARY = {
    "kernel logistic": KernelLogisticRegression(),
    "neighbours": PairwiseNeighbors(n_neighbors=3),
    "thresholds": ThresholdOptimized(LogisticRegression()),
}


def of_numbers(form, dtype):
    """Return the data in a sparse format, whose values are of that type."""
    X = sparse.coo_matrix(D)
    X.data = X.data.astype(dtype)
    if form is sparse.coo_matrix:
        return X
    known = form(D)
    known.data = known.data.astype(dtype)
    return known


@all_pairs(dtype=["f2", ">f2", "g", "O"], form=FORMS, name=list(COUPLED))
def test_as_of_float64(dtype, form, name):
    X, model = of_numbers(form, dtype), COUPLED[name]
    expected = model.fit(D if name == "machines" else sparse.csr_array(D), Y).predict(D)
    assert_array_equal(model.predict(X), expected)
    assert_array_equal(model.fit(X, Y).predict(D), expected)


@pytest.mark.parametrize("dtype", ["f2", "O"])
@pytest.mark.parametrize("form", FORMS)
def test_partial_fits(dtype, form):
    X = of_numbers(form, dtype)
    found, expected = (
        CoupledClassifier(SGDClassifier(loss="log_loss", random_state=0), random_state=0)
        .partial_fit(Z, Y, classes=[0, 1, 2])
        .predict(D)
        for Z in (X, sparse.csr_array(D))
    )
    assert_array_equal(found, expected)


@all_pairs(dtype=["f2", "O"], form=FORMS, name=list(BINARY))
def test_learners(dtype, form, name):
    X, y, model = of_numbers(form, dtype), Y > 0, BINARY[name]
    expected = model.fit(sparse.csr_array(D), y).predict(sparse.csr_array(D))
    assert_array_equal(model.predict(X), expected)
    assert_array_equal(model.fit(X, y).predict(X), expected)


@pytest.mark.parametrize("name", ["classifier", "machines"])
def test_objects_that_are_no_numbers(name):
    X = of_numbers(sparse.csr_matrix, "O")
    X.data[3] = "three"
    model = COUPLED[name]
    with pytest.raises(ValueError, match="X is a sparse matrix of objects that are not all num"):
        model.fit(X, Y)
    model.fit(sparse.csr_matrix(D), Y)
    with pytest.raises(ValueError, match="Convert it to float64"):
        model.predict(X)


@pytest.mark.parametrize("X", [D, sparse.csr_array(D), sparse.csr_array(D, dtype="f4"), ["a"]])
def test_others_are_left_as_they_are(X):
    assert in_known_numbers(X) is X
