"""What users may rely on, whatever the estimator, the code and the combiner: a class for each."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import ClassVar

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from all_pairs import all_pairs, checks_in_turn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.combiners.base import names, resolve
from manyclass.combiners.coupling import HastieTibshirani, KullbackLeibler, Vote
from manyclass.combiners.decoding import Hamming, MaxWins
from manyclass.learners import KernelLogisticRegression
from manyclass.predicting import RowBlocks
from manyclass.scaling import StructuredScaling

# Printed iterations and extreme probabilities may not converge; that is said elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, labels = make_blobs(60, n_features=3, centers=4, cluster_std=4.0, random_state=0)
y = np.array(["ant", "bee", "cat", "dog"])[labels]
FAR = np.vstack([X, 1e3 * X, np.zeros((1, 3))])  # where the models are sure, and where not
SPARSE = np.array(
    [[1, 1, 0, -1, 1], [-1, 0, 1, -1, 0], [0, -1, 1, 1, 0], [0, -1, -1, 1, -1]], dtype=np.int8
)
CODES = {
    "one-vs-one": codes.one_vs_one(4),
    "one-vs-rest": codes.one_vs_rest(4),
    "complete": codes.complete(4),
    "ternary": SPARSE,
}
ESTIMATORS = {
    "logistic": LogisticRegression(),
    "linear SVC": LinearSVC(dual=False),
    "SVC": SVC(),
    "naive Bayes": GaussianNB(),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def fits(combiner, code):
    try:
        resolve(combiner).check_code(CODES[code])
    except ValueError:
        return False
    return True


# Reliabilities are defined for support vector machines only: see test_reliability.py.
ANYWHERE = [combiner for combiner in names() if resolve(combiner).measure() is None]
PAIRINGS = [(combiner, code) for combiner in ANYWHERE for code in CODES if fits(combiner, code)]
RULES = [pair for pair in PAIRINGS if resolve(pair[0]).gives_probabilities]
COUPLING = [pair for pair in RULES if resolve(pair[0]).takes == "probabilities"]
DECODERS = [pair for pair in PAIRINGS if not resolve(pair[0]).gives_probabilities]
each_pairing = pytest.mark.parametrize(("combiner", "code"), PAIRINGS)


def sampled(pairings, **others):
    """A sample of the product: it has every pairing, and every pair with the other values."""
    combiners = dict.fromkeys(combiner for combiner, _ in pairings)
    return all_pairs(
        lambda combiner, code, **_: (combiner, code) in pairings,
        combiner=list(combiners),
        code=list(CODES),
        **others,
    )


def build(estimator, combiner="wlw2", code="one-vs-one", **options):
    """A classifier with few folds; codes by the names above."""
    options = {"cv": 2, **options}
    return CoupledClassifier(estimator, combiner=combiner, code=CODES[code], **options)


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)


def values_of(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)


def test_every_combiner_is_covered():
    assert {combiner for combiner, _ in PAIRINGS} == set(ANYWHERE)
    assert len(RULES) >= 25 and len(DECODERS) >= 14


# -- 1 ---------------------------------------------------------------------------------


class TestLabelsAreThoseOfTheValues:
    @sampled(RULES, estimator=ESTIMATORS)
    def test_the_label_is_the_most_probable_class(self, combiner, code, estimator):
        model = build(estimator, combiner, code).fit(X, y)
        p = model.predict_proba(FAR)
        assert_probabilities(p)
        assert_array_equal(model.predict(FAR), model.classes_[p.argmax(axis=1)])

    @sampled(DECODERS, estimator=ESTIMATORS)
    def test_decoders_label_by_their_scores_and_have_no_probabilities(
        self, combiner, code, estimator
    ):
        model = build(estimator, combiner, code)
        for _ in range(2):  # unfitted, then fitted
            for method in ("predict_proba", "predict_log_proba", "incoherence"):
                assert not hasattr(model, method)
            model.fit(X, y)
        scores = model.decision_function(FAR)
        assert scores.shape == (len(FAR), 4)
        assert_array_equal(model.predict(FAR), model.classes_[scores.argmax(axis=1)])

    @pytest.mark.parametrize("combiner", ["wlw2", "max-wins"])
    def test_two_classes_are_labelled_by_the_sign(self, combiner):
        two = labels < 2
        model = CoupledClassifier(combiner=combiner).fit(X[two], y[two])
        scores = model.decision_function(X)
        assert scores.shape == (len(X),)
        assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])

    @pytest.mark.parametrize("seed", [None, np.random.RandomState(0)], ids=["None", "RandomState"])
    @pytest.mark.parametrize("decoder", [Vote, MaxWins, Hamming])
    def test_ties_are_broken_once_and_for_all(self, decoder, seed):
        model = build(Answers("margin", [0.0]), decoder(random_state=seed)).fit(X, y)
        values, label = values_of(model, X), model.predict(X)
        for _ in range(10):
            assert_array_equal(values_of(model, X), values)
            assert_array_equal(model.predict(X), label)
        assert_array_equal(label, model.classes_[values.argmax(axis=1)])


# -- 2 ---------------------------------------------------------------------------------


class Answers(ClassifierMixin, BaseEstimator):
    """Gives answers from a list, scattered over rows and columns, whatever it learns."""

    def __init__(self, kind="margin", answers=(0.0,), dtype=np.float64):
        self.kind = kind
        self.answers = answers
        self.dtype = dtype

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.offset_ = 7 * int(y.sum()) + len(y)
        self.nan_at_ = None
        return self

    def _answer(self, X):
        place = np.abs(X @ np.arange(1, X.shape[1] + 1) * 100).astype(np.int64) + self.offset_
        out = np.asarray(self.answers, dtype=self.dtype)[place % len(self.answers)]
        if self.nan_at_ is not None:
            out[X[:, 0] == self.nan_at_] = np.nan
        return out

    @sklearn.utils.metaestimators.available_if(lambda self: self.kind == "margin")
    def decision_function(self, X):
        return self._answer(X)

    @sklearn.utils.metaestimators.available_if(lambda self: self.kind == "probability")
    def predict_proba(self, X):
        r = self._answer(X)
        return np.column_stack([1 - r, r])


TINY = np.finfo(float).tiny
WILD = {
    "hard": ("probability", [0.0, 1.0]),
    "nearly hard": ("probability", [TINY, 1e-300, 1 - 2**-53, 0.5]),
    "certain": ("probability", [1.0]),
    "undecided": ("probability", [0.5]),
    "huge": ("margin", [-1e300, 1e300, 1e-300]),
    "infinite": ("margin", [-np.inf, np.inf]),
    "infinite and not": ("margin", [-np.inf, -1.0, 0.0, 2.0, np.inf]),
    "zero": ("margin", [0.0]),
}


class TestProbabilitiesWhateverTheModelsReturn:
    @sampled(RULES, answers=list(WILD))
    def test_finite_within_0_and_1_summing_to_1(self, combiner, code, answers):
        model = build(Answers(*WILD[answers]), combiner, code).fit(X, y)
        p = model.predict_proba(FAR)
        assert_probabilities(p)
        assert_array_equal(model.predict(FAR), model.classes_[p.argmax(axis=1)])

    @pytest.mark.parametrize("answers", [name for name in WILD if WILD[name][0] == "margin"])
    @pytest.mark.parametrize("scaling", ["structured", "temperature", None])
    def test_after_isotonic_calibration(self, answers, scaling):
        model = build(Answers(*WILD[answers]), calibration="isotonic", scaling=scaling)
        assert_probabilities(model.fit(X, y).predict_proba(FAR))

    @sampled(DECODERS, answers=list(WILD))
    def test_decoders_give_finite_scores(self, combiner, code, answers):
        model = build(Answers(*WILD[answers]), combiner, code).fit(X, y)
        scores = model.decision_function(FAR)
        assert np.isfinite(scores).all()
        assert_array_equal(model.predict(FAR), model.classes_[scores.argmax(axis=1)])

    def test_single_precision_answers(self):
        model = build(Answers("probability", [0.1, 0.7, 1.0], np.float32)).fit(X, y)
        assert_probabilities(model.predict_proba(FAR))

    @pytest.mark.parametrize("combiner", ["wlw2", "kl", "max-wins"])
    @pytest.mark.parametrize("kind", ["probability", "margin"])
    @pytest.mark.parametrize("rows_at_a_time", [1000, 10])
    def test_nan_is_located(self, combiner, kind, rows_at_a_time):
        model = build(Answers(kind, [0.2, 0.6]), combiner).fit(X, y)
        model.estimators_[4].nan_at_ = 5.0
        new = np.zeros((50, 3))
        new[33] = 5.0
        model._row_blocks = RowBlocks(6 * rows_at_a_time)
        with pytest.raises(ValueError, match="NaN at row 33, column 4"):
            model.predict(new)

    @pytest.mark.parametrize("kind", ["probability", "margin"])
    def test_nan_while_fitting_is_not_passed_over(self, kind):
        class Failing(Answers):
            def fit(self, X, y):
                super().fit(X, y)
                self.nan_at_ = 5.0
                return self

        holed = X.copy()
        holed[7] = 5.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((ValueError, UserWarning), match="NaN"):
                build(Failing(kind, [0.2, 0.6])).fit(holed, y)


# -- 3 ---------------------------------------------------------------------------------

EXACT = {
    "logistic": LogisticRegression(solver="newton-cholesky", tol=1e-12),
    "linear SVC": LinearSVC(dual=False, tol=1e-12),
    "SVC": SVC(tol=1e-12),
    "naive Bayes": GaussianNB(),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
}


class TestNothingDependsOnNamesPiecesOrJobs:
    order = np.array([2, 0, 3, 1])  # class c becomes the order[c]-th in the alphabet
    renamed = np.array(["ant", "bee", "cat", "dog"])[order][labels]

    def compare(self, model, other):
        """Classes permuted, columns of the values permuted."""
        mine, theirs = values_of(model, FAR), values_of(other, FAR)
        assert_allclose(mine, theirs[:, self.order], rtol=1e-6, atol=1e-6)
        back = dict(zip(other.classes_[self.order], model.classes_, strict=True))
        clear = np.diff(np.sort(mine, axis=1)[:, -2:]).ravel() > 1e-4
        assert_array_equal(
            model.predict(FAR)[clear], [back[label] for label in other.predict(FAR)[clear]]
        )

    @each_pairing
    def test_renaming_classes_permutes_columns(self, combiner, code):
        if combiner == "refregier-vallet":
            pytest.skip("a chain of neighbouring classes depends on their order")
        matrix = CODES[code]
        if code == "ternary":  # other codes come out the same, up to order and sign of columns
            matrix = np.empty_like(matrix)
            matrix[self.order] = CODES[code]
        model = build(EXACT["logistic"], combiner, code).fit(X, y)
        other = clone_with(model, code=matrix).fit(X, self.renamed)
        self.compare(model, other)

    @pytest.mark.parametrize("estimator", EXACT.values(), ids=EXACT)
    @pytest.mark.parametrize("calibration", ["auto", "sigmoid", "robust-sigmoid", "isotonic"])
    def test_whatever_the_estimator_and_the_calibration(self, estimator, calibration):
        model = build(estimator, calibration=calibration)
        self.compare(model.fit(X, y), clone_with(model).fit(X, self.renamed))

    @pytest.mark.parametrize("new", [[10, -3, 0, 7], [True, False], [2.0, 1.0, 4.0, 3.0]])
    def test_labels_of_other_types_only_rename(self, new):
        used = labels < len(new)
        model = build(EXACT["logistic"]) if len(new) == 4 else CoupledClassifier(cv=2)
        p = model.fit(X[used], labels[used]).predict_proba(FAR)
        other = clone_with(model).fit(X[used], np.array(new)[labels[used]])
        assert_array_equal(other.classes_, np.sort(new))
        assert other.classes_.dtype == np.array(new).dtype
        order = np.argsort(np.argsort(new))
        assert_allclose(other.predict_proba(FAR)[:, order], p, atol=1e-6)

    @sampled(PAIRINGS, estimator=[LinearSVC(dual=False), GaussianNB()])
    def test_pieces_of_x_get_the_same_answers(self, combiner, code, estimator):
        model = build(estimator, combiner, code).fit(X, y)
        whole = values_of(model, FAR)
        cuts = [1, 2, 3, 10, 60, 61, 90]
        pieces = [values_of(model, piece) for piece in np.split(FAR, cuts)]
        assert_allclose(np.vstack(pieces), whole, rtol=1e-12, atol=1e-12)
        model._row_blocks = RowBlocks(10 * model.code_.shape[1])
        assert_allclose(values_of(model, FAR), whole, rtol=1e-12, atol=1e-12)

    @pytest.mark.parametrize("data", [X.tolist(), pd.DataFrame(X), sparse.csr_array(X)])
    def test_all_containers_are_read_in_pieces(self, data):
        model = build(make_pipeline(StandardScaler(with_mean=False), LinearSVC())).fit(data, y)
        whole = model.predict_proba(data)
        model._row_blocks = RowBlocks(6 * 7)
        assert_allclose(model.predict_proba(data), whole, rtol=1e-12)
        assert_allclose(model.incoherence(data), clone_with(model).fit(data, y).incoherence(data))

    random_parts = pytest.mark.parametrize(
        "estimator",
        [
            RandomForestClassifier(n_estimators=3, max_depth=3),
            make_pipeline(StandardScaler(), SGDClassifier()),
        ],
        ids=["forest", "SGD"],
    )

    @random_parts
    def test_same_seed_same_bits(self, estimator):
        first, second, other = (
            CoupledClassifier(estimator, code="sparse-random", combiner="kl", cv=2, random_state=s)
            .fit(X, y)
            .predict_proba(FAR)
            for s in (3, 3, 4)
        )
        assert_array_equal(first, second)
        assert not np.array_equal(first, other)

    @random_parts
    @pytest.mark.parametrize("combiner", ["ht", "vote", "max-wins"])
    def test_same_bits_with_two_threads(self, estimator, combiner):
        one, two = (build(estimator, combiner, n_jobs=n, random_state=0) for n in (1, 2))
        expected = values_of(one.fit(X, y), FAR)
        with joblib.parallel_config(backend="threading"):
            assert_array_equal(values_of(two.fit(X, y), FAR), expected)

    def test_same_bits_with_two_processes(self):
        one, two = (
            build(RandomForestClassifier(n_estimators=3), "ht", n_jobs=n, random_state=0)
            for n in (1, 2)
        )
        expected = one.fit(X, y).predict_proba(FAR)
        with joblib.parallel_config(backend="loky"):
            assert_array_equal(two.fit(X, y).predict_proba(FAR), expected)


def clone_with(model, **changes):
    return clone(model).set_params(**changes)


# -- 4 ---------------------------------------------------------------------------------


class Truth(ClassifierMixin, BaseEstimator):
    """Knows P(one side | both sides): trained on one-hot classes, asked about distributions."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.sides_ = [X[y == side].max(axis=0) for side in (0, 1)]
        return self

    def predict_proba(self, X):
        mass = np.column_stack([X @ side for side in self.sides_])
        return mass / mass.sum(axis=1, keepdims=True)


