"""Reliability measures and their decoders: by hand, against plain loops, as laws, and in use."""

from __future__ import annotations

import pickle
import re
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from math import exp

import naive_reliability as naive
import numpy as np
import pandas as pd
import pytest
from all_pairs import checks_in_turn
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.banks import ObjectiveTerms
from manyclass.combiners.base import names, resolve
from manyclass.combiners.decoding import WinnerTakesAll
from manyclass.combiners.reliability import DynamicReliability, StaticReliability
from manyclass.combiners.srm_drm import (
    DynamicReliabilityCV,
    DynamicReliabilityDecoder,
    StaticReliabilityDecoder,
)
from manyclass.predicting import RowBlocks

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=4.0, random_state=0)
X /= 8.0
LABELS = np.array(["ant", "bee", "cat", "dog"])[y]
NEW = np.random.RandomState(1).normal(size=(40, 3))
REST = codes.one_vs_rest(4)
SINGLE = np.array([[1], [-1]], dtype=np.int8)
TERNARY = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, 1], [0, -1, -1]], dtype=np.int8)
quick = settings(deadline=None, max_examples=15)
LINEAR = LinearSVC(dual=False, tol=1e-12)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def one_vs_rest(estimator, combiner, **options):
    return CoupledClassifier(estimator, code="one-vs-rest", combiner=combiner, **options)


def some_evidence(seed=0, n=30, code=REST, weighted=True, integers=False):
    """Samples, classes and what machines of no training would tell about them."""
    rng = np.random.default_rng(seed)
    samples = rng.integers(0, 4, (n, 2)).astype(float) if integers else rng.normal(size=(n, 2))
    classes = rng.permutation(np.arange(n) % len(code))
    margins = rng.normal(scale=2.0, size=(n, code.shape[1]))
    weights = rng.choice([0.0, 0.5, 1.0, 2.75], n) if weighted else np.ones(n)
    return samples, classes, ObjectiveTerms(rng.uniform(0, 0.3, code.shape[1]), margins, weights)


# -- by hand ---------------------------------------------------------------------------


class TestByHand:
    """Two classes on a line, at -2, -1 and 1, 2; the machine f(x) = x."""

    line = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    sides = np.array([0, 0, 1, 1])

    def test_a_separable_problem(self):
        # Support vectors -1 and 1: w = 1, b = 0, no slack. |w|^2 / (2 C N) = 1 / (2 * 10 * 4).
        machine = SVC(kernel="linear", C=10.0, tol=1e-10)
        model = one_vs_rest(machine, "srm").fit(self.line, self.sides)
        assert_allclose(model.reliability_.values_, [exp(-1 / 80)])
        # f(0.5) = 0.5 for class 1; score 1 minus score 0 is twice lambda (1 - exp(-0.5)).
        expected = 2 * exp(-1 / 80) * (1 - exp(-0.5))
        assert_allclose(model.decision_function([[0.5]]), [expected])

    def test_a_machine_at_its_bound(self):
        # b = 0 by symmetry. The objective w^2 / 2 + C (2 (1 - w)_+ + 2 (1 - 2 w)_+) with C = 0.1
        # has slope w - 0.6 below w = 1/2 and w - 0.2 above: its minimum is the kink w = 1/2.
        # Slacks 1/2 at -1 and 1, none at -2 and 2: (0.125 + 0.1) / (C N) = 0.225 / 0.4.
        machine = SVC(kernel="linear", C=0.1, tol=1e-10)
        model = one_vs_rest(machine, "srm").fit(self.line, self.sides)
        assert_allclose(-np.log(model.reliability_.values_), [0.5625], rtol=1e-6)

    def test_neighbourhoods(self):
        # The sample at 1.5 belongs to the negative side: f = 1.5, slack 2.5. Others: none.
        samples = np.vstack([self.line, [[1.5]]])
        evidence = ObjectiveTerms(np.array([0.1]), -samples)  # the positive side is class 0
        measure = DynamicReliability(2).fit(samples, np.append(self.sides, 0), SINGLE, evidence)
        new = np.array([[1.4], [3.0], [0.8], [-5.0], [0.1]])
        # Next to 1.4 are 1.5 and 1: mean slack 2.5 / 2. Next to 3 are 2 and 1.5: the same.
        # Next to 0.8 are 1 and 1.5. Next to -5 are -2 and -1: none.
        # Next to 0.1 are 1 (positive) and -1 (negative): with f = 0.1 only 1 counts.
        expected = [1.35, 1.35, 1.35, 0.1, 0.1]
        assert_allclose(-np.log(measure.of(new, -new))[:, 0], expected)
        # Where the machine says the opposite of all neighbours: 2.5 / 5 on the whole.
        assert_allclose(-np.log(measure.of(new[1:2], np.array([[1.0]]))), [[0.6]])

    def test_places_at_the_same_distance_are_shared(self):
        # Around 0, -1 and 1 come first. Of size 3, -2 and 2 share the third place: 1/2 each.
        margins = np.array([[0.5], [0.25], [0.75], [0.0]])  # slacks 0.5, 0.75, 0.25, 1
        evidence = ObjectiveTerms(np.array([0.0]), margins)
        measure = DynamicReliability(3).fit(self.line, np.zeros(4, int), SINGLE, evidence)
        # f = 1: of -2, -1, 1 (2 is on the other side): (0.5 / 2 + 0.75 + 0.25) / 2.5.
        assert_allclose(-np.log(measure.of([[0.0]], np.array([[1.0]]))), [[0.5]])
        # f = -1: 2 alone.
        assert_allclose(-np.log(measure.of([[0.0]], np.array([[-1.0]]))), [[1.0]])

    def test_the_less_reliable_machine_gives_way(self):
        # Soft decisions 1 - exp(-2) = 0.8647 and 1 - exp(-1) = 0.6321; times 0.7 it is 0.6053.
        scores = StaticReliabilityDecoder().combine(
            np.array([[2.0, 1.0, -1.0]]), codes.one_vs_rest(3), np.array([0.7, 1.0, 0.5])
        )
        assert_allclose(scores.values, [[0.6053, 0.6321, -0.3161]], atol=5e-5)
        assert_array_equal(scores.iterations, [1])
        assert_array_equal(scores.converged, [True])


