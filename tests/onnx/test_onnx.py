"""Exported graphs in ONNX Runtime, against the models they were made from."""

from __future__ import annotations

import json
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from all_pairs import all_pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    RidgeClassifierCV,
    SGDClassifier,
)
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC, NuSVC
from threadpoolctl import threadpool_limits
from versions import logistic_regression_cv

from manyclass import CoupledClassifier, CoupledSVC, __version__, codes, couple
from manyclass.banks import CENTRED, LOG_ODDS, MARGIN, PROBABILITY, NativeBank, fit_native
from manyclass.calibration import Beta, Isotonic, RobustSigmoid, Sigmoid, Unchanged
from manyclass.combiners.base import names, resolve
from manyclass.combiners.coupling import RefregierVallet
from manyclass.learners import KernelLogisticRegression
from manyclass.onnx import to_onnx
from manyclass.onnx.calibration_ops import plan_calibration
from manyclass.onnx.combiner_ops import plan_combiner
from manyclass.onnx.graph import Graph, Unsupported
from manyclass.onnx.native_ops import plan_native
from manyclass.onnx.scaling_ops import plan_least, plan_scaling
from manyclass.scaling import StructuredScaling, Temperature
from manyclass.scaling.lower_bounds import raise_to
from manyclass.scaling.temperature import apply_temperature

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

