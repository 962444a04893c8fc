"""Trained soft-max combination: the optimum, the choice of C, laws, and life in a classifier."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import naive_softmax as naive
import numpy as np
import pandas as pd
import pytest
from all_pairs import checks_in_turn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse
from scipy.optimize import minimize, nnls
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, codes
from manyclass.combiners import softmax_solver as _softmax_solver
from manyclass.combiners.base import names, resolve
from manyclass.combiners.softmax import SimplifiedSoftmax, Softmax, choose_C
from manyclass.combiners.softmax_solver import (
    by_descent,
    by_pivots,
    evaluate,
    limits_of,
    make_sample,
    minimise,
    optimality_error,
    own_columns,
)
from manyclass.scores.folds import folds_again, make_folds

SINGLE = np.array([[1], [-1]], dtype=np.int8)
TERNARY = np.array(
    [[1, 1, 0, -1, 1], [-1, 0, 1, -1, 0], [0, -1, 1, 1, 0], [0, -1, -1, 1, -1]], dtype=np.int8
)
CODES = {
    "two classes": SINGLE,
    "one-vs-one": codes.one_vs_one(4),
    "one-vs-rest": codes.one_vs_rest(4),
    "ternary": TERNARY,
    "complete": codes.complete(4),
}
each_code = pytest.mark.parametrize("code", CODES.values(), ids=CODES)
each_combiner = pytest.mark.parametrize(
    "combiner", [Softmax(C=0.5), SimplifiedSoftmax()], ids=["softmax", "simplified"]
)
quick = settings(deadline=None, max_examples=15)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def noisy_margins(code, n=60, seed=0, noise=1.5):
    """Margins that mostly have the right sign, of different scales; labels of all classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % len(code))
    values = code[y] + noise * rng.normal(size=(n, code.shape[1]))
    return values * rng.uniform(0.2, 5.0, size=code.shape[1]), y


def fitted(combiner, values, y, code, weights=None):
    return clone(combiner).fit(values, y, code, weights)


def weights_of(combiner):
    return np.column_stack([combiner.weights_, combiner.biases_])


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert ((p >= 0) & (p <= 1)).all()
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)


# -- the optimum -----------------------------------------------------------------------


class TestOptimum:
    @each_code
    @pytest.mark.parametrize("C", [2.0**-12, 0.3, 2.0**8])
    def test_is_that_of_a_general_solver(self, code, C):
        values, y = noisy_margins(code)
        weights = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
        combiner = Softmax(C=C).fit(values, y, code, weights)
        reference = naive.Reference(values, y, weights, code, C)
        ours = reference.flat(combiner.weights_, combiner.biases_)
        theirs = reference.solve()
        value = naive.objective(values, y, weights, code, combiner.weights_, combiner.biases_, C)
        best = reference.value_and_gradient(theirs)[0]
        assert_allclose(reference.value_and_gradient(ours)[0], value, rtol=1e-12)
        assert value <= best * (1 + 1e-12)
        assert_allclose(best, value, rtol=1e-6)
        scale = max(1.0, C * weights.sum())
        assert np.abs(reference.projected_gradient(ours)).max() <= 1e-8 * scale
        assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4 * (1 + ours.max()))

    @each_code
    def test_of_likelihood_alone_is_that_of_a_general_solver(self, code):
        values, y = noisy_margins(code, n=120, noise=2.5)
        weights = np.random.default_rng(1).uniform(0.1, 2.0, len(y))
        reference = naive.Reference(values, y, weights / weights.sum(), code, 1.0, penalty=0.0)
        best = reference.value_and_gradient(reference.solve())[0]
        for ridge, rtol in [(1e-6, 1e-4), (1e-9, 1e-6)]:
            combiner = SimplifiedSoftmax(ridge).fit(values, y, code, weights)
            found = reference.value_and_gradient(
                reference.flat(combiner.weights_, combiner.biases_)
            )[0]
            assert_allclose(found, best, rtol=rtol)

    @each_combiner
    @each_code
    def test_probabilities_are_those_of_the_formula(self, code, combiner):
        values, y = noisy_margins(code)
        combiner = fitted(combiner, values, y, code)
        answer = combiner.combine(values, code)
        expected = [
            naive.probabilities(f, code, combiner.weights_, combiner.biases_) for f in values
        ]
        assert_allclose(answer.values, expected, rtol=1e-12, atol=1e-15)
        logits = values @ (code * combiner.weights_).T + combiner.biases_
        shifted = np.log(answer.values) - logits
        assert_allclose(shifted, np.repeat(shifted[:, :1], len(code), axis=1), atol=1e-9)
        assert answer.converged.all() and (answer.iterations == 1).all()

    @each_combiner
    @each_code
    def test_weights_are_not_negative_and_only_where_the_code_has_them(self, code, combiner):
        combiner = fitted(combiner, *noisy_margins(code, noise=3.0), code)
        assert (weights_of(combiner) >= 0).all()
        assert combiner.biases_.min() == 0
        assert {tuple(place) for place in np.argwhere(combiner.weights_)} <= set(naive.places(code))

    @pytest.mark.parametrize("combiner", [Softmax(C=0.3), SimplifiedSoftmax(1e-4)])
    def test_more_weights_than_second_derivatives_are_stored_for(self, combiner):
        values, y = noisy_margins(TERNARY)
        newton = weights_of(fitted(combiner, values, y, TERNARY))
        quasi = fitted(without_newton(combiner), values, y, TERNARY)
        assert quasi.n_iter_ > 10
        assert_allclose(weights_of(quasi), newton, rtol=1e-4, atol=1e-5)

    def test_on_margins_of_real_machines(self, shared_data):
        data = shared_data("satimage")
        rows = np.random.default_rng(0).permutation(len(data.y))[:400]
        X = data.X[rows] / data.X[rows].std(axis=0)
        recorder = CoupledClassifier(SVC(C=10), combiner=Recorder()).fit(X, data.y[rows]).combiner_
        values, y, code, weights = recorder.seen
        reference = naive.Reference(values, y, weights, code, 1.0)
        combiner = Softmax(C=1.0).fit(values, y, code, weights)
        ours = reference.flat(combiner.weights_, combiner.biases_)
        best = reference.value_and_gradient(reference.solve())[0]
        assert_allclose(reference.value_and_gradient(ours)[0], best, rtol=1e-9)
        assert np.abs(reference.projected_gradient(ours)).max() <= 1e-6


