"""Temperature scaling."""

from __future__ import annotations

import warnings
from unittest import mock

import naive_fitting as naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from manyclass.scaling import Temperature
from manyclass.scaling.temperature import apply_temperature, fit_temperature

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)


def dull_probabilities(seed, n=50, k=4, sharpness=1.0):
    """Probabilities and labels drawn from a power of them."""
    rng = np.random.RandomState(seed)
    p = rng.dirichlet(np.ones(k), n)
    drawn = apply_temperature(p, sharpness)
    return p, np.array([rng.choice(k, p=row) for row in drawn])


class TestFitTemperature:
    @quick
    @given(seed=seeds, k=st.integers(2, 6), weighted=st.booleans())
    def test_is_the_minimum_of_the_log_loss(self, seed, k, weighted):
        p, y = dull_probabilities(seed, k=k, sharpness=2.0)
        weights = np.random.RandomState(seed).uniform(0, 2, len(y)) if weighted else np.ones(len(y))

        def loss(s):
            return -weights @ np.log(apply_temperature(p, s)[np.arange(len(y)), y])

        best = minimize_scalar(loss, bounds=(0.05, 20), method="bounded", options={"xatol": 1e-9})
        s = fit_temperature(p, y, weights)
        assert_allclose(s, best.x, rtol=1e-5)
        assert loss(s) <= best.fun + 1e-9
        assert_allclose(loss(s), naive.tempered_log_loss(p, y, s, weights), rtol=1e-9)

    @quick
    @given(seed=seeds, points=st.tuples(*[st.floats(0.05, 20)] * 2), mix=st.floats(0, 1))
    def test_the_log_loss_is_convex_in_the_power(self, seed, points, mix):
        p, y = dull_probabilities(seed, n=10)
        first, second = points

        def loss(s):
            return naive.tempered_log_loss(p, y, s, np.ones(len(y)))

        chord = mix * loss(first) + (1 - mix) * loss(second)
        assert loss(mix * first + (1 - mix) * second) <= chord * (1 + 1e-9) + 1e-9

    @pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
    def test_finds_the_power_that_the_labels_were_drawn_from(self, sharpness):
        p, y = dull_probabilities(0, n=20_000, sharpness=sharpness)
        assert_allclose(fit_temperature(p, y), sharpness, rtol=0.05)

    @quick
    @given(seed=seeds, sharpness=st.sampled_from([0.5, 1.0, 3.0]))
    def test_ends_where_newton_stands_still(self, seed, sharpness):
        """A last step below rounding is not a reason to halve the bracket, time and again."""
        p, y = dull_probabilities(seed, sharpness=sharpness)
        with mock.patch("manyclass.scaling.temperature.softmax", wraps=softmax) as evaluated:
            fit_temperature(p, y)
        assert evaluated.call_count <= 20

    def test_integer_weights_are_repetitions(self):
        p, y = dull_probabilities(5)
        times = np.random.RandomState(5).randint(0, 4, len(y))
        repeated = fit_temperature(p.repeat(times, axis=0), y.repeat(times))
        assert_allclose(fit_temperature(p, y, times.astype(float)), repeated, rtol=1e-8)

    @pytest.mark.parametrize("n", [2, 10, 1000])
    def test_one_in_n_is_learned_exactly(self, n):
        p, y = np.tile([0.6, 0.4], (n + 1, 1)), np.zeros(n + 1, dtype=np.intp)
        y[0] = 1  # p^s has the odds n to 1
        assert_allclose(fit_temperature(p, y), np.log(n) / np.log(0.6 / 0.4), rtol=1e-6)

    def test_stays_within_its_bounds(self):
        p = np.tile([0.51, 0.49], (50, 1))
        assert fit_temperature(p, np.zeros(50, dtype=np.intp)) == 20.0
        assert fit_temperature(p, np.ones(50, dtype=np.intp)) == 0.05

    def test_exact_zeros_are_survived(self):
        p = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.9, 0.1, 0.0], [0.0, 0.0, 1.0]])
        s = fit_temperature(p, np.array([0, 1, 1, 0]))
        assert 0.05 <= s < 1

    @pytest.mark.parametrize(
        ("p", "weights"),
        [
            (np.empty((0, 3)), np.empty(0)),
            (np.full((4, 3), 1 / 3), np.ones(4)),
            (np.array([[0.6, 0.3, 0.1]] * 4), np.zeros(4)),
        ],
        ids=["no samples", "uniform", "no weight"],
    )
    def test_where_nothing_can_be_learned_probabilities_stay_as_they_are(self, p, weights):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fit_temperature(p, np.zeros(len(p), dtype=np.intp), weights) == 1.0


