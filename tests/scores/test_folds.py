"""Whole estimators on folds that ignore classes, on classes without weight, on given distances."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsTransformer
from sklearn.svm import SVC, LinearSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.combiners import base as combining
from manyclass.learners import KernelLogisticRegression, ThresholdOptimized

X, y = load_iris(return_X_y=True)  # sorted by class: KFold(3) leaves out one after the other
NAMES = np.array(["setosa", "versicolor", "virginica"])[y]
LEARNERS = [SVC(), LinearSVC(), GaussianNB()]
each_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda m: type(m).__name__)
LEFT_WHOLE = "cv leaves whole classes out"


def quietly(fit, *data, **options):
    """Fit, and let no warning pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fit(*data, **options)


def the_warning(fit, *data, **options):
    """Fit, and return the model and the only warning, which must point at this file."""
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        model = fit(*data, **options)
    assert len(record) == 1 and record[0].filename == __file__
    return model, str(record[0].message)


class TestFoldsThatLeaveWholeClassesOut:
    @each_learner
    @pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
    @pytest.mark.parametrize(
        ("code", "combiner"),
        [("one-vs-one", "wlw2"), ("one-vs-rest", "kl"), ("one-vs-rest", "normalize")],
    )
    def test_cannot_calibrate_any_column(self, learner, calibration, code, combiner):
        model = CoupledClassifier(
            learner, code=code, combiner=combiner, calibration=calibration, cv=KFold(3)
        )
        with pytest.raises(ValueError, match=rf"{LEFT_WHOLE}.*3 of 3 .*'virginica'.*Use cv=5"):
            model.fit(X, NAMES)
        assert not hasattr(model, "bank_")

    def test_cannot_teach_a_combiner(self):
        with pytest.raises(ValueError, match=f"{LEFT_WHOLE}.*Use cv=5"):
            CoupledClassifier(SVC(), combiner="softmax", cv=KFold(3)).fit(X, NAMES)

    @pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True), StratifiedKFold(3)], ids=str)
    def test_the_remedies_work(self, cv):
        model = CoupledClassifier(SVC(), code="one-vs-rest", combiner="normalize", cv=cv)
        assert quietly(model.fit, X, y).score(X, y) > 0.9

    def test_leave_the_scaling_out_and_say_so(self):
        model, message = the_warning(CoupledClassifier(GaussianNB(), cv=KFold(3)).fit, X, NAMES)
        assert LEFT_WHOLE in message and "scaling is not fitted. Use cv=5" in message
        assert model.scaling_ is None
        assert quietly(CoupledClassifier(GaussianNB(), cv=3).fit, X, y).scaling_ is not None

    def test_without_a_scaling_and_calibration_no_folds_are_needed(self):
        options = {"cv": KFold(3), "calibration": None}
        quietly(CoupledClassifier(GaussianNB(), scaling=None, **options).fit, X, y)
        quietly(CoupledClassifier(GaussianNB(), cv=KFold(3), combiner="max-wins").fit, X, y)

    @each_learner
    @pytest.mark.parametrize(("code", "n"), [("one-vs-one", "2 of 3"), ("one-vs-rest", "1 of 3")])
    def test_are_named_where_other_columns_can_be_calibrated(self, learner, code, n):
        group = np.r_[np.zeros(50), np.arange(100) % 4 + 1].astype(int)
        model = CoupledClassifier(
            learner, code=code, combiner="kl", calibration="sigmoid", cv=PredefinedSplit(group)
        )
        model, message = the_warning(model.fit, X, NAMES)
        assert f"{n} columns" in message and "'setosa'. Calibration" in message
        assert "virginica" not in message and "StratifiedKFold" in message
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)

    def test_classes_never_left_out_are_named(self):
        everything = np.arange(150)
        folds = [(np.setdiff1d(everything, test), test) for test in np.split(everything[:100], 5)]
        _, message = the_warning(CoupledClassifier(LinearSVC(), cv=folds).fit, X, NAMES)
        assert "or never leaves them out: 2 of 3" in message and "'virginica'" in message