class TestConsistentInputsAreRecovered:
    recovering: ClassVar = [
        (combiner, code)
        for combiner, code in COUPLING
        if combiner not in ("vote", "ht-noniterative", "noniterative", "zadrozny")
    ]
    p = np.random.RandomState(0).dirichlet(np.ones(4), 50)

    @pytest.mark.parametrize(("combiner", "code"), recovering)
    def test_true_binary_probabilities_give_true_class_probabilities(self, combiner, code):
        model = build(Truth(), combiner, code, scaling=None)
        model.fit(np.repeat(np.eye(4), 3, axis=0), np.repeat(list("abcd"), 3))
        assert_allclose(model.predict_proba(self.p), self.p, atol=1e-6)
        assert_allclose(model.incoherence(self.p), 0, atol=1e-6)

    @pytest.mark.parametrize("combiner", ["wlw2", "ht", "kl"])
    def test_with_the_accuracy_of_the_rule(self, combiner):
        model = build(Truth(), combiner, scaling=None)
        model.fit(np.repeat(np.eye(4), 3, axis=0), np.repeat(list("abcd"), 3))
        assert_allclose(model.predict_proba(self.p), self.p, atol=1e-9)


class TestTwoClassesReturnTheBinaryProbability:
    two = labels < 2

    @pytest.mark.parametrize("code", [*codes.NAMES, *codes.FROM_DATA])
    @pytest.mark.parametrize("combiner", ["wlw2", "kl", "least-squares", "pkpd", "normalize"])
    def test_of_logistic_regression(self, combiner, code):
        estimator = LogisticRegression(tol=1e-10)
        model = CoupledClassifier(estimator, code=code, combiner=combiner, calibration=None)
        p = model.fit(X[self.two], y[self.two]).predict_proba(X)
        expected = estimator.fit(X[self.two], y[self.two]).predict_proba(X)
        assert_allclose(p, expected, atol=1e-7)
        assert model.scaling_ is None

    @pytest.mark.parametrize(("combiner", "code"), COUPLING)
    def test_by_every_rule(self, combiner, code):
        r = np.random.RandomState(0).uniform(0.01, 0.99, 40)
        model = CoupledClassifier(
            Truth(), combiner=combiner, code=code if code != "ternary" else "ordinal"
        )
        model.fit(np.repeat(np.eye(2), 3, axis=0), [0, 0, 0, 1, 1, 1])
        p = model.predict_proba(np.column_stack([1 - r, r]))
        expected = r if combiner != "vote" else r > 0.5
        assert_allclose(p[:, 1], expected, atol=1e-9)

    def test_but_a_calibration_is_followed_by_a_scaling(self):
        X, y = make_classification(300, weights=[0.9], class_sep=2.0, random_state=0)
        half = {"calibration": "sigmoid", "code": "one-vs-one"}
        plain = CoupledClassifier(SVC(), scaling=None, **half).fit(X[::2], y[::2])
        scaled = CoupledClassifier(SVC(), **half).fit(X[::2], y[::2])
        assert isinstance(scaled.scaling_, StructuredScaling)
        assert scaled.native_ is None
        before, after = plain.predict_proba(X[1::2]), scaled.predict_proba(X[1::2])
        assert log_loss(y[1::2], after) < log_loss(y[1::2], before)
        assert_array_equal(scaled.predict(X), scaled.predict_proba(X).argmax(axis=1))