EXACT = 1e-9  # rounding, in float64
PAIRWISE = ["vote", "ht-noniterative", "wlw1", "wlw2", "pkpd", "refregier-vallet", "logit"]
ANY_CODE = ["noniterative", "softmax", "softmax-simplified"]
ITERATIVE = ["ht", "kl", "zadrozny", "least-squares"]
TREE = np.array([[1, 0], [-1, 1], [-1, -1]], dtype=np.int8)
LABELS_ONLY = ["max-wins", "winner-takes-all", "hamming", "loss", "loss-weighted"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


# ---------------------------------------------------------------------------
# Data, models, and how they are compared
# ---------------------------------------------------------------------------


def standardised(X):
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


@pytest.fixture(scope="session")
def samples(shared_data):
    """Real data of 2, 3, 10 and 26 classes: a few rows of each class, and the classes' names."""

    @cache
    def load(k):
        if k == 26:
            data = shared_data("letter")
            X, y = np.asarray(data.X, dtype=np.float64), np.asarray(data.y)
        else:
            source = {2: load_breast_cancer, 3: load_iris, 10: load_digits}[k]
            X, y = source(return_X_y=True)
        rows = np.concatenate([np.flatnonzero(y == c)[:15] for c in np.unique(y)])
        return standardised(X)[rows], y[rows]

    return load


def session_of(model):
    onnx.checker.check_model(model, full_check=True)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    return runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def hard(X):
    """Rows as they are, between, and so far away that all sigmoids are saturated."""
    far = [scale * X[:4] for scale in (-3.0, 50.0, -1e3, 1e6)]
    return np.concatenate([X, (X[:-1] + X[1:]) / 2, *far, np.zeros((1, X.shape[1]))])


def assert_same(model, X, atol=EXACT, **options):
    """Probabilities within ``atol``, and labels where no two classes are as near as that."""
    session = session_of(to_onnx(model, **options))
    p, labels = session.run(None, {"X": X})
    expected = model.predict_proba(X.astype(np.float64))
    assert p.dtype == np.dtype(options.get("dtype", np.float64))
    assert_allclose(p, expected, rtol=0, atol=atol)
    first, second = np.sort(expected, axis=1)[:, :-3:-1].T
    told_apart = first - second > 4 * atol
    assert told_apart.any()
    assert_array_equal(labels[told_apart], model.predict(X)[told_apart])
    return session


# ---------------------------------------------------------------------------
# Whole models
# ---------------------------------------------------------------------------

LINEAR = [
    LogisticRegression(),
    LinearDiscriminantAnalysis(),
    LinearSVC(),
    Perceptron(),
    RidgeClassifier(),
    SGDClassifier(loss="log_loss"),
    SGDClassifier(loss="modified_huber"),
    SGDClassifier(loss="hinge"),
]
MACHINES = [
    *(SVC(kernel=kernel, coef0=0.5) for kernel in ("linear", "poly", "rbf", "sigmoid")),
    SVC(kernel="poly", degree=2, gamma="auto", coef0=1.0, C=10.0),
    SVC(gamma=0.3, class_weight="balanced"),
    NuSVC(nu=0.2),
    KernelLogisticRegression(),
    KernelLogisticRegression(kernel="poly", degree=2, coef0=1.0),
]


@pytest.mark.parametrize(
    ("estimator", "code", "combiner"),
    [  # the two codes take turns
        (estimator, *(("one-vs-one", "wlw2"), ("one-vs-rest", "normalize"))[i % 2])
        for i, estimator in enumerate([*LINEAR, *MACHINES])
    ],
)
def test_learners(samples, estimator, code, combiner):
    X, y = samples(3)
    model = CoupledClassifier(estimator, code=code, combiner=combiner, cv=3, random_state=0)
    assert_same(model.fit(X, y), hard(X))


@all_pairs(
    estimator=[LinearSVC(), SVC(), KernelLogisticRegression()],
    calibration=["sigmoid", "robust-sigmoid", "isotonic"],
    code=["one-vs-one", "ordinal"],
)
def test_codes_and_calibrations(samples, estimator, calibration, code):
    X, y = samples(3)
    model = CoupledClassifier(
        estimator, code=code, combiner="noniterative", calibration=calibration, cv=3
    )
    assert_same(model.fit(X, y), hard(X))


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
def test_sparse_codes(samples, calibration):
    X, y = samples(10)
    code = codes.sparse_random(10, n_draws=10, random_state=0)
    model = CoupledSVC(code=code, combiner="noniterative", calibration=calibration)
    assert_same(model.fit(X, y), hard(X))


PAIRED = [(combiner, "sigmoid") for combiner in [*PAIRWISE, "noniterative", "softmax-simplified"]]
WLW2 = [("wlw2", "sigmoid"), ("wlw2", "isotonic"), ("wlw2", "robust-sigmoid")]


@pytest.mark.parametrize(
    ("k", "combiner", "calibration"),
    [
        *((k, *parts) for k in (2, 10) for parts in [*PAIRED, *WLW2[1:]]),
        *((26, *parts) for parts in [*WLW2, ("vote", "sigmoid"), ("logit", "sigmoid")]),
    ],
)
def test_combiners_for_pairs(samples, k, combiner, calibration):
    X, y = samples(k)
    model = CoupledSVC(C=10.0, calibration=calibration, combiner=combiner).fit(X, y)
    # Of classes that tie "vote" raises one by 1e-9, before the temperature.
    assert_same(model, hard(X), atol=1e-7 if combiner == "vote" else EXACT)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("combiner", ["normalize", "softmax", "noniterative"])
def test_combiners_for_one_vs_rest(samples, k, combiner):
    X, y = samples(k)
    model = CoupledSVC(C=10.0, code="one-vs-rest", combiner=combiner).fit(X, y)
    assert_same(model, hard(X))


@pytest.mark.parametrize("scaling", ["structured", "temperature", None])
def test_own_probabilities_without_calibration(samples, scaling):
    X, y = samples(3)
    model = CoupledClassifier(calibration=None, cv=None if scaling is None else 3, scaling=scaling)
    assert (model.fit(X, y).scaling_ is None) == (scaling is None)
    assert_same(model, hard(X))


# ---------------------------------------------------------------------------
# Scalings, calibrations and multiclass models
# ---------------------------------------------------------------------------

NATIVE = [
    LogisticRegression(),
    LogisticRegression(C=100.0, fit_intercept=False),
    logistic_regression_cv(Cs=2, cv=2, scoring="neg_log_loss"),
    LinearDiscriminantAnalysis(),
    SGDClassifier(loss="log_loss", random_state=0),
    SGDClassifier(loss="modified_huber", random_state=0),
]
NATIVE_MARGINS = [
    LinearSVC(random_state=0),
    LinearSVC(fit_intercept=False, random_state=0),
    Perceptron(random_state=0),
    RidgeClassifier(),
    RidgeClassifierCV(),
    SGDClassifier(loss="hinge", random_state=0),
]


def test_the_default_pools_its_own_multiclass_model(samples):
    X, y = samples(3)
    model = CoupledClassifier(LogisticRegression()).fit(X, y)
    assert model.native_ is not None and type(model.scaling_) is StructuredScaling
    assert_same(model, hard(X))


@pytest.mark.parametrize("kind", [PROBABILITY, LOG_ODDS, CENTRED, MARGIN], ids=str)
@pytest.mark.parametrize("estimator", NATIVE, ids=repr)
def test_multiclass_models_alone(samples, estimator, kind):
    X, y = samples(10)
    bank = fit_native(estimator, X, y, kind, 10)
    run = run_piece(plan_native(bank, ""), X.shape[1])
    # Of a probability near 1, few digits of the log-odds remain: it is 1 - 1e-12 at most.
    atol = 1e-3 if kind == LOG_ODDS else 1e-12
    assert_allclose(run(X), bank.scores(X), rtol=1e-12, atol=atol)
    if kind != MARGIN:
        assert_allclose(run(hard(X)), bank.scores(hard(X)), rtol=0, atol=atol)


@pytest.mark.parametrize("estimator", NATIVE_MARGINS, ids=repr)
def test_multiclass_margins_alone(samples, estimator):
    X, y = samples(10)
    bank = fit_native(estimator, X, y, MARGIN, 10)
    run = run_piece(plan_native(bank, ""), X.shape[1])
    assert_allclose(run(X), bank.scores(X), rtol=1e-12, atol=1e-12)


# Some pixels are constant: without shrinkage, coefficients of 1e17 cancel.
SHRUNK = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
# Estimator, code, calibration, scaling, with_native, k: sampled pairwise.
WHOLE = [
    (LogisticRegression(), "one-vs-one", "auto", "auto", True, 10),
    (LogisticRegression(), "one-vs-rest", "sigmoid", "structured", True, 3),
    (LogisticRegression(), "native", "isotonic", "temperature", "auto", 3),
    (LogisticRegression(), "native", "auto", "auto", "auto", 10),
    (LogisticRegression(), "ordinal", "beta", "structured", False, 3),
    (LogisticRegression(), "one-vs-one", "beta", "temperature", False, 2),
    (SHRUNK, "one-vs-one", "beta", "temperature", "auto", 10),
    (SHRUNK, "one-vs-rest", "auto", "auto", True, 10),
    (LinearDiscriminantAnalysis(), "native", "beta", "structured", False, 3),
    (SHRUNK, "native", None, None, False, 10),
    (SGDClassifier(loss="log_loss"), "native", "beta", "auto", True, 10),
    (SGDClassifier(loss="log_loss"), "ordinal", "isotonic", "auto", True, 10),
    (SGDClassifier(loss="modified_huber"), "one-vs-one", "auto", "structured", True, 3),
    (SGDClassifier(loss="modified_huber"), "native", None, "temperature", False, 3),
    (SGDClassifier(loss="modified_huber"), "one-vs-rest", "beta", None, False, 10),
    (LinearSVC(), "native", "auto", "structured", False, 10),
    (LinearSVC(), "native", "robust-sigmoid", None, False, 3),
    (RidgeClassifier(), "native", "isotonic", "auto", "auto", 3),
    (RidgeClassifier(), "one-vs-rest", "auto", "temperature", False, 3),
    (KernelLogisticRegression(), "one-vs-one", "auto", "auto", "auto", 3),
    (KernelLogisticRegression(), "ordinal", "beta", "temperature", False, 10),
    (SVC(), "one-vs-rest", "isotonic", "structured", False, 10),
]


@pytest.mark.parametrize(
    ("estimator", "code", "calibration", "scaling", "with_native", "k"), WHOLE, ids=repr
)
def test_parts_together(samples, estimator, code, calibration, scaling, with_native, k):
    X, y = samples(k)
    combiner = {"one-vs-one": "wlw2", "ordinal": "noniterative"}.get(code, "normalize")
    options = {"calibration": calibration, "scaling": scaling, "with_native": with_native}
    model = CoupledClassifier(
        estimator, code=code, combiner=combiner, cv=3, random_state=0, **options
    )
    assert_same(model.fit(X, y), hard(X))
    assert_same(model, X.astype(np.float32), atol=1e-6, dtype=np.float32)


@pytest.mark.parametrize("opset", [13, 18])
def test_multiclass_models_in_old_and_new_opsets(samples, opset):
    X, y = samples(3)
    model = CoupledClassifier(SGDClassifier(loss="log_loss", random_state=0), cv=3)
    assert_same(model.fit(X, y), X, opset=opset)


def test_multiclass_models_without_a_graph_are_refused(samples):
    X, y = samples(3)
    model = CoupledClassifier(GaussianNB(), cv=3, with_native=True).fit(X, y)
    assert "multiclass model, GaussianNB, has no graph" in (reason := refusal(model))
    assert "Use with_native=False" in reason
    model.set_params(code="native", combiner="normalize").fit(X, y)
    assert "or another code, such as 'one-vs-one'" in (reason := refusal(model))
    assert reason.count("\n- ") == 1


def test_multiclass_models_that_miss_a_class_are_refused(samples):
    X, y = samples(3)
    model = LogisticRegression().fit(X[y < 2], y[y < 2])
    with pytest.raises(Unsupported, match="seen only 2 of 3 classes. Do this"):
        plan_native(NativeBank(model, PROBABILITY, 3), "Do this.")


def test_models_of_groups_have_no_graph(samples):
    model = CoupledClassifier(code=codes.QAry(3, n_trees=1), cv=None).fit(*samples(10))
    with pytest.raises(NotImplementedError, match="groups of classes have no graph.*class-trees"):
        to_onnx(model)


def test_a_class_with_a_single_sample(samples):
    X, y = samples(3)
    with pytest.warns(UserWarning, match="single sample"):
        model = CoupledSVC().fit(np.vstack([X, X[:1] + 5]), np.append(y, 9))
    assert model.least_proba_.any()
    assert_same(model, hard(X))


@pytest.mark.parametrize("key", sorted({*names()} - {"softmax", "softmax-simplified"}))
def test_every_combiner_has_a_graph_or_a_reason(key):
    combiner = resolve(key)
    other = {"one-vs-rest": codes.one_vs_rest(3), "class-trees": TREE}
    code = other.get(combiner.accepts, codes.one_vs_one(3))
    try:
        assert callable(plan_combiner(combiner, code, np.ones(code.shape[1])))
    except Unsupported as reason:
        assert key in str(reason) or type(combiner).__name__ in str(reason)


# ---------------------------------------------------------------------------
# Pieces alone, on values that training hardly gives
# ---------------------------------------------------------------------------


def run_piece(piece, n_columns):
    """Return the function (n, l) -> (n, k) that the piece computes."""
    graph = Graph()
    values = piece(graph, graph.call("Transpose", "X", perm=[1, 0]))
    graph.name(graph.call("Transpose", values, perm=[1, 0]), "Y")
    double = onnx.TensorProto.DOUBLE
    info = onnx.helper.make_tensor_value_info
    body = onnx.helper.make_graph(
        graph.nodes,
        "piece",
        [info("X", double, ["n", n_columns])],
        [info("Y", double, ["n", None])],
        graph.constants,
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    session = session_of(onnx.helper.make_model(body, opset_imports=opset, ir_version=8))
    return lambda X: session.run(None, {"X": X})[0]


def shuffled_pairs(k):
    """One-vs-one with columns in another order and some sides swapped."""
    code, rng = codes.one_vs_one(k), np.random.default_rng(k)
    return (code * rng.choice([-1, 1], code.shape[1]))[:, rng.permutation(code.shape[1])]


@cache
def coupler(rule, k, shuffled=False):
    """Return a rule, a code, weights and the rule's piece."""
    if rule == "normalize":
        code = codes.one_vs_rest(k)
    elif rule == "tree-product":
        rows = np.random.default_rng(k).normal(size=(3 * k, 4))
        code = codes.class_trees(rows, np.arange(3 * k) % k, n_trees=2, random_state=0)
    elif rule == "noniterative":
        code = codes.one_vs_rest(k) if k < 3 else codes.sparse_random(k, n_draws=10, random_state=0)
    else:
        code = shuffled_pairs(k) if shuffled else codes.one_vs_one(k)
    weights = np.random.default_rng(1).uniform(0.1, 10.0, code.shape[1])
    resolved = RefregierVallet("star", k - 1) if rule == "star" else resolve(rule)
    return resolved, code, weights, run_piece(plan_combiner(resolved, code, weights), code.shape[1])


EXTREMES = [0.0, 1.0, 0.5, 1e-300, 1e-16, 1e-7, 1.0 - 1e-7, 1.0 - 1e-16, 0.25]
PROBABILITIES = st.one_of(st.floats(0, 1), st.sampled_from(EXTREMES))


@pytest.mark.parametrize("rule", [*PAIRWISE, "star", "noniterative", "normalize", "tree-product"])
@pytest.mark.parametrize("k", [2, 3, 7])
@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_rules_on_any_probabilities(rule, k, data):
    resolved, code, weights, run = coupler(rule, k, shuffled=data.draw(st.booleans()))
    shape = data.draw(st.integers(1, 4)), code.shape[1]
    r = data.draw(hnp.arrays(np.float64, shape, elements=PROBABILITIES))
    assert_allclose(run(r), couple(r, code, resolved, weights), rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", [*PAIRWISE, "noniterative", "normalize", "tree-product"])
def test_rules_on_many_classes(rule):
    resolved, code, weights, run = coupler(rule, 26)
    rng = np.random.default_rng(0)
    r = np.concatenate(
        [
            rng.random((20, code.shape[1])),
            rng.random((20, code.shape[1])).round(),
            rng.choice(EXTREMES, (20, code.shape[1])),
            np.zeros((1, code.shape[1])),
            np.ones((1, code.shape[1])),
        ]
    )
    p = run(r)
    assert_allclose(p, couple(r, code, resolved, weights), rtol=0, atol=1e-8)
    assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert run(r[:0]).shape == (0, 26)


@pytest.mark.parametrize("rule", ["wlw1", "wlw2", "pkpd", "logit", "refregier-vallet"])
def test_consistent_probabilities_are_recovered(rule):
    p = np.random.default_rng(2).dirichlet(np.full(8, 0.3), size=50) + 1e-4
    p /= p.sum(axis=1, keepdims=True)
    i, j = np.triu_indices(8, 1)
    run = coupler(rule, 8)[-1]
    assert_allclose(run(p[:, i] / (p[:, i] + p[:, j])), p, rtol=0, atol=1e-9)


def test_two_classes_keep_their_probability():
    r = np.array([[0.0], [1e-9], [0.3], [0.5], [1.0]])
    for rule in ("wlw1", "wlw2", "pkpd", "logit"):
        answer = coupler(rule, 2)[-1](r)[:, :1]
        assert_allclose(answer, r.clip(1e-7, 1 - 1e-7), rtol=1e-8)


MARGINS = st.one_of(
    st.floats(-5, 5), st.sampled_from([0.0, 1e-300, 800.0, -800.0, 1e300, np.inf, -np.inf])
)


@cache
def calibration_of(kind):
    """Curves with many thresholds, with one, with scores of one side only, and certain ones."""
    rng = np.random.default_rng(0)
    sides = rng.choice([-1, 1], (200, 5)).astype(np.int8)
    scores = 1.5 * sides + 2.0 * rng.standard_normal(sides.shape)
    scores[:, 1] = 0.5
    sides[:, 2] = 1
    scores[:, 3] = np.inf * sides[:, 3]
    scores[:, 4] *= -1.0
    fitted = kind().fit(scores, sides, np.ones(len(sides)))
    return fitted, run_piece(plan_calibration(fitted), 5), scores


@pytest.mark.parametrize("kind", [Sigmoid, RobustSigmoid, Isotonic, Beta, Unchanged])
@settings(deadline=None, max_examples=25)
@given(f=hnp.arrays(np.float64, (3, 5), elements=MARGINS))
def test_calibrations_on_any_margins(kind, f):
    fitted, run, _ = calibration_of(kind)
    assert_allclose(run(f), fitted.transform(f), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [Sigmoid, RobustSigmoid, Isotonic, Beta, Unchanged])
def test_calibrations_at_their_own_scores(kind):
    fitted, run, scores = calibration_of(kind)
    assert_allclose(run(scores), fitted.transform(scores), rtol=0, atol=1e-12)


# ---------------------------------------------------------------------------
# Scalings alone
# ---------------------------------------------------------------------------


def run_scaling(scaling, k, n_columns, n_others):
    """Return the function of p (n, k), columns (n, l) and others (n, k) of a scaling's piece."""
    piece = plan_scaling(scaling)
    widths = [k, n_columns, *[k] * n_others]
    ends = np.cumsum([0, *widths])

    def cut(graph, values):
        parts = [graph.block(values, bounds) for bounds in pairwise(ends.tolist())]
        return piece(graph, parts[0], parts[1], parts[2:])

    run = run_piece(cut, int(ends[-1]))
    return lambda p, columns, others: run(np.hstack([p, columns, *others]))


def some_probabilities(shape, rng):
    p = rng.dirichlet(np.full(shape[1], 0.3), size=shape[0])
    p[0], p[0, 0] = 0.0, 1.0
    return p


def evidence(code, n_others, n=60):
    """Class probabilities, those of columns and others, with zeros and ones among them."""
    rng = np.random.default_rng(len(code))
    columns = np.concatenate(
        [rng.random((n - 9, code.shape[1])), rng.choice(EXTREMES, (9, code.shape[1]))]
    )
    p, *others = (some_probabilities((n, len(code)), rng) for _ in range(1 + n_others))
    return p, columns, others, rng.integers(len(code), size=n)


@pytest.mark.parametrize("s", [0.05, 1.0, 1.7, 20.0])
@pytest.mark.parametrize("share", [0.0, 1e-4, 0.1])
def test_temperature_of_probabilities_down_to_zero(s, share):
    p = np.array([[0.0, 0.0, 1.0], [1e-300, 0.5, 0.5], [0.2, 0.3, 0.5], [1e-9, 1e-8, 1.0]])
    scaling = Temperature().fit(p, [2, 1, 2, 2])
    scaling.power_, scaling.share_ = s, share
    answer = run_scaling(scaling, 3, 1, 0)(p, p[:, :1], [])
    assert_allclose(answer, apply_temperature(p, s, share), rtol=0, atol=1e-13)


STRUCTURED = {  # code, whether there are columns, number of other sources: sampled pairwise
    "alone": (codes.one_vs_one(3), False, 0),
    "pairs": (codes.one_vs_one(5), True, 0),
    "pairs and another": (codes.one_vs_one(4), True, 1),
    "another alone": (codes.one_vs_rest(3), False, 1),
    "one-vs-rest and two others": (codes.one_vs_rest(4), True, 2),
    "any code": (codes.sparse_random(7, n_draws=10, random_state=0), True, 1),
    "a class in no column": (np.array([[1, 1], [-1, 0], [0, -1], [0, 0]], np.int8), True, 0),
    "two classes": (codes.one_vs_one(2), True, 1),
}


@pytest.mark.parametrize("case", STRUCTURED)
def test_structured_scaling_on_any_evidence(case):
    code, with_columns, n_others = STRUCTURED[case]
    p, columns, others, y = evidence(code, n_others)
    given = {"columns": columns if with_columns else None, "others": others}
    scaling = StructuredScaling().fit(p, y, code=code, **given)
    run = run_scaling(scaling, *code.shape, n_others)
    answer = run(p, columns, others)
    assert_allclose(answer, scaling.predict_proba(p, **given), rtol=0, atol=1e-12)
    assert run(p[:0], columns[:0], [other[:0] for other in others]).shape == (0, len(code))


def test_structured_scaling_without_effects_of_columns():
    """With few samples for many columns, the matrix has no rows for them."""
    code = codes.one_vs_one(12)
    p, columns, _, y = evidence(code, 0)
    scaling = StructuredScaling().fit(p, y, columns=columns, code=code)
    assert scaling.matrix_.shape == (13, 12)
    answer = run_scaling(scaling, *code.shape, 0)(p, columns, [])
    assert_allclose(answer, scaling.predict_proba(p, columns=columns), rtol=0, atol=1e-12)


@pytest.mark.parametrize("least", [np.zeros(3), np.array([0.0, 0.02, 0.01])])
def test_lower_bounds_of_classes(least):
    p = np.array([[0.0, 0.0, 1.0], [0.2, 0.3, 0.5]])
    assert_allclose(run_piece(plan_least(least), 3)(p), raise_to(p, least), rtol=0, atol=1e-15)


def test_scalings_of_the_user_are_refused():
    class Own(Temperature):
        pass

    with pytest.raises(Unsupported, match="the scaling Own has no graph"):
        plan_scaling(Own())


# ---------------------------------------------------------------------------
# Inputs, outputs, options
# ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def machine(samples):
    return CoupledSVC(C=10.0).fit(*samples(3))


def test_batches_of_any_size(machine, samples):
    X, _ = samples(3)
    session = assert_same(machine, X)
    whole, _ = session.run(None, {"X": X})
    for n in (0, 1, 2, 7):
        p, labels = session.run(None, {"X": X[:n]})
        assert p.shape == (n, 3) and labels.shape == (n,)
        assert_allclose(p, whole[:n], rtol=0, atol=1e-13)


def test_float32_in_and_out(machine, samples):
    X = hard(samples(3)[0]).astype(np.float32)
    assert_same(machine, X, atol=1e-7, dtype=np.float32)


@pytest.mark.parametrize("opset", [13, 15, 18])
def test_opsets(machine, samples, opset):
    assert_same(machine, samples(3)[0], opset=opset)
    assert to_onnx(machine, opset=opset).opset_import[0].version == opset


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["ant", "bee", "cät"], object),
        (np.array(["ant", "bee", "cät"], dtype=object), object),
        ([-1, 5, 2**40], np.int64),
        (np.array([1, 2, 250], dtype=np.uint8), np.int64),
        (np.array([0, 1, 2**63 + 1], dtype=np.uint64), np.uint64),
        ([0.0, 1.0, 7.0], np.float64),
    ],
)
def test_labels_are_those_of_the_classes(samples, labels, expected):
    X, y = samples(3)
    model = CoupledClassifier(LinearDiscriminantAnalysis(), cv=3).fit(X, np.asarray(labels)[y])
    session = assert_same(model, X)
    (answer,) = session.run(["labels"], {"X": X[::20]})
    assert answer.dtype == expected
    assert json.loads(session.get_modelmeta().custom_metadata_map["classes"]) == list(labels)


