"""Rows that are repeated: the same machines, in whatever order, and as weights."""

from __future__ import annotations

import naive
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC, NuSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.banks import MARGIN, fit_bank, repeats
from manyclass.banks.limits import Limits
from manyclass.banks.repeats import Copies, distinct_rows
from manyclass.banks.svm.fit import fit_kernel_bank

X, y = load_iris(return_X_y=True)
X = X + 1e-3 * np.arange(len(X))[:, None]  # one flower is there twice
COUNTS = np.random.default_rng(0).integers(2, 6, len(y))
COUNTS[::10] = 1  # most, but not all, are repeated
ONE_VS_REST = 2 * np.eye(3, dtype=np.int8) - 1
TYPES = {
    "C": np.array,
    "F": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "frame": lambda X: pd.DataFrame(X, columns=list("abcd")),
}
MACHINES = [
    SVC(),
    SVC(kernel="linear", C=10.0),
    SVC(kernel="poly", class_weight={1: 3.0}),
    SVC(kernel="sigmoid", gamma=0.01),
    LinearSVC(),
    LinearSVC(loss="hinge", C=0.1),
]


def several_ways():
    """Yield rows that count COUNTS times: as copies, with weights for some, in other orders."""
    rng = np.random.default_rng(1)
    rows = rng.permutation(np.arange(len(y)).repeat(COUNTS))
    yield X[rows], y[rows], None
    few = np.minimum(COUNTS, 2)
    rows = rng.permutation(np.arange(len(y)).repeat(few))
    first = np.unique(rows, return_index=True)[1]
    weights = np.ones(len(rows))
    weights[first] += (COUNTS - few)[rows[first]]
    yield X[rows], y[rows], weights
    unused = np.arange(0, len(y), 3)
    both = np.concatenate([unused, rows])
    yield X[both], y[both], np.concatenate([np.zeros(len(unused)), weights])


NEVER_MERGED = Limits(repeated=np.inf)


def margins(estimator, samples, labels, weights, code, limits=None):
    params = {} if weights is None else {"sample_weight": weights}
    bank = fit_bank(
        estimator,
        samples,
        labels,
        code,
        MARGIN,
        fit_params=params,
        seeds=np.arange(code.shape[1]),
        limits=limits,
    )
    return bank.scores(X)


