"""Sparse matrices with several entries for one place: its value is their sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors, sort_graph_by_row_values
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.rows import without_duplicates
from manyclass.learners import KernelLogisticRegression, PairwiseNeighbors, kernel_logistic_path

X, y = load_iris(return_X_y=True)
X = X - [6.0, 3.0, 4.0, 1.0]  # some entries are zero, and their parts of either sign
TWO = y > 0
KERNELS = ["rbf", "linear", "poly", "sigmoid"]


def in_parts(dense, as_type=sparse.csr_matrix):
    """Return a matrix whose every value is the sum of three entries, apart from each other."""
    n, m = dense.shape
    parts = np.hstack([0.5 * dense - 1.0, 2.0 + 0.0 * dense, 0.5 * dense - 1.0])
    columns, starts = np.tile(np.arange(m), 3 * n), 3 * m * np.arange(n + 1)
    return as_type((parts.ravel(), columns.astype(np.int32), starts.astype(np.int32)), dense.shape)


def check_as_summed(model, labels=y, answer="predict_proba", atol=1e-9):
    """Fitted and asked with duplicates, a model is that of their sums; X stays as it is."""
    parts, whole = in_parts(X), without_duplicates(in_parts(X))
    before = [part.copy() for part in (parts.data, parts.indices, parts.indptr)]
    for part in (parts.data, parts.indices, parts.indptr):
        part.flags.writeable = False
    expected = getattr(model.fit(whole, labels), answer)(whole)
    assert_allclose(getattr(model, answer)(parts), expected, atol=atol)
    assert_allclose(getattr(model.fit(parts, labels), answer)(whole), expected, atol=atol)
    for part, old in zip((parts.data, parts.indices, parts.indptr), before, strict=True):
        assert_array_equal(part, old)


@pytest.mark.parametrize("as_type", [sparse.csr_matrix, sparse.csr_array])
def test_sums_are_a_copy_and_only_made_where_needed(as_type):
    parts = in_parts(X, as_type)
    whole = without_duplicates(parts)
    assert type(whole) is type(parts)
    assert whole.has_canonical_format
    assert parts.nnz == 3 * X.size
    assert_allclose(whole.toarray(), X, atol=1e-12)
    assert without_duplicates(whole) is whole
    assert without_duplicates(X) is X


@given(st.integers(0, 5), st.integers(1, 4), st.integers(0, 12), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=25)
def test_values_stay_as_they_are(n, m, entries, seed):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.integers(n, size=entries)) if n else np.empty(0, np.intp)
    parts = rng.normal(size=len(rows)), rng.integers(m, size=len(rows))
    matrix = sparse.csr_array((*parts, np.searchsorted(rows, np.arange(n + 1))), shape=(n, m))
    whole = without_duplicates(matrix)
    assert whole.has_canonical_format
    assert_allclose(whole.toarray(), matrix.toarray(), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("options", [{}, {"code": "one-vs-rest", "combiner": "kl"}])
def test_coupled_svc(kernel, options):
    check_as_summed(CoupledSVC(kernel=kernel, cv=3, **options))


@pytest.mark.parametrize("as_type", [sparse.csr_matrix, sparse.csr_array])
def test_margins_are_those_of_svc_on_the_dense_matrix(as_type):
    params = {"gamma": 0.5, "decision_function_shape": "ovo", "tol": 1e-8}
    expected = SVC(**params).fit(X, y).decision_function(X)
    parts = in_parts(X, as_type)
    model = CoupledSVC(**params).fit(parts, y)
    assert_allclose(model.decision_function(parts), expected, atol=1e-6)
    by_columns = as_type.__name__.replace("csr", "csc")
    by_columns = getattr(sparse, by_columns)(in_parts(X.T, as_type).T)
    assert by_columns.nnz == 3 * X.size
    assert_allclose(model.fit(by_columns, y).decision_function(by_columns), expected, atol=1e-6)


def test_single_precision():
    check_as_summed(CoupledSVC(dtype=np.float32), atol=1e-4)


@pytest.mark.parametrize("name", ["rbf", "linear", "poly"])
def test_kernel_logistic_regression(name):
    model = KernelLogisticRegression(kernel=name, gamma=0.1)
    check_as_summed(model, TWO, "decision_function")


def test_kernel_logistic_path():
    parts, whole = (kernel_logistic_path(A, TWO, [1.0]) for A in (in_parts(X), X))
    assert_allclose(parts.dual_coef, whole.dual_coef, atol=1e-7)


@pytest.mark.parametrize(
    "learner",
    [
        NuSVC(nu=0.1),
        KernelLogisticRegression(gamma=0.5),
        PairwiseNeighbors(),
        KNeighborsClassifier(),
        LogisticRegression(tol=1e-10),
        LinearSVC(tol=1e-8, dual=False),
        DecisionTreeClassifier(max_depth=3, random_state=0),
        make_pipeline(SVC()),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_coupled_classifier(learner):
    check_as_summed(CoupledClassifier(learner, calibration="sigmoid", cv=3), atol=1e-5)


@pytest.mark.parametrize(
    "learner",
    [SVC(), SVC(kernel="linear"), NuSVC(nu=0.1), KernelLogisticRegression(gamma=0.5)],
)
def test_closed_form_of_leave_one_out(learner):
    check_as_summed(CoupledClassifier(learner, cv="loo"))


def test_dynamic_reliabilities():
    model = CoupledSVC(code="one-vs-rest", combiner="drm")
    check_as_summed(model, answer="decision_function")


@pytest.mark.filterwarnings("ignore:probabilities are provisional")
def test_batches():
    rows, whole = np.random.default_rng(0).permutation(len(y)), sparse.csr_matrix(X)
    parts, model = in_parts(X), CoupledClassifier(BernoulliNB(), random_state=0)
    expected = model.partial_fit(whole[rows], y[rows], classes=[0, 1, 2]).predict_proba(whole)
    found = clone(model).partial_fit(parts[rows], y[rows], classes=[0, 1, 2])
    assert_allclose(found.predict_proba(parts), expected, atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_graphs_of_neighbours_stay_in_the_order_of_distances():
    nearest = NearestNeighbors(n_neighbors=len(y) - 1).fit(X)
    graph = sort_graph_by_row_values(nearest.kneighbors_graph(X, mode="distance"), copy=True)
    assert not graph.has_canonical_format
    learner = KNeighborsClassifier(5, metric="precomputed")
    model = CoupledClassifier(learner, code=np.array([[1], [-1]]), combiner="max-wins", cv=None)
    assert model.fit(graph, TWO).score(graph, TWO) > 0.9
