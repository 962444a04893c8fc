"""Choices of settings and C that Liu & Zheng (2005) do not state."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.liu2005.machines import RULES, SETTINGS, Setting, method_name
from experiments.pages import published
from experiments.results import Measurement

ORIGIN = "origin"

Values = dict[tuple[str, str, str], float]
"""Values on the official split by (setting, method, metric)."""


def origin_values(rows: list[Measurement]) -> Values:
    """Return the measurements on the official split."""
    return {(r.data, r.method, r.metric): r.value for r in rows if r.split.endswith(ORIGIN)}


def published_errors(setting: Setting) -> dict[str, float]:
    """Return the published errors of the three rules, as fractions."""
    for row in published("liu2005_table1"):
        if (row["dataset"], row["kernel"]) == setting.published:
            return {
                rule: float(row[key]) / 100
                for rule, key in zip(RULES, ("fx", "srm", "drm"), strict=True)
            }
    raise ValueError(f"the published table has no row for {setting.published}.")


def measured_grid(values: Values, setting: Setting) -> list[float]:
    """Return the C that were measured."""
    return [C for C in setting.grid if (setting.name, method_name("f(x)", C), "error") in values]


def nearest_to_published(values: Values, setting: Setting) -> float:
    """Return the smallest C whose f(x) has the error nearest to the published one."""
    target = published_errors(setting)["f(x)"]
    return _least(values, setting, "error", lambda error: abs(error - target))


def cross_validated(values: Values, setting: Setting) -> float:
    """Return the smallest C with the lowest error on left-out training samples."""
    return _least(values, setting, "left-out error", lambda error: error)


def _least(values: Values, setting: Setting, metric: str, cost: Callable[[float], float]) -> float:
    name = setting.name
    return min(
        measured_grid(values, setting),
        key=lambda C: (cost(values[name, method_name("f(x)", C), metric]), C),
    )


def most_alike(values: Values, problem: str) -> tuple[Setting, float] | None:
    """Return the setting and C of a problem whose f(x) is nearest to the published one."""
    candidates = [
        (setting, nearest_to_published(values, setting))
        for setting in SETTINGS.values()
        if setting.problem == problem and measured_grid(values, setting)
    ]
    if not candidates:
        return None
    target = published_errors(candidates[0][0])["f(x)"]
    return min(
        candidates,
        key=lambda c: abs(values[c[0].name, method_name("f(x)", c[1]), "error"] - target),
    )


def resampled_errors(rows: list[Measurement], setting: Setting, rule: str, C: float) -> np.ndarray:
    """Return the errors on all splits but the official one, in the order of the splits."""
    found = {
        row.split: row.value
        for row in rows
        if row.data == setting.name
        and row.method == method_name(rule, C)
        and row.metric == "error"
        and not row.split.endswith(ORIGIN)
    }
    return np.array([found[split] for split in sorted(found)])