# -- 5 ---------------------------------------------------------------------------------

SQUARES = {"code": "dense-random", "combiner": "least-squares", "calibration": "sigmoid"}
# The default has all checks. The others of a list take turns.
CHECKED = [
    [CoupledClassifier()],
    [
        CoupledClassifier(code="one-vs-rest", combiner="normalize"),
        CoupledClassifier(SVC(), **SQUARES),
    ],
    [
        CoupledClassifier(code="sparse-random", combiner="kl"),
        CoupledClassifier(combiner="max-wins"),
        CoupledClassifier(LinearDiscriminantAnalysis(), combiner="ht"),
        CoupledClassifier(KNeighborsClassifier(), code="one-vs-rest", combiner="kl", cv=None),
        CoupledClassifier(LinearSVC(), combiner="ht", calibration="sigmoid"),
        CoupledClassifier(GaussianNB(), code="class-trees"),
        CoupledClassifier(GaussianNB(), code="q-ary"),
    ],
]


def expected_failed_checks(estimator):
    return {}


@checks_in_turn(*CHECKED, expected_failed_checks=expected_failed_checks)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- 6 ---------------------------------------------------------------------------------


class TestRareClasses:
    single = np.r_[0:58, 59:60][labels[np.r_[0:58, 59:60]] != 2]
    X = np.vstack([X[single], [[30.0, 30.0, 30.0]]])
    y = np.append(y[single], "cat")

    @pytest.mark.parametrize("estimator", [LogisticRegression(), SVC()])
    @pytest.mark.parametrize("code", CODES)
    def test_a_single_sample_is_named_and_kept(self, code, estimator):
        model = build(estimator, "kl", code, cv=5)
        with pytest.warns(UserWarning, match="single sample each: 'cat'.*merge") as record:
            model.fit(self.X, self.y)
        assert len(record) == 1 and record[0].filename == __file__
        assert_array_equal(model.classes_, ["ant", "bee", "cat", "dog"])
        p = model.predict_proba(FAR)
        assert_probabilities(p)
        assert (p[:, 2] > 0).all()

    @pytest.mark.parametrize("cv", ["loo", 5])
    def test_the_scaling_does_not_take_all_from_a_single_sample(self, cv):
        model = CoupledSVC(cv=cv)
        with pytest.warns(UserWarning, match="single sample"):
            model.fit(self.X, self.y)
        half_its_share = 0.5 / len(self.y)
        assert_allclose(model.least_proba_, [0, 0, half_its_share, 0])
        assert model.predict_proba(FAR)[:, 2].min() >= half_its_share
        with pytest.warns(UserWarning, match="single sample"):
            model.set_params(scaling=None).fit(self.X, self.y)
        assert not model.least_proba_.any()

    def test_a_single_sample_among_others_of_no_weight(self):
        rows, weights = labels < 3, np.where(labels == 2, 0.0, 1.0)
        weights[np.flatnonzero(labels == 2)[0]] = 1.0
        model = CoupledSVC(cv=3).fit(X[rows], y[rows], sample_weight=weights[rows])
        assert_allclose(model.least_proba_, [0, 0, 0.5 / weights[rows].sum()])

    def test_fewer_samples_than_folds_are_spread(self):
        few = np.r_[np.flatnonzero(labels != 2), np.flatnonzero(labels == 2)[:3]]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = build(LinearSVC(dual=False), cv=5).fit(X[few], y[few])
        assert_probabilities(model.predict_proba(FAR))
        assert "cat" in model.classes_

    def test_nothing_but_single_samples(self):
        model = CoupledClassifier(LogisticRegression())
        with pytest.raises(ValueError, match=r"at most 1 sample.*cv=None"):
            model.fit(X[:4], ["a", "b", "c", "d"])
        model.set_params(cv=None).fit(X[:4], ["a", "b", "c", "d"])
        assert_array_equal(model.predict(X[:4]), ["a", "b", "c", "d"])

    def test_one_class_is_refused(self):
        with pytest.raises(ValueError, match="only one class, 'ant'"):
            CoupledClassifier().fit(X, np.full(len(X), "ant"))


