"""Structured scaling: the whole formula, and its laws."""

from __future__ import annotations

import pickle
import warnings

import naive_scaling as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from manyclass import codes
from manyclass.scaling import StructuredScaling, Temperature, resolve_scaling
from manyclass.scaling.structured import COLUMNS_TOL

quick = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 2**32 - 1)
EVIDENCE = ["alone", "columns", "others", "both"]
each_evidence = pytest.mark.parametrize("evidence", EVIDENCE)


def some_code(k):
    """One-vs-one, and a column of several classes on a side."""
    return np.hstack([codes.one_vs_one(k), codes.one_vs_rest(k)[:, :1]])


def samples(seed, n=60, k=4, evidence="alone"):
    """Probabilities that are too sure and biased, further evidence, and drawn classes."""
    rng = np.random.RandomState(seed)
    truth = rng.normal(scale=2, size=(n, k))
    y = (truth + rng.gumbel(size=(n, k))).argmax(axis=1)
    p = softmax(2 * truth + rng.normal(size=k) + rng.normal(size=(n, k)), axis=1)
    more, q = {}, softmax(truth, axis=1)
    if evidence in ("columns", "both"):
        code = some_code(k)
        mass = q @ (code > 0), q @ (code < 0)
        noise = rng.normal(size=(n, code.shape[1]))
        more["columns"] = 1 / (1 + np.exp(noise) * mass[1] / mass[0])
    if evidence in ("others", "both"):
        more["others"] = [softmax(truth + rng.normal(size=(n, k)), axis=1)]
    return p, y, more


def fitted(p, y, more, weights=None):
    code = some_code(p.shape[1]) if "columns" in more else None
    return StructuredScaling().fit(p, y, weights, code=code, **more)


def rows_of(more, rows):
    """The same evidence for some of the rows."""
    part = {"columns": more["columns"][rows]} if "columns" in more else {}
    return part | ({"others": [q[rows] for q in more["others"]]} if "others" in more else {})


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)


# -- against the formula ---------------------------------------------------------------


