"""Kernel machines hold at most about one copy of X while they are fitted, and are the same."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
import weakref
from itertools import pairwise

import numpy as np
import pytest
from all_pairs import sampled_product
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC, NuSVC

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.banks import MARGIN, PROBABILITY, fit_bank, read_by_bank
from manyclass.banks.limits import Limits
from manyclass.banks.svm.gamma import resolve_gamma
from manyclass.banks.svm.groups import RowsOf, in_batches, size_in_bytes
from manyclass.banks.svm.kernels import RBFKernel
from manyclass.learners import KernelLogisticRegression

CODES = {"one-vs-one": "wlw2", "one-vs-rest": "normalize"}
TYPES = {
    "C": np.array,
    "F": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
}


def wide(form: str):
    """Return samples with many features, which are all support vectors."""
    rng, dense = np.random.default_rng(0), form in ("C", "F")
    n, d, density = (150, 2000, 1.0) if dense else (150, 4000, 0.2)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    return TYPES[form](X), np.arange(n) % 3


def peak_in_copies(model, X, y) -> float:
    model.fit(X[:30], y[:30])  # compiles what is to be compiled
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1] / size_in_bytes(X)
    finally:
        tracemalloc.stop()


class InSmallParts(CoupledSVC):
    """Parts are as small, next to X, as they are for a large X."""

    def _bank_options(self):
        limits = Limits(
            least_chunk=8,
            least_block=8,
            prepared_sparse_bytes=2**15,
            prepared_dense_bytes=2**15,
            digest_entries=2**12,
            copied_bytes=0,
        )
        return {**super()._bank_options(), "limits": limits}


class TestMemory:
    @pytest.mark.parametrize(
        ("form", "code", "name", "cv"),
        [
            *sampled_product(["C", "F"], list(CODES), ["linear", "rbf"], [3, "loo"]),
            ("csr", "one-vs-one", "rbf", 2),
            ("csr", "one-vs-rest", "linear", 2),
            ("csr", "one-vs-rest", "rbf", "loo"),
            ("csc", "one-vs-one", "linear", 2),
        ],
    )
    @pytest.mark.filterwarnings("ignore:analytic leave-one-out is not used")
    def test_about_one_copy(self, form, code, name, cv):
        X, y = wide(form)
        C = 1e-4 if name == "linear" else 1.0
        model = InSmallParts(kernel=name, C=C, cv=cv, code=code, combiner=CODES[code])
        peak = peak_in_copies(model, X, y)
        assert len(model.support_) > 0.95 * len(y)
        # What is not stored by rows is converted once; scikit-learn copies the support vectors.
        assert peak < (1.2 if form in ("C", "csr") else 2.2)

    def test_single_precision(self):
        X, y = wide("C")
        assert peak_in_copies(InSmallParts(dtype=np.float32, cv=3), X, y) < 1.15

    def test_rows_are_owned_in_the_end(self):
        X, y = wide("C")
        model = InSmallParts(cv=3).fit(X, y)
        expected = model.predict_proba(X)
        assert model.bank_.borrowed_from is None
        assert all(isinstance(group.vectors, np.ndarray) for group in model.bank_.groups)
        assert not any(np.shares_memory(group.vectors, X) for group in model.bank_.groups)
        again = pickle.loads(pickle.dumps(model)).predict_proba(X)
        assert_array_equal(again, expected)


MACHINES = {
    "linear": SVC(kernel="linear", C=0.1),
    "rbf": SVC(C=2.0),
    "poly": SVC(kernel="poly", coef0=1.0),
    "nu": NuSVC(nu=0.2),
    "weighted": SVC(class_weight={0: 2.0, 1: 0.5}),
    "balanced": SVC(class_weight="balanced"),
}


def blobs(form: str, n: int = 90, k: int = 3):
    rng = np.random.default_rng(1)
    y = rng.permutation(np.arange(n) % k)
    X = rng.normal(size=(n, 5)) + np.eye(k, 5)[y]
    return TYPES[form](X * (rng.random((n, 5)) < 0.8)), y


class TestMarginsOnce:
    @settings(deadline=None, max_examples=12)
    @given(
        form=st.sampled_from(["C", "csr"]),
        name=st.sampled_from(["linear", "rbf", "poly"]),
        code=st.sampled_from([codes.one_vs_one(3), codes.one_vs_rest(3)]),
        chunk=st.integers(1, 40),
        block=st.integers(1, 40),
        prepared=st.sampled_from([1, 2**9, 2**20]),
    )
    def test_as_all_at_once(self, form, name, code, chunk, block, prepared):
        X, y = blobs(form)
        limits = Limits(
            left_out_tol=0.0,
            least_chunk=chunk,
            least_block=block,
            prepared_sparse_bytes=prepared,
            prepared_dense_bytes=prepared,
        )
        machine = clone(MACHINES[name]).set_params(tol=1e-8)
        whole = Limits(left_out_tol=0.0)
        bank = fit_bank(machine, X, y, code, MARGIN, borrow=True, limits=whole)
        in_parts = fit_bank(machine, X, y, code, MARGIN, borrow=True, limits=limits)
        expected = bank.scorer()(X)
        rows = np.arange(len(y))[::-3]
        # Rounding of the kernel leads the solver along another way, within its tolerance.
        assert_allclose(in_parts.scores(X), expected, rtol=0, atol=1e-5)
        assert_allclose(in_parts.scores_at(X, rows), in_parts.scores(X)[rows], atol=1e-12)
        ones = np.ones(len(y))
        left_out = in_parts.leave_one_out(X, y, code, ones)
        assert_allclose(left_out, bank.leave_one_out(X, y, code, ones), rtol=0, atol=1e-4)
        bank.own_rows()
        assert_array_equal(bank.scores(X), expected)

    @pytest.mark.parametrize("most", [0, 1, 25, 70, 1000])
    def test_batches(self, most):
        X, y = blobs("C", k=3)
        bank = fit_bank(SVC(C=1e-3), X, y, codes.one_vs_one(3), MARGIN)
        chunks = bank._chunks(20)
        batches = in_batches(chunks, most)
        assert [chunk for batch in batches for chunk in batch] == chunks
        sizes = [[len(group.support[part]) for group, part in batch] for batch in batches]
        assert all(len(batch) == 1 or sum(batch) <= most for batch in sizes)
        assert all(sum(a) + b[0] > most for a, b in pairwise(sizes))

    def test_no_support_vectors(self):
        X, y = blobs("C")
        some = np.flatnonzero(y == 0)
        bank = fit_bank(SVC(), X, y, codes.one_vs_rest(3), MARGIN, rows=some, borrow=True)
        assert_array_equal(bank.scores(X[:4]), np.tile([np.inf, -np.inf, -np.inf], (4, 1)))

    def test_rows_of_another_matrix(self):
        X, y = blobs("csr")
        code = codes.one_vs_one(3)
        bank = fit_bank(SVC(), X, y, code, MARGIN, borrow=True)
        rows = np.array([5, 0, 7])
        assert_array_equal(bank.scores_at(X.tocsc(), rows), bank.scores_at(X, rows))

    def test_samples_of_any_type(self):
        words = [w * (1 + i % 3) for i, w in enumerate("ab bc cd de ea ac".split() * 5)]
        y = np.arange(len(words)) % 3

        def shared(A, B):
            return np.array([[len(set(a) & set(b)) + (a == b) for b in B] for a in A], float)

        bank = fit_bank(SVC(kernel=shared), words, y, codes.one_vs_one(3), MARGIN, borrow=True)
        lent = bank.scores_at(words, np.array([4, 1]))
        bank.own_rows()
        assert_array_equal(bank.scores([words[4], words[1]]), lent)


class TestParts:
    @settings(deadline=None, max_examples=20)
    @given(form=st.sampled_from(["C", "csr"]), places=st.lists(st.integers(0, 89), max_size=9))
    def test_rows_of(self, form, places):
        X, _ = blobs(form)
        rows = RowsOf(X, np.array(places, dtype=np.intp))
        dense = X.toarray() if form == "csr" else X
        assert len(rows) == len(places)
        found = rows[1:4]
        found = found.toarray() if form == "csr" else found
        assert_array_equal(found, dense[places[1:4]])
        assert size_in_bytes(rows) == size_in_bytes(X) * len(places) // 90

    def test_memory_of_other_objects_is_unknown(self):
        assert size_in_bytes(["a"]) == 0

    @pytest.mark.parametrize("zeros", [False, True])
    def test_gamma_is_that_of_scikit_learn(self, zeros):
        X, y = blobs("csr")
        X.data[::7] *= not zeros
        expected = SVC().fit(X, y)._gamma
        assert resolve_gamma("scale", X) == expected

    def test_origin_by_blocks(self):
        X = np.random.default_rng(0).normal(size=(50, 7))
        places = np.arange(3, 50, 2)
        origin = RBFKernel().origin(X, places, block_entries=50)
        assert_array_equal(origin, np.median(X[places], axis=0))

    def test_read_once(self):
        X, _ = blobs("F")
        read = read_by_bank(SVC(), X, MARGIN, {})
        assert read.flags.c_contiguous
        assert read_by_bank(SVC(), read, MARGIN, {}) is read
        assert read_by_bank(SVC(), X, PROBABILITY, {}) is X
        assert read_by_bank(SVC(), X, MARGIN, {"other": 1}) is X


@pytest.mark.parametrize("cv", ["loo", 3])
@pytest.mark.parametrize("learner", [SVC(), NuSVC(nu=0.1), KernelLogisticRegression()])
def test_x_is_free_as_soon_as_nobody_else_holds_it(learner, cv):
    X, y = wide("C")
    X = X.copy()
    model, held = CoupledClassifier(learner, cv=cv), weakref.ref(X)
    model.fit(X[:30].copy(), y[:30])  # compiling makes circles of its own
    gc.disable()  # what refers to itself in a circle would wait for it
    try:
        model.fit(X, y)
        del X
        assert held() is None
    finally:
        gc.enable()
