from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from experiments.simulated import (
    GaussianClasses,
    gaussian_classes,
    gaussian_mixtures,
    pairwise_probabilities,
)


def test_gaussian_classes_have_the_stated_moments():
    population = gaussian_classes(3, 4, random_state=0)
    X, y = population.sample(40000, random_state=1)
    for c in range(3):
        covariance = population.axes[c] @ np.diag(population.variances[c]) @ population.axes[c].T
        np.testing.assert_allclose(X[y == c].mean(axis=0), population.means[c], atol=0.02)
        np.testing.assert_allclose(np.cov(X[y == c].T), covariance, atol=0.03)


def test_gaussian_classes_of_the_paper():
    population = gaussian_classes(random_state=0)
    assert (0 <= population.means).all() and (population.means <= 1).all()
    assert (0.01 <= population.variances).all() and (population.variances <= 1.01).all()
    identity = np.broadcast_to(np.eye(20), (10, 20, 20))
    np.testing.assert_allclose(
        population.axes.transpose(0, 2, 1) @ population.axes, identity, atol=1e-12
    )


@pytest.mark.parametrize(
    ("uniform", "lowest", "highest"), [("eigenvalues", 0.05, 0.15), ("deviations", 0, 0.01)]
)
def test_bayes_error_of_the_two_readings(uniform, lowest, highest):
    # Hastie & Tibshirani (1998), section 3: "the Bayes error rate is less than 1%".
    population = gaussian_classes(uniform=uniform, random_state=0)
    X, y = population.sample(200, random_state=1)
    assert lowest <= np.mean(population.posterior(X).argmax(axis=1) != y) < highest


def test_gaussian_classes_refuses_an_unknown_reading():
    with pytest.raises(ValueError, match="uniform must be one of eigenvalues, deviations"):
        gaussian_classes(uniform="axes")


def test_gaussian_classes_posterior_is_bayes_rule():
    population = gaussian_classes(3, 4, random_state=5)
    X, _ = population.sample(5, random_state=6)
    density = np.empty((len(X), 3))
    for c in range(3):
        covariance = population.axes[c] @ np.diag(population.variances[c]) @ population.axes[c].T
        density[:, c] = multivariate_normal(population.means[c], covariance).pdf(X)
    expected = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(population.posterior(X), expected, rtol=1e-8, atol=1e-300)


def test_gaussian_classes_seeds():
    one, same = gaussian_classes(random_state=4), gaussian_classes(random_state=4)
    np.testing.assert_array_equal(one.axes, same.axes)
    np.testing.assert_array_equal(
        one.sample(2, random_state=0)[0], same.sample(2, random_state=0)[0]
    )
    assert (one.sample(2, random_state=0)[0] != one.sample(2, random_state=1)[0]).all()


def test_gaussian_mixtures_have_the_stated_moments():
    population = gaussian_mixtures(2, 3, 4, separation=1.0, spread=0.5, random_state=0)
    X, y = population.sample(40000, random_state=1)
    for c in range(2):
        means = population.means[c]
        between = np.cov(means.T, bias=True)
        np.testing.assert_allclose(X[y == c].mean(axis=0), means.mean(axis=0), atol=0.02)
        np.testing.assert_allclose(np.cov(X[y == c].T), between + 0.64 * np.eye(4), atol=0.03)


def test_gaussian_mixtures_posterior_is_bayes_rule():
    population = gaussian_mixtures(3, 2, 2, deviation=0.5, random_state=5)
    X, _ = population.sample(5, random_state=6)
    density = np.zeros((len(X), 3))
    for c in range(3):
        for mean in population.means[c]:
            density[:, c] += multivariate_normal(mean, 0.25 * np.eye(2)).pdf(X)
    expected = density / density.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(population.posterior(X), expected, rtol=1e-8, atol=1e-300)


def test_gaussian_mixtures_of_one_component_are_gaussians():
    mixture = gaussian_mixtures(3, 1, 2, deviation=0.5, random_state=5)
    gaussians = GaussianClasses(
        means=mixture.means[:, 0],
        axes=np.tile(np.eye(2), (3, 1, 1)),
        variances=np.full((3, 2), 0.25),
    )
    X, _ = mixture.sample(5, random_state=6)
    np.testing.assert_allclose(mixture.posterior(X), gaussians.posterior(X), atol=1e-12)


def test_gaussian_mixtures_far_away_are_still_probabilities():
    p = gaussian_mixtures(random_state=0).posterior([[1e3, -1e3], [0.0, 1e6]])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


def test_gaussian_mixtures_seeds():
    one, same = gaussian_mixtures(random_state=4), gaussian_mixtures(random_state=4)
    np.testing.assert_array_equal(one.means, same.means)
    np.testing.assert_array_equal(
        one.sample(2, random_state=0)[0], same.sample(2, random_state=0)[0]
    )
    assert (one.sample(2, random_state=0)[0] != one.sample(2, random_state=1)[0]).all()


@pytest.mark.parametrize(
    ("option", "value"), [("separation", -1.0), ("spread", np.nan), ("deviation", 0.0)]
)
def test_gaussian_mixtures_refuses(option, value):
    with pytest.raises(ValueError, match=f"{option} must be a .*standard deviation"):
        gaussian_mixtures(**{option: value})


@given(
    p=st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
    noise=st.sampled_from([0.0, 0.1, 3.0]),
    seed=st.integers(0, 1000),
)
@settings(deadline=None, max_examples=25)
def test_pairwise_probabilities_laws(p, noise, seed):
    p = np.array(p)
    r = pairwise_probabilities(p, 4, noise=noise, random_state=seed)
    assert r.shape == (4, len(p), len(p))
    np.testing.assert_allclose(r + r.transpose(0, 2, 1), 1, atol=1e-15)
    off_diagonal = r[:, ~np.eye(len(p), dtype=bool)]
    assert (off_diagonal >= 1e-5 - 1e-15).all() and (off_diagonal <= 1 - 1e-5 + 1e-15).all()
    if noise == 0:
        np.testing.assert_allclose(r[2], p[:, None] / (p[:, None] + p), atol=1e-15)


def test_pairwise_probabilities_noise_has_its_size():
    r = pairwise_probabilities(np.full(3, 1 / 3), 20000, noise=0.1, random_state=0)
    assert r[:, 0, 2].mean() == pytest.approx(0.5, abs=0.003)
    assert r[:, 0, 2].std() == pytest.approx(0.1, abs=0.003)


@pytest.mark.parametrize("p", [[0.5, 0.0], [0.5, -0.5], [[0.5, 0.5]], [0.5, np.nan]])
def test_pairwise_probabilities_refuses(p):
    with pytest.raises(ValueError, match="p must be"):
        pairwise_probabilities(p)
