"""A record of what the models predict: whoever moves code can see that nothing else moved.

``python tests/record.py --write PATH`` fits every model of ``CASES`` and keeps its predictions;
``python tests/record.py --compare PATH`` fits them again and prints what differs. Both take
``--only PREFIX``. Where records of another machine are compared, see ``test_record.py``.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn import datasets
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier, SGDClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

# All that is asked of the library comes by these names; whoever moves them adapts this block.
from manyclass import (
    CoupledClassifier,
    CoupledSVC,
    DecisionClassifier,
    adjust_prior,
    codes,
    couple,
    decide,
    estimate_prior,
    metrics,
    to_onnx,
)
from manyclass.learners import (
    BinnedNaiveBayes,
    BoostedNaiveBayes,
    KernelLogisticRegression,
    PairwiseNeighbors,
    ThresholdOptimized,
    best_threshold,
    kernel_logistic_path,
)
from manyclass.search import (
    RuleScorer,
    SmallestC,
    SmoothestBest,
    TwoStepGridSearchCV,
    best_per_rule,
    estimator_per_rule,
)
from manyclass.search.presets import duan
from manyclass.storage import load_model, save_model

RECORD = Path(__file__).parent / "data" / "record.npz"
NEW_ROWS = 25

Arrays = dict[str, NDArray[Any]]

# Cases that may differ by up to 1e-12, and why: sums that a moved call adds in another order.
# All others are to be equal in every bit.
MOVED_BLAS: dict[str, str] = {}

# ------------------------------------------------------------------ data


class Skipped(Exception):
    """Raised by a case that needs what is not there."""


class Task(NamedTuple):
    """Rows to learn from, and rows to predict."""

    X: Any
    y: NDArray[Any]
    X_new: Any
    y_new: NDArray[Any]
    weight: NDArray[np.float64] | None = None

    def fit(self, model, **params):
        """Return the model, fitted."""
        if self.weight is not None:
            params["sample_weight"] = self.weight
        return clone(model).fit(self.X, self.y, **params)


BUNDLED = {"iris": datasets.load_iris, "wine": datasets.load_wine, "digits": datasets.load_digits}
SHARED = {"segment": 250, "satimage": 250, "pendigits": 250, "letter": 420, "soybean": 300}


@cache
def task(name: str) -> Task:
    """Return data by name, as in "iris", or a view of it, as in "iris:two:strings"."""
    name, _, view = name.rpartition(":")
    if name:
        return VIEWS[view](task(name))
    if view in BUNDLED:
        X, y = BUNDLED[view](return_X_y=True)
        n_train = min(275, len(y) - NEW_ROWS)
    else:
        X, y = read_file(view)
        n_train = SHARED[view]
    order = np.random.RandomState(0).permutation(len(y))
    train, new = np.split(order[: n_train + NEW_ROWS], [n_train])
    y = np.unique(y, return_inverse=True)[1]
    common = np.flatnonzero(np.bincount(y[train], minlength=y.max() + 1) >= 5)
    train, new = (rows[np.isin(y[rows], common)] for rows in (train, new))
    y = np.searchsorted(common, y)
    if view != "soybean":  # whose values are categories
        scale = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    return Task(X[train], y[train], X[new], y[new])


def read_file(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return X and y of a shared file; missing values are NaN."""
    path = Path(os.environ.get("MANYCLASS_DATA", "")) / f"{name}.csv.gz"
    if "MANYCLASS_DATA" not in os.environ or not path.is_file():
        raise Skipped(f"{name}.csv.gz is not in a folder named by MANYCLASS_DATA")
    table = extra("pandas").read_csv(path, na_values="?")
    X = table.drop(columns=["split", "class"], errors="ignore")
    return X.to_numpy(dtype=np.float64), table["class"].to_numpy()