def test_two_classes_named_by_truth(samples):
    X, y = samples(2)
    model = CoupledSVC().fit(X, y == 1)
    (labels,) = assert_same(model, X).run(["labels"], {"X": X})
    assert labels.dtype == np.bool_


def test_frames_and_sparse_training_data(samples):
    X, y = samples(3)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(X.shape[1])])
    framed = CoupledClassifier(LinearSVC(), cv=3).fit(frame, y)
    (p,) = session_of(to_onnx(framed)).run(["probabilities"], {"X": X})
    assert_allclose(p, framed.predict_proba(frame), rtol=0, atol=EXACT)
    for kernel in ("rbf", "linear", "poly"):
        assert_same(CoupledSVC(kernel=kernel).fit(csr_array(X), y), hard(X))


def test_machines_in_single_precision_are_exported_in_double(samples):
    X, y = samples(10)
    assert_same(CoupledSVC(dtype=np.float32).fit(X, y), X, atol=1e-5)
    assert_same(CoupledSVC().fit(X, y), X)


def test_columns_with_one_side_only(samples):
    X, y = samples(3)
    weights = 1.0 * (y != 2)
    for estimator in (SVC(), LogisticRegression(), KernelLogisticRegression()):
        model = CoupledClassifier(estimator, calibration="sigmoid", cv=3, with_native=False)
        assert_same(model.fit(X, y, sample_weight=weights), hard(X))


