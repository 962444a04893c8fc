"""One-vs-rest machines of Liu & Zheng (2005), fitted once and decoded by every rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments.datasets import load
from experiments.runner import Row
from experiments.tempering import probabilities_of_columns, temperature_of
from manyclass import CoupledSVC, codes, couple
from manyclass.banks import MARGIN, fit_bank
from manyclass.calibration import Sigmoid
from manyclass.combiners.base import resolve
from manyclass.combiners.decoding import WinnerTakesAll
from manyclass.combiners.reliability import DynamicReliability, StaticReliability
from manyclass.combiners.srm_drm import (
    DynamicReliabilityCV,
    DynamicReliabilityDecoder,
    StaticReliabilityDecoder,
)
from manyclass.metrics import zadrozny_mse
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scores.leave_one_out import leave_one_out
from manyclass.scores.out_of_sample import OutOfSampleScores

RULES = ("f(x)", "SRM", "DRM")
TEST_ROWS = {"segment": 2100, "letter": 4000, "iris": 150}
COUPLERS = ("kl", "least-squares", "normalize")
SIZES = (1, 3, 5, 9, 15, 25, 45, 75, 125)  # numbers of neighbours that are also tried one by one
ITERATIONS = 100_000
UNCONVERGED = f"raw inputs, {ITERATIONS} iterations"
DECADES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)

Array = NDArray[np.float64]
Answers = dict[str, Array]
"""Class scores or probabilities (n, k) of each method."""


@dataclass(frozen=True)
class Setting:
    """A row of Table I, with the parameters that the paper does not state."""

    problem: str
    dataset: str
    published: tuple[str, str]
    """Data set and kernel as the published table names them."""
    machine: dict[str, Any] = field(hash=False)
    """Parameters of SVC other than C."""
    standardised: bool = False
    variant: str = "raw inputs"
    grid: tuple[float, ...] = DECADES

    @property
    def name(self) -> str:
        """Name in the results."""
        return f"{self.problem}, {self.variant}"


def _settings() -> Iterator[Setting]:
    for degree in (1, 2):
        machine = {"kernel": "poly", "degree": degree, "gamma": 1.0, "coef0": 1.0}
        row = f"segment, degree {degree}", "segment", ("segment", f"poly degree {degree}")
        yield Setting(*row, machine, standardised=True, variant="standardised")
        # Coefficients hardly reach C before the solver stops: a coarse grid is enough.
        machine = {**machine, "max_iter": ITERATIONS}
        yield Setting(*row, machine, variant=UNCONVERGED, grid=DECADES[1:4])
    # gamma="scale" stands for a sigma^2 of the number of features times their variance.
    rbf = {"kernel": "rbf", "gamma": "scale", "cache_size": 500}
    grid = (1.0, 3.0, 10.0, 20.0, 30.0, 100.0)
    yield Setting("letter", "letter", ("letter", "rbf"), rbf, grid=grid)
    iris = "iris", "iris", ("iris (leave-one-out)", "linear"), {"kernel": "linear"}
    yield Setting(*iris, standardised=True, variant="standardised")
    yield Setting(*iris)


SETTINGS = {setting.name: setting for setting in _settings()}
PROBLEMS = tuple(dict.fromkeys(setting.problem for setting in SETTINGS.values()))


def method_name(rule: str, C: float) -> str:
    """Return the name of a rule with this C in the results."""
    return f"{rule}, C={C:g}"


# -- data ------------------------------------------------------------------------------


def scaled(standardised: bool, X: Array, X_test: Array) -> tuple[Array, Array]:
    """Return both; on request the training data standardise them."""
    if standardised:
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return np.ascontiguousarray(X), np.ascontiguousarray(X_test)


class Split(NamedTuple):
    """Training and test data, classes 0 to k - 1."""

    X: Array
    X_test: Array
    y: NDArray[np.intp]
    y_test: NDArray[np.intp]

    def first_classes(self, count: int) -> Split:
        """Return the samples of the first classes in alphabetical order."""
        train, test = self.y < count, self.y_test < count
        return Split(self.X[train], self.X_test[test], self.y[train], self.y_test[test])

    def leave_one_out(self) -> Iterator[Split]:
        """Yield the training data without one sample, and that sample, for each sample."""
        for i in range(len(self.y)):
            rest = np.arange(len(self.y)) != i
            yield Split(self.X[rest], self.X[[i]], self.y[rest], self.y[[i]])


def load_split(dataset: str, resample: int | None = None) -> Split:
    """Return the official split, or a random one of the same size.

    iris has no official split: its training and test data are the same, for leave-one-out.
    """
    data = load(dataset)
    classes, y = np.unique(data.y, return_inverse=True)
    if data.split is None:
        return Split(data.X, data.X, y, y)
    train = data.split == "train"
    if resample is not None:
        train = _drawn(y, np.bincount(y[train], minlength=len(classes)), resample)
    return Split(data.X[train], data.X[~train], y[train], y[~train])


def _drawn(y, n_train, seed: int) -> NDArray[np.bool_]:
    """Return which samples train: the same number of each class, at random."""
    rng, train = np.random.default_rng(seed), np.zeros(len(y), dtype=np.bool_)
    for c, n in enumerate(n_train):
        train[rng.choice(np.flatnonzero(y == c), n, replace=False)] = True
    return train


# -- one fit, all answers --------------------------------------------------------------


class Machines:
    """One-vs-rest support vector machines, and the scores and probabilities from them."""

    def __init__(self, machine: dict[str, Any], C: float, X: Array, y: NDArray[np.intp]):
        self.X, self.y, self.code = X, y, codes.one_vs_rest(int(y.max()) + 1)
        self._machine = SVC(C=C, **machine)
        self.bank: Any = self._fit()
        self.ones = np.ones(len(y))
        self.terms = self.bank.objective_terms(X, y, self.code, self.ones)

    def _fit(self, rows=None, columns=None):
        code = self.code if columns is None else self.code[:, columns]
        return fit_bank(self._machine, self.X, self.y, code, MARGIN, rows=rows)

    @cached_property
    def scores(self) -> OutOfSampleScores:
        """Scores by analytic leave-one-out, or from 5 folds where it cannot be trusted."""
        data, enough = (self.X, self.y, self.code, self.ones), rows_for_scaling(*self.code.shape)
        scores, _ = leave_one_out(self.bank, self._fit, *data, n_by_folds=enough)
        return scores

    @cached_property
    def left_out(self) -> Array:
        """All of these scores, shape (n, l)."""
        return self.scores.dense()

    @cached_property
    def dynamic(self) -> DynamicReliabilityCV:
        """The dynamic reliability, with the chosen number of neighbours."""
        return DynamicReliabilityCV().fit(self.X, self.y, self.code, self.terms, self.left_out)

    def cross_validated_error(self) -> float:
        """Return the error of winner-takes-all on the scores of left-out samples."""
        labels = WinnerTakesAll().combine(self.left_out, self.code).values.argmax(axis=1)
        return float(np.mean(labels != self.y))

    def decoded(self, X: Array) -> Answers:
        """Return class scores by the paper's three rules."""
        f = self.bank.scores(X)
        near = DynamicReliabilityDecoder().combine(f, self.code, self.dynamic.of(X, f))
        return {**self.simply_decoded(X), "DRM": near.values}

    def simply_decoded(self, X: Array) -> Answers:
        """Return class scores by the two rules without a choice of neighbours."""
        f = self.bank.scores(X)
        static = StaticReliability().fit(self.X, self.y, self.code, self.terms)
        return {
            "f(x)": WinnerTakesAll().combine(f, self.code).values,
            "SRM": StaticReliabilityDecoder().combine(f, self.code, static.values_).values,
        }

    def by_sizes(self, X: Array, sizes: Sequence[int] = SIZES) -> Answers:
        """Return class scores by DRM for each number of neighbours."""
        f = self.bank.scores(X)
        answers: Answers = {}
        for size in sizes:
            measure = DynamicReliability(size).fit(self.X, self.y, self.code, self.terms)
            decoder = DynamicReliabilityDecoder(size)
            answers[f"DRM m={size}"] = decoder.combine(f, self.code, measure.of(X, f)).values
        return answers

    def coupled(self, X: Array) -> Answers:
        """Return class probabilities by sigmoids and coupling, without and with temperature."""
        sigmoid = Sigmoid().fit(self.left_out, self.code[self.y], self.ones)
        rows, known = probabilities_of_columns(sigmoid, self.scores)
        new, equal = sigmoid.transform(self.bank.scores(X)), np.ones(self.code.shape[1])
        answers: Answers = {}
        for rule in COUPLERS:
            p = couple(new, self.code, rule)
            temperature = temperature_of(resolve(rule), self.scores, rows, known, equal)
            answers |= {rule: p, f"{rule}, temperature": temperature.scale(p)}
        return answers


