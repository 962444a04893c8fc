"""CoupledSVC in place of SVC: weights, attributes, and what is refused."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from all_pairs import all_pairs
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import make_blobs
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledSVC, codes

X, y = make_blobs([30, 20, 12, 18], n_features=3, cluster_std=4.0, random_state=0)
X_new = make_blobs(50, n_features=3, centers=4, cluster_std=6.0, random_state=1)[0]
names = np.array(["dog", "ant", "cat", "bee"])[y]
TWO = y < 2
# Two solvers stop at different points within ``tol``, and LIBSVM keeps the kernel in float32: the
# margins of SVC have an error of about 1e-7 C.
OVO = {"gamma": 0.05, "decision_function_shape": "ovo", "tol": 1e-9}
rng = np.random.default_rng(0)
UNEVEN = rng.uniform(0.2, 3.0, len(y))
GAPS = np.where(rng.random(len(y)) < 0.2, 0.0, UNEVEN)
NEGATIVE = np.where(GAPS == 0, -1.0, GAPS)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def both(params, data, labels, weights=None):
    return [kind(**params).fit(data, labels, weights) for kind in (CoupledSVC, SVC)]


# -- weights ---------------------------------------------------------------------------

CLASS_WEIGHTS = {
    "balanced": "balanced",
    "some": {"dog": 3.0, "ant": 0.3},
    "all": {"dog": 0.7, "ant": 0.1, "cat": 3.3, "bee": 1.9},
    "none": None,
}
SAMPLE_WEIGHTS = {"none": None, "uneven": UNEVEN, "gaps": GAPS, "negative": NEGATIVE}


@all_pairs(
    class_weight=CLASS_WEIGHTS,
    sample_weight=SAMPLE_WEIGHTS,
    C=[0.1, 1.0, 3.7, 100.0],
    as_type=[np.asarray, sparse.csr_matrix],
)
def test_weights_of_svc(class_weight, sample_weight, C, as_type):
    params = {**OVO, "C": C, "class_weight": class_weight, "cv": 2}
    theirs = {name: value for name, value in params.items() if name != "cv"}
    model = CoupledSVC(**params).fit(as_type(X), names, sample_weight)
    expected = SVC(**theirs).fit(as_type(X), names, sample_weight)
    margins = expected.decision_function(as_type(X_new))
    assert_allclose(model.decision_function(as_type(X_new)), margins, rtol=0, atol=1e-5)
    assert_array_equal(model.class_weight_, expected.class_weight_)


@pytest.mark.parametrize("labels", [TWO, y >= 0], ids=["k=2", "k=4"])
def test_weights_of_both_kinds_multiply(labels):
    params = {**OVO, "C": 3.7, "class_weight": {"dog": 3.0, "ant": 0.3}}
    model, expected = both(params, X[labels], names[labels], UNEVEN[labels])
    margins = expected.decision_function(X_new)
    assert_allclose(model.decision_function(X_new), margins, rtol=0, atol=1e-5)


@pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
def test_class_weights_move_the_bounds_of_leave_one_out(code):
    """They are as good as weights of samples, up to the last bits that the solver works with."""
    params = {"gamma": 0.05, "C": 2.0, "code": code, "combiner": "kl", "tol": 1e-9}
    of_class = {0: 2.0, 1: 0.3, 2: 1.7}
    weights = UNEVEN * np.array([of_class.get(label, 1.0) for label in y])
    model = CoupledSVC(**params, class_weight=of_class).fit(X, y, UNEVEN)
    expected = CoupledSVC(**params).fit(X, y, weights)
    assert_allclose(model.predict_proba(X_new), expected.predict_proba(X_new), atol=1e-6)
    slopes = model.calibration_.slopes_
    assert_allclose(slopes, expected.calibration_.slopes_, rtol=1e-5)


def test_negative_weights_are_no_samples_as_in_svc():
    used = NEGATIVE > 0
    model = CoupledSVC(**OVO).fit(X, y, NEGATIVE)
    without = CoupledSVC(**OVO).fit(X[used], y[used], NEGATIVE[used])
    assert_allclose(model.bank_.scores(X_new), without.bank_.scores(X_new), atol=1e-12)
    assert used[model.support_].all()
    given = NEGATIVE.copy()
    CoupledSVC(**OVO).fit(X, y, given)
    assert_array_equal(given, NEGATIVE)


@pytest.mark.parametrize("weights", [np.zeros(80), -np.ones(80)], ids=["zero", "negative"])
def test_weights_that_leave_nothing(weights):
    for kind in (SVC, CoupledSVC):
        with pytest.raises(ValueError, match="[Ww]eight|sample_weight"):
            kind().fit(X, y, weights)


@pytest.mark.parametrize("rows", [TWO, y >= 0], ids=["k=2", "k=4"])
def test_weights_that_leave_one_class(rows):
    """SVC refuses them; here the one class is all there is to answer."""
    model = CoupledSVC().fit(X[rows], y[rows], np.where(y[rows] == 1, 1.0, -1.0))
    assert_array_equal(model.predict(X_new), 1)


def test_weights_that_cannot_be_used():
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="sample_weight contains"):
            CoupledSVC().fit(X, y, np.where(np.arange(80) == 3, wrong, 1.0))
    with pytest.raises(ValueError, match="class_weight of class 1 is -2.0"):
        CoupledSVC(class_weight={1: -2.0}).fit(X, y)
    with pytest.raises(ValueError, match="not in class_weight"):
        CoupledSVC(class_weight={"mouse": 2.0}).fit(X, names)


# -- attributes ------------------------------------------------------------------------

EQUAL = {
    "class_weight_",
    "classes_",
    "coef_",
    "dual_coef_",
    "fit_status_",
    "intercept_",
    "n_features_in_",
    "feature_names_in_",
    "n_iter_",
    "support_",
    "support_vectors_",
    "n_support_",
    "shape_fit_",
}
SIGMOIDS = {"probA_", "probB_"}
"""Of the same form, but other values: LIBSVM's are from folds that it draws."""


