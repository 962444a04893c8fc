"""KernelBank: the same margins as scikit-learn's machines asked one by one."""

from __future__ import annotations

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import naive_svm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, load_wine, make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import scale
from sklearn.svm import SVC, NuSVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledSVC, codes
from manyclass._lib.compiled.blocks import exponentiate
from manyclass.banks import MARGIN, KernelBank, fit_bank
from manyclass.banks.limits import Limits
from manyclass.banks.svm import groups, kernels
from manyclass.banks.svm.gamma import resolve_gamma
from manyclass.banks.svm.kernels import KERNELS, RBFKernel, resolve_kernel

X, y = make_blobs(80, n_features=3, centers=4, cluster_std=4.0, random_state=0)
X_new = make_blobs(50, n_features=3, centers=4, cluster_std=6.0, random_state=1)[0]
PAIRS = codes.one_vs_one(4)
SPARSE = np.array(
    [[1, 1, 0, -1, 1], [-1, 0, 1, -1, 0], [0, -1, 1, 1, 0], [0, -1, -1, 1, -1]], dtype=np.int8
)
SHUFFLED = PAIRS[:, [3, 0, 5, 1, 4, 2]] * np.array([1, -1, -1, 1, -1, 1], dtype=np.int8)
CODES = {
    "one-vs-one": PAIRS,
    "shuffled": SHUFFLED,
    "one-vs-rest": codes.one_vs_rest(4),
    "sparse": SPARSE,
    "sparse-random": codes.sparse_random(4, random_state=0),
}


def laplacian(a, b):
    return np.exp(-0.2 * np.abs(a[:, None] - b).sum(axis=2))


