"""Matrix scaling with a ridge."""

from __future__ import annotations

import naive_scaling as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax

from manyclass.scaling.matrix import search_matrix

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)
TOL = 1e-15


def problem(seed, n=40, k=3, d=4):
    rng = np.random.RandomState(seed)
    z, X = rng.normal(size=(n, k)), rng.normal(size=(n, d))
    y = (z + X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return z, X, y, rng.randint(0, 4, n) + 0.5, rng.choice([0.01, 0.1, 1.0], (d, k))


def minimum(*task):
    return search_matrix(*task).M


def gradient(M, z, X, y, weights, ridge):
    p, shares = softmax(z + X @ M, axis=1), weights / weights.sum()
    p[np.arange(len(y)), y] -= 1
    return X.T @ (shares[:, None] * p) + 2 * ridge * M


@quick
@given(seed=seeds, k=st.integers(2, 5), d=st.integers(1, 6))
def test_is_the_minimum(seed, k, d):
    z, X, y, weights, ridge = problem(seed, k=k, d=d)
    M = minimum(z, X, y, weights, ridge, TOL)
    assert_allclose(gradient(M, z, X, y, weights, ridge), 0, atol=1e-6)
    best = minimize(
        lambda v: naive.matrix_objective(v.reshape(d, k), z, X, y, weights, ridge),
        np.zeros(d * k),
        jac=lambda v: gradient(v.reshape(d, k), z, X, y, weights, ridge).ravel(),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    assert_allclose(M, best.x.reshape(d, k), atol=1e-5)
    assert naive.matrix_objective(M, z, X, y, weights, ridge) <= best.fun + 1e-9


@quick
@given(seed=seeds, n=st.sampled_from([5, 40, 300]), k=st.integers(2, 5))
def test_probabilities_are_those_of_the_slow_search(seed, n, k):
    """Rows more than one block, and fewer than parameters."""
    z, X, y, weights, ridge = problem(seed, n, k, d=6)
    ours = minimum(z, X, y, weights, ridge, TOL)
    theirs = naive.fit_matrix(z, X, y, weights, ridge)
    assert_allclose(softmax(z + X @ ours, axis=1), softmax(z + X @ theirs, axis=1), atol=1e-6)


@quick
@given(seed=seeds)
def test_ratios_of_weights_alone_matter(seed):
    z, X, y, weights, ridge = problem(seed)
    M = minimum(z, X, y, weights, ridge, TOL)
    assert_allclose(minimum(z, X, y, 1e9 * weights, ridge, TOL), M, atol=1e-6)
    times = np.random.RandomState(seed).randint(1, 4, len(y))
    copies = (part.repeat(times, axis=0) for part in (z, X, y))
    assert_allclose(
        minimum(*copies, np.ones(times.sum()), ridge, TOL),
        minimum(z, X, y, times.astype(float), ridge, TOL),
        atol=1e-6,
    )


@pytest.mark.parametrize("ridge", [1e6, 1e12])
def test_a_heavy_ridge_leaves_nothing(ridge):
    z, X, y, weights, _ = problem(0)
    assert_allclose(minimum(z, X, y, weights, np.full((4, 3), ridge), TOL), 0, atol=1 / ridge)


@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_large_and_small_features(scale):
    z, X, y, weights, ridge = problem(0)
    M = minimum(z, scale * X, y, weights, ridge, TOL)
    assert np.isfinite(M).all()
    before = naive.matrix_objective(np.zeros((4, 3)), z, scale * X, y, weights, ridge)
    assert naive.matrix_objective(M, z, scale * X, y, weights, ridge) <= before


@quick
@given(seed=seeds, tol=st.sampled_from([1e-3, 1e-5]))
def test_a_search_that_stops_early_is_near_the_minimum(seed, tol):
    z, X, y, weights, ridge = problem(seed)
    early, late = (minimum(z, X, y, weights, ridge, limit) for limit in (tol, TOL))
    losses = [naive.matrix_objective(M, z, X, y, weights, ridge) for M in (late, early)]
    assert losses[0] - 1e-12 <= losses[1] <= losses[0] + 30 * tol


@quick
@given(seed=seeds)
def test_a_search_on_some_rows_and_with_another_ridge_is_a_good_start(seed):
    """The same minimum, in fewer steps than from 0."""
    z, X, y, weights, ridge = problem(seed, n=200)
    half = search_matrix(z[::2], X[::2], y[::2], weights[::2], 3.0 * ridge, 1e-4)
    from_0, from_half = (
        search_matrix(z, X, y, weights, ridge, TOL, start) for start in (None, half)
    )
    assert_allclose(from_half.M, from_0.M, atol=1e-5)
    assert len(from_half.steps) - len(half.steps) <= len(from_0.steps) + 2


def test_a_start_at_the_minimum_stays_there():
    z, X, y, weights, ridge = problem(0)
    found = search_matrix(z, X, y, weights, ridge, TOL)
    again = search_matrix(z, X, y, weights, ridge, TOL, found)
    assert_allclose(again.M, found.M, atol=1e-7)
    assert len(again.steps) <= len(found.steps) + 3


def test_threads_do_not_change_a_bit():
    z, X, y, weights, ridge = problem(0, n=1300)  # three blocks
    one, two = (
        search_matrix(z, X, y, weights, ridge, 1e-9, n_jobs=n_jobs, long=0) for n_jobs in (1, 2)
    )
    assert_array_equal(one.M, two.M)
    assert_array_equal(one.changes, two.changes)