@pytest.mark.filterwarnings("ignore:the following classes have a single sample:UserWarning")
class TestWhatFoldsAreNotBlamedFor:
    @each_learner
    @pytest.mark.parametrize("cv", [3, StratifiedKFold(3), LeaveOneOut()], ids=str)
    def test_classes_with_a_single_sample(self, learner, cv):
        few = np.r_[0:8, 50:58, 100]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", LEFT_WHOLE)
            warnings.filterwarnings("ignore", "The least populated class")
            warnings.filterwarnings("ignore", "invalid value|divide by zero", RuntimeWarning)
            model = CoupledClassifier(learner, calibration="sigmoid", cv=cv).fit(X[few], y[few])
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)

    @each_learner
    @pytest.mark.parametrize("absent", [(0,), (0, 1)], ids=len)
    @pytest.mark.parametrize(
        "cv", [3, PredefinedSplit(np.where(y == 0, 0, 1 + np.arange(150) % 2))], ids=["3", "whole"]
    )
    def test_classes_without_weight(self, learner, absent, cv):
        weights = np.where(np.isin(y, absent), 0.0, 1.0)
        model = CoupledClassifier(learner, calibration="sigmoid", cv=cv)
        quietly(model.fit, X, y, sample_weight=weights)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


class TestClassesWithoutWeight:
    """They are all alike: of none is anything known, against each other least."""

    four = np.r_[y[:140], np.full(10, 3)]
    weights = np.where(four < 2, 0.0, 1.0)
    swapped = np.array([1, 0, 2, 3])

    def of_new(self, model, labels):
        model = model.fit(X, labels, sample_weight=self.weights)
        gives = hasattr(model, "predict_proba")
        return (model.predict_proba if gives else model.decision_function)(X[::10])

    @pytest.mark.filterwarnings("ignore")  # of rules on certain columns
    @pytest.mark.parametrize("name", combining.names())
    @pytest.mark.parametrize("learner", [LinearSVC(), SVC()], ids=["linear", "kernel"])
    def test_are_told_alike_by_every_combiner(self, name, learner):
        accepts = combining.resolve(name).accepts
        if accepts == "class-trees":
            pytest.skip("each class has a path of its own in a tree that is built from the data")
        code = "one-vs-one" if accepts == "any" else accepts
        model = CoupledClassifier(learner, code=code, combiner=name, cv=3, random_state=0)
        values = self.of_new(model, self.four)
        assert_allclose(values[:, 0], values[:, 1], rtol=1e-6, atol=1e-9)
        renamed = self.of_new(model, self.swapped[self.four])[:, self.swapped]
        assert_allclose(renamed, values, rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
    @pytest.mark.parametrize("learner", [LinearSVC(), SVC(), KernelLogisticRegression()])
    @pytest.mark.parametrize("cv", [3, "loo"])
    def test_their_column_is_even_and_borrows_nothing(self, learner, calibration, cv):
        if cv == "loo" and isinstance(learner, LinearSVC):
            pytest.skip("it has no closed form")
        model = CoupledClassifier(learner, calibration=calibration, cv=cv)
        model.fit(X, self.four, sample_weight=self.weights)
        r = model.calibration_.transform(model.bank_.scores(X))
        assert_array_equal(r[:, 0], np.full(len(X), 0.5))
        assert model.bank_.constant[:5].all() and not model.bank_.constant[5]

    @pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier(GaussianNB())], ids=str)
    def test_are_told_alike_without_folds_or_calibration(self, model):
        values = self.of_new(model, self.four)
        assert_allclose(values[:, 0], values[:, 1], rtol=1e-6)


