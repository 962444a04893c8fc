"""Shared weights of several sources of logits."""

from __future__ import annotations

import warnings

import naive_scaling as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manyclass.scaling.pooling import RIDGE, fit_weights

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)


def sources(seed, n=60, k=4, t=3):
    """Noisy logits of the same truth, and classes drawn from it."""
    rng = np.random.RandomState(seed)
    truth = rng.normal(scale=2, size=(n, k))
    y = (truth + rng.gumbel(size=(n, k))).argmax(axis=1)
    return truth + rng.normal(size=(t, n, k)), y, rng


def slopes(theta, features, y, weights, ridge):
    """Derivatives of the objective, by central differences."""
    steps = 1e-6 * np.eye(len(theta))
    return [
        (
            naive.weights_objective(theta + step, features, y, weights, ridge)
            - naive.weights_objective(theta - step, features, y, weights, ridge)
        )
        / 2e-6
        for step in steps
    ]


@quick
@given(seed=seeds, k=st.integers(2, 6), t=st.integers(1, 5), ridge=st.sampled_from([0.1, RIDGE, 5]))
def test_is_the_minimum(seed, k, t, ridge):
    features, y, rng = sources(seed, k=k, t=t)
    weights = rng.randint(0, 4, len(y)) + 0.1
    theta = fit_weights(features, y, weights, ridge)
    best = naive.lowest(
        lambda v: naive.weights_objective(v, features, y, weights, ridge), np.eye(t)[0]
    )
    ours, theirs = (naive.weights_objective(v, features, y, weights, ridge) for v in (theta, best))
    assert ours <= theirs + 1e-6
    assert_allclose(slopes(theta, features, y, weights, ridge), 0, atol=1e-4)
    assert_allclose(theta, best, atol=1e-4)


@quick
@given(seed=seeds, n=st.sampled_from([1, 64, 200]), k=st.integers(2, 6), t=st.integers(1, 6))
def test_is_that_of_the_slow_search(seed, n, k, t):
    """Rows less and more than one block."""
    features, y, rng = sources(seed, n, k, t)
    weights = rng.randint(0, 4, n) + 0.1
    theta = fit_weights(features, y, weights, RIDGE)
    assert_allclose(theta, naive.fit_weights(features, y, weights, RIDGE), atol=1e-6)


@quick
@given(seed=seeds)
def test_constants_of_a_row_do_not_matter(seed):
    features, y, rng = sources(seed)
    moved = features + 100 * rng.normal(size=(3, len(y), 1))
    theta = fit_weights(features, y, np.ones(len(y)), RIDGE)
    assert_allclose(fit_weights(moved, y, np.ones(len(y)), RIDGE), theta, atol=1e-6)


@quick
@given(seed=seeds)
def test_weights_are_counts_and_classes_have_no_names(seed):
    features, y, rng = sources(seed)
    times, order = rng.randint(0, 4, len(y)), rng.permutation(4)
    theta = fit_weights(features, y, times.astype(float), RIDGE)
    copies = features.repeat(times, axis=1), y.repeat(times)
    assert_allclose(fit_weights(*copies, np.ones(times.sum()), RIDGE), theta, atol=1e-6)
    renamed = features[:, :, np.argsort(order)], order[y]
    assert_allclose(fit_weights(*renamed, times.astype(float), RIDGE), theta, atol=1e-6)


def test_a_useless_source_gets_next_to_nothing():
    features, y, rng = sources(0, n=5000, t=1)
    noise = rng.normal(size=features.shape)
    theta = fit_weights(np.concatenate([features, noise]), y, np.ones(len(y)), RIDGE)
    assert theta[0] > 0.4 and abs(theta[1]) < 0.05


def test_the_first_source_alone_where_there_is_no_evidence():
    features, y, _ = sources(0)
    assert_allclose(fit_weights(features, y, np.full(len(y), 1e-9), RIDGE), [1, 0, 0], atol=1e-6)
    uniform = np.zeros_like(features)
    assert_allclose(fit_weights(uniform, y, np.ones(len(y)), RIDGE), [1, 0, 0], atol=1e-9)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0])
@pytest.mark.parametrize("right", [True, False])
def test_always_right_or_wrong_ends_quietly(scale, right):
    features, _, _ = sources(1)
    y = features[0].argmax(axis=1) if right else features[0].argmin(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theta = fit_weights(scale * features, y, np.ones(len(y)), RIDGE)
    assert np.isfinite(theta).all()
    start = naive.weights_objective([1, 0, 0], scale * features, y, np.ones(len(y)), RIDGE)
    assert naive.weights_objective(theta, scale * features, y, np.ones(len(y)), RIDGE) <= start


def test_the_same_source_twice_is_shared():
    features, y, _ = sources(2, t=1)
    theta = fit_weights(np.concatenate([features] * 2), y, np.ones(len(y)), RIDGE)
    # The ridge is the least where the two differ by 1: (1, 0) and a common shift.
    assert_allclose(theta[0] - theta[1], 1, atol=1e-6)
