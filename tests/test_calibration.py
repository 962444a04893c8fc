"""Scores to binary probabilities, and the temperature of coupled ones."""

from __future__ import annotations

import warnings

import naive_fitting as naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.calibration import _sigmoid_calibration

from manyclass.calibration import Isotonic, Sigmoid, apply_temperature, fit_temperature

quick = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
both = pytest.mark.parametrize("method", [Sigmoid, Isotonic])


def one_column(calibration, f, sides, weights=None):
    """Fit a single column and return its probabilities of the same scores."""
    f, sides = np.asarray(f, dtype=float)[:, None], np.asarray(sides, dtype=np.int8)[:, None]
    weights = np.ones(len(f)) if weights is None else np.asarray(weights, dtype=float)
    return calibration.fit(f, sides, weights).transform(f)[:, 0]


def noisy(seed, n=60, noise=1.0, scale=1.0):
    rng = np.random.RandomState(seed)
    f = rng.standard_normal(n)
    sides = np.where(f + noise * rng.standard_normal(n) > 0.3, 1, -1).astype(np.int8)
    return scale * f, sides


@st.composite
def scored(draw):
    """Scores, sides and weights of one column, from tame to hostile."""
    rng = np.random.RandomState(draw(seeds))
    n = draw(st.integers(3, 50))
    f = {
        "normal": lambda: rng.standard_normal(n),
        "shifted": lambda: 1e3 + rng.standard_normal(n),
        "two values": lambda: rng.choice([-1.0, 2.0], n),
        "all equal": lambda: np.full(n, 0.7),
        "outliers": lambda: np.clip(rng.standard_cauchy(n) ** 3, -1e4, 1e4),
    }[draw(st.sampled_from(["normal", "shifted", "two values", "all equal", "outliers"]))]()
    sides = {
        "random": lambda: rng.choice([-1, 1], n),
        "separable": lambda: np.where(f > np.median(f), 1, -1),
        "reversed": lambda: np.where(f > np.median(f), -1, 1),
        "one side": lambda: np.full(n, rng.choice([-1, 1])),
    }[draw(st.sampled_from(["random", "separable", "reversed", "one side"]))]()
    weights = rng.choice([0.1, 1.0, 30.0], n) if draw(st.booleans()) else np.ones(n)
    return f * 10.0 ** draw(st.integers(-9, 9)), sides.astype(np.int8), weights


class TestSigmoid:
    @pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6, 1e9])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("noise", [0.0, 0.5, 3.0], ids=["separable", "usual", "hard"])
    def test_equals_scikit_learn(self, noise, weighted, scale):
        f, sides = noisy(3, noise=noise)
        weights = np.random.RandomState(4).uniform(0.2, 3.0, len(f)) if weighted else None
        a, b = _sigmoid_calibration(f, sides, weights)  # its scale is tame: ours may not care
        r = one_column(Sigmoid(), scale * f, sides, weights)
        assert_allclose(r, expit(-(a * f + b)), atol=1e-6)

    @quick
    @given(column=scored())
    def test_the_gradient_vanishes(self, column):
        f, sides, weights = column
        model = Sigmoid()
        one_column(model, f, sides, weights)
        a, b = model.slopes_[0], model.intercepts_[0]
        assert_allclose(naive.sigmoid_gradient(f, sides, weights, a, b), 0.0, atol=1e-8)

    @quick
    @given(seed=seeds, nudge=st.tuples(st.floats(-0.5, 0.5), st.floats(-0.5, 0.5)))
    def test_no_other_sigmoid_is_more_likely(self, seed, nudge):
        f, sides = noisy(seed)
        model = Sigmoid()
        one_column(model, f, sides)
        a, b = model.slopes_[0], model.intercepts_[0]
        best = naive.sigmoid_loss(f, sides, np.ones(len(f)), a, b)
        other = naive.sigmoid_loss(f, sides, np.ones(len(f)), a + nudge[0], b + nudge[1])
        assert best <= other + 1e-9

    @quick
    @given(column=scored())
    def test_swapping_the_sides_mirrors_it(self, column):
        f, sides, weights = column
        r = one_column(Sigmoid(), f, sides, weights)
        assert_allclose(one_column(Sigmoid(), -f, -sides, weights), 1 - r, atol=1e-7)

    @quick
    @given(seed=seeds, scale=st.floats(-12, 12).map(lambda e: 10.0**e))
    def test_the_scale_of_the_scores_does_not_matter(self, seed, scale):
        f, sides = noisy(seed)
        expected = one_column(Sigmoid(), f, sides)
        assert_allclose(one_column(Sigmoid(), scale * f, sides), expected, atol=1e-9)

    @pytest.mark.parametrize("side", [1, -1])
    def test_one_side_alone_is_answered_by_its_target(self, side):
        f = np.linspace(-2, 3, 10)
        expected = 11 / 12 if side > 0 else 1 / 12
        assert_allclose(one_column(Sigmoid(), f, np.full(10, side)), expected, atol=1e-8)

    @pytest.mark.parametrize("score", [0.0, 0.7, -12.3, 1e-5])
    @pytest.mark.parametrize("n", [3, 6, 16, 50])
    def test_equal_scores_tell_nothing_about_others(self, n, score):
        sides = np.where(np.arange(n) < n - 2, 1, -1)
        expected = np.mean(naive.platt_targets(sides, np.ones(n)))
        model = Sigmoid()
        assert_allclose(one_column(model, np.full(n, score), sides), expected, atol=1e-9)
        assert_allclose(model.transform(np.array([[score - 1], [score + 1]])), expected, atol=1e-6)

    def test_infinite_scores_are_as_good_as_certain_but_do_not_drown_the_others(self):
        f, sides = noisy(0, n=200)
        f[np.argmax(f)], f[np.argmin(f)] = np.inf, -np.inf
        finite = np.isfinite(f)
        r = one_column(Sigmoid(), f, sides)
        assert np.isfinite(r).all()
        assert r[np.isposinf(f)] == r.max() and r[np.isneginf(f)] == r.min()
        assert_allclose(r[finite], one_column(Sigmoid(), f[finite], sides[finite]), atol=0.1)

    def test_without_any_score_the_score_is_read_as_log_odds(self):
        scores = np.full((4, 1), np.nan)
        model = Sigmoid().fit(scores, np.ones((4, 1), dtype=np.int8), np.ones(4))
        f = np.array([[-1.0], [0.0], [2.5]])
        assert_allclose(model.transform(f), expit(f))


