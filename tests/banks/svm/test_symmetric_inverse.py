"""The inverse of a symmetric matrix in its own place, against NumPy's in another."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manyclass.banks.svm.spans import InverseFactor, PlainInverse, invert_in_place


def matrix(n, definite, seed=0):
    rng = np.random.default_rng(seed)
    vectors, _ = np.linalg.qr(rng.normal(size=(n, n)))
    values = rng.uniform(0.5, 2.0, n)
    if not definite:
        values[0] = -1.0
    return (vectors * values) @ vectors.T


def upper(A):
    """Fills an upper triangle; what is below is not to be read."""

    def fill(array):
        array[:] = np.where(np.arange(len(A))[:, None] <= np.arange(len(A)), A, np.nan)

    return fill


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 25), st.booleans(), st.integers(0, 999), st.sampled_from([1, 40, 2**16]))
def test_as_numpys_inverse(n, definite, seed, entries):
    A, rng = matrix(n, definite, seed), np.random.default_rng(seed)
    inverse = invert_in_place(upper(A), n, block_entries=entries)
    assert type(inverse) is (InverseFactor if definite else PlainInverse)
    expected, V = np.linalg.inv(A), rng.normal(size=(4, n))
    assert_allclose(inverse.diagonal(), np.diagonal(expected), atol=1e-10)
    assert_allclose(inverse.times(V[0]), expected @ V[0], atol=1e-10)
    products = np.einsum("ij,jk,ik->i", V, expected, V)
    assert_allclose(inverse.quadratics(V.copy()), products, atol=1e-10)
    assert_allclose(inverse.quadratics(V[:0].copy()), [], atol=1e-10)


@pytest.mark.parametrize("n", [1, 4])
def test_singular(n):
    assert invert_in_place(upper(np.zeros((n, n))), n) is None


@pytest.mark.parametrize("definite", [True, False])
def test_one_array_is_all_it_takes(definite):
    A = matrix(600, definite)
    tracemalloc.start()
    try:
        inverse = invert_in_place(lambda array: np.copyto(array, A), 600)
        inverse.times(np.ones(600))
        inverse.quadratics(np.ones((3, 600)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * A.nbytes
