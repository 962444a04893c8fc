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
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from manyclass import CoupledClassifier, codes
from manyclass._lib.compiled.dealing import deal
from manyclass.banks import MARGIN, PROBABILITY, fit_bank, response_kind
from manyclass.scores.crossfit import CrossFittedScores, calibration_rows, out_of_sample_scores
from manyclass.scores.folds import make_folds

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
    kind = response_kind(estimator, (PROBABILITY, MARGIN))

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

    @pytest.mark.parametrize("present", [0, 1])
    def test_the_only_side_there_is_may_be_left_out_as_a_whole(self, present):
        """A column is as certain in such a fold as with all data."""
        labels, weights = np.repeat([0, 1], 4), np.repeat([present == 0, present == 1], 4)
        data, params = np.arange(8.0)[:, None], {"sample_weight": weights.astype(float)}

        def fit(rows):
            return fit_bank(
                MARGINS, data, labels, codes.one_vs_one(2), MARGIN, rows=rows, fit_params=params
            )

        folds = [(np.flatnonzero(labels != c), np.flatnonzero(labels == c)) for c in (0, 1)]
        scores = out_of_sample_scores(
            fit(np.arange(8)), fit, data, labels, codes.one_vs_one(2), folds
        )
        assert_array_equal(scores, np.full((8, 1), np.inf if present == 0 else -np.inf))


class TestOneSource:
    """A scaling reads all columns: it must not tell a class by the models that scores are from."""

    @each_code
    @pytest.mark.parametrize(
        "cv", [3, RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0), KFold(4)]
    )
    def test_equals_the_plain_loops(self, cv, code):
        ordered = np.argsort(y, kind="stable")  # a fold of KFold leaves out about one class
        data, labels = X[ordered], y[ordered]
        folds = make_folds(cv, data, labels, classes)

        def fit(rows):
            return fit_bank(MARGINS, data, labels, code, MARGIN, rows=rows)

        rest = code, np.ones(len(y)), folds
        bank = fit(np.arange(len(y)))
        scores = CrossFittedScores(bank, fit, data, labels, *rest, n_by_folds=len(y))
        expected = naive.out_of_sample_scores(MARGINS, data, labels, code, folds, by_folds=True)
        rows = scores.rows_of_one_source()
        assert_array_equal(rows, np.flatnonzero(~np.isnan(expected).any(axis=1)))
        assert_allclose(scores.of_one_source(rows), expected[rows], rtol=1e-9)
        few = CrossFittedScores(bank, fit, data, labels, *rest, n_by_folds=10)
        some = few.rows_of_one_source()
        if not code.all():
            assert len(some) <= 10
        assert_array_equal(few.of_one_source(some), scores.of_one_source(some))

    @pytest.mark.parametrize("scaling", ["structured", "temperature"])
    def test_noise_teaches_a_scaling_nothing(self, scaling):
        """Discriminants of fewer rows than features are surer than those of all rows."""
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(150, 45)), np.arange(150) % 5
        model = CoupledClassifier(LinearDiscriminantAnalysis(), scaling=scaling).fit(X, y)
        p = model.predict_proba(rng.normal(size=(500, 45)))
        assert log_loss(np.arange(500) % 5, p) < 1.1 * np.log(5)