# -- against plain loops ---------------------------------------------------------------


class TestMeasuresAgainstPlainLoops:
    @pytest.mark.parametrize("code", [REST, SINGLE, TERNARY], ids=["rest", "single", "ternary"])
    @pytest.mark.parametrize("weighted", [True, False])
    def test_static(self, weighted, code):
        _, classes, evidence = some_evidence(code=code, weighted=weighted)
        measure = StaticReliability().fit(None, classes, code, evidence)
        expected = [
            naive.static(
                evidence.penalty[b], code[classes, b], evidence.margins[:, b], evidence.weights
            )
            for b in range(code.shape[1])
        ]
        assert_allclose(measure.values_, expected, rtol=1e-12)
        assert measure.of(NEW, None) is measure.values_

    @pytest.mark.parametrize("code", [REST, SINGLE, TERNARY], ids=["rest", "single", "ternary"])
    @pytest.mark.parametrize("size", [1, 5, 17, 1000])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("integers", [True, False], ids=["ties", "no ties"])
    def test_dynamic(self, integers, weighted, size, code):
        samples, classes, evidence = some_evidence(code=code, weighted=weighted, integers=integers)
        rng = np.random.default_rng(1)
        new = rng.integers(0, 4, (12, 2)).astype(float) if integers else rng.normal(size=(12, 2))
        scores = rng.normal(size=(12, code.shape[1]))
        measure = DynamicReliability(size).fit(samples, classes, code, evidence)
        expected = naive.dynamic_of_all(
            evidence.penalty,
            classes,
            code,
            evidence.margins,
            evidence.weights,
            samples,
            new,
            scores,
            size,
        )
        assert_allclose(measure.of(new, scores), expected, rtol=1e-12)
        assert_allclose(measure.of(sparse.csr_array(new), scores), expected, rtol=1e-12)
        measure.fit(sparse.csr_array(samples), classes, code, evidence)
        assert_allclose(measure.of(new, scores), expected, rtol=1e-10)
        assert_allclose(measure.of(sparse.csr_array(new), scores), expected, rtol=1e-10)

    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("integers", [True, False], ids=["ties", "no ties"])
    def test_the_choice_of_the_size(self, integers, weighted):
        samples, classes, evidence = some_evidence(n=40, weighted=weighted, integers=integers)
        scores = REST[classes] + np.random.default_rng(2).normal(size=(40, 4))
        scores[[3, 17], 1] = np.nan
        measure = DynamicReliabilityCV().fit(samples, classes, REST, evidence, scores)
        others = int(evidence.weights.sum()) - 1
        fewer = [size for size in (1, 3, 5, 9, 15, 25, 45) if size < others]
        assert list(measure.errors_) == [*fewer, others]
        expected = naive.errors_of_sizes(
            evidence.penalty,
            classes,
            REST,
            evidence.margins,
            evidence.weights,
            samples,
            scores,
            list(measure.errors_),
        )
        assert_allclose(list(measure.errors_.values()), expected, rtol=1e-12)
        assert len(set(expected)) > 1
        assert measure.n_neighbors_ == list(measure.errors_)[int(np.argmin(expected))]
        again = DynamicReliabilityCV().fit(
            samples, classes, REST, evidence, scores, block_entries=100
        )
        assert again.errors_ == measure.errors_

    def test_the_smallest_of_equally_good_sizes(self):
        samples, classes, evidence = some_evidence(weighted=False)
        sure = np.where(REST[classes] > 0, 9.0, -9.0)  # right, whatever the reliabilities
        measure = DynamicReliabilityCV().fit(samples, classes, REST, evidence, sure)
        assert set(measure.errors_.values()) == {0.0}
        assert measure.n_neighbors_ == 1

    def test_few_of_many_rows_are_tried(self):
        samples, classes, evidence = some_evidence(n=200, weighted=False)
        data = samples, classes, REST, evidence, evidence.margins + 1.0
        whole = DynamicReliabilityCV([3]).fit(*data).errors_[3]
        part = DynamicReliabilityCV([3]).fit(*data, most_rows=100).errors_[3]
        assert part * 100 == pytest.approx(round(part * 100)) and part != whole
        assert abs(part - whole) < 0.15


def rbf(s, t):
    return exp(-0.5 * naive.squared_distance(s, t))


