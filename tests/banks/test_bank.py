"""Banks: many binary models asked as one must answer as the models do, one by one."""

from __future__ import annotations

import inspect
import pickle
import tracemalloc
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import logit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.metrics import pairwise_distances as distances
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from versions import logistic_regression_cv

from manyclass import CoupledClassifier, codes
from manyclass.banks import (
    CENTRED,
    LOG_ODDS,
    MARGIN,
    PROBABILITY,
    Bank,
    ConstantModel,
    LinearBank,
    Untrusted,
    fit_bank,
    response_kind,
)
from manyclass.banks.base import PairwiseModel
from manyclass.learners import ThresholdOptimized

X, y = make_blobs(80, n_features=3, centers=4, cluster_std=4.0, random_state=0)
CODE = np.array([[1, 1, 0, -1], [-1, 0, 1, -1], [0, -1, 1, 1], [0, -1, -1, 1]], dtype=np.int8)


LINEAR = {
    "logistic": LogisticRegression,
    "logistic without intercept": lambda: LogisticRegression(fit_intercept=False),
    "logistic by liblinear": lambda: LogisticRegression(solver="liblinear"),
    "logistic CV": lambda: logistic_regression_cv(Cs=[1.0], cv=2, scoring="neg_log_loss"),
    "linear SVC": LinearSVC,
    "linear SVC without intercept": lambda: LinearSVC(fit_intercept=False),
    "LDA": LinearDiscriminantAnalysis,
    "shrunken LDA": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "ridge": RidgeClassifier,
    "ridge CV": lambda: RidgeClassifierCV([0.1, 1.0]),
    "SGD log-loss": lambda: SGDClassifier(loss="log_loss", random_state=0),
    "SGD hinge": lambda: SGDClassifier(loss="hinge", random_state=0),
    "SGD modified Huber": lambda: SGDClassifier(loss="modified_huber", random_state=0),
    "perceptron": lambda: Perceptron(random_state=0),
}
each_linear = pytest.mark.parametrize("make", LINEAR.values(), ids=LINEAR)
outdated = pytest.mark.filterwarnings("ignore:Class PassiveAggressiveClassifier:FutureWarning")


def one_by_one(models, X, kind):
    if kind == MARGIN:
        return np.column_stack([model.decision_function(X) for model in models])
    return np.column_stack([model.predict_proba(X)[:, 1] for model in models])


def kinds_of(estimator):
    return [MARGIN, PROBABILITY] if hasattr(estimator, "predict_proba") else [MARGIN]


class Flipped(LogisticRegression):
    """Linear by inheritance, not by what it answers."""

    def decision_function(self, X):
        return 1.0 - super().decision_function(X)