class TestFormula:
    @each_evidence
    @quick
    @given(seed=seeds, k=st.integers(2, 5), weighted=st.booleans())
    def test_probabilities_are_those_of_plain_loops(self, evidence, seed, k, weighted):
        p, y, more = samples(seed, k=k, evidence=evidence)
        weights = np.random.RandomState(seed).randint(1, 4, len(y)) if weighted else None
        model = fitted(p, y, more, weights)
        learned = model.weights_, model.share_, model.log_prior_, model.matrix_
        expected = naive.predict(*learned, p, code=model.code_, **more)
        assert_allclose(model.predict_proba(p, **more), expected, atol=1e-9)

    @each_evidence
    @quick
    @given(seed=seeds, k=st.integers(2, 4), weighted=st.booleans())
    def test_parameters_are_minima(self, evidence, seed, k, weighted):
        """Of the ridge k/n on b and the diagonal, k(k-1)/n off it, and that of the columns."""
        p, y, more = samples(seed, k=k, evidence=evidence)
        weights = np.random.RandomState(seed).randint(1, 4, len(y)) if weighted else np.ones(len(y))
        model, code = fitted(p, y, more, weights), some_code(k)
        oracle = naive.fit(p, y, weights, code=code, **more)
        assert_allclose(model.share_, oracle.share)
        assert_allclose(model.log_prior_, oracle.log_prior)
        assert_allclose(model.weights_, oracle.weights, atol=1e-4)
        # From here on with the same weights, so that their last digits do not matter.
        learned = {"pooled": model.weights_, "columns_ridge": model.columns_ridge_}
        oracle = naive.fit(p, y, weights, code=code, **learned, **more)
        assert model.matrix_.shape == oracle.ridge.shape

        def objective(v):
            M = v.reshape(oracle.ridge.shape)
            q = softmax(oracle.z + oracle.X @ M, axis=1)
            q[np.arange(len(y)), y] -= 1
            slopes = oracle.X.T @ (weights[:, None] * q) / weights.sum() + 2 * oracle.ridge * M
            return oracle.objective(M, y, weights), slopes.ravel()

        start = np.zeros(oracle.ridge.size)
        best = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        value, slopes = objective(model.matrix_.ravel())
        if "columns" in more:  # the search stops early
            assert value <= best.fun + 50 * COLUMNS_TOL
            return
        assert value <= best.fun + 1e-6
        assert_allclose(slopes, 0, atol=1e-6)
        assert_allclose(model.matrix_.ravel(), best.x, atol=1e-5)

    def test_columns_have_no_effects_of_their_own_where_they_are_too_many(self):
        p, y, more = samples(0, n=4, k=4, evidence="columns")  # 7 columns: 28 <= 40
        assert fitted(p, y, more).matrix_.shape == (4 + 1 + 7, 4)
        part = p[:2], y[:2], rows_of(more, slice(2))
        assert fitted(*part).matrix_.shape == (4 + 1, 4)

    @quick
    @given(seed=seeds)
    def test_columns_of_no_class_have_effects_but_no_part_in_the_features(self, seed):
        p, y, more = samples(seed, evidence="columns")
        further = np.random.RandomState(seed).uniform(size=(len(p), 3))
        code = np.hstack([some_code(4), np.zeros((4, 3), dtype=np.int8)])
        wide = np.hstack([more["columns"], further])
        model = StructuredScaling().fit(p, y, columns=wide, code=code)
        assert_array_equal(model.weights_, fitted(p, y, more).weights_)
        assert model.matrix_.shape == (4 + 1 + 7 + 3, 4) and model.matrix_[-3:].any()

    def test_each_kind_of_column_has_its_own_limit(self):
        p, y, more = samples(0, n=2, k=4, evidence="columns")
        code = np.hstack([some_code(4), np.zeros((4, 1), dtype=np.int8)])
        wide = np.hstack([more["columns"], [[0.2], [0.9]]])  # 28 > 20, but 4 <= 20
        matrix = StructuredScaling().fit(p, y, columns=wide, code=code).matrix_
        assert matrix.shape == (4 + 1 + 8, 4)
        assert not matrix[5:-1].any() and matrix[-1].any()

    @quick
    @given(seed=seeds)
    def test_alone_it_is_a_temperature_and_then_a_matrix(self, seed):
        p, y, _ = samples(seed)
        model, temperature = StructuredScaling().fit(p, y), Temperature().fit(p, y)
        assert_array_equal(model.weights_, [temperature.power_])
        model.matrix_ = np.zeros_like(model.matrix_)
        assert_allclose(model.predict_proba(p), temperature.predict_proba(p), atol=1e-12)


# -- laws ------------------------------------------------------------------------------