def extra(name: str):
    """Import what need not be installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise Skipped(f"{name} is not installed") from error


def only_classes(t: Task, classes: NDArray[np.intp]) -> Task:
    old, new = np.isin(t.y, classes), np.isin(t.y_new, classes)
    y, y_new = np.searchsorted(classes, t.y[old]), np.searchsorted(classes, t.y_new[new])
    return Task(t.X[old], y, t.X_new[new], y_new)


def both(t: Task, change: Callable[[Any], Any]) -> Task:
    return t._replace(X=change(t.X), X_new=change(t.X_new))


def weighted(t: Task) -> Task:
    weight = np.random.RandomState(1).uniform(0.2, 3.0, len(t.y))
    weight[::9] = 0.0
    return t._replace(weight=weight)


def repeated(t: Task) -> Task:
    distinct = np.arange(0, len(t.y), 3)
    rows = np.repeat(distinct, np.random.RandomState(2).randint(2, 5, len(distinct)))
    return t._replace(X=t.X[rows], y=t.y[rows])


def single(t: Task) -> Task:
    kept = np.flatnonzero((t.y > 0) | (np.cumsum(t.y == 0) == 1))
    return t._replace(X=t.X[kept], y=t.y[kept])


VIEWS: dict[str, Callable[[Task], Task]] = {
    "two": lambda t: only_classes(t, np.arange(t.y.max() - 1, t.y.max() + 1)),
    "five": lambda t: only_classes(t, np.arange(5)),
    "strings": lambda t: t._replace(y=np.array([f"class {i:02d}" for i in t.y])),
    "sparse": lambda t: both(t, lambda X: csr_array(np.where(np.abs(X) < 0.5, 0.0, X))),
    "single32": lambda t: both(t, lambda X: X.astype(np.float32)),
    "frame": lambda t: both(t, lambda X: extra("pandas").DataFrame(X).add_prefix("x")),
    "precomputed": lambda t: t._replace(
        X=rbf_kernel(t.X, gamma=0.05), X_new=rbf_kernel(t.X_new, t.X, gamma=0.05)
    ),
    "texts": lambda t: both(t, lambda X: [" ".join(map(str, row.round())) for row in X]),
    "weights": weighted,
    "repeated": repeated,
    "one-of-a-class": single,
    "few-rows": lambda t: t._replace(X_new=t.X_new[:10], y_new=t.y_new[:10]),
}

# ------------------------------------------------------------------ what is recorded of a model


def predictions(model, X, decision: bool = False) -> Arrays:
    """Return probabilities, or scores where there are none or if asked for, and labels."""
    found = {}
    if hasattr(model, "predict_proba"):
        found["proba"] = model.predict_proba(X)
    if hasattr(model, "decision_function") and (decision or not found):
        found["scores"] = model.decision_function(X)
    found["labels"] = positions(model, model.predict(X))
    return found


def positions(model, labels) -> NDArray[np.int16]:
    """Return where labels are in ``classes_``; -1 is none of them."""
    place = {label: i for i, label in enumerate(model.classes_.tolist())}
    return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.int16)


def fitted(model, name: str, **options) -> Arrays:
    t = task(name)
    return predictions(t.fit(model), t.X_new, **options)


def attributes(model, name: str, *names: str) -> Arrays:
    model = task(name).fit(model)
    found = {n: getattr(model, n) for n in names}
    return {n: np.asarray(v.toarray() if hasattr(v, "toarray") else v) for n, v in found.items()}


def scaling(model, name: str, *names: str) -> Arrays:
    """Return what the scaling has learned."""
    learned = task(name).fit(model).scaling_
    return {n: np.asarray(getattr(learned, n)) for n in names}


def incoherence(model, name: str) -> Arrays:
    t = task(name)
    return {"incoherence": t.fit(model).incoherence(t.X_new)}


def same_in_parallel(model, name: str) -> Arrays:
    """Return what two jobs predict, and whether one predicts the same."""
    alone, together = fitted(model, name), fitted(clone(model).set_params(n_jobs=2), name)
    same = all(alone[key].tobytes() == together[key].tobytes() for key in alone)
    return {**together, "same": np.array(same)}


def pickled(model, name: str) -> Arrays:
    t = task(name)
    return predictions(pickle.loads(pickle.dumps(t.fit(model))), t.X_new)


def stored(model, name: str) -> Arrays:
    extra("skops.io")
    t = task(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        save_model(t.fit(model), path)
        return predictions(load_model(path, trusted=["sklearn.tree._tree.Tree"]), t.X_new)


def exported(model, name: str, dtype=np.float64) -> Arrays:
    """Return what ONNX Runtime predicts."""
    runtime, _ = extra("onnxruntime"), extra("onnx")
    t = task(name)
    model = t.fit(model)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    graph = to_onnx(model, dtype=dtype).SerializeToString()
    session = runtime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    proba, labels = session.run(None, {"X": t.X_new.astype(dtype)})
    return {"proba": proba, "labels": positions(model, labels)}


def in_batches(model, name: str, size: int = 45, fit_first: bool = False) -> Arrays:
    """Return predictions half way, and after all."""
    t, model, found = task(name), clone(model), {}
    starts = range(0, len(t.y), size)
    for i, start in enumerate(starts):
        batch = slice(start, start + size)
        if fit_first and i == 0:
            model.fit(t.X[batch], t.y[batch])
        else:
            weight = {} if t.weight is None else {"sample_weight": t.weight[batch]}
            model.partial_fit(t.X[batch], t.y[batch], classes=np.unique(t.y), **weight)
        if i in (len(starts) // 2, len(starts) - 1):
            found.update({f"{k}/{i}": v for k, v in predictions(model, t.X_new).items()})
    return found


# ------------------------------------------------------------------ models


def cauchy(A, B):
    """A kernel function of one's own."""
    return 1.0 / (1.0 + ((A[:, None] - B[None]) ** 2).sum(axis=2) / A.shape[1])


def common_words(A, B):
    """A kernel of texts."""
    A, B = ([set(text.split()) for text in texts] for texts in (A, B))
    return np.array([[len(a & b) / len(a | b) for b in B] for a in A])


def cubed(y):
    """A loss of one's own."""
    return np.maximum(0.0, 1.0 - y) ** 3


def combiner(name: str):
    """Return a combiner with options, as in "ht/printed": that of a fitted classifier, changed."""
    key = name.split("/")[0]
    model = CoupledClassifier(LinearSVC(), code=code_for(key), combiner=key, cv=2)
    return clone(task("iris").fit(model).combiner_).set_params(**OPTIONS[name])


def code_for(name: str) -> str:
    return "one-vs-rest" if name in FOR_REST else "one-vs-one"


def with_options(name: str) -> Arrays:
    code = code_for(name.split("/")[0])
    return fitted(CoupledClassifier(LINEAR, code=code, combiner=combiner(name), cv=3), "wine")


LR, LINEAR, FOREST = LogisticRegression(), LinearSVC(), RandomForestClassifier
KLR, Coupled = KernelLogisticRegression, CoupledClassifier

CODES = "one-vs-one", "one-vs-rest", "sparse-random", "dense-random", "complete", "ordinal"
KERNELS = "linear", "rbf", "poly", "sigmoid"
CALIBRATIONS = "auto", "sigmoid", "robust-sigmoid", "beta", "isotonic", None
SCALINGS = "structured", "temperature", None
LEARNED = "weights_", "share_", "log_prior_", "matrix_"
LOSSES = "linear", "exponential", "logistic", "hinge", "squared", "binomial-deviance"