class TestConstantColumns:
    """A class of weight 0 leaves columns with a single side: as if it were not there."""

    X, labels = make_blobs(120, n_features=3, centers=4, cluster_std=2.0, random_state=0)
    y = np.array(["ant", "bee", "cat", "dog"])[labels]
    kept = labels != 2
    weights = kept.astype(float)
    splits: ClassVar = [(np.arange(120)[i::2], np.arange(120)[1 - i :: 2]) for i in (0, 1)]

    @pytest.mark.parametrize(
        "estimator", [clone(EXACT["logistic"]).set_params(C=0.01), EXACT["linear SVC"]]
    )
    @pytest.mark.parametrize(
        ("combiner", "code"),
        [("wlw2", "one-vs-one"), ("ht", "one-vs-one"), ("normalize", "one-vs-rest")],
    )
    @pytest.mark.parametrize("scaling", ["structured", "temperature", None])
    def test_a_class_without_weight_is_as_good_as_absent(self, scaling, combiner, code, estimator):
        options = {"combiner": combiner, "calibration": "sigmoid", "scaling": scaling}
        model = build(estimator, code=code, cv=self.splits, **options)
        model.fit(self.X, self.y, sample_weight=self.weights)
        position = np.cumsum(self.kept) - 1
        splits = [[position[rows[self.kept[rows]]] for rows in split] for split in self.splits]
        without = CoupledClassifier(estimator, code=code, cv=splits, **options)
        without.fit(self.X[self.kept], self.y[self.kept])
        p = model.predict_proba(self.X)
        assert_probabilities(p)
        if scaling == "temperature":
            assert_allclose(model.scaling_.power_, without.scaling_.power_, rtol=0.02)
        # A scaling mixes in a share of the uniform distribution over all classes.
        share = 0.0 if scaling is None else model.scaling_.share_
        assert_allclose(p[:, 2], 0, atol=2e-3 + share)
        difference = p[:, [0, 1, 3]] - without.predict_proba(self.X)
        # The ridge of structured scaling depends on the number of classes.
        assert abs(difference).mean() < 0.03
        assert abs(difference).max() < (0.25 if scaling == "structured" else 0.03)

    def test_without_folds(self):
        model = build(GaussianNB(), cv=None).fit(self.X, self.y, sample_weight=self.weights)
        p = model.predict_proba(self.X)
        assert_probabilities(p)
        assert (p[:, 2] < 1e-6).all()


