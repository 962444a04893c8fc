"""Natively multiclass learners, choices by evidence, and the report about them."""

from __future__ import annotations

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from all_pairs import checks_in_turn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.banks.native import NativeBank
from manyclass.calibration import CALIBRATIONS, Beta, Isotonic, Sigmoid, Unchanged
from manyclass.calibration.native_evidence import sources
from manyclass.scaling import StructuredScaling, Temperature

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, labels = make_blobs(90, n_features=3, centers=4, cluster_std=3.0, random_state=0)
y = np.array(["ant", "bee", "cat", "dog"])[labels]
NEW = np.vstack([X[::3] + 0.5, 100 * X[:5]])
LEARNERS = {
    "logistic": LogisticRegression(),
    "naive Bayes": GaussianNB(),
    "LDA": LinearDiscriminantAnalysis(),
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(5, random_state=0),
    "neighbours": KNeighborsClassifier(),
}
each_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)


class BinaryOnly(GaussianNB):
    """Says that it is multiclass, and fails on more than two classes."""

    def fit(self, X, y, sample_weight=None):
        if len(np.unique(y)) > 2:
            raise ValueError("only two classes, please")
        return super().fit(X, y, sample_weight)


class Counted(GaussianNB):
    """Remembers how many classes each fit has seen."""

    seen: list[int] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.seen.append(len(np.unique(y)))
        return super().fit(X, y, sample_weight)


# -- code="native" ---------------------------------------------------------------------


