"""Decisions by costs, changed class frequencies, and the estimator made of both."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from datetime import date, timedelta

import naive_decisions as naive
import numpy as np
import pandas as pd
import pytest
import sklearn
from all_pairs import checks_in_turn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from manyclass import (
    CoupledClassifier,
    CoupledSVC,
    DecisionClassifier,
    adjust_prior,
    decide,
    estimate_prior,
)
from manyclass.decisions.costs import least_cost
from manyclass.decisions.priors import _adjust

few = settings(deadline=None, max_examples=25)
seeds = st.integers(0, 2**32 - 1)


def distributions(rng, n, k, sharpness=1.0):
    return rng.dirichlet(np.full(k, sharpness), size=n)


# -- decide ----------------------------------------------------------------------------


HOUR = timedelta(hours=1)


class TestDecide:
    @few
    @given(seeds, st.integers(2, 6), st.integers(1, 7), st.booleans())
    def test_no_decision_costs_less(self, seed, k, d, rejects):
        rng = np.random.default_rng(seed)
        p, cost = distributions(rng, 20, k), rng.normal(size=(k, d))
        reject = rng.normal(size=k) if rejects else None
        answer = decide(p, cost, reject_cost=reject)
        assert_array_equal(answer, naive.decide(p, cost, reject))

    @few
    @given(seeds, st.integers(2, 5))
    def test_ties_go_to_the_first(self, seed, k):
        """Multiples of 1/8 and small integers: sums are exact, and often equal."""
        rng = np.random.default_rng(seed)
        p = rng.multinomial(8, np.full(k, 1 / k), size=30) / 8
        cost = rng.integers(0, 3, size=(k, 4))
        reject = np.full(k, 0.5)
        assert_array_equal(decide(p, cost), naive.decide(p, cost))
        assert_array_equal(decide(p, cost, reject_cost=0.5), naive.decide(p, cost, reject))

    def test_ties_up_to_rounding_go_to_the_first_too(self):
        p = np.array([[0.1, 0.2, 0.7], [0.7, 0.2, 0.1]])
        cost = [[0, 0.3, 0.1], [0.1, 0, 0.7], [0.2, 0, 0.1]]
        sums = p @ np.array(cost)
        shifted = np.array(cost)[:, [0, 0, 1, 2]] + [0, 1e-17, 0, 0]
        assert_array_equal(decide(p, shifted), sums.argmin(axis=1) + (sums.argmin(axis=1) > 0))

    def test_the_most_probable_class_without_costs(self):
        p = distributions(np.random.default_rng(0), 1000, 5)
        assert_array_equal(decide(p), p.argmax(axis=1))
        near = np.array([[0.5, 0.5 + 1e-16], [0.5, 0.5]])
        assert_array_equal(decide(near), near.argmax(axis=1))

    def test_zero_one_costs_by_any_name(self):
        p = distributions(np.random.default_rng(1), 1000, 5)
        zero_one = 1 - np.eye(5)
        for changed in (zero_one, 7 * zero_one - 3, zero_one + np.arange(5)[:, None]):
            assert_array_equal(decide(p, changed), p.argmax(axis=1))

    def test_chows_rule(self):
        p = np.array([[0.7, 0.3], [0.7 - 1e-9, 0.3 + 1e-9], [0.31, 0.69], [0.0, 1.0]])
        assert_array_equal(decide(p, reject_cost=0.3), [0, -1, -1, 1])
        assert_array_equal(decide(p, reject_cost=1.0), [0, 0, 1, 1])
        assert_array_equal(decide(p, reject_cost=-0.1), [-1] * 4)

    def test_rejection_that_costs_what_the_truth_makes_it(self):
        assert_array_equal(decide([[0.6, 0.4], [0.4, 0.6]], reject_cost=[0.05, 0.9]), [-1, 1])

    def test_huge_costs_do_not_hide_small_ones(self):
        cost = [[0.0, 1e-9, 1e15], [1e-9, 0.0, 1e15]]
        assert_array_equal(decide([[0.4, 0.6], [0.6, 0.4]], cost), [1, 0])

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
    def test_any_numbers_and_read_only_arrays(self, dtype):
        p = np.array([[0.2, 0.8], [0.9, 0.1]], dtype=np.float32)
        p.flags.writeable = False
        cost = np.array([[0, 1], [5, 0]], dtype=dtype)
        cost.flags.writeable = False
        assert_array_equal(decide(p, cost), [1, 0])
        assert decide(np.empty((0, 3))).shape == (0,)
        assert_array_equal(decide(pd.DataFrame(p), cost), [1, 0])

    @pytest.mark.parametrize(
        ("classes", "rejected", "expected"),
        [
            (None, None, [0, -1]),
            (None, -9, [0, -9]),
            ([3, 4], None, [3, -1]),
            ([-1, 1], None, [-1, -2]),
            ([0.5, 1.5], None, [0.5, -1]),
            (["a", "b"], None, ["a", "rejected"]),
            (["a", "b"], "ask somebody", ["a", "ask somebody"]),
            (np.array(["a", "b"], dtype=object), None, ["a", "rejected"]),
            (np.array([3, 4], dtype=np.uint8), None, [3, -1]),
            ([False, True], None, [False, None]),
            ([False, True], "ask somebody", [False, "ask somebody"]),
            ([False, True], -1, [False, -1]),
            (np.array([2, 3], dtype="m8[h]"), np.timedelta64(9, "h"), [2 * HOUR, 9 * HOUR]),
        ],
    )
    def test_labels(self, classes, rejected, expected):
        answer = decide([[1, 0], [0.5, 0.5]], classes=classes, reject_cost=0.1, rejected=rejected)
        assert answer.tolist() == expected

    @pytest.mark.parametrize("dtype", ["M8[D]", "M8[s]", "M8[ns]", "m8[h]", "m8[ns]"])
    def test_a_time_that_is_missing_stands_for_rejection(self, dtype):
        classes = np.array([2, 3], dtype=dtype)
        answer = decide([[1, 0], [0.5, 0.5]], classes=classes, reject_cost=0.1)
        assert answer.dtype == classes.dtype and answer[0] == classes[0]
        assert_array_equal(np.isnat(answer), [False, True])

    @pytest.mark.parametrize(
        ("classes", "rejected"),
        [
            (["a", "b"], -1),
            (["a", "b"], "b"),
            ([1, 2], "none"),
            ([1, 2], 2),
            ([1, 2], 0.5),
            ([False, True], True),
            ([False, True], 0),
            (np.array(["2020", "2021"], dtype="M8[D]"), -1),
            (np.array(["2020", "2021"], dtype="M8[ns]"), np.datetime64("2021-01-01")),
            (np.array([2, 3], dtype="m8[h]"), np.datetime64("2021-01-01")),
            (None, 1),
            (None, "x"),
        ],
    )
    def test_labels_of_rejection_that_could_be_taken_for_others(self, classes, rejected):
        message = r"rejected=.* cannot stand for rejected rows.*, or leave it out\."
        with pytest.raises(ValueError, match=message):
            decide([[0.5, 0.5]], classes=classes, reject_cost=0.1, rejected=rejected)

    def test_label_that_is_the_default_of_rejection(self):
        """What was left out cannot be left out."""
        with pytest.raises(ValueError, match=r"rejected='rejected' .* none of the labels\.$"):
            decide([[0.5, 0.5]], classes=["accepted", "rejected"], reject_cost=0.1)

    @pytest.mark.parametrize(
        ("p", "options", "message"),
        [
            ([0.5, 0.5], {}, r"proba must be .*\(n, k\).*got shape \(2,\)"),
            ([[1.0]], {}, r"k >= 2, got shape \(1, 1\)"),
            ([["a", "b"]], {}, "array of numbers"),
            ([[0.5, 0.5], [0.5, 0.6]], {}, r"row 1 of proba .* sum 1\.1.*divide"),
            ([[1.1, -0.1]], {}, "row 0 of proba is not a distribution: its least entry is -0.1"),
            ([[np.nan, 1.0]], {}, "row 0 of proba"),
            ([[np.inf, -np.inf]], {}, "row 0 of proba"),
            ([[0.5, 0.5]], {"cost": np.eye(3)}, r"a row for each of the 2 classes.*\(3, 3\)"),
            ([[0.5, 0.5]], {"cost": [1, 2]}, r"cost must have shape \(k, d\).*\(2,\)"),
            ([[0.5, 0.5]], {"cost": np.empty((2, 0))}, r"\(2, 0\)"),
            ([[0.5, 0.5]], {"cost": [[0, np.nan], [1, 0]]}, r"cost\[0, 1\] is nan: .*finite"),
            ([[0.5, 0.5]], {"cost": [[0, 1], [np.inf, 0]]}, r"cost\[1, 0\] is inf.*large number"),
            ([[0.5, 0.5]], {"cost": 1j * np.eye(2)}, "cost has complex numbers"),
            ([[0.5, 0.5]], {"cost": "high"}, "cost must hold numbers, got 'high'"),
            (
                [[0.5, 0.5]],
                {"cost": [[0, 1], [1]]},
                r"cost must hold numbers, got \[\[0, 1\], \[1\]\]",
            ),
            ([[0.5, 0.5]], {"reject_cost": 1j}, "reject_cost has complex numbers"),
            ([[0.5, 0.5]], {"reject_cost": np.nan}, "reject_cost must be a finite number"),
            ([[0.5, 0.5]], {"reject_cost": [1, 2, 3]}, "one for each of the 2 classes"),
            ([[0.5, 0.5]], {"classes": ["a"]}, r"a label for each of the 2 decisions.*\(1,\)"),
        ],
    )
    def test_bad_input(self, p, options, message):
        with pytest.raises(ValueError, match=message):
            decide(p, **options)

    def test_the_error_has_the_number_of_the_row_in_any_block(self):
        p = np.full((20, 2), 0.5)
        p[17] = 0.7
        with pytest.raises(ValueError, match="row 17 of proba"):
            decide(p)
        with pytest.raises(ValueError, match="row 17 of proba"):
            least_cost(p, None, None, block_entries=8)

    @few
    @given(seeds)
    def test_blocks_change_nothing(self, seed):
        rng = np.random.default_rng(seed)
        p, cost = distributions(rng, 50, 4), rng.normal(size=(4, 6))
        pieces = [decide(p[i : i + 7], cost, reject_cost=0.1) for i in range(0, 50, 7)]
        assert_array_equal(decide(p, cost, reject_cost=0.1), np.concatenate(pieces))

    def test_memory_is_bounded(self):
        p = np.full((300_000, 4), 0.25, dtype=np.float32)
        cost = np.random.default_rng(0).normal(size=(4, 60))
        tracemalloc.start()
        decide(p, cost)  # all expected costs at once: 144 MB
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6


# -- priors ----------------------------------------------------------------------------


class TestAdjustPrior:
    @few
    @given(seeds, st.integers(2, 6))
    def test_by_bayes_rule(self, seed, k):
        rng = np.random.default_rng(seed)
        p, old, new = distributions(rng, 10, k, 0.2), rng.uniform(size=k), rng.uniform(size=k)
        new[rng.integers(k)] = 0.0
        expected = [naive.adjust(row, old, new) for row in p]
        assert_allclose(adjust_prior(p, old, new), expected, rtol=1e-12, atol=1e-300)

    @few
    @given(seeds, st.integers(2, 6))
    def test_laws(self, seed, k):
        rng = np.random.default_rng(seed)
        p = distributions(rng, 10, k)
        a, b, c = distributions(rng, 3, k)
        assert_allclose(adjust_prior(p, a, a), p, rtol=1e-15 * k)
        there = adjust_prior(p, a, b)
        assert_allclose(there.sum(axis=1), 1, atol=1e-14)
        assert_allclose(adjust_prior(there, b, c), adjust_prior(p, a, c), rtol=1e-10, atol=1e-14)
        assert_allclose(adjust_prior(p, 10 * a, 3 * b), there, rtol=1e-12)
        order = rng.permutation(k)
        permuted = adjust_prior(p[:, order], a[order], b[order])
        assert_allclose(permuted, there[:, order], rtol=1e-12)

    def test_extremes(self):
        p = np.array([[1e-300, 1.0], [1e-320, 1.0], [0.0, 1.0], [1.0, 0.0]])
        answer = adjust_prior(p, [1.0, 1e-3], [1.0, 1e-303])
        assert_allclose(answer, [[0.5, 0.5], [0, 1], [0, 1], [1, 0]], atol=1e-10)
        tiny = adjust_prior([[0.5, 0.5]], [5e-324, 1.0], [1.0, 5e-324])
        assert_allclose(tiny, [[1.0, 0.0]])
        assert_allclose(adjust_prior([[0.2, 0.8]], [1e308, 1e308], [2, 3]), [[1 / 7, 6 / 7]])

    def test_products_that_underflow(self):
        """The one class with a ratio of about 1 has no probability: others decide."""
        p = np.array([[0.0, 0.25, 0.75], [1e-250, 0.25, 0.75]])
        answer = adjust_prior(p, [1e-300, 0.5, 0.5], [1.0, 5e-324, 5e-324])
        assert_allclose(answer, [[0, 0.25, 0.75], [1, 0, 0]], atol=1e-12)

    def test_rows_without_support_get_the_target(self):
        answer = adjust_prior([[1.0, 0, 0], [0.5, 0.5, 0]], [1, 1, 1], [0, 0.25, 0.75])
        assert_allclose(answer, [[0, 0.25, 0.75], [0, 1, 0]])

    def test_a_class_that_neither_knows(self):
        assert_allclose(adjust_prior([[0.4, 0.6, 0]], [1, 1, 0], [3, 1, 0]), [[2 / 3, 1 / 3, 0]])

    def test_single_precision_and_blocks(self):
        p = distributions(np.random.default_rng(0), 50, 3).astype(np.float32)
        whole = adjust_prior(p, [1, 2, 3], [3, 1, 1])
        assert_array_equal(_adjust(p, [1, 2, 3], [3, 1, 1], block_entries=10), whole)
        assert whole.dtype == np.float64
        assert_allclose(whole.sum(axis=1), 1, atol=1e-14)

    @pytest.mark.parametrize(
        ("trained", "target", "message"),
        [
            ([1, 1, 1], [1, 1], "trained must hold one frequency for each of the 2 classes"),
            ([1, 1], [1, -1], "target must hold frequencies or counts.*-1"),
            ([1, np.nan], [1, 1], "trained must hold frequencies"),
            ([1, 1], [1, np.inf], "target must hold"),
            ([0, 0], [1, 1], "trained must hold .*not all 0"),
            ([1, 0], [0.75, 0.25], "trained is 0 for class 1, but target is 0.25.*Leave it out"),
        ],
    )
    def test_bad_input(self, trained, target, message):
        with pytest.raises(ValueError, match=message):
            adjust_prior([[0.5, 0.5]], trained, target)


def population(rng, k, n_values, old, new):
    """All values of x: their posteriors under old frequencies, and shares under new ones."""
    likelihood = distributions(rng, k, n_values, 0.5)  # of x given the class
    p = (likelihood * old[:, None]).T
    return p / p.sum(axis=1, keepdims=True), new @ likelihood


class TestEstimatePrior:
    @few
    @given(seeds, st.integers(2, 6))
    def test_right_probabilities_give_the_right_frequencies(self, seed, k):
        rng = np.random.default_rng(seed)
        old, new = distributions(rng, 2, k, 2.0)
        p, share = population(rng, k, 4 * k, old, new)
        estimate = estimate_prior(p, old, sample_weight=share)
        assert_allclose(estimate, new, atol=1e-9)

    @few
    @given(seeds, st.integers(2, 4))
    def test_no_less_likely_than_em(self, seed, k):
        rng = np.random.default_rng(seed)
        p, old = distributions(rng, 12, k), rng.uniform(0.1, 1, size=k)
        weights = rng.integers(0, 3, size=12) + (np.arange(12) == 0)
        estimate = estimate_prior(p, old, sample_weight=weights)
        assert_allclose(estimate.sum(), 1, atol=1e-14)
        assert (estimate >= 0).all()
        best = naive.log_likelihood(p, old, weights, estimate)
        for other in (naive.em(p, old, weights, 60), old / old.sum(), np.full(k, 1 / k)):
            assert naive.log_likelihood(p, old, weights, other) <= best + 1e-11

    def test_it_is_where_em_goes(self):
        rng = np.random.default_rng(0)
        p, old = distributions(rng, 40, 3), np.array([0.2, 0.3, 0.5])
        expected = naive.em(p, old, np.ones(40), 3000)
        assert_allclose(estimate_prior(p, old), expected, atol=1e-6)

    def test_few_steps_where_em_needs_thousands(self):
        old, new = np.array([0.5, 0.5]), np.array([0.9, 0.1])
        likelihood = np.array([[0.51, 0.49], [0.49, 0.51]])
        p = (likelihood * old[:, None]).T / (old @ likelihood)[:, None]
        share = new @ likelihood
        assert abs(naive.em(p, old, share, 1000)[0] - 0.9) > 0.05
        estimate = estimate_prior(p, old, sample_weight=share, tol=1e-14, max_iter=10)
        assert_allclose(estimate, new, atol=1e-6)

    def test_classes_that_are_gone(self):
        """At most one of the frequencies is left; they end at 0, not near it."""
        p = np.tile([0.7, 0.2, 0.1], (10, 1))
        assert_array_equal(estimate_prior(p, [0.1, 0.5, 0.4]), [1, 0, 0])

    def test_nothing_to_tell_by(self):
        old = np.array([0.2, 0.3, 0.5])
        assert_allclose(estimate_prior(np.tile(old, (5, 1)), old), old)

    def test_classes_never_told_apart_keep_their_ratio(self):
        rng = np.random.default_rng(0)
        first = rng.beta(0.5, 0.5, size=30)
        p = np.column_stack([first, 0.4 * (1 - first), 0.6 * (1 - first)])
        old = np.array([0.5, 0.2, 0.3])
        estimate = estimate_prior(p, old)
        two = estimate_prior(np.column_stack([first, 1 - first]), [0.5, 0.5])
        assert_allclose(estimate[0], two[0], atol=1e-6)
        assert_allclose(estimate.sum(), 1)

    def test_weights_are_repetitions(self):
        rng = np.random.default_rng(2)
        p, times = distributions(rng, 20, 3), rng.integers(0, 4, size=20)
        old = [1, 2, 3]
        weighted = estimate_prior(p, old, sample_weight=times)
        assert_allclose(weighted, estimate_prior(p.repeat(times, axis=0), old), atol=1e-6)

    def test_a_class_that_training_did_not_know(self):
        assert_allclose(estimate_prior([[0.3, 0.7, 0.0], [0.8, 0.2, 0.0]], [1, 1, 0])[2], 0)
        with pytest.raises(ValueError, match="trained is 0 for class 2, but proba is not"):
            estimate_prior([[0.3, 0.6, 0.1]], [1, 1, 0])

    @pytest.mark.parametrize("share", [1e-10, 1e-100, 1e-200, 1e-299])
    def test_a_class_of_next_to_no_share(self, share):
        """What the rows say about x does not depend on how rare a class was in training."""
        likelihood = np.random.default_rng(0).gamma(1.0, size=(50, 3))
        expected = estimate_prior(likelihood / likelihood.sum(axis=1, keepdims=True), [1, 1, 1])
        p = likelihood * [share, 1.0, 1.0]
        p /= p.sum(axis=1, keepdims=True)
        assert_allclose(estimate_prior(p, [2 * share, 2, 2]), expected, atol=1e-12)
        # By rows that take it for as probable as others it is all there is.
        assert_allclose(estimate_prior([[0.2, 0.3, 0.5]], [share, 1, 1]), [1, 0, 0], atol=1e-9)

    @pytest.mark.parametrize("doubt", [1e-6, 1e-10, 1e-15, 1e-20])
    @pytest.mark.parametrize("share", [0.5, 0.1, 0.01, 0.001])
    @pytest.mark.parametrize(("many", "few"), [(26, 1), (100, 3), (5, 1)])
    def test_a_share_of_0_is_not_for_ever(self, doubt, share, many, few):
        p = np.repeat([[1 - doubt, doubt], [doubt, 1 - doubt]], [many, few], axis=0)
        expected = np.array([many, few]) / (many + few)
        estimate = estimate_prior(p, [share, 1 - share])
        assert_allclose(estimate, expected, atol=2 * doubt / share + 1e-9)

    @few
    @given(seeds, st.integers(2, 4), st.sampled_from([1.0, 20.0, 200.0]), st.integers(0, 200))
    def test_no_less_likely_than_em_at_the_extremes(self, seed, k, sharpness, rarest):
        rng = np.random.default_rng(seed)
        logs = sharpness * rng.normal(size=(10, k))
        p = np.exp(logs - logs.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        old = 10.0 ** -rng.uniform(0, rarest, size=k)
        weights = rng.uniform(0.1, 1, size=10)
        best = naive.log_likelihood(p, old, weights, estimate_prior(p, old, sample_weight=weights))
        other = np.full(k, 1 / k)  # which, unlike trained, has a share for every class
        ratio = p / (old / old.sum())
        for _ in range(300):
            other *= (weights / (ratio @ other)) @ ratio
            other /= other.sum()
        assert naive.log_likelihood(p, old, weights, other) <= best + 1e-8

    def test_a_share_too_small_to_divide_by(self):
        with pytest.raises(ValueError, match="trained is 5e-311 for class 1, too small.*Leave"):
            estimate_prior([[0.5, 0.5, 0.0]], [1, 1e-310, 1])

    def test_certain_rows(self):
        assert_allclose(estimate_prior(np.eye(3)[[0, 0, 0, 1]], [1, 1, 1]), [0.75, 0.25, 0])

    def test_too_few_steps_are_said(self):
        p = distributions(np.random.default_rng(0), 40, 3)
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 steps.*Raise"):
            estimate_prior(p, [1, 1, 1], max_iter=1)

    def test_bad_input(self):
        with pytest.raises(ValueError, match="proba has no rows"):
            estimate_prior(np.empty((0, 2)), [1, 1])
        with pytest.raises(ValueError, match="sample_weight is 0|Sample weights must|zero"):
            estimate_prior([[0.5, 0.5]], [1, 1], sample_weight=[0])

    def test_rows_of_a_real_classifier(self):
        X, y = make_blobs(4000, centers=3, cluster_std=2.5, random_state=0)
        train, rest = np.arange(2000), np.arange(2000, 4000)
        model = CoupledClassifier(GaussianNB()).fit(X[train], y[train])
        keep = rest[np.random.RandomState(0).uniform(size=2000) < np.array([0.2, 1, 0.5])[y[rest]]]
        truth = np.bincount(y[keep]) / len(keep)
        p = model.predict_proba(X[keep])
        estimate = estimate_prior(p, model.class_totals_)
        assert_allclose(estimate, truth, atol=0.04)
        before = -np.log(p[np.arange(len(keep)), y[keep]]).mean()
        after = adjust_prior(p, model.class_totals_, estimate)
        assert -np.log(after[np.arange(len(keep)), y[keep]]).mean() < before


# -- the estimator ---------------------------------------------------------------------

X, y = load_iris(return_X_y=True)
names = np.array(["ant", "bee", "cat"])[y]
ASYMMETRIC = np.array([[0.0, 1, 2], [5, 0, 1], [9, 9, 0]])


class ZeroOne:
    """Costs of a kind whose name is the same in every process, as the ids of tests must be."""

    def __call__(self, k):
        return 1.0 - np.eye(k)

    def __repr__(self):
        return "ZeroOne()"


OTHERS = [  # these take turns: every check meets one of them
    DecisionClassifier(LogisticRegression(), cost=ZeroOne(), trained_prior="uniform"),
    DecisionClassifier(LinearDiscriminantAnalysis(), reject_cost=0.9),
    DecisionClassifier(KNeighborsClassifier()),
]


@checks_in_turn(
    [DecisionClassifier()],
    [DecisionClassifier(GaussianNB(), target_prior="uniform", reject_cost=1.0)],
    OTHERS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


class TestDecisionClassifier:
    def test_probabilities_and_decisions(self):
        base = LogisticRegression().fit(X, names)
        target = [0.6, 0.3, 0.1]
        model = DecisionClassifier(
            LogisticRegression(), cost=ASYMMETRIC, target_prior=target, reject_cost=0.8
        ).fit(X, names)
        p = adjust_prior(base.predict_proba(X), [1, 1, 1], target)
        assert_allclose(model.predict_proba(X), p, atol=1e-12)
        expected = decide(p, ASYMMETRIC, classes=["ant", "bee", "cat"], reject_cost=0.8)
        assert_array_equal(model.predict(X), expected)
        assert "rejected" in model.predict(X)
        assert_array_equal(model.decisions_, ["ant", "bee", "cat", "rejected"])

    @pytest.mark.parametrize(
        "labels", [[date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)], [b"a", b"b", b"c"]]
    )
    def test_labels_of_any_type_that_the_classifier_takes(self, labels):
        target = np.unique(names, return_inverse=True)[1]
        base, unusual = CoupledSVC().fit(X, target), np.array(labels, dtype=object)[target]
        model = DecisionClassifier(CoupledSVC(), cost=ASYMMETRIC).fit(X, unusual)
        expected = decide(base.predict_proba(X), ASYMMETRIC, classes=labels)
        assert_array_equal(model.predict(X), expected)

    def test_costs_move_decisions_away_from_the_argmax(self):
        model = DecisionClassifier(GaussianNB(), cost=ASYMMETRIC).fit(X, names)
        likely = model.classes_[model.predict_proba(X).argmax(axis=1)]
        assert (model.predict(X) != likely).any()

    def test_defaults_change_nothing(self):
        model, base = DecisionClassifier(GaussianNB()).fit(X, names), GaussianNB().fit(X, names)
        assert_array_equal(model.predict_proba(X), base.predict_proba(X))
        assert_array_equal(model.predict(X), base.predict(X))

    def test_other_decisions_than_classes(self):
        cost = [[0, 3], [1, 1], [2, 0]]
        model = DecisionClassifier(GaussianNB(), cost=cost, decisions=["wait", "operate"])
        assert set(model.fit(X, names).predict(X)) == {"wait", "operate"}
        with pytest.raises(ValueError, match="cost has columns for 2 decisions.*pass decisions"):
            DecisionClassifier(GaussianNB(), cost=cost).fit(X, names)
        with pytest.raises(ValueError, match="decisions must hold a label for each of the 2"):
            DecisionClassifier(GaussianNB(), cost=cost, decisions=["a"]).fit(X, names)

    @pytest.mark.parametrize("labels", [y == 1, names, np.array([4, 7, 9])[y]])
    def test_rejected_rows_count_as_wrong(self, labels):
        model = DecisionClassifier(GaussianNB(), reject_cost=0.1).fit(X, labels)
        decided = model.predict(X)
        rejected = decided == model.decisions_[-1]
        assert 0 < rejected.sum() < 50
        weight = np.arange(150.0)
        right = ~rejected & (decided == labels)
        assert model.score(X, labels) == pytest.approx(right.mean())
        assert model.score(X, labels, weight) == pytest.approx(np.average(right, weights=weight))
        with pytest.raises(ValueError, match="inconsistent numbers"):
            model.score(X, labels[:9])

    def test_truth_values_by_other_types(self):
        model = DecisionClassifier(GaussianNB(), reject_cost=0.1).fit(X, y == 1)
        expected = model.score(X, y == 1)
        for labels in ((y == 1).tolist(), (y == 1) * 1, pd.array(y == 1, dtype="boolean")):
            assert model.score(X, labels) == expected

    def test_truth_values_stay_so_without_rejection(self):
        decided = DecisionClassifier(GaussianNB()).fit(X, y == 1).predict(X)
        assert decided.dtype == np.bool_

    def test_times(self):
        days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="M8[D]")[y]
        model = DecisionClassifier(GaussianNB(), reject_cost=0.1).fit(X, days)
        decided = model.predict(X)
        assert decided.dtype == days.dtype and 0 < np.isnat(decided).sum() < 50
        assert model.score(X, days) == pytest.approx((decided == days).mean())

    def test_probabilities_only_where_the_estimator_has_them(self):
        for method in ("predict_proba", "predict_log_proba"):
            assert hasattr(DecisionClassifier(), method)
            assert not hasattr(DecisionClassifier(LinearSVC()), method)
            model = DecisionClassifier(GaussianNB()).fit(X, names)
            assert hasattr(model.set_params(estimator=LinearSVC()), method)

    def test_logarithms(self):
        model = DecisionClassifier(GaussianNB(), target_prior=[0.5, 0.5, 0]).fit(X, names)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            logs = model.predict_log_proba(X)
        assert_allclose(np.exp(logs), model.predict_proba(X), atol=1e-15)
        assert (logs[:, 2] == -np.inf).all()

    @pytest.mark.parametrize(
        "changes", [{"cost": np.eye(2)}, {"target_prior": "even"}, {"estimator": LinearSVC()}]
    )
    def test_a_failed_fit_leaves_it_as_it_was(self, changes):
        model = DecisionClassifier(GaussianNB(), target_prior="uniform").fit(X, names)
        expected = model.predict_proba(X)
        before = {**vars(model), **changes}
        with pytest.raises(ValueError):
            model.set_params(**changes).fit(X[:, :2], names)
        assert vars(model) == before
        assert_array_equal(model.predict_proba(X), expected)

    def test_trained_frequencies_are_weighted(self):
        weight = np.array([1.0, 2.0, 5.0])[y]
        model = DecisionClassifier(GaussianNB(), target_prior="uniform")
        model.fit(X, names, sample_weight=weight)
        assert_allclose(model.trained_prior_, [1 / 8, 2 / 8, 5 / 8])
        base = GaussianNB().fit(X, names, sample_weight=weight)
        expected = adjust_prior(base.predict_proba(X), [1, 2, 5], [1, 1, 1])
        assert_allclose(model.predict_proba(X), expected, atol=1e-12)

    def test_trained_frequencies_may_be_given(self):
        balanced = LogisticRegression(class_weight="balanced")
        model = DecisionClassifier(balanced, trained_prior="uniform", target_prior=[1, 2, 3])
        model.fit(X[30:], names[30:])
        p = clone(balanced).fit(X[30:], names[30:]).predict_proba(X)
        assert_allclose(model.predict_proba(X), adjust_prior(p, [1, 1, 1], [1, 2, 3]), atol=1e-12)

    def test_frozen_estimators_are_not_fitted(self):
        base = GaussianNB().fit(X, names)
        model = DecisionClassifier(FrozenEstimator(base))
        model.fit(X[:70], names[:70])  # no cats
        assert model.estimator_.estimator is base
        assert_array_equal(model.classes_, ["ant", "bee", "cat"])
        assert_allclose(model.trained_prior_, [5 / 7, 2 / 7, 0])

    def test_frozen_estimators_and_classes_they_do_not_know(self):
        base = GaussianNB().fit(X[:100], names[:100])
        with pytest.raises(ValueError, match="'cat'.*none of the classes of the frozen estimator"):
            DecisionClassifier(FrozenEstimator(base)).fit(X, names)

    def test_frozen_estimators_without_a_class_in_training(self):
        base = GaussianNB().fit(X, names)
        model = DecisionClassifier(FrozenEstimator(base), target_prior=[1, 1, 1])
        with pytest.raises(ValueError, match="trained is 0 for class 2"):
            model.fit(X[:70], names[:70])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"cost": np.eye(2)}, "a row for each of the 3 classes"),
            ({"cost": [[0, 1, np.nan]] * 3}, r"cost\[0, 2\] is nan"),
            ({"reject_cost": np.inf}, "reject_cost must be"),
            ({"reject_cost": 0.1, "rejected": 7}, "rejected=7 cannot stand"),
            ({"target_prior": [1, 2]}, "target_prior must hold one frequency for each of the 3"),
            ({"target_prior": "even"}, "target_prior must be an array, 'uniform' or None"),
            ({"trained_prior": [-1, 2, 3]}, "trained_prior must hold frequencies or counts"),
            ({"trained_prior": [0, 2, 3], "target_prior": [1, 1, 1]}, "trained is 0 for class 0"),
            ({"estimator": LinearSVC()}, "LinearSVC has no predict_proba.*CoupledClassifier"),
        ],
    )
    def test_bad_parameters_are_told_in_fit(self, options, message):
        options = {"estimator": GaussianNB(), **options}
        with pytest.raises(ValueError, match=message):
            DecisionClassifier(**options).fit(X, names)

    def test_unfitted_one_class_and_weights_nobody_takes(self):
        with pytest.raises(NotFittedError):
            DecisionClassifier().predict(X)
        with pytest.raises(ValueError, match="only one class"):
            DecisionClassifier(GaussianNB()).fit(X[:20], y[:20])
        with pytest.raises(ValueError, match="KNeighborsClassifier.fit does not take it"):
            DecisionClassifier(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(150))

    def test_a_frozen_estimator_leaves_the_weights_to_the_frequencies(self):
        frozen = FrozenEstimator(KNeighborsClassifier().fit(X, y))
        model = DecisionClassifier(frozen).fit(X, y, sample_weight=1.0 + y)
        assert_allclose(model.trained_prior_, np.array([1, 2, 3]) / 6)

    @pytest.mark.parametrize("data", [X.astype(np.float32), pd.DataFrame(X), sparse.csr_array(X)])
    def test_kinds_of_x(self, data):
        model = DecisionClassifier(LogisticRegression(), cost=ASYMMETRIC).fit(data, names)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict(data), model.predict(data))
        assert_array_equal(model.predict(data[:1]), model.predict(data)[:1])

    def test_in_searches_and_pipelines(self):
        coupled = CoupledClassifier(GaussianNB(), cv=2)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), DecisionClassifier(coupled)),
            {
                "decisionclassifier__cost": [None, ASYMMETRIC],
                "decisionclassifier__estimator__combiner": ["wlw2", "ht"],
            },
            cv=2,
        ).fit(X, names)
        assert search.best_score_ > 0.9
        assert search.predict_proba(X).shape == (150, 3)

    def test_changed_parameters_wait_for_fit(self):
        model = DecisionClassifier(GaussianNB()).fit(X, names)
        before = model.predict(X)
        model.set_params(reject_cost=0.0, cost=ASYMMETRIC)
        assert_array_equal(model.predict(X), before)

    def test_metadata_routing(self):
        weight = np.array([1.0, 2.0, 5.0])[y]
        with sklearn.config_context(enable_metadata_routing=True):
            asks = GaussianNB().set_fit_request(sample_weight=True)
            model = DecisionClassifier(asks).fit(X, names, sample_weight=weight)
        assert_allclose(model.estimator_.class_prior_, [1 / 8, 2 / 8, 5 / 8])

    def test_weights_by_another_name_are_the_same_weights(self):
        weight = np.array([1.0, 2.0, 5.0])[y]
        with sklearn.config_context(enable_metadata_routing=True):
            asks = GaussianNB().set_fit_request(sample_weight="importance")
            model = DecisionClassifier(asks, target_prior="uniform")
            for given in (weight, weight.tolist(), pd.Series(weight, index=np.arange(150)[::-1])):
                model.fit(X, names, importance=given)
                assert_allclose(model.trained_prior_, [1 / 8, 2 / 8, 5 / 8])
                assert_allclose(model.estimator_.class_prior_, [1 / 8, 2 / 8, 5 / 8])
            with pytest.raises(ValueError, match="Negative values"):
                model.fit(X, names, importance=-weight)


def test_zero_rows_are_answered():
    model = DecisionClassifier(LogisticRegression(max_iter=500), reject_cost=0.1)
    coupled = DecisionClassifier(CoupledClassifier(LinearSVC()), target_prior=[0.2, 0.3, 0.5])
    assert coupled.fit(X, y).predict(X[:0]).shape == (0,)
    assert coupled.predict_proba(X[:0]).shape == (0, 3)
    with pytest.raises(ValueError, match="required by LogisticRegression"):
        model.fit(X, y).predict(X[:0])


def test_differences_of_costs_that_overflow():
    assert decide([[0.9, 0.1]], [[1e308, -1e308], [-1e308, 1e308]])[0] == 1
    largest = np.full((2, 2), 1.7e308)
    assert decide([[1.0, 0.0]], largest, reject_cost=-1.7e308)[0] == -1