class TestMissingValues:
    holed = np.where(np.random.RandomState(0).rand(*X.shape) < 0.1, np.nan, X)

    @pytest.mark.parametrize(
        "estimator", [LogisticRegression(), LinearSVC(), SVC(), KernelLogisticRegression()]
    )
    def test_refused_where_the_estimator_refuses_them(self, estimator):
        name = type(estimator).__name__
        with pytest.raises(ValueError, match=f"Input X contains NaN.\n{name} does not accept"):
            build(estimator).fit(self.holed, y)
        model = build(estimator).fit(X, y)
        for method in (model.predict, model.predict_proba, model.decision_function):
            with pytest.raises(ValueError, match="Input X contains NaN"):
                method(self.holed)

    def test_taken_where_the_estimator_takes_them(self):
        boosted = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=3, min_samples_leaf=2)
        model = build(boosted).fit(self.holed, y)
        assert_probabilities(model.predict_proba(self.holed))
        assert model.score(self.holed, y) > 0.4


class TestCodes:
    def test_a_code_that_does_not_determine_p(self):
        halves = [[1, 0], [-1, 0], [0, 1], [0, -1]]
        with pytest.raises(ValueError, match=r"\[0, 1\] and \[2, 3\] never meet in a column. Add"):
            CoupledClassifier(code=halves, combiner="kl").fit(X, y)
        model = CoupledClassifier(code=halves, combiner="hamming").fit(X, y)
        assert set(model.predict(X)) <= set(y)

    @pytest.mark.parametrize("code", [SPARSE[:3], lambda k: codes.one_vs_one(k - 1)])
    def test_a_code_of_another_number_of_classes(self, code):
        with pytest.raises(ValueError, match="code has 3 rows, but there are 4 classes"):
            CoupledClassifier(code=code, combiner="kl").fit(X, y)

    def test_a_function_of_the_number_of_classes(self):
        model = CoupledClassifier(code=codes.one_vs_rest, combiner="normalize").fit(X, y)
        named = CoupledClassifier(code="one-vs-rest", combiner="normalize").fit(X, y)
        assert_array_equal(model.predict_proba(X), named.predict_proba(X))

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"code": "all-pairs"}, "unknown code 'all-pairs'.*one-vs-one"),
            ({"combiner": "wlw3"}, "unknown combiner 'wlw3'.*wlw2"),
            ({"code": "one-vs-rest", "combiner": "wlw2"}, "'wlw2' is defined for one-vs-one.*'kl'"),
            ({"combiner": "normalize"}, "'normalize' is defined for one-vs-rest"),
            ({"code": [[1, 2], [-1, 0], [0, 1], [0, -1]]}, "row 0, column 1 is 2"),
        ],
    )
    def test_what_does_not_fit_is_named(self, options, message):
        with pytest.raises(ValueError, match=message):
            CoupledClassifier(**options).fit(X, y)