class TestNativeCode:
    @each_learner
    def test_probabilities_and_labels(self, learner):
        model = CoupledClassifier(learner, code="native").fit(X, y)
        p = model.predict_proba(NEW)
        assert_probabilities(p)
        assert_array_equal(model.predict(NEW), model.classes_[p.argmax(axis=1)])
        assert isinstance(model.bank_, NativeBank) and model.native_ is None
        assert_array_equal(model.code_, codes.one_vs_rest(4))

    @each_learner
    def test_one_model_of_all_classes(self, learner):
        model = CoupledClassifier(learner, code="native", cv=None, scaling=None).fit(X, y)
        (own,) = model.estimators_
        assert_allclose(own.predict_proba(NEW), clone(learner).fit(X, labels).predict_proba(NEW))

    def test_the_estimator_is_fitted_once_and_in_every_fold(self):
        Counted.seen.clear()
        CoupledClassifier(Counted(), code="native", cv=3).fit(X, y)
        assert Counted.seen == [4] * 4

    @pytest.mark.parametrize("calibration", ["auto", None, *CALIBRATIONS])
    @pytest.mark.parametrize("scaling", ["structured", "temperature", None])
    def test_every_calibration_and_scaling(self, scaling, calibration):
        options = {"calibration": calibration, "scaling": scaling, "cv": 3}
        model = CoupledClassifier(GaussianNB(), code="native", **options).fit(X, y)
        assert_probabilities(model.predict_proba(NEW))
        assert model.score(X, y) > 0.6

    @pytest.mark.parametrize("combiner", ["auto", "kl", "normalize", "least-squares", "softmax"])
    def test_combiners(self, combiner):
        model = CoupledClassifier(GaussianNB(), code="native", combiner=combiner).fit(X, y)
        assert_probabilities(model.predict_proba(NEW))

    @pytest.mark.parametrize("learner", [LinearSVC(dual=False), RidgeClassifier(), SVC()])
    def test_margins_of_all_classes(self, learner):
        if isinstance(learner, SVC):
            learner = SVC(decision_function_shape="ovr")
        model = CoupledClassifier(learner, code="native").fit(X, y)
        assert_probabilities(model.predict_proba(NEW))
        assert model.score(X, y) > 0.6

    def test_consistent_probabilities_stay(self):
        model = CoupledClassifier(
            GaussianNB(), code="native", calibration=None, cv=None, scaling=None
        ).fit(X, y)
        own = GaussianNB().fit(X, y).predict_proba(X)
        assert_allclose(model.predict_proba(X), own, atol=1e-5)

    def test_two_classes(self):
        two = labels < 2
        model = CoupledClassifier(GaussianNB(), code="native").fit(X[two], y[two])
        other = CoupledClassifier(GaussianNB()).fit(X[two], y[two])
        assert_array_equal(model.predict_proba(X), other.predict_proba(X))

    def test_better_than_the_learner_alone(self):
        data, target = load_digits(return_X_y=True)
        model = CoupledClassifier(GaussianNB(), code="native", cv=3)
        p = model.fit(data[::2], target[::2]).predict_proba(data[1::2])
        alone = GaussianNB().fit(data[::2], target[::2]).predict_proba(data[1::2])
        assert log_loss(target[1::2], p) < 0.5 * log_loss(target[1::2], alone)

    @each_learner
    def test_relabelling_permutes(self, learner):
        if isinstance(learner, RandomForestClassifier | LogisticRegression):
            learner = GaussianNB(var_smoothing=1e-6)  # a forest draws by class; solvers stop early
        order = np.array([2, 0, 3, 1])
        renamed = np.array(["ant", "bee", "cat", "dog"])[order][labels]
        model = CoupledClassifier(learner, code="native", cv=3)
        p, q = (clone(model).fit(X, one).predict_proba(NEW) for one in (y, renamed))
        assert_allclose(q[:, order], p, atol=1e-6)

    def test_rows_one_by_one(self):
        model = CoupledClassifier(GaussianNB(), code="native").fit(X, y)
        pieces = [model.predict_proba(row[None]) for row in NEW]
        assert_allclose(np.vstack(pieces), model.predict_proba(NEW), rtol=0, atol=1e-12)

    @pytest.mark.parametrize("container", [pd.DataFrame, sparse.csr_array, sparse.csc_array, list])
    def test_kinds_of_x(self, container):
        learner = LogisticRegression(tol=1e-10, max_iter=1000)
        model = CoupledClassifier(learner, code="native", cv=3)
        expected = clone(model).fit(X, y).predict_proba(X)
        data = container(X.tolist()) if container is list else container(X)
        assert_allclose(model.fit(data, y).predict_proba(data), expected, atol=1e-5)

    def test_pipelines_and_precomputed_distances(self):
        model = CoupledClassifier(
            make_pipeline(StandardScaler(), LogisticRegression()), code="native"
        )
        assert model.fit(X, y).score(X, y) > 0.6
        D = np.linalg.norm(X[:, None] - X, axis=2)
        on_distances = CoupledClassifier(KNeighborsClassifier(metric="precomputed"), code="native")
        on_features = CoupledClassifier(KNeighborsClassifier(algorithm="brute"), code="native")
        p, q = on_distances.fit(D, y).predict_proba(D), on_features.fit(X, y).predict_proba(X)
        assert_allclose(p, q, atol=1e-9)

    def test_weights_are_copies(self):
        times = np.random.RandomState(0).randint(0, 3, len(y))
        side = np.arange(len(y)) % 2
        model = CoupledClassifier(GaussianNB(), code="native", calibration="sigmoid")
        split = [(np.flatnonzero(side == s), np.flatnonzero(side != s)) for s in (0, 1)]
        rows = np.arange(len(y)).repeat(times)
        again = [(np.flatnonzero(side[rows] == s), np.flatnonzero(side[rows] != s)) for s in (0, 1)]
        weighted = clone(model).set_params(cv=split).fit(X, y, sample_weight=times)
        copied = clone(model).set_params(cv=again).fit(X[rows], y[rows])
        assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)

    def test_a_class_that_a_fold_lacks(self):
        rare = np.r_[np.flatnonzero(labels != 2), np.flatnonzero(labels == 2)[:1]]
        with pytest.warns(UserWarning, match="single sample"):
            model = CoupledClassifier(GaussianNB(), code="native").fit(X[rare], y[rare])
        p = model.predict_proba(NEW)
        assert_probabilities(p)
        assert (p[:, 2] >= model.least_proba_[2]).all() and model.least_proba_[2] > 0

    def test_a_class_without_weight(self):
        weights = (labels != 2).astype(float)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = CoupledClassifier(GaussianNB(), code="native").fit(X, y, sample_weight=weights)
        assert_probabilities(model.predict_proba(NEW))
        assert model.predict_proba(X)[:, 2].max() < 0.05

    def test_pickles(self):
        model = CoupledClassifier(GaussianNB(), code="native").fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict_proba(NEW), model.predict_proba(NEW))

    def test_does_not_learn_in_batches(self):
        assert hasattr(CoupledClassifier(GaussianNB()), "partial_fit")
        assert not hasattr(CoupledClassifier(GaussianNB(), code="native"), "partial_fit")

    def test_what_is_not_multiclass_says_so(self):
        with pytest.raises(ValueError, match="only two classes"):
            CoupledClassifier(BinaryOnly(), code="native").fit(X, y)

    def test_a_support_vector_classifier_has_scores_of_all_classes(self):
        model = CoupledSVC(code="native", cv=3).fit(X, y)
        assert_probabilities(model.predict_proba(NEW))
        assert model.score(X, y) > 0.6


