"""What has to be fitted: decided once, from the parameters of a classifier."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manyclass._lib.messages import quoted
from manyclass.banks import (
    CENTRED,
    LOG_ODDS,
    MARGIN,
    PROBABILITY,
    ScoreKind,
    is_kernel_machine,
    response_kind,
)
from manyclass.calibration import CALIBRATIONS, Calibration, Sigmoid
from manyclass.combiners.base import Combiner
from manyclass.scores.sources import NoScores, ScoreSource, resolve_cv


class Plan(NamedTuple):
    """What is fitted on which scores."""

    kind: ScoreKind
    """The scores that the binary models return."""
    calibration: type[Calibration] | None
    """How scores become probabilities; None if they are used unchanged."""
    tempered: bool
    """Whether a temperature is fitted."""
    only_tempered: bool
    """Whether nothing but a temperature needs out-of-sample scores."""
    source: ScoreSource
    """Where out-of-sample scores come from; ``NoScores`` if nothing needs them."""


def make_plan(
    estimator, combiner: Combiner, n_classes: int, *, calibration, cv, temperature
) -> Plan:
    """Check the parameters of a classifier and return what has to be fitted.

    ``calibration``, ``cv`` and ``temperature`` are parameters of :class:`CoupledClassifier`.
    """
    if not isinstance(temperature, bool | np.bool_):
        raise ValueError(f"temperature must be True or False, got {quoted(temperature)}.")
    source = resolve_cv(cv)
    if calibration not in ("auto", None, *CALIBRATIONS):
        raise ValueError(
            f"calibration must be 'auto', None or one of {sorted(CALIBRATIONS)}, got "
            f"{quoted(calibration)}."
        )
    if combiner.learns and not source.gives_scores:
        raise ValueError(
            f"combiner {combiner.key!r} learns from out-of-sample scores, but cv=None. Use cv=5."
        )
    kind, method = _choose_calibration(estimator, combiner, calibration)
    calibrated = method is not None and source.gives_scores
    if combiner.takes == "probabilities" and kind != PROBABILITY and not calibrated:
        raise ValueError(_no_calibration(estimator, combiner, calibration, cv))
    # A combiner that learns from the same scores includes a temperature in its weights.
    tempered = bool(
        temperature and combiner.gives_probabilities and not combiner.learns and n_classes > 2
    )
    only_tempered = method is None and not combiner.learns
    needs_scores = tempered or not only_tempered
    return Plan(kind, method, tempered, only_tempered, source if needs_scores else NoScores())


def _choose_calibration(
    estimator, combiner: Combiner, calibration: str | None
) -> tuple[ScoreKind, type[Calibration] | None]:
    """Return the kind of scores to ask for and the calibration, if any."""
    if combiner.takes == "scores":
        return response_kind(estimator, (MARGIN, CENTRED)), None
    if calibration is None:
        return response_kind(estimator, (PROBABILITY, MARGIN)), None
    if calibration in CALIBRATIONS:
        return response_kind(estimator, (MARGIN, LOG_ODDS)), CALIBRATIONS[calibration]
    kinds = (MARGIN, PROBABILITY) if is_kernel_machine(estimator) else (PROBABILITY, MARGIN)
    kind = response_kind(estimator, kinds)
    return kind, Sigmoid if kind == MARGIN else None


def _no_calibration(estimator, combiner: Combiner, calibration, cv) -> str:
    """Return the message for scores that are no probabilities and would not be calibrated."""
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
