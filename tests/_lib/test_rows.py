"""Rows of X: out of columns as they are, and never more than one copy of X while fitting."""

from __future__ import annotations

import tracemalloc
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import ShuffleSplit
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib import rows as _rows
from manyclass._lib.rows import blocks_of_rows, by_rows, take_rows
from manyclass.predicting import RowBlocks

N = 1500


def matrix(n=N, d=4000, density=0.1, form="csr"):
    rng = np.random.default_rng(0)
    places = rng.choice(n * d, int(density * n * d), replace=False)
    entries = rng.random(len(places)), np.divmod(places, d)
    return sparse.coo_array(entries, shape=(n, d)).asformat(form)


def labels(n=N, k=6):
    return np.random.default_rng(0).permutation(np.arange(n) % k)


def assert_same(found, expected):
    assert type(found) is type(expected)
    assert found.shape == expected.shape
    for name in ("indptr", "indices", "data"):
        assert_array_equal(getattr(found, name), getattr(expected, name))
    assert found.dtype == expected.dtype


class TestTakeRows:
    @settings(deadline=None, max_examples=30)
    @given(
        n=st.integers(1, 12),
        d=st.integers(0, 7),
        density=st.sampled_from([0.0, 0.3, 1.0]),
        dtype=st.sampled_from(["f8", "f4", "i8", "i2", "u1", "?", "c16"]),
        data=st.data(),
    )
    def test_as_of_the_converted_matrix(self, n, d, density, dtype, data):
        rng = np.random.default_rng(n + 13 * d)
        X = (rng.integers(1, 9, (n, d)) * (rng.random((n, d)) < density)).astype(dtype)
        X = sparse.csc_array(X) if np.dtype(dtype).kind != "c" else sparse.csc_matrix(X)
        rows = data.draw(st.lists(st.integers(0, n - 1), max_size=15))
        rows = np.array(rows, dtype=np.intp)
        assert_same(take_rows(X, rows), X.tocsr()[rows])

    @pytest.mark.parametrize("rows", [slice(1, 3), [-1, 0], np.array([True, False, True, True])])
    def test_any_way_to_name_rows(self, rows):
        X = sparse.csc_array(np.arange(12.0).reshape(4, 3))
        assert_array_equal(take_rows(X, rows).toarray(), X.toarray()[rows])

    def test_entries_twice_and_out_of_order(self):
        parts = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
        X = sparse.csc_array(parts, shape=(3, 2))
        assert_same(take_rows(X, np.array([2, 1])), X.tocsr()[[2, 1]])

    def test_wide_indices_become_narrow(self):
        X = sparse.csc_array(np.eye(3))
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        taken = take_rows(X, np.array([2, 0]))
        assert taken.indices.dtype == taken.indptr.dtype == np.int32
        assert_array_equal(taken.toarray(), np.eye(3)[[2, 0]])

    def test_columns_and_read_only_parts(self):
        X = sparse.csc_array(np.arange(12.0).reshape(4, 3))
        for part in (X.data, X.indices, X.indptr):
            part.flags.writeable = False
        assert_array_equal(take_rows(X, np.array([1, 1])).toarray(), X.toarray()[[1, 1]])
        taken = take_rows(X, [2, 0], axis=1)
        assert taken.format == "csr"
        assert_array_equal(taken.toarray(), X.toarray()[:, [2, 0]])

    @pytest.mark.parametrize("beyond", [0, 3, -1, 10**9])
    def test_what_is_behind_the_last_entry_does_not_count(self, beyond):
        X = matrix(40, 9, 0.3, "csc")
        expected = X.tocsr()
        X.indices = np.append(X.indices, np.full(50, beyond, X.indices.dtype))
        X.data = np.append(X.data, np.full(50, 7.0))
        assert_same(take_rows(X, np.array([5, 0, 5])), expected[[5, 0, 5]])
        y = np.arange(40) % 3
        found, same = (CoupledClassifier(MultinomialNB(), cv=2).fit(Z, y) for Z in (X, expected))
        assert_array_equal(found.predict_proba(X), same.predict_proba(expected))

    @pytest.mark.parametrize("row", [-1, 4, 10**9])
    @pytest.mark.parametrize("dtype", ["f8", "c16"])
    def test_entries_of_no_row(self, row, dtype):
        X = sparse.csc_array(np.arange(12.0).reshape(4, 3).astype(dtype))
        X.indices[5] = row
        for axis in (0, 1):
            with pytest.raises(ValueError, match="its indices are .* but it has 4 rows"):
                take_rows(X, [0], axis=axis)
        with pytest.raises(ValueError, match="its indices are"):
            by_rows(X)

    @pytest.mark.parametrize("learner", [MultinomialNB(), SVC()])
    def test_models_do_not_read_entries_of_no_row(self, learner):
        X, y = sparse.csc_array(np.arange(30.0).reshape(10, 3)), np.arange(10) % 2
        model = CoupledClassifier(learner, cv=2).fit(X, y)
        X.indices[5] = 10**9
        for call in (lambda: model.fit(X, y), lambda: model.predict_proba(X)):
            with pytest.raises(ValueError, match="its indices are 0 to 1000000000"):
                call()

    @pytest.mark.parametrize(
        "start", [[0, 3, 7], [1, 3, 7, 11], [0, 7, 3, 11], [0, 3, 7, 12], [0, -1, 7, 11], []]
    )
    def test_broken_starts_of_columns(self, start):
        X = sparse.csc_array(np.arange(12.0).reshape(4, 3))
        X.indptr = np.array(start, dtype=np.int32)
        with pytest.raises(ValueError, match="its indptr must have 4 numbers for 3 columns"):
            take_rows(X, [0])

    @pytest.mark.parametrize("dtype", [">f8", ">i2", ">c16", ">f4"])
    def test_bytes_in_the_order_of_this_machine(self, dtype):
        X = sparse.csc_array(np.arange(12.0).reshape(4, 3))
        X.data = X.data.astype(dtype)
        X.indices, X.indptr = X.indices.astype(">i4"), X.indptr.astype(">i4")
        taken = take_rows(X, [2, 0])
        assert taken.dtype.isnative
        assert taken.dtype == np.dtype(dtype).newbyteorder("=")
        assert_array_equal(taken.toarray(), np.arange(12.0).reshape(4, 3)[[2, 0]])