class TestGivenKernelsAndDistances:
    """The same learner on a matrix as on the features it comes from."""

    data, labels = make_blobs(90, n_features=3, centers=4, cluster_std=4.0, random_state=0)
    new, data, labels = data[60:], data[:60], labels[:60]
    D, D_new = pairwise_distances(data), pairwise_distances(new, data)
    K, K_new = data @ data.T, new @ data.T
    neighbours = KNeighborsClassifier(metric="precomputed")
    on_features = KNeighborsClassifier(metric="euclidean", algorithm="brute")

    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
    @pytest.mark.parametrize(
        ("cv", "calibration"), [(None, None), (3, None), (3, "sigmoid"), (KFold(10), None)]
    )
    def test_neighbours(self, code, cv, calibration):
        options = {"code": code, "combiner": "kl", "cv": cv, "calibration": calibration}
        given = CoupledClassifier(self.neighbours, **options).fit(self.D, self.labels)
        other = CoupledClassifier(self.on_features, **options).fit(self.data, self.labels)
        assert (given.scaling_ is None) == (other.scaling_ is None) == (cv is None)
        p = given.predict_proba(self.D_new)
        assert_allclose(p, other.predict_proba(self.new), atol=1e-12)

    def test_jobs_do_not_matter(self):
        alone, parallel = (CoupledClassifier(self.neighbours, n_jobs=n, cv=3) for n in (1, 2))
        p = alone.fit(self.D, self.labels).predict_proba(self.D_new)
        with parallel_config("threading"):
            parallel.fit(self.D, self.labels)
        assert_array_equal(parallel.predict_proba(self.D_new), p)

    def test_labels_are_those_of_one_vs_one(self):
        ours = CoupledClassifier(self.neighbours, combiner="max-wins", cv=None)
        theirs = OneVsOneClassifier(self.neighbours)
        assert_array_equal(
            ours.fit(self.D, self.labels).predict(self.D_new),
            theirs.fit(self.D, self.labels).predict(self.D_new),
        )

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("cv", [None, 3])
    def test_thresholds_of_machines(self, weighted, cv):
        weights = np.where(self.labels == 1, 0.0, 1.0) if weighted else None
        given, other = (
            CoupledClassifier(ThresholdOptimized(SVC(kernel=kernel), cv=cv))
            for kernel in ("precomputed", "linear")
        )
        given.fit(self.K, self.labels, sample_weight=weights)
        other.fit(self.data, self.labels, sample_weight=weights)
        expected = other.predict_proba(self.new)
        assert_allclose(given.predict_proba(self.K_new), expected, atol=1e-6)

    def test_a_sparse_graph_of_distances(self):
        graph = RadiusNeighborsTransformer(radius=1e3).fit(self.data)
        model = CoupledClassifier(self.neighbours, cv=3)
        given = model.fit(graph.transform(self.data), self.labels)
        p = given.predict_proba(graph.transform(self.new))
        assert_allclose(p, model.fit(self.D, self.labels).predict_proba(self.D_new), atol=1e-12)

    def test_scikit_learn_cuts_the_matrix_by_the_tag(self):
        given = CoupledClassifier(self.neighbours, cv=3)
        other = CoupledClassifier(self.on_features, cv=3)
        assert_array_equal(
            cross_val_predict(given, self.D, self.labels, cv=3),
            cross_val_predict(other, self.data, self.labels, cv=3),
        )

    def test_pickled(self):
        model = CoupledClassifier(self.neighbours, cv=3).fit(self.D, self.labels)
        copy = pickle.loads(pickle.dumps(model))
        assert_array_equal(copy.predict_proba(self.D_new), model.predict_proba(self.D_new))

    def test_read_only_and_single_precision(self):
        D = self.D.astype(np.float32)
        D.flags.writeable = False
        model = CoupledClassifier(self.neighbours, cv=3).fit(D, self.labels)
        assert_allclose(model.predict_proba(self.D_new[:1].astype(np.float32)).sum(), 1.0)

    def test_a_matrix_that_is_not_square_is_refused(self):
        with pytest.raises(ValueError, match=r"\(60, 50\): KNeighborsClassifier .*square"):
            CoupledClassifier(self.neighbours).fit(self.D[:, :50], self.labels)
        model = CoupledClassifier(self.neighbours).fit(self.D, self.labels)
        with pytest.raises(ValueError, match="50 features.*60"):
            model.predict(self.D_new[:, :50])
