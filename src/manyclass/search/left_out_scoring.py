"""Scores of the class probabilities of samples that were left out, by scikit-learn's scorers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from manyclass._lib.arrays import Floats, Places
from manyclass.calibration.crossfitting import calibrate
from manyclass.calibration.evidence import Evidence
from manyclass.calibration.fit_plan import Plan
from manyclass.scores.folds import folds_again

# Parts of the rows, each of which is scaled by what the others tell. A choice: more parts chose no
# better C and gamma (benchmarks/quality/choices.md), and each takes the time of a scaling.
PARTS = 2

Scoring = Callable[[Places, Floats, Floats | None], float]
"""Returns the score of class indices (m,) and values (m, k), with the weights of the samples."""


def neg_log_loss(y: Places, p: Floats, weights: Floats | None) -> float:
    """Return minus the log-loss. Unlike scikit-learn's, it allows classes without samples."""
    least = np.finfo(p.dtype).eps  # as in scikit-learn
    return float(np.average(np.log(np.maximum(p[np.arange(len(y)), y], least)), weights=weights))


def neg_brier_score(y: Places, p: Floats, weights: Floats | None) -> float:
    """Return minus the Brier score: half of the squared distance for two classes, as usual."""
    squares = ((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1)
    return -float(np.average(squares, weights=weights)) / (2.0 if p.shape[1] == 2 else 1.0)


OWN: dict[str, Scoring] = {"neg_log_loss": neg_log_loss, "neg_brier_score": neg_brier_score}


class Answers(ClassifierMixin, BaseEstimator):
    """A classifier that returns stored values, whatever X is: what a scorer asks."""

    def __init__(self, classes: NDArray, values: Floats, *, probabilities: bool):
        self.classes_, self.values, self.probabilities = classes, values, probabilities

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X) -> NDArray:
        """Return the label of the largest value."""
        return self.classes_[self.values.argmax(axis=1)]

    def predict_proba(self, X) -> Floats:
        """Return the values, if they are probabilities."""
        if not self.probabilities:
            raise AttributeError("the combiner gives labels only, and no predict_proba")
        return self.values

    def decision_function(self, X) -> Floats:
        """Return log-probabilities, or the values of a decoder."""
        if not self.probabilities:
            values = self.values
        else:
            values = np.log(np.maximum(self.values, np.finfo(np.float64).smallest_subnormal))
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values


def resolve_scoring(scoring: Any, classes: NDArray, *, probabilities: bool) -> Scoring:
    """Return the function that scores left-out values.

    ``scoring`` is a name of scikit-learn, or a scorer. ``probabilities`` says whether the values
    are probabilities, or those of a label decoder.
    """
    if isinstance(scoring, str) and scoring in OWN:
        if not probabilities:
            raise ValueError(
                f"scoring={scoring!r} needs probabilities, but the combiner gives labels only. "
                "Use scoring='accuracy', or combiner='auto'."
            )
        return OWN[scoring]
    scorer: Any = check_scoring(None, scoring=scoring)

    def score(y: Places, values: Floats, weights: Floats | None) -> float:
        answers = Answers(classes, values, probabilities=probabilities)
        given = {} if weights is None else {"sample_weight": weights}
        return float(scorer(answers, np.arange(len(y))[:, None], classes[y], **given))

    return score


def left_out_values(evidence: Evidence, plan: Plan) -> tuple[Places, Floats, Floats]:
    """Return class indices, values (m, k) and weights of training samples that were left out.

    The values are those of the fitted model: calibrated, coupled and scaled. The scaling of a
    sample did not see it, nor did the calibration, if samples are few: see
    :func:`~manyclass.calibration.crossfitting.left_out_probabilities`.
    """
    calibration = calibrate(plan.calibrations[0], evidence.scores) if plan.calibrations else None
    found = evidence.left_out_rows(calibration)
    if found is None:
        raise ValueError(
            "no sample has scores in all columns when it is left out, so C and gamma cannot be "
            "chosen: pass at least two samples of several classes."
        )
    known, numbers = evidence.coupled(*found), evidence.scores.fold_numbers
    y, p, weights = known["y"], known["p"], known["weights"]
    if plan.scaling is None or np.bincount(y).max() < 2:
        return y, p, weights
    scaling: Any = plan.scaling
    tested, scaled = np.zeros(len(y), dtype=np.bool_), p.copy()
    numbers = None if numbers is None else numbers[found[0]]
    for train, test in folds_again(numbers, y, p.shape[1], most_folds=PARTS, n_folds=PARTS):
        part = {key: _rows_of(value, train) for key, value in known.items() if key != "code"}
        # A choice: it moves the log-loss by about as much, and takes half of the time.
        fitted = scaling().fit_checked(**part, code=known["code"], tol=1e-5, choose=False)
        scaled[test] = fitted.scale(p[test], columns=known["columns"][test])
        tested[test] = True
    return y[tested], scaled[tested], weights[tested]


def _rows_of(value: Any, rows: Places) -> Any:
    """Return some rows of an array, or of each array of a list."""
    return [part[rows] for part in value] if isinstance(value, list) else value[rows]
