"""Analytic leave-one-out: by hand, against its definition, and against leaving out in earnest."""

from __future__ import annotations

import warnings

import naive_svm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler, scale
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledSVC, codes
from manyclass.banks import MARGIN, Untrusted, fit_bank
from manyclass.banks.limits import Limits
from manyclass.banks.svm.compiled.kernel_rows import kernel_rows, source
from manyclass.banks.svm.compiled.span_formula import squared_spans
from manyclass.banks.svm.leave_one_out import without_only_samples
from manyclass.scores.sources import LeaveOneOut

PAIR = np.array([[-1], [1]], dtype=np.int8)
EXACT = Limits(left_out_tol=0.0)  # left out to ten times the tolerance of the fit


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


def iris_pair():
    X, y = load_iris(return_X_y=True)
    return X[50:], y[50:] - 1


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X[:120]), y[:120]


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def overlapping(n: int = 60, seed: int = 0):
    """Two clouds that no machine tells apart."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + 0.8 * y[:, None], y


def sides(n: int):
    """Samples of either side by turns."""
    return np.arange(n) % 2 == 0


def spans_of(K, free, positive):
    """The spans from a kernel matrix."""
    n = len(K)
    given = source((0, 0.0, 0.0, 0.0), gram=np.ascontiguousarray(K, dtype=np.float64))
    return squared_spans(kernel_rows(given, np.arange(n), np.empty(2 * n)), free, positive)


def left_out(machine, X, y, code, weights=None, limits=EXACT):
    """Scores of the bank in sample and left out."""
    params = {"sample_weight": weights}
    bank = fit_bank(machine, X, y, code, MARGIN, fit_params=params, limits=limits, borrow=True)
    ones = np.ones(len(y)) if weights is None else weights
    return bank, bank.scores(X), bank.leave_one_out(X, y, code, ones)


def test_some_rows_as_all_rows():
    X, y = wine()
    bank, _, scores = left_out(SVC(), X, y, codes.one_vs_one(3))
    rows = np.arange(1, len(y), 3)
    some = bank.leave_one_out(X, y, codes.one_vs_one(3), np.ones(len(y)), rows)
    assert_allclose(some, scores[rows], atol=1e-5)


def test_probabilities_from_some_rows():
    """Beyond enough rows, sigmoids and temperature hardly change; more parameters may gain."""
    X, y = load_digits(return_X_y=True)
    test = np.arange(len(y)) % 3 == 0
    losses = []
    for enough in (10_000, 400):
        cv = LeaveOneOut(enough, of_a_class=40)
        model = CoupledSVC(cv=cv, scaling="temperature")
        p = model.fit(X[~test], y[~test]).predict_proba(X[test])
        losses.append(log_loss(y[test], p))
    assert losses[0] != losses[1]
    assert_allclose(losses[0], losses[1], rtol=0.15)


# -- spans -----------------------------------------------------------------------------


def test_spans_by_hand():
    """Distance from the line through two points; of each of the two from the other."""
    points = np.array([[0.0, 1.0], [1.0, 1.0], [5.0, 3.0]])
    spans, below, _ = spans_of(points @ points.T, np.array([True, True, False]), sides(3))
    assert_allclose(spans, [1.0, 1.0, 4.0], atol=1e-6)
    assert below == 0


def test_span_is_affine_not_linear():
    """(2, 0) is a multiple of (1, 0), but not an affine combination of it alone."""
    points = np.array([[1.0, 0.0], [2.0, 0.0]])
    spans, _, _ = spans_of(points @ points.T, np.array([True, False]), sides(2))
    assert spans[1] == pytest.approx(1.0)


def test_without_free_vectors_the_nearest_of_the_other_side_goes_too():
    K = np.array([[2.0, 1.5, 1.0], [1.5, 2.0, 0.5], [1.0, 0.5, 2.0]])
    spans, below, _ = spans_of(K, np.zeros(3, bool), np.array([True, False, False]))
    assert_allclose(spans, [0.5, 0.5, 1.0])
    assert below == 0
    spans, below, _ = spans_of(-np.eye(3), np.zeros(3, bool), sides(3))
    assert_array_equal(spans, 0.0)
    assert below == 3


def test_a_lone_free_vector_goes_with_the_nearest_of_the_other_side():
    points = np.array([[3.0, 0.0], [3.0, 2.0], [4.0, 2.0]])
    spans, below, _ = spans_of(points @ points.T, np.array([True, False, False]), sides(3))
    assert_allclose(spans, [2.0, 4.0, 5.0], rtol=1e-6)
    assert below == 0


@pytest.mark.parametrize("n_free", [0, 1, 2, 9])
def test_a_constant_added_to_the_kernel_makes_no_difference(n_free):
    """It makes none to any machine, whose coefficients add up to zero."""
    X = overlapping(12)[0]
    plain, raised = (
        spans_of(rbf_kernel(X) + constant, np.arange(12) < n_free, sides(12))[0]
        for constant in (0, 9)
    )
    assert_allclose(raised, plain, atol=1e-7)


def test_duplicates_span_each_other():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [3.0, 1.0]])
    spans, below, _ = spans_of(
        rbf_kernel(points, gamma=0.3), np.array([True, True, True, False]), sides(4)
    )
    assert below == 0
    assert np.isfinite(spans).all()
    assert_allclose(spans[:2], 0.0, atol=1e-8)
    assert (spans[2:] > 0.1).all()


def test_negative_squares_are_counted():
    K = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 3.0], [3.0, 3.0, 1.0]])
    spans, below, _ = spans_of(K, np.array([True, True, False]), sides(3))
    assert below == 1
    assert (spans >= 0).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 9), st.integers(0, 10_000), st.sampled_from(["rbf", "linear"]))
def test_spans_are_distances_from_the_affine_span(n, seed, kernel):
    rng = np.random.default_rng(seed)
    points, free = rng.normal(size=(n, 12)), rng.random(n) < 0.6
    K = rbf_kernel(points, gamma=0.1) if kernel == "rbf" else points @ points.T
    spans, below, _ = spans_of(K, free, sides(n))
    expected = [naive_svm.squared_span(K, free, sides(n), p) for p in range(n)]
    assert_allclose(spans, expected, rtol=1e-5, atol=1e-6 * np.trace(K) / n)
    assert below == 0


@pytest.mark.parametrize("constant", [0.0, 100.0])
@pytest.mark.parametrize("n_bound", [9, 10, 40])
def test_drag_is_what_one_at_the_bound_moves_the_others_by(n_bound, constant):
    rng = np.random.default_rng(0)
    points, free = rng.normal(size=(n_bound + 4, 6)), np.arange(n_bound + 4) < 4
    drag = spans_of(points @ points.T + constant, free, sides(len(free)))[2]
    offset = points[~free] - points[0]
    within = points[1:4] - points[0]
    offset -= offset @ np.linalg.pinv(within) @ within
    moved = offset @ offset.T
    np.fill_diagonal(moved, 0.0)
    expected = np.abs(moved.mean(axis=1)).mean() if n_bound >= 10 else 0.0
    assert_allclose(drag, expected, rtol=1e-6)


def test_many_samples_at_their_bound():
    """They are read some at a time; the drag is that of every fifth of them."""
    rng = np.random.default_rng(0)
    points, free = rng.normal(size=(304, 6)), np.arange(304) < 4
    K = points @ points.T
    spans, _, drag = spans_of(K, free, sides(304))
    for p in (4, 259, 260, 303):
        assert_allclose(spans[p], naive_svm.squared_span(K, free, sides(304), p), rtol=1e-6)
    some = np.concatenate([np.arange(4), np.arange(4, 304, 5)])
    assert_allclose(drag, spans_of(K[np.ix_(some, some)], free[some], sides(64))[2], rtol=1e-6)


def test_samples_that_would_drag_all_others_along_are_fitted_again():
    """Two half moons and few free support vectors: log-loss was 15 percent higher."""
    X, y = make_moons(400, noise=0.3, random_state=0)
    splits = list(StratifiedShuffleSplit(5, test_size=0.5, random_state=1).split(X, y))
    for train, test in (splits[1], splits[4]):
        scaler = StandardScaler().fit(X[train])
        known, new = scaler.transform(X[train]), scaler.transform(X[test])
        losses = [
            log_loss(y[test], CoupledSVC(C=10, cv=cv).fit(known, y[train]).predict_proba(new))
            for cv in ("loo", 20)
        ]
        assert losses[0] < 1.02 * losses[1]


@pytest.mark.parametrize("kernel", ["zero", "constant", "one point"])
def test_free_ones_that_are_all_alike(kernel):
    K = np.full((6, 6), {"zero": 0.0, "constant": 1.0, "one point": 0.3}[kernel])
    if kernel == "one point":
        K[-1, -1] = 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, below, _ = spans_of(K, np.arange(6) < 5, sides(6))
    assert_allclose(found, [0, 0, 0, 0, 0, 0.7 if kernel == "one point" else 0.0], atol=1e-9)
    assert below == 0


def test_a_singular_kernel_is_as_bad_as_one_that_is_not_definite():
    K = np.full((4, 4), np.nan)
    found, below, _ = spans_of(K, np.ones(4, bool), sides(4))
    assert_array_equal(found, 0.0)
    assert below == 4


# -- leave-one-out against leaving out -------------------------------------------------

CASES = {
    "iris": (iris_pair, SVC(C=10, gamma=1.0, tol=1e-6)),
    "iris-soft": (iris_pair, SVC(C=1, gamma=3.0, tol=1e-6)),
    "cancer": (cancer, SVC(C=1, gamma=0.03, tol=1e-6)),
    "cancer-hard": (cancer, SVC(C=100, gamma=0.03, tol=1e-6)),
    "cancer-poly": (cancer, SVC(C=1, kernel="poly", degree=2, coef0=1, gamma=0.03, tol=1e-6)),
    "cancer-weights": (cancer, SVC(C=1, gamma=0.03, tol=1e-6, class_weight={0: 3.0, 1: 0.5})),
    "overlapping": (overlapping, SVC(C=1, gamma=0.5, tol=1e-6)),
}


def compare(machine, X, y, code=PAIR, column=0, weights=None):
    """Correlation with leaving out, mean error, and mean error of in-sample scores."""
    bank, inside, outside = left_out(machine, X, y, code, weights)
    support = bank.models[column].support_
    expected = naive_svm.leave_one_out(machine, X, y, code[:, column], support, weights)
    outside, inside = outside[support, column], inside[support, column]
    correlation = np.corrcoef(outside, expected)[0, 1]
    return correlation, np.abs(outside - expected).mean(), np.abs(inside - expected).mean()


@pytest.mark.parametrize("case", CASES)
def test_leave_one_out_is_close_to_leaving_out(case):
    load, machine = CASES[case]
    correlation, error, optimism = compare(machine, *load())
    assert correlation > 0.95
    assert error < 0.5 * optimism


@pytest.mark.parametrize("code", [codes.one_vs_one(3), codes.one_vs_rest(3)])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_leave_one_out_of_every_column(code, column):
    correlation, error, optimism = compare(SVC(gamma=0.1, tol=1e-6), *wine(), code, column)
    assert correlation > 0.95
    assert error < 0.5 * optimism


def test_sample_weights_move_the_bound():
    X, y = cancer()
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    correlation, error, optimism = compare(SVC(gamma=0.03, tol=1e-6), X, y, weights=weights)
    assert correlation > 0.95
    assert error < 0.5 * optimism


def test_others_than_support_vectors_keep_their_score():
    X, y = cancer()
    machine = SVC(C=1, gamma=0.03, tol=1e-6)
    bank, inside, outside = left_out(machine, X, y, PAIR)
    others = np.setdiff1d(np.arange(len(y)), bank.models[0].support_)
    assert len(others) > 20
    assert_allclose(outside[others], inside[others], atol=1e-5)
    refitted = naive_svm.leave_one_out(machine, X, y, PAIR[:, 0], others[:8])
    assert_allclose(outside[others[:8], 0], refitted, atol=1e-4)


def test_samples_outside_a_column_keep_their_score():
    X, y = wine()
    code = codes.one_vs_one(3)
    _, inside, outside = left_out(SVC(gamma=0.1), X, y, code)
    unused = code[y] == 0
    assert_allclose(outside[unused], inside[unused], atol=1e-5)
    assert np.abs(outside - inside)[~unused].max() > 0.1


def test_leaving_out_never_helps():
    X, y = wine()
    code = codes.one_vs_rest(3)
    _, inside, outside = left_out(SVC(C=3, gamma=0.1), X, y, code)
    assert (code[y] * (outside - inside) < 1e-5).all()


# -- degenerate machines ---------------------------------------------------------------


def test_no_free_vectors():
    """Hardly any kernel, all samples of the smaller class at the bound."""
    X, y = cancer()
    machine = SVC(gamma=1e-4, tol=1e-6)
    bank, inside, outside = left_out(machine, X, y, PAIR)
    support = bank.models[0].support_
    assert (np.abs(bank.models[0].dual_coef_) == 1.0).all()
    expected = naive_svm.leave_one_out(machine, X, y, PAIR[:, 0], support)
    error, in_sample = (np.abs(s[support, 0] - expected).mean() for s in (outside, inside))
    assert error < 0.8 * in_sample


def test_as_many_on_each_side_and_all_at_the_bound():
    """Leaving one out would turn the constant term over; the rest is what counts."""
    X, y = load_iris(return_X_y=True)
    for C, gamma in ((1e-4, 0.2), (1, 1e-4), (1, 0.001)):
        assert CoupledSVC(C=C, gamma=gamma).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.8


def test_all_free_is_exact():
    """Hard margin, all of them support vectors: the estimate is leave-one-out itself.

    With a narrow kernel they stay so when one is left out.
    """
    X, y = overlapping(30)
    machine = SVC(C=1e6, gamma=5.0, tol=1e-9)
    bank, _, outside = left_out(machine, X, y, PAIR)
    assert len(bank.models[0].support_) == len(y)
    expected = naive_svm.leave_one_out(machine, X, y, PAIR[:, 0], range(len(y)))
    assert_allclose(outside[:, 0], expected, atol=1e-5)


def test_duplicates():
    """A copy in the training set is as good as the sample itself."""
    X, y = overlapping(40)
    X, y = np.concatenate([X, X]), np.concatenate([y, y])
    machine = SVC(C=1, gamma=0.5, tol=1e-6)
    bank, inside, outside = left_out(machine, X, y, PAIR)
    assert np.isfinite(outside).all()
    support = bank.models[0].support_
    expected = naive_svm.leave_one_out(machine, X, y, PAIR[:, 0], support)
    assert np.corrcoef(outside[support, 0], expected)[0, 1] > 0.95
    assert np.abs(outside - inside).max() < 1.0


def test_one_free_vector_leaves_scores_small():
    """With weights and a tiny C all but one coefficient are at the bound."""
    X, y = wine()
    weights = np.random.default_rng(5).random(len(y))
    _, inside, outside = left_out(SVC(C=1e-4, kernel="linear"), X, y, codes.one_vs_one(3), weights)
    assert np.abs(outside - inside).max() < 0.1


def test_only_samples_have_no_score():
    X, y = iris_pair()
    rows = np.r_[49, 50:100]  # one of class 0
    code = codes.one_vs_one(3)
    X, y = np.r_[X[rows], X[rows][1:] + 9.0], np.r_[y[rows], np.full(50, 2)]
    _, _, outside = left_out(SVC(), X, y, code)
    assert_array_equal(np.argwhere(np.isnan(outside)), [[0, 0], [0, 1]])


def test_only_samples_are_told_by_side_and_weight():
    y = np.array([0, 0, 1, 2, 3])
    code = np.array([[1, 1, 0], [-1, 1, 1], [-1, -1, -1], [0, -1, -1]], dtype=np.int8)
    weights = np.array([1.0, 0.0, 1.0, 1.0, 1.0])
    missing = np.isnan(without_only_samples(np.zeros((5, 3)), y, code, weights, np.arange(5)))
    assert_array_equal(np.argwhere(missing), [[0, 0], [2, 2]])


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_rows_of_the_kernel_from_features(kernel, as_type):
    """Without a kernel matrix of all samples, scores are the same up to the solver's tolerance."""
    X, y = wine()
    machine, code = SVC(kernel=kernel, gamma=0.1, tol=1e-7), codes.one_vs_rest(3)
    _, _, expected = left_out(machine, as_type(X), y, code)
    machine.set_params(cache_size=0.01)
    bank, _, by_rows = left_out(machine, as_type(X), y, code)
    assert bank.training.problems.source.gram.size == 0
    assert_allclose(by_rows, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Limits(score_bytes=1000), "scores of all columns"),
        (Limits(free_bytes=1000), "free support vectors"),
    ],
)
def test_folds_where_it_would_take_too_much_memory(limits, what):
    """Scores of all columns, though a class is in few: 3 GB for 20,000 rows, 200 classes."""

    class Limited(CoupledSVC):
        def _bank_options(self):
            return {**super()._bank_options(), "limits": limits}

    X, y = wine()
    with pytest.warns(UserWarning, match=rf"{what}.* GB\. 5 folds") as caught:
        model = Limited().fit(X, y)
    assert len(caught) == 1
    assert_array_equal(model.predict_proba(X), CoupledSVC(cv=5).fit(X, y).predict_proba(X))