MACHINES = {
    "rbf": SVC(C=2.0, gamma=0.05, tol=1e-8),
    "poly": SVC(kernel="poly", degree=2, gamma=0.05, coef0=1.0, tol=1e-8),
    "cubic": SVC(kernel="poly", gamma=0.05, coef0=0.5, tol=1e-8),
    "linear": SVC(C=1e-3, kernel="linear", tol=1e-7),
    "sigmoid": SVC(kernel="sigmoid", gamma=0.01, coef0=0.3, tol=1e-8),
    "callable": SVC(kernel=laplacian, tol=1e-8),
    "nu": NuSVC(nu=0.3, gamma=0.05, tol=1e-8),
    "class weights": SVC(gamma=0.05, class_weight={0: 2.0, 1: 0.7}, tol=1e-8),
    "balanced": SVC(gamma=0.05, class_weight="balanced", tol=1e-8),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS would only wait for each other."""
    with threadpool_limits(1):
        yield


def bank_of(machine, X=X, y=y, code=PAIRS, **options):
    bank = fit_bank(machine, X, y, code, MARGIN, **options)
    assert type(bank) is KernelBank
    return bank


# -- scores, one by one ----------------------------------------------------------------


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_scores_are_those_of_single_machines(machine, code):
    if machine.kernel == "sigmoid":
        pytest.skip("an indefinite kernel's solution depends on the order of the samples")
    expected = naive_svm.scores(machine, X, y, code, X_new)
    atol = 5e-3 if machine.kernel == "poly" else 2e-6  # LIBSVM keeps the kernel in float32
    assert_allclose(bank_of(machine, code=code).scores(X_new), expected, atol=atol)


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_weighted_scores(code):
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    machine = MACHINES["rbf"]
    expected = naive_svm.scores(machine, X, y, code, X_new, weights=weights)
    bank = bank_of(machine, code=code, fit_params={"sample_weight": weights})
    assert_allclose(bank.scores(X_new), expected, atol=1e-6)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_gamma_is_that_of_all_rows(gamma, as_type):
    fitted = SVC(gamma=gamma).fit(X, y)
    assert resolve_gamma(gamma, as_type(X)) == pytest.approx(fitted._gamma, rel=1e-12)
    bank = bank_of(SVC(gamma=gamma), as_type(X), code=SPARSE, rows=np.arange(0, 80, 2))
    assert bank.kernel.gamma == pytest.approx(fitted._gamma, rel=1e-12)


def test_gamma_of_constant_rows():
    assert resolve_gamma("scale", np.ones((4, 2))) == 1.0


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(["rbf", "poly", "linear", "sigmoid"]),
    st.floats(0.001, 2.0),
    st.sampled_from([1, 2, 3, 4, 2.5]),
    st.floats(0.0, 2.0),
)
def test_kernels_are_scikit_learns(name, gamma, degree, coef0):
    from sklearn.metrics.pairwise import pairwise_kernels

    a, b = np.abs(X[:7]), np.abs(X_new[:5])
    params = {"gamma": gamma, "degree": degree, "coef0": coef0}
    expected = pairwise_kernels(a, b, metric=name, filter_params=True, **params)
    kernel = resolve_kernel(SVC(kernel=name, **params), float)
    assert type(kernel) is KERNELS[name] and kernel.for_svc == name
    assert_allclose(kernel(a, b), expected, rtol=1e-9, atol=1e-12)
    thin = kernel(sparse.csr_array(a), sparse.csr_array(b))
    assert_allclose(thin, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", ["gaussian", None, ["rbf"]])
def test_unknown_kernels(kernel):
    machine = SVC(kernel=kernel)
    with pytest.raises(ValueError, match="kernel must be one of 'linear', .* or a callable, got"):
        bank_of(machine)


def test_kernels_tell_what_they_read():
    kernels = [resolve_kernel(SVC(kernel=name, gamma=1.0), float) for name in (*KERNELS, laplacian)]
    assert [kernel.numeric for kernel in kernels] == [True] * 4 + [False] * 2
    assert [kernel.precomputed for kernel in kernels] == [False] * 4 + [True, False]
    assert [kernel.takes_any_rows for kernel in kernels] == [False] * 5 + [True]


@settings(deadline=None, max_examples=25)
@given(st.lists(st.floats(-1e4, 50.0), min_size=1, max_size=40))
def test_exponentials(values):
    expected, answer = np.exp(np.maximum(values, -708.0)), np.array(values)
    exponentiate(answer)
    assert_allclose(answer, expected, rtol=2e-15)


def test_exponentials_at_the_ends():
    values = np.array([-np.inf, -708.5, -0.0, 5e-324, np.nan])
    exponentiate(values)
    assert_allclose(values, [0.0, 0.0, 1.0, 1.0, np.nan], atol=1e-300)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("density", [0.0, 0.1, 0.9])
def test_sparse_and_dense_coefficients(dtype, density):
    """Below and above the share of non-zeros where a matrix product takes over."""
    rng = np.random.default_rng(0)
    columns, K = np.array([0, 2, 5]), rng.random((30, 7)).astype(dtype)
    coef = np.zeros((30, 6), dtype)
    coef[:, columns] = rng.normal(size=(30, 3)) * (rng.random((30, 3)) < density)
    sums = np.ones((6, 7), dtype)
    rows = sparse.csr_array(coef)
    groups._adder(rows.indptr, rows.indices, rows.data, columns, 6)(K, sums)
    assert_allclose(sums, 1.0 + coef.T @ K, rtol=0, atol=30 * np.finfo(dtype).eps)


def test_sparse_coefficients_of_many_classes():
    """32 classes: a support vector takes part in few pairs, and zeros are not multiplied."""
    grid = np.array([(a, b) for a in range(8) for b in range(4)]) * 6.0
    labels = np.repeat(np.arange(32), 20)
    rows = grid[labels] + np.random.default_rng(0).normal(size=(640, 2))
    code, machine = codes.one_vs_one(32), SVC(C=100.0, kernel="linear", tol=1e-8)
    expected = naive_svm.scores(machine, rows, labels, code, rows[::9])
    for chunk in (3, 512):
        bank = bank_of(machine, rows, labels, code, limits=Limits(chunk=chunk))
        shares = [group.duals.nnz / (31 * len(group.support)) for group in bank.groups]
        assert np.median(shares) < 0.25  # a matrix product takes over at 0.3
        for scores in (bank.scores(rows[::9]), bank.margins_once(rows[::9])):
            assert_allclose(scores, expected, rtol=1e-4, atol=1e-3)  # its kernel is float32


def test_far_from_the_origin():
    """Distances are measured from the support vectors' mean: nothing cancels."""
    bank = bank_of(MACHINES["rbf"], X + 1e4)
    assert_allclose(bank.scores(X_new + 1e4), bank_of(MACHINES["rbf"]).scores(X_new), atol=1e-5)
    single = bank.scorer(np.float32)(X_new + 1e4)
    assert np.isfinite(single).all()


def outliers(rows, size, seed):
    """Rows with some of them far away, on either side and next to each other."""
    rng = np.random.default_rng(seed)
    return rows + size * rng.choice([0.0, 0.0, 0.0, 1.0, -1.0], len(rows))[:, None]


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([0.0, 1e2, 1e4, 1e6, 1e9]),
    st.sampled_from([0.0, 1e3, 1e7]),
    st.floats(0.001, 5.0),
    st.integers(0, 999),
    st.sampled_from(["dense", "sparse", "mixed"]),
)
def test_distances_do_not_cancel(size, shift, gamma, seed, how):
    a, b = outliers(X[:20], size, seed) + shift, outliers(X_new[:20], size, seed + 1) + shift
    b[:5] = a[:5]
    as_rows = np.asarray if how == "dense" else sparse.csr_array
    as_columns = sparse.csr_array if how == "sparse" else np.asarray
    K = RBFKernel(gamma)(as_rows(a), as_columns(b))
    assert_allclose(K, naive_svm.rbf(a, b, gamma), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_far_rows_have_nonzero_features_of_their_own(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 20, 4)) * rng.choice([0.0, 1.0], (2, 20, 4))
    a, b = 1e9 * a, 1e9 * a + b  # the differences are small, so the exponentials are not 0
    K = RBFKernel(0.1)(sparse.csr_array(a), sparse.csr_array(b))
    assert_allclose(K, naive_svm.rbf(a, b, 0.1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("gamma", [0.05, 1.0, "scale"])
@pytest.mark.parametrize(("size", "shift"), [(1e6, 0.0), (1e4, 0.0), (0.0, 1e3), (1e3, 1e5)])
def test_scores_of_outliers_are_those_of_svc(size, shift, gamma, as_type):
    rows = as_type(outliers(X, size, 0) + shift)
    bank = bank_of(SVC(C=10.0, gamma=gamma, tol=1e-7), rows)
    known, gamma = outliers(X, size, 0) + shift, bank.kernel.gamma
    machine = SVC(C=10.0, kernel="precomputed", tol=1e-7, decision_function_shape="ovo")
    expected = machine.fit(naive_svm.rbf(known, known, gamma), y)  # LIBSVM's distances cancel
    for data in (known, outliers(X_new, size, 0) + shift):
        margins = expected.decision_function(naive_svm.rbf(data, known, gamma))
        assert_allclose(bank.scores(as_type(data)), margins, rtol=0, atol=2e-3)


def test_one_sample_far_away_does_not_slow_the_others(monkeypatch):
    """All others are measured from where they are."""
    data = X.copy()
    data[3] = 1e6
    bank, sizes = bank_of(MACHINES["rbf"], data), []
    measure = kernels.measure_far
    monkeypatch.setattr(kernels, "measure_far", lambda *args: sizes.append(1) or measure(*args))
    bank.scores(X_new)
    assert len(sizes) == 1  # of four classes


def test_squares_that_are_infinite():
    rows = X.copy()
    rows[3], rows[4] = 1e200, -1e200
    with np.errstate(over="ignore", invalid="ignore"):
        K = RBFKernel(0.5)(rows, rows)
    assert_allclose(K[np.ix_([3, 4], [3, 4])], np.eye(2), atol=1e-300)
    assert_allclose(np.delete(K, [3, 4], axis=0)[:, [3, 4]], 0.0, atol=1e-300)


def test_rows_that_cannot_be_written_to():
    rows = outliers(X, 1e4, 0)
    rows.flags.writeable = False
    expected = naive_svm.rbf(rows, rows, 0.5)
    assert_allclose(RBFKernel(0.5)(rows, rows), expected, atol=1e-12)
    assert_allclose(RBFKernel(0.5)(np.asfortranarray(rows), rows), expected, atol=1e-12)
    unsorted = sparse.csr_array(rows)
    unsorted.indices = unsorted.indices.reshape(-1, 3)[:, ::-1].ravel().copy()
    unsorted.data = unsorted.data.reshape(-1, 3)[:, ::-1].ravel().copy()
    unsorted.has_sorted_indices = False
    unsorted.has_canonical_format = False
    before = unsorted.indices.copy()
    assert_allclose(RBFKernel(0.5)(unsorted, unsorted), expected, atol=1e-12)
    assert_array_equal(unsorted.indices, before)


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "sigmoid"])
@pytest.mark.parametrize("code", [PAIRS, SPARSE])
def test_sparse_as_dense(name, code):
    dense = bank_of(MACHINES[name], code=code).scores(X_new)
    bank = bank_of(MACHINES[name], sparse.csr_array(X), code=code)
    assert_allclose(bank.scores(sparse.csr_array(X_new)), dense, atol=1e-6)
    assert_allclose(bank.scores(sparse.coo_matrix(X_new)), dense, atol=1e-6)
    assert_allclose(bank.scores(X_new), dense, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        "rbf",
        "poly",
        "linear",
        "sigmoid",
    ],
)
def test_sparse_rows_for_dense_machines(name):
    bank = bank_of(MACHINES[name])
    assert_allclose(bank.scores(sparse.csr_array(X_new)), bank.scores(X_new), atol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "callable", "nu"])
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
def test_single_precision(name, as_type):
    if name == "callable" and as_type is sparse.csr_array:
        pytest.skip("the kernel is for arrays")
    double = bank_of(MACHINES[name]).scores(X_new)
    bank = bank_of(MACHINES[name], as_type(X), dtype=np.float32)
    single = bank.scores(as_type(X_new))
    assert single.dtype == np.float64
    assert 0 < np.abs(single - double).max() < 1e-3 * max(1.0, np.abs(double).max())


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
def test_few_support_vectors_stay_prepared(name, as_type):
    bank = bank_of(MACHINES[name], as_type(X))
    stored, expected = pickle.dumps(bank), bank.scores(as_type(X_new))
    dtype, prepared = bank.kept
    assert dtype is np.float64 and len(prepared) == 4
    assert_array_equal(bank.scores(as_type(X_new)), expected)
    assert bank.kept[1] is prepared and pickle.dumps(bank) == stored
    single = bank.scorer(np.float32)(as_type(X_new))
    assert 0 < np.abs(single - expected).max() < 1e-3 * np.abs(expected).max()
    assert_array_equal(bank.scores(as_type(X_new)), expected)
    bank = bank_of(MACHINES[name], as_type(X), limits=Limits(kept_bytes=0))
    assert_array_equal(bank.scores(as_type(X_new)), expected)
    assert bank.kept is None
    assert pickle.dumps(bank) == stored  # without limits