class TestApplyTemperature:
    @quick
    @given(seed=seeds, s=st.floats(0.05, 20), k=st.integers(2, 8))
    def test_powers_and_renormalises(self, seed, s, k):
        p = np.random.RandomState(seed).dirichlet(np.full(k, 0.3), 20)
        assume((p > 1e-12).all())
        expected = [naive.power(row, s) for row in p]
        assert_allclose(apply_temperature(p, s), expected, rtol=1e-9, atol=1e-300)

    @quick
    @given(seed=seeds, s=st.floats(0.05, 20), spread=st.floats(0.1, 100))
    def test_keeps_the_order_and_sums_to_1(self, seed, s, spread):
        p = softmax(spread * np.random.RandomState(seed).standard_normal((30, 5)), axis=1)
        tempered = apply_temperature(p, s)
        assert_allclose(tempered.sum(axis=1), 1, atol=1e-12)
        assert ((tempered >= 0) & (tempered <= 1)).all()
        order = p.argsort(axis=1)
        assert (np.diff(np.take_along_axis(tempered, order, axis=1), axis=1) >= 0).all()
        assert_array_equal(tempered.argmax(axis=1), p.argmax(axis=1))

    def test_1_is_the_identity_to_the_bit(self):
        p = np.random.RandomState(0).dirichlet(np.ones(4), 20)
        assert_array_equal(apply_temperature(p, 1.0), p)

    def test_powers_multiply(self):
        p = np.random.RandomState(0).dirichlet(np.ones(4), 20)
        assert_allclose(
            apply_temperature(apply_temperature(p, 2.5), 0.8), apply_temperature(p, 2.0), atol=1e-12
        )

    @quick
    @given(seed=seeds, s=st.floats(0.05, 20), share=st.floats(0, 1), k=st.integers(2, 6))
    def test_mixes_a_share_of_uniform(self, seed, s, share, k):
        p = np.random.RandomState(seed).dirichlet(np.ones(k), 20)
        mixed = apply_temperature(p, s, share)
        assert_allclose(mixed, (1 - share) * apply_temperature(p, s) + share / k, atol=1e-12)
        assert_allclose(mixed.sum(axis=1), 1, atol=1e-12)


class TestTemperature:
    @quick
    @given(seed=seeds, k=st.integers(2, 5), weighted=st.booleans())
    def test_equals_plain_loops(self, seed, k, weighted):
        p, y = dull_probabilities(seed, n=30, k=k, sharpness=2.0)
        weights = np.random.RandomState(seed).randint(1, 4, 30) if weighted else np.ones(30)
        scaling = Temperature().fit(p, y, weights if weighted else None)
        s = naive.temperature(p, y, weights)
        expected = [naive.tempered(row, s, weights.sum()) for row in p]
        assert_allclose(scaling.predict_proba(p), expected, atol=1e-6)

    @quick
    @given(seed=seeds)
    def test_keeps_labels_and_order(self, seed):
        p, y = dull_probabilities(seed)
        q = Temperature().fit(p, y).predict_proba(p)
        order = p.argsort(axis=1)
        assert (np.diff(np.take_along_axis(q, order, axis=1), axis=1) >= 0).all()
        assert_array_equal(q.argmax(axis=1), p.argmax(axis=1))

    def test_ignores_further_evidence(self):
        p, y = dull_probabilities(0)
        plain, other = Temperature().fit(p, y), Temperature().fit(p, y, columns=p, others=[p])
        assert_array_equal(plain.predict_proba(p), other.predict_proba(p, columns=p, others=[p]))

    def test_never_quite_sure(self):
        p, y = np.tile([0.9, 0.1], (9, 1)), np.zeros(9, dtype=np.intp)
        scaling = Temperature().fit(p, y)
        assert scaling.power_ > 10 and scaling.share_ == 0.1
        assert_allclose(scaling.predict_proba(p), [[0.95, 0.05]] * 9, atol=1e-9)

    def test_rows_are_computed_alone(self):
        p, y = dull_probabilities(0, k=11)
        scaling = Temperature().fit(p, y)
        whole = scaling.predict_proba(p)
        assert_array_equal(np.vstack([scaling.predict_proba(row[None]) for row in p]), whole)