class TestShapes:
    @pytest.mark.parametrize(
        ("data", "target", "weights", "message"),
        [
            (X[:-1], y, None, "inconsistent numbers of samples"),
            (X, y, np.ones(3), "sample_weight.shape"),
            (X, y, -np.ones(60), "[Nn]egative.*sample_weight"),
            (X[:, 0], y, None, "2D array"),
            (
                X,
                np.column_stack([labels, labels]),
                None,
                "several labels of each sample. Use MultiOutputClassifier",
            ),
            (X, X[:, 0], None, "continuous"),
        ],
        ids=["rows", "weights", "negative", "flat", "two targets", "numbers"],
    )
    def test_in_fit(self, data, target, weights, message):
        with pytest.raises(ValueError, match=message):
            CoupledClassifier().fit(data, target, sample_weight=weights)

    def test_in_predict(self):
        with pytest.raises(ValueError, match="X has 2 features, but .* expecting 3"):
            CoupledClassifier().fit(X, y).predict(X[:, :2])


# -- 7 ---------------------------------------------------------------------------------


def frozen(params):
    """Parameters as they are now, nested estimators included."""
    return {name: deepcopy(value) for name, value in params.items()}


class TestParameters:
    @pytest.mark.parametrize(
        "model",
        [
            CoupledClassifier(),
            CoupledClassifier(SVC(), combiner=HastieTibshirani(tol=1e-6), random_state=0),
            CoupledClassifier(
                make_pipeline(StandardScaler(), SGDClassifier()),
                code=SPARSE,
                combiner=KullbackLeibler(random_state=None),
                random_state=3,
            ),
        ],
    )
    def test_fit_does_not_write_them(self, model):
        before, identities = frozen(model.get_params()), model.get_params(deep=False)
        model.fit(X, y)
        after = model.get_params()
        assert after.keys() == before.keys()
        for name, value in model.get_params(deep=False).items():
            assert value is identities[name]
        for name, value in after.items():
            if isinstance(value, BaseEstimator):
                assert value.get_params().keys() == before[name].get_params().keys()
                assert vars(value).keys() == vars(before[name]).keys()  # nothing learned
            elif not isinstance(value, list):  # steps of a pipeline: compared one by one
                assert_array_equal(value, before[name])

    @pytest.mark.parametrize("data", [X, pd.DataFrame(X, columns=list("abc"))])
    def test_what_was_learned_ends_in_an_underscore(self, data):
        model = CoupledClassifier(LinearSVC())
        assert set(vars(model)) == set(model.get_params(deep=False))
        learned = set(vars(model.fit(data, y))) - set(model.get_params(deep=False))
        assert {"classes_", "code_", "n_features_in_", "scaling_"} <= learned
        assert all(name.endswith("_") and not name.startswith("_") for name in learned)


