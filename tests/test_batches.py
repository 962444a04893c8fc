"""Learning in batches: against plain loops, its calibration, its limits and its contracts."""

from __future__ import annotations

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from all_pairs import checks_in_turn
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_stream import Stream, reservoir
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, make_blobs
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Perceptron, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, codes, couple
from manyclass.banks import LinearBank
from manyclass.calibration import Isotonic, RobustSigmoid, Sigmoid
from manyclass.scaling.temperature import apply_temperature, fit_temperature
from manyclass.scores.folds import folds_again
from manyclass.scores.reservoir import Reservoir, capacity

X, y = make_blobs(400, n_features=3, centers=4, cluster_std=4.0, random_state=0)
names = np.array(["ant", "bee", "cat", "dog"])[y]
CLASSES = np.unique(names)
PAIRS = codes.one_vs_one(4)
SPARSE = np.array(
    [[1, 1, 0, -1, 1], [-1, 0, 1, -1, 0], [0, -1, 1, 1, 0], [0, -1, -1, 1, -1]], dtype=np.int8
)
PROVISIONAL = "probabilities are provisional.*further batches"
OTHER_SCORES = (
    r"calibration=None .*another kind of score \(probability\) .*began \(log-odds\).*again"
)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


class LeastSquares(ClassifierMixin, BaseEstimator):
    """Margins in closed form, the same for weights as for repetitions, in any batches."""

    def fit(self, X, y, sample_weight=None):
        self.__dict__.pop("gram_", None)
        return self.partial_fit(X, y, sample_weight=sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        X = validate_data(self, X, reset=not hasattr(self, "gram_"), dtype=np.float64)
        w = np.ones(len(X)) if sample_weight is None else sample_weight
        A = np.column_stack([X, np.ones(len(X))])
        if not hasattr(self, "gram_"):
            self.classes_ = np.unique(y) if classes is None else np.asarray(classes)
            self.gram_, self.moment_ = np.eye(A.shape[1]) * 1e-3, np.zeros(A.shape[1])
        self.gram_ = self.gram_ + (A * w[:, None]).T @ A
        self.moment_ = self.moment_ + (w * np.where(y == self.classes_[1], 1, -1)) @ A
        return self

    def decision_function(self, X):
        check_is_fitted(self, "gram_")
        w = np.linalg.solve(self.gram_, self.moment_)
        return validate_data(self, X, reset=False, dtype=np.float64) @ w[:-1] + w[-1]


def stream(model, X=X, y=names, n_batches=8, classes=CLASSES, **params):
    for rows in np.array_split(np.arange(len(y)), n_batches):
        sliced = {name: value[rows] for name, value in params.items()}
        model.partial_fit(X[rows], y[rows], classes=classes, **sliced)
    return model


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)


# -- against plain loops ---------------------------------------------------------------


class TestPlainLoops:
    @pytest.mark.parametrize("code", [PAIRS, SPARSE], ids=["pairs", "ternary"])
    @pytest.mark.parametrize(
        "estimator", [GaussianNB(), LeastSquares(), SGDClassifier(random_state=0)]
    )
    def test_the_whole_way(self, estimator, code):
        rule = "wlw2" if code is PAIRS else "kl"
        calibration = None if hasattr(estimator, "predict_proba") else "sigmoid"
        options = {"combiner": rule, "calibration": calibration, "scaling": "temperature"}
        model = stream(CoupledClassifier(estimator, code=code, **options))
        oracle = Stream(estimator, code)
        for rows in np.array_split(np.arange(len(y)), 8):
            oracle.learn(X[rows], y[rows])
        scores, classes, weights = model.stream_.reservoir.later_half()
        for ours, theirs in zip((scores, classes, weights), oracle.later_half(), strict=True):
            assert_allclose(np.sort(ours, axis=0), np.sort(theirs, axis=0), atol=1e-9)
        new = np.array([oracle.answers(x[None]) for x in X[:50]])
        if not hasattr(estimator, "predict_proba"):
            new = Sigmoid().fit(scores, code[classes], weights).transform(new)
            raw, sides = scores.copy(), code[classes]
            for train, test in folds_again(None, classes, 4):  # by sigmoids that have not seen them
                part = Sigmoid().fit(raw[train], sides[train], weights[train])
                scores[test] = part.transform(raw[test])
        n = model.weights_
        assert_array_equal(n, [(column[y] != 0).sum() for column in code.T])
        s = fit_temperature(couple(scores, code, rule, n), classes, weights)
        assert_allclose(model.scaling_.power_, s, rtol=1e-5)
        expected = apply_temperature(couple(new, code, rule, n), s, 1 / (1 + weights.sum()))
        assert_allclose(model.predict_proba(X[:50]), expected, atol=1e-6)

    @pytest.mark.parametrize("estimator", [GaussianNB(), LeastSquares()])
    def test_one_batch_or_many_learn_the_same(self, estimator):
        """Where the learner does; what is fitted on scores is another matter."""
        options = {"cv": None} if hasattr(estimator, "predict_proba") else {"combiner": "loss"}
        whole = stream(CoupledClassifier(estimator, **options), n_batches=1)
        many = stream(CoupledClassifier(estimator, **options), n_batches=40)
        fitted = CoupledClassifier(estimator, **options).fit(X, names)
        assert_allclose(many.decision_function(X), whole.decision_function(X), atol=1e-6)
        assert_allclose(fitted.decision_function(X), whole.decision_function(X), atol=1e-6)

    def test_rows_of_classes_that_a_column_leaves_out(self):
        model = stream(CoupledClassifier(GaussianNB(), code=SPARSE, combiner="kl"))
        for column, learner in zip(SPARSE.T, model.estimators_, strict=True):
            assert_array_equal(learner.classes_, [0, 1])
            assert_array_equal(learner.class_count_, [(column[y] < 0).sum(), (column[y] > 0).sum()])