def fit_machines(setting: Setting, C: float, split: Split) -> tuple[Machines, Array]:
    """Return the machines, and the test data scaled as the training data were."""
    X, X_test = scaled(setting.standardised, split.X, split.X_test)
    return Machines(setting.machine, C, X, split.y), X_test


def default_probabilities(split: Split) -> Array:
    """Return the probabilities of CoupledSVC with its defaults, on standardised inputs."""
    X, X_test = scaled(True, split.X, split.X_test)
    return CoupledSVC().fit(X, split.y).predict_proba(X_test)


# -- what is measured ------------------------------------------------------------------


def error_rows(answers: Answers, y, C: float) -> Iterator[Row]:
    """Yield the error of every method, and how many labels the reliabilities correct or spoil."""
    wrong = {name: values.argmax(axis=1) != y for name, values in answers.items()}
    for name, missed in wrong.items():
        yield Row(method_name(name, C), "error", float(missed.mean()))
    for better, worse in (("SRM", "f(x)"), ("DRM", "f(x)"), ("DRM", "SRM")):
        mended, spoiled = wrong[worse] & ~wrong[better], wrong[better] & ~wrong[worse]
        yield Row(method_name(better, C), f"mends {worse}", float(mended.sum()))
        yield Row(method_name(better, C), f"spoils {worse}", float(spoiled.sum()))


def probability_rows(method: str, p: Array, y) -> Iterator[Row]:
    """Yield log-loss, Brier score and MSE of class probabilities."""
    labels = np.arange(p.shape[1])
    yield Row(method, "log-loss", float(log_loss(y, p, labels=labels)))
    yield Row(method, "brier", float(brier_score_loss(y, p, labels=labels)))
    yield Row(method, "mse", zadrozny_mse(y, p, classes=labels))


def better_by_sign_test(mended: float, spoiled: float, level: float = 0.05) -> bool | None:
    """Decide by an exact one-sided sign test on the samples that two rules label differently."""
    n = int(mended + spoiled)
    if n == 0:
        return None
    if binomtest(int(mended), n, alternative="greater").pvalue <= level:
        return True
    return False if binomtest(int(spoiled), n, alternative="greater").pvalue <= level else None