def documented(kind) -> set[str]:
    attributes = re.split(r"\n    See Also\n|\n    Notes\n", kind.__doc__.split("Attributes\n")[1])[
        0
    ]
    return set(re.findall(r"^    (\w+_) : ", attributes, re.MULTILINE))


def test_all_that_svc_documents_is_known():
    assert documented(SVC) <= EQUAL | SIGMOIDS


@pytest.mark.parametrize("rows", [TWO, y >= 0], ids=["k=2", "k=4"])
@pytest.mark.parametrize("as_type", [pd.DataFrame, sparse.csr_matrix], ids=["frame", "sparse"])
def test_attributes_are_those_of_svc(as_type, rows):
    data = as_type(X[rows])
    if as_type is pd.DataFrame:
        data.columns = ["a", "b", "c"]
    params = {"kernel": "linear", "C": 0.1, "class_weight": "balanced", "tol": 1e-9}
    model, expected = both(params, data, names[rows])
    for name in EQUAL:
        assert hasattr(model, name) == hasattr(expected, name), name
        if not hasattr(expected, name):
            continue
        ours, theirs = getattr(model, name), getattr(expected, name)
        assert type(ours) is type(theirs), name
        if sparse.issparse(ours):
            ours, theirs = ours.toarray(), theirs.toarray()
        if np.asarray(ours).dtype.kind == "f":
            assert_allclose(ours, theirs, rtol=0, atol=1e-5, err_msg=name)
        else:
            if name != "n_iter_":  # the steps of another solver
                assert_array_equal(ours, theirs, err_msg=name)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name


