"""The numbers of reliability diagrams: curves with their intervals, errors, a histogram."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass._lib.messages import quoted, some_quoted
from manyclass.metrics import (
    Bins,
    ReliabilityCurve,
    Strategy,
    bin_stated,
    calibration_error,
    wilson_interval,
)


class Reliability(NamedTuple):
    """One curve of a reliability diagram, with its confidence intervals."""

    curve: ReliabilityCurve
    lower: Floats
    upper: Floats
    error: float
    """Mean distance from the diagonal, by the weight of the bins."""


class Measured(NamedTuple):
    """The numbers of a reliability diagram."""

    curves: list[Reliability]
    classwise_error: float
    """The class-wise calibration error of all classes, also those that are not shown."""
    histogram: Floats
    """Share of the stated probabilities in each part of [0, 1]."""


def measure(
    target: Places,
    p: Floats,
    weight: Floats,
    *,
    judged: list[int] | None,
    n_bins: int,
    strategy: Strategy | None,
    confidence: float,
) -> Measured:
    """Measure the probabilities of the columns ``judged``, or the confidence in the label."""
    if strategy is None:
        strategy = "quantile" if judged is None else "variance"

    def binned(stated: Floats, event: Flags) -> Bins:
        return bin_stated(stated, event, weight, n_bins, strategy)

    of_class = [binned(p[:, c], target == c) for c in range(p.shape[1])]
    if judged is None:
        shown = [binned(p.max(axis=1), p.argmax(axis=1) == target)]
        stated = p.max(axis=1)[:, None]
    else:
        shown, stated = [of_class[c] for c in judged], p[:, judged]
    return Measured(
        [_with_interval(bins, confidence) for bins in shown],
        float(np.mean([calibration_error(bins.curve) for bins in of_class])),
        _histogram(stated, weight),
    )


def judged_columns(labels: Iterable[Any] | None, columns: list[Any]) -> list[int]:
    """Return the columns of the labels asked for: all when ``None``."""
    if labels is None:
        return list(range(len(columns)))
    if isinstance(labels, str) or not np.iterable(labels):
        raise ValueError(
            f"labels must be a list of labels, got {quoted(labels)}: use [{quoted(labels)}]."
        )
    asked = list(labels)
    strangers = [label for label in asked if label not in columns]
    if strangers or not asked:
        found = f"[{some_quoted(strangers)}] is not among them" if asked else "got none"
        raise ValueError(f"labels must be some of the classes [{some_quoted(columns)}], {found}.")
    return [columns.index(label) for label in asked]


def _with_interval(bins: Bins, confidence: float) -> Reliability:
    lower, upper = wilson_interval(bins.curve.observed, bins.size, confidence=confidence)
    return Reliability(bins.curve, lower, upper, calibration_error(bins.curve))


def _histogram(stated: Floats, weight: Floats, n_bins: int = 25) -> Floats:
    """Return the share of weight in each part of [0, 1], over all columns."""
    weights = np.broadcast_to(weight[:, None], stated.shape)
    counts, _ = np.histogram(stated, bins=n_bins, range=(0, 1), weights=weights)
    return counts / counts.sum()