class TestLargeFrames:
    @pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "?"])
    @pytest.mark.parametrize("rows", [slice(1, 9), [-1, 0, 0], np.arange(30) % 3 == 0, []])
    def test_as_pandas_takes_them(self, rows, dtype):
        values = np.random.default_rng(0).integers(0, 9, (30, 4)).astype(dtype)
        X = pd.DataFrame(values, columns=["b", "a", "a", 7], index=np.arange(30)[::-1] % 20)
        taken = take_rows(X, rows, large_frame=0, part_bytes=100)
        pd.testing.assert_frame_equal(taken, X.iloc[rows])
        assert taken.to_numpy().flags.c_contiguous

    @pytest.mark.parametrize(
        "types", [["f8", "f4"], ["f8", "O"], ["Float64", "Float64"], ["category"] * 2]
    )
    def test_other_columns_are_left_to_pandas(self, types):
        values = np.arange(20.0).reshape(10, 2)
        X = pd.DataFrame(values, columns=["a", "b"])
        X = X.astype(dict(zip(X.columns, types, strict=True)))
        pd.testing.assert_frame_equal(take_rows(X, [4, 2], large_frame=0), X.iloc[[4, 2]])
        assert take_rows(X[[]], [4, 2], large_frame=0).shape == (2, 0)

    @pytest.mark.parametrize("code", ["one-vs-rest", "one-vs-one"])
    def test_learners_need_not_copy_them(self, code):
        n = 10_000  # 40 MB, ten times the part that is read at a time
        y = labels(n, k=5)
        X = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 500))).add_prefix("x")
        combiner = "wlw2" if code == "one-vs-one" else "kl"
        learner = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)
        options = {"combiner": combiner, "cv": 3, "with_native": False}
        model = CoupledClassifier(learner, code=code, **options)
        expected = model.fit(X.to_numpy(), y).predict_proba(X.to_numpy())
        peak = peak_of_fit(model, X, y)
        # The last fit, on all rows, copies what is stored by columns: that is the one.
        assert peak < (1.25 if code == "one-vs-rest" else 0.7) * X.to_numpy().nbytes
        assert_array_equal(model.predict_proba(X), expected)