class TestSampleWeight:
    @pytest.mark.parametrize("estimator", [EXACT["logistic"], EXACT["linear SVC"]])
    @pytest.mark.parametrize("calibration", ["auto", "isotonic"])
    @pytest.mark.parametrize(("combiner", "code"), [("ht", "one-vs-one"), ("kl", "ternary")])
    def test_integer_weights_are_repetitions(self, combiner, code, calibration, estimator):
        times = np.random.RandomState(0).randint(0, 4, len(y))
        side = np.arange(len(y)) % 2
        model = build(estimator, combiner, code, calibration=calibration)
        weighted = clone_with(model, cv=splits_of(side)).fit(X, y, sample_weight=times)
        repeated = clone_with(model, cv=splits_of(side.repeat(times)))
        repeated.fit(X.repeat(times, axis=0), y.repeat(times))
        assert_allclose(weighted.weights_, repeated.weights_)
        assert_allclose(weighted.scaling_.matrix_, repeated.scaling_.matrix_, atol=1e-6)
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)

    def test_equal_weights_are_no_weights_but_in_the_calibration(self):
        plain = build(EXACT["logistic"]).fit(X, y)
        ones = build(EXACT["logistic"]).fit(X, y, sample_weight=np.ones(len(y)))
        assert_allclose(ones.predict_proba(X), plain.predict_proba(X), atol=1e-12)

    def test_weights_may_be_a_list_or_a_series(self):
        weights = np.random.RandomState(0).uniform(size=len(y))
        first, *others = (
            build(EXACT["logistic"]).fit(X, y, sample_weight=w).predict_proba(X)
            for w in (weights, weights.tolist(), pd.Series(weights, index=np.arange(60)[::-1]))
        )
        for p in others:
            assert_array_equal(p, first)


def splits_of(side):
    return [(np.flatnonzero(side == s), np.flatnonzero(side != s)) for s in (0, 1)]


