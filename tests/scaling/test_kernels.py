"""Compiled functions of the scalings, against plain loops."""

from __future__ import annotations

import naive_scaling as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from manyclass import codes
from manyclass.scaling.kernels.evidence import add_products, describe_columns, normalise, pool

quick = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
CODES = {
    "one-vs-one": codes.one_vs_one(5),
    "one-vs-rest": codes.one_vs_rest(5),
    "complete": codes.complete(5),
    "a class without columns": np.array([[1, 1], [-1, 1], [0, -1], [0, 0]], dtype=np.int8),
    "more columns than factors": np.tile(codes.complete(4), (1, 15)),
}


def described(r, code):
    rows, log_odds = csr_array(code), np.full(r.shape, np.nan)
    features = np.full((3, len(r), len(code)), np.nan)
    describe_columns(r, rows.indptr, rows.indices, rows.data, log_odds, features)
    return log_odds, features


class TestDescribeColumns:
    @pytest.mark.parametrize("code", CODES.values(), ids=CODES)
    @pytest.mark.parametrize("hard", [True, False])
    @quick
    @given(seed=seeds)
    def test_equals_plain_loops(self, code, hard, seed):
        r = np.random.RandomState(seed).uniform(size=(5, code.shape[1]))
        r = r.round() if hard else r
        for ours, theirs in zip(described(r, code), naive.of_columns(r, code), strict=True):
            assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)

    def test_hundreds_of_hard_zeros_do_not_underflow(self):
        code = np.tile(codes.one_vs_rest(3), (1, 200))
        _, features = described(np.ones((1, 600)) * (code[0] < 0), code)
        assert np.isfinite(features).all()
        assert_allclose(features[:2, 0, 0], np.log(1e-7), rtol=1e-6)
        assert features[2, 0, 0] == -8

    def test_rows_are_computed_alone(self):
        code, r = CODES["complete"], np.random.RandomState(0).uniform(size=(50, 15))
        log_odds, features = described(r, code)
        for s in range(50):
            alone = described(r[s : s + 1], code)
            assert_array_equal(alone[0], log_odds[s : s + 1])
            assert_array_equal(alone[1], features[:, s : s + 1])


class TestAddProducts:
    @quick
    @given(seed=seeds, n=st.integers(0, 9), d=st.integers(0, 9), k=st.integers(2, 9))
    def test_is_the_product(self, seed, n, d, k):
        rng = np.random.RandomState(seed)
        X, M, logits = rng.normal(size=(n, d)), rng.normal(size=(d, k)), rng.normal(size=(n, k))
        expected = logits + X @ M
        add_products(X, M, logits)
        assert_allclose(logits, expected, atol=1e-12)

    def test_rows_are_computed_alone(self):
        rng = np.random.RandomState(0)
        X, M = rng.normal(size=(300, 40)), rng.normal(size=(40, 26))
        logits, alone = np.zeros((300, 26)), np.zeros((300, 26))
        add_products(X, M, logits)
        for s in range(300):
            add_products(X[s : s + 1], M, alone[s : s + 1])
        assert_array_equal(logits, alone)


class TestPool:
    @quick
    @given(seed=seeds, t=st.integers(1, 5), k=st.integers(2, 6), share=st.floats(0, 1))
    def test_is_the_centred_logarithm_of_a_mixture(self, seed, t, k, share):
        rng = np.random.RandomState(seed)
        features, theta = rng.normal(size=(t, 7, k)), rng.normal(size=t)
        z = np.empty((7, k))
        pool(features, theta, share, z)
        p = [naive.softmax(row) for row in np.tensordot(theta, features, 1)]
        assert_allclose(z, naive.centred(np.array(p), share), atol=1e-10)
        assert_allclose(z.sum(axis=1), 0, atol=1e-10)

    @pytest.mark.parametrize("scale", [1e3, 1e150])
    def test_large_features_give_finite_logarithms(self, scale):
        features = scale * np.random.RandomState(0).normal(size=(2, 20, 4))
        z = np.empty((20, 4))
        pool(features, np.array([1.0, -2.0]), 1e-3, z)
        assert np.isfinite(z).all()


class TestNormalise:
    @quick
    @given(seed=seeds, scale=st.sampled_from([0.0, 1.0, 1e3, 1e300]))
    def test_is_the_soft_max(self, seed, scale):
        logits = scale * np.random.RandomState(seed).normal(size=(8, 5))
        expected = [naive.softmax(row) for row in logits]
        normalise(logits)
        assert_allclose(logits, expected, rtol=1e-9, atol=1e-300)
        assert_allclose(logits.sum(axis=1), 1, atol=1e-12)