class TestMachines:
    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
    @pytest.mark.parametrize("estimator", MACHINES, ids=repr)
    def test_the_same_however_rows_are_counted(self, estimator, code):
        code = (
            ONE_VS_REST if code == "one-vs-rest" else np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])
        )
        found = [margins(estimator, *samples, code.astype(np.int8)) for samples in several_ways()]
        for other in found[1:]:
            assert_allclose(other, found[0], rtol=0, atol=1e-9)  # sums of their shares

    @pytest.mark.parametrize("form", TYPES)
    @pytest.mark.parametrize("estimator", [SVC(), LinearSVC()], ids=repr)
    def test_the_same_of_every_type(self, estimator, form):
        model = CoupledClassifier(
            estimator, code="one-vs-rest", combiner="winner-takes-all", random_state=0
        )
        one, other, _ = (
            model.fit(TYPES[form](samples), labels, sample_weight=weights).decision_function(
                TYPES[form](X)
            )
            for samples, labels, weights in several_ways()
        )
        assert_allclose(one, other, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_those_of_svc_up_to_its_tolerance(self, kernel):
        samples, labels, _ = next(several_ways())
        expected = SVC(kernel=kernel, gamma=0.5, tol=1e-10, decision_function_shape="ovo")
        expected.fit(samples, labels)
        model = CoupledSVC(kernel=kernel, gamma=0.5, tol=1e-10, decision_function_shape="ovo")
        model.fit(samples, labels)
        atol = 1e-3 if kernel == "linear" else 1e-6  # LIBSVM keeps large products in float32
        assert_allclose(model.decision_function(X), expected.decision_function(X), atol=atol)

    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
    def test_weights_of_classes_stay(self, code):
        of_class = {0: 3.0, 2: 0.25}
        model = CoupledSVC(code=code, combiner="max-wins", cv=None, class_weight=of_class, tol=1e-8)
        if code == "one-vs-rest":
            model.set_params(combiner="winner-takes-all")
        one, other, _ = (
            model.fit(*samples).set_params(decision_function_shape="ovo").decision_function(X)
            for samples in several_ways()
        )
        assert_allclose(one, other, rtol=0, atol=1e-9)
        samples, labels, _ = next(several_ways())
        not_whole = np.array([of_class.get(label, 1.0) for label in labels]) * (1 + 1e-9)
        weighted = clone(model).set_params(class_weight=None, gamma=1 / (4 * samples.var()))
        weighted.fit(samples, labels, sample_weight=not_whole)
        assert_allclose(one, weighted.decision_function(X), rtol=0, atol=1e-5)

    def test_one_of_the_copies_is_a_support_vector(self):
        samples, labels, _ = next(several_ways())
        model = CoupledSVC(cv=3).fit(samples, labels)
        assert_array_equal(model.support_vectors_, samples[model.support_])
        assert len(np.unique(model.support_vectors_, axis=0)) == len(model.support_)
        assert model.n_support_.sum() == len(model.support_)
        assert model.C < np.abs(model.dual_coef_).max() <= COUNTS.max() * model.C + 1e-12

    def test_no_copies_no_change(self):
        """What is hardly repeated is left to the solver as it is, whatever it weighs."""
        params = {"decision_function_shape": "ovo", "tol": 1e-8}
        for weight in (None, COUNTS.astype(float), COUNTS / 2, np.minimum(COUNTS - 1.0, 1.0)):
            expected = SVC(**params).fit(X, y, weight)
            model = CoupledSVC(**params).fit(X, y, weight)
            assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-5)

    @pytest.mark.parametrize(
        "estimator",
        [
            SVC(class_weight="balanced", gamma=0.5),
            LinearSVC(class_weight="balanced"),
            SVC(kernel=lambda a, b: a @ b.T),
            NuSVC(nu=0.2),
        ],
        ids=["SVC", "LinearSVC", "own kernel", "NuSVC"],
    )
    def test_where_the_number_of_rows_counts(self, estimator):
        """Weights of classes, and nu, are told by it; rows of whatever type are not compared."""
        samples, labels, _ = next(several_ways())
        found = margins(estimator, samples, labels, None, ONE_VS_REST)
        apart = margins(estimator, samples, labels, None, ONE_VS_REST, limits=NEVER_MERGED)
        assert_array_equal(found, apart)


class TestLeaveOneOut:
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("C", [0.1, 1.0, 10.0, 100.0])
    def test_of_copies(self, C, weighted):
        """Against machines without one of them, on every third flower of two kinds, twice."""
        rng = np.random.default_rng(3)
        some = rng.permutation(np.flatnonzero(y > 0)[::3].repeat(2))
        samples, labels = scale(X[some]), y[some] - 1
        weights = rng.integers(1, 4, len(some)).astype(float) if weighted else np.ones(len(some))
        code = np.array([[-1], [1]], dtype=np.int8)
        machine = SVC(C=C, gamma=0.2)

        def without(i):
            machine.set_params(tol=1e-8).fit(
                np.delete(samples, i, 0), np.delete(labels, i), np.delete(weights, i)
            )
            return machine.decision_function(samples[[i]])[0]

        def mean_difference(limits=None):
            bank = fit_bank(
                machine.set_params(tol=1e-3),
                samples,
                labels,
                code,
                MARGIN,
                fit_params={"sample_weight": weights},
                limits=limits,
            )
            return np.abs(bank.leave_one_out(samples, labels, code, weights)[:, 0] - truth).mean()

        truth = np.array([without(i) for i in range(len(some))])
        assert mean_difference() < min(0.03, mean_difference(NEVER_MERGED))


@st.composite
def problems(draw):
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    values = st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e-310, -1e300])
    rows = draw(arrays(np.float64, (n, d), elements=values))
    target = draw(arrays(np.intp, n, elements=st.integers(0, 1)))
    weights = draw(arrays(np.float64, n, elements=st.sampled_from([1.0, 2.0, 5.0])))
    return rows, target, weights