class TestReservoir:
    @settings(deadline=None, max_examples=15)
    @given(st.integers(0, 2**31), st.integers(1, 12))
    def test_holds_what_plain_loops_would(self, seed, n_batches):
        rng = np.random.default_rng(seed)
        rows = rng.integers(3, size=60)
        kept = Reservoir.empty(3, 1, seed=7, room=10)
        room = kept.places.shape[1]
        draws: list[list[int]] = [[], [], []]
        for batch in np.array_split(np.arange(60), n_batches):
            for c in range(3):
                late = kept.offered[c] + np.arange((rows[batch] == c).sum()) >= room
                draw = np.random.default_rng((7, int(kept.offered[c])))
                draws[c] += draw.integers(room, size=late.sum()).tolist()
            chosen = kept.choose(rows[batch])
            scores = batch[chosen[0]].astype(float)[:, None]
            kept = kept.add(rows[batch], np.ones(len(batch)), chosen, scores)
        expected = reservoir(rows.tolist(), 3, room, lambda c: draws[c].pop(0))
        for c in range(3):
            at = kept.places[c][kept.places[c] >= 0]
            assert sorted(kept.scores[at, 0]) == sorted(expected[c].values())
        assert_array_equal(kept.offered, np.bincount(rows, minlength=3))

    def filled(self, rows, n_batches=10, seed=0):
        kept = Reservoir.empty(2, 1, seed, room=10)
        for batch in np.array_split(np.arange(len(rows)), n_batches):
            chosen = kept.choose(rows[batch])
            scores = batch[chosen[0]].astype(float)[:, None]
            kept = kept.add(rows[batch], np.ones(len(batch)), chosen, scores)
        return kept

    def test_is_bounded_and_keeps_new_rows_rather(self):
        rows = np.arange(2000) % 2
        ages = [1999 - self.filled(rows, seed=s).scores[:, 0] for s in range(30)]
        assert all(len(age) == 20 for age in ages)
        # 10 of a class, each kept with 9/10 of the chance of the next: 2 * 10 rows on average.
        assert 14 < np.mean(ages) < 26

    def test_stands_for_all_rows_by_weight(self):
        rows = np.r_[np.zeros(500, dtype=int), np.ones(7, dtype=int)]
        scores, classes, weights = self.filled(rows).later_half()
        assert_allclose(np.bincount(classes, weights), [500, 7])
        assert (scores[classes == 0] >= 250).all()
        assert (classes == 1).sum() == 7  # few: all of them

    def test_depends_on_seeds_and_not_on_names(self):
        rows = np.random.default_rng(0).integers(2, size=300)
        first, same, other = (self.filled(rows, seed=s).scores for s in (0, 0, 1))
        assert_array_equal(first, same)
        assert not np.array_equal(first, other)
        renamed = self.filled(1 - rows).scores
        assert_array_equal(np.sort(renamed, axis=0), np.sort(first, axis=0))

    def test_is_replaced_and_not_changed(self):
        kept = self.filled(np.arange(100) % 2)
        before = pickle.dumps(kept)
        chosen = kept.choose(np.array([0, 1, 1]))
        kept.add(np.array([0, 1, 1]), np.ones(3), chosen, np.zeros((3, 1)))
        assert pickle.dumps(kept) == before

    def test_size(self):
        assert capacity(10, 45) == 400
        assert capacity(26, 325) == 400
        assert capacity(100, 4950) == 16
        assert capacity(1000, 499_500) == 10