def polynomial(s, t):
    return (0.5 * float(s @ t) + 1.0) ** 2


class TestModelsAgainstPlainLoops:
    """One sklearn machine per class, |w|^2 by a double sum, neighbours by sorting."""

    machines = pytest.mark.parametrize(
        ("machine", "kernel"),
        [
            (SVC(C=0.3, kernel="linear", tol=1e-6), np.dot),  # LIBSVM takes seconds for 1e-8
            (SVC(C=5.0, gamma=0.5, tol=1e-8), rbf),
            (SVC(kernel="poly", degree=2, gamma=0.5, coef0=1.0, tol=1e-8), polynomial),
        ],
        ids=["linear", "rbf", "poly"],
    )

    def expected(self, machine, kernel, size, weights):
        penalties, margins, scores = [], [], []
        for c in range(4):
            fitted = clone(machine).fit(X, (y == c).astype(int), sample_weight=weights)
            norm = naive.squared_norm(fitted, kernel)
            penalties.append(norm / (2 * machine.C * weights.sum()))
            margins.append(fitted.decision_function(X))
            scores.append(fitted.decision_function(NEW))
        margins, scores = np.transpose(margins), np.transpose(scores)
        if size is None:
            columns = zip(penalties, REST.T, margins.T, strict=True)
            row = [naive.static(p, column[y], f, weights) for p, column, f in columns]
            reliabilities = np.tile(row, (len(NEW), 1))
        else:
            reliabilities = naive.dynamic_of_all(
                penalties, y, REST, margins, weights, X, NEW, scores, size
            )
        return [naive.class_scores(*row) for row in zip(scores, reliabilities, strict=True)]

    @machines
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("size", [None, 7])
    def test_support_vector_machines(self, machine, kernel, weighted, size):
        weights = np.random.RandomState(0).choice([0.0, 0.5, 2.0], 60) if weighted else np.ones(60)
        combiner = "srm" if size is None else DynamicReliabilityDecoder(size)
        model = one_vs_rest(machine, combiner).fit(X, LABELS, sample_weight=weights)
        expected = self.expected(machine, kernel, size, weights)
        # LIBSVM keeps kernel values in float32.
        assert_allclose(model.decision_function(NEW), expected, atol=1e-5)
        assert_array_equal(model.predict(NEW), model.classes_[np.argmax(expected, axis=1)])
        same = CoupledSVC(
            **{
                name: getattr(machine, name)
                for name in ("C", "kernel", "degree", "gamma", "coef0", "tol")
            },
            code="one-vs-rest",
            combiner=combiner,
        ).fit(X, LABELS, sample_weight=weights)
        assert_array_equal(same.decision_function(NEW), model.decision_function(NEW))

    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
    def test_linear_machines(self, loss):
        machine = LinearSVC(C=0.1, loss=loss, dual=loss == "hinge", tol=1e-9, random_state=0)
        machine.max_iter = 100_000
        model = one_vs_rest(machine, DynamicReliabilityDecoder(7)).fit(X, LABELS)
        fitted = [clone(machine).fit(X, (y == c).astype(int)) for c in range(4)]
        penalties = [(m.coef_**2).sum() / (2 * 0.1 * 60) for m in fitted]
        margins, scores = (
            np.transpose([m.decision_function(data) for m in fitted]) for data in (X, NEW)
        )
        reliabilities = naive.dynamic_of_all(
            penalties, y, REST, margins, np.ones(60), X, NEW, scores, 7
        )
        expected = [naive.class_scores(*row) for row in zip(scores, reliabilities, strict=True)]
        assert_allclose(model.decision_function(NEW), expected, atol=1e-6)

    def test_the_hinge_machine_has_at_least_the_reliability_of_none(self):
        # w = 0 with b = -1 has objective 2 C n_b: over C N at most 1.
        hard = SVC(C=100.0, gamma=10.0, tol=1e-9)
        for machine in (hard, SVC(C=1e-3, kernel="linear", tol=1e-6)):
            values = one_vs_rest(machine, "srm").fit(X, LABELS).reliability_.values_
            assert (values >= exp(-1)).all() and (values < 1).all()


# -- laws ------------------------------------------------------------------------------


EXTREMES = [0.0, -0.0, 1.0, -1.0, 1e-300, 36.0, 37.5, 40.0, 41.0, -45.0, -800.0, 1e290, -1e290]
MARGINS = st.one_of(st.floats(-5, 5), st.floats(-1e300, 1e300), st.sampled_from(EXTREMES))
RELIABILITIES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 1 - 2**-53]))


@st.composite
def problems(draw, elements=MARGINS):
    code = draw(st.one_of(st.integers(2, 6).map(codes.one_vs_rest), st.just(SINGLE)))
    shape = (draw(st.integers(1, 5)), code.shape[1])
    values = draw(hnp.arrays(np.float64, shape, elements=elements))
    return values, draw(hnp.arrays(np.float64, shape, elements=RELIABILITIES)), code