def without_newton(combiner):
    """The same combiner, with so low a limit that Newton's method is not used."""
    base = type(combiner)
    return type(base.__name__, (base,), {"most_for_newton": 1})(**combiner.get_params())


class Recorder(SimplifiedSoftmax):
    """Keeps what it was given to learn from."""

    def fit(self, values, y, code, sample_weight=None):
        self.seen = values, y, code, sample_weight
        return super().fit(values, y, code, sample_weight)


class TestSolver:
    @staticmethod
    def problem(code=TERNARY, seed=0):
        values, y = noisy_margins(code, n=80, seed=seed)
        weights = np.random.default_rng(seed).uniform(0.5, 2, 80)
        sample = make_sample(values, y, weights, code, limits_of(values))
        return sample.likelihood()

    def test_derivatives_are_those_of_differences(self):
        likelihood = self.problem()
        u = np.random.default_rng(0).uniform(0, 1, likelihood.size)
        value, gradient, P = likelihood.value_and_gradient(u)
        assert_allclose(value, -likelihood.shares @ np.log(P[likelihood.y, likelihood.samples]))
        chosen = np.arange(0, likelihood.size, 2)
        H = likelihood.hessian(P, chosen, block_entries=100)  # a few rows at a time
        assert_array_equal(H, H.T)
        for row, j in enumerate(chosen):
            step = 1e-5 * (np.arange(likelihood.size) == j)
            above, below = (likelihood.value_and_gradient(u + t) for t in (step, -step))
            assert_allclose(gradient[j], (above[0] - below[0]) / 2e-5, atol=1e-9)
            assert_allclose(H[row], (above[1] - below[1])[chosen] / 2e-5, atol=1e-9)

    @pytest.mark.parametrize("far", [0.5, 1e3])
    def test_a_start_elsewhere_ends_at_the_same_minimum(self, far):
        likelihood = self.problem()
        ridge = np.full(likelihood.size, 1e-3)
        cold = minimise(likelihood, ridge, 1e-11, 100)
        near = minimise(likelihood, far * ridge, 1e-6, 100)
        warm = minimise(likelihood, ridge, 1e-11, 100, near)
        assert cold.converged and near.converged and warm.converged
        assert_allclose(warm.u, cold.u, atol=1e-7)

    def test_second_derivatives_that_mislead_are_made_anew(self):
        likelihood = self.problem()
        ridge = np.full(likelihood.size, 1e-3)
        cold = minimise(likelihood, ridge, 1e-11, 100)
        wrong = cold.curvature._replace(H=1e-6 * cold.curvature.H)
        for start in (cold.u, 50 * cold.u, np.zeros(likelihood.size)):
            found = minimise(likelihood, ridge, 1e-11, 100, cold._replace(u=start, curvature=wrong))
            assert found.converged
            assert_allclose(found.u, cold.u, atol=1e-7)

    def test_steps_that_lead_nowhere(self, monkeypatch):
        likelihood = self.problem()
        ridge = np.full(likelihood.size, 1e-3)
        good = minimise(likelihood, ridge, 1e-9, 100)
        search, calls = _softmax_solver.search_line, []

        def fail_once(*args):
            calls.append(args)
            return None if len(calls) == 1 else search(*args)

        # Second derivatives from elsewhere are made anew, then the step works.
        monkeypatch.setattr(_softmax_solver, "search_line", fail_once)
        origin = good._replace(u=np.zeros(likelihood.size))
        assert_allclose(minimise(likelihood, ridge, 1e-9, 100, origin).u, good.u, atol=1e-6)
        # Nothing works: that is converged only where rounding is to blame.
        monkeypatch.setattr(_softmax_solver, "search_line", lambda *args: None)
        assert not minimise(likelihood, ridge, 1e-9, 100).converged
        assert minimise(likelihood, ridge, 1e-30, 100, good).converged

    @quick
    @given(seed=st.integers(0, 10**6), size=st.integers(1, 12), rank=st.integers(1, 12))
    def test_quadratic_models_are_minimised_within_the_bounds(self, seed, size, rank):
        rng = np.random.default_rng(seed)
        A = np.vstack([rng.normal(size=(rank, size)), 1e-3 * np.eye(size)])
        target = np.append(rng.normal(size=rank), np.zeros(size))
        H, q = A.T @ A, -A.T @ target
        expected = nnls(A, target)[0]
        pivots = by_pivots(H, q, rng.random(size) < 0.5)
        if pivots is not None:
            assert_allclose(pivots, expected, rtol=1e-5, atol=1e-6)
        start = np.maximum(rng.normal(size=size), 0)
        assert_allclose(by_descent(H, q, start), expected, rtol=1e-5, atol=1e-6)

    @quick
    @given(
        seed=st.integers(0, 10**6),
        n=st.integers(1, 30),
        code=st.sampled_from(list(CODES.values())),
        kind=st.sampled_from(["signs", "constant", "sure", "wide", "ties"]),
        log_ridge=st.floats(-9, 2),
    )
    def test_degenerate_problems_converge(self, seed, n, code, kind, log_ridge):
        rng = np.random.default_rng(seed)
        y = rng.integers(len(code), size=n)
        values = rng.normal(size=(n, code.shape[1]))
        values = {
            "signs": np.sign(values),
            "constant": np.ones_like(values) * values[0],
            "sure": 5.0 * code[y],
            "wide": values * np.exp(3 * rng.normal(size=values.shape)),
            "ties": np.round(values + code[y]),
        }[kind]
        sample = make_sample(values, y, np.ones(n), code, limits_of(values))
        likelihood = sample.likelihood()
        ridge = np.full(likelihood.size, 10.0**log_ridge)
        found = minimise(likelihood, ridge, 1e-10, 200)
        assert found.converged and (found.u >= 0).all()
        assert optimality_error(evaluate(likelihood, ridge, found.u), ridge) < 1e-8


