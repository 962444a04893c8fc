"""Out-of-sample scores: against plain loops, and proof that no model judges what it has seen."""

from __future__ import annotations

import warnings

import naive_fitting as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, codes
from manyclass.banks import fit_bank, response_kind
from manyclass.crossfit import enough_rows, make_folds, out_of_sample_scores

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=4.0, random_state=0)
SPARSE = np.array([[1, 1, 0, -1], [-1, 0, 1, -1], [0, -1, 1, 1], [0, -1, -1, 1]], dtype=np.int8)
CODES = {
    "one-vs-one": codes.one_vs_one(4),
    "one-vs-rest": codes.one_vs_rest(4),
    "sparse": SPARSE,
}
each_code = pytest.mark.parametrize("code", CODES.values(), ids=CODES)
classes = np.arange(4)
MARGINS = LinearSVC(dual=False, tol=1e-10)


def crossfit(estimator, X, y, code, folds, log=None):
    """Fit everything and score the training set out of sample; log the rows of each refit."""
    kind = response_kind(estimator, ("probability", "margin"))

    def refit(rows):
        if log is not None:
            log.append(rows)
        return fit_bank(estimator, X, y, code, kind, rows=rows)

    return out_of_sample_scores(fit_bank(estimator, X, y, code, kind), refit, X, y, code, folds)


