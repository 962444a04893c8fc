"""What a bank returns: margins, probabilities, log-odds or centred probabilities.

Each kind is an object. It knows the method of a model to call, and how scores follow from
probabilities or from log-odds. Nothing else compares names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from manyclass._lib.arrays import Floats

# A choice: in log-odds it takes the place of smaller probabilities, and of 0 where a model returns
# logarithms: their small values mean more. It is well above the rounding of 1 - r, 1e-16.
SMALLEST_PROBABILITY = 1e-12


class ScoreKind(ABC):
    """A kind of score. Two kinds are equal if they are of one class."""

    name: ClassVar[str]
    """Its name in messages."""
    method: ClassVar[str] = "predict_proba"
    """The method of a binary model that returns it."""

    def of(self, model: Any, X: Any) -> Floats:
        """Return the scores (n,) of the positive side by a fitted binary model."""
        r = np.asarray(model.predict_proba(X), dtype=np.float64)
        rounding = 1e-6  # a probability in float32 may leave [0, 1] by less than this
        r = np.where((r < 0) & (r > -rounding), 0.0, np.where((r > 1) & (r < 1 + rounding), 1.0, r))
        return self.of_probabilities(r)

    def of_classes(self, model: Any, X: Any, n_classes: int) -> Floats:
        """Return the scores (n, k) of all classes against the rest by a multiclass model.

        ``model.classes_`` are class indices. A class that it does not know has probability 0.
        """
        known = np.clip(np.asarray(model.predict_proba(X), dtype=np.float64), 0.0, 1.0)
        p = np.zeros((n_classes, len(known)))
        p[np.asarray(model.classes_, dtype=np.intp)] = known.T
        return np.stack([self.of_probabilities(np.stack([1.0 - q, q], axis=1)) for q in p], axis=1)

    @abstractmethod
    def of_probabilities(self, r: Floats) -> Floats:
        """Return the scores (n,) that follow from probabilities (n, 2) of both sides."""

    @abstractmethod
    def of_log_odds(self, f: Floats) -> Floats:
        """Return the scores that follow from exact log-odds of the positive side."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __str__(self) -> str:
        return self.name


class Margin(ScoreKind):
    """The model's ``decision_function``."""

    name = "margin"
    method = "decision_function"

    def of(self, model, X):
        """Return the margins (n,)."""
        return np.asarray(model.decision_function(X), dtype=np.float64).reshape(-1)

    def of_classes(self, model, X, n_classes):
        """Return the class margins (n, k); of a model with a single class, 1 for it, else -1."""
        if len(model.classes_) == 1:
            known = np.isin(np.arange(n_classes), model.classes_)
            return np.tile(np.where(known, 1.0, -1.0), (X.shape[0], 1))
        f = np.asarray(model.decision_function(X), dtype=np.float64)
        f = np.stack([-f, f], axis=1) if f.ndim == 1 else f
        out = np.tile(f.min(axis=1, keepdims=True), (1, n_classes))
        out[:, np.asarray(model.classes_, dtype=np.intp)] = f
        return out

    def of_probabilities(self, r):
        """Raise an error: margins do not follow from probabilities."""
        raise TypeError("margins do not follow from probabilities: ask for log-odds.")

    def of_log_odds(self, f):
        """Return the log-odds unchanged."""
        return f


class Probability(ScoreKind):
    """The positive side's ``predict_proba`` r."""

    name = "probability"

    def of_probabilities(self, r):
        """Return the column of the positive side."""
        return r[:, 1]

    def of_log_odds(self, f):
        """Return 1 / (1 + exp(-f))."""
        return expit(f)


class LogOdds(ScoreKind):
    """log(r / (1 - r)), which a sigmoid is fitted to if the model has no margin."""

    name = "log-odds"

    def of(self, model, X):
        """Return the difference of ``predict_log_proba``: naive Bayes has exact far log-odds."""
        if not hasattr(model, "predict_log_proba"):
            return super().of(model, X)
        with np.errstate(divide="ignore"):
            logs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        negative, positive = np.where(np.isneginf(logs), np.log(SMALLEST_PROBABILITY), logs).T
        return positive - negative

    def of_probabilities(self, r):
        """Return the difference of the logarithms."""
        negative, positive = np.log(np.maximum(r, SMALLEST_PROBABILITY)).T
        return positive - negative

    def of_log_odds(self, f):
        """Return the log-odds, clipped as if they came from probabilities."""
        bound = -np.log(SMALLEST_PROBABILITY)
        return np.clip(f, -bound, bound)


class Centred(ScoreKind):
    """r - 1/2, the margin of Zadrozny (2001, section 4)."""

    name = "centred"

    def of_probabilities(self, r):
        """Return the column of the positive side minus one half."""
        return r[:, 1] - 0.5

    def of_log_odds(self, f):
        """Return tanh(f / 2) / 2."""
        return 0.5 * np.tanh(0.5 * f)


MARGIN, PROBABILITY, LOG_ODDS, CENTRED = Margin(), Probability(), LogOdds(), Centred()


def response_kind(estimator: Any, kinds: tuple[ScoreKind, ...]) -> ScoreKind:
    """Return the first of ``kinds`` that the estimator has a method for."""
    for kind in kinds:
        if hasattr(estimator, kind.method):
            return kind
    raise ValueError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba: its labels "
        "alone cannot be combined. Wrap it in CalibratedClassifierCV, or choose another estimator."
    )