@pytest.mark.parametrize("data", [[["a"], ["b"]] * 9, ["a", "b"] * 9, np.zeros((18, 2, 4))])
def test_shapes_of_samples_of_any_type(data):
    params = {"kernel": lambda A, B: np.ones((len(A), len(B)))}
    labels = [0, 1, 2] * 6
    shapes = [kind(**params).fit(data, labels).shape_fit_ for kind in (CoupledSVC, SVC)]
    assert shapes[0] == shapes[1]


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.filterwarnings("ignore:analytic leave-one-out is not used")
@pytest.mark.parametrize("max_iter", [1, 20, 31, 10_000])
def test_the_status_is_one_if_any_machine_stopped_early(max_iter):
    model, expected = both({"gamma": 0.05, "max_iter": max_iter}, X, y)
    assert model.fit_status_ == expected.fit_status_
    assert (model.n_iter_ <= max_iter).all()


@pytest.mark.parametrize("rows", [TWO, y >= 0], ids=["k=2", "k=4"])
def test_sigmoids_are_those_of_first_classes(rows):
    k = len(np.unique(y[rows]))
    pairs = codes.one_vs_one(k)
    flipped = pairs[:, ::-1] * np.where(np.arange(pairs.shape[1]) % 2, 1, -1).astype(np.int8)
    for code in ("one-vs-one", flipped):
        model = CoupledSVC(**OVO, code=code).fit(X[rows], y[rows])
        margins = model.decision_function(X_new).reshape(len(X_new), -1) * (1 if k > 2 else -1)
        r = model.calibration_.transform(model.bank_.scores(X_new))
        first = expit(-(model.probA_ * margins + model.probB_))
        expected = r if code is not flipped else np.where(np.arange(r.shape[1]) % 2, r, 1 - r)
        assert_allclose(first, expected if code is not flipped else expected[:, ::-1], atol=1e-12)
        assert np.median(model.probA_) < 0


def test_sigmoids_that_are_not_there():
    others = {"calibration": "isotonic"}, {"calibration": "robust-sigmoid"}
    for params in (*others, {"code": "one-vs-rest", "combiner": "kl"}):
        model = CoupledSVC(**params).fit(X, y)
        assert not hasattr(model, "probA_")
        assert not hasattr(model, "probB_")


# -- parameters ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"decision_function_shape": "ova"},
        {"break_ties": "yes"},
        {"probability": 2},
        {"class_weight": "even"},
        {"C": 0.0},
        {"C": -1},
        {"kernel": "gaussian"},
        {"gamma": -1.0},
        {"gamma": "small"},
        {"degree": -1},
        {"coef0": np.inf},
        {"tol": 0.0},
        {"shrinking": "no"},
        {"cache_size": 0},
        {"max_iter": -2},
        {"verbose": -1},
        {"random_state": "seed"},
    ],
    ids=str,
)
def test_what_svc_refuses_in_fit_is_refused_there(wrong):
    (name,) = wrong
    for kind in (SVC, CoupledSVC):
        with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__} must be"):
            kind(**wrong).fit(X, y)


def test_without_a_bound():
    """SVC takes C=np.inf; no coefficient is at its bound then."""
    data, labels = make_blobs(60, centers=3, cluster_std=1.0, random_state=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        limit, expected = (CoupledSVC(C=C).fit(data, labels) for C in (np.inf, 1e12))
    assert_allclose(limit.predict_proba(data), expected.predict_proba(data), atol=1e-8)


READ_ONLY = "support_ support_vectors_ n_support_ dual_coef_ intercept_ coef_ n_iter_ probA_ probB_"


@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", READ_ONLY.split())
def test_arrays_that_are_computed_are_read_only(name, as_type):
    value = getattr(CoupledSVC(kernel="linear", cv=2).fit(as_type(X), y), name)
    for array in (value.data, value.indices, value.indptr) if sparse.issparse(value) else (value,):
        with pytest.raises(ValueError, match="read-only"):
            array[..., 0] = 99


def test_a_missing_coef_is_explained():
    with pytest.raises(AttributeError, match="only available with kernel='linear'"):
        _ = CoupledSVC(cv=2).fit(X, y).coef_
    with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported: pass X.to"):
        CoupledSVC(kernel="precomputed").fit(sparse.csr_matrix(X @ X.T), y)
