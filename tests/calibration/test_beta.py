"""Beta calibration of log-odds."""

from __future__ import annotations

import naive_fitting as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logit

from manyclass.calibration import CALIBRATIONS, Beta
from manyclass.calibration.beta import BOUND

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)


@st.composite
def log_odds(draw):
    """Log-odds, sides and weights of one column, from tame to hostile."""
    rng = np.random.RandomState(draw(seeds))
    n = draw(st.integers(1, 50))
    x = {
        "normal": lambda: rng.standard_normal(n),
        "too sure": lambda: 20.0 * rng.standard_normal(n),
        "two values": lambda: rng.choice([-1.0, 2.0], n),
        "all equal": lambda: np.full(n, 0.7),
        "zeros and ones": lambda: rng.choice([-np.inf, -3.0, 3.0, np.inf], n),
        "one end": lambda: np.abs(rng.standard_normal(n)),
    }[
        draw(
            st.sampled_from(
                ["normal", "too sure", "two values", "all equal", "zeros and ones", "one end"]
            )
        )
    ]()
    sides = {
        "random": lambda: rng.choice([-1, 1], n),
        "separable": lambda: np.where(x > 0.5, 1, -1),
        "reversed": lambda: np.where(x > 0.5, -1, 1),
        "one side": lambda: np.full(n, rng.choice([-1, 1])),
    }[draw(st.sampled_from(["random", "separable", "reversed", "one side"]))]()
    weights = rng.choice([0.1, 1.0, 30.0], n) if draw(st.booleans()) else np.ones(n)
    return x, sides.astype(np.int8), weights


def fit_one(x, sides, weights=None):
    """Fit one column."""
    weights = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=float)
    sides = np.asarray(sides, dtype=np.int8)
    return Beta().fit(np.asarray(x, dtype=float)[:, None], sides[:, None], weights)


def parameters(model):
    return float(model.a_[0]), float(model.b_[0]), float(model.c_[0])


@quick
@given(column=log_odds())
def test_no_other_parameters_fit_better(column):
    """Against L-BFGS-B from several starts, on sums that are computed term by term."""
    x, sides, weights = column
    if not np.isfinite(x).any():
        return
    model = fit_one(x, sides, weights)

    def loss(at):
        return naive.beta_loss(x, sides, weights, *at, BOUND)

    found = min(
        minimize(loss, start, bounds=[(0, None), (0, None), (None, None)]).fun
        for start in ([1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.1, 0.1, 1.0])
    )
    assert loss(parameters(model)) <= found + 1e-9 * weights.sum()


@quick
@given(column=log_odds())
def test_probabilities_follow_from_the_parameters(column):
    x, sides, weights = column
    model = fit_one(x, sides, weights)
    expected = [naive.beta(score, *parameters(model), BOUND) for score in x]
    assert_allclose(model.transform(x[:, None])[:, 0], expected, rtol=1e-12, atol=1e-15)


@quick
@given(column=log_odds(), seed=seeds)
def test_it_increases_and_stays_inside_0_and_1(column, seed):
    x, sides, weights = column
    model = fit_one(x, sides, weights)
    assert model.a_ >= 0 and model.b_ >= 0
    new = np.sort(np.random.RandomState(seed).uniform(-30, 30, 200))
    for _ in range(2):
        r = model.transform(np.r_[-np.inf, new, np.inf][:, None])[:, 0]
        assert (np.diff(r) >= -1e-15).all()
        assert (r > 0).all() and (r <= 1).all()
        sizes = (weights[sides == side].sum(keepdims=True) for side in (1, -1))
        model.enforce_monotone(*sizes)


@quick
@given(column=log_odds())
def test_swapping_the_sides_mirrors_it(column):
    x, sides, weights = column
    model, mirrored = fit_one(x, sides, weights), fit_one(-x, -sides, weights)
    r = model.transform(x[:, None])
    assert_allclose(mirrored.transform(-x[:, None]), 1 - r, atol=1e-6)


@quick
@given(column=log_odds(), seed=seeds)
def test_weights_are_counts(column, seed):
    x, sides, _ = column
    times = np.random.RandomState(seed).randint(0, 4, len(x))
    times[0] += 1  # a column needs a row
    weighted = fit_one(x, sides, times)
    repeated = fit_one(x.repeat(times), sides.repeat(times))
    at = np.linspace(-9, 9, 20)[:, None]
    assert_allclose(weighted.transform(at), repeated.transform(at), atol=1e-6)