# -- with_native -----------------------------------------------------------------------


class TestWithNative:
    @each_learner
    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
    def test_is_pooled_by_default(self, code, learner):
        model = CoupledClassifier(learner, code=code, cv=3).fit(X, y)
        assert isinstance(model.native_, NativeBank)
        assert model.scaling_.n_others_ == 2
        p = model.predict_proba(NEW)
        assert_probabilities(p)
        assert_array_equal(model.predict(NEW), model.classes_[p.argmax(axis=1)])
        own = clone(learner).fit(X, labels).predict_proba(NEW)
        scores = model.native_.scores(NEW)
        read = sources(np.empty((len(NEW), 0)), model.native_.kind, scores, expit(scores))
        assert_allclose(read["others"][0], own, atol=1e-9)

    @pytest.mark.parametrize(
        ("learner", "options"),
        [
            (SVC(), {}),
            (SVC(probability=True), {}),
            (LogisticRegression(class_weight={0: 2.0, 1: 1.0}), {}),
            (GaussianNB(), {"with_native": False}),
            (GaussianNB(), {"scaling": "temperature"}),
            (GaussianNB(), {"scaling": None}),
            (GaussianNB(), {"cv": None}),
            (GaussianNB(), {"combiner": "max-wins"}),
            (GaussianNB(), {"combiner": "softmax"}),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*probability.*:FutureWarning")
    def test_not_where_it_has_no_use(self, learner, options):
        assert CoupledClassifier(learner, **{"cv": 3, **options}).fit(X, y).native_ is None

    def test_not_for_two_classes(self):
        two = labels < 2
        assert CoupledClassifier(GaussianNB()).fit(X[two], y[two]).native_ is None

    @pytest.mark.parametrize("learner", [LinearSVC(dual=False), RidgeClassifier()])
    def test_margins_of_classes_are_pooled_as_well(self, learner):
        model = CoupledClassifier(learner, cv=3).fit(X, y)
        assert model.native_ is not None and model.scaling_.n_others_ == 2
        assert_probabilities(model.predict_proba(NEW))

    def test_balanced_weights_are_meant_for_any_classes(self):
        learner = LogisticRegression(class_weight="balanced")
        assert CoupledClassifier(learner).fit(X, y).native_ is not None

    def test_one_fit_more_and_one_in_every_fold(self):
        Counted.seen.clear()
        CoupledClassifier(Counted(), cv=3).fit(X, y)
        assert sorted(Counted.seen) == [2] * 24 + [4] * 4
        Counted.seen.clear()
        CoupledClassifier(Counted(), cv=3, with_native=False).fit(X, y)
        assert Counted.seen == [2] * 24

    def test_a_learner_of_two_classes_warns_and_goes_on(self):
        model = CoupledClassifier(BinaryOnly(), cv=3)
        with pytest.warns(UserWarning, match="all 4 classes at once.*with_native=False") as record:
            model.fit(X, y)
        assert len(record) == 1 and record[0].filename == __file__
        assert "only two classes, please" in str(record[0].message)
        assert model.native_ is None and model.scaling_.n_others_ == 0
        expected = CoupledClassifier(BinaryOnly(), cv=3, with_native=False).fit(X, y)
        assert_array_equal(model.predict_proba(NEW), expected.predict_proba(NEW))

    def test_and_raises_if_it_was_asked_for(self):
        model = CoupledClassifier(BinaryOnly(), cv=3, with_native=True)
        with pytest.raises(ValueError, match="only two classes, please"):
            model.fit(X, y)
        assert not hasattr(model, "bank_")

    @pytest.mark.parametrize("answer", ["no", None, 1, 0.0, np.ones(3)])
    def test_wrong_answers(self, answer):
        with pytest.raises(ValueError, match="with_native must be 'auto', True or False, got "):
            CoupledClassifier(GaussianNB(), with_native=answer).fit(X, y)

    def test_truth_values_of_numpy(self):
        models = [CoupledClassifier(GaussianNB(), with_native=np.bool_(b)) for b in (True, False)]
        assert [model.fit(X, y).native_ is not None for model in models] == [True, False]

    def test_a_gaussian_process_has_its_own_code(self):
        """Multiclass learners that are binary ones inside work as any other."""
        model = CoupledClassifier(GaussianProcessClassifier(), cv=2).fit(X, y)
        assert_probabilities(model.predict_proba(NEW))

    @pytest.mark.parametrize("with_native", [True, False])
    def test_relabelling_permutes(self, with_native):
        order = np.array([2, 0, 3, 1])
        renamed = np.array(["ant", "bee", "cat", "dog"])[order][labels]
        model = CoupledClassifier(GaussianNB(), cv=3, with_native=with_native)
        p, q = (clone(model).fit(X, one).predict_proba(NEW) for one in (y, renamed))
        assert_allclose(q[:, order], p, atol=1e-6)

    @pytest.mark.parametrize("code", ["one-vs-one", "native"])
    @pytest.mark.parametrize("learner", [RandomForestClassifier(3), GaussianNB()])
    def test_same_bits_for_any_number_of_jobs(self, learner, code):
        models = [
            CoupledClassifier(learner, code=code, cv=3, n_jobs=n, random_state=0) for n in (1, 2)
        ]
        with joblib.parallel_config(backend="threading"):
            one, two = (model.fit(X, y).predict_proba(NEW) for model in models)
        assert_array_equal(one, two)

    def test_never_much_worse_than_the_learner_itself(self):
        data, target = load_digits(return_X_y=True)
        learner = LogisticRegression(C=0.01, max_iter=300)
        model = CoupledClassifier(learner, cv=3).fit(data[:600] / 16, target[:600])
        own = clone(learner).fit(data[:600] / 16, target[:600])
        ours, theirs = (
            log_loss(target[600:], one.predict_proba(data[600:] / 16)) for one in (model, own)
        )
        assert ours < 1.02 * theirs

    def test_partial_fit_goes_on_without_it(self):
        model = CoupledClassifier(GaussianNB()).fit(X, y)
        assert model.native_ is not None
        for _ in range(4):
            model.partial_fit(X, y)
        assert model.native_ is None and model.scaling_.n_others_ == 0
        assert_probabilities(model.predict_proba(NEW))


# -- combiner="auto" -------------------------------------------------------------------


class TestAutomaticCombiner:
    @pytest.mark.parametrize("code", [*codes.NAMES, *codes.FROM_DATA, "native"])
    def test_every_code_works_without_a_second_parameter(self, code):
        model = CoupledClassifier(GaussianNB(), code=code, cv=3, random_state=0).fit(X, y)
        assert model.combiner == "auto"
        keys = {"one-vs-one": "wlw2", "native": "normalize"}
        keys |= dict.fromkeys(codes.FROM_DATA, "tree-product")
        key = keys.get(code, "kl")
        assert model.combiner_.key == key
        assert_probabilities(model.predict_proba(NEW))

    @pytest.mark.parametrize("code", [*codes.NAMES, "class-trees"])
    def test_so_it_does_for_support_vector_machines(self, code):
        model = CoupledSVC(code=code, random_state=0).fit(X, y)
        assert_probabilities(model.predict_proba(NEW))

    def test_matrices_are_recognised(self):
        for code, key in [(codes.one_vs_one(4)[:, ::-1], "wlw2"), (codes.complete(4), "kl")]:
            assert CoupledClassifier(GaussianNB(), code=code).fit(X, y).combiner_.key == key

    def test_codes_that_do_not_determine_the_probabilities(self):
        code = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.int8)
        with pytest.warns(UserWarning):
            model = CoupledClassifier(GaussianNB(), code=code).fit(X, y)
        assert model.combiner_.key == "least-squares"
        assert_probabilities(model.predict_proba(NEW))

    def test_a_grid_over_codes(self):
        names = [*codes.NAMES, *codes.FROM_DATA, "native"]
        model = CoupledClassifier(GaussianNB(), cv=2, random_state=0)
        search = GridSearchCV(
            model, {"code": names}, scoring="neg_log_loss", cv=2, error_score="raise"
        )
        assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()

    def test_probabilities_exist_before_fit(self):
        assert hasattr(CoupledClassifier(), "predict_proba")
        assert hasattr(CoupledClassifier(code="native"), "predict_proba")


# -- calibration="auto" ----------------------------------------------------------------


class TestAutomaticCalibration:
    @each_learner
    def test_the_choice_is_among_four_and_as_if_it_was_named(self, learner):
        model = CoupledClassifier(learner, cv=3, random_state=0).fit(X, y)
        method = type(model.calibration_)
        assert method in (Unchanged, Sigmoid, Beta, Isotonic)
        if method is Unchanged:
            return
        named = CoupledClassifier(learner, calibration=method.name, cv=3, random_state=0).fit(X, y)
        if named.bank_.kind == model.bank_.kind:
            assert_array_equal(named.predict_proba(NEW), model.predict_proba(NEW))

    @each_learner
    def test_never_what_is_clearly_worse(self, learner):
        choice = CoupledClassifier(learner, cv=3).fit(X, y).calibration_report().calibration
        chosen = choice.method.name
        assert choice.losses[chosen] <= min(choice.losses.values()) + choice.standard_errors[chosen]

    def test_margins_have_two_candidates(self):
        report = CoupledClassifier(LinearSVC(dual=False), cv=3).fit(X, y).calibration_report()
        assert set(report.calibration.losses) == {"sigmoid", "isotonic"}

    def test_kernel_machines_have_sigmoids(self):
        assert type(CoupledSVC().fit(X, y).calibration_) is Sigmoid
        assert type(CoupledClassifier(SVC()).fit(X, y).calibration_) is Sigmoid

    def test_overconfident_probabilities_are_calibrated(self):
        rng = np.random.RandomState(0)
        doubled = np.repeat(X + 2 * rng.normal(size=X.shape), 6, axis=1)  # naive Bayes counts six
        model = CoupledClassifier(GaussianNB(), cv=3, scaling=None)  # it would be calibrated, too
        assert type(model.fit(doubled, y).calibration_) is not Unchanged

    def test_true_probabilities_are_left_as_they_are(self):
        rng = np.random.RandomState(1)
        data = rng.normal(size=(3000, 2)) + 1.5 * np.eye(3, 2)[rng.randint(3, size=3000)]
        mass = np.exp(1.5 * np.column_stack([data, 0 * data[:, 0]]) - [1.125, 1.125, 0])
        target = (mass / mass.sum(axis=1, keepdims=True)).cumsum(axis=1)
        target = (target < rng.uniform(size=(3000, 1))).sum(axis=1)
        model = CoupledClassifier(LogisticRegression(C=100), cv=3).fit(data, target)
        own = LogisticRegression(C=100).fit(data, target).predict_proba(data)
        assert abs(model.predict_proba(data) - own).mean() < 0.02

    def test_linear_models_give_log_odds(self):
        """The scores that the calibrations compare are those of predict_proba."""
        model = CoupledClassifier(LogisticRegression(), cv=3).fit(X, y)
        r = np.column_stack([one.predict_proba(NEW)[:, 1] for one in model.estimators_])
        bound = 27.0
        expected = np.clip(np.log(r) - np.log1p(-r), -bound, bound)
        assert_allclose(np.clip(model.bank_.scores(NEW), -bound, bound), expected, atol=1e-3)


# -- the report ------------------------------------------------------------------------


class TestReport:
    def test_what_was_chosen_and_by_how_much(self):
        model = CoupledClassifier(GaussianNB(), cv=3).fit(X, y)
        report = model.calibration_report()
        assert type(model.calibration_) is report.calibration.method
        assert set(report.calibration.losses) == {"unchanged", "sigmoid", "beta", "isotonic"}
        assert report.scaling == "StructuredScaling" and report.n_samples == len(y)
        assert set(report.log_loss) == {"coupled", "scaled", "native"}
        own = cross_val_predict(GaussianNB(), X, labels, cv=3, method="predict_proba")
        assert_allclose(report.log_loss["native"], log_loss(labels, own), rtol=0.2)
        text = str(report)
        for word in ("calibration", "scaling: StructuredScaling", "log-loss", "coupled", "native"):
            assert word in text
        assert report.calibration.method.name in text

    def test_scaling_lowers_the_log_loss_on_its_own_rows(self):
        for learner in LEARNERS.values():
            losses = CoupledClassifier(learner, cv=3).fit(X, y).calibration_report().log_loss
            assert losses["scaled"] < losses["coupled"] + 0.02

    @pytest.mark.parametrize(
        ("options", "scaling"),
        [
            ({"scaling": "temperature"}, "Temperature"),
            ({"scaling": None}, None),
            ({"cv": None}, None),
        ],
    )
    def test_says_what_was_not_done(self, options, scaling):
        report = CoupledClassifier(GaussianNB(), **options).fit(X, y).calibration_report()
        assert report.scaling == scaling and "native" not in report.log_loss
        if "cv" in options:
            assert str(report) == "nothing was calibrated"

    @pytest.mark.parametrize(
        "model", [CoupledSVC(), CoupledClassifier(GaussianNB(), code="native")]
    )
    def test_of_all_classifiers(self, model):
        with pytest.raises(NotFittedError):
            model.calibration_report()
        report = model.fit(X, y).calibration_report()
        assert report.scaling == "StructuredScaling" and str(report)

    def test_is_made_again_by_every_fit(self):
        model = CoupledClassifier(GaussianNB()).fit(X, y)
        first = model.calibration_report()
        second = model.set_params(scaling=None).fit(X, y).calibration_report()
        assert first is not second and second.scaling is None and first.scaling is not None

    def test_is_printed_if_verbose(self, capsys):
        CoupledClassifier(GaussianNB(), verbose=1).fit(X, y)
        assert "scaling: StructuredScaling" in capsys.readouterr().out
        CoupledClassifier(GaussianNB()).fit(X, y)
        assert capsys.readouterr().out == ""

    def test_two_classes(self):
        two = labels < 2
        report = CoupledClassifier(GaussianNB()).fit(X[two], y[two]).calibration_report()
        assert report.scaling is None and report.calibration.losses

    def test_pickles_and_single_candidates(self):
        model = CoupledClassifier(GaussianNB(), calibration="sigmoid").fit(X, y)
        report = pickle.loads(pickle.dumps(model)).calibration_report()
        assert report.calibration.losses == {} and "sigmoid" in str(report)


# -- scikit-learn ----------------------------------------------------------------------


# CoupledClassifier() and CoupledSVC() have all checks in test_contracts and test_svm.
@checks_in_turn(
    [
        CoupledClassifier(code="native"),
        CoupledClassifier(GaussianNB(), code="native"),
        CoupledClassifier(LinearSVC(), code="native", scaling="temperature"),
        CoupledClassifier(with_native=False),
        CoupledClassifier(GaussianNB(), with_native=True),
        CoupledClassifier(scaling="temperature"),
        CoupledSVC(scaling="temperature"),
        CoupledClassifier(scaling=None),
        CoupledSVC(scaling=None),
    ],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("scaling", [StructuredScaling(), Temperature()])
def test_scalings_are_estimators(scaling):
    assert isinstance(scaling, BaseEstimator) and not isinstance(scaling, ClassifierMixin)
    assert scaling.get_params() == {} and repr(clone(scaling)) == repr(scaling)
    p = cross_val_predict(GaussianNB(), *load_iris(return_X_y=True), method="predict_proba")
    target = load_iris(return_X_y=True)[1]
    assert scaling.fit(p, target) is scaling
    assert log_loss(target, scaling.predict_proba(p)) <= log_loss(target, p) + 0.01