# -- calibration -----------------------------------------------------------------------


class TestBeforeThereAreScores:
    def test_margins_are_taken_for_log_odds_and_a_warning_says_so(self):
        model = CoupledClassifier(LeastSquares()).partial_fit(X, names, classes=CLASSES)
        with pytest.warns(UserWarning, match=PROVISIONAL) as record:
            p = model.predict_proba(X)
        assert len(record) == 1 and record[0].filename == __file__
        margins = np.column_stack([learner.decision_function(X) for learner in model.estimators_])
        assert_allclose(p, couple(expit(margins), PAIRS), atol=1e-10)
        with pytest.warns(UserWarning, match=PROVISIONAL):
            assert_array_equal(model.predict(X), CLASSES[p.argmax(axis=1)])

    def test_probabilities_are_taken_as_they_are(self):
        model = CoupledClassifier(GaussianNB()).partial_fit(X, names, classes=CLASSES)
        with pytest.warns(UserWarning, match=PROVISIONAL):
            p = model.predict_proba(X)
        expected = CoupledClassifier(GaussianNB(), cv=None).fit(X, names).predict_proba(X)
        assert_allclose(p, expected, atol=1e-10)

    @pytest.mark.parametrize("n_batches", [2, 8])
    def test_no_warning_once_there_are(self, n_batches):
        for estimator in (GaussianNB(), LeastSquares()):
            model = stream(CoupledClassifier(estimator), n_batches=n_batches)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert_probabilities(model.predict_proba(X))
            assert model.scaling_ is not None

    @pytest.mark.parametrize(
        "options", [{"cv": None}, {"combiner": "max-wins"}, {"scaling": None, "calibration": None}]
    )
    def test_no_warning_where_none_are_needed(self, options):
        model = CoupledClassifier(GaussianNB(), **options)
        model.partial_fit(X, names, classes=CLASSES)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(X)

    def test_combiners_that_learn_wait(self):
        model = CoupledClassifier(LeastSquares(), combiner="softmax-simplified")
        model.partial_fit(X[:100], names[:100], classes=CLASSES)
        with pytest.raises(NotFittedError, match="'softmax-simplified' is trained .* further"):
            model.predict(X)
        model.partial_fit(X[100:], names[100:])
        assert_probabilities(model.predict_proba(X))
        assert model.score(X, names) > 0.5


class TestCalibration:
    @pytest.mark.parametrize(
        ("name", "cls"),
        [("sigmoid", Sigmoid), ("robust-sigmoid", RobustSigmoid), ("isotonic", Isotonic)],
    )
    @pytest.mark.parametrize("estimator", [GaussianNB(), LeastSquares()])
    def test_methods(self, estimator, name, cls):
        model = stream(CoupledClassifier(estimator, calibration=name))
        assert type(model.calibration_) is cls
        assert_probabilities(model.predict_proba(X))

    def test_columns_with_few_scores_use_the_sigmoid_of_the_others(self):
        rare = np.r_[np.flatnonzero(y != 3), np.flatnonzero(y == 3)[:8]]
        rows = np.random.RandomState(0).permutation(rare)
        model = stream(CoupledClassifier(LeastSquares()), X[rows], names[rows])
        slopes = model.calibration_.slopes_
        with_dogs = (PAIRS[3] != 0).nonzero()[0]
        assert len(set(slopes[with_dogs])) == 1 and len(set(slopes)) == 4

    def test_weights_without_a_model_are_refused(self):
        with pytest.raises(ValueError, match="SGDClassifier has no predict_proba.*cv=None"):
            CoupledClassifier(SGDClassifier(), cv=None).partial_fit(X, names, classes=CLASSES)

    def test_refitted_for_a_twentieth_of_new_rows(self):
        model = stream(CoupledClassifier(LeastSquares()))
        before = model.calibration_
        model.partial_fit(X[:5], names[:5])
        assert model.calibration_ is before
        model.partial_fit(X[5:30], names[5:30])
        assert model.calibration_ is not before

    def test_equal_to_folds_in_the_long_run(self):
        """Scores of rows not learned yet calibrate as those of folds do."""
        X, y = make_blobs(6000, n_features=3, centers=4, cluster_std=4.0, random_state=0)
        train, test = slice(0, 3000), slice(3000, 6000)
        streamed = stream(CoupledClassifier(LeastSquares()), X[train], y[train], 30, range(4))
        fitted = CoupledClassifier(LeastSquares()).fit(X[train], y[train])
        losses = [log_loss(y[test], m.predict_proba(X[test])) for m in (streamed, fitted)]
        assert_allclose(losses[0], losses[1], rtol=0.01)


