"""The compared methods: Duan's twelve, and those that this library adds.

A method learns from out-of-sample scores how to combine them. In the grid search its
performance is estimated from cross-validated scores alone, which "adds almost no extra cost"
(section 3.1): see :func:`estimate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC

from experiments.duan2003.machines import Code
from experiments.duan2003.partitions import Classes, Floats
from manyclass import codes
from manyclass._lib.weights import column_sizes
from manyclass.calibration import CALIBRATIONS, Calibration
from manyclass.classifier import CoupledBase, CoupledClassifier
from manyclass.combiners.base import resolve
from manyclass.combiners.softmax import Softmax
from manyclass.learners import KernelLogisticRegression
from manyclass.scaling import Temperature
from manyclass.scaling.temperature import FLOOR
from manyclass.scores.folds import Fold
from manyclass.search.presets import DUAN, Method
from manyclass.svm import CoupledSVC

TUNED, DEFAULT = "CoupledSVC, tuned", "CoupledSVC, default"
ERROR, LOG_LOSS = "error", "log-loss"

Family = tuple[type[ClassifierMixin], str]


class Recipe(NamedTuple):
    """A method, and the way its C and σ² are chosen."""

    method: Method
    temperature: bool = False
    goal: str = ERROR
    """The target of cross-validation: the error by the rules (a) to (f), or the log-loss."""
    machines_of: str | None = None
    """The method whose C and σ² are used, instead of a search."""

    @property
    def family(self) -> Family:
        """Name that is shared by methods which combine the same machines."""
        return self.method.learner, self.method.code

    @property
    def gives_probabilities(self) -> bool:
        """Whether the output is a probability: shares of votes are not."""
        return resolve(self.method.combiner).gives_probabilities and self.method.combiner != "vote"

    @property
    def learns(self) -> bool:
        """Whether the method learns from out-of-sample scores."""
        calibrated = self.method.calibration is not None
        return calibrated or self.temperature or resolve(self.method.combiner).learns


PAPER: dict[str, Recipe] = {name: Recipe(method) for name, method in DUAN.items()}

FAMILIES: dict[str, Family] = {
    "SVM 1va": (SVC, "one-vs-rest"),
    "SVM 1v1": (SVC, "one-vs-one"),
    "KLR 1va": (KernelLogisticRegression, "one-vs-rest"),
    "KLR 1v1": (KernelLogisticRegression, "one-vs-one"),
}


def _ours(
    family: str,
    combiner: str,
    machines_of: str,
    calibration: str | None = None,
    temperature: bool = False,
) -> Recipe:
    method = Method(*FAMILIES[family], combiner, calibration)
    return Recipe(method, temperature, machines_of=machines_of)


OURS: dict[str, Recipe] = {
    "PSVM 1va, kl": _ours("SVM 1va", "kl", "WTA_PSVM", "sigmoid"),
    "PSVM 1va, least-squares": _ours("SVM 1va", "least-squares", "WTA_PSVM", "sigmoid"),
    "PSVM 1va, kl, temperature": _ours("SVM 1va", "kl", "WTA_PSVM", "sigmoid", True),
    "KLR 1va, kl": _ours("KLR 1va", "kl", "WTA_KLR"),
    "KLR 1va, least-squares": _ours("KLR 1va", "least-squares", "WTA_KLR"),
    "KLR 1va, sigmoid, kl, temperature": _ours("KLR 1va", "kl", "WTA_KLR", "sigmoid", True),
    "PSVM 1v1, wlw2": _ours("SVM 1v1", "wlw2", "PWC_PSVM", "sigmoid"),
    "PSVM 1v1, wlw2, temperature": _ours("SVM 1v1", "wlw2", "PWC_PSVM", "sigmoid", True),
    "KLR 1v1, wlw2": _ours("KLR 1v1", "wlw2", "PWC_KLR"),
    "KLR 1v1, wlw2, temperature": _ours("KLR 1v1", "wlw2", "PWC_KLR", temperature=True),
    "KLR 1v1, sigmoid, wlw2, temperature": _ours("KLR 1v1", "wlw2", "PWC_KLR", "sigmoid", True),
    TUNED: Recipe(Method(*FAMILIES["SVM 1v1"], "wlw2", "sigmoid"), True, LOG_LOSS),
}
"""For one-vs-one, `ht` equals `kl`, and `wlw2` equals `least-squares` with equal weights."""

RECIPES = PAPER | OURS
ALL_METHODS = (*RECIPES, DEFAULT)
WITH_PROBABILITIES = (*(name for name, r in RECIPES.items() if r.gives_probabilities), DEFAULT)


def of_family(family: str) -> dict[str, Recipe]:
    """Return the methods that combine the machines of a family."""
    return {name: r for name, r in RECIPES.items() if r.family == FAMILIES[family]}


class Function:
    """The combination of scores that a method learns.

    Parameters
    ----------
    recipe : Recipe
    scores : array of shape (n, l)
        Out-of-sample margins.
    y : int array of shape (n,)
        Class indices.
    code : int8 array of shape (k, l)
    """

    def __init__(self, recipe: Recipe, scores: Floats, y: Classes, code: Code):
        ones = np.ones(len(y))
        self.code, self.weights = code, column_sizes(y, code, ones)
        self.combiner = resolve(recipe.method.combiner)
        self.temperature: Temperature | None = None
        self.logistic = recipe.method.learner is KernelLogisticRegression
        self.calibration: Calibration | None = None
        if recipe.method.calibration is not None:
            self.calibration = CALIBRATIONS[recipe.method.calibration]().fit(scores, code[y], ones)
        if self.combiner.learns:
            self.combiner.fit(scores, y, code, ones)
        if recipe.temperature:
            self.temperature = Temperature().fit_checked(self(scores), y, ones)

    def __call__(self, scores: Floats) -> Floats:
        """Return class probabilities, or decoder scores, (m, k) from margins (m, l)."""
        values = scores
        if self.calibration is not None:
            values = self.calibration.transform(scores)
        elif self.logistic and self.combiner.takes == "probabilities":
            values = expit(scores)
        combined = self.combiner.combine(values, self.code, self.weights).values
        return combined if self.temperature is None else self.temperature.scale(combined)


class Estimate(NamedTuple):
    """Cross-validated performance of a method; the log-loss is NaN for labels alone."""

    error: float
    nll: float


def estimate(
    recipe: Recipe, scores: Floats, y: Classes, code: Code, folds: Sequence[Fold]
) -> Estimate:
    """Estimate the performance of a method from cross-validated scores.

    The method learns on the scores of all folds but one, and is evaluated on the scores of
    that one. Soft-max with a regulariser (SMC) cross-validates its own C on the same scores
    (section 3.2): its performance is that for the C it chooses.

    Parameters
    ----------
    recipe : Recipe
    scores : array of shape (n, l)
        Margins of every row by machines that were fitted without its fold.
    y, code, folds
        As the machines were fitted on.
    """
    combiner = resolve(recipe.method.combiner)
    if isinstance(combiner, Softmax):
        search = combiner.fit(scores, y, code).search_
        chosen = int(np.flatnonzero(search["C"] == combiner.C_)[0])
        return Estimate(float(search["error"][chosen]), float(search["nll"][chosen]))
    if not recipe.learns:
        values = Function(recipe, scores, y, code)(scores)
    else:
        values = np.empty((len(y), len(code)))
        for train, test in folds:
            values[test] = Function(recipe, scores[train], y[train], code)(scores[test])
    error = float((values.argmax(axis=1) != y).mean())
    nll = float(log_losses(values, y).mean()) if recipe.gives_probabilities else np.nan
    return Estimate(error, nll)


def log_losses(p: Floats, y: Classes) -> Floats:
    """Return -log p of the true class."""
    return -np.log(np.maximum(p[np.arange(len(y)), y], FLOOR))


def make_code(family: str, k: int) -> Code:
    """Return the code of the machines of a family."""
    return codes.by_name(FAMILIES[family][1], k)


def final_model(name: str, C: float, sigma2: float, folds: Sequence[Fold]) -> CoupledBase:
    """Return the final estimator of a method. It is not fitted yet.

    Sigmoids and soft-max functions learn from the scores of the folds (section 3.1).
    """
    gamma = 0.5 / sigma2
    if name == TUNED:
        return CoupledSVC(C=C, gamma=gamma, scaling="temperature")
    recipe = RECIPES[name]
    return CoupledClassifier(
        recipe.method.learner(C=C, gamma=gamma),
        code=recipe.method.code,
        combiner=recipe.method.combiner,
        calibration=recipe.method.calibration,
        cv=folds,
        scaling="temperature" if recipe.temperature else None,
    )