def test_fewer_rows_than_parts_of_a_kernel_matrix():
    """A few rows may be as large as many."""
    X, y = wine()
    few = np.array([0, 70, 140, 1, 71, 141])
    of_all, in_parts = (
        fit_bank(SVC(), X[few], y[few], codes.one_vs_one(3), MARGIN, limits=limits)
        for limits in (None, Limits(prepared_dense_bytes=8))
    )
    assert_allclose(in_parts.duals.toarray(), of_all.duals.toarray(), rtol=1e-9)


def test_indefinite_kernels_are_not_trusted():
    X, y = wine()
    code = codes.one_vs_one(3)

    def cosines(a, b):
        return np.cos(2.0 * a @ b.T)

    for machine in (SVC(kernel=cosines), SVC(kernel="sigmoid", gamma=1.0)):
        with pytest.raises(Untrusted, match="positive definite"):
            left_out(machine, X, y, code)


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("code", [codes.one_vs_one(3), codes.one_vs_rest(3)])
def test_unfinished_machines_are_not_trusted(code):
    with pytest.raises(Untrusted, match="converged"):
        left_out(SVC(max_iter=1), *wine(), code)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_sparse_as_dense(kernel):
    X, y = wine()
    machine, code = SVC(kernel=kernel, gamma=0.1, tol=1e-8), codes.one_vs_one(3)
    _, _, dense = left_out(machine, X, y, code)
    _, _, thin = left_out(machine, sparse.csr_array(X), y, code)
    assert_allclose(thin, dense, atol=1e-4)