# -- classes that come late ------------------------------------------------------------


class TestClassesThatComeLate:
    @pytest.mark.parametrize(
        "estimator", [GaussianNB(), LeastSquares(), SGDClassifier(random_state=0)]
    )
    def test_one_class_at_a_time(self, estimator):
        model = CoupledClassifier(estimator)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", PROVISIONAL)
            for c in range(4):
                model.partial_fit(X[y == c], names[y == c], classes=CLASSES)
                p = model.predict_proba(X)
                assert_probabilities(p)
                # Not seen yet. Where three others contradict each other, "wlw2" gives 0.1.
                assert p[:, c + 1 :].max(initial=0) < 0.11
                assert (p.argmax(axis=1) <= c).all()
        assert (model.class_totals_ == np.bincount(y)).all()

    def test_nothing_is_known_without_any_weight(self):
        model = CoupledClassifier(GaussianNB())
        weights = np.zeros(400)
        weights[y == 0] = 1.0
        model.partial_fit(X, names, classes=CLASSES, sample_weight=weights)
        with pytest.warns(UserWarning, match=PROVISIONAL):
            assert_allclose(model.predict_proba(X[:3])[:, 0], 1, atol=1e-6)

    def test_a_class_that_never_comes_does_not_stop_calibration(self):
        known = y < 3
        tempered = CoupledClassifier(LeastSquares(), scaling="temperature")
        model = stream(clone(tempered), X[known], names[known])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p = model.predict_proba(X)
        assert p[:, 3].max() < 1e-3 + model.scaling_.share_
        three = stream(clone(tempered), X[known], names[known], 8, CLASSES[:3])
        assert_allclose(p[:, :3], three.predict_proba(X), atol=0.02)

    def test_row_by_row(self):
        model = stream(CoupledClassifier(LeastSquares()), X[:80], names[:80], n_batches=80)
        assert_probabilities(model.predict_proba(X))
        assert model.score(X, names) > 0.5


# -- life cycle ------------------------------------------------------------------------