class TestIsotonic:
    @quick
    @given(column=scored())
    def test_equals_pool_adjacent_violators(self, column):
        f, sides, weights = column
        targets = naive.platt_targets(sides, weights)
        expected = naive.isotonic(f, targets, weights)
        assert_allclose(one_column(Isotonic(), f, sides, weights), expected, atol=1e-9)

    @quick
    @given(column=scored(), seed=seeds)
    def test_increases_and_stays_inside_0_and_1(self, column, seed):
        f, sides, weights = column
        model = Isotonic()
        one_column(model, f, sides, weights)
        spread = 3 * np.abs(f).max()
        new = np.sort(np.random.RandomState(seed).uniform(-spread, spread, 200))
        r = model.transform(np.r_[-np.inf, new, np.inf][:, None])[:, 0]
        assert (np.diff(r) >= 0).all()
        assert (r > 0).all() and (r < 1).all()

    def test_infinite_scores_are_fitted_and_answered(self):
        f = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf])
        r = one_column(Isotonic(), f, [-1, -1, 1, -1, 1])
        assert_allclose(
            r, naive.isotonic(f, naive.platt_targets([-1, -1, 1, -1, 1], [1] * 5), [1] * 5)
        )

    def test_without_any_score_the_sign_decides(self):
        scores = np.full((4, 1), np.nan)
        model = Isotonic().fit(scores, np.ones((4, 1), dtype=np.int8), np.ones(4))
        r = model.transform(np.array([[-5.0], [-0.1], [0.0], [0.1], [5.0]]))[:, 0]
        assert (np.diff(r) >= 0).all() and r[0] < r[1] < 0.5 < r[3] < r[4]


