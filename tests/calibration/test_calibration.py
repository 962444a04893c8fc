"""Scores to binary probabilities."""

from __future__ import annotations

import naive_fitting as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression

from manyclass.calibration import Beta, Isotonic, RobustSigmoid, Sigmoid, Unchanged
from manyclass.calibration.base import sort_columns
from manyclass.scores.out_of_sample import ColumnBlock

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)
sigmoids = pytest.mark.parametrize("method", [Sigmoid, RobustSigmoid])
each = pytest.mark.parametrize("method", [Sigmoid, RobustSigmoid, Beta, Isotonic, Unchanged])
fitted = pytest.mark.parametrize("method", [Sigmoid, RobustSigmoid, Beta, Isotonic])


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

    @sigmoids
    @quick
    @given(column=scored())
    def test_swapping_the_sides_mirrors_it(self, method, column):
        f, sides, weights = column
        r = one_column(method(), f, sides, weights)
        assert_allclose(one_column(method(), -f, -sides, weights), 1 - r, atol=1e-7)

    @sigmoids
    @quick
    @given(seed=seeds, scale=st.floats(-12, 12).map(lambda e: 10.0**e))
    def test_the_scale_of_the_scores_does_not_matter(self, method, seed, scale):
        f, sides = noisy(seed)
        expected = one_column(method(), f, sides)
        assert_allclose(one_column(method(), scale * f, sides), expected, atol=1e-9)

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