class Fragile(GaussianNB):
    """Fails on a value that is not in every column's rows."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if (X[:, 0] == 1e3).any():
            raise RuntimeError("a bad value")
        return super().partial_fit(X, y, classes, sample_weight)


class TestLifeCycle:
    def test_only_where_the_estimator_has_it(self):
        for estimator in (SGDClassifier(), Perceptron(), GaussianNB(), MLPClassifier()):
            assert hasattr(CoupledClassifier(estimator), "partial_fit")
        for model in (
            CoupledClassifier(LogisticRegression()),
            CoupledClassifier(MLPClassifier(solver="lbfgs")),
            CoupledSVC(),
        ):
            assert not hasattr(model, "partial_fit")

    @pytest.mark.parametrize(
        "estimator",
        [
            SGDClassifier(random_state=0),
            SGDClassifier(loss="log_loss", average=True, random_state=0),
            Perceptron(random_state=0),
            MLPClassifier(hidden_layer_sizes=(5,), random_state=0),
            BernoulliNB(),
            MultinomialNB(),
        ],
    )
    def test_many_learners(self, estimator):
        data = np.abs(X) if isinstance(estimator, MultinomialNB) else X
        model = stream(CoupledClassifier(estimator), data, n_batches=5)
        p = model.predict_proba(data)
        assert_probabilities(p)
        assert_array_equal(model.predict(data), CLASSES[p.argmax(axis=1)])
        is_linear = isinstance(estimator, SGDClassifier | Perceptron)
        assert (type(model.bank_) is LinearBank) == is_linear

    def test_fit_starts_anew(self):
        model = stream(CoupledClassifier(LeastSquares()))
        model.fit(X[:100, :2], y[:100])
        fresh = CoupledClassifier(LeastSquares()).fit(X[:100, :2], y[:100])
        assert vars(model).keys() == vars(fresh).keys()
        assert_array_equal(model.predict_proba(X[:, :2]), fresh.predict_proba(X[:, :2]))

    def test_what_a_single_sample_keeps_is_forgotten_when_more_have_come(self):
        rare = np.r_[np.flatnonzero(y[:200] != 3), np.flatnonzero(y == 3)[:1]]
        with pytest.warns(UserWarning, match="single sample"):
            model = CoupledClassifier(GaussianNB()).fit(X[rare], names[rare])
        assert_allclose(model.least_proba_, [0, 0, 0, 0.5 / len(rare)])
        model.partial_fit(X[200:], names[200:])
        assert_array_equal(model.least_proba_, np.zeros(4))

    @pytest.mark.parametrize("estimator", [GaussianNB(), LeastSquares()])
    def test_goes_on_after_fit(self, estimator):
        model = CoupledClassifier(estimator).fit(X[:200], names[:200])
        calibration, scaling = model.calibration_, model.scaling_
        model.partial_fit(X[200:204], names[200:204])
        assert model.calibration_ is calibration and model.scaling_ is scaling
        assert_array_equal(model.class_totals_, np.bincount(y[:204]))
        model.partial_fit(X[204:], names[204:])
        assert model.scaling_ is not scaling  # all columns have enough scores now
        raw = CoupledClassifier(estimator, combiner="loss").fit(X, names)
        for learner, expected in zip(model.estimators_, raw.estimators_, strict=True):
            ask = "predict_proba" if hasattr(learner, "predict_proba") else "decision_function"
            assert_allclose(getattr(learner, ask)(X), getattr(expected, ask)(X), atol=1e-6)

    def test_goes_on_after_fit_without_a_class(self):
        weights = (y < 3).astype(float)
        model = CoupledClassifier(GaussianNB()).fit(X, names, sample_weight=weights)
        assert model.predict_proba(X)[:, 3].max() < 1e-3
        # What the columns of dogs were given by fit is gone: there was nothing to learn.
        model.partial_fit(X[y == 3], names[y == 3])
        assert model.bank_.constant.sum() == 3
        assert_probabilities(model.predict_proba(X))
        model.partial_fit(X, names)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the scaling of fit is still there
            assert (model.predict(X[y == 3]) == "dog").mean() > 0.5

    def test_other_scores_after_fit_are_refused(self):
        model = CoupledClassifier(GaussianNB()).fit(X, names).set_params(calibration=None)
        with pytest.raises(ValueError, match=OTHER_SCORES):
            model.partial_fit(X, names)

    def test_so_are_other_scores_between_batches(self):
        model = stream(CoupledClassifier(GaussianNB()), X[:200], names[:200])
        before, p = dict(vars(model)), model.predict_proba(X)
        with pytest.raises(ValueError, match=OTHER_SCORES):
            model.set_params(calibration=None).partial_fit(X[200:], names[200:])
        model.set_params(calibration="auto")
        assert vars(model) == before
        assert_array_equal(model.predict_proba(X), p)
        model.set_params(calibration="beta").partial_fit(X[200:], names[200:])  # the same scores

    def test_so_are_those_of_an_estimator_that_has_changed(self):
        model = CoupledClassifier(SGDClassifier(random_state=0))
        stream(model, X[:200], names[:200]).set_params(estimator__loss="log_loss")
        with pytest.raises(ValueError, match=r"score \(log-odds\) than .* began \(margin\)"):
            model.partial_fit(X[200:], names[200:])

    def test_the_code_stays(self):
        model = CoupledClassifier(GaussianNB(), code="sparse-random", combiner="kl", random_state=3)
        code = model.partial_fit(X[:50], names[:50], classes=CLASSES).code_
        assert_array_equal(code, clone(model).fit(X, names).code_)
        assert model.partial_fit(X[50:], names[50:]).code_ is code

    def test_errors_leave_the_model_as_it_was(self):
        model = stream(CoupledClassifier(Fragile()), X[:200], names[:200])
        before, p = dict(vars(model)), model.predict_proba(X)
        bad = X[200:].copy()
        bad[np.flatnonzero(y[200:] == 3)[0], 0] = 1e3  # after columns of other classes
        with pytest.raises(RuntimeError, match="a bad value"):
            model.partial_fit(bad, names[200:])
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
        assert_array_equal(model.predict_proba(X), p)
        unfitted = CoupledClassifier(Fragile())
        with pytest.raises(RuntimeError):
            unfitted.partial_fit(bad, names[200:], classes=CLASSES)
        assert set(vars(unfitted)) == set(unfitted.get_params(deep=False))

    def test_what_was_learned_ends_in_an_underscore(self):
        model = stream(CoupledClassifier(SGDClassifier(random_state=0)))
        learned = set(vars(model)) - set(model.get_params(deep=False))
        assert all(name.endswith("_") and not name.startswith("_") for name in learned)

    def test_pickled_in_between(self):
        model = stream(CoupledClassifier(SGDClassifier(random_state=0)), X[:200], names[:200])
        again = pickle.loads(pickle.dumps(model))
        for one in (model, again):
            one.partial_fit(X[200:], names[200:])
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))


class TestBadInput:
    def test_classes_are_needed_at_first(self):
        with pytest.raises(ValueError, match="classes must be given at the first call"):
            CoupledClassifier(GaussianNB()).partial_fit(X, names)
        with pytest.raises(ValueError, match="only one class"):
            CoupledClassifier(GaussianNB()).partial_fit(X, names, classes=["ant"])

    @pytest.mark.parametrize("label", ["eel", "aal", "zebra", "catfish"])
    def test_labels_that_are_new(self, label):
        model = CoupledClassifier(GaussianNB())
        for _ in range(2):
            with pytest.raises(ValueError, match=f"y holds .*'{label}'.*start again"):
                model.partial_fit(X[:2], ["ant", label], classes=CLASSES)
            model.partial_fit(X, names, classes=CLASSES)

    def test_labels_of_another_type(self):
        model = CoupledClassifier(GaussianNB()).partial_fit(X, y, classes=range(4))
        with pytest.raises(ValueError, match="y holds"):
            model.partial_fit(X, y.astype(str))

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (np.array(["ant", None], dtype=object), "mixes texts with labels of type NoneType"),
            (np.array(["2020", "NaT"], dtype="datetime64[D]"), "NaT, a missing time, at row 1"),
        ],
    )
    def test_labels_that_are_none(self, labels, message):
        model = CoupledClassifier(GaussianNB())
        with pytest.raises((TypeError, ValueError), match=f"y .*{message}"):
            model.partial_fit(X[:2], labels, classes=CLASSES)
        with pytest.raises((TypeError, ValueError), match=f"classes .*{message}"):
            model.partial_fit(X[:2], names[:2], classes=labels)
        model.partial_fit(X, names, classes=CLASSES)
        with pytest.raises((TypeError, ValueError), match=f"classes .*{message}"):
            model.partial_fit(X, names, classes=labels)

    def test_classes_that_change(self):
        model = CoupledClassifier(GaussianNB()).partial_fit(X, names, classes=CLASSES)
        with pytest.raises(ValueError, match="not those of the first call.*omit classes"):
            model.partial_fit(X, names, classes=[*CLASSES, "eel"])
        model.partial_fit(X, names, classes=CLASSES[::-1])

    def test_shapes(self):
        model = CoupledClassifier(GaussianNB()).partial_fit(X, names, classes=CLASSES)
        with pytest.raises(ValueError, match="X has 2 features, but CoupledClassifier is expect"):
            model.partial_fit(X[:, :2], names)
        with pytest.raises(ValueError, match="inconsistent numbers"):
            model.partial_fit(X[:5], names)
        for empty in (X[:0], pd.DataFrame(X)[:0]):
            with pytest.raises(ValueError, match=r"0 sample\(s\)"):
                CoupledClassifier(GaussianNB()).partial_fit(empty, [], classes=CLASSES)

    def test_one_class_in_a_batch_and_one_row(self):
        model = stream(CoupledClassifier(GaussianNB()), X[:200], names[:200])
        model.partial_fit(X[y == 1][:3], names[y == 1][:3]).partial_fit(X[:1], names[:1])
        assert_probabilities(model.predict_proba(X))

    def test_reliabilities_do_not_learn(self):
        with pytest.raises(ValueError, match="'srm' needs the reliability"):
            model = CoupledClassifier(SGDClassifier(), code="one-vs-rest", combiner="srm")
            model.partial_fit(X, names, classes=CLASSES)

    def test_weights_nobody_takes(self):
        class Weightless(GaussianNB):
            def partial_fit(self, X, y, classes=None):
                return super().partial_fit(X, y, classes)

        with pytest.raises(ValueError, match="Weightless.partial_fit does not take it"):
            CoupledClassifier(Weightless()).partial_fit(X, y, range(4), np.ones(400))

    @pytest.mark.parametrize("estimator", [GaussianNB(), SGDClassifier()])
    def test_nan(self, estimator):
        model = stream(CoupledClassifier(estimator), X[:200], names[:200])
        bad = X[200:].copy()
        bad[3, 1] = np.nan
        with pytest.raises(ValueError, match="NaN"):
            model.partial_fit(bad, names[200:])


# -- contracts -------------------------------------------------------------------------


class TestContracts:
    @pytest.mark.parametrize("estimator", [SGDClassifier(), SGDClassifier(loss="log_loss")])
    def test_same_seed_same_bits_for_any_number_of_jobs(self, estimator):
        with joblib.parallel_config(backend="threading"):
            first, *others = (
                stream(
                    CoupledClassifier(estimator, random_state=5, n_jobs=n), n_batches=4
                ).predict_proba(X)
                for n in (None, None, 2)
            )
        for p in others:
            assert_array_equal(p, first)

    def test_renaming_classes_permutes_columns(self):
        order = np.array([2, 0, 3, 1])
        plain = stream(CoupledClassifier(GaussianNB()), y=y, classes=range(4))
        renamed = stream(CoupledClassifier(GaussianNB()), y=order[y], classes=range(4))
        assert_allclose(renamed.predict_proba(X)[:, order], plain.predict_proba(X), atol=1e-8)

    def test_predictions_change_nothing_and_agree_between_threads(self):
        model = stream(CoupledClassifier(LeastSquares()))
        before = dict(vars(model))
        p = model.predict_proba(X)
        with ThreadPoolExecutor(4) as pool:
            for answer in pool.map(lambda _: model.predict_proba(X), range(8)):
                assert_array_equal(answer, p)
        assert all(value is before[name] for name, value in vars(model).items())

    @pytest.mark.parametrize("estimator", [GaussianNB(), LeastSquares()])
    def test_integer_weights_are_repetitions(self, estimator):
        """In learners and column sizes; of scores, repeated rows would each be kept."""
        times = np.random.RandomState(0).randint(0, 4, 400)
        options = {"cv": None} if hasattr(estimator, "predict_proba") else {"combiner": "loss"}
        model = CoupledClassifier(estimator, **options)
        weighted = clone(model).partial_fit(X, names, CLASSES, sample_weight=times)
        repeated = clone(model).partial_fit(X.repeat(times, axis=0), names.repeat(times), CLASSES)
        assert_allclose(weighted.weights_, repeated.weights_)
        assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-6
        )

    def test_rows_without_weight_are_as_good_as_absent(self):
        weights = (np.random.RandomState(0).uniform(size=400) < 0.5).astype(float)
        batches = np.array_split(np.arange(400), 8)
        weighted, absent = CoupledClassifier(LeastSquares()), CoupledClassifier(LeastSquares())
        for rows in batches:
            weighted.partial_fit(X[rows], names[rows], CLASSES, sample_weight=weights[rows])
            used = rows[weights[rows] > 0]
            absent.partial_fit(X[used], names[used], CLASSES)
        assert_allclose(weighted.predict_proba(X), absent.predict_proba(X), atol=1e-12)

    @pytest.mark.parametrize("nothing", [np.zeros(100), [0] * 100, 0.0])
    @pytest.mark.parametrize("begin", ["fit", "partial_fit"])
    def test_batches_without_weight_change_nothing(self, begin, nothing):
        model = CoupledClassifier(LeastSquares())
        model = stream(model) if begin == "partial_fit" else model.fit(X, names)
        before = dict(vars(model))
        model.partial_fit(X[:100], names[:100], sample_weight=nothing)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
        with pytest.raises(ValueError, match=r"\(3,\), expected \(100,\)"):
            model.partial_fit(X[:100], names[:100], sample_weight=[0, 0, 0])

    @pytest.mark.parametrize("estimator", [GaussianNB(), LeastSquares()])
    def test_a_first_batch_without_weight_fixes_the_classes(self, estimator):
        model = CoupledClassifier(estimator)
        for _ in range(2):
            model.partial_fit(X[:9], names[:9], CLASSES, sample_weight=np.zeros(9))
            with pytest.warns(UserWarning, match=PROVISIONAL):
                assert_allclose(model.predict_proba(X[:3]), 0.25)
        expected = stream(CoupledClassifier(estimator))
        assert_array_equal(stream(model).predict_proba(X), expected.predict_proba(X))

    @pytest.mark.parametrize("kind", ["frame", "sparse", "float32", "lists", "read-only"])
    def test_kinds_of_x(self, kind):
        frozen = X.copy()
        frozen.flags.writeable = False
        as_kind = {
            "frame": lambda rows: pd.DataFrame(X[rows], columns=list("abc"), index=rows + 7),
            "sparse": lambda rows: sparse.csc_array(X[rows]),
            "float32": lambda rows: X[rows].astype(np.float32),
            "lists": lambda rows: X[rows].tolist(),
            "read-only": lambda rows: frozen[rows],
        }[kind]
        model = CoupledClassifier(BernoulliNB())
        dense = stream(clone(model))
        for rows in np.array_split(np.arange(400), 8):
            model.partial_fit(as_kind(rows), names[rows].tolist(), CLASSES)
        p = model.predict_proba(as_kind(np.arange(400)))
        assert_allclose(p, dense.predict_proba(X), atol=1e-12)

    def test_metadata_routing(self):
        weights = np.arange(400) + 1.0
        with sklearn.config_context(enable_metadata_routing=True):
            asks = GaussianNB().set_partial_fit_request(sample_weight=True)
            asks.set_fit_request(sample_weight=True)
            model = CoupledClassifier(asks).partial_fit(X, names, CLASSES, sample_weight=weights)
            assert_allclose(
                model.estimators_[0].class_count_, [weights[y == 1].sum(), weights[y == 0].sum()]
            )
            with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
                CoupledClassifier(GaussianNB()).partial_fit(
                    X, names, CLASSES, sample_weight=weights
                )
            model.fit(X, names, sample_weight=weights)
        assert_allclose(model.class_totals_, np.bincount(y, weights))

    @pytest.mark.parametrize(
        "given",
        [np.asarray, list, lambda w: pd.Series(w, index=np.arange(len(w))[::-1])],
        ids=["array", "list", "series"],
    )
    def test_weights_by_another_name_are_the_same_weights(self, given):
        weights = np.arange(400) % 5 + 0.5
        expected = stream(CoupledClassifier(LeastSquares()), sample_weight=weights)
        with sklearn.config_context(enable_metadata_routing=True):
            asks = LeastSquares().set_partial_fit_request(sample_weight="importance")
            model = CoupledClassifier(asks.set_fit_request(sample_weight="importance"))
            for rows in np.array_split(np.arange(400), 8):
                model.partial_fit(X[rows], names[rows], CLASSES, importance=given(weights[rows]))
            with pytest.raises(ValueError, match="Negative values"):
                model.partial_fit(X, names, importance=-weights)
        assert_array_equal(model.class_totals_, expected.class_totals_)
        assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


@checks_in_turn([CoupledClassifier(GaussianNB()), CoupledClassifier(LeastSquares())])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_scikit_learn_checks_of_stochastic_gradients():
    """Nothing fails that does not fail for SGDClassifier itself, which weights its own way."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(CoupledClassifier(SGDClassifier()), on_skip=None, on_fail=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    for name in failed:
        assert "sample_weight_equivalence" in name
        with pytest.raises(AssertionError, match="Comparing the output of SGDClassifier"):
            getattr(estimator_checks, name)("SGDClassifier", SGDClassifier())


