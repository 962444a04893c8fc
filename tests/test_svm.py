"""CoupledSVC: in place of SVC, its probabilities, and where leave-one-out gives way to folds."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from all_pairs import checks_in_turn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.preprocessing import scale
from sklearn.svm import SVC, NuSVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, codes, couple
from manyclass.banks import KernelBank
from manyclass.calibration import Isotonic, RobustSigmoid, Sigmoid

X, y = make_blobs(80, n_features=3, centers=4, cluster_std=2.0, random_state=0)
X_new = make_blobs(50, n_features=3, centers=4, cluster_std=6.0, random_state=1)[0]
names = np.array(["dog", "ant", "cat", "bee"])[y]
TWO = y < 2


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def laplacian(a, b):
    return np.exp(-0.2 * np.abs(a[:, None] - b).sum(axis=2))


# The default has all checks. The others take turns.
@checks_in_turn(
    [CoupledSVC()],
    [
        CoupledSVC(cv=3, code="one-vs-rest", combiner="normalize"),
        CoupledSVC(kernel="linear", C=0.1),
        CoupledSVC(calibration="robust-sigmoid"),
    ],
    expected_failed_checks=lambda estimator: {},
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(6))
def test_duplicates_do_not_make_a_kernel_look_indefinite(seed):
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 10, (90, 1)).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("default", "analytic leave-one-out is not used in")
        CoupledSVC().fit(few, few[:, 0] // 4 + rng.integers(0, 2, 90))


# -- in place of SVC -------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"probability": True},
        {"probability": False},
        {"C": 3.0},
        {"kernel": "linear", "C": 0.01},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.05},
        {"gamma": 0.2},
        {"gamma": "auto"},
        {"shrinking": False},
        {"tol": 1e-5},
        {"cache_size": 50},
        {"class_weight": "balanced"},
        {"class_weight": {0: 2.0}},
        {"verbose": False},
        {"max_iter": 100_000},
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
        {"random_state": 0},
    ],
    ids=str,
)
def test_parameters_of_svc(changed):
    old = SVC(**{"gamma": 0.1, "tol": 1e-9, **changed})
    model = CoupledSVC(**old.get_params()).fit(X, y)
    p = model.predict_proba(X_new)
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert_array_equal(model.predict(X_new), model.classes_[p.argmax(axis=1)])
    plain = {name: v for name, v in changed.items() if name != "probability"}
    ovo = {"decision_function_shape": "ovo"}
    expected = SVC(**{"gamma": 0.1, "tol": 1e-9, **plain, **ovo}).fit(X, y)
    margins, tol = expected.decision_function(X_new), expected.tol
    assert_allclose(model.bank_.scores(X_new), margins, atol=max(10 * tol, 1e-4))


def test_has_all_parameters_of_svc_with_its_defaults():
    ours, theirs = CoupledSVC().get_params(), SVC().get_params()
    assert theirs.keys() <= ours.keys()
    for name in theirs.keys() - {"probability"}:
        assert ours[name] == theirs[name]


KERNELS = {
    "rbf": {"gamma": 0.05},
    "scale": {},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.05, "coef0": 1.0},
    "linear": {"kernel": "linear", "C": 0.01},
    "callable": {"kernel": laplacian},
}  # An indefinite kernel has several solutions, so sigmoid is not among them.


@pytest.mark.parametrize("params", KERNELS.values(), ids=KERNELS)
def test_margins_of_svc(params):
    params = {"decision_function_shape": "ovo", "tol": 1e-9, **params}
    model, expected = CoupledSVC(cv=3, **params).fit(X, names), SVC(**params).fit(X, names)
    assert_allclose(  # LIBSVM keeps the kernel in float32
        model.decision_function(X_new), expected.decision_function(X_new), rtol=0, atol=1e-4
    )


def test_margins_of_svc_with_a_precomputed_kernel():
    K, K_new = rbf_kernel(X, gamma=0.05), rbf_kernel(X_new, X, gamma=0.05)
    params = {"kernel": "precomputed", "decision_function_shape": "ovo", "tol": 1e-9}
    model, expected = CoupledSVC(**params).fit(K, y), SVC(**params).fit(K, y)
    assert_allclose(model.decision_function(K_new), expected.decision_function(K_new), atol=1e-7)


@pytest.mark.parametrize("cv", ["loo", 3])
@pytest.mark.parametrize("as_type", [sparse.csr_matrix, sparse.csr_array])
def test_callable_kernels_of_sparse_rows(as_type, cv):
    """Their values may be sparse, too."""
    given = CoupledSVC(kernel=lambda a, b: a @ b.T, C=0.1, cv=cv).fit(as_type(X), y)
    expected = CoupledSVC(kernel="linear", C=0.1, cv=cv).fit(as_type(X), y)
    assert_allclose(
        given.predict_proba(as_type(X_new)), expected.predict_proba(as_type(X_new)), atol=1e-3
    )


def test_margins_of_svc_with_two_classes():
    params = {"gamma": 0.05, "decision_function_shape": "ovo", "tol": 1e-9}
    model, expected = (kind(**params).fit(X[TWO], y[TWO]) for kind in (CoupledSVC, SVC))
    assert_allclose(model.decision_function(X_new), expected.decision_function(X_new), atol=1e-7)


@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["k=2", "k=4"])
def test_margins_of_no_rows(rows):
    model = CoupledSVC(decision_function_shape="ovo").fit(X[rows], y[rows])
    assert model.decision_function(X[:0]).shape == ((0,) if rows is TWO else (0, 6))


def dense(array):
    return array.toarray() if sparse.issparse(array) else array


@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["k=2", "k=4"])
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_attributes_of_svc(rows, as_type, kernel):
    params = {"kernel": kernel, "gamma": 0.05, "C": 0.1, "tol": 1e-9}
    data = as_type(X[rows])
    model, expected = (kind(**params).fit(data, names[rows]) for kind in (CoupledSVC, SVC))
    attributes = ["support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_"]
    for name in [*attributes, "classes_"] + ["coef_"] * (kernel == "linear"):
        ours, theirs = getattr(model, name), getattr(expected, name)
        assert sparse.issparse(ours) == sparse.issparse(theirs), name
        ours, theirs = dense(ours), dense(theirs)
        assert ours.shape == theirs.shape, name
        if ours.dtype.kind == "f":
            assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            assert_array_equal(ours, theirs, err_msg=name)
    if kernel == "rbf":
        assert not hasattr(model, "coef_")


@pytest.mark.parametrize("rows", [TWO, slice(None)], ids=["k=2", "k=4"])
def test_pairs_in_any_order_either_way_round_are_those_of_svc(rows):
    params = {"kernel": "linear", "C": 0.1, "tol": 1e-9, "decision_function_shape": "ovo"}
    pairs = codes.one_vs_one(len(np.unique(y[rows])))
    signs = [-1, 1, 1, -1, 1, -1][: pairs.shape[1]]
    code = pairs[:, ::-1] * np.array(signs, dtype=np.int8)
    model = CoupledSVC(**params, code=code).fit(X[rows], y[rows])
    expected = SVC(**params).fit(X[rows], y[rows])
    for name in ("dual_coef_", "intercept_", "coef_"):
        assert_allclose(getattr(model, name), getattr(expected, name), atol=1e-5, err_msg=name)
    assert_allclose(model.decision_function(X_new), expected.decision_function(X_new), atol=1e-5)


def test_margins_follow_from_the_attributes_with_two_classes():
    model = CoupledSVC(kernel="linear", C=0.1).fit(X[TWO], y[TWO])
    margin = X_new @ model.coef_[0] + model.intercept_
    assert ((margin > 0) == (SVC(kernel="linear", C=0.1).fit(X[TWO], y[TWO]).predict(X_new))).all()
    order = np.argsort(margin)
    assert (np.diff(model.predict_proba(X_new)[order, 1]) >= 0).all()


@pytest.mark.parametrize("name", ["support_", "coef_", "dual_coef_", "intercept_", "n_support_"])
def test_attributes_need_a_fit(name):
    with pytest.raises((NotFittedError, AttributeError)):
        getattr(CoupledSVC(), name)


def test_names_follow_their_columns():
    by_number = CoupledSVC(gamma=0.05).fit(X, y)
    by_name = CoupledSVC(gamma=0.05).fit(X, names)
    assert_array_equal(by_name.classes_, ["ant", "bee", "cat", "dog"])
    order = [1, 3, 2, 0]  # numbers of ant, bee, cat, dog
    assert_allclose(
        by_name.predict_proba(X_new), by_number.predict_proba(X_new)[:, order], atol=1e-6
    )


def test_frames_and_lists():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = CoupledSVC(gamma=0.05).fit(frame, names.tolist())
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    expected = CoupledSVC(gamma=0.05).fit(X.tolist(), names).predict_proba(X_new.tolist())
    new_frame = pd.DataFrame(X_new, columns=["a", "b", "c"])
    assert_array_equal(model.predict_proba(new_frame), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(new_frame[["b", "a", "c"]])


def test_labels_are_mostly_those_of_svc():
    data, labels = load_digits(return_X_y=True)
    model = CoupledSVC(C=10, gamma=0.0005).fit(data[:500], labels[:500])
    expected = SVC(C=10, gamma=0.0005).fit(data[:500], labels[:500]).predict(data[500:1000])
    assert (model.predict(data[500:1000]) == expected).mean() > 0.97


def test_sparse_rows_for_a_model_of_dense_ones():
    model = CoupledSVC(gamma=0.05).fit(X + 3.0, y)
    p = model.predict_proba(sparse.csr_array(X_new + 3.0))
    assert_allclose(p, model.predict_proba(X_new + 3.0), atol=1e-9)


@pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest"])
def test_copies(code):
    combiner = "wlw2" if code == "one-vs-one" else "normalize"
    model = CoupledSVC(gamma=0.05, code=code, combiner=combiner).fit(X, y)
    p = model.predict_proba(X_new)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X_new), p)
    assert_array_equal(clone(model).fit(X, y).predict_proba(X_new), p)


def test_single_precision_probabilities():
    p = CoupledSVC(gamma=0.05).fit(X, y).predict_proba(X_new)
    single = CoupledSVC(gamma=0.05, dtype=np.float32).fit(X, y).predict_proba(X_new)
    assert 0 < np.abs(single - p).max() < 1e-3
    by_name = CoupledSVC(gamma=0.05, dtype="float32").fit(X, y)
    assert_array_equal(by_name.predict_proba(X_new), single)


def test_single_precision_warns_where_it_is_not_enough():
    apart = X + 1e5 * (np.arange(80) % 2)[:, None]
    with pytest.warns(UserWarning, match=r"float32 margins are wrong by up to .*scale the feat"):
        CoupledSVC(
            gamma=0.05, cv=None, calibration=None, combiner="max-wins", dtype=np.float32
        ).fit(apart, y)


@pytest.mark.parametrize("dtype", [np.float16, int, "single precision"])
def test_other_precisions_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be np.float64 or np.float32, got"):
        CoupledSVC(dtype=dtype).fit(X, y)


def test_weights_are_as_good_as_copies():
    counts = np.random.default_rng(0).integers(0, 4, 80)
    params = {"gamma": 0.05, "tol": 1e-8}
    weighted = CoupledSVC(**params).fit(X, y, counts.astype(float))
    repeated = CoupledSVC(**params).fit(X.repeat(counts, axis=0), y.repeat(counts))
    assert_allclose(weighted.bank_.scores(X_new), repeated.bank_.scores(X_new), atol=1e-5)


def test_a_class_without_weight_is_never_predicted():
    p = CoupledSVC(gamma=0.05).fit(X, y, sample_weight=(y != 1).astype(float)).predict_proba(X_new)
    assert (p[:, 1] < 0.01).all()


# -- precomputed kernels among others --------------------------------------------------


def test_precomputed_in_searches():
    data = scale(load_wine().data)[::2]
    labels = load_wine().target[::2]
    K = rbf_kernel(data, gamma=0.05)
    by_kernel = cross_val_predict(
        CoupledSVC(kernel="precomputed"), K, labels, cv=3, method="predict_proba"
    )
    by_data = cross_val_predict(CoupledSVC(gamma=0.05), data, labels, cv=3, method="predict_proba")
    assert_allclose(by_kernel, by_data, atol=1e-3)
    search = GridSearchCV(CoupledSVC(kernel="precomputed"), {"C": [0.01, 1.0]}, cv=3).fit(K, labels)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("shape", [(80, 100), (80, 3)])
def test_precomputed_must_be_square(shape):
    K = np.zeros(shape)
    shared = min(shape)
    K[:, :shared] = rbf_kernel(X, gamma=0.05)[:, :shared]
    with pytest.raises(ValueError, match="square"):
        CoupledSVC(kernel="precomputed").fit(K, y)


# -- leave-one-out and what stands in for it -------------------------------------------


def cosines(a, b):
    return np.cos(2.0 * a @ b.T)


INDEFINITE = {
    "sigmoid": CoupledSVC(kernel="sigmoid", gamma=0.3),
    "callable": CoupledSVC(kernel=cosines),
}
UNTRUSTED = {
    "unfinished": CoupledSVC(gamma=0.05, max_iter=1),
    "no closed form": CoupledClassifier(
        LogisticRegression(), calibration="sigmoid", cv="loo", with_native=False
    ),
}


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("model", UNTRUSTED.values(), ids=UNTRUSTED)
def test_folds_where_leave_one_out_is_not_trusted(model):
    data, labels = scale(load_wine().data), load_wine().target
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = clone(model).set_params(cv="loo").fit(data, labels)
    told = [w for w in caught if "leave-one-out" in str(w.message)]
    assert len(told) == 1
    assert told[0].filename == __file__
    expected = clone(model).set_params(cv=5).fit(data, labels)
    assert_array_equal(fitted.predict_proba(data), expected.predict_proba(data))


@pytest.mark.parametrize("model", INDEFINITE.values(), ids=INDEFINITE)
def test_folds_of_the_solver_where_the_kernel_is_indefinite(model):
    """Nothing is to be done about it, so nothing is said."""
    data, labels = scale(load_wine().data), load_wine().target
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = clone(model).set_params(cv="loo").fit(data, labels)
    expected = clone(model).set_params(cv=5).fit(data, labels)
    loss = log_loss(labels, fitted.predict_proba(data))
    assert loss < 1.1 * log_loss(labels, expected.predict_proba(data)) + 0.02


def test_trusted_leave_one_out_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CoupledSVC(gamma=0.05).fit(X, y)


@pytest.mark.parametrize("cv", ["LOO", "kfold"])
@pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier(SVC())], ids=["SVC", "any"])
def test_unknown_cv(model, cv):
    with pytest.raises(ValueError, match=f"cv must be 'loo'.*{cv}"):
        clone(model).set_params(cv=cv).fit(X, y)


def test_unknown_decision_function_shape():
    model = CoupledSVC().fit(X, y).set_params(decision_function_shape="ova")
    with pytest.raises(ValueError, match="decision_function_shape must be 'ovr' or 'ovo'"):
        model.decision_function(X)


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_a_class_with_a_single_sample(cv, calibration):
    rows = np.r_[np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:1]]
    model = CoupledSVC(gamma=0.05, cv=cv, calibration=calibration)
    with pytest.warns(UserWarning, match="single sample each: 'cat'") as caught:
        model.fit(X[rows], names[rows])
    assert len(caught) == 1
    p = model.predict_proba(X_new)
    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the following classes have a single sample")
def test_single_samples_are_recognised():
    """A borrowed sigmoid rises with the margin: far from the others, the one is found."""
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    data = np.r_[np.random.default_rng(0).normal(size=(40, 2)) + centres[[0, 1] * 20], centres[2:]]
    model = CoupledSVC(C=10, gamma=0.2).fit(data, [0, 1] * 20 + [2])
    assert_array_equal(model.predict(centres), [0, 1, 2])


# -- borrowed calibration --------------------------------------------------------------


def lenders(seed=0):
    """Two columns with scores of both sides, one with those of the negative side only."""
    rng = np.random.default_rng(seed)
    sides = np.where(rng.random((40, 3)) < 0.5, 1, -1).astype(np.int8)
    sides[:, 2] = np.where(np.arange(40) < 20, -1, 0)
    sides[:5, 0] = 0
    return rng.normal(size=(40, 3)) + 0.8 * sides, sides, rng.uniform(0.5, 2.0, 40)


@pytest.mark.parametrize("calibration", [Sigmoid, RobustSigmoid, Isotonic])
def test_one_sided_columns_borrow(calibration):
    scores, sides, weights = lenders()
    fitted = calibration().fit(scores, sides, weights)
    used = sides[:, :2] != 0
    pooled = calibration().fit(
        scores[:, :2][used][:, None],
        sides[:, :2][used][:, None],
        np.broadcast_to(weights[:, None], used.shape)[used],
    )
    grid = np.linspace(-3, 3, 13)[:, None]
    answer = fitted.transform(np.repeat(grid, 3, axis=1))
    assert_allclose(answer[:, [2]], pooled.transform(grid), atol=1e-8)
    alone = calibration().fit(scores[:, :2], sides[:, :2], weights)
    assert_allclose(answer[:, :2], alone.transform(np.repeat(grid, 2, axis=1)), atol=1e-12)


@pytest.mark.parametrize("missing", ["nan", "weight"])
@pytest.mark.parametrize("calibration", [Sigmoid, RobustSigmoid, Isotonic])
def test_what_counts_as_one_sided(calibration, missing):
    """A side whose scores are NaN, or weigh nothing, is not there."""
    scores, sides, weights = lenders()
    expected = calibration().fit(scores[1:], sides[1:], weights[1:])
    sides[0, 2] = 1
    if missing == "nan":
        scores[0, 2], sides[0, :2] = np.nan, 0
    else:
        weights[0] = 0.0
    grid = np.repeat(np.linspace(-3, 3, 13)[:, None], 3, axis=1)
    fitted = calibration().fit(scores, sides, weights)
    assert_allclose(fitted.transform(grid), expected.transform(grid), atol=1e-8)


@pytest.mark.parametrize("calibration", [Sigmoid, RobustSigmoid, Isotonic])
def test_without_lenders_a_column_keeps_its_own_answer(calibration):
    scores, sides, weights = lenders()
    scores, sides = scores[:, [2]], sides[:, [2]]
    r = calibration().fit(scores, sides, weights).transform(np.array([[-1.0], [0.0], [1.0]]))
    assert (r < 0.5).all()
    assert (r > 0).all()


def test_borrowed_sigmoid_of_a_model():
    rows = np.r_[np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:1]]
    with pytest.warns(UserWarning, match="single sample"):
        model = CoupledSVC(gamma=0.05).fit(X[rows], y[rows])
    involved = model.code_[2] != 0
    slopes = model.calibration_.slopes_
    assert len(np.unique(slopes[involved])) == 1
    assert len(np.unique(slopes[~involved])) == 3
    assert (slopes < 0).all()
    margins = np.zeros((1, 6))
    expected = expit(-model.calibration_.intercepts_)
    assert_allclose(model.calibration_.transform(margins)[0], expected, atol=1e-12)


# -- through CoupledClassifier ---------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [{}, {"C": 5.0, "gamma": 0.02}, {"kernel": "poly", "degree": 2, "gamma": 0.05, "coef0": 1.0}],
)
@pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest", "sparse-random"])
def test_as_through_coupled_classifier(params, code):
    shared = {
        "code": code,
        "combiner": "wlw2" if code == "one-vs-one" else "kl",
        "cv": "loo",
        "random_state": 0,
    }
    expected = CoupledClassifier(SVC(**params), **shared).fit(X, y).predict_proba(X_new)
    model = CoupledSVC(**params, **shared).fit(X, y)
    assert_allclose(model.predict_proba(X_new), expected, rtol=0, atol=1e-12)


def test_coupled_classifier_uses_the_kernel_bank():
    data, labels = scale(load_wine().data), load_wine().target
    for machine in (SVC(), NuSVC(nu=0.2)):
        model = CoupledClassifier(machine).fit(data, labels)
        assert type(model.bank_) is KernelBank
        assert model.cv == 5
        assert model.score(data, labels) > 0.97


@pytest.mark.filterwarnings("ignore:analytic leave-one-out is not used")
@pytest.mark.parametrize("nu", [0.1, 0.2])
def test_leave_one_out_with_nu_machines(nu):
    data, labels = load_iris(return_X_y=True)
    model = CoupledClassifier(NuSVC(nu=nu), cv="loo").fit(data, labels)
    assert model.score(data, labels) > 0.9


# -- quality ---------------------------------------------------------------------------


def test_better_than_calibrated_classifier_cv_on_digits():
    data, labels = load_digits(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    model = CoupledSVC(C=10).fit(data[train], labels[train])
    rival = CalibratedClassifierCV(SVC(C=10), ensemble=False).fit(data[train], labels[train])
    ours = log_loss(labels[test], model.predict_proba(data[test]))
    theirs = log_loss(labels[test], rival.predict_proba(data[test]))
    assert ours < 0.8 * theirs
    plain = SVC(C=10).fit(data[train], labels[train]).score(data[test], labels[test])
    assert model.score(data[test], labels[test]) > plain - 0.01
    assert codes.pair_columns(model.code_) is not None


# -- values beyond single precision ----------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
def test_values_beyond_single_precision(as_type):
    """Leave-one-out tries single precision, in which these are not to be had."""
    expected = CoupledSVC().fit(as_type(X), y)
    model = CoupledSVC().fit(as_type(1e39 * X), y)
    assert_allclose(model.predict_proba(as_type(1e39 * X)), expected.predict_proba(X), atol=1e-2)
    assert model.bank_.error_in_single(as_type(1e39 * X)) == np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("place", [0, 1])
def test_one_value_beyond_single_precision(place):
    """Wherever it is: single precision is tried on some rows only, and tells of all of them."""
    data, labels = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    data[place] = 1e39
    weights = (np.arange(len(data)) != place).astype(float)  # so it is not a support vector
    model = CoupledSVC(gamma=0.05).fit(data, labels, weights)
    assert model.score(data[2:], labels[2:]) > 0.5


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("as_type", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_values_beyond_a_chosen_single_precision(as_type, sign):
    model = CoupledSVC(dtype=np.float32)
    with pytest.raises(
        ValueError, match=r"X has values as large as .*e\+4.*dtype=np.float32: scale"
    ):
        model.fit(as_type(sign * 1e39 * np.abs(X)), y)
    model.fit(as_type(X), y)
    with pytest.raises(
        ValueError, match=r"X has values as large as 1e\+39, .* use dtype=np.float64"
    ):
        model.predict_proba(as_type(np.full((1, X.shape[1]), sign * 1e39)))
    with pytest.raises(ValueError, match="contains infinity"):
        model.predict_proba(as_type(np.full((1, X.shape[1]), np.inf)))


# -- numbers of jobs -------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", ["x", "2", 0, 1.5, [2]])
@pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier()])
def test_numbers_of_jobs_that_are_none(model, n_jobs):
    model = clone(model).set_params(n_jobs=n_jobs)
    with pytest.raises(
        ValueError, match="n_jobs must be a whole number other than 0, or None, got"
    ):
        model.fit(X, y)
    with pytest.raises(ValueError, match="n_jobs must be a whole number"):
        couple(np.full((2, 3), 0.5), code="one-vs-one", n_jobs=n_jobs)
    model.set_params(n_jobs=1).fit(X, y).set_params(n_jobs=n_jobs)
    with pytest.raises(ValueError, match="n_jobs must be a whole number"):
        model.predict_proba(X)


@pytest.mark.parametrize("n_jobs", [None, 1, np.int64(1), -1])
def test_numbers_of_jobs(n_jobs):
    assert CoupledSVC(n_jobs=n_jobs).fit(X, y).score(X, y) > 0.5