@quick
@given(column=log_odds(), size=st.sampled_from([5e-324, 1e-300, 1e-9, 1e9, 1e100, 1e300]))
def test_weights_of_any_size_give_finite_parameters(column, size):
    x, sides, weights = column
    with np.errstate(over="ignore"):
        model = fit_one(x, sides, np.minimum(size * weights, 1e300))
    assert np.isfinite(parameters(model)).all()


def simulated(n, log_odds_of, seed=0):
    """Return log-odds x, and sides with the probabilities of ``log_odds_of(x)``."""
    rng = np.random.default_rng(seed)
    x = 2.0 * rng.normal(size=n)
    return x, np.where(rng.random(n) < expit(log_odds_of(x)), 1, -1)


def test_true_probabilities_stay():
    x, sides = simulated(100_000, lambda x: x)
    assert_allclose(parameters(fit_one(x, sides)), [1.0, 1.0, 0.0], atol=0.05)


def test_the_parameters_of_a_beta_distribution_are_found():
    def distorted(x):
        return 0.5 * np.log(expit(x)) - 2.0 * np.log(expit(-x)) + 0.3

    x, sides = simulated(100_000, distorted)
    assert_allclose(parameters(fit_one(x, sides)), [0.5, 2.0, 0.3], atol=0.1)


def test_without_any_score_nothing_changes():
    x = np.array([[-2.0], [0.0], [2.5]])
    model = Beta().fit(np.full((4, 1), np.nan), np.ones((4, 1), dtype=np.int8), np.ones(4))
    assert_allclose(model.transform(x), expit(x), rtol=1e-14)


def test_a_column_without_scores_gets_the_curve_of_all_others():
    rng = np.random.default_rng(0)
    x, sides = rng.normal(size=(50, 1)), rng.choice([-1, 1], size=(50, 1)).astype(np.int8)
    empty = np.full((50, 1), np.nan)
    model = Beta().fit(np.hstack([x, empty]), np.hstack([sides, sides]), np.ones(50))
    alone = fit_one(x[:, 0], sides[:, 0])
    for name in ("a_", "b_", "c_"):
        assert_allclose(getattr(model, name), getattr(alone, name)[0], rtol=1e-9)


def test_a_few_samples_change_little():
    model = fit_one([-0.1], [1], [0.01])
    assert_allclose(parameters(model), [1.0, 1.0, 0.0], atol=0.1)


def test_a_column_that_learned_nothing_becomes_the_share_of_the_side():
    x = np.linspace(-3, 3, 60)
    sides = np.where(x < -1, 1, -1)
    model = fit_one(x, sides)
    assert parameters(model)[:2] == (0.0, 0.0)
    n_positive = np.count_nonzero(sides > 0)
    model.enforce_monotone(np.array([n_positive]), np.array([60 - n_positive]))
    r = model.transform(np.array([[-2.0], [0.0], [2.0]]))[:, 0]
    assert_allclose(r, np.mean(naive.platt_targets(sides, np.ones(60))), atol=1e-9)
    assert (np.diff(r) > 0).all()


def test_only_flat_columns_change():
    x, sides = simulated(200, lambda x: x)
    model = fit_one(x, sides)
    before = parameters(model)
    model.enforce_monotone(np.array([90.0]), np.array([110.0]))
    assert parameters(model) == before


def test_infinite_log_odds_count_as_the_bound():
    x, sides = simulated(100, lambda x: x)
    x[np.argmax(x)], x[np.argmin(x)] = np.inf, -np.inf
    model, clipped = fit_one(x, sides), fit_one(np.clip(x, -BOUND, BOUND), sides)
    assert parameters(model) == parameters(clipped)
    ends = model.transform(np.array([[-np.inf], [-BOUND], [BOUND], [np.inf]]))[:, 0]
    assert_array_equal(ends[[0, 3]], ends[[1, 2]])


@pytest.mark.parametrize("p", [1e-300, 1e-12, 1e-3, 0.5])
def test_small_probabilities_are_finite(p):
    model = fit_one([-3.0, -1.0, 1.0, 3.0], [-1, 1, -1, 1])
    assert np.isfinite(model.transform(np.array([[logit(p)], [-logit(p)]]))).all()


def test_users_name_it():
    assert CALIBRATIONS["beta"] is Beta
    assert all(method.name == name for name, method in CALIBRATIONS.items())