class TestRobustSigmoid:
    @quick
    @given(column=scored())
    def test_it_is_the_sigmoid_of_compressed_scores(self, column):
        f, sides, weights = column
        model = RobustSigmoid()
        r = one_column(model, f, sides, weights)
        limit = naive.typical_size(f, weights)
        assert model.limits_[0] == limit
        compressed = [naive.compressed(score, limit) for score in f]
        a, b = model.slopes_[0], model.intercepts_[0]
        assert_allclose(naive.sigmoid_gradient(compressed, sides, weights, a, b), 0.0, atol=1e-8)
        expected = [naive.sigmoid(score, a, b) for score in compressed]
        assert_allclose(r, expected, atol=1e-9)

    def test_one_far_score_hardly_bends_it(self):
        """Platt's sigmoid it makes flat: a score on the wrong side, a hundred times as far out."""
        f, sides = noisy(5, n=200, noise=0.3)
        spoiled = np.r_[f, 100.0], np.r_[sides, -1]
        changed = {
            method: np.abs(one_column(method(), *spoiled)[:-1] - one_column(method(), f, sides))
            for method in (Sigmoid, RobustSigmoid)
        }
        assert changed[Sigmoid].max() > 0.3
        assert changed[RobustSigmoid].max() < 0.15

    def test_infinite_scores_are_as_good_as_certain(self):
        f, sides = noisy(0, n=200)
        f[np.argmax(f)], f[np.argmin(f)] = np.inf, -np.inf
        r = one_column(RobustSigmoid(), f, sides)
        assert np.isfinite(r).all()
        assert r[np.isposinf(f)] == r.max() and r[np.isneginf(f)] == r.min()

    def test_half_of_the_scores_at_zero_leave_the_others_as_they_are(self):
        f, sides = noisy(0)
        f[::2] = 0.0
        r = one_column(RobustSigmoid(), f, sides)
        assert_array_equal(r, one_column(Sigmoid(), f, sides))


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
    def test_equals_scikit_learn(self, column, seed):
        f, sides, weights = column
        f[:: f.size // 2] = f[0]  # equal scores
        model = Isotonic()
        one_column(model, f, sides, weights)
        theirs = IsotonicRegression(out_of_bounds="clip")
        theirs.fit(f, naive.platt_targets(sides, weights), sample_weight=weights)
        spread = 2 * np.abs(f).max()
        new = np.r_[f, np.random.RandomState(seed).uniform(-spread, spread, 100)]
        assert_allclose(model.transform(new[:, None])[:, 0], theirs.predict(new), atol=1e-12)

    @pytest.mark.parametrize("size", [5e-324, 1e-300, 1e300])
    def test_weights_of_any_size_give_probabilities(self, size):
        f, sides = noisy(0)
        r = one_column(Isotonic(), f.round(), sides, np.full(len(f), size))
        assert (r > 0).all() and (r <= 1).all()

    def test_models_of_earlier_versions_are_read(self):
        """They stored a regression of scikit-learn for each column."""
        f, sides = noisy(0)
        own = Isotonic().fit(f[:, None], sides[:, None], np.ones(len(f)))
        targets = naive.platt_targets(sides, np.ones(len(f)))
        former = Isotonic.__new__(Isotonic)
        former.__setstate__({"curves_": [IsotonicRegression(out_of_bounds="clip").fit(f, targets)]})
        assert_allclose(former.transform(f[:, None]), own.transform(f[:, None]), atol=1e-12)

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


@each
class TestColumns:
    """What all methods do with many columns."""

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

    def test_the_order_of_rows_does_not_matter(self, method):
        scores, sides, weights = self.many(3)
        order = np.random.RandomState(4).permutation(len(scores))
        usual = method().fit(scores, sides, weights)
        other = method().fit(scores[order], sides[order], weights[order])
        assert_allclose(other.transform(scores), usual.transform(scores), atol=1e-9)

    def test_probabilities_may_replace_the_scores(self, method):
        scores, sides, weights = self.many(5)
        model = method().fit(scores, sides, weights)
        expected = model.transform(scores)
        assert model.transform(scores, out=scores) is scores
        assert_array_equal(scores, expected)

    def test_nothing_is_written_to_the_input(self, method):
        arrays = self.many()
        before = [array.copy() for array in arrays]
        method().fit(*arrays).transform(arrays[0])
        for array, copy in zip(arrays, before, strict=True):
            assert_array_equal(array, copy)


@fitted
class TestColumnsThatBorrow:
    """Columns without scores of both sides, beside one that has them and is not even at 0."""

    @staticmethod
    def beside(scores, sides, weights=1.0):
        """Return the scores, sides and weights of a usual column and another one."""
        f, own = noisy(0)
        n = len(f)
        scores, sides = np.broadcast_to(scores, n), np.broadcast_to(sides, n)
        values = np.column_stack([f - 2.0, scores]).astype(float)
        return values, np.column_stack([own, sides]).astype(np.int8), np.full(n, weights)

    def lent(self, method, score):
        f, sides, weights = self.beside(np.nan, 1)
        usual = method().fit(f[:, :1], sides[:, :1], weights)
        return usual.transform(np.array([[score]]))[0, 0]

    def answer(self, method, data, score):
        return method().fit(*data).transform(np.array([[0.0, score]]))[0, 1]

    @pytest.mark.parametrize("side", [1, -1])
    def test_one_side_alone_borrows(self, method, side):
        f, _ = noisy(1)
        assert self.answer(method, self.beside(f, side), 0.0) == self.lent(method, 0.0)

    def test_scores_of_no_sample_that_takes_part_borrow(self, method):
        """As of columns that have seen too few samples of a stream."""
        f, _ = noisy(1)
        for scores in (f, np.nan):
            assert self.answer(method, self.beside(scores, 0), 0.0) == self.lent(method, 0.0)

    def test_certain_ones_stay_certain(self, method):
        for side in (1, -1):
            data = self.beside(np.inf * side, side)
            assert (self.answer(method, data, np.inf * side) > 0.5) == (side > 0)

    @pytest.mark.parametrize("known", [0.0, np.nan, [0.0, np.nan]], ids=["all", "none", "some"])
    def test_samples_without_weight_leave_it_even(self, method, known):
        """Whether or not any of them was left out."""
        scores = np.resize(known, 60)
        values, sides, weights = self.beside(scores, np.resize([1, -1], 60))
        sides[:30, 1], weights[30:] = 0, 0.0
        assert self.lent(method, 0.0) > 0.6
        assert self.answer(method, (values, sides, weights), 0.0) == 0.5

    def test_without_samples_zero_is_even(self, method):
        """As of pairs that a stream has not begun with, or whose rows of weight 0 were dropped."""
        assert self.answer(method, self.beside(0.0, 0), 0.0) == 0.5

    def test_a_model_that_speaks_without_weight_borrows(self, method):
        """As of an estimator that takes no weights."""
        f, own = noisy(1)
        values, sides, weights = self.beside(f, own)
        sides[:30, 1], weights[30:] = 0, 0.0
        usual = method().fit(values[:, :1], sides[:, :1], weights)
        assert (
            self.answer(method, (values, sides, weights), 0.0)
            == usual.transform(np.zeros((1, 1)))[0, 0]
        )


# -- monotone calibrations ----------------------------------------------------------------


def test_decreasing_sigmoids_become_the_share_of_the_side():
    rng = np.random.default_rng(0)
    sides = np.where(rng.random((60, 2)) < 0.3, 1, -1).astype(np.int8)
    scores = sides * np.array([1.0, -1.0]) + rng.normal(size=(60, 2))
    sigmoid = Sigmoid().fit(scores, sides, np.ones(60))
    assert sigmoid.slopes_[0] < 0 < sigmoid.slopes_[1]
    kept = sigmoid.slopes_[0], sigmoid.intercepts_[0]
    positive, negative = ((sides == side).sum(axis=0) for side in (1, -1))
    sigmoid.enforce_monotone(positive, negative)
    assert (sigmoid.slopes_[0], sigmoid.intercepts_[0]) == kept
    r = sigmoid.transform(np.array([[0.0, -2.0], [0.0, 0.0], [0.0, 2.0]]))[:, 1]
    targets = np.where(
        sides[:, 1] > 0, (positive[1] + 1) / (positive[1] + 2), 1 / (negative[1] + 2)
    )
    assert_allclose(r, targets.mean(), atol=1e-9)
    assert (np.diff(r) > 0).all()


def test_isotonic_curves_are_monotone_already():
    scores, sides = np.arange(6.0)[:, None], np.array([[1], [1], [1], [-1], [-1], [-1]], np.int8)
    curve = Isotonic().fit(scores, sides, np.ones(6))
    before = curve.transform(scores)
    curve.enforce_monotone(np.array([3.0]), np.array([3.0]))
    assert_array_equal(curve.transform(scores), before)


@quick
@given(seed=seeds, n=st.integers(1, 12))
def test_columns_are_sorted_by_the_scores_that_they_have(seed, n):
    rng = np.random.RandomState(seed)
    scores = rng.choice([-1.0, 0.0, 2.0, np.inf, -np.inf, np.nan], (n, 6))
    scores[:, rng.uniform(size=6) < 0.3] = rng.choice([0.0, np.inf, np.nan])
    sides = rng.choice([-1, 0, 1], (n, 6)).astype(np.int8)
    weights = rng.choice([0.0, 1.0, 2.5], n)
    block = ColumnBlock(slice(0, 6), np.arange(n), scores, sides, weights)
    for ours, theirs in zip(
        sort_columns(block), naive.sort_columns(scores, sides, weights), strict=True
    ):
        assert_array_equal(ours, theirs)


@sigmoids
def test_infinite_scores_are_certain_and_nan_stays(method):
    f, sides = noisy(0)
    model = method().fit(f[:, None], sides[:, None], np.ones(len(f)))
    found = model.transform(np.array([[-np.inf], [np.nan], [np.inf]]))[:, 0]
    assert np.isnan(found[1])
    seen = model.transform(f[:, None])
    assert 0 <= found[0] < seen.min() and seen.max() < found[2] <= 1