class TestLaws:
    @each_evidence
    @quick
    @given(seed=seeds, n=st.integers(1, 80), k=st.integers(2, 7))
    def test_probabilities(self, evidence, seed, n, k):
        p, y, more = samples(seed, n, k, evidence)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_probabilities(fitted(p, y, more).predict_proba(p, **more))

    @each_evidence
    @quick
    @given(seed=seeds, k=st.integers(2, 5))
    def test_relabelling_permutes(self, evidence, seed, k):
        p, y, more = samples(seed, k=k, evidence=evidence)
        order = np.random.RandomState(seed).permutation(k)  # class c becomes order[c]
        back = np.argsort(order)
        expected = fitted(p, y, more).predict_proba(p, **more)
        other = dict(more, others=[q[:, back] for q in more.get("others", [])])
        code = some_code(k)[back]
        model = StructuredScaling().fit(p[:, back], order[y], code=code, **other)
        found = model.predict_proba(p[:, back], **other)
        assert_allclose(found[:, order], expected, atol=1e-6)

    @each_evidence
    @quick
    @given(seed=seeds)
    def test_weights_are_counts(self, evidence, seed):
        p, y, more = samples(seed, evidence=evidence)
        times = np.random.RandomState(seed).randint(0, 3, len(y))
        weighted = fitted(p, y, more, times)
        rows = np.arange(len(y)).repeat(times)
        copied = fitted(p[rows], y[rows], rows_of(more, rows))
        assert_allclose(
            weighted.predict_proba(p, **more), copied.predict_proba(p, **more), atol=1e-6
        )

    @each_evidence
    @pytest.mark.parametrize("k", [2, 3, 11])
    def test_rows_are_computed_alone(self, evidence, k):
        """To the last bit."""
        p, y, more = samples(0, 70, k, evidence)
        model = fitted(p, y, more)
        whole = model.predict_proba(p, **more)
        for rows in ([s] for s in range(70)):
            alone = model.predict_proba(p[rows], **rows_of(more, rows))
            assert_array_equal(alone, whole[rows])
        other = model.predict_proba(np.asfortranarray(p), **more)  # sums in another order
        assert_allclose(other, whole, rtol=1e-13)

    @quick
    @given(seed=seeds)
    def test_two_classes_are_a_sigmoid_of_the_log_odds(self, seed):
        p, y, _ = samples(seed, k=2)
        model = StructuredScaling().fit(p, y)
        model.share_ = 0.0  # which is mixed in between
        q = model.predict_proba(p)
        odds, scaled = (np.log(r[:, 1] / r[:, 0]) for r in (p, q))
        assert_allclose(np.polyval(np.polyfit(odds, scaled, 1), odds), scaled, atol=1e-6)

    @each_evidence
    def test_same_input_same_bits(self, evidence):
        p, y, more = samples(3, evidence=evidence)
        one, two = fitted(p, y, more), fitted(p.copy(), y.copy(), more)
        assert_array_equal(one.matrix_, two.matrix_)

    @each_evidence
    def test_the_input_is_not_written(self, evidence):
        p, y, more = samples(3, evidence=evidence)
        before = pickle.dumps((p, y, more))
        fitted(p, y, more).predict_proba(p, **more)
        assert pickle.dumps((p, y, more)) == before

    def test_labels_only_name_the_columns(self):
        p, y, _ = samples(0)
        expected = StructuredScaling().fit(p, y)
        for names in (np.array(["ant", "bee", "cat", "dog"]), np.array([-3, 5, 8, 10])):
            model = StructuredScaling().fit(p, names[y])
            assert_array_equal(model.classes_, names)
            assert_array_equal(model.matrix_, expected.matrix_)

    def test_clones_and_pickles(self):
        p, y, more = samples(0, evidence="both")
        model = fitted(p, y, more)
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict_proba(p, **more), model.predict_proba(p, **more))
        assert not hasattr(clone(model), "matrix_")


class TestWhatItCorrects:
    def test_better_than_a_temperature_where_classes_are_biased(self):
        p, y, _ = samples(5, n=4000)
        p = p * [8, 1, 1, 1 / 8]
        p, half = p / p.sum(axis=1, keepdims=True), (slice(2000), slice(2000, None))

        def loss(scaling):
            q = scaling.fit(p[half[0]], y[half[0]]).predict_proba(p[half[1]])
            return -np.log(q[np.arange(2000), y[half[1]]]).mean()

        assert loss(StructuredScaling()) < loss(Temperature()) - 0.01

    def test_what_columns_know_is_used(self):
        p, y, more = samples(5, n=4000, evidence="columns")
        half, rest = np.arange(2000), np.arange(2000, 4000)

        def loss(model, **more):
            return -np.log(model.predict_proba(p[rest], **more)[np.arange(2000), y[rest]]).mean()

        alone = fitted(p[half], y[half], {})
        informed = fitted(p[half], y[half], rows_of(more, half))
        assert loss(informed, **rows_of(more, rest)) < loss(alone) - 0.01

    def test_calibrated_probabilities_stay_nearly_as_they_are(self):
        rng = np.random.RandomState(0)
        p = rng.dirichlet(np.ones(4), 20_000)
        y = (p.cumsum(axis=1) < rng.uniform(size=(20_000, 1))).sum(axis=1)
        assert abs(StructuredScaling().fit(p, y).predict_proba(p) - p).mean() < 0.01


# -- little to learn from --------------------------------------------------------------


