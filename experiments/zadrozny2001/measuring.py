"""Measurements for Zadrozny (2001). Binary models are fitted once and combined by every rule.

The name of a method is "code/rule", followed by the calibration of the binary estimates and by
"temperature", if it has them: "one-vs-one/kl/sigmoid/temperature".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments import datasets
from experiments.runner import Row
from experiments.tempering import probabilities_of_columns, temperature_of
from manyclass import CoupledSVC, codes
from manyclass._lib.weights import column_sizes
from manyclass.banks import MARGIN, fit_bank
from manyclass.calibration import CALIBRATIONS, Calibration
from manyclass.combiners.base import resolve
from manyclass.combiners.coupling.general import Zadrozny
from manyclass.combiners.decoding import LossBased
from manyclass.learners import BinnedNaiveBayes, BoostedNaiveBayes
from manyclass.scaling.temperature import FLOOR
from manyclass.scores.crossfit import CrossFittedScores
from manyclass.scores.folds import fold_numbers, make_folds
from manyclass.scores.out_of_sample import DenseScores

FOLDS = 5
LOWEST = 1e-7  # coupling clips binary probabilities to this distance from 0 and 1
TIE = 1e-9  # sums of binary probabilities that differ by less count as equal
NO_LIMIT = 1e-300  # a tolerance that only a change of exactly 0 meets
LOSSES = ("linear", "exponential")
EQUAL_WEIGHTS = "kl, equal weights"
COUNTED = ("noniterative", "zadrozny", "kl", EQUAL_WEIGHTS)
FITTED = ("sigmoid", "isotonic")
CALIBRATED = (None, *FITTED)

Array = NDArray[np.float64]
Judged = dict[str, Array]
"""The loss of every test row, by metric."""


class Problem(NamedTuple):
    """Training and test set; classes are numbers."""

    X_train: Array
    X_test: Array
    y_train: NDArray[np.intp]
    y_test: NDArray[np.intp]
    k: int
    categorical: bool


class Margins(NamedTuple):
    """Log-odds of the binary models of a code."""

    code: NDArray[np.int8]
    weights: Array
    """Number of training rows of every column."""
    test: Array
    """Margins of the test rows, shape (n_test, l)."""
    train: Array
    """Out-of-sample margins of the training rows, all from the same fold, shape (n_train, l)."""
    folds: NDArray[np.intp] | None = None
    """Number of the fold that left each training row out."""


def read(name: str, limit: int | None = None) -> Problem:
    """Load the official splits of a data set, at most ``limit`` rows of each.

    Missing values of "soybean" are a category of their own. Those of "soybean-ignored" stay
    missing, and the learners ignore them.
    """
    dataset, _, ignored = name.partition("-")
    data = datasets.load(dataset)
    X_train, X_test, labels_train, labels_test = data.train_test(random_state=0)
    if data.categorical and not ignored:
        X_train, X_test = (np.nan_to_num(X, nan=-1.0) for X in (X_train, X_test))
    rng = np.random.default_rng(0)
    train, test = (rng.permutation(len(X))[:limit] for X in (X_train, X_test))
    if limit is None:
        train, test = np.sort(train), np.sort(test)
    classes, y_train = np.unique(labels_train[train], return_inverse=True)
    known = np.isin(labels_test[test], classes)  # a small sample may lack a class
    test = test[known]
    y_test = np.searchsorted(classes, labels_test[test])
    return Problem(X_train[train], X_test[test], y_train, y_test, len(classes), data.categorical)


def learner(problem: Problem, kind: type = BoostedNaiveBayes, **options: Any) -> Any:
    """Return naive Bayes, told which attributes are categories."""
    return kind(categorical_features=problem.categorical, **options)


def splitter() -> StratifiedKFold:
    """Return the shuffled folds of calibration and temperature.

    Consecutive rows of satimage are similar. Folds of consecutive rows are harder than the test
    set, and would make every calibration under-confident.
    """
    return StratifiedKFold(FOLDS, shuffle=True, random_state=0)


def fit_margins(problem: Problem, name: str, seed: int, with_train: bool = True) -> Margins:
    """Fit the binary models of a code, once for all combiners."""
    X, y, k = problem.X_train, problem.y_train, problem.k
    code, estimator = codes.by_name(name, k, random_state=seed), learner(problem)
    bank = fit_bank(estimator, X, y, code, MARGIN)
    train, numbers = np.empty((0, code.shape[1])), None
    if with_train:
        folds = make_folds(splitter(), X, y, np.arange(k), warn=False)
        scores = CrossFittedScores(
            bank,
            lambda rows: fit_bank(estimator, X, y, code, MARGIN, rows=rows),
            *(X, y, code, np.ones(len(y)), folds),
            n_by_folds=len(y),
        )
        train, numbers = scores.of_one_source(np.arange(len(y))), fold_numbers(folds, len(y))
    weights = column_sizes(y, code, np.ones(len(y)))
    return Margins(code, weights, bank.scores(problem.X_test), train, numbers)


# -- tables 2 and 3 --------------------------------------------------------------------


def measure_code(name: str, code: str, seed: int, limit: int | None = None) -> Iterator[Row]:
    """Yield the metrics of all methods on one code, and the comparisons of some."""
    problem = read(name, limit)
    margins = fit_margins(problem, code, seed)
    combined = dict(_combine_all(margins, problem.y_train))
    judged = {
        f"{code}/{method}": judge(values, problem.y_test, not method.startswith("loss-"))
        for method, values in combined.items()
    }
    for method, losses in judged.items():
        yield from _means(method, losses)
    for rule in COUNTED:
        off = labels_off(combined[rule].argmax(axis=1), margins)
        yield Row(f"{code}/{rule}", "labels off linear loss", float(off))
    judged |= _references(problem, code)
    for first, second in comparisons(code):
        losses = {m: judged[first][m] - judged[second][m] for m in judged[second]}
        yield from _means(f"{first} - {second}", losses)


def _references(problem: Problem, code: str) -> dict[str, Judged]:
    """Return the losses of the references: naive Bayes, and one-vs-one for a sparse code."""
    naive_bayes = learner(problem, BinnedNaiveBayes).fit(problem.X_train, problem.y_train)
    found = {"naive-bayes": judge(naive_bayes.predict_proba(problem.X_test), problem.y_test)}
    if code == "sparse-random":
        pairs = fit_margins(problem, "one-vs-one", 0, with_train=False)
        p = resolve("kl").combine(expit(pairs.test), pairs.code, pairs.weights).values
        found["one-vs-one/kl"] = judge(p, problem.y_test)
    return found


def comparisons(code: str) -> list[tuple[str, str]]:
    """Return the pairs of methods whose losses are compared row by row."""
    pairs = [("zadrozny", f"loss-{loss}") for loss in LOSSES]
    pairs += [("zadrozny", "noniterative"), ("kl", "zadrozny"), ("least-squares", "kl")]
    for rule in ("zadrozny", "kl", "least-squares"):
        pairs += [(f"{rule}/{calibration}", rule) for calibration in FITTED]
    pairs += [
        (f"{method}/temperature", method)
        for rule in ("kl", "least-squares")
        for method in (rule, f"{rule}/sigmoid", f"{rule}/isotonic")
    ]
    named = [(f"{code}/{first}", f"{code}/{second}") for first, second in pairs]
    named.append((f"{code}/zadrozny", "naive-bayes"))
    if code == "sparse-random":
        named.append((f"{code}/zadrozny", "one-vs-one/kl"))
    return named


def _combine_all(margins: Margins, y: NDArray[np.intp]) -> Iterator[tuple[str, Array]]:
    """Yield the output of every method for the test rows; ``y`` are the training classes."""
    for loss in LOSSES:
        decoded = LossBased(loss).combine(expit(margins.test) - 0.5, margins.code)
        yield f"loss-{loss}", decoded.values
    yield EQUAL_WEIGHTS, resolve("kl").combine(expit(margins.test), margins.code).values
    rules = ["noniterative", "zadrozny", "kl", "least-squares"]
    if codes.pair_columns(margins.code) is not None:
        rules.append("wlw2")
    for calibration in CALIBRATED:
        r_test, fitted, scores = _calibrate(margins, y, calibration)
        rows, r = probabilities_of_columns(fitted, scores)
        for rule in rules:
            method = rule if calibration is None else f"{rule}/{calibration}"
            p = resolve(rule).combine(r_test, margins.code, margins.weights).values
            yield method, p
            if rule not in ("noniterative", "zadrozny"):
                temperature = temperature_of(resolve(rule), scores, rows, r, margins.weights)
                yield f"{method}/temperature", temperature.scale(p)


def _calibrate(
    margins: Margins, y: NDArray[np.intp], calibration: str | None
) -> tuple[Array, Calibration | None, DenseScores]:
    """Return binary probabilities of the test rows, and what a temperature is fitted on."""
    known, ones = (y, margins.code), np.ones(len(y))
    if calibration is None:
        return expit(margins.test), None, DenseScores(expit(margins.train), *known, ones)
    fitted = CALIBRATIONS[calibration]().fit(margins.train, margins.code[y], ones)
    scores = DenseScores(margins.train, *known, ones, margins.folds)
    return fitted.transform(margins.test), fitted, scores


def judge(values: Array, y: NDArray[np.intp], probabilities: bool = True) -> Judged:
    """Return the losses of every row: error, and of probabilities squared error and log-loss."""
    error = (values.argmax(axis=1) != y) * 1.0
    if not probabilities:
        return {"error": error}
    squares = (np.eye(values.shape[1])[y] - values) ** 2
    log_loss = -np.log(np.maximum(values[np.arange(len(y)), y], FLOOR))
    return {"error": error, "mse": squares.mean(axis=1), "log-loss": log_loss}


def _means(method: str, judged: Judged) -> Iterator[Row]:
    """Yield the mean of every metric, and its standard error over the test rows."""
    for metric, losses in judged.items():
        yield Row(method, metric, float(losses.mean()))
        yield Row(method, f"{metric} se", float(losses.std(ddof=1) / np.sqrt(len(losses))))


def labels_off(labels: NDArray[np.intp], margins: Margins) -> int:
    """Count the test rows whose label does not minimise the linear loss, L = -y.

    r is clipped as in coupling, so only the rules differ.
    """
    r = np.clip(expit(margins.test), LOWEST, 1.0 - LOWEST)
    scores = (r - 0.5) @ margins.code.T
    return int((scores[np.arange(len(r)), labels] < scores.max(axis=1) - TIE).sum())


# -- the baselines ---------------------------------------------------------------------

BINS = (3, 5, 20, 50)  # besides 10
SMOOTHINGS = (0.01, 0.1, 10.0)  # besides 1


def measure_baselines(name: str, limit: int | None = None) -> Iterator[Row]:
    """Yield the metrics of naive Bayes in several versions, and of a support vector machine."""
    problem = read(name, limit)
    yield Row("data", "test rows", float(len(problem.y_test)))
    yield Row("data", "classes", float(problem.k))
    for method, X, X_test, model in _baselines(problem):
        p = model.fit(X, problem.y_train).predict_proba(X_test)
        yield from _means(method, judge(p, problem.y_test))
    if limit is None:
        swapped = learner(problem, BinnedNaiveBayes).fit(problem.X_test, problem.y_test)
        p = np.zeros((len(problem.y_train), problem.k))
        p[:, swapped.classes_] = swapped.predict_proba(problem.X_train)
        yield from _means("naive-bayes, parts swapped", judge(p, problem.y_train))


def _baselines(problem: Problem) -> Iterator[tuple[str, Array, Array, Any]]:
    parts = problem.X_train, problem.X_test
    yield "naive-bayes", *parts, learner(problem, BinnedNaiveBayes)
    for smoothing in SMOOTHINGS:
        model = learner(problem, BinnedNaiveBayes, smoothing=smoothing)
        yield f"naive-bayes, smoothing {smoothing:g}", *parts, model
    if problem.categorical:
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        yield "CoupledSVC", *parts, make_pipeline(encoder, CoupledSVC())
        return
    for n_bins in BINS:
        yield (
            f"naive-bayes, {n_bins} bins",
            *parts,
            learner(problem, BinnedNaiveBayes, n_bins=n_bins),
        )
    yield "naive-bayes, Gaussian", *parts, GaussianNB()
    yield "CoupledSVC", *parts, make_pipeline(StandardScaler(), CoupledSVC())


# -- figure 1 --------------------------------------------------------------------------

EVERY = 50  # every iteration up to this one is measured
LATER = (70, 100, 200, 500, 1000, 2000)


def measure_iterations(
    name: str, code: str, seed: int, last: int, limit: int | None = None
) -> Iterator[Row]:
    """Yield the error and MSE after every iteration up to ``EVERY``, then after some."""
    problem = read(name, limit)
    margins = fit_margins(problem, code, seed, with_train=False)
    r, y = expit(margins.test), problem.y_test
    start = judge(resolve("noniterative").combine(r, margins.code).values, y)
    yield from _at(code, 0, start)
    for iteration in (*range(1, min(EVERY, last) + 1), *(t for t in LATER if t <= last)):
        rule = Zadrozny(tol=NO_LIMIT, max_iter=iteration)
        p = rule.combine(r, margins.code, margins.weights).values
        yield from _at(code, iteration, judge(p, y))
    least = resolve("kl").combine(r, margins.code, margins.weights).values
    yield Row(f"{code}/kl", "mse", float(judge(least, y)["mse"].mean()))


def _at(code: str, iteration: int, judged: Judged) -> Iterator[Row]:
    for metric in ("mse", "error"):
        yield Row(f"{code}/{iteration}", metric, float(judged[metric].mean()))
