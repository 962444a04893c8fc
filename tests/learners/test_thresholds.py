"""Threshold search against exhaustive search; labels and probabilities with a threshold."""

from __future__ import annotations

import pickle

import naive_thresholds
import numpy as np
import pandas as pd
import pytest
from all_pairs import checks_in_turn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import (
    GroupKFold,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from experiments.simulated import gaussian_classes
from manyclass import CoupledClassifier
from manyclass.learners.threshold_search import CRITERIA, best_threshold
from manyclass.learners.thresholds import ThresholdOptimized

X, y = make_classification(
    90, 4, n_informative=2, n_redundant=0, weights=[0.7], flip_y=0.2, random_state=3
)
names = np.array(["off", "on"])[y]
FRAME = pd.DataFrame(X, columns=list("abcd"))
LOSSES = {
    "error": naive_thresholds.error,
    "balanced-error": naive_thresholds.balanced_error,
    "log-loss": naive_thresholds.log_loss,
}


# The default has all checks. The others take turns.
@checks_in_turn(
    [ThresholdOptimized()],
    [
        ThresholdOptimized(GaussianNB(), criterion="log-loss", cv=3),
        ThresholdOptimized(LinearDiscriminantAnalysis(), cv=3),
        ThresholdOptimized(KNeighborsClassifier(), criterion="balanced-error"),
    ],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- the search ------------------------------------------------------------------------

# Multiples of 1/4: sums, halves and comparisons are exact.
quarters = st.integers(-12, 12).map(lambda i: i / 4)
samples = st.lists(
    st.tuples(st.integers(0, 1), quarters, st.integers(0, 3)), min_size=2, max_size=12
)


def columns(rows):
    """Labels, scores and weights; both classes have positive weight."""
    labels, scores, weights = (list(column) for column in zip(*rows, strict=True))
    assume({0, 1} == {label for label, _, w in rows if w > 0})
    return labels, scores, weights


class TestSearch:
    @pytest.mark.parametrize("criterion", ["error", "balanced-error"])
    @given(rows=samples)
    @settings(deadline=None, max_examples=60)
    def test_is_the_best_of_all_intervals(self, criterion, rows):
        labels, scores, weights = columns(rows)
        expected = naive_thresholds.best_threshold(labels, scores, weights, LOSSES[criterion])
        found = best_threshold(labels, scores, weights, criterion)
        assert found == pytest.approx(expected, abs=1e-12)

    @given(rows=st.lists(st.tuples(st.integers(0, 1), st.floats(), st.floats(0, 1e6)), min_size=2))
    @settings(deadline=None, max_examples=60)
    def test_no_score_is_a_better_threshold(self, rows):
        labels, scores, weights = columns(rows)
        assume(not np.isnan(scores).any())
        t = best_threshold(labels, scores, weights)
        bounded = np.clip(scores, -1e300, 1e300)
        least = min(
            naive_thresholds.error(labels, bounded, weights, cut) for cut in [-np.inf, *bounded]
        )
        reached = naive_thresholds.error(labels, bounded - t, weights, 0.0)
        assert reached <= least + 1e-11 * sum(weights)

    @given(rows=samples)
    @settings(deadline=None, max_examples=30)
    def test_log_loss_has_its_minimum_there(self, rows):
        labels, scores, weights = columns(rows)
        t = best_threshold(labels, scores, weights, "log-loss")
        at = minimize_scalar(
            lambda t: naive_thresholds.log_loss(labels, scores, weights, t),
            bounds=(-30, 30),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert t == pytest.approx(at.x, abs=1e-4)
        loss = naive_thresholds.log_loss(labels, scores, weights, t)
        assert loss <= at.fun * (1 + 1e-12)

    @pytest.mark.parametrize("criterion", CRITERIA)
    @given(rows=samples, shift=quarters)
    @settings(deadline=None, max_examples=30)
    def test_adding_a_constant_moves_the_threshold_by_it(self, criterion, rows, shift):
        labels, scores, weights = columns(rows)
        moved = np.array(scores) + shift
        t, after = (best_threshold(labels, d, weights, criterion) for d in (scores, moved))
        losses = [LOSSES[criterion](labels, scores, weights, v) for v in (t, after - shift)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-9)
        if criterion == "log-loss" or self.is_unique(labels, scores, weights, criterion):
            assert after == pytest.approx(t + shift, abs=1e-9)

    @staticmethod
    def is_unique(labels, scores, weights, criterion):
        used = [s for s, w in zip(scores, weights, strict=True) if w > 0]
        losses = sorted(
            LOSSES[criterion](labels, scores, weights, t)
            for _, t in naive_thresholds.candidates(used)
        )
        return losses[1] - losses[0] > 1e-9

    @pytest.mark.parametrize("criterion", CRITERIA)
    @given(rows=samples)
    @settings(deadline=None, max_examples=30)
    def test_weights_are_repetitions(self, criterion, rows):
        labels, scores, weights = columns(rows)
        repeated = [np.repeat(values, weights) for values in (labels, scores)]
        weighted = best_threshold(labels, scores, weights, criterion)
        assert weighted == pytest.approx(best_threshold(*repeated, criterion=criterion), abs=1e-9)

    @given(rows=samples)
    @settings(deadline=None, max_examples=30)
    def test_functions_see_every_interval(self, rows):
        labels, scores, weights = columns(rows)

        def wrong(truth, shifted, weight):
            assert weight.min() > 0
            return weight[(shifted > 0) != truth].sum()

        assert best_threshold(labels, scores, weights, wrong) == best_threshold(
            labels, scores, weights
        )

    def test_functions_see_a_few_hundred_of_many_intervals(self):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 2, 5000)
        scores = rng.normal(labels - 0.5, 1.0)
        tried = []

        def brier(truth, shifted, weight):
            tried.append(shifted)
            return brier_score_loss(truth, expit(shifted), sample_weight=weight)

        t = best_threshold(labels, scores, criterion=brier)
        assert len(tried) <= 257
        at = minimize_scalar(lambda t: np.mean((labels - expit(scores - t)) ** 2))
        assert t == pytest.approx(at.x, abs=0.02)
        assert any(((shifted > 0) == (scores > 0)).all() for shifted in tried)

    def test_the_rule_for_ties(self):
        # Errors: all intervals from the first to the last have one; 0 lies in [-1, 3).
        assert best_threshold([1, 0, 1, 0], [-5, -1, 3, 4]) == 1.0
        # Neither end is nearer to zero: the threshold nearer to zero, then the lower.
        assert best_threshold([0, 1, 0, 1, 0], [-9, -1, 0, 1, 9]) in (-0.5, 0.5)
        assert best_threshold([1, 0], [-1.0, 1.0]) == -2.0

    @pytest.mark.parametrize(
        ("labels", "scores", "expected"),
        [
            ([1, 1, 1, 0], [-8, -7, -6, -6], -8 - 2 / 2 / 2),  # all are of class 1
            ([0, 0, 0, 1], [7, 8, 9, 7], 9 + 2 / 2 / 2),  # all are of class 0
            ([0, 1, 1], [2, 2, 2], 1.5),  # one score for all
            ([0, 0, 1], [2, 2, 2], 2.5),
            ([0, 1], [-np.inf, np.inf], 0.0),
        ],
    )
    def test_ends(self, labels, scores, expected):
        assert best_threshold(labels, scores) == expected

    def test_neighbouring_floats_are_distinguished(self):
        for low in (1.0, -1.0, 0.0, 1e-320, 1e300 * (1 - 2**-52)):
            high = np.nextafter(low, np.inf)
            t = best_threshold([0, 1], [low, high])
            assert_array_equal(np.array([low, high]) - t > 0, [False, True])

    def test_extreme_scores_and_weights(self):
        for criterion in CRITERIA:
            for scores in ([-np.inf, np.inf, 1.0], [1e300, -1e300, 0.0], [5e-324, 0.0, 0.0]):
                for weights in ([1, 1, 1], [1e-300, 1e-300, 1], [1e200, 1, 1e-200]):
                    assert np.isfinite(best_threshold([0, 1, 1], scores, weights, criterion))

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0, 1], [0.0, np.nan]), "scores are NaN at row 1"),
            (([0, 2], [0.0, 1.0]), "y must contain 0 and 1 only, got 2"),
            ((["a", "b"], [0.0, 1.0]), "y must contain 0 and 1 only, got 'a'"),
            (([1, 1], [0.0, 1.0]), "one class only.*samples of both"),
            (([0, 1], [0.0, 1.0], [0, 1]), "one class only, if samples of weight 0 are ignored"),
            (([0, 1], [0.0, 1.0], [-1, 1]), "[Nn]egative"),
            (([0, 1], [0.0, 1.0, 2.0]), "inconsistent numbers of samples"),
            (([0, 1], [0.0, 1.0], None, "accuracy"), "criterion must be one of error.*'accuracy'"),
            (([0, 1], [0.0, 1.0], None, lambda *_: np.nan), "criterion returned NaN.*-0.5"),
        ],
    )
    def test_refuses(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            best_threshold(*arguments)


# -- the logit -------------------------------------------------------------------------


class Fixed(ClassifierMixin, BaseEstimator):
    """The logit is the first column of X."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        r = expit(X[:, 0])
        return np.column_stack([1 - r, r])


class FixedLogit(Fixed):
    def decision_function(self, X):
        return X[:, 0]


class FixedOther(Fixed):
    def decision_function(self, X):
        return 3 * X[:, 0] + 1


class OnlyLabels(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class TestLogit:
    far = np.array([[-800.0], [-3.0], [2.0], [800.0]])

    def test_is_the_decision_function_where_that_is_one(self):
        model = ThresholdOptimized(FixedLogit()).fit(self.far, [0, 0, 1, 1])
        assert model.threshold_ == -0.5
        assert_array_equal(model.decision_function(self.far), self.far[:, 0] + 0.5)

    @pytest.mark.parametrize("base", [Fixed(), FixedOther()])
    def test_is_bounded_log_odds_otherwise(self, base):
        model = ThresholdOptimized(base).fit(self.far, [0, 0, 1, 1])
        assert model.threshold_ == pytest.approx(-0.5)
        bounded = np.clip(self.far[:, 0], np.log(1e-12), -np.log(1e-12))
        assert_allclose(model.decision_function(self.far), bounded + 0.5, atol=1e-3)

    @pytest.mark.parametrize(
        "base", [LogisticRegression(), LinearDiscriminantAnalysis(), LinearSVC(), SVC()]
    )
    def test_of_learners_with_a_decision_function(self, base):
        model = ThresholdOptimized(base).fit(X, y)
        expected = clone(base).fit(X, y).decision_function(X) - model.threshold_
        assert_allclose(model.decision_function(X), expected, atol=1e-6)

    @pytest.mark.parametrize("base", [GaussianNB(), KNeighborsClassifier(3)])
    def test_of_learners_without(self, base):
        model = ThresholdOptimized(base).fit(X, y)
        with np.errstate(divide="ignore"):
            r = np.log(base.fit(X, y).predict_proba(X)).clip(np.log(1e-12))
        expected = r[:, 1] - r[:, 0] - model.threshold_
        assert_allclose(model.decision_function(X), expected, atol=1e-6)

    def test_labels_alone_are_refused(self):
        with pytest.raises(ValueError, match="OnlyLabels has neither.*CalibratedClassifierCV"):
            ThresholdOptimized(OnlyLabels()).fit(X, y)

    def test_nan_is_refused(self):
        with pytest.raises(ValueError, match="FixedLogit gives NaN for row 2: impute"):
            ThresholdOptimized(FixedLogit()).fit(np.array([[0.0], [1.0], [np.nan]]), [0, 1, 1])


# -- the estimator ---------------------------------------------------------------------


class TestLabelsAndProbabilities:
    @given(
        scores=st.lists(st.floats(-1e6, 1e6) | st.floats(-1e-16, 1e-16), min_size=4, max_size=30),
        criterion=st.sampled_from(sorted(CRITERIA)),
    )
    @settings(deadline=None, max_examples=40)
    def test_always_agree(self, scores, criterion):
        d = np.array(scores)[:, None]
        model = ThresholdOptimized(FixedLogit(), criterion).fit(d, np.arange(len(d)) % 2)
        near = model.threshold_ + np.array([[-1e-17], [0.0], [1e-17]])
        for rows in (d, near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)):
            p, shifted = model.predict_proba(rows), model.decision_function(rows)
            assert_array_equal(model.predict(rows), p.argmax(axis=1))
            assert_array_equal(model.predict(rows), shifted > 0)
            assert_allclose(p[:, 1], expit(shifted), atol=1e-15)
            assert_allclose(p.sum(axis=1), 1, atol=1e-15)

    @pytest.mark.parametrize("criterion", ["error", "balanced-error"])
    @pytest.mark.parametrize("base", [LogisticRegression(), GaussianNB()])
    def test_training_loss_is_not_above_that_of_the_base(self, base, criterion):
        model = ThresholdOptimized(base, criterion).fit(X, names)
        without, shifted = model.estimator_.predict(X), model.predict(X)
        loss = LOSSES[criterion]
        ones = np.ones(len(y))
        before, after = (loss(y, 1.0 * (p == "on"), ones, 0.5) for p in (without, shifted))
        assert after <= before

    def test_log_loss_balances_the_probabilities(self):
        p = ThresholdOptimized(GaussianNB(), "log-loss").fit(X, y).predict_proba(X)
        assert p[:, 1].mean() == pytest.approx(y.mean(), abs=1e-9)


class TestFolds:
    @pytest.mark.parametrize("cv", [5, StratifiedKFold(5), list(StratifiedKFold(5).split(X, y))])
    def test_thresholds_are_those_of_out_of_sample_logits(self, cv):
        left_out = cross_val_predict(
            LogisticRegression(), X, y, cv=StratifiedKFold(5), method="decision_function"
        )
        model = ThresholdOptimized(cv=cv).fit(X, names)
        assert model.threshold_ == pytest.approx(best_threshold(y, left_out), abs=1e-6)
        assert_allclose(model.estimator_.coef_, LogisticRegression().fit(X, y).coef_, atol=1e-9)

    def test_rows_tested_several_times_count_as_often(self):
        cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
        rows, logits = [], []
        for train, test in cv.split(X, y):
            rows.extend(test)
            logits.extend(LogisticRegression().fit(X[train], y[train]).decision_function(X[test]))
        expected = best_threshold(y[rows], logits, criterion="log-loss")
        model = ThresholdOptimized(criterion="log-loss", cv=cv).fit(X, y)
        assert model.threshold_ == pytest.approx(expected, abs=1e-6)

    def test_folds_without_a_class_are_skipped(self):
        good = list(StratifiedKFold(3).split(X, y))
        bad = np.flatnonzero(y == 0), np.flatnonzero(y == 1)
        model = ThresholdOptimized(cv=[bad, *good]).fit(X, y)
        assert model.threshold_ == ThresholdOptimized(cv=good).fit(X, y).threshold_

    def test_a_class_that_cannot_be_left_out_is_named(self):
        few = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:1]]
        with pytest.warns(UserWarning, match="no sample of 'off', 'on' .*stays at 0") as record:
            model = ThresholdOptimized(GaussianNB(), cv=5).fit(X[few], names[few])
        assert record[0].filename == __file__
        assert model.threshold_ == 0
        both = np.r_[few, np.flatnonzero(y == 1)[1:2]]
        assert ThresholdOptimized(GaussianNB(), cv=5).fit(X[both], names[both]).threshold_ != 0

    def test_precomputed_kernels_are_cut_both_ways(self):
        plain = ThresholdOptimized(SVC(kernel="linear"), cv=3).fit(X, y)
        gram = ThresholdOptimized(SVC(kernel="precomputed"), cv=3).fit(X @ X.T, y)
        assert gram.threshold_ == pytest.approx(plain.threshold_, abs=1e-3)

    @pytest.mark.parametrize("cv", [1, 0, "loo", 2.5])
    def test_invalid_splits_are_refused(self, cv):
        with pytest.raises(ValueError, match="n_splits|cross-validation|cv"):
            ThresholdOptimized(cv=cv).fit(X, y)


class TestWeights:
    w = np.random.RandomState(0).randint(0, 3, len(y)).astype(float)

    def test_reach_the_base_and_the_criterion(self):
        model = ThresholdOptimized(criterion="log-loss").fit(X, y, sample_weight=self.w)
        base = LogisticRegression().fit(X, y, sample_weight=self.w)
        d = base.decision_function(X)
        assert_allclose(model.estimator_.coef_, base.coef_)
        assert model.threshold_ == pytest.approx(best_threshold(y, d, self.w, "log-loss"))
        assert model.threshold_ != pytest.approx(best_threshold(y, d, None, "log-loss"))

    def test_for_a_base_that_takes_none_are_refused(self):
        with pytest.raises(ValueError, match="LinearDiscriminantAnalysis.fit does not take it"):
            ThresholdOptimized(LinearDiscriminantAnalysis()).fit(X, y, sample_weight=self.w)

    def test_for_a_base_that_takes_none_move_the_threshold_by_routing(self):
        heavy = 1.0 + 99.0 * y
        base = LinearDiscriminantAnalysis()
        with config_context(enable_metadata_routing=True):
            model = ThresholdOptimized(base).fit(X, y, sample_weight=heavy)
        d = base.fit(X, y).decision_function(X)
        assert model.threshold_ == best_threshold(y, d, heavy) < best_threshold(y, d)

    def test_a_class_without_weight_is_named(self):
        with pytest.raises(ValueError, match="0 for all samples of class 'on'"):
            ThresholdOptimized().fit(X, names, sample_weight=1.0 * (y == 0))

    def test_fit_params_reach_the_base(self):
        class Keen(GaussianNB):
            def fit(self, X, y, sample_weight=None, mark=None):
                self.mark_ = mark
                return super().fit(X, y, sample_weight)

        model = ThresholdOptimized(Keen(), cv=3).fit(X, y, mark=np.arange(len(y)))
        assert_array_equal(model.estimator_.mark_, np.arange(len(y)))

    def test_routing(self):
        groups = np.arange(len(y)) % 3
        with config_context(enable_metadata_routing=True):
            base = LogisticRegression().set_fit_request(sample_weight=True)
            cv = GroupKFold(3)  # requests groups by default
            model = ThresholdOptimized(base, cv=cv).set_fit_request(sample_weight=True)
            model.fit(X, y, sample_weight=self.w, groups=groups)
            outer = CoupledClassifier(model, cv=None).fit(X, y, sample_weight=self.w, groups=groups)
        splits = list(cv.split(X, y, groups))
        expected = ThresholdOptimized(cv=splits).fit(X, y, sample_weight=self.w)
        assert model.threshold_ == expected.threshold_
        assert_allclose(outer.predict_proba(X), model.predict_proba(X), atol=1e-6)

    @pytest.mark.parametrize("cv", [None, 3])
    def test_by_another_name_are_the_same(self, cv):
        expected = ThresholdOptimized(cv=cv).fit(X, y, sample_weight=self.w)
        with config_context(enable_metadata_routing=True):
            base = LogisticRegression().set_fit_request(sample_weight="importance")
            model = ThresholdOptimized(base, cv=cv)
            for given in (self.w, self.w.tolist(), pd.Series(self.w, index=np.arange(90)[::-1])):
                assert model.fit(X, y, importance=given).threshold_ == expected.threshold_
            with pytest.raises(ValueError, match="Negative values"):
                model.fit(X, y, importance=-self.w)
            with pytest.raises(ValueError, match="0 for all samples of class 'on'"):
                model.fit(X, names, importance=1.0 * (y == 0))


class TestLife:
    def test_more_classes_are_sent_to_coupling(self):
        three = np.arange(90) % 3
        with pytest.raises(ValueError, match=r"3 classes: use CoupledClassifier\(ThresholdOptim"):
            ThresholdOptimized().fit(X, three)
        model = CoupledClassifier(ThresholdOptimized(), combiner="ht").fit(X, three)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert all(type(binary) is ThresholdOptimized for binary in model.estimators_)

    def test_an_unknown_criterion_is_refused_before_anything_is_fitted(self):
        with pytest.raises(ValueError, match="criterion must be one of.*got 'f1'"):
            ThresholdOptimized(OnlyLabels(), criterion="f1").fit(X, y)

    def test_inputs_of_all_kinds(self):
        p = ThresholdOptimized(cv=3).fit(X, names).predict_proba(X)
        for data in (X.tolist(), csr_array(X), FRAME, np.asfortranarray(X), X.astype(np.float32)):
            model = ThresholdOptimized(cv=3).fit(data, names)
            assert_allclose(model.predict_proba(data), p, atol=1e-3)
            assert_allclose(model.predict_proba(data[:1]), p[:1], atol=1e-3)
        assert_array_equal(ThresholdOptimized().fit(FRAME, names).feature_names_in_, list("abcd"))

    def test_frames_reach_the_base_as_they_are(self):
        base = make_pipeline(StandardScaler().set_output(transform="pandas"), LogisticRegression())
        model = ThresholdOptimized(base, cv=3).fit(FRAME, names)
        assert_array_equal(model.estimator_.feature_names_in_, list("abcd"))
        with pytest.raises(ValueError, match="feature names"):
            model.predict(FRAME[list("dcba")])

    def test_copies(self):
        model = ThresholdOptimized(GaussianNB(), criterion="balanced-error", cv=3).fit(X, names)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        fresh = clone(model)
        with pytest.raises(NotFittedError):
            fresh.decision_function(X)
        assert fresh.fit(X, names).threshold_ == model.threshold_
        assert model.estimator_ is not model.estimator


# -- the paper -------------------------------------------------------------------------


class TestTenGaussians:
    """Hastie & Tibshirani (1998), section 3 and figure 3, linear discriminants."""

    def test_coupled_thresholded_pairs_nearly_halve_the_error(self):
        linear = LinearDiscriminantAnalysis()
        models = [
            linear,
            CoupledClassifier(ThresholdOptimized(linear), combiner="ht", cv=None),
            CoupledClassifier(ThresholdOptimized(linear), combiner="max-wins", cv=None),
        ]
        errors = []
        for seed in range(4):
            population = gaussian_classes(uniform="deviations", random_state=seed)
            X, y = population.sample(100, random_state=100 + seed)
            X_new, y_new = population.sample(200, random_state=200 + seed)
            errors.append([1 - model.fit(X, y).score(X_new, y_new) for model in models])
        base, coupled, max_wins = np.mean(errors, axis=0)
        assert coupled <= 0.65 * base
        assert coupled < max_wins