def test_no_machine_at_all(samples):
    X, y = samples(3)
    model = CoupledSVC(cv=3).fit(X, y, sample_weight=1.0 * (y == 1))
    assert not len(model.support_)
    assert_same(model, X)
    linear = CoupledClassifier(cv=3, with_native=False)
    linear.fit(X, y, sample_weight=1.0 * (y == 1))
    assert linear.bank_.constant.all()
    assert_same(linear, X)


def test_what_the_model_says_about_itself(machine):
    model = to_onnx(machine, name="flowers")
    assert (model.producer_name, model.producer_version) == ("manyclass", __version__)
    assert model.graph.name == "flowers"
    told = {prop.key: prop.value for prop in model.metadata_props}
    assert told["classes"] == "[0, 1, 2]"
    assert (told["estimator"], told["combiner"]) == ("SVC", "wlw2")
    assert told["scaling"] == "StructuredScaling"


def test_export_leaves_the_model_alone_and_repeats(machine, samples):
    X, _ = samples(3)
    before = machine.predict_proba(X)
    first, second = (to_onnx(machine).SerializeToString(deterministic=True) for _ in range(2))
    assert first == second
    assert_array_equal(machine.predict_proba(X), before)


# ---------------------------------------------------------------------------
# Pipelines
# ---------------------------------------------------------------------------

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-1.0, 2.0)),
    MinMaxScaler(clip=True),
    MaxAbsScaler(),
    RobustScaler(),
    RobustScaler(with_centering=False),
    RobustScaler(with_scaling=False),
    "passthrough",
]


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_scalers_in_front(samples, scaler):
    X, y = samples(3)
    X = X * [1.0, 10.0, 100.0, 0.0] + [0.0, 5.0, -1e3, 3.0]  # one of them constant
    model = make_pipeline(scaler, CoupledClassifier(RidgeClassifier(), cv=3))
    assert_same(model.fit(X, y), hard(X))