PAIR_RULES = "vote", "ht", "ht-noniterative", "wlw1", "wlw2", "pkpd", "refregier-vallet", "logit"
ANY_RULES = "kl", "zadrozny", "noniterative", "least-squares"
REST_RULES = ("normalize",)
TRAINED = "softmax", "softmax-simplified"
ANY_DECODERS = "hamming", "loss", "loss-weighted"
PAIR_DECODERS = ("max-wins",)
REST_DECODERS = "winner-takes-all", "srm", "drm"
FOR_REST = {*REST_RULES, *REST_DECODERS}

RULE_OPTIONS: dict[str, dict[str, Any]] = {
    "ht/printed": {"solver": "printed"},
    "ht/loose": {"tol": 1e-4, "max_iter": 3},
    "vote/seed": {"random_state": 3},
    "refregier-vallet/star": {"tree": "star", "center": 1},
    "kl/one-start": {"n_starts": 1, "tol": 1e-6},
    "zadrozny/uniform": {"start": "uniform", "tol": 1e-6},
    "least-squares/entropy": {"entropy": 0.1},
}
OPTIONS: dict[str, dict[str, Any]] = {
    **RULE_OPTIONS,
    **{f"{name}/{loss}": {"loss": loss} for name in ("loss", "loss-weighted") for loss in LOSSES},
    "loss/function": {"loss": cubed},
    "softmax/C": {"C": 3.0},
    "softmax-simplified/ridge": {"ridge": 0.1},
    "drm/neighbors": {"n_neighbors": 7},
}
BASES = {
    "logistic": LogisticRegression(C=0.5),
    "logistic-balanced": LogisticRegression(class_weight="balanced"),
    "linear-svc": LinearSVC(C=0.3),
    "svc": SVC(C=2.0),
    "svc-balanced": SVC(class_weight="balanced"),
    "svc-poly": SVC(kernel="poly", coef0=1.0),
    "nu-svc": NuSVC(nu=0.1),
    "gaussian-nb": GaussianNB(),
    "bernoulli-nb": BernoulliNB(),
    "tree": DecisionTreeClassifier(max_depth=4),
    "forest": FOREST(n_estimators=5, max_depth=4),
    "boosting": HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=4),
    "neighbors": KNeighborsClassifier(5),
    "lda": LinearDiscriminantAnalysis(),
    "qda": QuadraticDiscriminantAnalysis(reg_param=0.1),
    "sgd": SGDClassifier(max_iter=20, tol=None),
    "sgd-log": SGDClassifier("log_loss", max_iter=20, tol=None),
    "perceptron": Perceptron(max_iter=20, tol=None),
    "ridge": RidgeClassifier(),
    "mlp": MLPClassifier((4,), max_iter=15, solver="adam"),
    "pipeline": make_pipeline(MinMaxScaler(), LogisticRegression()),
}
LEARNERS = {
    **{f"klr-{kernel}": KLR(kernel=kernel, coef0=0.5) for kernel in ("rbf", "linear", "poly")},
    "klr-sigmoid": KLR(kernel="sigmoid", gamma=0.01),
    "klr-function": KLR(kernel=cauchy),
    "klr-large-C": KLR(C=1e3, kernel="linear"),
    "binned-nb": BinnedNaiveBayes(n_bins=5),
    "boosted-nb": BoostedNaiveBayes(n_rounds=4),
    "threshold": ThresholdOptimized(),
    "threshold-lda": ThresholdOptimized(LinearDiscriminantAnalysis()),
    "threshold-balanced": ThresholdOptimized(GaussianNB(), criterion="balanced-error"),
    "threshold-loss": ThresholdOptimized(LinearSVC(), criterion="log-loss", cv=3),
    "neighbors": PairwiseNeighbors(),
    "neighbors-votes": PairwiseNeighbors(evidence="votes", metric="manhattan"),
    "neighbors-given": PairwiseNeighbors([3, 5], 1.1),
}
UNWEIGHTED = {"threshold-lda", "neighbors", "neighbors-votes", "neighbors-given"}
DUAN = (
    *("SMC1va", "SSMC1va", "WTA_SVM", "WTA_PSVM", "WTA_KLR", "SMC1v1"),
    *("SSMC1v1", "MWV_SVM", "MWV_PSVM", "MWV_KLR", "PWC_PSVM", "PWC_KLR"),
)
HAND_MADE = np.array([[1, 1, 0, 1], [-1, 1, 1, 0], [0, -1, 1, -1], [-1, 0, -1, 1], [1, -1, 0, -1]])

# ------------------------------------------------------------------ cases of single functions

CASES: dict[str, Callable[[], Arrays]] = {}


def case(name: str):
    """Make a function a case."""

    def keep(function: Callable[[], Arrays]) -> Callable[[], Arrays]:
        CASES[name] = function
        return function

    return keep


def coupled(rule, code, k: int, weights: bool) -> Arrays:
    """Return all that is known of coupled random probabilities, certain ones among them."""
    rng = np.random.RandomState(k)
    matrix = codes.by_name(code, k, random_state=0) if isinstance(code, str) else code
    r = rng.uniform(size=(8, matrix.shape[1]))
    r[0], r[1] = 0.5, r[1].round()
    w = rng.uniform(0.5, 20.0, matrix.shape[1]) if weights else None
    result = couple(r, matrix, combiner(rule) if "/" in rule else rule, w, full_output=True)
    fields = "p", "iterations", "converged", "incoherence"
    return {name: np.asarray(getattr(result, name)) for name in fields}


@case("couple/cube")
def _() -> Arrays:
    r = np.random.RandomState(5).uniform(size=(8, 4, 4))
    r = np.triu(r, 1) + np.tril(1 - r.transpose(0, 2, 1), -1)
    return {"p": couple(r), "ht": couple(r, rule="ht"), "jobs": couple(r, rule="kl", n_jobs=2)}