class TestDistinct:
    @given(problems())
    def test_against_a_dictionary(self, problem):
        rows, labels, weights = problem
        expected = naive.row_weights(rows, labels, weights)
        copies = naive.row_weights(rows, labels, np.ones(len(rows)))
        repeated = np.mean([n > 1 for n in copies.values()]) >= 0.5
        distinct = distinct_rows(rows, labels, np.arange(len(rows)), weights)
        assert (distinct is not None) == repeated
        if distinct is not None:
            first = distinct.rows
            together = naive.row_weights(rows[first], labels[first], distinct.weights[first])
            assert together == expected
            assert distinct.weights.sum() == weights.sum()

    @given(problems(), st.randoms(use_true_random=False))
    def test_the_order_is_that_of_the_rows_alone(self, problem, random):
        rows, labels, weights = problem
        twice, there = np.arange(len(rows)).repeat(2), np.arange(len(rows)).repeat(3)
        random.shuffle(there)
        expected = distinct_rows(
            rows[twice], labels[twice], np.arange(len(twice)), weights[twice] * 1.5
        )
        for as_type in (np.array, sparse.csr_array, sparse.csc_array, pd.DataFrame):
            everything = np.arange(len(there))
            found = distinct_rows(as_type(rows[there]), labels[there], everything, weights[there])
            assert_array_equal(rows[there[found.rows]], rows[twice[expected.rows]])
            assert_array_equal(found.weights[found.rows], expected.weights[expected.rows])

    @given(problems())
    def test_copies(self, problem):
        rows, labels, weights = problem
        weights = weights - 1.0  # some have none
        copies, some = Copies(rows, labels, weights), np.flatnonzero(weights)[::2]
        places, which = copies.of(some)
        expected = [
            (place, m)
            for m, row in enumerate(some)
            for place in np.flatnonzero(weights)
            if (rows[place] == rows[row]).all() and labels[place] == labels[row]
        ]
        assert list(zip(places, which, strict=True)) == expected
        assert_array_equal(
            copies.weights_of(some), np.bincount(which, weights[places], minlength=len(some))
        )

    def test_numbers_that_happen_to_agree(self, monkeypatch):
        """Copies are equal rows, whatever their digests say."""
        monkeypatch.setattr(repeats, "_digests", lambda X, rows, _: np.zeros(len(rows), np.uint64))
        rows, labels = np.arange(20.0)[:, None], np.zeros(20, dtype=int)
        for as_type in (np.array, sparse.csr_array, sparse.csc_array):
            assert distinct_rows(as_type(rows), labels, np.arange(20)) is None

    def test_many_rows_are_read_in_parts(self):
        rows, labels = X.repeat(3, axis=0), y.repeat(3)
        expected = distinct_rows(rows, labels, np.arange(len(rows)))
        for as_type in (np.array, sparse.csr_array):
            found = distinct_rows(as_type(rows), labels, np.arange(len(rows)), block_entries=10)
            assert_array_equal(found.rows, expected.rows)

    def test_wide_sparse_rows_are_read_many_at_a_time(self):
        rows = sparse.csr_array((np.ones(500), np.diag_indices(500)), shape=(500, 10**6))
        assert len(repeats._blocks(rows, np.arange(500), 2**15)) == 1

    def test_a_large_x_stays_in_its_order(self):
        """Which would take a copy of it, beside the support vectors."""
        repeated, labels, everything = X.repeat(2, axis=0), y.repeat(2), np.arange(300)
        assert (np.diff(distinct_rows(repeated, labels, everything).rows) < 0).any()
        for as_type in (np.array, sparse.csr_array):
            found = distinct_rows(
                as_type(repeated), labels, everything, copied_bytes=8 * X.size - 1
            )
            assert_array_equal(found.rows, everything[::2])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_what_is_not_finite_is_left_to_the_learner(self, bad):
        samples = np.where(np.arange(300)[:, None] == 7, bad, X.repeat(2, axis=0))
        with pytest.raises(ValueError, match="NaN|infinity"):
            CoupledClassifier(LinearSVC()).fit(samples, y.repeat(2))


def test_gamma_knows_how_often_rows_count():
    gammas = [
        fit_kernel_bank(
            SVC(), S, labels, ONE_VS_REST, rows=np.arange(len(labels)), sample_weight=weights
        ).kernel.gamma
        for S, labels, weights in several_ways()
    ]
    assert gammas[0] == gammas[1] == gammas[2]
    repeated = next(several_ways())[0]
    assert gammas[0] == pytest.approx(1 / (4 * repeated.var()), rel=1e-12)