@pytest.mark.parametrize("scaler", SCALERS, ids=repr)
def test_scalers_of_a_single_feature(samples, scaler):
    X, y = samples(3)
    assert_same(make_pipeline(scaler, CoupledSVC(kernel="poly")).fit(X[:, [2]], y), X[:, [2]])


def test_several_scalers_in_front(samples):
    X, y = samples(3)
    model = make_pipeline(RobustScaler(), None, MinMaxScaler(), CoupledSVC()).fit(X, y)
    assert_same(model, hard(X))


# ---------------------------------------------------------------------------
# What cannot be exported
# ---------------------------------------------------------------------------


def refusal(model):
    with pytest.raises(NotImplementedError, match="cannot be exported to ONNX") as caught:
        to_onnx(model)
    return str(caught.value)


@pytest.mark.parametrize("combiner", ITERATIVE)
def test_rules_that_iterate_are_refused(samples, combiner):
    X, y = samples(3)
    reason = refusal(CoupledSVC(combiner=combiner).fit(X, y))
    assert repr(combiner) in reason and "iterates" in reason and "'wlw2'" in reason


@pytest.mark.parametrize("combiner", [*LABELS_ONLY, "srm"])
def test_label_decoders_are_refused(samples, combiner):
    X, y = samples(3)
    code = "one-vs-one" if combiner == "max-wins" else "one-vs-rest"
    reason = refusal(CoupledSVC(combiner=combiner, code=code).fit(X, y))
    assert repr(combiner) in reason and "without probabilities" in reason