class TestBlocksOfRows:
    @settings(deadline=None, max_examples=30)
    @given(
        n=st.integers(1, 40),
        size=st.integers(1, 50),
        chunk=st.sampled_from([1, 50, 200, 2**26]),
        chunks=st.sampled_from([1, 3, 8, 1000]),
        form=st.sampled_from([sparse.csr_array, sparse.csc_array, sparse.csc_matrix, np.array]),
        dtype=st.sampled_from(["f8", "f4", "i2", "g"]),
    )
    def test_are_the_rows_in_order(self, n, size, chunk, chunks, form, dtype):
        dense = np.random.default_rng(n).poisson(0.5, (n, 5)) * np.arange(n)[:, None]
        dense = dense.astype(dtype)
        X = form(dense)
        blocks = list(blocks_of_rows(X, size, chunk_bytes=chunk, max_chunks=chunks))
        edges = list(range(0, n, size))
        assert [(b.start, b.stop) for b, _ in blocks] == [(a, min(a + size, n)) for a in edges]
        for place, block in blocks:
            if form is np.array:
                assert_array_equal(block, dense[place])
            else:
                assert_same(block, X.tocsr()[place])

    def test_chunks_are_small_even_if_rows_are_not_alike(self):
        X = sparse.csc_array(np.vstack([np.ones((100, 50)), np.eye(900, 50)]))
        parts = _rows._chunks(X, 2, chunk_bytes=2**10, max_chunks=8)
        sizes = [len(take_rows(X, part).data) for part in parts]
        assert max(sizes) <= len(X.data) / 8 + 2 * 50
        assert sum(sizes) == len(X.data)


class TestPredictionsFromColumns:
    @pytest.mark.parametrize("learner", [LogisticRegression(), MultinomialNB(), SVC()])
    @pytest.mark.parametrize("chunk", [1, 2**12, 2**26])
    def test_are_those_of_rows(self, learner, chunk):
        X, y = matrix(120, 40), labels(120, 4)
        model = CoupledClassifier(learner, cv=2, random_state=0).fit(X, y)
        model._row_blocks = RowBlocks(6 * 16)
        for ask in (model.predict_proba, model.predict, model.incoherence):
            assert_array_equal(ask(X.tocsc()), ask(X))
            blocks = [b for _, b in blocks_of_rows(X.tocsc(), 16, chunk_bytes=chunk)]
            assert_array_equal(np.concatenate([ask(block) for block in blocks]), ask(X))

    def test_no_copy_of_all(self):
        X, y = matrix(), labels()
        model = CoupledClassifier(Frugal(), cv=2).fit(X, y)
        model._row_blocks = RowBlocks(2**10)
        by_columns = X.tocsc()
        model.predict_proba(by_columns[:100])  # compiles what is to be compiled
        tracemalloc.start()
        try:
            for _, block in blocks_of_rows(by_columns, 50, chunk_bytes=2**10):
                model.predict_proba(block)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < size_of(X) / 3