class TestTwoClasses:
    """The model is Platt's sigmoid: eq. (13) to (15)."""

    def test_likelihood_alone_is_logistic_regression_on_the_margin(self):
        values, y = noisy_margins(SINGLE, n=200)
        combiner = SimplifiedSoftmax(1e-10).fit(values, y, SINGLE)
        platt = LogisticRegression(C=np.inf, tol=1e-10).fit(values, y == 0)
        assert_allclose(
            combiner.combine(values, SINGLE).values[:, 0],
            platt.predict_proba(values)[:, 1],
            atol=1e-6,
        )

    @each_combiner
    def test_slope_and_intercept(self, combiner):
        values, y = noisy_margins(SINGLE)
        combiner = fitted(combiner, values, y, SINGLE)
        slope = combiner.weights_.sum()  # w_12 + w_21
        intercept = combiner.biases_[1] - combiner.biases_[0]
        expected = expit(slope * values[:, 0] - intercept)
        assert_allclose(combiner.combine(values, SINGLE).values[:, 0], expected, atol=1e-12)
        # The two weights do the same, so the penalty makes them equal.
        assert_allclose(*combiner.weights_[:, 0], rtol=1e-6)


class TestOneVsRest:
    def test_has_one_weight_and_one_bias_for_each_class(self):
        assert np.count_nonzero(own_columns(codes.one_vs_rest(5))) == 5
        assert np.count_nonzero(own_columns(codes.one_vs_one(5))) == 5 * 4

    def test_in_any_order_and_with_any_signs(self):
        code = codes.one_vs_rest(5)
        values, y = noisy_margins(code)
        order, signs = np.array([3, 1, 4, 0, 2]), np.array([1, -1, -1, 1, -1], dtype=np.int8)
        for combiner in (Softmax(C=0.5), SimplifiedSoftmax()):
            plain = fitted(combiner, values, y, code)
            other = fitted(combiner, values[:, order] * signs, y, code[:, order] * signs)
            assert_allclose(other.weights_, plain.weights_[:, order], atol=1e-8)
            assert np.count_nonzero(other.weights_) <= 5

    @pytest.mark.parametrize(
        "code",
        [SINGLE, TERNARY, codes.one_vs_one(4), codes.complete(4), codes.one_vs_rest(4)[:, :3]],
        ids=["two classes", "ternary", "one-vs-one", "complete", "a column missing"],
    )
    def test_other_codes_keep_all_their_columns(self, code):
        assert_array_equal(own_columns(code), code)


# -- the choice of C -------------------------------------------------------------------