def test_rules_of_the_user_are_refused(samples):
    class Own(type(resolve("wlw2"))):
        pass

    X, y = samples(3)
    assert "the combiner Own has no graph" in refusal(CoupledSVC(combiner=Own()).fit(X, y))


@pytest.mark.parametrize(
    "estimator", [GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())]
)
def test_other_estimators_are_refused(samples, estimator):
    X, y = samples(3)
    reason = refusal(CoupledClassifier(estimator, cv=3).fit(X, y))
    assert type(estimator).__name__ in reason and "in front of the coupled classifier" in reason


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_probabilities_of_libsvm_are_refused(samples):
    X, y = samples(3)
    model = CoupledClassifier(SVC(probability=True), calibration=None, cv=None).fit(X, y)
    assert "probabilities that SVC fits itself" in refusal(model)


def test_kernels_without_a_graph_are_refused(samples):
    X, y = samples(3)
    assert "a precomputed kernel" in refusal(CoupledSVC(kernel="precomputed").fit(X @ X.T, y))
    assert "a callable kernel" in refusal(CoupledSVC(kernel=lambda A, B: A @ B.T).fit(X, y))


def test_all_that_stands_in_the_way_is_listed(samples):
    X, y = samples(3)
    labels = np.array(["2001", "2002", "2003"], dtype="datetime64[D]")[y]
    model = make_pipeline(
        PolynomialFeatures(2), CoupledClassifier(GaussianNB(), combiner="kl", cv=3)
    )
    reason = refusal(model.fit(X, labels))
    for part in ("PolynomialFeatures", "skl2onnx", "GaussianNB", "'kl' iterates", "datetime64[D]"):
        assert part in reason
    assert "with_native=False" in reason and reason.count("\n- ") == 5