class FirstFeature(ClassifierMixin, BaseEstimator):
    """Learns nothing."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return X[:, 0]


def left_out(y, code, folds, weights, enough=None):
    data, params = np.arange(len(y), dtype=float)[:, None], {"sample_weight": weights}

    def fit(rows):
        return fit_bank(FirstFeature(), data, y, code, MARGIN, rows=rows, fit_params=params)

    everything = fit(np.arange(len(y)))
    return CrossFittedScores(everything, fit, data, y, code, weights, folds, enough=enough)


@st.composite
def foolish_folds(draw):
    """Labels, weights, a code and folds that know nothing of classes."""
    rng = np.random.RandomState(draw(st.integers(0, 2**32 - 1)))
    k, n = draw(st.integers(2, 4)), draw(st.integers(4, 12))
    y = np.sort(np.r_[np.arange(k), rng.randint(k, size=n)])
    every = {
        "one-vs-one": codes.one_vs_one(k),
        "one-vs-rest": codes.one_vs_rest(k),
        "sparse": SPARSE[:k, : 1 if k == 2 else 2],
    }
    code = every[draw(st.sampled_from(sorted(every)))]
    everything, group = np.arange(len(y)), rng.randint(draw(st.integers(2, 4)), size=len(y))
    if draw(st.booleans()):
        group = y // draw(st.integers(1, 2))
    if draw(st.booleans()):
        group[rng.rand(len(y)) < 0.3] = -1  # never left out
    tests = [np.flatnonzero(group == g) for g in range(4)]
    folds = [(np.setdiff1d(everything, test), test) for test in tests if len(test)]
    weights = rng.choice([0.0, 1.0, 2.0], len(y)) if draw(st.booleans()) else np.ones(len(y))
    return y, code, folds, weights


NAMES = np.array(["ant", "bee", "cat", "dog"])


class TestCheckOfSides:
    @staticmethod
    def outcome(scores, needed, scaled=False):
        """Return the kind of complaint, and what it says."""
        names = NAMES[: len(scores.code)]
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            try:
                scores.check_sides(names, needed=needed, scaled=scaled)
            except ValueError as error:
                return "error", str(error)
        assert len(record) <= 1
        return ("warning", str(record[0].message)) if record else ("nothing", "")

    @settings(deadline=None, max_examples=60)
    @given(case=foolish_folds(), needed=st.booleans())
    def test_equals_the_plain_loops(self, case, needed):
        y, code, folds, weights = case
        missed, none_has_both = naive.sides_not_left_out(y, code, folds, weights)
        kind, message = self.outcome(left_out(y, code, folds, weights), needed)
        if not missed:
            assert kind == "nothing"
        else:
            assert kind == ("error" if none_has_both and needed else "warning")
            assert {NAMES[c] for c, _ in missed} == {name for name in NAMES if name in message}
            assert f"{len({b for _, b in missed})} of {code.shape[1]} columns" in message

    @settings(deadline=None, max_examples=30)
    @given(k=st.integers(2, 4), counts=st.lists(st.integers(1, 7), min_size=4, max_size=4))
    @pytest.mark.filterwarnings("ignore:the following classes have a single sample:UserWarning")
    def test_folds_by_number_are_never_blamed(self, k, counts):
        y = np.repeat(np.arange(k), counts[:k])
        if np.bincount(y).max() < 2:
            return
        folds = make_folds(5, np.zeros((len(y), 1)), y, np.arange(k))
        for code in (codes.one_vs_one(k), codes.one_vs_rest(k)):
            scores = left_out(y, code, folds, np.ones(len(y)))
            assert self.outcome(scores, True, True)[0] == "nothing"

    def test_folds_passed_over_are_not_missed(self):
        y = np.repeat([0, 1, 2], 4)
        folds = [(np.delete(np.arange(12), [s, s + 1]), [s, s + 1]) for s in (0, 2, 4, 6, 8, 10)]
        scores = left_out(y, codes.one_vs_one(3), folds, np.ones(12), enough=2)
        assert self.outcome(scores, True, True)[0] == "nothing"

    def test_no_row_for_the_scaling_is_told_by_itself(self):
        """All pairs have scores of both sides, but no row has those of both its pairs."""
        y, everything, folds = np.repeat([0, 1, 2], 4), np.arange(12), []
        for c in range(3):
            for half in (0, 1):
                test = 4 * c + 2 * half + np.arange(2)
                absent = (c + 1 + half) % 3
                folds.append((everything[(y != absent) & ~np.isin(everything, test)], test))
        scores = left_out(y, codes.one_vs_one(3), folds, np.ones(12))
        kind, message = self.outcome(scores, True, scaled=True)
        assert kind == "warning" and "the scaling is not fitted. Use cv=5" in message
        assert self.outcome(scores, True, scaled=False)[0] == "nothing"


@st.composite
def labels(draw):
    """Class indices with at least one class of two samples, others possibly rare."""
    counts = draw(st.lists(st.integers(1, 12), min_size=2, max_size=5).filter(lambda c: max(c) > 1))
    y = np.repeat(np.arange(len(counts)), counts)
    return np.random.RandomState(draw(st.integers(0, 99))).permutation(y)


@pytest.mark.filterwarnings("ignore:the following classes have a single sample:UserWarning")
class TestFolds:
    @settings(deadline=None, max_examples=30)
    @given(y=labels(), cv=st.integers(2, 6))
    def test_every_sample_that_can_be_left_out_is_once(self, y, cv):
        counts = np.bincount(y)
        times = np.zeros(len(y), dtype=int)
        for train, test in make_folds(cv, np.zeros((len(y), 1)), y, np.unique(y)):
            assert len(test) > 0
            assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))
            times[test] += 1
        assert_array_equal(times, counts[y] > 1)

    @settings(deadline=None, max_examples=30)
    @given(y=labels(), cv=st.integers(2, 6))
    def test_classes_are_spread_evenly_and_none_is_missing_from_training(self, y, cv):
        counts, k = np.bincount(y), len(np.unique(y))
        folds = make_folds(cv, np.zeros((len(y), 1)), y, np.unique(y))
        assert len(folds) == min(cv, counts.max())
        held_out = np.array([np.bincount(y[test], minlength=k) for _, test in folds])
        assert (np.ptp(held_out[:, counts > 1], axis=0) <= 1).all()
        assert all(np.unique(y[train]).size == k for train, _ in folds)

    @settings(deadline=None, max_examples=60)
    @given(y=labels(), cv=st.integers(2, 6))
    def test_rows_are_dealt_as_scikit_learn_deals_them(self, y, cv):
        cv = min(cv, np.bincount(y).max())
        if cv < 2:
            return
        y = y[np.random.RandomState(0).permutation(len(y))]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The least populated class", UserWarning)
            expected = [test for _, test in StratifiedKFold(cv).split(y, y)]
        numbers = np.empty_like(y)
        deal(y, y.max() + 1, cv, numbers)
        for number, test in enumerate(expected):
            assert_array_equal(np.flatnonzero(numbers == number), test)

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


def test_calibration_rows_are_all_rows_of_small_sets():
    y, weights = np.repeat([0, 1], 50), np.ones(100)
    rows, kept = calibration_rows(y, weights)
    assert_array_equal(rows, np.arange(100))
    assert_array_equal(kept, weights)


@pytest.mark.parametrize("n_classes", [2, 5, 40])
def test_calibration_rows_represent_all(n_classes):
    """Every class keeps its weight; rare classes keep all rows; rows of weight 0 are left out."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(n_classes, 0.5))
    y = np.concatenate([np.arange(n_classes), rng.choice(n_classes, 50_000, p=shares)])
    weights = rng.integers(0, 3, len(y)).astype(float)
    weights[:n_classes] = 1.0
    rows, kept = calibration_rows(y, weights)
    assert len(np.unique(rows)) == len(rows) and (np.diff(rows) > 0).all()
    assert (weights[rows] > 0).all()
    assert_allclose(np.bincount(y[rows], kept), np.bincount(y, weights))
    usable = np.bincount(y[weights > 0])
    quota = max(400, 10_000 // n_classes)
    assert_array_equal(np.bincount(y[rows]), np.minimum(usable, quota))


# -- splits of one's own ---------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows.tolist(),
        lambda rows: np.isin(np.arange(90), rows),
        lambda rows: np.isin(np.arange(90), rows).tolist(),
        lambda rows: rows - 90,
        lambda rows: rows.astype(np.uint8),
    ],
    ids=["list", "mask", "list of bool", "negative", "unsigned"],
)
def test_splits_in_any_form(form):
    X, y = make_blobs(90, centers=3, random_state=0)
    splits = list(StratifiedKFold(3).split(X, y))
    expected = CoupledClassifier(SVC(), cv=splits).fit(X, y).predict_proba(X)
    splits_given = [(form(train), form(test)) for train, test in splits]
    found = CoupledClassifier(SVC(), cv=splits_given).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("test", [[90], [-91], [0.5], ["a"], [[1]], [True] * 89], ids=str)
def test_splits_that_are_none(test):
    X, y = make_blobs(90, centers=3, random_state=0)
    with pytest.raises(ValueError, match="split with rows that X does not have; X has 90 rows"):
        CoupledClassifier(SVC(), cv=[(np.arange(90), test)]).fit(X, y)
