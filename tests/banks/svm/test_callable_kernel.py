"""Callable kernels: samples of any type, as SVC takes them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, NuSVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.banks.svm.kernels import CheckedFunction

LETTERS = "abcde"
rng = np.random.default_rng(0)
y = np.repeat(["x", "y", "z"], 14)
WORDS = [
    "".join(rng.choice(list(LETTERS[c : c + 3]), size)) for c in range(3) for size in range(3, 17)
]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


def counts(rows):
    """How often each letter occurs in a sample, whatever it is."""
    rows = rows.to_numpy() if hasattr(rows, "to_numpy") else rows
    return np.array([[repr(row).count(letter) for letter in LETTERS] for row in rows], dtype=float)


def alike(A, B):
    return np.exp(-0.1 * ((counts(A)[:, None] - counts(B)) ** 2).sum(axis=2))


class Word:
    """A sample that is not a sequence."""

    def __init__(self, letters):
        self.letters = letters

    def __repr__(self):
        return self.letters


KINDS = {
    "list of texts": WORDS,
    "tuple of texts": tuple(WORDS),
    "texts": np.array(WORDS),
    "bytes": np.array(WORDS).astype("S"),
    "objects": np.array(WORDS, dtype=object),
    "column of texts": np.array(WORDS)[:, None],
    "column of objects": np.array(WORDS, dtype=object)[:, None],
    "list of lists": [[word] for word in WORDS],
    "ragged lists": [list(word) for word in WORDS],
    "list of dicts": [{"word": word} for word in WORDS],
    "list of objects": [Word(word) for word in WORDS],
    "series": pd.Series(WORDS, index=range(50, 92)),
    "frame": pd.DataFrame({"word": WORDS}),
}
MODELS = {
    "leave-one-out": CoupledSVC(kernel=alike),
    "folds": CoupledSVC(kernel=alike, cv=3),
    "jobs": CoupledSVC(kernel=alike, n_jobs=2),
    "any": CoupledClassifier(SVC(kernel=alike), cv="loo"),
    "any, folds": CoupledClassifier(SVC(kernel=alike), cv=3),
    "one-vs-rest": CoupledClassifier(
        NuSVC(kernel=alike, nu=0.2), code="one-vs-rest", combiner="kl"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_samples_of_any_type_as_in_svc(kind):
    rows = KINDS[kind]
    params = {"kernel": alike, "decision_function_shape": "ovo", "tol": 1e-8}
    model, expected = (machine(**params).fit(rows, y) for machine in (CoupledSVC, SVC))
    for some in (rows, rows[:1], rows[5:]):
        margins = expected.decision_function(some)
        assert_allclose(model.decision_function(some), margins, rtol=0, atol=1e-4)
    for name in ("support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_"):
        assert_allclose(getattr(model, name), getattr(expected, name), atol=1e-4, err_msg=name)


@pytest.mark.parametrize("kind", ["texts", "ragged lists", "list of objects", "frame"])
@pytest.mark.parametrize("name", MODELS)
def test_probabilities_do_not_depend_on_the_type(name, kind):
    rows, model = KINDS[kind], clone(MODELS[name])
    p = model.fit(rows, y).predict_proba(rows)
    expected = clone(model).fit(WORDS, y)
    assert_array_equal(p, expected.predict_proba(WORDS))
    assert_array_equal(model.predict(rows), model.classes_[p.argmax(axis=1)])
    assert model.score(rows, y) > 0.6


def test_the_function_gets_what_it_was_given():
    """A kernel may be one of lists, or of frames with their names."""
    seen = set()

    def watching(A, B):
        seen.add((type(A), type(B)))
        return alike(A, B)

    for rows in (WORDS, counts(WORDS).tolist(), KINDS["frame"], KINDS["series"]):
        seen.clear()
        CoupledSVC(kernel=watching).fit(rows, y).predict_proba(rows)
        assert seen == {(type(rows), type(rows))}


def test_the_precision_is_that_of_the_samples():
    rows = counts(WORDS).astype(np.float32)
    params = {"kernel": lambda A, B: np.exp(0.01 * (A @ B.T)), "tol": 1e-8}
    params["decision_function_shape"] = "ovo"
    model, expected = (machine(**params).fit(rows, y) for machine in (CoupledSVC, SVC))
    margins = expected.decision_function(rows)
    assert_allclose(model.decision_function(rows), margins, rtol=0, atol=1e-4)
    whole = CoupledSVC(kernel=lambda A, B: (A @ B.T).astype(int)).fit(rows, y)
    assert_allclose(whole.decision_function(rows).shape, (len(y), 3))


@pytest.mark.parametrize("shape", [(42,), (42, 1, 5)])
def test_arrays_of_other_dimensions(shape):
    rows = np.broadcast_to(counts(WORDS).sum(axis=1).reshape(42, *[1] * (len(shape) - 1)), shape)

    def distant(A, B):
        return np.exp(-0.1 * np.abs(A.reshape(len(A), -1)[:, :1] - B.reshape(len(B), -1)[:, 0]))

    params = {"kernel": distant, "decision_function_shape": "ovo"}
    model, expected = (machine(**params).fit(rows, y) for machine in (CoupledSVC, SVC))
    assert_allclose(
        model.decision_function(rows), expected.decision_function(rows), rtol=0, atol=1e-12
    )
    with pytest.raises(ValueError, match="dim|2D"):
        CoupledSVC().fit(rows, y)


def test_missing_values_are_the_functions_own_affair():
    rows = counts(WORDS)
    rows[::5, 0] = np.nan

    def ignoring(A, B):
        return np.nan_to_num(A) @ np.nan_to_num(B).T

    params = {"kernel": ignoring, "decision_function_shape": "ovo", "tol": 1e-8}
    expected, model = SVC(**params).fit(rows, y), CoupledSVC(**params).fit(rows, y)
    assert_allclose(model.decision_function(rows), expected.decision_function(rows), atol=1e-4)
    with pytest.raises(ValueError, match="values of the kernel are not finite"):
        CoupledSVC(kernel=lambda A, B: A @ B.T).fit(rows, y)


def test_weights_and_single_precision():
    weights = rng.uniform(0.0, 2.0, len(y)).round()
    model = CoupledSVC(kernel=alike, class_weight={"x": 2.0}).fit(WORDS, y, weights)
    single = CoupledSVC(kernel=alike, class_weight={"x": 2.0}, dtype=np.float32)
    p = model.predict_proba(WORDS)
    assert_allclose(single.fit(WORDS, y, weights).predict_proba(WORDS), p, atol=1e-3)


def test_copies_and_searches():
    model = CoupledSVC(kernel=alike).fit(WORDS, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(WORDS), model.predict_proba(WORDS))
    search = GridSearchCV(CoupledSVC(kernel=alike), {"C": [0.1, 1.0]}, cv=3)
    assert search.fit(WORDS, y).predict_proba(WORDS).shape == (len(y), 3)


@pytest.mark.parametrize("as_type", [sparse.csr_array, sparse.coo_matrix])
def test_sparse_samples_stay_sparse(as_type):
    def products(A, B):
        assert sparse.issparse(A)
        assert sparse.issparse(B)
        return A @ B.T

    rows = as_type(counts(WORDS))
    params = {"kernel": products, "decision_function_shape": "ovo", "tol": 1e-8}
    expected, model = SVC(**params).fit(rows, y), CoupledSVC(**params).fit(rows, y)
    assert_allclose(model.decision_function(rows), expected.decision_function(rows), atol=1e-4)


@pytest.mark.parametrize("values", [np.ones((2, 2)), np.ones(3), 1.0], ids=["2x2", "3", "scalar"])
def test_values_of_another_shape(values):
    with pytest.raises(ValueError, match=r"matrix of 3 and 4 samples has shape .*: the ker"):
        CheckedFunction(lambda A, B: values)(WORDS[:3], WORDS[:4])


def test_features_are_counted_where_there_are_any():
    model = CoupledSVC(kernel=alike).fit(KINDS["frame"], y)
    assert model.n_features_in_ == 1
    assert_array_equal(model.feature_names_in_, ["word"])
    model.fit(KINDS["column of texts"], y)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(np.array(WORDS).reshape(-1, 2))
    model.fit(WORDS, y)
    assert not hasattr(model, "n_features_in_")
    assert not hasattr(model, "feature_names_in_")


def test_texts_still_need_a_function():
    with pytest.raises(ValueError, match="could not convert string to float"):
        CoupledSVC().fit(WORDS, y)
    with pytest.raises(ValueError, match="inconsistent"):
        CoupledSVC(kernel=alike).fit(WORDS, y[:-1])