def test_other_models_are_refused(samples):
    X, y = samples(3)
    with pytest.raises(ValueError, match="got LogisticRegression"):
        to_onnx(LogisticRegression().fit(X, y))
    with pytest.raises(ValueError, match="got a Pipeline that ends in SVC"):
        to_onnx(make_pipeline(StandardScaler(), SVC()).fit(X, y))
    search = GridSearchCV(CoupledSVC(), {"C": [1.0]}, cv=2).fit(X, y)
    with pytest.raises(ValueError, match="got GridSearchCV. Pass its best_estimator_"):
        to_onnx(search)
    assert_same(search.best_estimator_, X)


def test_unfitted_models_are_refused(machine):
    with pytest.raises(NotFittedError):
        to_onnx(CoupledSVC())
    with pytest.raises(NotFittedError):
        to_onnx(Pipeline([("scale", StandardScaler()), ("fitted", machine)]))
    with pytest.raises(NotFittedError):
        to_onnx(clone(machine))


@pytest.mark.parametrize("dtype", [np.int64, np.float16, None, "int8"])
def test_types_are_checked(machine, dtype):
    with pytest.raises(ValueError, match="dtype must be np.float64 or np.float32, got"):
        to_onnx(machine, dtype=dtype)


@pytest.mark.parametrize("opset", [12, 10_000])
def test_opsets_are_checked(machine, opset):
    with pytest.raises(ValueError, match=f"opset must be from 13 to .* got {opset}"):
        to_onnx(machine, opset=opset)


def test_models_beyond_the_limit_of_the_format_are_refused():
    graph = Graph(max_bytes=1000)
    graph.constant(np.zeros(120))
    with pytest.raises(ValueError, match="more than 2 GB of numbers"):
        graph.constant(np.ones(120))


def test_missing_package(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'manyclass\[onnx\]'"):
        to_onnx(machine)
