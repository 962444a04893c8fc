"""What has to be fitted: decided once, from the parameters of a classifier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manyclass._lib.messages import meant, quoted
from manyclass.banks import (
    CENTRED,
    LOG_ODDS,
    MARGIN,
    PROBABILITY,
    ScoreKind,
    is_kernel_machine,
    is_multiclass,
    response_kind,
)
from manyclass.calibration import CALIBRATIONS, Beta, Calibration, Isotonic, Sigmoid, Unchanged
from manyclass.combiners.base import Combiner
from manyclass.scaling import Scaling, StructuredScaling, resolve_scaling
from manyclass.scores.sources import NoScores, ScoreSource, resolve_cv


class Plan(NamedTuple):
    """What is fitted on which scores."""

    kind: ScoreKind
    """The scores that the binary models return."""
    calibrations: tuple[type[Calibration], ...]
    """How scores may become probabilities, the simplest first; none if they are used unchanged."""
    scaling: type[Scaling] | None
    """How coupled probabilities are scaled."""
    only_scaled: bool
    """Whether nothing but the scaling needs out-of-sample scores."""
    source: ScoreSource
    """Where out-of-sample scores come from; ``NoScores`` if nothing needs them."""
    with_native: bool = False
    """Whether the learner's own multiclass probabilities are pooled with the coupled ones."""

    @property
    def spares_folds(self) -> bool:
        """Whether some rows with out-of-sample scores are enough, because no column needs them."""
        return self.only_scaled or Unchanged in self.calibrations


def make_plan(
    estimator,
    combiner: Combiner,
    n_classes: int,
    *,
    calibration,
    cv,
    scaling,
    with_native=False,
    native_pays: bool = True,
) -> Plan:
    """Check the parameters of a classifier and return what has to be fitted.

    The first keywords are parameters of :class:`CoupledClassifier`. ``with_native="auto"`` also
    depends on whether the learner's own model pays for this code.
    """
    scaled = resolve_scaling(scaling, n_classes)
    named = isinstance(with_native, str) and with_native == "auto"
    if not (named or isinstance(with_native, bool | np.bool_)):
        raise ValueError(f"with_native must be 'auto', True or False, got {quoted(with_native)}.")
    source = resolve_cv(cv)
    if calibration not in ("auto", None, *CALIBRATIONS):
        raise ValueError(
            f"calibration must be 'auto', None or one of {sorted(CALIBRATIONS)}, got "
            f"{quoted(calibration)}{meant(calibration, CALIBRATIONS)}."
        )
    if combiner.learns and not source.gives_scores:
        raise ValueError(
            f"combiner {combiner.key!r} learns from out-of-sample scores, but cv=None. Use cv=5."
        )
    kind, methods = _candidates(estimator, combiner, calibration, source)
    calibrated = methods and source.gives_scores
    if combiner.takes == "probabilities" and kind != PROBABILITY and not calibrated:
        raise ValueError(_no_calibration(estimator, combiner, calibration, cv))
    # A combiner that learns from the same scores includes a scaling in its weights. Probabilities
    # of two classes that are used unchanged stay unchanged: nothing is coupled.
    unscaled = n_classes == 2 and not methods
    if not combiner.gives_probabilities or combiner.learns or unscaled:
        scaled = None
    only_scaled = not methods and not combiner.learns
    if scaled is None and only_scaled:
        source = NoScores()
    pooled = scaled is StructuredScaling and source.gives_scores and with_native
    pooled = pooled and n_classes > 2  # two classes: the single column is the learner's own model
    if pooled and named:
        pooled = native_pays and source.refits and _pools_well(estimator)
    return Plan(kind, methods, scaled, only_scaled, source, bool(pooled))


def _pools_well(estimator) -> bool:
    """Tell whether the learner's own probabilities are pooled by default.

    Weights of the classes 0 and 1 are meant for the sides of binary problems.
    """
    weighted = isinstance(getattr(estimator, "class_weight", None), dict)
    return is_multiclass(estimator) and not is_kernel_machine(estimator) and not weighted


def _candidates(
    estimator, combiner: Combiner, calibration: str | None, source: ScoreSource
) -> tuple[ScoreKind, tuple[type[Calibration], ...]]:
    """Return the kind of scores to ask for and the calibrations to choose from, if any."""
    if combiner.takes == "scores":
        return response_kind(estimator, (MARGIN, CENTRED)), ()
    if calibration is None:
        return response_kind(estimator, (PROBABILITY, MARGIN)), ()
    if calibration == "beta":
        return response_kind(estimator, (LOG_ODDS, MARGIN)), (Beta,)
    if calibration in CALIBRATIONS:
        return response_kind(estimator, (MARGIN, LOG_ODDS)), (CALIBRATIONS[calibration],)
    if is_kernel_machine(estimator) and hasattr(estimator, "decision_function"):
        return MARGIN, (Sigmoid,)
    if not source.gives_scores:
        kind = response_kind(estimator, (PROBABILITY, MARGIN))
        return kind, () if kind == PROBABILITY else (Sigmoid,)
    kind = response_kind(estimator, (LOG_ODDS, MARGIN))
    if kind == MARGIN:
        return kind, (Sigmoid, Isotonic)
    return kind, (Unchanged, Sigmoid, Beta, Isotonic)


def _no_calibration(estimator, combiner: Combiner, calibration, cv) -> str:
    """Return the message for scores that are not probabilities and would not be calibrated."""
    remedy = "Use calibration='sigmoid' with cv=5"
    if hasattr(estimator, "predict_proba"):
        return (
            f"calibration={quoted(calibration)} is fitted on folds, but cv=None. {remedy}, or "
            "calibration=None to use predict_proba unchanged."
        )
    return (
        f"{type(estimator).__name__} has no predict_proba, so the combiner {combiner.key!r} "
        f"needs calibrated scores, but calibration={quoted(calibration)} and cv={quoted(cv)}. "
        f"{remedy}, an estimator with predict_proba, or a label decoder such as "
        "combiner='max-wins'."
    )
