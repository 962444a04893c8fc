"""Many classes: what is done a few rows or columns at a time answers as if done at once."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import naive
import naive_many
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, codes, combiners, couple
from manyclass.banks import MARGIN, PROBABILITY, LinearBank, fit_bank
from manyclass.banks.base import ConstantModel
from manyclass.banks.by_column import column_batches
from manyclass.calibration import Isotonic, RobustSigmoid, Sigmoid
from manyclass.calibration.base import pool_scores
from manyclass.calibration.fit_plan import make_plan
from manyclass.combiners.coupling import LeastSquares, pairwise
from manyclass.combiners.coupling.base import column_lists
from manyclass.combiners.coupling.kernels.by_block import couple_wlw2
from manyclass.predicting import RowBlocks
from manyclass.scaling import StructuredScaling, Temperature
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scores.crossfit import CrossFittedScores
from manyclass.scores.folds import make_folds

quick = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 2**32 - 1)


def few_columns(k, n_columns, seed=0):
    """A sparse code that does not determine the class probabilities."""
    code = codes.sparse_random(k, n_columns=n_columns, n_draws=20, random_state=seed)
    assert not codes.is_identifiable(code)
    return code


FEW = few_columns(12, 8)
TIMID = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.int8)  # classes that never meet


def some_r(kind, n, code, rng):
    shape = (n, code.shape[1])
    if kind == "hard":
        return rng.integers(0, 2, shape).astype(float)
    if kind == "confident":
        return 1 / (1 + np.exp(rng.normal(scale=8, size=shape)))
    if kind == "ranked":  # transitive: each class beats all that come later
        return (code.argmax(axis=0) < code.argmin(axis=0)) * np.ones(shape)
    if kind == "noisy":
        theta = rng.normal(scale=3, size=(n, len(code)))
        return 1 / (1 + np.exp(-(theta @ code + rng.normal(size=shape))))
    return rng.random(shape)


KINDS = ["random", "hard", "confident", "ranked", "noisy"]


# -- conjugate gradients in place of a factorisation -----------------------------------


@pytest.mark.parametrize("k", [64, 65, 100, 150, 200, 300])
def test_wlw2_of_many_classes_is_the_minimum(k):
    rng, code = np.random.default_rng(k), codes.one_vs_one(k)
    r = np.concatenate([some_r(kind, 1, code, rng) for kind in KINDS])
    first, second = np.triu_indices(k, 1)
    squares = np.full((len(r), k, k), 0.5)
    squares[:, first, second], squares[:, second, first] = r, 1 - r
    result = couple(r, code=code, full_output=True)
    expected = [naive.wlw2(naive.clip(square)) for square in squares]
    assert_allclose(result.p, np.array(expected, dtype=float), rtol=0, atol=1e-10)
    assert result.converged.all() and (result.iterations <= 15).all()


def test_wlw2_of_many_classes_recovers_p():
    k = 90
    p = np.random.default_rng(0).dirichlet(np.full(k, 0.1), size=20) * 0.999 + 0.001 / k
    first, second = np.triu_indices(k, 1)
    r = p[:, first] / (p[:, first] + p[:, second])
    assert_allclose(couple(r, code="one-vs-one"), p, rtol=0, atol=1e-9)


def test_rows_that_gradients_do_not_settle_are_factored():
    k = 70
    rng, code = np.random.default_rng(0), codes.one_vs_one(70)
    r = np.concatenate([some_r(kind, 3, code, rng) for kind in ("ranked", "noisy", "hard")])
    whole = couple(r, code=code)
    halted, iterations = np.empty((9, k)), np.ones(9, dtype=np.int32)
    solve = pairwise.gradient_solver(k, most_steps=3)  # enough for the first and the last
    solve(r, halted, iterations, np.ones(9, dtype=np.bool_))
    assert_allclose(halted, whole, rtol=0, atol=1e-10)
    assert (iterations[3:6] == 3).all()
    factored = np.empty((9, k))
    couple_wlw2(r, k, 0.0, factored)
    assert_array_equal(factored[3:6], halted[3:6])


def test_rows_of_many_classes_do_not_see_each_other():
    rng, code = np.random.default_rng(1), codes.one_vs_one(66)
    r = np.concatenate([some_r(kind, 9, code, rng) for kind in KINDS])
    whole, order = couple(r, code=code), rng.permutation(len(r))
    assert_array_equal(couple(r[order], code=code, n_jobs=2), whole[order])
    parts = [couple(part, code=code) for part in np.split(r, [1, 4, 20, 37])]
    assert_array_equal(np.concatenate(parts), whole)


# -- codes that do not determine p -----------------------------------------------------


class TestEvenLeastSquares:
    @pytest.mark.parametrize("entropy", [1.0, 0.2, 1e-2])
    @pytest.mark.parametrize("kind", ["random", "hard", "confident"])
    @pytest.mark.parametrize(
        "code", [FEW, TIMID, codes.one_vs_rest(5)], ids=["few", "apart", "ovr"]
    )
    def test_reaches_the_only_minimum(self, code, kind, entropy):
        rng = np.random.default_rng(0)
        r, weights = some_r(kind, 9, code, rng), rng.uniform(0.2, 3, code.shape[1])
        rule = LeastSquares(entropy=entropy)
        result = couple(r, code=code, rule=rule, weights=weights, full_output=True)
        assert result.converged.all()
        for p, row in zip(result.p, naive.clip(r), strict=True):
            slopes = naive_many.penalised_slopes(p, row, code, weights, entropy)
            assert_allclose(slopes, slopes.mean(), rtol=0, atol=1e-9)

    @quick
    @given(seed=seeds, k=st.integers(4, 30), kind=st.sampled_from(KINDS))
    def test_permutations_and_signs_do_not_matter(self, seed, k, kind):
        rng = np.random.default_rng(seed)
        code = few_columns(k, max(2, k // 2 + 1), seed % 100) if k > 5 else TIMID
        r = some_r(kind, 5, code, rng)
        p = couple(r, code=code, rule="least-squares")
        assert np.isfinite(p).all() and (p >= 0).all()
        assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        perm = rng.permutation(len(code))
        permuted = couple(r, code=code[perm], rule="least-squares")
        assert_allclose(permuted, p[:, perm], rtol=0, atol=1e-8)
        order = rng.permutation(code.shape[1])
        sign = rng.choice([-1, 1], size=code.shape[1]).astype(np.int8)
        flipped = np.where(sign == 1, r[:, order], 1 - r[:, order])
        again = couple(flipped, code=code[:, order] * sign, rule="least-squares")
        assert_allclose(again, p, rtol=0, atol=1e-8)

    def test_rows_do_not_see_each_other(self):
        r = np.concatenate([some_r(kind, 9, FEW, np.random.default_rng(2)) for kind in KINDS])
        whole = couple(r, code=FEW, rule="least-squares")
        parts = [couple(part, code=FEW, rule="least-squares") for part in np.split(r, [1, 8, 30])]
        assert_array_equal(np.concatenate(parts), whole)
        assert_array_equal(couple(r, code=FEW, rule="least-squares", n_jobs=2), whole)

    def test_undecided_columns_leave_all_classes_alike(self):
        code = np.array([[1, 0], [1, 1], [-1, -1], [-1, 1], [0, -1]], dtype=np.int8)[[0, 2, 1, 3]]
        r = np.full((1, 2), 0.5)
        balanced = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1], [0, 0]], dtype=np.int8)[:4]
        assert_allclose(couple(r, code=balanced, rule=LeastSquares(entropy=0.2)), 0.25, atol=1e-12)
        assert_allclose(couple(r, code=code, rule=LeastSquares(entropy=1e6)), 0.25, atol=1e-5)

    def test_the_penalty_is_for_codes_that_need_it(self):
        code, rng = codes.one_vs_rest(5), np.random.default_rng(0)
        r = some_r("random", 4, code, rng)
        plain = couple(r, code=code, rule="least-squares")
        assert_array_equal(couple(r, code=code, rule=LeastSquares(entropy=0)), plain)
        assert np.abs(couple(r, code=code, rule=LeastSquares(entropy=0.2)) - plain).max() > 0.01
        r = some_r("random", 4, FEW, rng)
        even = couple(r, code=FEW, rule=LeastSquares(entropy=0.2))
        assert_array_equal(couple(r, code=FEW, rule="least-squares"), even)

    def test_a_thousand_classes(self):
        code = few_columns(1000, 150)
        p = np.random.default_rng(0).dirichlet(np.full(1000, 0.01), size=9)
        plus, minus = p @ (code == 1), p @ (code == -1)
        result = couple(plus / (plus + minus), code=code, rule="least-squares", full_output=True)
        assert result.converged.all() and (result.p > 0).all()
        assert (result.p.argmax(axis=1) == p.argmax(axis=1)).mean() > 0.5

    @pytest.mark.parametrize("entropy", [-0.1, np.nan, np.inf, 1e308, "even"])
    def test_bad_penalties_are_named(self, entropy):
        with pytest.raises(ValueError, match="entropy must be None or a number from 0 to 1e"):
            couple([[0.5] * 8], code=FEW, rule=LeastSquares(entropy=entropy))

    @pytest.mark.parametrize("rule", ["kl", "zadrozny", LeastSquares(entropy=0)])
    def test_other_rules_refuse_and_say_what_does_not(self, rule):
        with pytest.raises(ValueError, match="does not determine .* use the rule 'least-squares'"):
            couple([[0.5] * 8], code=FEW, rule=rule)

    def test_steps_that_run_out_are_told(self):
        with pytest.warns(UserWarning, match="'least-squares' did not converge on 1 of 1"):
            couple([[1.0, 0.0] * 4], code=FEW, rule=LeastSquares(max_iter=1))


X, y = make_blobs(240, n_features=4, centers=12, cluster_std=3.0, random_state=0)


class TestClassifier:
    def test_warns_once_and_gives_probabilities(self):
        model = CoupledClassifier(LinearSVC(), code=FEW, combiner="least-squares", cv=3)
        with pytest.warns(UserWarning, match="8 columns for 12 classes") as caught:
            model.fit(X, y)
        assert len(caught) == 1 and caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
        assert (model.predict(X) == y).mean() > 0.3

    def test_sums_of_probabilities_need_no_certainty_either(self):
        with pytest.warns(UserWarning, match="do not determine the class probabilities"):
            CoupledClassifier(code=FEW, combiner="noniterative", cv=None).fit(X, y)

    def test_kl_is_refused(self):
        with pytest.raises(ValueError, match="does not determine .* 'least-squares'"):
            CoupledClassifier(code=FEW, combiner="kl").fit(X, y)

    def test_trained_combiners_and_decoders_do_not_mind(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            CoupledClassifier(code=FEW, combiner="softmax-simplified", cv=3).fit(X, y)
            CoupledClassifier(code=FEW, combiner="hamming").fit(X, y)

    def test_blocks_of_many_columns_answer_the_same(self):
        model = CoupledClassifier(LinearDiscriminantAnalysis(), cv=3).fit(X, y)
        whole = model.predict_proba(X)
        model._row_blocks = RowBlocks(1, many_columns=60, many_entries=7 * 66)  # 66 columns
        assert model._row_blocks.size(66) == 7
        for method in ("predict_proba", "decision_function", "incoherence"):
            getattr(model, method)(X)
        assert_allclose(model.predict_proba(X), whole, rtol=0, atol=1e-12)

    def test_fits_no_more_folds_than_the_scaling_needs(self, monkeypatch):
        fitted = []

        class Counting(LinearDiscriminantAnalysis):
            def fit(self, X, y):
                fitted.append(len(y))
                return super().fit(X, y)

        class Thrifty(CoupledClassifier):
            _row_blocks = RowBlocks(many_columns=60)

        monkeypatch.setattr("manyclass.classifier.rows_for_scaling", lambda *shape: 61)
        options = {"cv": 4, "with_native": False}
        CoupledClassifier(Counting(), calibration=None, **options).fit(X, y)
        assert len(fitted) == 5 * 66
        fitted.clear()
        model = Thrifty(Counting(), calibration=None, **options).fit(X, y)  # 60 rows a fold
        assert len(fitted) == 3 * 66 and model.scaling_ is not None
        fitted.clear()
        Thrifty(Counting(), calibration="sigmoid", **options).fit(X, y)
        assert len(fitted) == 5 * 66


def test_matrices_of_a_scaling_fit_into_memory():
    def of(k, scaling):
        options = {"calibration": "auto", "cv": 5, "scaling": scaling}
        return make_plan(LogisticRegression(), combiners.resolve("wlw2"), k, **options).scaling

    assert of(2000, "auto") is of(2001, "structured") is StructuredScaling
    assert of(2001, "auto") is Temperature


def test_rows_for_the_scaling():
    assert rows_for_scaling(10, 45) == 5000
    assert rows_for_scaling(26, 325) == 2958
    assert rows_for_scaling(100, 4950) == 2000
    assert rows_for_scaling(200, 19900) == 1000
    assert rows_for_scaling(1000, 150) == 2000


# -- linear models without models ------------------------------------------------------

LINEAR = [
    LogisticRegression(),
    LinearSVC(),
    LinearSVC(fit_intercept=False),
    LinearDiscriminantAnalysis(),
    RidgeClassifier(),
    SGDClassifier(loss="log_loss", max_iter=5, tol=None),
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", LINEAR, ids=repr)
def test_linear_models_are_made_anew_as_they_were(estimator, dtype):
    code, data = codes.one_vs_one(4)[:, :5], X[:80].astype(dtype)
    labels = y[:80] % 3  # class 3 has no sample, so that one column has one side
    options = {"seeds": np.arange(5)}
    bank = fit_bank(estimator, data, labels, code, MARGIN, **options)
    assert isinstance(bank, LinearBank) and len(bank._kept) == 1
    for column, model in enumerate(bank.models):
        single = fit_bank(
            estimator, data, labels, code[:, [column]], MARGIN, seeds=np.array([column])
        )
        if isinstance(model, ConstantModel):
            assert model.positive is single.models[0].positive
            continue
        kept = single._kept[0]
        assert vars(model).keys() == vars(kept).keys()
        for name in ("coef_", "intercept_", "n_iter_", "random_state", "n_features_in_"):
            if hasattr(kept, name):
                own, other = getattr(model, name), getattr(kept, name)
                assert type(own) is type(other) and np.array_equal(own, other), name
        assert_array_equal(model.decision_function(data), kept.decision_function(data))


def test_models_handed_out_are_copies():
    bank = fit_bank(LogisticRegression(), X, y, codes.one_vs_rest(12), PROBABILITY)
    before = bank.scores(X)
    for model in bank.models:
        model.coef_[:] = 0
        model.classes_[:] = 7
    assert_array_equal(bank.scores(X), before)
    assert_array_equal(bank.models[0].classes_, [0, 1])


def test_a_model_that_cannot_be_stacked_is_kept():
    class Odd(LogisticRegression):
        def fit(self, X, y):
            super().fit(X, y)
            self.rows_ = np.arange(len(y))  # of another length in every column
            return self

    Odd.__module__ = "builtins"
    bank = LinearBank([Odd().fit(X[:n], y[:n] > 5) for n in (100, 120)], MARGIN)
    assert [len(model.rows_) for model in bank.models] == [100, 120]


def test_a_pickle_holds_no_model_per_column():
    model = CoupledClassifier(LogisticRegression(), cv=None).fit(X, y)
    content = pickle.dumps(model)
    assert len(content) < 12 * 66 + 66 * (4 + 1 + 1 + 1) * 8 + 6000  # code, numbers, the rest
    assert_array_equal(pickle.loads(content).predict_proba(X), model.predict_proba(X))


def test_batches_hold_every_column_once():
    for n_columns in (1, 7, 66, 19900):
        for n_jobs in (1, 2, 40):
            batches = column_batches(n_columns, n_jobs)
            columns = [b for batch in batches for b in range(*batch.indices(n_columns))]
            assert columns == list(range(n_columns))
            assert len(batches) <= max(9 * n_jobs, n_columns // 64 + 1) + n_jobs


# -- out-of-sample scores a few at a time ----------------------------------------------


class Stub:
    """A bank that answers fixed products; ``shift`` tells the folds apart."""

    def __init__(self, coef, shift=0.0):
        self.coef, self.shift = coef, shift
        self.constant = np.zeros(coef.shape[1], dtype=np.bool_)

    def scores(self, X, where=None):
        return X @ self.coef + self.shift

    def scores_at(self, X, rows, where=None):
        return self.scores(X[rows])


def stub_scores(k, n_of_class, code, **options):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(k), n_of_class))
    X, coef = rng.normal(size=(len(y), 3)), rng.normal(size=(3, code.shape[1]))
    folds = make_folds(5, X, y, np.arange(k))
    shifts = iter(range(1, 6))

    def fit(rows):
        return Stub(coef, next(shifts))

    ones = np.ones(len(y))
    scores = CrossFittedScores(Stub(coef), fit, X, y, code, ones, folds, **options)
    return scores, X @ coef, y, folds


@pytest.mark.parametrize("code", [codes.one_vs_one(6), codes.one_vs_rest(6), few_columns(6, 4)])
def test_scores_come_from_the_right_models(code):
    scores, plain, y, folds = stub_scores(6, 10, code, block_entries=11 * code.shape[1])
    expected = plain.copy()
    for number, (_, test) in enumerate(folds):
        expected[test] += (number + 1) * (code[y[test]] != 0)
    assert_allclose(scores.dense(), expected, rtol=1e-12)
    rows = np.array([7, 3, 3, 50])
    assert_array_equal(scores[rows], scores.dense()[rows])
    assert_array_equal(scores.complete_rows(), np.arange(60))


@pytest.mark.parametrize("enough", [1, 12, 13, 60])
def test_folds_end_when_there_is_enough(enough):
    scores, _, _, folds = stub_scores(6, 10, codes.one_vs_one(6), enough=enough)
    n_folds = -(-enough // 12)
    expected = np.sort(np.concatenate([test for _, test in folds[:n_folds]]))
    assert_array_equal(scores.complete_rows(), expected)


@pytest.mark.parametrize("method", [Sigmoid, RobustSigmoid, Isotonic])
@pytest.mark.parametrize("columns", [1, 4, 100])
@pytest.mark.parametrize("code", [codes.one_vs_one(6), codes.one_vs_rest(6)], ids=["ovo", "ovr"])
def test_calibration_of_a_few_columns_at_a_time(method, columns, code):
    scores, _, y, _ = stub_scores(6, 10, code)
    # Class 2 has no scores: its columns are fitted on the pooled scores of the others.
    for row in np.flatnonzero(y == 2):
        scores._left_out[scores._places(np.array([row]))] = np.nan
    weights = np.random.default_rng(3).uniform(0.5, 2, len(y))
    weights[:5] = 0
    n_columns = code.shape[1]
    blocks = method().fit_blocks(lambda: scores.column_blocks(weights, columns), n_columns)
    whole = method().fit(scores.dense(), code[y], weights)
    at = np.linspace(-9, 9, 50)[:, None] * np.ones(n_columns)
    assert_array_equal(blocks.transform(at), whole.transform(at))


def test_pooled_scores_are_thinned_where_there_are_too_many():
    scores, _, y, _ = stub_scores(6, 10, codes.one_vs_one(6))
    chosen = np.arange(15) > 3
    weights = np.ones(len(y))
    whole = pool_scores(lambda: scores.column_blocks(weights), chosen)
    some = pool_scores(lambda: scores.column_blocks(weights), chosen, most=50)
    assert len(whole[0]) == 20 * 11 and 25 < len(some[0]) <= 50
    assert np.isin(some[0], whole[0]).all()


def test_memory_is_that_of_the_scores_that_cost_refits():
    k, n_of_class = 60, 40  # 2400 rows and 1770 columns: 34 MB for all scores
    code = codes.one_vs_one(k)
    warm, *_ = stub_scores(6, 10, codes.one_vs_one(6))
    Sigmoid().fit_blocks(lambda: warm.column_blocks(np.ones(60)), 15)
    tracemalloc.start()
    scores, _, y, _ = stub_scores(k, n_of_class, code)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    Sigmoid().fit_blocks(lambda: scores.column_blocks(np.ones(len(y))), code.shape[1])
    assert len(scores.complete_rows()) == len(y)
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert scores._left_out.nbytes == 8 * len(y) * (k - 1)
    assert peak < 8e6


class Nameless(ClassifierMixin, BaseEstimator):
    """Gives NaN for a row that has a part in none of its classes."""

    def fit(self, X, y):
        self.seen_ = set(X[:, 0])
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X):
        return np.where(X[:, 0] == 5.0, np.nan, X[:, 1])


def test_nan_is_named_where_it_is_met():
    data = np.column_stack([np.arange(len(y)), X])
    with pytest.raises(ValueError, match="NaN at row 5, column"):
        CoupledClassifier(Nameless(), cv=3).fit(data, y)


# -- lists of columns ------------------------------------------------------------------


@quick
@given(seed=seeds, k=st.integers(2, 9))
def test_lists_of_columns(seed, k):
    code = np.random.default_rng(seed).integers(-1, 2, (k, 7)).astype(np.int8)
    start, middle, members = column_lists(code)
    for b in range(7):
        assert_array_equal(members[start[b] : middle[b]], np.flatnonzero(code[:, b] > 0))
        assert_array_equal(members[middle[b] : start[b + 1]], np.flatnonzero(code[:, b] < 0))
