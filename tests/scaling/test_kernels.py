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
from manyclass.scaling.kernels.features import describe_columns, scale_rows
from manyclass.scaling.structured import rows_of_code

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)
CODES = {
    "one-vs-one": codes.one_vs_one(5),
    "one-vs-rest": codes.one_vs_rest(5),
    "complete": codes.complete(5),
    "a class without columns": np.array([[1, 1], [-1, 1], [0, -1], [0, 0]], dtype=np.int8),
    "more columns than factors": np.tile(codes.complete(4), (1, 15)),
}


def described(r, code):
    log_odds, features = np.full(r.shape, np.nan), np.full((3, len(r), len(code)), np.nan)
    describe_columns(r, *rows_of_code(code, len(code)), log_odds, features)
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
        code, r = CODES["complete"], np.random.RandomState(0).uniform(size=(150, 15))
        log_odds, features = described(r, code)
        for s in range(150):
            alone = described(r[s : s + 1], code)
            assert_array_equal(alone[0], log_odds[s : s + 1])
            assert_array_equal(alone[1], features[:, s : s + 1])


def scaled(sources, theta, share=0.1, r=None, code=None, matrix=None):
    """Scaled probabilities; without a matrix it is 0."""
    _, n, k = sources.shape
    r, out = np.empty((n, 0)) if r is None else r, np.full((n, k), np.nan)
    matrix, prior = np.zeros((k + 1, k)) if matrix is None else matrix, np.linspace(-2, -1, k)
    scale_rows(
        sources, r, *rows_of_code(code, k), np.array(theta), prior, 2.0**-52, share, matrix, out
    )
    return out


class TestScaleRows:
    @quick
    @given(seed=seeds, m=st.integers(1, 3), k=st.integers(2, 6), share=st.floats(0, 1))
    def test_without_effects_they_are_a_mixture(self, seed, m, k, share):
        rng = np.random.RandomState(seed)
        sources = rng.dirichlet(np.ones(k), (m, 70))
        theta = rng.normal(size=m + 1 if m > 1 else 1)
        features = [np.log(sources[0])]
        features += [np.log((1 - share) * source + share / k) for source in sources[1:]]
        features += [np.tile(np.linspace(-2, -1, k), (70, 1))] * (m > 1)
        p = [naive.softmax(row) for row in np.tensordot(theta, np.array(features), 1)]
        expected = [naive.softmax(row) for row in naive.mixed(np.array(p), share)]
        assert_allclose(scaled(sources, theta, share), expected, atol=1e-9)

    @quick
    @given(seed=seeds, n=st.integers(0, 130), effects=st.booleans())
    def test_the_whole_is_the_formula_in_plain_loops(self, seed, n, effects):
        code, rng = CODES["complete"], np.random.RandomState(seed)
        p, r = rng.dirichlet(np.ones(5), n), rng.uniform(size=(n, 15))
        theta, matrix = rng.normal(size=5), rng.normal(size=(6 + 15 * effects, 5))
        found = scaled(p[None], theta, 0.1, r, code, matrix)
        prior = np.linspace(-2, -1, 5)
        if n > 0:
            expected = naive.predict(theta, 0.1, prior, matrix, p, r, code=code)
            assert_allclose(found, expected, atol=1e-10)

    @pytest.mark.parametrize("k", [2, 5, 11])
    def test_rows_are_computed_alone(self, k):
        """To the last bit, at any place in a block."""
        rng, code = np.random.RandomState(0), codes.one_vs_one(k)
        p, r = rng.dirichlet(np.ones(k), 150), rng.uniform(size=(150, code.shape[1]))
        theta, matrix = rng.normal(size=5), rng.normal(size=(k + 1 + code.shape[1], k))
        whole = scaled(p[None], theta, 0.1, r, code, matrix)
        for rows in [slice(s, s + 1) for s in range(150)] + [slice(3, 12), slice(60, 131)]:
            part = scaled(p[None, rows].copy(), theta, 0.1, r[rows].copy(), code, matrix)
            assert_array_equal(part, whole[rows])

    @pytest.mark.parametrize("scale", [1e3, 1e150])
    def test_large_weights_give_finite_numbers(self, scale):
        sources = np.random.RandomState(0).dirichlet(np.ones(4), (2, 20))
        theta = [scale, -2 * scale, scale]
        assert np.isfinite(scaled(sources, theta, 1e-3)).all()
        assert np.isfinite(scaled(sources, theta, 0.0)).all()
        matrix = scale * np.random.RandomState(1).normal(size=(5, 4))
        p = scaled(sources, theta, 1e-3, matrix=matrix)
        assert_allclose(p.sum(axis=1), 1, atol=1e-12)


def test_rows_of_a_code_are_those_of_a_sparse_matrix():
    for code in CODES.values():
        rows = csr_array(code)
        for ours, theirs in zip(
            rows_of_code(code, len(code)), (rows.indptr, rows.indices, rows.data), strict=True
        ):
            assert ours.dtype == theirs.dtype
            assert_array_equal(ours, theirs)