def test_blocks_and_chunks_change_nothing():
    expected = bank_of(MACHINES["rbf"], code=SPARSE).scores(X_new)
    bank = bank_of(MACHINES["rbf"], code=SPARSE, limits=Limits(chunk=3, most_rows=64))
    many = np.tile(X_new, (3, 1))
    assert_allclose(bank.scores(many), np.tile(expected, (3, 1)), atol=1e-10)


def test_one_column_at_a_time():
    machine = MACHINES["rbf"]
    bank = bank_of(machine, code=SPARSE)
    for column, model in enumerate(bank.models):
        used, target = naive_svm.column_rows(y, SPARSE[:, column])
        alone = SVC(**machine.get_params()).fit(X[used], target)
        assert_array_equal(np.sort(model.support_), np.sort(np.array(used)[alone.support_]))
        assert_allclose(model.decision_function(X_new), alone.decision_function(X_new), atol=1e-6)
        assert_allclose(model.intercept_, alone.intercept_, atol=1e-6)
        assert_allclose(np.sort(model.dual_coef_), np.sort(alone.dual_coef_), atol=1e-5)
        assert_array_equal(model.predict(X_new), alone.predict(X_new))


# -- rows and classes that are missing -------------------------------------------------


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_rows(code):
    rows = np.random.default_rng(0).permutation(80)[:50]
    expected = naive_svm.scores(MACHINES["rbf"], X, y, code, X_new, np.sort(rows))
    bank = bank_of(MACHINES["rbf"], code=code, rows=np.sort(rows))
    assert_allclose(bank.scores(X_new), expected, atol=1e-6)


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize("absent", [(0,), (2,), (0, 3), (1, 2, 3)])
def test_missing_classes(code, absent):
    rows = np.flatnonzero(~np.isin(y, absent))
    expected = naive_svm.scores(MACHINES["rbf"], X, y, code, X_new, rows)
    by_rows = bank_of(MACHINES["rbf"], code=code, rows=rows)
    assert_allclose(by_rows.scores(X_new), expected, atol=1e-6)
    assert_array_equal(by_rows.constant, (expected == expected[0]).all(axis=0))
    weights = np.where(np.isin(y, absent), 0.0, 1.0)
    by_weight = bank_of(MACHINES["rbf"], code=code, fit_params={"sample_weight": weights})
    assert_allclose(by_weight.scores(X_new), expected, atol=1e-6)