def test_precomputed_as_given():
    X, y = wine()
    code = codes.one_vs_rest(3)
    _, _, given_kernel = left_out(SVC(gamma=0.1, tol=1e-8), X, y, code)
    machine = SVC(kernel="precomputed", tol=1e-8)
    _, _, precomputed = left_out(machine, rbf_kernel(X, gamma=0.1), y, code)
    assert_allclose(precomputed, given_kernel, atol=1e-4)


@pytest.mark.parametrize("n_free", [2, 5, 20])
def test_spans_do_not_change_with_the_origin(n_free):
    X = overlapping(20)[0]
    near, far = (
        spans_of(data @ data.T, np.arange(20) < n_free, sides(20))[0] for data in (X, X + 1e3)
    )
    assert_allclose(far, near, atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_scores_far_from_zero_keep_their_digits(kernel):
    """Single precision would lose them: it is measured what it costs."""
    X, y = wine()
    machine = SVC(kernel=kernel, degree=2, gamma=1e-4, C=0.1)
    bank, scores, left = left_out(machine, X + 1e3, y, codes.one_vs_one(3))
    others = bank.duals.toarray() == 0
    assert others.any()
    assert_allclose(left[others], scores[others], atol=1e-3)


def test_scores_the_wrong_way_round_are_replaced_by_folds():
    """Samples that are nothing like each other: every one is taken for one of the other side."""
    X, y = load_digits(return_X_y=True)
    X, y = scale(X[:300]), y[:300]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CoupledSVC(C=10, gamma=1.0, tol=1e-6).fit(X, y)
    folds = CoupledSVC(C=10, gamma=1.0, tol=1e-6, cv=5).fit(X, y)
    assert_allclose(model.calibration_.slopes_, folds.calibration_.slopes_, rtol=1e-3, atol=1e-4)