class TestFewSamples:
    @each_evidence
    @pytest.mark.parametrize("n", [1, 2, 3, 5])
    @pytest.mark.parametrize("k", [2, 3, 10])
    def test_a_handful(self, n, k, evidence):
        p, y, more = samples(n, n, k, evidence)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = fitted(p, y, more)
            assert_probabilities(model.predict_proba(p, **more))

    @each_evidence
    @pytest.mark.parametrize("right", [True, False])
    def test_all_right_or_all_wrong(self, right, evidence):
        p, _, more = samples(0, evidence=evidence)
        y = p.argmax(axis=1) if right else p.argmin(axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            q = fitted(p, y, more).predict_proba(p, **more)
        assert_probabilities(q)
        assert (q > 0).all() and q[np.arange(len(y)), y].mean() > (0.9 if right else 0.2)

    @each_evidence
    def test_classes_of_one_sample_or_none(self, evidence):
        p, _, more = samples(0, n=9, k=8, evidence=evidence)
        for y in (np.r_[np.arange(8), 0], np.repeat([2, 5, 6], 3), np.full(9, 4)):
            assert_probabilities(fitted(p, y, more).predict_proba(p, **more))

    @each_evidence
    def test_the_less_there_is_the_nearer_to_a_temperature(self, evidence):
        p, y, more = samples(1, evidence=evidence)
        sizes = []
        for weight in (1e-3, 0.1, 1.0, 10.0, 100.0):
            model = fitted(p, y, more, np.full(len(y), weight))
            sizes.append(np.linalg.norm(model.matrix_))
        assert sizes == sorted(sizes) and sizes[0] < 1e-2 < sizes[-1]

    @quick
    @given(seed=seeds)
    def test_near_a_temperature_with_few_samples_of_many_classes(self, seed):
        p, y, _ = samples(seed, n=20, k=10)
        found = StructuredScaling().fit(p, y).predict_proba(p)
        expected = Temperature().fit(p, y).predict_proba(p)
        assert abs(found - expected).mean() < 0.05

    @each_evidence
    def test_zeros_and_ones(self, evidence):
        _, y, more = samples(0, evidence=evidence)
        hard = np.eye(4)[(y + (np.arange(len(y)) % 5 == 0)) % 4]
        if "columns" in more:
            more["columns"] = more["columns"].round()
        if "others" in more:
            more["others"] = [hard]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            q = fitted(hard, y, more).predict_proba(hard, **more)
        assert_probabilities(q)
        assert (q > 0).all()
        wrong = hard.argmax(axis=1) != y
        assert q[wrong, y[wrong]].min() > 1e-4

    @each_evidence
    def test_uniform_probabilities(self, evidence):
        _, y, more = samples(0, evidence=evidence)
        uniform = np.full((len(y), 4), 0.25)
        if "columns" in more:
            more["columns"] = np.full_like(more["columns"], 0.5)
        if "others" in more:
            more["others"] = [uniform]
        q = fitted(uniform, y, more).predict_proba(uniform, **more)
        assert_probabilities(q)
        assert_allclose(q, q[:1].repeat(len(y), axis=0), atol=1e-12)

    @each_evidence
    @pytest.mark.parametrize("weight", [1e-300, 1e-9, 1e9, 1e300])
    def test_weights_of_any_size(self, weight, evidence):
        p, y, more = samples(0, evidence=evidence)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = fitted(p, y, more, np.full(len(y), weight))
            assert_probabilities(model.predict_proba(p, **more))


# -- errors ----------------------------------------------------------------------------


class TestErrors:
    p, y, more = samples(0, evidence="both")
    columns, others, code = more["columns"], more["others"], some_code(4)

    @pytest.mark.parametrize("cls", [StructuredScaling, Temperature])
    @pytest.mark.parametrize(
        ("p", "y", "message"),
        [
            (np.log(p), y, "class probabilities.*softmax"),
            (2 * p, y, "rows that sum to 1"),
            (p[:, :1], y, "at least two columns"),
            (np.full_like(p, np.nan), y, "p contains NaN"),
            (p, y[:-1], "inconsistent numbers of samples"),
            (p, np.array(list("abab"))[y], "y has 2 labels, from 'a' to 'b', but p has 4 columns"),
            (p, y.astype(str), None),
        ],
        ids=["logits", "sums", "one column", "NaN", "lengths", "labels", "fine"],
    )
    def test_probabilities_and_labels(self, cls, p, y, message):
        if message is None:
            cls().fit(p, y)
            return
        with pytest.raises(ValueError, match=message):
            cls().fit(p, y)

    @pytest.mark.parametrize("cls", [StructuredScaling, Temperature])
    @pytest.mark.parametrize("weights", [np.zeros(60), -np.ones(60), np.ones(3)])
    def test_weights(self, cls, weights):
        with pytest.raises(ValueError, match="[Ss]ample.?weight"):
            cls().fit(self.p, self.y, weights)

    @pytest.mark.parametrize("cls", [StructuredScaling, Temperature])
    def test_predicting_other_classes_or_too_early(self, cls):
        with pytest.raises(NotFittedError):
            cls().predict_proba(self.p)
        with pytest.raises(ValueError, match="p has 3 columns, but there are 4 classes"):
            cls().fit(self.p, self.y).predict_proba(np.full((2, 3), 1 / 3))

    @pytest.mark.parametrize(
        ("evidence", "word"),
        [
            ({"columns": columns}, "code"),
            ({"columns": columns[:, :2], "code": code}, "columns"),
            ({"columns": columns[:5], "code": code}, "columns"),
            ({"columns": columns[:, 0], "code": code}, "columns"),
            ({"columns": columns, "code": code[:3]}, "code"),
            ({"columns": np.full_like(columns, np.nan), "code": code}, "columns"),
            ({"columns": columns - 3, "code": code}, "columns"),
            ({"others": [p[:5]]}, "others"),
            ({"others": [p[:, :3]]}, "others"),
            ({"others": p}, "others"),
        ],
    )
    def test_evidence_of_another_shape(self, evidence, word):
        with pytest.raises(ValueError, match=word):
            StructuredScaling().fit(self.p, self.y, **evidence)

    @pytest.mark.parametrize(
        "evidence",
        [
            {},
            {"columns": columns},
            {"others": others},
            {"others": others * 4},
            {"columns": columns, "others": others * 2},
            {"columns": columns[:, :3], "others": others},
            {"columns": columns[:3], "others": others},
            {"columns": columns, "others": [others[0][:3]]},
        ],
    )
    def test_other_evidence_than_in_fit(self, evidence):
        model = fitted(self.p, self.y, self.more)
        with pytest.raises(ValueError, match="columns|others"):
            model.predict_proba(self.p, **evidence)

    @pytest.mark.parametrize("name", ["sigmoid", True, False, 1, np.ones(2), Temperature])
    def test_names(self, name):
        with pytest.raises(ValueError, match="scaling must be 'auto', None or one of .*'struct"):
            resolve_scaling(name)


# -- probabilities near zero, and the package of the paper -----------------------------


class TestSmallProbabilities:
    @pytest.mark.parametrize(
        ("least", "floor"), [(1e-3, 2.0**-52), (1e-20, 1e-20), (1e-60, 2.0**-126)]
    )
    def test_zeros_count_as_the_least_of_the_others_within_bounds(self, least, floor):
        p, y, _ = samples(0)
        p[0], p[1] = [1.0, 0.0, 0.0, 0.0], [1 - least, least, 0.0, 0.0]
        p[2:] = np.maximum(p[2:], 0.01)
        p /= p.sum(axis=1, keepdims=True)
        model = StructuredScaling().fit(p, y)
        assert model.floor_ == pytest.approx(floor)
        expected = model.predict_proba(np.maximum(p, floor))
        assert_allclose(model.predict_proba(p), expected, atol=1e-9)

    def test_what_is_far_too_sure_is_still_told_apart(self):
        p, y, _ = samples(1, n=400)
        logits = 30 * np.log(p)
        sure = softmax(logits, axis=1)
        right, scaled = np.arange(len(y)), StructuredScaling().fit(sure, y).predict_proba(sure)
        plain = StructuredScaling().fit(p, y).predict_proba(p)
        assert -np.log(scaled[right, y]).mean() < 1.2 * -np.log(plain[right, y]).mean()

    def test_the_minimum_is_that_of_probmetrics(self):
        calibrators = pytest.importorskip("probmetrics.calibrators")
        for k in (3, 5):
            p, y, _ = samples(2, n=300, k=k)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = calibrators.SMSCalibrator(penalty="ridge", opt="bfgs").fit(p, y)
                expected = theirs.predict_proba(p)
            found = StructuredScaling().fit(p, y).predict_proba(p)
            assert_allclose(found, expected, atol=1e-3)  # theirs is in single precision