@case("couple/many-classes")
def _() -> Arrays:
    r = np.random.RandomState(6).uniform(size=(3, 30 * 29 // 2))
    return {rule: couple(r, "one-vs-one", rule) for rule in ("ht", "wlw1", "wlw2", "kl")}


def code_matrix(name: str) -> Arrays:
    found = {f"{k}/{seed}": codes.by_name(name, k, seed) for k in (3, 5, 8) for seed in (0, 1)}
    return {**found, "2": codes.by_name(name, 2, 0)} if "random" not in name else found


def audited(matrix) -> Arrays:
    audit = codes.audit(codes.by_name(matrix, 6, 0) if isinstance(matrix, str) else matrix)
    numbers = (
        *("n_classes", "n_columns", "valid", "min_row_distance", "closest_rows"),
        *("duplicate_columns", "complementary_columns", "balance", "sparsity", "identifiable"),
    )
    found = {name: np.asarray(getattr(audit, name)) for name in numbers}
    return {**found, "n_problems": np.array(len(audit.problems))}


@case("codes/random")
def _() -> Arrays:
    return {
        f"{make.__name__}/{k}": make(k, n_columns=n, n_draws=50, random_state=k)
        for make in (codes.dense_random, codes.sparse_random)
        for k, n in ((4, 5), (7, 12), (26, 20))
    }


@case("codes/questions")
def _() -> Arrays:
    matrices = [codes.by_name(name, 5, 0) for name in CODES] + [HAND_MADE.astype(np.int8)]
    order, flipped = codes.pair_columns(codes.one_vs_one(5)[:, ::-1])
    return {
        "dense": np.array([codes.is_dense(m) for m in matrices]),
        "rest": np.array([codes.is_one_vs_rest(m) for m in matrices]),
        "identifiable": np.array([codes.is_identifiable(m) for m in matrices]),
        "order": order,
        "flipped": flipped,
        "k": np.array([codes.n_classes_of("one-vs-one", 45), codes.n_classes_of("complete", 31)]),
    }


@cache
def stated() -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return labels, probabilities and weights."""
    rng = np.random.RandomState(8)
    P = rng.dirichlet([0.6, 1.0, 0.4, 0.8], 200)
    y = (rng.uniform(size=(200, 1)) > P.cumsum(axis=1)).sum(axis=1)
    return y, P, rng.uniform(0.1, 2.0, 200)


def measured(strategy: str, weights: bool) -> Arrays:
    y, P, w = stated()
    options = {"n_bins": 7, "strategy": strategy, "sample_weight": w if weights else None}
    curve = metrics.reliability_curve(y, P, **options)
    return {
        "ece": np.array(metrics.expected_calibration_error(y, P, **options)),
        "classwise": np.array(metrics.classwise_calibration_error(y, P, **options)),
        "mse": np.array(metrics.zadrozny_mse(y, P, sample_weight=options["sample_weight"])),
        "curve": np.stack(curve),
        "of-a-class": np.stack(metrics.reliability_curve(y, P, label=2, **options)),
        "error": np.array(metrics.calibration_error(curve)),
        "wilson": np.stack(metrics.wilson_interval(curve.observed, curve.weight)),
    }


@case("decisions/functions")
def _() -> Arrays:
    _, P, w = stated()
    cost = np.random.RandomState(9).uniform(size=(4, 6))
    trained, target = [0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.2, 0.3]
    return {
        "plain": decide(P),
        "cost": decide(P, cost),
        "reject": decide(P, cost, reject_cost=0.35),
        "reject-by-class": decide(P, reject_cost=[0.1, 0.3, 0.5, 0.2]),
        "adjusted": adjust_prior(P[:20], trained, target),
        "adjusted-to-none": adjust_prior(P[:20], trained, [0.5, 0.5, 0.0, 0.0]),
        "estimated": estimate_prior(P, trained),
        "weighted": estimate_prior(P, trained, sample_weight=w),
    }


@case("learners/path")
def _() -> Arrays:
    t = task("wine:two")
    found = {}
    for kernel in ("rbf", "linear"):
        path = kernel_logistic_path(t.X, t.y, [10.0, 0.1, 1.0], kernel=kernel)
        found |= {f"dual/{kernel}": path.dual_coef[:, :20], f"n_iter/{kernel}": path.n_iter}
        found |= {f"intercept/{kernel}": path.intercept}
    return found


@case("learners/best-threshold")
def _() -> Arrays:
    rng = np.random.RandomState(10)
    y, scores, w = rng.randint(2, size=80), rng.normal(size=80), rng.uniform(size=80)
    scores += 0.8 * y
    criteria = "error", "balanced-error", "log-loss"
    found = [[best_threshold(y, scores, v, c) for c in criteria] for v in (None, w)]
    return {"thresholds": np.array(found)}


def searched(search, name: str = "iris") -> Arrays:
    t = task(name)
    search = clone(search).fit(t.X, t.y)
    scores = {k: v for k, v in search.cv_results_.items() if k.startswith("mean_test")}
    best = {"best": np.array(search.best_index_), **scores}
    return {**best, **predictions(search.best_estimator_, t.X_new)}


@case("search/rules")
def _() -> Arrays:
    t = task("iris")
    model = CoupledSVC(scaling=None)
    rules = ["ht", "wlw1", "wlw2", "vote", "kl", "max-wins"]
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    search = GridSearchCV(model, grid, scoring=RuleScorer(rules), refit=False, cv=3)
    search.fit(t.X, t.y)
    found = {k: v for k, v in search.cv_results_.items() if k.startswith("mean_test")}
    best = best_per_rule(search)
    found["best"] = np.array([[best[rule][name] for name in grid] for rule in rules])
    for rule in ("ht", "max-wins"):
        chosen = estimator_per_rule(search, [rule])[rule].fit(t.X, t.y)
        found |= {f"{k}/{rule}": v for k, v in predictions(chosen, t.X_new).items()}
    return found


# ------------------------------------------------------------------ tables of cases


def add(group: str, run: Callable[..., Arrays], rows: dict[str, tuple]) -> None:
    """Make a case of every row: a name, and what the function is called with."""
    for name, arguments in rows.items():
        CASES[f"{group}/{name}"] = partial(run, *arguments)


add(
    "svc",
    fitted,
    {
        **{
            f"{kernel}/{cv}": (CoupledSVC(kernel=kernel, cv=cv), "digits")
            for kernel in KERNELS
            for cv in ("loo", 5)
        },
        **{
            f"{name}/{cv}": (CoupledSVC(kernel=kernel, C=3.0, cv=cv), data)
            for name, kernel, data in (
                ("precomputed", "precomputed", "wine:precomputed"),
                ("function", cauchy, "wine"),
                ("texts", common_words, "iris:texts"),
            )
            for cv in ("loo", 5)
        },
        **{
            f"{view}/{kernel}": (CoupledSVC(kernel=kernel), f"wine:{view}")
            for view in ("two", "strings", "sparse", "weights", "repeated", "one-of-a-class")
            for kernel in ("linear", "rbf")
        },
        **{
            f"code/{code}": (CoupledSVC(code=code, combiner="kl", random_state=0), "digits:five")
            for code in CODES
        },
        **{
            f"calibration/{c}": (CoupledSVC(kernel="poly", calibration=c), "wine")
            for c in ("sigmoid", "robust-sigmoid", "isotonic")
        },
        "float32": (CoupledSVC(dtype=np.float32), "digits"),
        "float32-rows": (CoupledSVC(dtype=np.float32), "wine:single32"),
        "frame": (CoupledSVC(), "wine:frame"),
        "balanced": (CoupledSVC(class_weight="balanced"), "wine"),
        "class-weight": (CoupledSVC(class_weight={0: 2.0, 2: 0.5}), "iris"),
        "both-weights": (CoupledSVC(class_weight={1: 3.0}), "iris:weights"),
        "two-weights": (CoupledSVC(class_weight="balanced", cv=3), "iris:two:weights"),
        "scaling-off": (CoupledSVC(scaling=None), "wine"),
        "temperature": (CoupledSVC(scaling="temperature"), "wine"),
        "large-C": (CoupledSVC(C=1e3, gamma=0.5), "iris"),
        "softmax": (CoupledSVC(combiner="softmax", cv=3), "iris"),
        "splitter": (CoupledSVC(cv=KFold(4, shuffle=True, random_state=1)), "iris"),
        "repeated-folds": (CoupledSVC(cv=3), "wine:repeated"),
        "hand-made": (CoupledSVC(code=HAND_MADE, combiner="least-squares"), "digits:five"),
        "segment": (CoupledSVC(C=10.0), "segment"),
        "satimage": (CoupledSVC(C=10.0, kernel="linear"), "satimage"),
        "pendigits": (CoupledSVC(C=10.0, cv=3), "pendigits"),
        "letter": (CoupledSVC(C=10.0), "letter:few-rows"),
    },
)
add(
    "svc-scores",
    partial(fitted, decision=True),
    {
        "ovr": (CoupledSVC(), "wine"),
        "ovo": (CoupledSVC(decision_function_shape="ovo"), "wine"),
        "two": (CoupledSVC(), "wine:two"),
        "decoder": (CoupledSVC(combiner="max-wins"), "wine"),
    },
)
add(
    "svc-attributes",
    attributes,
    {
        "pairs": (
            CoupledSVC(kernel="linear"),
            "iris:weights",
            *("support_", "n_support_", "dual_coef_", "intercept_", "coef_", "probA_", "probB_"),
            *("least_proba_", "weights_", "class_weight_", "n_iter_"),
        ),
        "rest": (CoupledSVC(code="one-vs-rest", combiner="kl"), "iris", "intercept_", "weights_"),
    },
)
add(
    "scaling",
    scaling,
    {
        "svc": (CoupledSVC(), "wine", *LEARNED),
        "svc-temperature": (CoupledSVC(scaling="temperature"), "wine", "power_", "share_"),
        "rest": (Coupled(code="one-vs-rest", cv=3), "iris:weights", *LEARNED),
        "native": (Coupled(GaussianNB(), code="native", cv=3), "wine", *LEARNED),
        "alone": (Coupled(GaussianNB(), with_native=False, cv=3), "wine", *LEARNED),
    },
)
add(
    "incoherence",
    incoherence,
    {"svc": (CoupledSVC(), "wine"), "rest": (Coupled(code="one-vs-rest", combiner="kl"), "wine")},
)
add(
    "combiner",
    fitted,
    {
        f"{name}/{code}/{base}": (
            Coupled(model, code=code, combiner=name, cv=2, random_state=0),
            "digits:five",
        )
        for base, model in (("logistic", LR), ("linear-svc", LINEAR))
        for names, kinds in (
            (PAIR_RULES + PAIR_DECODERS, ("one-vs-one",)),
            (REST_RULES + REST_DECODERS[:1], ("one-vs-rest",)),
            (ANY_RULES + TRAINED + ANY_DECODERS, CODES),
        )
        for name in names
        for code in kinds
    },
)
add(
    "reliability",
    fitted,
    {
        f"{name}/{base}/{data}": (Coupled(model, code="one-vs-rest", combiner=name, cv=3), data)
        for name in ("srm", "drm")
        for base, model in (
            ("svc", SVC()),
            ("linear-svc", LINEAR),
            ("linear-kernel", SVC(kernel="linear")),
        )
        for data in ("wine", "iris:two", "digits:five", "iris:weights")
    },
)
add(
    "calibration",
    fitted,
    {
        f"{base}/{calibration}/{scaling}": (
            Coupled(model, calibration=calibration, scaling=scaling, cv=3, random_state=0),
            "wine",
        )
        for base, model in (
            ("logistic", LR),
            ("linear-svc", LINEAR),
            ("svc", SVC()),
            ("gaussian-nb", GaussianNB()),
            ("tree", DecisionTreeClassifier(max_depth=3)),
            ("klr", KLR()),
        )
        for calibration in CALIBRATIONS
        for scaling in SCALINGS
        if "svc" not in base or calibration not in ("beta", None)
    },
)
add(
    "base",
    fitted,
    {
        **{f"{name}/iris": (Coupled(base, random_state=0), "iris") for name, base in BASES.items()},
        **{
            f"{name}/rest": (
                Coupled(base, code="one-vs-rest", combiner="normalize", cv=3, random_state=0),
                data,
            )
            for data, names in {
                "segment": ("logistic", "gaussian-nb", "tree", "neighbors", "lda"),
                "satimage": ("svc", "sgd", "ridge", "boosting"),
                "pendigits": ("linear-svc", "nu-svc", "forest"),
            }.items()
            for name, base in ((name, BASES[name]) for name in names)
        },
        **{
            f"loo/{name}/{data}": (Coupled(base, cv="loo"), data)
            for name, base in (
                ("svc", SVC(C=5.0)),
                ("nu-svc", NuSVC(nu=0.1)),
                ("klr", KLR()),
                ("klr-linear", KLR(kernel="linear")),
            )
            for data in ("wine", "iris:weights", "wine:sparse", "iris:two", "iris:repeated")
        },
        **{
            f"precomputed/{cv}/{name}": (Coupled(base, cv=cv), "wine:precomputed")
            for name, base in (
                ("svc", SVC(kernel="precomputed")),
                ("klr", KLR(kernel="precomputed")),
            )
            for cv in ("loo", 3)
        },
        **{
            f"{view}/{name}": (Coupled(BASES[name], cv=3, random_state=0), f"wine:{view}")
            for view in ("two", "strings", "sparse", "weights", "repeated", "one-of-a-class")
            for name in ("logistic", "linear-svc", "svc", "sgd-log")
        },
        **{
            f"native/{name}/{data}": (
                Coupled(BASES[name], code="native", cv=3, random_state=0),
                data,
            )
            for name in ("logistic", "linear-svc", "gaussian-nb", "forest")
            for data in ("wine", "iris:weights", "iris:two")
        },
        **{
            f"with-native/{with_native}/{name}": (
                Coupled(BASES[name], with_native=with_native, cv=3, random_state=0),
                "wine",
            )
            for name in ("logistic", "tree", "lda")
            for with_native in (True, False)
        },
        **{
            f"combiner-auto/{code}": (
                Coupled(GaussianNB(), code=code, cv=3, random_state=0),
                "wine",
            )
            for code in CODES
        },
        "default/segment": (Coupled(), "segment"),
        "default/letter": (Coupled(cv=3), "letter:few-rows"),
        "no-folds": (Coupled(cv=None), "wine"),
        "hand-made": (Coupled(code=HAND_MADE, combiner="kl"), "digits:five"),
        "function-of-k": (Coupled(code=codes.one_vs_rest, combiner="kl"), "iris"),
        "missing/boosting": (
            Coupled(BASES["boosting"], code="ordinal", combiner="kl", cv=2, random_state=0),
            "soybean",
        ),
    },
)
add("options", with_options, {name: (name,) for name in OPTIONS})
add(
    "learners",
    fitted,
    {
        **{f"{name}/alone": (model, "iris:two") for name, model in LEARNERS.items()},
        **{
            f"{name}/weights": (model, "wine:two:weights")
            for name, model in LEARNERS.items()
            if name not in UNWEIGHTED
        },
        **{f"{name}/coupled": (Coupled(model, cv=3), "iris") for name, model in LEARNERS.items()},
        **{
            f"{name}/{data}": (
                Coupled(LEARNERS[name], cv=2, code=code, combiner="kl", random_state=0),
                data,
            )
            for data, code, names in (
                ("segment", "one-vs-one", ("klr-rbf", "klr-linear", "neighbors", "threshold")),
                ("satimage", "one-vs-rest", ("klr-poly", "klr-linear", "neighbors-votes")),
                ("pendigits", "sparse-random", ("boosted-nb", "threshold-lda")),
            )
            for name in names
        },
        "klr-precomputed/alone": (KLR(kernel="precomputed"), "wine:two:precomputed"),
        "klr-sparse/alone": (KLR(), "wine:two:sparse"),
        "binned-nb/missing": (
            Coupled(BinnedNaiveBayes(categorical_features=True), cv=3),
            "soybean",
        ),
        "boosted-nb/missing": (
            Coupled(BoostedNaiveBayes(3, categorical_features=True), combiner="ht", cv=2),
            "soybean",
        ),
        "boosted-nb/frame": (Coupled(BoostedNaiveBayes(3), cv=2), "wine:frame"),
    },
)
add("presets", fitted, {name: (duan(name, C=2.0, cv=3, random_state=0), "wine") for name in DUAN})
GRID = {"estimator__C": [0.1, 10.0], "estimator__gamma": [0.01, 0.1]}
TWO_STEPS = {"C": "estimator__C", "gamma": "estimator__gamma", "factors": (0.5, 1.0, 2.0), "cv": 3}
SCORES = ["accuracy", "neg_log_loss"]
add(
    "search",
    searched,
    {
        "two-steps": (TwoStepGridSearchCV(Coupled(SVC(), combiner="max-wins"), GRID, **TWO_STEPS),),
        "smoothest": (
            TwoStepGridSearchCV(
                Coupled(SVC(), cv="loo"), GRID, **TWO_STEPS, scoring=SCORES, refit=SmoothestBest()
            ),
        ),
        "no-width": (
            TwoStepGridSearchCV(
                KLR(kernel="linear"), {"C": [0.1, 1.0]}, gamma=None, factors=(0.5, 1.0), cv=3
            ),
            "wine:two",
        ),
        "smallest-C": (
            GridSearchCV(
                CoupledSVC(),
                {"C": [0.1, 1.0, 10.0]},
                scoring=SCORES,
                refit=SmallestC(log_loss="neg_log_loss", slack=0.05),
                cv=3,
            ),
        ),
    },
)
add(
    "partial-fit",
    in_batches,
    {
        **{
            f"{name}/{combiner_name}": (
                Coupled(base, code=code, combiner=combiner_name, random_state=0),
                "digits",
            )
            for name, base in (
                ("sgd", SGDClassifier()),
                ("sgd-log", SGDClassifier("log_loss")),
                ("gaussian-nb", GaussianNB(var_smoothing=1e-2)),
            )
            for combiner_name, code in (
                ("wlw2", "one-vs-one"),
                ("softmax", "one-vs-rest"),
                ("loss", "sparse-random"),
            )
        },
        "mlp": (Coupled(MLPClassifier((3,)), random_state=0), "iris"),
        "isotonic": (Coupled(GaussianNB(), calibration="isotonic", random_state=0), "wine"),
        "weights": (Coupled(SGDClassifier("log_loss"), random_state=0), "wine:weights"),
        "after-fit": (Coupled(SGDClassifier(), random_state=0), "wine", 60, True),
        "no-calibration": (Coupled(GaussianNB(), cv=None, random_state=0), "wine"),
        "letter": (Coupled(GaussianNB(var_smoothing=1e-2), random_state=0), "letter:few-rows", 140),
    },
)
KEPT = {
    "svc": (CoupledSVC(), "wine"),
    "svc-linear": (CoupledSVC(kernel="linear"), "wine:sparse"),
    "svc-strings": (CoupledSVC(combiner="ht", calibration="isotonic"), "iris:strings"),
    "coupled": (Coupled(LINEAR, calibration="robust-sigmoid"), "wine"),
    "rest": (Coupled(SVC(), code="one-vs-rest", combiner="softmax", cv=3), "wine"),
    "drm": (Coupled(SVC(), code="one-vs-rest", combiner="drm", cv=3), "wine"),
    "tree": (Coupled(DecisionTreeClassifier(max_depth=3), combiner="kl", random_state=0), "wine"),
    "klr": (Coupled(KLR(), cv="loo"), "iris"),
    "boosted-nb": (Coupled(BoostedNaiveBayes(3), cv=2), "iris"),
    "neighbors": (Coupled(PairwiseNeighbors(), cv=2), "iris"),
    "threshold": (Coupled(ThresholdOptimized(), cv=2), "iris"),
    "decision": (DecisionClassifier(CoupledSVC(), target_prior="uniform"), "wine"),
    "pipeline": (make_pipeline(StandardScaler(), CoupledSVC()), "wine"),
}
add("pickle", pickled, KEPT)
add("storage", stored, KEPT)
add(
    "onnx",
    exported,
    {
        **{f"svc/{kernel}": (CoupledSVC(kernel=kernel), "wine") for kernel in KERNELS},
        **{
            f"rule/{name}": (Coupled(LR, code=code_for(name), combiner=name, cv=3), "wine")
            for name in (*PAIR_RULES, *TRAINED, *REST_RULES, "noniterative")
            if name != "ht"
        },
        **{
            f"calibration/{c}": (Coupled(LINEAR, calibration=c, cv=3), "iris")
            for c in ("sigmoid", "robust-sigmoid", "isotonic")
        },
        **{
            f"code/{code}": (
                Coupled(LR, code=code, combiner="noniterative", cv=3, random_state=0),
                "digits:five",
            )
            for code in CODES
        },
        "nu-svc": (Coupled(NuSVC(nu=0.1), cv=3), "iris"),
        "klr": (Coupled(KLR(), cv="loo"), "iris"),
        "lda": (Coupled(LinearDiscriminantAnalysis(), cv=3), "iris"),
        "strings": (CoupledSVC(), "iris:strings"),
        "two": (CoupledSVC(), "iris:two"),
        "pipeline": (make_pipeline(StandardScaler(), CoupledSVC()), "wine"),
        "float32": (CoupledSVC(), "iris", np.float32),
    },
)
COST = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [1.0, 3.0, 0.0]])
add(
    "decisions",
    fitted,
    {
        "plain": (DecisionClassifier(), "iris"),
        "cost": (DecisionClassifier(CoupledSVC(), cost=COST), "wine"),
        "prior": (DecisionClassifier(CoupledSVC(), target_prior=[0.2, 0.5, 0.3]), "wine"),
        "reject": (DecisionClassifier(Coupled(), cost=COST, reject_cost=0.3), "iris"),
        "weights": (DecisionClassifier(Coupled(), target_prior="uniform"), "iris:weights"),
        "balanced": (
            DecisionClassifier(
                CoupledSVC(class_weight="balanced"),
                trained_prior="uniform",
                target_prior=[0.6, 0.2, 0.2],
            ),
            "wine",
        ),
    },
)
add(
    "couple",
    coupled,
    {
        f"{rule}/{code}/{k}/{how}": (rule, code, k, how == "weights")
        for rules, kinds in (
            ((*PAIR_RULES, *RULE_OPTIONS), ("one-vs-one",)),
            (REST_RULES, ("one-vs-rest",)),
            (ANY_RULES, CODES),
        )
        for rule in rules
        for code in kinds
        for k in ((3, 7) if len(kinds) == 1 else (5,))
        for how in ("equal", "weights")
    },
)
add("codes", code_matrix, {name: (name,) for name in CODES})
add(
    "audit",
    audited,
    {
        **{name: (name,) for name in CODES},
        "hand-made": (HAND_MADE,),
        "poor": (np.array([[1, 1, 1, -1, 0], [-1, 1, -1, 1, 0], [0, 1, 0, 0, 1]]),),
    },
)
add(
    "metrics",
    measured,
    {
        f"{strategy}/{how}": (strategy, how == "weights")
        for strategy in ("uniform", "quantile", "variance")
        for how in ("equal", "weights")
    },
)
add(
    "n-jobs",
    same_in_parallel,
    {
        "svc": (CoupledSVC(), "wine"),
        "svc-folds": (CoupledSVC(code="one-vs-rest", combiner="kl", cv=3), "wine"),
        "logistic": (Coupled(LR, cv=3), "wine"),
        "forest": (Coupled(FOREST(n_estimators=3), cv=2, random_state=0), "iris"),
        "klr": (Coupled(KLR(), cv=3), "iris"),
    },
)

# ------------------------------------------------------------------ records


class Record(NamedTuple):
    """What was recorded, and where."""

    machine: dict[str, str]
    cases: dict[str, Arrays]


def run(name: str) -> Arrays:
    """Return the arrays of a case, computed by one thread."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        return {key: np.asarray(values) for key, values in CASES[name]().items()}


def machine() -> dict[str, str]:
    """Return all that rounding depends on."""
    packages = "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "onnxruntime"
    blas = {
        f"{info['internal_api']} {info['version']} {info.get('architecture', '')}"
        for info in threadpool_info()
        if info["user_api"] == "blas"
    }
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": f"{_cpu_model()}, {llvmlite.binding.get_host_cpu_name()}",
        "blas": ", ".join(sorted(blas)),
        **{name: _version(name) for name in packages},
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(package: str) -> str:
    try:
        return version(package)
    except ImportError:
        return "none"


def write(path: str | Path, cases: dict[str, Arrays]) -> None:
    """Keep a record: arrays of one type end to end, and where each of them is."""
    index, parts = [], {}
    for name, arrays in cases.items():
        for key, values in arrays.items():
            index.append([name, key, values.dtype.str, values.shape])
            parts.setdefault(values.dtype.str, []).append(values.ravel())
    texts = {"index": json.dumps(index), "machine": json.dumps(machine())}
    joined = {kind: np.concatenate(values) for kind, values in parts.items()}
    np.savez_compressed(path, **{k: np.array(v) for k, v in texts.items()}, **joined)


def read(path: str | Path) -> Record:
    """Read what :func:`write` has written."""
    with np.load(path) as archive:
        held = dict(archive)
    begin, cases = dict.fromkeys(held, 0), {}
    for name, key, kind, shape in json.loads(str(held["index"])):
        end = begin[kind] + int(np.prod(shape))
        cases.setdefault(name, {})[key] = held[kind][begin[kind] : end].reshape(shape)
        begin[kind] = end
    return Record(json.loads(str(held["machine"])), cases)


def is_same(old: Arrays, new: Arrays) -> bool:
    """Whether all bits are equal."""
    return _form(old) == _form(new) and all(old[k].tobytes() == new[k].tobytes() for k in old)


def difference(old: Arrays, new: Arrays) -> float:
    """Return the largest difference of two numbers; infinity where arrays are of other forms."""
    if _form(old) != _form(new):
        return np.inf
    return max((_distance(old[k].astype(float), new[k].astype(float)) for k in old), default=0.0)


def _form(arrays: Arrays) -> dict[str, tuple]:
    return {key: (values.dtype.str, values.shape) for key, values in arrays.items()}


def _distance(old: NDArray[np.float64], new: NDArray[np.float64]) -> float:
    equal = (old == new) | (np.isnan(old) & np.isnan(new))
    with np.errstate(invalid="ignore"):
        gaps = np.where(equal, 0.0, np.abs(old - new))
    return float(np.nan_to_num(gaps, nan=np.inf).max(initial=0.0))


def is_allowed(name: str, old: Arrays, new: Arrays) -> bool:
    """Whether a case is as it was, on the machine of the record."""
    return is_same(old, new) or (name in MOVED_BLAS and difference(old, new) <= 1e-12)


def compare(record: Record, names: list[str]) -> bool:
    """Print how many cases are the same and which are not; return whether all may be so."""
    for key, value in machine().items():
        if value != record.machine.get(key):
            print(f"recorded with {key} {record.machine.get(key)}, now {value}")
    same, wrong, skipped = 0, 0, 0
    for name in names:
        old = record.cases.get(name)
        try:
            new = run(name)
        except Skipped as reason:
            skipped += 1
            print(f"{name:<50} skipped: {reason}")
            continue
        except Exception as error:  # all others are still to be compared
            wrong += 1
            print(f"{name:<50} failed: {type(error).__name__}: {error}")
            continue
        if old is not None and is_same(old, new):
            same += 1
            continue
        allowed = old is not None and is_allowed(name, old, new)
        wrong += not allowed
        found = "not in the record" if old is None else f"{difference(old, new):.3g}"
        print(f"{name:<50} {found}{' (' + MOVED_BLAS[name] + ')' if allowed else ''}")
    print(f"{same} of {len(names)} cases bit-identical, {skipped} skipped, {wrong} wrong")
    return wrong == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", metavar="PATH")
    action.add_argument("--compare", metavar="PATH")
    parser.add_argument("--only", metavar="PREFIX", default="", help="cases that begin so")
    options = parser.parse_args()
    chosen = [name for name in CASES if name.startswith(options.only)]
    if options.write:
        write(options.write, {name: run(name) for name in chosen})
        print(f"{len(chosen)} cases in {options.write}")
        return 0
    record = read(options.compare)
    gone = [name for name in record.cases if name.startswith(options.only) and name not in CASES]
    for name in gone:
        print(f"{name:<50} is in the record, but no case")
    return int(not compare(record, chosen) or bool(gone))


if __name__ == "__main__":
    sys.exit(main())
