"""What a bank answers: margins, probabilities, log-odds or centred probabilities.

Each kind is an object that knows which method of a model gives it and how it follows from
probabilities or from log-odds. Nobody else compares names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]

SMALLEST_PROBABILITY = 1e-12  # smaller ones count as this in log-odds, which stay within 27.7
ROUNDING = 1e-6  # by which probabilities in single precision may leave [0, 1]


class ScoreKind(ABC):
    """A kind of score. Two kinds are equal if they are of one class."""

    name: ClassVar[str]
    """The word for it in messages."""
    method: ClassVar[str] = "predict_proba"
    """The method of a binary model that is asked."""

    def of(self, model: Any, X: Any) -> Floats:
        """Return the scores (n,) of the positive side by a fitted binary model."""
        r = np.asarray(model.predict_proba(X), dtype=np.float64)
        r = np.where((r < 0) & (r > -ROUNDING), 0.0, np.where((r > 1) & (r < 1 + ROUNDING), 1.0, r))
        return self.of_probabilities(r)

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

    def of_probabilities(self, r):
        """Raise an error: margins do not follow from probabilities."""
        raise TypeError("margins do not follow from probabilities: ask for log-odds.")

    def of_log_odds(self, f):
        """Return them as they are."""
        return f


class Probability(ScoreKind):
    """The positive side's ``predict_proba`` r."""

    name = "probability"

    def of_probabilities(self, r):
        """Return the positive side's."""
        return r[:, 1]

    def of_log_odds(self, f):
        """Return 1 / (1 + exp(-f))."""
        return expit(f)


class LogOdds(ScoreKind):
    """log(r / (1 - r)), the scores that a sigmoid is fitted to where there is no margin."""

    name = "log-odds"

    def of_probabilities(self, r):
        """Return the difference of the logarithms."""
        negative, positive = np.log(np.maximum(r, SMALLEST_PROBABILITY)).T
        return positive - negative

    def of_log_odds(self, f):
        """Return them within the bounds that probabilities would give."""
        bound = -np.log(SMALLEST_PROBABILITY)
        return np.clip(f, -bound, bound)


class Centred(ScoreKind):
    """r - 1/2, the margin of Zadrozny (2001, section 4)."""

    name = "centred"

    def of_probabilities(self, r):
        """Return the positive side's, less one half."""
        return r[:, 1] - 0.5

    def of_log_odds(self, f):
        """Return tanh(f / 2) / 2."""
        return 0.5 * np.tanh(0.5 * f)


MARGIN, PROBABILITY, LOG_ODDS, CENTRED = Margin(), Probability(), LogOdds(), Centred()


def response_kind(estimator: Any, kinds: tuple[ScoreKind, ...]) -> ScoreKind:
    """Return the first of ``kinds`` that the estimator can answer."""
    for kind in kinds:
        if hasattr(estimator, kind.method):
            return kind
    raise ValueError(
        f"{type(estimator).__name__} has neither decision_function nor predict_proba: its labels "
        "alone cannot be combined. Wrap it in CalibratedClassifierCV, or choose another estimator."
    )