# -- precomputed kernels ---------------------------------------------------------------


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_precomputed(code):
    K, K_new = rbf_kernel(X, gamma=0.05), rbf_kernel(X_new, X, gamma=0.05)
    machine = SVC(C=2.0, kernel="precomputed", tol=1e-8)
    rows = np.arange(0, 80, 2)
    for some in (None, rows):
        expected = naive_svm.scores(machine, K, y, code, K_new, some)
        bank = bank_of(machine, K, code=code, rows=some)
        assert_allclose(bank.scores(K_new), expected, atol=1e-6)


# -- copies, threads, memory -----------------------------------------------------------


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
def test_pickled_bits(as_type):
    bank = bank_of(MACHINES["rbf"], as_type(X), code=SPARSE)
    again = pickle.loads(pickle.dumps(bank))
    assert_array_equal(again.scores(as_type(X_new)), bank.scores(as_type(X_new)))
    assert_array_equal(again.models[1].decision_function(X_new), bank.scores(X_new)[:, 1])


def test_two_threads_give_the_same_bits():
    digits, labels = load_digits(return_X_y=True)
    model = CoupledSVC(C=10, gamma=0.001).fit(digits[:300], labels[:300])
    expected = model.predict_proba(digits[300:])
    with ThreadPoolExecutor(2) as pool:
        for answer in pool.map(model.predict_proba, [digits[300:]] * 4):
            assert_array_equal(answer, expected)


@pytest.mark.parametrize(
    "params",
    [{"cv": 3}, {"code": "one-vs-rest", "combiner": "normalize"}],
    ids=["folds", "one-vs-rest"],
)
def test_jobs_do_not_change_bits(params):
    data, labels = load_wine(return_X_y=True)
    data = scale(data)
    one, two = (
        CoupledSVC(gamma=0.1, n_jobs=n_jobs, **params).fit(data, labels).predict_proba(data)
        for n_jobs in (1, 2)
    )
    assert_array_equal(one, two)


def test_scores_of_many_rows_need_little_memory():
    rng = np.random.default_rng(0)
    many, labels = rng.normal(size=(20_000, 4)), np.arange(600) % 10
    bank = bank_of(SVC(), many[:600] + labels[:, None], labels, codes.one_vs_one(10))
    tracemalloc.start()
    try:
        out = bank.scores(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert out.shape == (20_000, 45)
    assert peak - out.nbytes < 20e6