class Recording(LogisticRegression):
    """Keeps what every fit was given; clones share the list of their class."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        self.seen.append((X[:, 0].astype(int), sample_weight))
        return super().fit(X, y, sample_weight)


@pytest.fixture
def recording():
    Recording.seen.clear()
    yield Recording
    Recording.seen.clear()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
class TestMetadataRouting:
    numbered = np.column_stack([np.arange(60), X])
    weights = np.arange(60) + 1.0

    def test_weights_reach_the_estimator_that_asks_for_them(self, recording):
        model = build(recording().set_fit_request(sample_weight=True), with_native=False)
        model.fit(self.numbered, y, sample_weight=self.weights)
        assert len(recording.seen) == 3 * 6
        for rows, weights in recording.seen:
            assert_array_equal(weights, self.weights[rows])
        assert_allclose(
            model.weights_,
            [
                self.weights[np.isin(labels, pair)].sum()
                for pair in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
            ],
        )

    def test_and_not_the_one_that_declines(self, recording):
        model = build(recording().set_fit_request(sample_weight=False))
        model.set_fit_request(sample_weight=True)
        model.fit(self.numbered, y, sample_weight=self.weights)
        assert all(weights is None for _, weights in recording.seen)
        assert_allclose(model.weights_[0], self.weights[labels < 2].sum())

    def test_unspoken_requests_are_an_error(self, recording):
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            build(recording()).fit(self.numbered, y, sample_weight=self.weights)

    def test_groups_reach_the_splitter(self, recording):
        groups = np.arange(60) // 5
        model = build(recording(), cv=GroupKFold(3), with_native=False)
        model.fit(self.numbered, y, groups=groups)
        folds = recording.seen[6:]
        assert len(folds) == 18
        for i in range(0, 18, 6):
            trained = np.unique(np.concatenate([rows for rows, _ in folds[i : i + 6]]))
            left_out = np.setdiff1d(np.arange(60), trained)
            assert len(left_out) >= 15
            assert not set(groups[trained]) & set(groups[left_out])
        assert_probabilities(model.predict_proba(self.numbered))

    @pytest.mark.parametrize("estimator", [EXACT["logistic"], EXACT["linear SVC"], SVC()])
    @pytest.mark.parametrize(
        "given",
        [np.asarray, list, lambda w: pd.Series(w, index=np.arange(60)[::-1])],
        ids=["array", "list", "series"],
    )
    def test_weights_by_another_name_are_the_same_weights(self, given, estimator):
        expected = build(clone(estimator).set_fit_request(sample_weight=True))
        expected.fit(X, y, sample_weight=self.weights)
        model = build(clone(estimator).set_fit_request(sample_weight="importance"))
        model.fit(X, y, importance=given(self.weights))
        assert_array_equal(model.class_totals_, expected.class_totals_)
        assert_array_equal(model.predict_proba(X), expected.predict_proba(X))

    @pytest.mark.parametrize("estimator", [EXACT["logistic"], SVC()])
    def test_and_are_checked_as_well(self, estimator):
        model = build(clone(estimator).set_fit_request(sample_weight="importance"))
        for weights, message in [
            (-self.weights, "Negative values"),
            (np.append(self.weights[1:], np.nan), "NaN"),
            (self.weights[:7], r"\(7,\), expected \(60,\)"),
        ]:
            with pytest.raises(ValueError, match=message):
                model.fit(X, y, importance=weights)

    def test_both_inside_a_grid_search(self):
        estimator = LogisticRegression().set_fit_request(sample_weight=True)
        model = CoupledClassifier(estimator, cv=GroupKFold(2))
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = sklearn.model_selection.GridSearchCV(
            model, {"estimator__C": [0.1, 1.0]}, cv=GroupKFold(2)
        )
        search.fit(X, y, sample_weight=self.weights, groups=np.arange(60) // 5)
        assert_probabilities(search.predict_proba(X))


class TestKindsOfX:
    @all_pairs(
        kind=["array", "matrix"],
        layout=["csr", "csc", "coo"],
        estimator=[EXACT["logistic"], EXACT["linear SVC"], SVC(tol=1e-10)],
    )
    def test_sparse_is_dense(self, kind, layout, estimator):
        if isinstance(estimator, LogisticRegression):
            estimator = LogisticRegression(tol=1e-12, max_iter=1000)
        holed = np.where(np.abs(X) < 3, 0.0, X)
        data = getattr(sparse, f"{layout}_{kind}")(holed)
        model = build(estimator).fit(data, y)
        assert model.n_features_in_ == 3
        dense = build(estimator).fit(holed, y).predict_proba(holed)
        assert_allclose(model.predict_proba(data), dense, atol=1e-6)
        assert_allclose(model.predict_proba(holed), dense, atol=1e-6)

    @pytest.mark.parametrize("estimator", [EXACT["logistic"], GaussianNB()])
    def test_frames_are_arrays_with_names(self, estimator):
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # the names also reach the binary models
            model = build(estimator).fit(frame, y)
            p = model.predict_proba(frame)
        assert_allclose(p, build(estimator).fit(X, y).predict_proba(X), atol=1e-12)
        assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
        assert model.n_features_in_ == 3
        for wrong in (frame.rename(columns={"a": "z"}), frame[["b", "a", "c"]]):
            with pytest.raises(ValueError, match="feature names"):
                model.predict(wrong)
        with pytest.raises(ValueError, match="feature"):
            model.predict(frame[["a", "b"]])

    def test_frames_of_numbers_and_strings_through_a_pipeline(self):
        frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(60)[::-1])
        frame["colour"] = np.array(["red", "green", "blue"])[np.arange(60) % 3]
        columns = make_column_transformer(
            (StandardScaler(), ["a", "b", "c"]), (OneHotEncoder(), ["colour"])
        )
        model = build(make_pipeline(columns, LinearSVC(dual=False))).fit(frame, pd.Series(y))
        assert_probabilities(model.predict_proba(frame))
        assert model.score(frame, y) > 0.5
        assert_array_equal(model.feature_names_in_, ["a", "b", "c", "colour"])

    words = np.array(["wing sky", "flower honey", "milk purr", "bone bark"])
    texts: ClassVar = [f"{words} the {i % 5}x" for i, words in enumerate(words[labels])]

    @pytest.mark.parametrize("container", [list, tuple, np.array, pd.Series])
    def test_texts_through_a_pipeline(self, container):
        texts = container(self.texts)
        model = build(make_pipeline(TfidfVectorizer(), LogisticRegression())).fit(texts, y)
        p = model.predict_proba(texts)
        assert_probabilities(p)
        assert model.score(texts, y) == 1
        assert_array_equal(p, build(model.estimator).fit(self.texts, y).predict_proba(self.texts))


class TestKindsOfLabels:
    @pytest.mark.parametrize(
        "container",
        [list, np.array, pd.Series, pd.Categorical, lambda y: np.array(y, dtype=object)],
    )
    def test_strings(self, container):
        model = build(GaussianNB()).fit(X, container(list(y)))
        assert_array_equal(model.classes_, ["ant", "bee", "cat", "dog"])
        assert set(model.predict(X)) <= set(y)
        assert_array_equal(model.predict(X), build(GaussianNB()).fit(X, y).predict(X))

    @pytest.mark.parametrize(
        "new", [[False, True], [-5, -1, 0, 3], np.array([1, 2, 3, 9], np.uint8)]
    )
    def test_booleans_and_integers(self, new):
        used = labels < len(new)
        model = CoupledClassifier(GaussianNB(), calibration=None)
        model.fit(X[used], np.array(new)[labels[used]])
        assert_array_equal(model.classes_, new)
        assert model.predict(X).dtype == np.array(new).dtype
        assert model.score(X[used], np.array(new)[labels[used]]) > 0.5


# -- 8 ---------------------------------------------------------------------------------


class TestThreads:
    @pytest.mark.parametrize("estimator", [LogisticRegression(), SVC(), GaussianNB()])
    @pytest.mark.parametrize("combiner", ["wlw2", "ht", "kl", "vote", "max-wins"])
    def test_one_model_answers_several_threads_alike(self, combiner, estimator):
        model = build(estimator, combiner).fit(X, y)
        pieces = [np.tile(FAR[i::3], (20, 1)) for i in range(3)]
        expected = [values_of(model, piece) for piece in pieces]
        with ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda piece: values_of(model, piece), pieces * 4))
        for i, answer in enumerate(answers):
            assert_array_equal(answer, expected[i % 3])

    def test_models_fitted_in_several_threads_are_alike(self):
        expected = build(LinearSVC(dual=False)).fit(X, y).predict_proba(X)
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(build(LinearSVC(dual=False)).fit, X, y) for _ in range(4)]
        for job in jobs:
            assert_array_equal(job.result().predict_proba(X), expected)
