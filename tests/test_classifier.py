"""CoupledClassifier: against plain loops, its ways to calibrate, and its life among others."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings
from inspect import signature

import naive
import naive_decoding
import naive_fitting
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV, _sigmoid_calibration
from sklearn.datasets import load_digits, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, DecisionClassifier, codes, couple
from manyclass.banks import LinearBank
from manyclass.calibration import Isotonic, RobustSigmoid, Sigmoid
from manyclass.combiners.coupling import HastieTibshirani, KullbackLeibler
from manyclass.combiners.decoding import LossBased
from manyclass.predicting import RowBlocks
from manyclass.scaling import StructuredScaling, Temperature
from manyclass.scores.folds import make_folds

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=4.0, random_state=0)
names = np.array(["ant", "bee", "cat", "dog"])[y]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
PAIRS = codes.one_vs_one(4)
SPARSE = np.array(
    [[1, 1, 0, -1, 1], [-1, 0, 1, -1, 0], [0, -1, 1, 1, 0], [0, -1, -1, 1, -1]], dtype=np.int8
)
MARGINS = LinearSVC(dual=False, tol=1e-12)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


class OnlyLabels(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


# -- against plain loops ---------------------------------------------------------------


def wlw2(r, code):
    return naive.wlw2(naive.to_square(naive.clip(r), code))


def normalize(r, code):
    return naive.normalize(naive.clip(r))


class TestPlainLoops:
    folds = make_folds(3, X, y, np.arange(4))

    @pytest.mark.parametrize("estimator", [LinearDiscriminantAnalysis(), GaussianNB()])
    @pytest.mark.parametrize(
        ("code", "combiner", "couple_row"),
        [("one-vs-one", "wlw2", wlw2), ("one-vs-rest", "normalize", normalize)],
    )
    @pytest.mark.parametrize("scaling", ["temperature", None])
    def test_probabilities(self, scaling, code, combiner, couple_row, estimator):
        model = CoupledClassifier(
            estimator, code=code, combiner=combiner, calibration=None, cv=3, scaling=scaling
        ).fit(X, names)
        expected = naive_fitting.predict_proba(
            estimator,
            X,
            y,
            codes.by_name(code, 4),
            X + 1,
            couple_row,
            self.folds if scaling else None,
        )
        assert_allclose(model.predict_proba(X + 1), expected, atol=1e-6)

    def test_margins_through_sigmoids(self):
        scores = MARGINS, X, y, PAIRS, self.folds
        left_out = naive_fitting.out_of_sample_scores(*scores)
        by_folds = naive_fitting.out_of_sample_scores(*scores, by_folds=True)
        sides = PAIRS[y]

        def coupled(scores, rows):
            """By sigmoids of some rows."""
            slopes, intercepts = np.transpose(
                [
                    _sigmoid_calibration(left_out[rows][used, b], sides[rows][used, b])
                    for b, used in enumerate((sides[rows] != 0).T)
                ]
            )
            r = expit(-(slopes * scores + intercepts))
            return naive_fitting.coupled(r, PAIRS, wlw2)

        known = np.empty((len(y), len(PAIRS)))
        for train, test in self.folds:
            known[test] = coupled(by_folds[test], train)
        s = naive_fitting.temperature(known, y)
        new = naive_fitting.binary_scores(MARGINS, X, y, PAIRS, X + 1)
        p = coupled(new, np.arange(len(y)))
        model = CoupledClassifier(MARGINS, calibration="sigmoid", cv=3, scaling="temperature")
        model.fit(X, names)
        assert_allclose(model.scaling_.power_, s, rtol=1e-4)
        expected = [naive_fitting.tempered(row, s, len(y)) for row in p]
        assert_allclose(model.predict_proba(X + 1), expected, atol=1e-5)

    def test_probabilities_through_sigmoids_of_their_log_odds(self):
        left_out = logit(naive_fitting.out_of_sample_scores(GaussianNB(), X, y, PAIRS, self.folds))
        model = CoupledClassifier(GaussianNB(), calibration="sigmoid", cv=3).fit(X, names)
        expected = Sigmoid().fit(left_out, PAIRS[y], np.ones(60))
        assert_allclose(model.calibration_.slopes_, expected.slopes_, rtol=1e-5)
        assert_allclose(model.calibration_.intercepts_, expected.intercepts_, atol=1e-5)

    def test_decoders_read_margins(self):
        scores = naive_fitting.binary_scores(MARGINS, X, y, SPARSE, X + 1)
        model = CoupledClassifier(MARGINS, code=SPARSE, combiner="hamming").fit(X, names)
        distance = [naive_decoding.hamming(row, SPARSE) for row in scores]
        assert_allclose(model.decision_function(X + 1), distance, atol=1e-6)  # ties are raised

    def test_decoders_read_probabilities_from_one_half(self):
        r = naive_fitting.binary_scores(GaussianNB(), X, y, PAIRS, X + 1)
        model = CoupledClassifier(GaussianNB(), combiner=LossBased("linear")).fit(X, names)
        expected = [[sum(row * (values - 0.5)) for row in PAIRS] for values in r]
        assert_allclose(model.decision_function(X + 1), expected, atol=1e-6)

    def test_incoherence(self):
        model = CoupledClassifier(GaussianNB(), combiner="ht", calibration=None).fit(X, names)
        r = naive.clip(naive_fitting.binary_scores(GaussianNB(), X, y, PAIRS, X + 1))
        n = np.array([np.isin(y, pair).sum() for pair in naive.pairs(PAIRS)], dtype=float)
        assert_array_equal(model.weights_, n)
        p = couple(r, PAIRS, "ht", n)
        expected = [naive.incoherence(*rows, PAIRS, n) for rows in zip(p, r, strict=True)]
        assert_allclose(model.incoherence(X + 1), expected, atol=1e-7)

    def test_logarithms(self):
        model = CoupledClassifier(GaussianNB()).fit(X, names)
        p = model.predict_proba(50 * X)
        with np.errstate(divide="ignore"):
            assert_array_equal(model.predict_log_proba(50 * X), np.log(p))
        scores = model.decision_function(50 * X)
        assert np.isfinite(scores).all()
        assert_allclose(np.exp(scores), p, rtol=1e-12, atol=1e-300)


# -- calibration -----------------------------------------------------------------------


class TestCalibration:
    def test_auto_without_folds_takes_the_probabilities_there_are(self):
        model = CoupledClassifier(LogisticRegression(), cv=None).fit(X, y)
        assert model.calibration_ is None
        r = np.column_stack([m.predict_proba(X)[:, 1] for m in model.estimators_])
        assert_allclose(model.predict_proba(X), couple(r, "one-vs-one"), atol=1e-12)

    def test_auto_fits_sigmoids_to_margins(self):
        auto = CoupledClassifier(MARGINS).fit(X, y)
        explicit = CoupledClassifier(MARGINS, calibration="sigmoid").fit(X, y)
        assert isinstance(auto.calibration_, Sigmoid)
        assert_array_equal(auto.predict_proba(X), explicit.predict_proba(X))

    @pytest.mark.parametrize(
        ("name", "cls"),
        [("sigmoid", Sigmoid), ("robust-sigmoid", RobustSigmoid), ("isotonic", Isotonic)],
    )
    @pytest.mark.parametrize("estimator", [LogisticRegression(), MARGINS, GaussianNB()])
    def test_explicit_methods_are_used_whatever_the_estimator(self, estimator, name, cls):
        model = CoupledClassifier(estimator, calibration=name).fit(X, y)
        assert type(model.calibration_) is cls
        assert model.score(X, y) > 0.5

    def test_none_takes_probabilities_as_they_are(self):
        raw = CoupledClassifier(GaussianNB(), calibration=None, cv=None).fit(X, y)
        assert raw.calibration_ is None and raw.scaling_ is None
        r = np.column_stack([m.predict_proba(X)[:, 1] for m in raw.estimators_])
        assert_allclose(raw.predict_proba(X), couple(r, "one-vs-one"), atol=1e-12)

    @pytest.mark.parametrize("options", [{"calibration": None}, {"cv": None}])
    def test_margins_without_calibration_are_refused_with_the_remedy(self, options):
        with pytest.raises(
            ValueError,
            match="LinearSVC has no predict_proba.*'wlw2'.*calibration='sigmoid' with cv",
        ):
            CoupledClassifier(LinearSVC(), **options).fit(X, y)

    @pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
    def test_calibration_without_folds_is_refused_for_the_right_reason(self, estimator):
        with pytest.raises(ValueError, match="calibration='sigmoid'.*cv=None") as error:
            CoupledClassifier(estimator, calibration="sigmoid", cv=None).fit(X, y)
        assert "has no predict_proba" not in str(error.value)

    def test_margins_without_calibration_are_what_decoders_take(self):
        model = CoupledClassifier(LinearSVC(), combiner="max-wins", calibration=None, cv=None)
        assert model.fit(X, y).score(X, y) > 0.5

    def test_labels_alone_are_refused(self):
        for combiner in ("wlw2", "max-wins"):
            with pytest.raises(ValueError, match="OnlyLabels has neither.*CalibratedClassifierCV"):
                CoupledClassifier(OnlyLabels(), combiner=combiner).fit(X, y)

    def test_unknown_methods_are_refused(self):
        with pytest.raises(ValueError, match="calibration must be .*'sigmoid'.*got 'platt'"):
            CoupledClassifier(calibration="platt").fit(X, y)

    def test_weights_for_an_estimator_without_reach_the_calibration_alone(self):
        weight = np.where(y == 0, 5.0, 0.5)
        model = CoupledClassifier(KNeighborsClassifier(), calibration="sigmoid")
        p = model.fit(X, y).predict_proba(X)
        with pytest.warns(
            UserWarning, match="KNeighborsClassifier.fit does not take sample_weight"
        ):
            weighted = model.fit(X, y, weight).predict_proba(X)
        assert weighted[:, 0].mean() > 1.2 * p[:, 0].mean()

    @pytest.mark.parametrize("code", ["one-vs-one", "native", "q-ary"])
    @pytest.mark.filterwarnings("ignore:KNeighborsClassifier.fit does not take sample_weight")
    def test_rows_of_weight_0_are_none_for_an_estimator_without_weights(self, code):
        weight = (np.arange(60) % 3 > 0).astype(float)
        options = {
            "code": code,
            "calibration": None,
            "cv": None,
            "scaling": None,
            "random_state": 0,
        }
        model = CoupledClassifier(KNeighborsClassifier(), **options).fit(X, y, weight)
        used = weight > 0
        fewer = CoupledClassifier(KNeighborsClassifier(), **options).fit(X[used], y[used])
        assert_allclose(model.bank_.scores(X), fewer.bank_.scores(X))

    @pytest.mark.parametrize("wrap", [CoupledClassifier, DecisionClassifier])
    def test_weights_are_offered_only_if_the_estimator_takes_them(self, wrap):
        """Bagging weights the samples where it can, and draws them where it cannot."""
        weightless, weighted = wrap(KNeighborsClassifier()), wrap(GaussianNB())
        assert list(signature(weightless.fit).parameters) == ["X", "y", "fit_params"]
        assert has_fit_parameter(weighted, "sample_weight")
        assert has_fit_parameter(wrap(weighted), "sample_weight")
        assert not has_fit_parameter(wrap(weightless), "sample_weight")
        assert has_fit_parameter(wrap, "sample_weight")  # the class, which has a page
        assert weightless.fit.__doc__ == weighted.fit.__doc__ == wrap.fit.__doc__
        assert has_fit_parameter(weightless.set_params(estimator=GaussianNB()), "sample_weight")
        for model in (wrap(KNeighborsClassifier()), weighted):
            assert BaggingClassifier(model, 2, random_state=0).fit(X, y).score(X, y) > 0.5

    def test_a_compiled_fit_without_a_signature_is_left_to_itself(self):
        class Compiled(GaussianNB):
            fit = type  # one of few callables left whose arguments cannot be read

        assert has_fit_parameter(CoupledClassifier(Compiled()), "sample_weight")

    def test_fit_without_weights_is_a_method_like_others(self):
        fit = pickle.loads(pickle.dumps(CoupledClassifier(KNeighborsClassifier()).fit))
        rare = np.append(names[:30][names[:30] != "dog"], "dog")
        with pytest.warns(UserWarning, match="single sample") as record:
            fit(X[: len(rare)], rare)
        assert record[0].filename == __file__

    def test_temperature_keeps_the_labels(self):
        for estimator in (GaussianNB(), MARGINS):
            warm = CoupledClassifier(estimator, scaling="temperature").fit(X, y)
            plain = CoupledClassifier(estimator, scaling=None).fit(X, y)
            assert warm.scaling_.power_ != 1 and plain.scaling_ is None
            assert_array_equal(warm.predict(X), plain.predict(X))


# -- life cycle ------------------------------------------------------------------------


class Fragile(GaussianNB):
    """Fails on few samples: that is, in the folds."""

    def fit(self, X, y, sample_weight=None):
        if len(X) < 25:
            raise RuntimeError("too few")
        return super().fit(X, y, sample_weight)


class TestScaling:
    @pytest.mark.parametrize("scaling", ["no", False, True, 0, 1.0, [], np.ones(3), Temperature()])
    def test_has_a_name_or_is_none(self, scaling):
        with pytest.raises(ValueError, match="scaling must be 'auto', None or one of .*, got "):
            CoupledClassifier(scaling=scaling).fit(X, names)

    @pytest.mark.parametrize(
        ("scaling", "cls"),
        [
            ("auto", StructuredScaling),
            ("structured", StructuredScaling),
            ("temperature", Temperature),
            (None, type(None)),
        ],
    )
    def test_is_the_one_that_was_named(self, scaling, cls):
        for model in (CoupledClassifier(scaling=scaling), CoupledSVC(scaling=scaling)):
            assert type(model.fit(X, names).scaling_) is cls

    @pytest.mark.parametrize(
        "options", [{"cv": None}, {"combiner": "softmax"}, {"combiner": "loss"}]
    )
    def test_is_none_where_nothing_could_be_fitted(self, options):
        assert CoupledClassifier(**options).fit(X, names).scaling_ is None


class TestFailedFit:
    @pytest.mark.parametrize(
        ("changes", "data", "target"),
        [
            ({}, np.full((60, 5), np.nan), y),
            ({}, X[:, :2], np.zeros(60)),
            ({}, X[:, :2], X[:, 0]),
            ({}, X[:40, :2], y),
            ({}, FRAME[["a", "b"]].assign(a="word"), y),
            ({"code": "nonsense"}, X[:, :2], y),
            ({"combiner": "normalize"}, X[:, :2], y),
            ({"calibration": "nonsense"}, X[:, :2], y),
            ({"cv": 1}, X[:, :2], y),
            ({"scaling": "no"}, X[:, :2], y),
            ({"estimator": OnlyLabels()}, X[:, :2], y),
            ({"estimator": Fragile()}, X[:, :2], y),
        ],
        ids=lambda value: next(iter(value), "data") if isinstance(value, dict) else "",
    )
    def test_leaves_the_fitted_estimator_as_it_was(self, changes, data, target):
        model = CoupledClassifier(LogisticRegression()).fit(FRAME, names)
        p = model.predict_proba(FRAME)
        before = dict(vars(model))
        params = model.get_params(deep=False)
        model.set_params(**changes)
        with pytest.raises((ValueError, RuntimeError)):
            model.fit(data, target)
        model.set_params(**params)
        assert vars(model).keys() == before.keys()
        assert all(value is before[name] for name, value in vars(model).items())
        assert_array_equal(model.predict_proba(FRAME), p)

    def test_leaves_the_unfitted_estimator_unfitted(self):
        model = CoupledClassifier(Fragile())
        with pytest.raises(RuntimeError, match="too few"):
            model.fit(X, y)
        assert set(vars(model)) == set(model.get_params(deep=False))
        with pytest.raises(NotFittedError):
            model.predict(X)

    @pytest.mark.parametrize(
        "method", ["predict", "predict_proba", "decision_function", "incoherence"]
    )
    def test_unfitted_estimators_say_so(self, method):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(CoupledClassifier(), method)(X)
        assert not hasattr(CoupledClassifier(), "estimators_")


class TestLifeCycle:
    @pytest.mark.parametrize("estimator", [LogisticRegression(), MARGINS, GaussianNB()])
    @pytest.mark.parametrize("calibration", ["auto", "isotonic"])
    @pytest.mark.parametrize("combiner", ["wlw2", "vote", KullbackLeibler(n_starts=5), "loss"])
    def test_pickled_models_give_the_same_bits(self, combiner, calibration, estimator):
        model = CoupledClassifier(estimator, combiner=combiner, calibration=calibration, cv=2)
        again = pickle.loads(pickle.dumps(model.fit(X, names)))
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.decision_function(X), model.decision_function(X))

    def test_clones_are_unfitted_and_equal_when_fitted(self):
        model = CoupledClassifier(MARGINS, combiner=HastieTibshirani(tol=1e-6), random_state=0)
        p = model.fit(X, names).predict_proba(X)
        copy = clone(model)
        with pytest.raises(NotFittedError):
            copy.predict(X)
        assert copy.combiner is not model.combiner and copy.combiner.tol == 1e-6
        assert_array_equal(copy.fit(X, names).predict_proba(X), p)

    def test_refitting_forgets_everything(self):
        model = CoupledClassifier(LinearSVC(dual=False)).fit(FRAME, names)
        two = y < 2
        model.fit(X[two][:, :2], y[two])
        fresh = CoupledClassifier(LinearSVC(dual=False)).fit(X[two][:, :2], y[two])
        assert vars(model).keys() == vars(fresh).keys()
        assert_array_equal(model.predict_proba(X[:, :2]), fresh.predict_proba(X[:, :2]))

    def test_models_are_one_per_column_with_class_1_positive(self):
        model = CoupledClassifier(GaussianNB(), code=SPARSE, combiner="kl").fit(X, names)
        assert len(model.estimators_) == 5
        for column, binary in zip(SPARSE.T, model.estimators_, strict=True):
            assert_array_equal(binary.classes_, [0, 1])
            assert_allclose(binary.theta_[1], X[column[y] > 0].mean(axis=0))

    def test_the_default_estimator_is_logistic_regression(self):
        model = CoupledClassifier().fit(X, names)
        assert model.estimator is None
        assert type(model.bank_) is LinearBank
        assert all(type(binary) is LogisticRegression for binary in model.estimators_)


class TestAmongOthers:
    def test_grid_search_reaches_nested_parameters(self):
        search = GridSearchCV(
            CoupledClassifier(LogisticRegression(), cv=2),
            {"estimator__C": [1e-4, 1.0], "combiner": ["wlw2", "ht"]},
            scoring="neg_log_loss",
            cv=2,
        ).fit(X, names)
        assert search.best_params_["estimator__C"] == 1.0
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).all() and len(set(scores)) == 4
        assert search.best_estimator_.estimators_[0].C == 1.0
        assert_allclose(search.predict_proba(X).sum(axis=1), 1)

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_grid_search_reaches_the_combiner(self):
        search = GridSearchCV(
            CoupledClassifier(GaussianNB(), code="one-vs-rest", combiner=KullbackLeibler(), cv=2),
            {"combiner__tol": [1e-8, 1e-2], "combiner__max_iter": [1, 300]},
            scoring="neg_log_loss",
            cv=2,
        ).fit(X, names)
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).all() and len(set(scores)) > 1
        assert search.best_estimator_.combiner_.tol == search.best_params_["combiner__tol"]

    def test_pipelines_around_and_inside(self):
        around = make_pipeline(StandardScaler(), CoupledClassifier(MARGINS)).fit(X, names)
        scaled = StandardScaler().fit_transform(X)
        expected = CoupledClassifier(MARGINS).fit(scaled, names).predict_proba(scaled)
        assert_allclose(around.predict_proba(X), expected, atol=1e-12)
        inside = CoupledClassifier(make_pipeline(StandardScaler(), MARGINS)).fit(X, names)
        assert inside.score(X, names) > 0.5

    @pytest.mark.parametrize("combiner", ["wlw2", "max-wins"])
    def test_calibrated_classifier(self, combiner):
        inner = CoupledClassifier(GaussianNB(), combiner=combiner, cv=2)
        model = CalibratedClassifierCV(inner, method="sigmoid", cv=2).fit(X, names)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1)
        assert model.score(X, names) > 0.5

    def test_cross_validation(self):
        model = CoupledClassifier(GaussianNB(), cv=2)
        p = cross_val_predict(model, X, names, method="predict_proba", cv=3)
        assert p.shape == (60, 4)
        assert log_loss(names, p) < np.log(4)
        scores = cross_val_predict(
            CoupledClassifier(combiner="max-wins"), X, names, method="decision_function", cv=3
        )
        assert scores.shape == (60, 4)
        assert (cross_val_score(model, X, names, scoring="neg_log_loss", cv=3) < 0).all()

    def test_one_inside_another(self):
        model = CoupledClassifier(CoupledClassifier(SVC(), cv=3), cv=3)
        assert cross_val_score(model, X, names, cv=5).mean() > 0.5  # one in four by chance


# -- large inputs ----------------------------------------------------------------------


class TestBlocks:
    def test_one_warning_for_all_blocks(self):
        model = CoupledClassifier(
            GaussianNB(), code="one-vs-rest", combiner=KullbackLeibler(max_iter=1), cv=None
        ).fit(X, names)
        model._row_blocks = RowBlocks(4 * 10)
        with pytest.warns(ConvergenceWarning, match="did not converge") as record:
            model.predict_proba(X)
        assert len(record) == 1
        assert "of 60 rows" in str(record[0].message)

    def test_long_texts_are_not_padded(self):
        class Length(ClassifierMixin, BaseEstimator):
            def fit(self, X, y):
                self.classes_ = np.unique(y)
                return self

            def predict_proba(self, X):
                r = np.array([min(len(text), 9) / 10 for text in X])
                return np.column_stack([1 - r, r])

        texts = ["word"] * 299 + ["w" * 20_000]  # 24 MB if every text takes as much as the longest
        tracemalloc.start()
        CoupledClassifier(Length(), cv=None).fit(texts, np.arange(300) % 3).predict(texts)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4e6

    @pytest.mark.parametrize("empty", [np.empty((0, 3)), FRAME[:0]])
    def test_no_rows_give_no_rows(self, empty):
        """As parts of large data may be empty."""
        data = FRAME if isinstance(empty, pd.DataFrame) else X
        model = CoupledClassifier().fit(data, names)
        assert model.predict(empty).shape == (0,)
        assert model.predict_proba(empty).shape == (0, len(model.classes_))
        with pytest.raises(ValueError, match="features"):
            model.predict(np.empty((0, 7)))

    @pytest.mark.parametrize("learner", [DecisionTreeClassifier(random_state=0), GaussianNB()])
    @pytest.mark.parametrize("dtype", [np.float64, object])
    @pytest.mark.parametrize("options", [{"scaling": None}, {}, {"code": "native"}])
    def test_missing_names_are_said_once(self, options, learner, dtype):
        """Not once for every column, and not by the learner's own model."""
        model = CoupledClassifier(learner, **options).fit(FRAME, names)
        rows = X.astype(dtype)
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            p = model.predict_proba(rows)
        (said,) = [str(one.message) for one in record]
        assert said.startswith("X does not have valid feature names, but CoupledClassifier was")
        assert_array_equal(p, model.predict_proba(FRAME))

    def test_missing_names_of_a_precomputed_kernel_are_said_once(self):
        K = X @ X.T
        model = CoupledClassifier(NuSVC(kernel="precomputed", nu=0.1), combiner="max-wins")
        model.fit(pd.DataFrame(K, columns=[f"k{i}" for i in range(len(K))]), names)
        with pytest.warns(UserWarning, match="valid feature names, but CoupledClass") as record:
            model.predict(K)
        assert len(record) == 1


# -- real data -------------------------------------------------------------------------


class TestBetterThanOneVsRest:
    """Coupling the same learner beats what scikit-learn makes of it."""

    @staticmethod
    def losses(X, y, n_train):
        order = np.random.RandomState(0).permutation(len(y))
        train, test = order[:n_train], order[n_train : n_train + 800]
        scaler = StandardScaler().fit(X[train])
        learner = LogisticRegression(max_iter=300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models = [
                model.fit(scaler.transform(X[train]), y[train])
                for model in (CoupledClassifier(learner), OneVsRestClassifier(learner))
            ]
        return [
            log_loss(y[test], model.predict_proba(scaler.transform(X[test]))) for model in models
        ]

    def test_on_digits(self):
        coupled, one_vs_rest = self.losses(*load_digits(return_X_y=True), n_train=900)
        assert coupled < 0.9 * one_vs_rest

    def test_on_satimage(self, shared_data):
        data = shared_data("satimage")
        coupled, one_vs_rest = self.losses(data.X, data.y, n_train=1500)
        assert coupled < 0.9 * one_vs_rest