class TestDecoderLaws:
    @quick
    @given(problems(st.floats(-30, 30)))
    def test_scores_are_soft_decisions_times_reliabilities(self, problem):
        values, reliabilities, code = problem
        scores = StaticReliabilityDecoder().combine(values, code, reliabilities).values
        expected = [naive.class_scores(*row) for row in zip(values, reliabilities, strict=True)]
        assert_allclose(scores, expected, atol=3e-9)  # ties are raised

    @settings(deadline=None, max_examples=40)
    @given(problems(), st.one_of(RELIABILITIES, st.floats(0, 1e9)), st.integers(0, 9))
    def test_equal_reliabilities_are_winner_takes_all(self, problem, level, seed):
        values, _, code = problem
        expected = WinnerTakesAll(seed).combine(values, code).values.argmax(axis=1)
        for decoder in (StaticReliabilityDecoder(seed), DynamicReliabilityDecoder(None, seed)):
            equal = decoder.combine(values, code, np.full(code.shape[1], level)).values
            assert_array_equal(equal.argmax(axis=1), expected)
            assert_array_equal(decoder.combine(values, code).values.argmax(axis=1), expected)

    @pytest.mark.parametrize("level", [1.0, 0.7, 1e-5])
    @pytest.mark.parametrize("start", [1e-8, 1.0, 20.0, 36.0, 36.8, 40.0, 1e6, 1e200])
    @pytest.mark.parametrize("sign", [1.0, -1.0])
    def test_neighbouring_floats_are_told_apart(self, sign, start, level):
        near = sign * start * (1 + np.arange(2000) * 2.0**-52)
        values = np.column_stack([near[:-1], near[1:], np.full(1999, -2e200)])
        values[::2, :2] = values[::2, 1::-1]
        assert (values[:, 0] != values[:, 1]).all()
        scores = StaticReliabilityDecoder().combine(values, codes.one_vs_rest(3), np.full(3, level))
        assert_array_equal(scores.values.argmax(axis=1), values.argmax(axis=1))

    @quick
    @given(problems(), st.data())
    def test_relabelling_permutes_the_scores(self, problem, data):
        values, reliabilities, code = problem
        assume(code.shape[1] > 1)
        place = np.array(data.draw(st.permutations(range(len(code)))))
        moved, weights = np.empty_like(values), np.empty_like(values)
        moved[:, place], weights[:, place] = values, reliabilities
        decoder = DynamicReliabilityDecoder()
        scores = decoder.combine(values, code, reliabilities).values
        again = decoder.combine(moved, code, weights).values
        assert_allclose(again[:, place], scores, rtol=0, atol=3e-9)

    @quick
    @given(problems(st.one_of(MARGINS, st.sampled_from([np.inf, -np.inf]))))
    def test_rows_do_not_depend_on_each_other(self, problem):
        values, reliabilities, code = problem
        decoder = StaticReliabilityDecoder()
        whole = decoder.combine(values, code, reliabilities).values
        assert np.isfinite(whole).all()
        for i in range(len(values)):
            alone = decoder.combine(values[[i]], code, reliabilities[[i]]).values
            assert_array_equal(alone[0], whole[i])

    def test_blocks_change_no_bit(self):
        rng = np.random.default_rng(0)
        values, weights = rng.normal(size=(101, 4)), rng.uniform(size=(101, 4))
        whole = StaticReliabilityDecoder().combine(values, REST, weights).values
        small = StaticReliabilityDecoder().combine(
            np.asfortranarray(values), REST, weights, block_entries=20
        )
        assert_array_equal(small.values, whole)

    def test_infinite_margins_are_full_decisions(self):
        values = np.array([[np.inf, 1.0, -np.inf], [-np.inf, -0.1, -np.inf], [np.inf, np.inf, 0.0]])
        weights = np.array([0.5, 0.9, 1.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            scores = StaticReliabilityDecoder().combine(values, codes.one_vs_rest(3), weights)
        expected = [
            [0.5, 0.9 * (1 - exp(-1)), -1],
            [-0.5, -0.9 * (1 - exp(-0.1)), -1],
            [0.5, 0.9, 0],
        ]
        assert_allclose(scores.values, expected)

    def test_no_rows_in_no_rows_out(self):
        answer = StaticReliabilityDecoder().combine(np.empty((0, 4)), REST, np.ones(4))
        assert answer.values.shape == (0, 4)


@st.composite
def measured(draw):
    """Samples on a grid, where ties are many, or not."""
    n, k = draw(st.integers(4, 12)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    code = codes.one_vs_rest(k)
    grid = draw(st.booleans())
    samples, new = (
        rng.integers(0, 3, (rows, 2)) * 0.1 if grid else rng.normal(size=(rows, 2))
        for rows in (n, 5)
    )
    evidence = ObjectiveTerms(
        rng.uniform(0, 0.5, k), rng.normal(size=(n, k)), rng.integers(0, 4, n).astype(float)
    )
    assume((evidence.weights > 0).any())
    size = draw(st.integers(1, 10))
    return samples, rng.integers(0, k, n), code, evidence, new, rng.normal(size=(5, k)), size


class TestMeasureLaws:
    @quick
    @given(measured(), st.data())
    def test_relabelling_permutes_the_reliabilities(self, problem, data):
        samples, classes, code, evidence, new, scores, size = problem
        place = np.array(data.draw(st.permutations(range(len(code)))))
        back = np.argsort(place)
        moved = ObjectiveTerms(evidence.penalty[back], evidence.margins[:, back], evidence.weights)
        for measure in (StaticReliability(), DynamicReliability(size)):
            before = measure.fit(samples, classes, code, evidence).of(new, scores)
            after = measure.fit(samples, place[classes], code, moved).of(new, scores[:, back])
            assert_array_equal(after[..., place], before)

    @quick
    @given(measured())
    def test_weights_are_repetitions(self, problem):
        samples, classes, code, evidence, new, scores, size = problem
        times = evidence.weights.astype(int)
        copies = ObjectiveTerms(
            evidence.penalty, evidence.margins.repeat(times, axis=0), np.ones(times.sum())
        )
        for measure in (StaticReliability(), DynamicReliability(size)):
            weighted = measure.fit(samples, classes, code, evidence).of(new, scores)
            repeated = measure.fit(
                samples.repeat(times, axis=0), classes.repeat(times), code, copies
            ).of(new, scores)
            assert_allclose(weighted, repeated, rtol=1e-12)

    @quick
    @given(measured(), st.data())
    def test_neither_the_order_of_samples_nor_the_company_of_rows_matters(self, problem, data):
        samples, classes, code, evidence, new, scores, size = problem
        order = np.array(data.draw(st.permutations(range(len(samples)))))
        shuffled = ObjectiveTerms(
            evidence.penalty, evidence.margins[order], evidence.weights[order]
        )
        measure = DynamicReliability(size).fit(samples, classes, code, evidence)
        whole = measure.of(new, scores)
        single = [measure.of(new[[i]], scores[[i]])[0] for i in range(len(new))]
        assert_allclose(single, whole, rtol=1e-12)
        measure.fit(samples[order], classes[order], code, shuffled)
        assert_allclose(measure.of(new, scores), whole, rtol=1e-12)

    @quick
    @given(measured())
    def test_a_neighbourhood_of_all_is_the_same_everywhere(self, problem):
        samples, classes, code, evidence, new, scores, _ = problem
        measure = DynamicReliability(1000).fit(samples, classes, code, evidence)
        elsewhere = measure.of(new + 50.0, scores)
        assert_allclose(elsewhere, measure.of(new, scores), rtol=1e-12)
        assert ((elsewhere > 0) & (elsewhere <= 1)).all()

    @pytest.mark.parametrize("move", [0.0, 1e6, -1e9])
    @pytest.mark.parametrize("d", [3, 40], ids=["tree", "blocks"])
    def test_translation_changes_nothing(self, move, d):
        rng = np.random.default_rng(0)
        samples, new = rng.integers(-8, 8, (200, d)) / 8, rng.integers(-8, 8, (50, d)) / 8
        classes, margins = rng.integers(0, 4, 200), rng.normal(size=(200, 4))
        evidence, scores = ObjectiveTerms(np.zeros(4), margins), rng.normal(size=(50, 4))
        expected = DynamicReliability(7).fit(samples, classes, REST, evidence).of(new, scores)
        moved = DynamicReliability(7).fit(samples + move, classes, REST, evidence)
        assert_allclose(moved.of(new + move, scores), expected, rtol=1e-10)

    def test_many_samples_at_one_distance(self):
        # Corners of a cube: every other corner is one of few distances away.
        rng = np.random.default_rng(0)
        corners = rng.integers(0, 2, (400, 30)).astype(float)
        classes, margins = rng.integers(0, 4, 400), rng.normal(size=(400, 4))
        evidence, scores = (
            ObjectiveTerms(np.zeros(4), margins, np.ones(400)),
            rng.normal(size=(20, 4)),
        )
        measure = DynamicReliability(9).fit(corners, classes, REST, evidence)
        expected = naive.dynamic_of_all(
            evidence.penalty, classes, REST, margins, np.ones(400), corners, corners[:20], scores, 9
        )
        assert_allclose(measure.of(corners[:20], scores), expected, rtol=1e-12)

    @pytest.mark.parametrize("d", [2, 40], ids=["tree", "blocks"])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
    def test_far_places_and_huge_samples(self, d, container):
        rng = np.random.default_rng(0)
        samples, new = rng.normal(size=(40, d)), np.zeros((4, d))
        new[:, 0] = [1e20, -1e150, 1e300, -1.7e308]
        evidence = ObjectiveTerms(np.zeros(4), rng.normal(size=(40, 4)))
        classes, scores = rng.integers(0, 4, 40), np.ones((4, 4))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            measure = DynamicReliability(5).fit(container(samples), classes, REST, evidence)
            found = measure.of(container(new), scores)
            measure.fit(container(samples * 1e306), classes, REST, evidence).of(new, scores)
        # So far away all samples are at the same distance, as far as can be told.
        all_of_them = DynamicReliability(40).fit(samples, classes, REST, evidence)
        assert_allclose(found, all_of_them.of(np.zeros((4, d)), scores), rtol=1e-12)

    def test_indefinite_kernels_do_not_raise_the_reliability_above_one(self):
        _, classes, evidence = some_evidence(weighted=False)
        sure = np.where(REST[classes] > 0, 2.0, -2.0)
        for penalty in (-3.0, 0.0):
            negative = evidence._replace(penalty=np.full(4, penalty), margins=sure)
            assert_array_equal(StaticReliability().fit(None, classes, REST, negative).values_, 1.0)


class TestMemory:
    @staticmethod
    def peak(size, container, n, d, **limits):
        rng = np.random.default_rng(0)
        samples, margins = container(rng.normal(size=(n, d))), rng.normal(size=(n, 4))
        measure = DynamicReliability(size)
        measure.fit(samples, np.arange(n) % 4, REST, ObjectiveTerms(np.zeros(4), margins))
        measure.of(samples[:1], margins[:1])  # whatever is compiled is
        tracemalloc.start()
        measure.of(samples, margins, **limits)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    @pytest.mark.parametrize("d", [2, 20], ids=["tree", "blocks"])
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
    def test_distances_are_not_held_all_at_once(self, container, d):
        peak = self.peak(5, container, 2000, d, most_distances=2**16)
        assert peak < 2000 * 2000 * 8 / 6

    def test_nor_are_the_neighbours_of_all_rows(self):
        peak = self.peak(1000, np.asarray, 2000, 2, block_entries=2**14)
        assert peak < 2000 * 1000 * 8 / 3


# -- in use ----------------------------------------------------------------------------


COMBINERS = {
    "srm": "srm",
    "drm": "drm",
    "drm of 15": DynamicReliabilityDecoder(n_neighbors=15),
}
MODELS = {
    "SVC": CoupledClassifier(SVC(), code="one-vs-rest"),
    "poly": CoupledClassifier(SVC(kernel="poly", degree=2, coef0=1.0), code="one-vs-rest"),
    "LinearSVC": CoupledClassifier(LINEAR, code="one-vs-rest"),
    "CoupledSVC": CoupledSVC(code="one-vs-rest"),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
each_combiner = pytest.mark.parametrize("combiner", COMBINERS.values(), ids=COMBINERS)


def build(model, combiner, **changes):
    return clone(model).set_params(combiner=combiner, **changes)


class TestInUse:
    @each_model
    @each_combiner
    def test_labels_are_those_of_the_scores_and_there_are_no_probabilities(self, combiner, model):
        model = build(model, combiner)
        for _ in range(2):  # unfitted, then fitted
            for method in ("predict_proba", "predict_log_proba", "incoherence"):
                assert not hasattr(model, method)
            model.fit(X, LABELS)
        scores = model.decision_function(1e3 * NEW)
        assert scores.shape == (40, 4) and np.isfinite(scores).all()
        assert_array_equal(model.predict(1e3 * NEW), model.classes_[scores.argmax(axis=1)])
        assert model.score(X, LABELS) > 0.5
        assert model.scaling_ is None

    @each_model
    @each_combiner
    def test_two_classes_keep_the_labels_of_the_machine(self, combiner, model):
        two = y < 2
        model = build(model, combiner).fit(X[two], LABELS[two])
        plain = build(model, "winner-takes-all").fit(X[two], LABELS[two])
        scores = model.decision_function(NEW)
        assert scores.shape == (40,)
        assert_array_equal(np.sign(scores), np.sign(plain.decision_function(NEW)))
        assert_array_equal(model.predict(NEW), plain.predict(NEW))

    @each_model
    @each_combiner
    def test_containers_pieces_and_copies_give_the_same_answers(self, combiner, model):
        model = build(model, combiner).fit(X, LABELS)
        scores = model.decision_function(NEW)
        assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(NEW), scores)
        assert_array_equal(clone(model).fit(X, LABELS).decision_function(NEW), scores)
        X_frame, new_frame = (pd.DataFrame(data, columns=list("abc")) for data in (X, NEW))
        frozen = X.copy()
        frozen.flags.writeable = False
        assert_array_equal(clone(model).fit(frozen, LABELS).decision_function(NEW), scores)
        framed = clone(model).fit(X_frame, LABELS)
        assert_allclose(framed.decision_function(new_frame), scores, rtol=1e-12)
        spread = clone(model).fit(sparse.csr_array(X), LABELS)
        assert_allclose(spread.decision_function(sparse.csr_array(NEW)), scores, atol=2e-3)
        listed = clone(model).fit(X.tolist(), LABELS.tolist())
        assert_allclose(listed.decision_function(NEW.tolist()), scores, rtol=1e-12)
        pieces = [model.decision_function(piece) for piece in np.split(NEW, [1, 2, 30])]
        assert_allclose(np.vstack(pieces), scores, rtol=1e-12, atol=1e-12)
        if isinstance(model.reliability_, DynamicReliability):
            margins = np.linspace(-1, 1, 4 * len(NEW)).reshape(-1, 4)
            small = model.reliability_.of(NEW, margins, block_entries=40)
            whole = model.reliability_.of(NEW, margins)
            assert_allclose(small, whole, rtol=1e-12, atol=1e-12)
        model._row_blocks = RowBlocks(40)
        assert_allclose(model.decision_function(NEW), scores, rtol=1e-12, atol=1e-12)

    @each_combiner
    def test_renaming_classes_permutes_columns(self, combiner):
        order = np.array([2, 0, 3, 1])
        renamed = np.array(["ant", "bee", "cat", "dog"])[order][y]
        for machine in (SVC(tol=1e-12), LINEAR):
            model = one_vs_rest(machine, combiner, cv=2).fit(X, LABELS)
            other = one_vs_rest(machine, combiner, cv=2).fit(X, renamed)
            assert_allclose(
                model.decision_function(NEW), other.decision_function(NEW)[:, order], atol=1e-8
            )

    def test_two_threads_may_use_one_model(self):
        model = one_vs_rest(SVC(), DynamicReliabilityDecoder(5)).fit(X, LABELS)
        expected = model.decision_function(NEW)
        with ThreadPoolExecutor(2) as pool:
            for found in pool.map(lambda _: model.decision_function(NEW), range(20)):
                assert_array_equal(found, expected)

    def test_single_precision(self):
        model = CoupledSVC(code="one-vs-rest", combiner="drm", dtype=np.float32)
        scores = model.fit(X.astype(np.float32), LABELS).decision_function(NEW.astype(np.float32))
        double = clone(model).set_params(dtype=np.float64).fit(X, LABELS).decision_function(NEW)
        assert_allclose(scores, double, atol=0.01)

    def test_grid_search_reaches_the_neighbours(self):
        search = GridSearchCV(
            one_vs_rest(SVC(kernel="linear"), DynamicReliabilityDecoder(), cv=2),
            {"combiner__n_neighbors": [1, 5, 40, None], "estimator__C": [0.1, 1.0]},
            cv=2,
        ).fit(X, LABELS)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        assert len(set(search.cv_results_["mean_test_score"])) > 2
        chosen = search.best_params_["combiner__n_neighbors"]
        assert search.best_estimator_.combiner_.n_neighbors == chosen

    def test_inside_a_pipeline(self):
        model = make_pipeline(StandardScaler(), one_vs_rest(SVC(), "drm")).fit(X, LABELS)
        assert model.score(X, LABELS) > 0.5

    def test_the_number_of_neighbours_is_learned_only_where_it_is_open(self):
        assert DynamicReliabilityDecoder().learns
        assert not DynamicReliabilityDecoder(3).learns
        assert not StaticReliabilityDecoder().learns
        chosen = one_vs_rest(SVC(kernel="linear"), "drm").fit(X, LABELS).reliability_
        assert chosen.n_neighbors_ in chosen.errors_
        assert list(chosen.errors_) == [1, 3, 5, 9, 15, 25, 45, 59]
        given = one_vs_rest(SVC(kernel="linear"), DynamicReliabilityDecoder(3), cv=None)
        assert given.fit(X, LABELS).reliability_.n_neighbors_ == 3
        with pytest.raises(ValueError, match="'drm' learns from out-of-sample scores, but cv=None"):
            one_vs_rest(SVC(), "drm", cv=None).fit(X, LABELS)

    def test_fit_does_not_write_parameters(self):
        combiner = DynamicReliabilityDecoder()
        model = one_vs_rest(SVC(), combiner).fit(X, LABELS)
        assert model.combiner is combiner and combiner.n_neighbors is None
        assert set(vars(combiner)) == {"n_neighbors", "random_state"}

    def test_names_and_parameters(self):
        assert {"srm", "drm"} <= set(names())
        assert type(resolve("srm")) is StaticReliabilityDecoder
        assert type(resolve("drm")) is DynamicReliabilityDecoder
        assert clone(DynamicReliabilityDecoder(4, 7)).get_params() == {
            "n_neighbors": 4,
            "random_state": 7,
        }
        for decoder in (resolve("srm"), resolve("drm")):
            assert (decoder.takes, decoder.accepts) == ("scores", "one-vs-rest")
            assert not decoder.gives_probabilities
            assert decoder.measure() is not decoder.measure()


class TestSampleWeight:
    @pytest.mark.parametrize("machine", [SVC(gamma=1.0, tol=1e-10), LINEAR], ids=["SVC", "linear"])
    @pytest.mark.parametrize("combiner", ["srm", DynamicReliabilityDecoder(7)], ids=["srm", "drm"])
    def test_integer_weights_are_repetitions(self, combiner, machine):
        times = np.random.RandomState(0).randint(0, 4, len(y))
        weighted = one_vs_rest(machine, combiner).fit(X, LABELS, sample_weight=times)
        repeated = one_vs_rest(machine, combiner)
        repeated.fit(X.repeat(times, axis=0), LABELS.repeat(times))
        assert_allclose(weighted.decision_function(NEW), repeated.decision_function(NEW), atol=1e-6)

    @each_model
    @each_combiner
    def test_a_class_without_weight_is_never_chosen(self, combiner, model):
        model = build(model, combiner, cv=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model.fit(X, LABELS, sample_weight=(y != 2).astype(float))
            scores = model.decision_function(NEW)
        assert_allclose(scores[:, 2], -1.0)
        assert "cat" not in model.predict(X)

    def test_class_weights_of_coupled_svc_are_weights_of_samples(self):
        weight = {"ant": 2.0, "bee": 0.5, "cat": 1.0, "dog": 1.0}
        options = {"code": "one-vs-rest", "combiner": DynamicReliabilityDecoder(5)}
        by_class = CoupledSVC(class_weight=weight, **options).fit(X, LABELS)
        by_sample = CoupledSVC(**options).fit(
            X, LABELS, sample_weight=[weight[label] for label in LABELS]
        )
        assert_array_equal(by_class.decision_function(NEW), by_sample.decision_function(NEW))


# CoupledClassifier() has all checks in test_contracts.
@checks_in_turn(
    [
        one_vs_rest(LinearSVC(), "srm"),
        one_vs_rest(SVC(), DynamicReliabilityDecoder(n_neighbors=3)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- errors ----------------------------------------------------------------------------


class TestErrors:
    @each_combiner
    @pytest.mark.parametrize(
        "estimator", [GaussianNB(), LogisticRegression(), make_pipeline(StandardScaler(), SVC())]
    )
    def test_other_estimators_are_named(self, estimator, combiner):
        name = type(estimator).__name__
        with pytest.raises(ValueError, match=f"reliability of {name} is not defined: use SVC or"):
            one_vs_rest(estimator, combiner).fit(X, LABELS)

    @pytest.mark.parametrize(
        "estimator",
        [NuSVC(nu=0.1), SVC(class_weight="balanced"), LinearSVC(class_weight="balanced")],
    )
    def test_machines_without_one_c_are_refused(self, estimator):
        with pytest.raises(ValueError, match="needs its C: use .*SVC without class_weight"):
            one_vs_rest(estimator, "srm").fit(X, LABELS)

    @pytest.mark.parametrize("combiner", ["srm", "drm"])
    @pytest.mark.parametrize("code", ["one-vs-one", "complete", TERNARY])
    def test_other_codes_are_refused(self, code, combiner):
        message = f"'{combiner}' is defined for one-vs-rest codes"
        with pytest.raises(ValueError, match=message):
            CoupledClassifier(SVC(), code=code, combiner=combiner).fit(X, LABELS)
        with pytest.raises(ValueError, match=message):
            resolve(combiner).combine(np.zeros((1, 6)), codes.one_vs_one(4))

    def test_precomputed_kernels_have_no_neighbours(self):
        K = X @ X.T
        for combiner in ("drm", DynamicReliabilityDecoder(3)):
            with pytest.raises(ValueError, match="precomputed kernel, which has no distances"):
                one_vs_rest(SVC(kernel="precomputed"), combiner).fit(K, LABELS)
        model = one_vs_rest(SVC(kernel="precomputed"), "srm").fit(K, LABELS)
        linear = one_vs_rest(SVC(kernel="linear"), "srm").fit(X, LABELS)
        assert_allclose(model.decision_function(K), linear.decision_function(X), atol=1e-3)

    @pytest.mark.parametrize("n_neighbors", [0, -3, 2.0, "all", True])
    def test_neighbours_are_counted_in_whole_numbers(self, n_neighbors):
        message = re.escape(f"n_neighbors must be an integer of at least 1, got {n_neighbors!r}")
        with pytest.raises(ValueError, match=message):
            one_vs_rest(SVC(), DynamicReliabilityDecoder(n_neighbors)).fit(X, LABELS)
        one_vs_rest(SVC(), DynamicReliabilityDecoder(np.int32(2))).fit(X, LABELS)

    def test_a_choice_needs_scores(self):
        samples, classes, evidence = some_evidence()
        with pytest.raises(ValueError, match="scores is None.*use DynamicReliability with"):
            DynamicReliabilityCV().fit(samples, classes, REST, evidence)
        with pytest.raises(ValueError, match="no training sample has .*pass n_neighbors"):
            nothing = np.full((30, 4), np.nan)
            DynamicReliabilityCV().fit(samples, classes, REST, evidence, nothing)

    @pytest.mark.parametrize("shape", [(3,), (5, 3), (4, 4), (1, 5, 4)])
    def test_foreign_reliabilities_are_named(self, shape):
        message = re.escape(f"weights has shape {shape}: the reliabilities of 4 columns")
        with pytest.raises(ValueError, match=message):
            StaticReliabilityDecoder().combine(np.zeros((5, 4)), REST, np.ones(shape))

    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.1])
    def test_reliabilities_must_be_numbers_of_trust(self, wrong):
        with pytest.raises(ValueError, match="reliabilities, finite and not negative"):
            StaticReliabilityDecoder().combine(np.zeros((5, 4)), REST, [1, 1, wrong, 1])

    def test_nan_and_foreign_shapes_of_margins(self):
        values = np.zeros((9, 4))
        values[7, 2] = np.nan
        with pytest.raises(ValueError, match="values contains NaN at row 7, column 2"):
            StaticReliabilityDecoder().combine(values, REST)
        with pytest.raises(ValueError, match="values has shape .* the code has 4 columns"):
            StaticReliabilityDecoder().combine(values[:, :3], REST)


# -- real data -------------------------------------------------------------------------


class TestOnRealData:
    @pytest.mark.parametrize("name", ["segment", "satimage", "letter"])
    def test_local_reliability_helps_linear_machines(self, name, shared_data):
        data = shared_data(name)
        rows = np.random.RandomState(0).permutation(len(data.y))[:2000]
        train, test = rows[:500], rows[500:]
        scaler = StandardScaler().fit(data.X[train])
        errors = {}
        for combiner in ("winner-takes-all", "drm"):
            model = one_vs_rest(SVC(kernel="linear"), combiner, cv=3)
            model.fit(scaler.transform(data.X[train]), data.y[train])
            errors[combiner] = 1 - model.score(scaler.transform(data.X[test]), data.y[test])
        assert errors["drm"] < 0.9 * errors["winner-takes-all"]