class TestChoiceOfC:
    def test_table_is_that_of_plain_cross_validation(self):
        class FewCandidates(Softmax):
            candidates = 2.0 ** np.array([-15.0, -3.0, 2.0, 10.0])

        code = codes.one_vs_one(3)
        values, y = noisy_margins(code, n=60)
        combiner = FewCandidates().fit(values, y, code)
        table = [(C, *naive.cross_validate(values, y, code, C)) for C in combiner.search_["C"]]
        assert_allclose(combiner.search_["error"], [row[1] / 60 for row in table], atol=1e-12)
        assert_allclose(combiner.search_["nll"], [row[2] for row in table], rtol=1e-4)
        assert combiner.C_ == naive.choose(table)

    def test_candidates_are_those_of_the_paper(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        combiner = Softmax().fit(values, y, code)
        assert_array_equal(combiner.search_["C"], 2.0 ** np.arange(-15, 16))
        assert {name: len(column) for name, column in combiner.search_.items()} == {
            "C": 31,
            "error": 31,
            "nll": 31,
        }
        assert_array_equal(
            weights_of(Softmax(C=combiner.C_).fit(values, y, code)), weights_of(combiner)
        )
        assert Softmax(C=1.0).fit(values, y, code).search_ is None

    @quick
    @given(
        errors=st.lists(st.integers(0, 40), min_size=1, max_size=31),
        data=st.data(),
    )
    def test_rule(self, errors, data):
        nll = data.draw(hnp.arrays(float, len(errors), elements=st.floats(0.1, 3)))
        C = np.exp2(np.arange(len(errors)))
        table = list(zip(C, errors, nll, strict=True))
        assert choose_C(C, np.array(errors) / 400, nll) == naive.choose(table)

    def test_21_errors_are_within_5_percent_of_20(self):
        for n in range(100, 200):
            assert choose_C(np.array([1.0, 2.0]), np.array([21 / n, 20 / n]), np.ones(2)) == 1.0

    def test_classes_rarer_than_folds(self):
        code = codes.one_vs_one(4)
        values, y = noisy_margins(code)
        rows = np.r_[np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:2], np.flatnonzero(y == 3)[:1]]
        combiner = Softmax().fit(values[rows], y[rows], code)
        assert np.isfinite(combiner.search_["nll"]).all()
        assert_probabilities(combiner.combine(values, code).values)

    def test_margins_that_say_nothing_tie_all_classes(self):
        code = codes.one_vs_one(4)
        combiner = Softmax().fit(np.zeros((20, 6)), np.arange(20) % 4, code)
        assert_allclose(combiner.search_["error"], 0.75)
        assert_allclose(combiner.combine(np.ones((2, 6)), code).values, 0.25)

    def test_folds_of_the_margins_are_taken_again(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        numbers = np.full(60, -1)
        for number, (_, test) in enumerate(make_folds(5, None, y, np.arange(3))):
            numbers[test] = number
        own = Softmax().fit(values, y, code)
        assert_equal(Softmax().fit(values, y, code, folds=numbers).search_, own.search_)
        others = Softmax().fit(values, y, code, folds=np.arange(60) % 3)
        assert (others.search_["nll"] != own.search_["nll"]).all()

    def test_many_folds_are_made_few(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        numbers = np.arange(60) // 5
        many = Softmax().fit(values, y, code, folds=numbers)
        assert_equal(many.search_, Softmax().fit(values, y, code, folds=numbers % 5).search_)
        never = np.where(np.arange(60) < 20, -1, numbers)
        folds = folds_again(never, y, 3)
        assert len(folds) == 8
        assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(20, 60))

    @pytest.mark.parametrize("numbers", [np.zeros(60, int), np.full(60, -1)])
    def test_one_fold_or_none_are_made_anew(self, numbers):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        given_folds = Softmax().fit(values, y, code, folds=numbers)
        assert_equal(given_folds.search_, Softmax().fit(values, y, code).search_)

    def test_folds_that_leave_a_class_out(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        combiner = Softmax().fit(values, y, code, folds=y)
        assert np.isfinite(combiner.search_["nll"]).all()
        assert_probabilities(combiner.combine(values, code).values)

    def test_folds_of_another_length(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        for wrong in (np.zeros(59, int), np.zeros(60), ["a"] * 60):
            with pytest.raises(ValueError, match="folds must hold 60 integers"):
                Softmax().fit(values, y, code, folds=wrong)

    def test_weights_are_copies(self):
        """Of rows that are left out together with their copies."""
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        times, numbers = np.arange(60) % 4, np.arange(60) // 3 % 5
        weighted = Softmax().fit(values, y, code, times, numbers)
        copied = Softmax().fit(*(np.repeat(a, times, axis=0) for a in (values, y)), code,
                               folds=np.repeat(numbers, times))  # fmt: skip
        assert_allclose(weighted.search_["error"], copied.search_["error"], atol=1e-12)
        assert weighted.C_ == copied.C_
        assert_allclose(weights_of(weighted), weights_of(copied), atol=1e-7)

    def test_weights_count_in_the_table(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code, noise=3.0)
        trusted = values[np.arange(60), y] == values.max(axis=1)
        heavy = Softmax().fit(values, y, code, np.where(trusted, 10.0, 1.0))
        plain = Softmax().fit(values, y, code)
        assert heavy.search_["error"].min() < plain.search_["error"].min()


# -- laws ------------------------------------------------------------------------------


@st.composite
def problems(draw):
    """Margins, labels and a code; all classes may or may not occur."""
    code = draw(st.sampled_from(list(CODES.values())))
    n = draw(st.integers(2, 25))
    y = draw(hnp.arrays(np.intp, n, elements=st.integers(0, len(code) - 1)))
    elements = st.floats(-8, 8).map(lambda x: round(x, 3))
    return draw(hnp.arrays(float, (n, code.shape[1]), elements=elements)), y, code


class TestLaws:
    @each_combiner
    @quick
    @given(problem=problems())
    def test_answers_are_distributions(self, combiner, problem):
        values, y, code = problem
        combiner = fitted(combiner, values, y, code)
        assert_probabilities(combiner.combine(values, code).values)
        assert_probabilities(combiner.combine(1e6 * values, code).values)

    @each_combiner
    @quick
    @given(problem=problems(), data=st.data())
    def test_relabelling_permutes(self, combiner, problem, data):
        values, y, code = problem
        place = np.array(data.draw(st.permutations(range(len(code)))))
        order = np.array(data.draw(st.permutations(range(code.shape[1]))))
        signs = data.draw(hnp.arrays(np.int8, code.shape[1], elements=st.sampled_from([-1, 1])))
        new = np.empty_like(code)
        new[place] = code[:, order] * signs
        moved = values[:, order] * signs
        plain = fitted(combiner, values, y, code).combine(values, code).values
        other = fitted(combiner, moved, place[y], new).combine(moved, new).values
        assert_allclose(other[:, place], plain, atol=1e-6)

    @each_combiner
    @quick
    @given(problem=problems(), data=st.data())
    def test_weights_are_copies_and_no_weight_is_absence(self, combiner, problem, data):
        values, y, code = problem
        counts = data.draw(hnp.arrays(np.intp, len(y), elements=st.integers(0, 3)))
        counts[0] = 1
        rows = np.repeat(np.arange(len(y)), counts)
        weighted = fitted(combiner, values, y, code, counts.astype(float))
        copied = fitted(combiner, values[rows], y[rows], code)
        assert_array_equal(weighted.limits_, copied.limits_)
        assert_allclose(
            weighted.combine(values, code).values, copied.combine(values, code).values, atol=1e-6
        )

    @quick
    @given(problem=problems(), data=st.data())
    def test_units_of_the_margins_do_not_matter_to_likelihood_alone(self, problem, data):
        values, y, code = problem
        units = np.exp2(data.draw(hnp.arrays(float, code.shape[1], elements=st.integers(-20, 20))))
        plain = SimplifiedSoftmax().fit(values, y, code)
        other = SimplifiedSoftmax().fit(values * units, y, code)
        assert_allclose(
            other.combine(values * units, code).values,
            plain.combine(values, code).values,
            atol=1e-6,
        )

    def test_c_is_per_unit_of_weight(self):
        values, y = noisy_margins(TERNARY)
        plain = Softmax(C=1.0).fit(values, y, TERNARY)
        other = Softmax(C=0.25).fit(values, y, TERNARY, np.full(60, 4.0))
        assert_allclose(weights_of(other), weights_of(plain), rtol=1e-7, atol=1e-9)

    @each_combiner
    def test_splitting_and_reordering_rows_changes_no_bit(self, combiner):
        code = codes.one_vs_one(7)
        values, y = noisy_margins(code, n=101)
        combiner = fitted(combiner, values, y, code)
        whole = combiner.combine(values, code).values
        pieces = np.split(values, [1, 2, 9, 40])
        split = np.vstack([combiner.combine(piece, code).values for piece in pieces])
        assert_array_equal(split, whole)
        order = np.random.default_rng(0).permutation(101)
        assert_array_equal(combiner.combine(values[order], code).values, whole[order])
        assert_array_equal(combiner.combine(np.asfortranarray(values), code).values, whole)
        small = combiner.combine(values, code, n_jobs=2, block_entries=100)
        assert_array_equal(small.values, whole)


# -- extreme and bad input -------------------------------------------------------------


class TestExtremes:
    @each_combiner
    def test_classes_told_apart_without_error(self, combiner):
        code = codes.one_vs_one(4)
        y = np.arange(40) % 4
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            combiner = fitted(combiner, code[y] * np.linspace(0.5, 2, 40)[:, None], y, code)
        p = combiner.combine(code[y].astype(float), code).values
        assert_probabilities(p)
        assert_array_equal(p.argmax(axis=1), y)
        assert np.isfinite(weights_of(combiner)).all() and combiner.weights_.max() < 100

    @each_combiner
    def test_a_constant_infinite_column_is_no_more_than_a_bias(self, combiner):
        code = codes.one_vs_one(4)
        values, y = noisy_margins(code)
        values[:, 2] = np.inf
        combiner = fitted(combiner, values, y, code)
        assert combiner.limits_[2] == 1
        p = combiner.combine(values, code).values
        assert_probabilities(p)
        replaced = np.where(np.arange(6) == 2, 1.0, values)
        expected = fitted(combiner, replaced, y, code).combine(replaced, code).values
        assert_allclose(p, expected, atol=1e-9)

    @each_combiner
    @pytest.mark.parametrize(
        "extremes",
        [[np.inf], [-np.inf, np.inf], [1e300], [1e308, -1e308], [5e-324], [0.0], [1e-200, 1e200]],
        ids=str,
    )
    def test_extreme_margins_among_others(self, combiner, extremes):
        code = codes.one_vs_one(4)
        values, y = noisy_margins(code)
        for i, extreme in enumerate(extremes):
            values[i :: 2 * len(extremes), 1] = extreme
        whole = np.full_like(values, extremes[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            for margins in (values, whole):
                p = fitted(combiner, margins, y, code).combine(values, code).values
                assert_probabilities(p)

    def test_infinity_counts_as_the_limit_and_more_is_cut_off(self):
        code = codes.one_vs_rest(3)
        values, y = noisy_margins(code)
        combiner = Softmax(C=1.0).fit(values, y, code)
        assert_allclose(combiner.limits_, 10 * np.abs(values).max(axis=0))
        beyond = [np.full((1, 3), sign * size) for sign in (1, -1) for size in (np.inf, 1e9)]
        at = [sign * combiner.limits_[None] for sign in (1, 1, -1, -1)]
        assert_array_equal(
            combiner.combine(np.vstack(beyond), code).values,
            combiner.combine(np.vstack(at), code).values,
        )

    @pytest.mark.parametrize("C", [1e-300, 1e-30, 1e30, 1e300])
    def test_extreme_c(self, C):
        values, y = noisy_margins(TERNARY)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            combiner = Softmax(C=C).fit(values, y, TERNARY)
        assert_probabilities(combiner.combine(values, TERNARY).values)
        if C < 1:
            assert weights_of(combiner).max() < 1e-25

    @each_combiner
    def test_one_row_of_one_class(self, combiner):
        code = codes.one_vs_one(3)
        combiner = fitted(combiner, [[1.0, 2.0, -1.0]], [0], code)
        p = combiner.combine(np.array([[1.0, 2.0, -1.0]]), code).values
        assert_probabilities(p)
        assert p.argmax() == 0

    @each_combiner
    def test_any_kind_of_array(self, combiner):
        values, y = noisy_margins(TERNARY)
        values = values.astype(np.float32)
        locked = values.astype(float)
        locked.flags.writeable = False
        expected = fitted(combiner, locked, y, TERNARY).combine(locked, TERNARY).values
        for kind in (values, locked.tolist(), np.asfortranarray(locked), locked[::-1][::-1]):
            combiner = fitted(combiner, kind, y.astype(np.uint8), TERNARY.tolist())
            assert_allclose(combiner.combine(kind, TERNARY).values, expected, rtol=1e-9)

    def test_no_rows_in_no_rows_out(self):
        values, y = noisy_margins(TERNARY)
        combiner = Softmax(C=1.0).fit(values, y, TERNARY)
        assert combiner.combine(values[:0], TERNARY).values.shape == (0, 4)

    def test_fit_does_not_write_to_what_it_is_given(self):
        values, y = noisy_margins(TERNARY)
        values[3, 2] = np.inf
        before = values.copy(), y.copy(), TERNARY.copy()
        Softmax(C=1.0).fit(values, y, TERNARY, np.ones(60))
        for now, then in zip((values, y, TERNARY), before, strict=True):
            assert_array_equal(now, then)

    def test_memory_grows_as_the_scores_do_not_as_their_square(self):
        code = codes.one_vs_one(30)
        values, y = noisy_margins(code, n=3000)

        def peak(n):
            tracemalloc.start()
            SimplifiedSoftmax(1e-2, tol=1e-3).fit(values[:n], y[:n], code)
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return found

        per_row = (peak(3000) - peak(1500)) / 1500 / 8
        assert per_row < 435 + 8 * 30 < 30 * 30


class TestErrors:
    values, y = noisy_margins(TERNARY)

    def test_combining_before_fitting(self):
        for combiner in (Softmax(), SimplifiedSoftmax()):
            with pytest.raises(NotFittedError, match=f"{type(combiner).__name__}.*not fitted yet"):
                combiner.combine(self.values, TERNARY)

    def test_combining_under_another_code(self):
        combiner = Softmax(C=1.0).fit(self.values, self.y, TERNARY)
        with pytest.raises(ValueError, match="code is not the one that Softmax was fitted with"):
            combiner.combine(self.values, -TERNARY)

    @pytest.mark.parametrize("C", [0, -1.0, np.nan, np.inf, "1", [1.0]])
    def test_bad_c(self, C):
        with pytest.raises(ValueError, match="C must be a positive number.*SimplifiedSoftmax"):
            Softmax(C=C).fit(self.values, self.y, TERNARY)

    @pytest.mark.parametrize("ridge", [0, -1e-9, np.nan, np.inf, None])
    def test_bad_ridge(self, ridge):
        with pytest.raises(ValueError, match="ridge must be a positive number, got"):
            SimplifiedSoftmax(ridge).fit(self.values, self.y, TERNARY)

    @pytest.mark.parametrize("options", [{"tol": 0}, {"tol": "1"}, {"max_iter": 0.5}])
    def test_bad_limits(self, options):
        with pytest.raises(ValueError, match="tol must be positive and max_iter at least 1, got"):
            Softmax(**options).fit(self.values, self.y, TERNARY)

    @pytest.mark.parametrize("shape", [(60,), (60, 4), (4, 60, 5)])
    def test_bad_shape(self, shape):
        combiner = Softmax(C=1.0).fit(self.values, self.y, TERNARY)
        for method in (lambda v: combiner.combine(v, TERNARY), self.fit):
            with pytest.raises(ValueError, match=r"values has shape .* pass margins of .*\(n, 5\)"):
                method(np.zeros(shape))

    def fit(self, values):
        return Softmax(C=1.0).fit(values, self.y, TERNARY)

    def test_nan_is_located(self):
        holed = self.values.copy()
        holed[7, 3] = np.nan
        combiner = self.fit(self.values)
        for method in (lambda v: combiner.combine(v, TERNARY), self.fit):
            with pytest.raises(ValueError, match="NaN at row 7, column 3"):
                method(holed)

    @pytest.mark.parametrize("y", [np.zeros(59, int), np.full(60, 4), np.full(60, -1), np.ones(60)])
    def test_bad_labels(self, y):
        with pytest.raises(ValueError, match="y must hold 60 class indices from 0 to 3"):
            Softmax().fit(self.values, y, TERNARY)

    def test_bad_weights(self):
        with pytest.raises(ValueError, match="[Nn]egative"):
            Softmax().fit(self.values, self.y, TERNARY, np.full(60, -1.0))

    @pytest.mark.parametrize("rows", [slice(0), slice(None)])
    def test_nothing_to_learn_from(self, rows):
        weights = np.zeros(60)[rows]
        with pytest.raises(ValueError, match="nothing to learn from: none of the .* rows"):
            Softmax().fit(self.values[rows], self.y[rows], TERNARY, weights)

    def test_too_little_to_choose_c(self):
        rows = [np.flatnonzero(self.y == c)[0] for c in range(4)]
        with pytest.raises(ValueError, match="no class has two samples.*Pass a number"):
            Softmax().fit(self.values[rows], self.y[rows], TERNARY)
        assert Softmax(C=1.0).fit(self.values[rows], self.y[rows], TERNARY).C_ == 1

    @pytest.mark.parametrize(
        "combiner", [Softmax(C=1.0, max_iter=1), SimplifiedSoftmax(max_iter=2)]
    )
    @pytest.mark.parametrize("by_newton", [True, False])
    def test_stopping_early_is_said_once(self, combiner, by_newton, monkeypatch):
        def only_3_steps(*args, options, **rest):
            return minimize(*args, options={**options, "maxiter": 3}, **rest)

        combiner = clone(combiner) if by_newton else without_newton(combiner)
        monkeypatch.setattr(_softmax_solver, "minimize", only_3_steps)
        with pytest.warns(ConvergenceWarning, match="did not converge in 1 of its fits") as seen:
            combiner.fit(self.values, self.y, TERNARY)
        assert len(seen) == 1 and seen[0].filename == __file__

    def test_stopping_early_in_the_search_is_said_once(self):
        with pytest.warns(ConvergenceWarning, match="did not converge in .* of its fits") as seen:
            Softmax(max_iter=1).fit(self.values, self.y, TERNARY)
        assert len(seen) == 1


# -- in a classifier -------------------------------------------------------------------

X, labels = make_blobs(80, n_features=3, centers=4, cluster_std=3.0, random_state=0)
words = np.array(["ant", "bee", "cat", "dog"])[labels]


class TestInAClassifier:
    def test_both_are_known_by_name(self):
        assert {"softmax", "softmax-simplified"} <= set(names())
        assert type(resolve("softmax")) is Softmax
        assert type(resolve("softmax-simplified")) is SimplifiedSoftmax

    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest", "sparse-random", TERNARY])
    @pytest.mark.parametrize("combiner", ["softmax", "softmax-simplified"])
    @pytest.mark.parametrize("estimator", [SVC(), GaussianNB()], ids=["margins", "probabilities"])
    def test_labels_are_the_most_probable_classes(self, combiner, code, estimator):
        model = CoupledClassifier(estimator, code=code, combiner=combiner, random_state=0)
        model.fit(X, words)
        p = model.predict_proba(X)
        assert_probabilities(p)
        assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
        assert model.score(X, words) > 0.5
        assert model.scaling_ is None and model.calibration_ is None
        assert not hasattr(model, "incoherence")

    def test_weights_come_from_out_of_sample_margins(self):
        model = CoupledClassifier(SVC(), code="one-vs-rest", combiner=Recorder(), cv=5)
        values, y, code, _ = model.fit(X, words).combiner_.seen
        assert_array_equal(y, labels)
        assert_array_equal(code, codes.one_vs_rest(4))
        resubstituted = model.bank_.scores(X)
        own = np.arange(80), y
        assert values[own].mean() < resubstituted[own].mean()

    def test_two_classes(self):
        two = labels < 2
        for combiner in ("softmax", "softmax-simplified"):
            model = CoupledClassifier(SVC(), combiner=combiner).fit(X[two], words[two])
            scores = model.decision_function(X)
            assert scores.shape == (80,)
            assert_array_equal(model.predict(X), model.classes_[(scores > 0).astype(int)])

    def test_without_folds_it_cannot_learn(self):
        for combiner in ("softmax", "softmax-simplified"):
            with pytest.raises(ValueError, match=f"'{combiner}' learns.*cv=None. Use cv=5"):
                CoupledClassifier(SVC(), combiner=combiner, cv=None).fit(X, words)

    def test_analytic_leave_one_out(self):
        model = CoupledClassifier(SVC(), combiner="softmax", cv="loo").fit(X, words)
        assert log_loss(words, model.predict_proba(X)) < 0.8

    def test_grid_search_reaches_c(self):
        search = GridSearchCV(
            CoupledClassifier(SVC(), combiner=Softmax(), cv=3),
            {"combiner__C": [1e-5, 0.5, None]},
            scoring="neg_log_loss",
            cv=2,
        ).fit(X, words)
        losses = -search.cv_results_["mean_test_score"]
        assert losses[0] > max(losses[1:])
        assert search.best_params_["combiner__C"] != 1e-5

    @pytest.mark.parametrize("combiner", [Softmax(C=0.1, tol=1e-8), SimplifiedSoftmax(1e-4)])
    def test_clones_and_pickles(self, combiner):
        model = CoupledClassifier(SVC(), combiner=combiner).fit(X, words)
        assert not hasattr(combiner, "weights_")
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        copy = clone(model)
        assert copy.combiner.get_params() == combiner.get_params()
        assert_array_equal(copy.fit(X, words).predict_proba(X), model.predict_proba(X))

    def test_frames_sparse_matrices_and_weights(self):
        model = CoupledClassifier(LogisticRegression(), combiner=Softmax(C=1.0))
        expected = model.fit(X, words).predict_proba(X)
        frame = pd.DataFrame(X, columns=list("abc"))
        assert_allclose(model.fit(frame, words).predict_proba(frame), expected, atol=1e-9)
        sparse_X = sparse.csr_array(X)
        assert_allclose(model.fit(sparse_X, words).predict_proba(sparse_X), expected, atol=1e-4)
        weights = (np.arange(80) % 7 > 0).astype(float)
        p = model.fit(X, words, sample_weight=weights).predict_proba(X)
        assert_probabilities(p)
        assert np.abs(p - expected).max() > 1e-3

    @pytest.mark.filterwarnings("ignore:the following classes have a single sample")
    def test_a_class_with_a_single_sample(self):
        rows = np.r_[np.flatnonzero(labels < 3), np.flatnonzero(labels == 3)[:1]]
        for combiner in ("softmax", "softmax-simplified"):
            model = CoupledClassifier(SVC(), combiner=combiner).fit(X[rows], words[rows])
            assert_probabilities(model.predict_proba(X))

    def test_on_real_data(self, shared_data):
        data = shared_data("segment")
        rows = np.random.default_rng(0).permutation(len(data.y))[:1000]
        train, test = rows[:400], rows[400:]
        scaler = StandardScaler().fit(data.X[train])
        for combiner in ("softmax", "softmax-simplified"):
            model = CoupledClassifier(SVC(C=10), code="one-vs-rest", combiner=combiner)
            model.fit(scaler.transform(data.X[train]), data.y[train])
            p = model.predict_proba(scaler.transform(data.X[test]))
            assert log_loss(data.y[test], p) < 0.3


# CoupledClassifier() has all checks in test_contracts.
@checks_in_turn(
    [
        CoupledClassifier(LogisticRegression(), combiner="softmax-simplified", cv=2),
        CoupledClassifier(LogisticRegression(), combiner=Softmax(C=1.0), code="one-vs-rest", cv=2),
        CoupledClassifier(LogisticRegression(), combiner="softmax", cv=3),
        CoupledClassifier(SVC(), combiner=Softmax(C=1.0), cv=3),
    ],
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