class Witness(ClassifierMixin, BaseEstimator):
    """Refuses to judge a row it was trained on; X[:, 0] holds the row's number."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.seen_ = set(X[:, 0])
        return self

    def decision_function(self, X):
        again = self.seen_.intersection(X[:, 0])
        assert not again, f"asked about rows {again} of its own training set"
        return X[:, 1] - X[:, 2]


NUMBERED = np.column_stack([np.arange(len(y)), X])


class TestScores:
    @each_code
    @pytest.mark.parametrize(
        "estimator",
        [MARGINS, GaussianNB(), LinearDiscriminantAnalysis()],
        ids=lambda estimator: type(estimator).__name__,
    )
    def test_equal_the_plain_loops(self, estimator, code):
        folds = make_folds(3, X, y, classes)
        expected = naive.out_of_sample_scores(estimator, X, y, code, folds)
        scores = crossfit(estimator, X, y, code, folds)
        assert not np.isnan(expected).any()
        assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)

    @each_code
    @pytest.mark.parametrize(
        "cv", [4, LeaveOneOut(), RepeatedStratifiedKFold(n_splits=3, n_repeats=2)]
    )
    def test_come_from_models_that_did_not_see_the_sample(self, cv, code):
        folds = make_folds(cv, NUMBERED, y, classes)
        scores = crossfit(Witness(), NUMBERED, y, code, folds)
        assert_allclose(scores, np.tile((X[:, 0] - X[:, 1])[:, None], code.shape[1]))

    def test_the_witness_speaks_up(self):
        everything = np.arange(len(y))
        with pytest.raises(AssertionError, match="its own training set"):
            crossfit(Witness(), NUMBERED, y, SPARSE, [(everything, everything)])

    @each_code
    def test_a_whole_fit_asks_no_model_about_its_own_samples(self, code):
        CoupledClassifier(Witness(), code=code, combiner="kl", cv=3).fit(NUMBERED, y)

    @each_code
    def test_repeated_folds_give_the_mean(self, code):
        cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)
        folds = make_folds(cv, X, y, classes)
        assert len(folds) == 9
        expected = naive.out_of_sample_scores(MARGINS, X, y, code, folds)
        assert_allclose(crossfit(MARGINS, X, y, code, folds), expected, rtol=1e-9)
        single = [crossfit(MARGINS, X, y, code, folds[i : i + 3]) for i in (0, 3, 6)]
        assert_allclose(np.mean(single, axis=0), expected, rtol=1e-9)

    def test_all_columns_of_a_fold_share_its_rows(self):
        log = []
        folds = make_folds(4, X, y, classes)
        crossfit(MARGINS, X, y, SPARSE, folds, log)
        assert len(log) == 4
        for rows, (train, _) in zip(log, folds, strict=True):
            assert_array_equal(rows, train)

    @each_code
    def test_samples_never_left_out_are_nan_only_where_they_take_part(self, code):
        everything, first = np.arange(len(y)), np.arange(0, len(y), 2)
        folds = [(np.setdiff1d(everything, half), half) for half in (first[:15], first[15:])]
        scores = crossfit(MARGINS, X, y, code, folds)
        expected = naive.out_of_sample_scores(MARGINS, X, y, code, folds)
        assert_allclose(scores, expected, rtol=1e-9)
        kept = np.setdiff1d(everything, first)
        assert_array_equal(np.isnan(scores[kept]), code[y[kept]] != 0)
        assert not np.isnan(scores[first]).any()

    @each_code
    @pytest.mark.parametrize("estimator", [MARGINS, GaussianNB()])
    def test_models_that_lack_a_side_have_no_say(self, estimator, code):
        ordered = np.argsort(y, kind="stable")  # each fold leaves out about one class
        folds = [(ordered[train], ordered[test]) for train, test in KFold(4).split(ordered)]
        expected = naive.out_of_sample_scores(estimator, X, y, code, folds)
        assert np.isnan(expected).any()
        assert_allclose(crossfit(estimator, X, y, code, folds), expected, rtol=1e-9, atol=1e-12)


@st.composite
def labels(draw):
    """Class indices with at least one class of two samples, others possibly rare."""
    counts = draw(st.lists(st.integers(1, 12), min_size=2, max_size=5).filter(lambda c: max(c) > 1))
    y = np.repeat(np.arange(len(counts)), counts)
    return np.random.RandomState(draw(st.integers(0, 99))).permutation(y)


@pytest.mark.filterwarnings("ignore:the following classes have a single sample:UserWarning")
class TestFolds:
    @settings(deadline=None, max_examples=60)
    @given(y=labels(), cv=st.integers(2, 6))
    def test_every_sample_that_can_be_left_out_is_once(self, y, cv):
        counts = np.bincount(y)
        times = np.zeros(len(y), dtype=int)
        for train, test in make_folds(cv, np.zeros((len(y), 1)), y, np.unique(y)):
            assert len(test) > 0
            assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))
            times[test] += 1
        assert_array_equal(times, counts[y] > 1)

    @settings(deadline=None, max_examples=60)
    @given(y=labels(), cv=st.integers(2, 6))
    def test_classes_are_spread_evenly_and_none_is_missing_from_training(self, y, cv):
        counts, k = np.bincount(y), len(np.unique(y))
        folds = make_folds(cv, np.zeros((len(y), 1)), y, np.unique(y))
        assert len(folds) == min(cv, counts.max())
        held_out = np.array([np.bincount(y[test], minlength=k) for _, test in folds])
        assert (np.ptp(held_out[:, counts > 1], axis=0) <= 1).all()
        assert all(np.unique(y[train]).size == k for train, _ in folds)

    def test_numbers_mean_stratified_folds(self):
        order = np.random.RandomState(0).permutation(len(y))
        expected = StratifiedKFold(3).split(X, y[order])
        for (train, test), (_, other) in zip(make_folds(3, X, y, classes), expected, strict=True):
            assert_array_equal(test, np.sort(order[other]))
            assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(y)))

    def test_ordered_rows_are_spread_over_the_folds(self):
        """Within a class, no fold is a run of neighbours."""
        ordered = np.zeros(300, dtype=np.intp)
        for _, test in make_folds(3, np.zeros((300, 1)), ordered, np.array(["a"])):
            assert len(test) == 100
            assert abs(test.mean() - 149.5) < 25

    def test_names_of_classes_do_not_matter(self):
        renamed = (y + 1) % (y.max() + 1)
        for ours, others in zip(
            make_folds(3, X, y, classes), make_folds(3, X, renamed, classes), strict=True
        ):
            assert_array_equal(ours[1], others[1])

    def test_splitters_and_lists_of_splits_are_taken_as_they_are(self):
        splitter = KFold(3, shuffle=True, random_state=5)
        expected = list(splitter.split(X))
        for cv in (splitter, expected, iter(expected)):
            for ours, theirs in zip(make_folds(cv, X, y, classes), expected, strict=True):
                for rows, other in zip(ours, theirs, strict=True):
                    assert_array_equal(rows, other)

    def test_groups_reach_the_splitter(self):
        groups = np.arange(len(y)) // 4
        for train, test in make_folds(GroupKFold(3), X, y, classes, {"groups": groups}):
            assert not set(groups[train]) & set(groups[test])

    def test_folds_do_not_depend_on_the_names_of_the_classes(self):
        renamed = np.array([2, 0, 3, 1])[y]
        folds = zip(make_folds(4, X, y, classes), make_folds(4, X, renamed, classes), strict=True)
        for ours, theirs in folds:
            assert_array_equal(ours[1], theirs[1])


class TestRareClasses:
    def test_single_samples_are_named_once(self):
        y = np.array([0, 0, 0, 1, 1, 1, 2, 3])
        names = np.array(["ant", "bee", "cat", "dog"])
        with pytest.warns(UserWarning, match="single sample each: 'cat', 'dog'.*collect") as record:
            folds = make_folds(3, np.zeros((8, 1)), y, names)
        assert len(record) == 1
        assert all(not {6, 7} & set(test) for _, test in folds)

    def test_many_single_samples_are_counted(self):
        y = np.r_[0, 0, np.arange(1, 9)]
        with pytest.warns(UserWarning, match="single sample each: 1, 2, 3, 4, 5 and 3 more"):
            make_folds(2, np.zeros((10, 1)), y, np.arange(9))

    def test_few_samples_are_spread_without_a_warning(self):
        y = np.array([0] * 10 + [1] * 2)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            folds = make_folds(5, np.zeros((12, 1)), y, np.arange(2))
        assert sum(1 in y[test] for _, test in folds) == 2

    @pytest.mark.parametrize("cv", [1, 0, -2])
    def test_less_than_two_folds_are_refused(self, cv):
        with pytest.raises(ValueError, match=f"cv={cv} .*at least 2 folds.*cv=None"):
            make_folds(cv, X, y, classes)

    def test_nothing_but_single_samples_is_refused(self):
        with pytest.raises(ValueError, match=r"at most 1 sample\(s\) per class.*cv=None"):
            make_folds(5, X[:3], np.arange(3), np.arange(3))

    @pytest.mark.parametrize("cv", ["five", 2.5])
    def test_other_things_are_refused(self, cv):
        with pytest.raises(ValueError, match="cv"):
            make_folds(cv, X, y, classes)


def test_enough_rows_are_all_rows_of_small_sets():
    y, weights = np.repeat([0, 1], 50), np.ones(100)
    rows, kept = enough_rows(y, weights)
    assert_array_equal(rows, np.arange(100))
    assert_array_equal(kept, weights)


@pytest.mark.parametrize("n_classes", [2, 5, 40])
def test_enough_rows_stand_for_all(n_classes):
    """Every class keeps its weight; rare classes keep all rows; rows of weight 0 are left out."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(n_classes, 0.5))
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, 50_000, p=shares)])
    weights = rng.integers(0, 3, len(y)).astype(float)
    weights[:n_classes] = 1.0
    rows, kept = enough_rows(y, weights)
    assert len(np.unique(rows)) == len(rows) and (np.diff(rows) > 0).all()
    assert (weights[rows] > 0).all()
    assert_allclose(np.bincount(y[rows], kept), np.bincount(y, weights))
    usable = np.bincount(y[weights > 0])
    quota = max(400, 10_000 // n_classes)
    assert_array_equal(np.bincount(y[rows]), np.minimum(usable, quota))