class Frugal(ClassifierMixin, BaseEstimator):
    """A learner that copies nothing, and takes all but one feature for noise."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        first = X[:, [0]]
        return np.ravel(first.toarray() if sparse.issparse(first) else first)


def peak_of_fit(model, X, y) -> int:
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def size_of(X) -> int:
    if not sparse.issparse(X):
        return X.nbytes
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes


CODES = {"one-vs-rest": 4, "one-vs-one": 3, "pairs of many": 9, "ternary": 5}
TERNARY = [[1, 1, -1, 0], [1, -1, 0, 1], [-1, 0, 1, 1], [-1, 1, 1, -1], [0, -1, -1, -1]]


class TestMemory:
    @pytest.mark.parametrize(
        ("layout", "code"),
        [*product(["csr", "csc", "C", "F"], CODES), ("wide csc", "one-vs-one")],
    )
    def test_never_more_than_a_copy(self, layout, code):
        k = CODES[code]
        dense = layout in ("C", "F")
        X = matrix(d=500, density=0.5) if dense else matrix()
        X = np.asarray(X.toarray(), order=layout) if dense else X.asformat(layout[-3:])
        if layout == "wide csc":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        model = CoupledClassifier(
            Frugal(),
            code={"pairs of many": "one-vs-one", "ternary": TERNARY}.get(code, code),
            combiner="wlw2" if "one" in code and "rest" not in code else "kl",
            cv=5,
        )
        y = labels(k=k)
        model.fit(X[:200], y[:200])  # compiles what is to be compiled
        peak = peak_of_fit(model, X, y)
        scores = 8 * len(y) * model.code_.shape[1]  # of all rows in all columns, for the scaling
        assert peak < 1.1 * size_of(X) + scores  # a tenth for indices of rows, and the like


LEARNERS = {
    "linear": LinearSVC(random_state=0),
    "logistic": LogisticRegression(max_iter=20),
    "probabilities alone": MultinomialNB(),
    "precomputed": KNeighborsClassifier(metric="precomputed", n_neighbors=3),
    "generic SVC": SVC(kernel="linear", probability=False, break_ties=False),
}


class TestSameBits:
    @pytest.mark.parametrize("learner", LEARNERS)
    @pytest.mark.parametrize("code", ["one-vs-rest", "one-vs-one"])
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.EfficiencyWarning")
    def test_by_columns_as_by_rows(self, learner, code):
        n = 150
        X = matrix(
            n, n if learner == "precomputed" else 40, 1.0 if learner == "precomputed" else 0.3
        )
        X.data += 1.0
        y = labels(n, 4)
        combiner = "wlw2" if code == "one-vs-one" else "kl"
        model = CoupledClassifier(
            LEARNERS[learner], code=code, combiner=combiner, cv=3, random_state=0
        )
        expected = model.fit(X, y).predict_proba(X)
        found = model.fit(X.tocsc(), y).predict_proba(X)
        assert_array_equal(found, expected)
        assert_array_equal(model.predict_proba(X.tocsc()), expected)

    def test_weights_rows_taken_twice_and_jobs(self):
        X, y = matrix(200, 30, 0.3), labels(200, 5)
        weights = np.random.default_rng(1).integers(0, 3, 200).astype(float)
        again = [
            (np.concatenate([train, train[::-3]]), test)
            for train, test in ShuffleSplit(4, test_size=0.4, random_state=0).split(y)
        ]
        model = CoupledClassifier(LogisticRegression(), cv=again)
        expected = model.fit(X, y, sample_weight=weights).predict_proba(X)
        for n_jobs in (1, 2):
            with parallel_config(backend="threading", n_jobs=n_jobs):
                model.fit(X.tocsc(), y, sample_weight=weights)
            assert_array_equal(model.predict_proba(X), expected)

    @pytest.mark.parametrize("cv", ["loo", 3])
    def test_kernel_machines(self, cv):
        X, y = matrix(120, 30, 0.3), labels(120, 4)
        model = CoupledSVC(cv=cv)
        expected = model.fit(X, y).predict_proba(X)
        assert_array_equal(model.fit(X.tocsc(), y).predict_proba(X), expected)

    def test_lengths_are_compared(self):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            CoupledClassifier().fit(matrix(30, 4).tocsc(), labels(29, 3))