@both
class TestColumns:
    """What both methods do with many columns."""

    @staticmethod
    def many(seed=0, n=40, n_columns=5):
        rng = np.random.RandomState(seed)
        scores = rng.standard_normal((n, n_columns)) * [1.0, 1e-4, 50.0, 3.0, 1.0]
        sides = rng.choice([-1, 0, 1], (n, n_columns)).astype(np.int8)
        return scores, sides, rng.uniform(0.5, 2.0, n)

    def test_each_column_is_fitted_by_itself(self, method):
        scores, sides, weights = self.many()
        r = method().fit(scores, sides, weights).transform(scores)
        for b in range(scores.shape[1]):
            used = sides[:, b] != 0
            alone = method().fit(scores[used][:, [b]], sides[used][:, [b]], weights[used])
            assert_allclose(r[:, b], alone.transform(scores[:, [b]])[:, 0], atol=1e-12)

    def test_nan_scores_are_passed_over_and_stay_nan(self, method):
        scores, sides, weights = self.many(n_columns=5)
        missing = np.random.RandomState(1).rand(*scores.shape) < 0.2
        holed = np.where(missing, np.nan, scores)
        model = method().fit(holed, sides, weights)
        left_out = method().fit(scores, np.where(missing, 0, sides).astype(np.int8), weights)
        assert_allclose(model.transform(scores), left_out.transform(scores), atol=1e-12)
        assert_array_equal(np.isnan(model.transform(holed)), missing)

    def test_integer_weights_are_repetitions(self, method):
        scores, sides, _ = self.many(1)
        times = np.random.RandomState(2).randint(0, 4, len(scores))
        weighted = method().fit(scores, sides, times.astype(float))
        repeated = method().fit(
            scores.repeat(times, axis=0), sides.repeat(times, axis=0), np.ones(times.sum())
        )
        assert_allclose(weighted.transform(scores), repeated.transform(scores), atol=1e-9)

    def test_nothing_is_written_to_the_input(self, method):
        arrays = self.many()
        before = [array.copy() for array in arrays]
        method().fit(*arrays).transform(arrays[0])
        for array, copy in zip(arrays, before, strict=True):
            assert_array_equal(array, copy)


def dull_probabilities(seed, n=50, k=4, sharpness=1.0):
    """Probabilities and labels drawn from a power of them."""
    rng = np.random.RandomState(seed)
    p = rng.dirichlet(np.ones(k), n)
    drawn = apply_temperature(p, sharpness)
    return p, np.array([rng.choice(k, p=row) for row in drawn])


class TestFitTemperature:
    @quick
    @given(seed=seeds, k=st.integers(2, 6), weighted=st.booleans())
    def test_is_the_minimum_of_the_log_loss_with_a_few_surprises(self, seed, k, weighted):
        p, y = dull_probabilities(seed, k=k, sharpness=2.0)
        weights = np.random.RandomState(seed).uniform(0, 2, len(y)) if weighted else np.ones(len(y))
        second = p.argsort(axis=1)[:, -2]

        def loss(s):
            logs = np.log(apply_temperature(p, s))
            rows = np.arange(len(y))
            surprised = weights * (1 / weights.sum() + 0.005)
            return -weights @ logs[rows, y] - surprised @ logs[rows, second]

        best = minimize_scalar(loss, bounds=(0.05, 20), method="bounded", options={"xatol": 1e-9})
        s = fit_temperature(p, y, weights)
        assert_allclose(s, best.x, rtol=1e-5)
        assert loss(s) <= best.fun + 1e-9
        assert_allclose(loss(s), naive.cautious_log_loss(p, y, s, weights), rtol=1e-9)

    @quick
    @given(seed=seeds, points=st.tuples(*[st.floats(0.05, 20)] * 2), mix=st.floats(0, 1))
    def test_the_log_loss_is_convex_in_the_power(self, seed, points, mix):
        p, y = dull_probabilities(seed, n=10)
        first, second = points

        def loss(s):
            return naive.cautious_log_loss(p, y, s, np.ones(len(y)))

        chord = mix * loss(first) + (1 - mix) * loss(second)
        assert loss(mix * first + (1 - mix) * second) <= chord * (1 + 1e-9) + 1e-9

    @pytest.mark.parametrize("sharpness", [0.5, 1.0, 3.0])
    def test_finds_the_power_that_the_labels_were_drawn_from(self, sharpness):
        p, y = dull_probabilities(0, n=20_000, sharpness=sharpness)
        assert_allclose(fit_temperature(p, y), sharpness, rtol=0.05)

    def test_integer_weights_are_repetitions(self):
        p, y = dull_probabilities(5)
        times = np.random.RandomState(5).randint(0, 4, len(y))
        repeated = fit_temperature(p.repeat(times, axis=0), y.repeat(times))
        assert_allclose(fit_temperature(p, y, times.astype(float)), repeated, rtol=1e-8)

    @pytest.mark.parametrize("n", [2, 10, 1000])
    def test_always_right_is_trusted_by_the_number_of_samples(self, n):
        p = np.tile([0.6, 0.4], (n, 1))  # p^s is to be n to 1 + n / 200
        expected = np.log(n / (1 + 0.005 * n)) / np.log(0.6 / 0.4)
        assert_allclose(fit_temperature(p, np.zeros(n, dtype=np.intp)), expected, rtol=1e-6)

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