class Numbered(ClassifierMixin, BaseEstimator):
    """Remembers what it was given: X[:, 0] holds row numbers."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None, tag=None, colour=None):
        self.classes_ = np.array([0, 1])
        self.rows_, self.target_ = X[:, 0].astype(int), y
        self.sample_weight_, self.tag_, self.colour_ = sample_weight, tag, colour
        self.asked_ = []
        return self

    def decision_function(self, X):
        self.asked_.append(X[:, 0].astype(int))
        return X[:, 0] + 0.5

    def predict_proba(self, X):
        r = X[:, 0] / 100
        return np.column_stack([1 - r, r])


NUMBERED = np.column_stack([np.arange(len(y)), X])


# -- linear models ---------------------------------------------------------------------


@outdated
@each_linear
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_linear_scores_are_those_of_the_models(make, sparse):
    estimator = make()
    if sparse and isinstance(estimator, LinearDiscriminantAnalysis):
        pytest.skip("LDA does not take sparse X")
    data = csr_array(np.where(np.abs(X) < 3, 0.0, X)) if sparse else X
    for kind in kinds_of(estimator):
        bank = fit_bank(estimator, data, y, CODE, kind)
        assert type(bank) is LinearBank
        assert_allclose(
            bank.scores(data), one_by_one(bank.models, data, kind), rtol=1e-12, atol=1e-12
        )


@outdated
@each_linear
def test_a_linear_bank_answers_without_its_models(make):
    estimator = make()
    for kind in kinds_of(estimator):
        bank = fit_bank(estimator, X, y, CODE, kind)
        expected = bank.scores(X)
        bank._keep([None] * len(bank.models))
        assert_array_equal(bank.scores(X), expected)


@pytest.mark.parametrize("combiner", ["wlw2", "max-wins"])
def test_a_classifier_of_linear_models_predicts_without_them(combiner, monkeypatch):
    model = CoupledClassifier(LogisticRegression(), combiner=combiner, with_native=False)
    expected = model.fit(X, y).decision_function(X)

    def forbidden(self, X):
        raise AssertionError("a binary model was asked")

    monkeypatch.setattr(LogisticRegression, "decision_function", forbidden)
    monkeypatch.setattr(LogisticRegression, "predict_proba", forbidden)
    assert_array_equal(model.decision_function(X), expected)


def test_linear_scores_of_other_dtypes():
    for dtype in (np.float32, np.int64):
        data = X.astype(dtype)
        bank = fit_bank(LogisticRegression(), data, y, CODE, MARGIN)
        assert_allclose(bank.scores(data), one_by_one(bank.models, data, MARGIN), rtol=1e-4)


def test_a_linear_bank_refuses_nan_and_other_widths():
    bank = fit_bank(LogisticRegression(), X, y, CODE, MARGIN)
    with pytest.raises(ValueError, match="NaN"):
        bank.scores(np.full((2, 3), np.nan))
    with pytest.raises(ValueError):
        bank.scores(X[:, :2])


@pytest.mark.parametrize(
    "estimator",
    [Flipped(), GaussianNB(), make_pipeline(StandardScaler(), LinearSVC())],
    ids=lambda estimator: type(estimator).__name__,
)
def test_everything_else_is_asked_itself(estimator):
    kind = response_kind(estimator, (MARGIN, PROBABILITY))
    bank = fit_bank(estimator, X, y, CODE, kind)
    assert type(bank) is Bank
    assert_array_equal(bank.scores(X), one_by_one(bank.models, X, kind))


@pytest.mark.parametrize("kind", [MARGIN, PROBABILITY])
def test_a_one_sided_column_among_linear_ones(kind):
    few = np.flatnonzero(y != 3)  # the last column keeps only its negative side
    code = np.array([[1, 1, -1], [-1, 1, -1], [1, -1, -1], [0, 0, 1]], dtype=np.int8)
    bank = fit_bank(LogisticRegression(), X, y, code, kind, rows=few)
    assert type(bank) is LinearBank
    assert_array_equal(bank.constant, [False, False, True])
    assert_allclose(bank.scores(X), one_by_one(bank.models, X, kind), rtol=1e-12)


# -- any models ------------------------------------------------------------------------


class TestFitBank:
    def test_each_column_gets_its_classes_and_sides(self):
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, MARGIN)
        for column, model in zip(CODE.T, bank.models, strict=True):
            rows = [s for s in range(len(y)) if column[y[s]] != 0]
            assert_array_equal(model.rows_, rows)
            assert_array_equal(model.target_, [int(column[y[s]] > 0) for s in rows])

    def test_only_the_rows_asked_for(self):
        rows = np.arange(0, len(y), 3)
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, MARGIN, rows=rows)
        for column, model in zip(CODE.T, bank.models, strict=True):
            assert_array_equal(model.rows_, [s for s in rows if column[y[s]] != 0])

    def test_fit_params_as_long_as_x_are_sliced_and_others_are_not(self):
        params = {"tag": np.arange(len(y)) * 10, "colour": "red"}
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, MARGIN, fit_params=params)
        for model in bank.models:
            assert_array_equal(model.tag_, model.rows_ * 10)
            assert model.colour_ == "red"

    def test_weights_are_sliced(self):
        weights = np.arange(len(y)) + 1.0
        params = {"sample_weight": weights}
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, MARGIN, fit_params=params)
        for model in bank.models:
            assert_array_equal(model.sample_weight_, model.rows_ + 1)

    def test_open_seeds_are_set_one_per_column(self):
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, MARGIN, seeds=np.arange(4) + 7)
        assert [model.random_state for model in bank.models] == [7, 8, 9, 10]

    def test_nested_open_seeds_are_set(self):
        estimator = make_pipeline(StandardScaler(), Numbered())
        bank = fit_bank(estimator, NUMBERED, y, CODE, MARGIN, seeds=np.arange(4) + 7)
        assert [model[-1].random_state for model in bank.models] == [7, 8, 9, 10]

    def test_seeds_already_chosen_are_kept(self):
        bank = fit_bank(Numbered(3), NUMBERED, y, CODE, MARGIN, seeds=np.arange(4) + 7)
        assert [model.random_state for model in bank.models] == [3] * 4

    def test_the_estimator_given_is_not_touched(self):
        estimator = Numbered()
        fit_bank(estimator, NUMBERED, y, CODE, MARGIN, seeds=np.arange(4))
        assert vars(estimator) == {"random_state": None}


class WithOwnBank(LogisticRegression):
    """Fits all columns in one call, unless it gets parameters that it does not know."""

    def __manyclass_bank__(self, X, y, code, kind, *, rows, fit_params, n_jobs, verbose, dtype):
        if fit_params:
            return None
        models = [LogisticRegression().fit(X[rows], code[y[rows], b] > 0) for b in range(3)]
        bank = LinearBank(models, kind)
        bank.asked = n_jobs, verbose, dtype
        return bank


class Inherits(WithOwnBank):
    """A subclass, which may override ``fit``: its bank is not that of the base class."""


class TestHook:
    """A learner may define ``__manyclass_bank__``."""

    def test_it_is_asked_for_its_bank(self):
        X, y = load_iris(return_X_y=True)
        options = {"rows": np.arange(1, 150, 2), "n_jobs": 2, "verbose": 0, "dtype": np.float32}
        bank = fit_bank(WithOwnBank(), X, y, codes.one_vs_rest(3), PROBABILITY, **options)
        expected = fit_bank(
            LogisticRegression(), X, y, codes.one_vs_rest(3), PROBABILITY, rows=options["rows"]
        )
        assert bank.asked == (2, 0, np.float32)
        assert_allclose(bank.scores(X), expected.scores(X))

    @pytest.mark.parametrize("learner", [WithOwnBank(), Inherits()])
    def test_without_a_bank_columns_are_fitted_one_by_one(self, learner):
        X, y = load_iris(return_X_y=True)
        params = {"sample_weight": np.ones(150)} if type(learner) is WithOwnBank else {}
        bank = fit_bank(learner, X, y, codes.one_vs_rest(3), PROBABILITY, fit_params=params)
        assert type(bank) is Bank and not hasattr(bank, "asked")
        assert all(type(model) is type(learner) for model in bank.models)

    def test_banks_do_not_import_learners(self):
        """Looked up in the source, since the package imports both."""
        folder = Path(inspect.getfile(Bank)).parent
        found = [p for p in folder.rglob("*.py") if "manyclass.learners" in p.read_text()]
        assert not found


class TestConstantColumns:
    """A side without samples, or without weight, leaves a model that knows one answer."""

    code: ClassVar = codes.one_vs_one(2)
    labels: ClassVar = np.array([0, 0, 1, 1])
    data: ClassVar = np.arange(8.0).reshape(4, 2)

    @pytest.mark.parametrize(("absent", "r"), [(0, 0.0), (1, 1.0)])
    @pytest.mark.parametrize("by", ["rows", "weight"])
    def test_the_side_there_is_is_certain(self, absent, r, by):
        present = self.labels != absent
        chosen = (
            {"rows": np.flatnonzero(present)}
            if by == "rows"
            else {"fit_params": {"sample_weight": present.astype(float)}}
        )
        for kind, expected in (
            (PROBABILITY, r),
            (MARGIN, np.inf if r else -np.inf),
            (CENTRED, r - 0.5),
        ):
            bank = fit_bank(GaussianNB(), self.data, self.labels, self.code, kind, **chosen)
            assert isinstance(bank.models[0], ConstantModel) and bank.constant.all()
            assert_array_equal(bank.scores(self.data), np.full((4, 1), expected))

    @pytest.mark.parametrize(
        ("estimator", "kind", "expected"),
        [
            (LogisticRegression(), MARGIN, 0.0),
            (LogisticRegression(), PROBABILITY, 0.5),
            (SGDClassifier("modified_huber"), PROBABILITY, 0.5),
            (GaussianNB(), PROBABILITY, 0.5),
            (GaussianNB(), LOG_ODDS, 0.0),
            (GaussianNB(), CENTRED, 0.0),
        ],
    )
    @pytest.mark.parametrize("by", ["rows", "weight"])
    def test_without_samples_of_either_side_it_is_even(self, estimator, kind, expected, by):
        code, labels = codes.one_vs_one(4), np.repeat(np.arange(4), 2)
        data, present = np.arange(16.0).reshape(8, 2), labels > 1  # none of the first pair
        chosen = (
            {"rows": np.flatnonzero(present)}
            if by == "rows"
            else {"fit_params": {"sample_weight": present.astype(float)}}
        )
        bank = fit_bank(estimator, data, labels, code, kind, **chosen)
        assert bank.constant[0] and bank.models[0].positive is None
        assert_array_equal(bank.scores(data)[:, 0], np.full(8, expected))
        assert bank.constants()[0] == expected

    def test_the_evidence_of_columns_without_samples_is_finite(self):
        labels, weights = np.repeat(np.arange(4), 20), np.repeat([0.0, 0.0, 1.0, 1.0], 20)
        code = codes.one_vs_one(4)
        bank = fit_bank(LinearSVC(), X, labels, code, MARGIN, fit_params={"sample_weight": weights})
        evidence = bank.objective_terms(X, labels, code, weights)
        assert evidence.penalty[0] == 0.0 and np.isfinite(evidence.penalty).all()


class NamedRows(ClassifierMixin, BaseEstimator):
    """Remembers the matrix it was given, entries of which tell their row and column."""

    def fit(self, X, y):
        self.classes_, self.given_ = np.array([0, 1]), as_array(X).copy()
        return self

    def predict_proba(self, X):
        self.asked_ = as_array(X).copy()
        return np.full((X.shape[0], 2), 0.5)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags


def as_array(X):
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)


class TestPairwiseInput:
    """Of a kernel or distance matrix, a column gets its rows and the same columns."""

    matrix: ClassVar = 1.0 + np.arange(len(y) ** 2, dtype=float).reshape(len(y), -1)
    types: ClassVar = pytest.mark.parametrize(
        "as_type", [np.asarray, csr_array, pd.DataFrame], ids=["array", "sparse", "frame"]
    )

    @types
    @pytest.mark.parametrize("code", [CODE, codes.one_vs_rest(4)], ids=["zeros", "no zeros"])
    @pytest.mark.parametrize("step", [1, 3], ids=["all rows", "a fold"])
    def test_each_column_is_fitted_on_its_own_square(self, as_type, code, step):
        rows = np.arange(0, len(y), step)
        bank = fit_bank(NamedRows(), as_type(self.matrix), y, code, PROBABILITY, rows=rows)
        bank.scores(as_type(self.matrix[:5]))
        for column, model in zip(code.T, bank.models, strict=True):
            own = [s for s in rows if column[y[s]] != 0]
            assert isinstance(model, PairwiseModel)
            assert_array_equal(model.rows, own)
            assert_array_equal(model.estimator.given_, self.matrix[np.ix_(own, own)])
            assert_array_equal(model.estimator.asked_, self.matrix[:5, own])

    @types
    def test_only_the_entries_needed_are_asked_for(self, as_type):
        bank = fit_bank(NamedRows(), as_type(self.matrix), y, CODE, PROBABILITY)
        where = np.zeros((len(y), 4), dtype=bool)
        where[5:9, 1] = True
        scores = bank.scores(as_type(self.matrix), where=where)
        assert_array_equal(~np.isnan(scores), where)
        model = bank.models[1]
        assert_array_equal(model.estimator.asked_, self.matrix[5:9, model.rows])

    @pytest.mark.parametrize("kind", [MARGIN, PROBABILITY])
    def test_the_models_can_be_asked_one_by_one(self, kind):
        K = X @ X.T
        estimator = ThresholdOptimized(SVC(kernel="precomputed"))
        bank = fit_bank(estimator, K, y, CODE, kind)
        assert_array_equal(bank.scores(K), one_by_one(bank.models, K, kind))
        for model in bank.models:
            r = model.predict_proba(K)[:, 1]
            assert_array_equal(model.predict(K), model.classes_[(r > 0.5).astype(int)])

    def test_they_answer_what_the_estimator_can(self):
        bank = fit_bank(
            KNeighborsClassifier(metric="precomputed"), distances(X), y, CODE, PROBABILITY
        )
        assert not hasattr(bank.models[0], "decision_function")
        with pytest.raises(Untrusted, match="KNeighborsClassifier has no closed form"):
            bank.leave_one_out(distances(X), y, CODE, np.ones(len(y)))

    @pytest.mark.parametrize("shape", [(80, 79), (80, 100)])
    def test_a_matrix_that_is_not_square_is_refused(self, shape):
        with pytest.raises(ValueError, match=rf"\({shape[0]}, {shape[1]}\): NamedRows .*square"):
            fit_bank(NamedRows(), np.ones(shape), y, CODE, PROBABILITY)

    def test_a_pickled_bank_gives_the_same_bits(self):
        D = distances(X)
        bank = fit_bank(KNeighborsClassifier(metric="precomputed"), D, y, CODE, PROBABILITY)
        assert_array_equal(pickle.loads(pickle.dumps(bank)).scores(D), bank.scores(D))

    def test_memory_is_that_of_a_column(self):
        n, k = 1200, 8
        labels, D = np.arange(n) % k, np.zeros((n, n))
        estimator = KNeighborsClassifier(metric="precomputed", algorithm="brute")
        code = codes.one_vs_one(k)
        tracemalloc.start()
        bank = fit_bank(estimator, D, labels, code, PROBABILITY, rows=np.arange(n - 1))
        assert len(bank.models) == code.shape[1]
        kept, fitting = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        column = 8 * (2 * n / k) ** 2
        assert kept < 1.2 * column * code.shape[1]  # what neighbours keep
        assert fitting - kept < 6 * column


class TestScores:
    def test_only_the_entries_needed_are_asked_for(self):
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, MARGIN)
        where = np.zeros((len(y), 4), dtype=bool)
        where[:, 0] = True
        where[5:9, 1] = True
        scores = bank.scores(NUMBERED, where=where)
        assert_array_equal(~np.isnan(scores), where)
        assert_array_equal(scores[where], NUMBERED[where.nonzero()[0], 0] + 0.5)
        asked = [np.concatenate([*model.asked_, []]) for model in bank.models]
        assert_array_equal(asked[1], [5, 6, 7, 8])
        assert len(asked[2]) == len(asked[3]) == 0

    @pytest.mark.parametrize(
        ("kind", "of_r"),
        [
            (PROBABILITY, lambda r: r),
            (CENTRED, lambda r: r - 0.5),
            (LOG_ODDS, lambda r: logit(np.clip(r, 1e-12, 1 - 1e-12))),
        ],
    )
    def test_kinds_made_of_probabilities(self, kind, of_r):
        bank = fit_bank(Numbered(), NUMBERED, y, CODE, kind)
        expected = of_r(np.arange(len(y)) / 100)
        assert_allclose(bank.scores(NUMBERED), np.tile(expected[:, None], 4), rtol=1e-12)

    def test_a_pickled_bank_gives_the_same_bits(self):
        for estimator in (LogisticRegression(), GaussianNB()):
            bank = fit_bank(estimator, X, y, CODE, PROBABILITY)
            assert_array_equal(pickle.loads(pickle.dumps(bank)).scores(X), bank.scores(X))


class TestResponseKind:
    @pytest.mark.parametrize(
        ("estimator", "kinds", "expected"),
        [
            (LogisticRegression(), (PROBABILITY, MARGIN), PROBABILITY),
            (LogisticRegression(), (MARGIN, LOG_ODDS), MARGIN),
            (LinearSVC(), (PROBABILITY, MARGIN), MARGIN),
            (GaussianNB(), (MARGIN, LOG_ODDS), LOG_ODDS),
            (GaussianNB(), (MARGIN, CENTRED), CENTRED),
            (SGDClassifier(loss="hinge"), (PROBABILITY, MARGIN), MARGIN),
            (SGDClassifier(loss="log_loss"), (PROBABILITY, MARGIN), PROBABILITY),
            (make_pipeline(StandardScaler(), LinearSVC()), (PROBABILITY, MARGIN), MARGIN),
        ],
    )
    def test_the_first_that_the_estimator_can_answer(self, estimator, kinds, expected):
        assert response_kind(estimator, kinds) == expected

    def test_labels_alone_are_refused(self):
        class OnlyLabels(ClassifierMixin, BaseEstimator):
            def fit(self, X, y):
                return self

            def predict(self, X):
                return np.zeros(len(X))

        with pytest.raises(ValueError, match="OnlyLabels has neither.*CalibratedClassifierCV"):
            response_kind(OnlyLabels(), (PROBABILITY, MARGIN))