# -- real data -------------------------------------------------------------------------


class TestRealData:
    @staticmethod
    def split(X, y, n_train):
        order = np.random.RandomState(0).permutation(len(y))
        train, test = order[:n_train], order[n_train : n_train + 800]
        scaler = StandardScaler().fit(X[train])
        return scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]

    def as_good_as_folds(self, X, y, estimator, n_train, scaling="temperature"):
        X, y, X_new, y_new = self.split(X, y, n_train)
        # The learner's own model does not learn in batches.
        options = {"calibration": None, "with_native": False}
        model = CoupledClassifier(estimator, scaling=scaling, **options)
        streamed = stream(clone(model), X, y, 20, np.unique(y))
        fitted = clone(model).fit(X, y)
        losses = [log_loss(y_new, one.predict_proba(X_new)) for one in (streamed, fitted)]
        return losses[0] < (1.03 if scaling == "temperature" else 1.15) * losses[1]

    # More parameters lose more by learning from the later half of the rows.
    each_scaling = pytest.mark.parametrize("scaling", ["temperature", "structured"])

    @each_scaling
    def test_digits(self, scaling):
        data = load_digits(return_X_y=True)
        assert self.as_good_as_folds(*data, GaussianNB(var_smoothing=1e-2), 800, scaling)

    @each_scaling
    def test_pendigits(self, shared_data, scaling):
        data = shared_data("pendigits")
        assert self.as_good_as_folds(data.X, data.y, GaussianNB(), 1000, scaling)

    def test_margins_of_digits(self):
        X, y, X_new, y_new = self.split(*load_digits(return_X_y=True), 900)
        model = stream(CoupledClassifier(SGDClassifier(), random_state=0), X, y, 20, np.arange(10))
        margins = np.column_stack([one.decision_function(X_new) for one in model.estimators_])
        as_log_odds = log_loss(y_new, couple(expit(margins), "one-vs-one"))
        assert log_loss(y_new, model.predict_proba(X_new)) < 0.5 * as_log_odds
