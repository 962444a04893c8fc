"""The claims of Liu & Zheng (2005) about their Table I, and their criteria."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.liu2005.choices import (
    Choice,
    Values,
    converged_choice,
    measured_grid,
    most_alike,
    origin_values,
    resampled_errors,
)
from experiments.liu2005.machines import PROBLEMS, RULES, Setting, better_by_sign_test, method_name
from experiments.results import Measurement
from experiments.runner import Claim, Verdict

FIRST_SEGMENT, SECOND_SEGMENT = PROBLEMS[:2]


def _ordered(rows: list[Measurement], problem: str, choose: Choice) -> Verdict:
    """Decide whether DRM <= SRM <= f(x), by the samples on which they differ."""
    values = origin_values(rows)
    found = choose(values, problem)
    if found is None:
        return Verdict(None, "not measured at this scale")
    setting, C = found
    steps, evidence = [], []
    for better, worse in (("SRM", "f(x)"), ("DRM", "SRM")):
        mended, spoiled = (
            values[setting.name, method_name(better, C), f"{verb} {worse}"]
            for verb in ("mends", "spoils")
        )
        steps.append(better_by_sign_test(mended, spoiled))
        evidence.append(
            f"{better} corrects {mended:g} errors of {worse} and adds {spoiled:g} others"
        )
    errors = ", ".join(
        f"{r} {100 * values[setting.name, method_name(r, C), 'error']:.2f} %" for r in RULES
    )
    evidence.append(_over_grid(values, setting))
    holds = False if False in steps else None if None in steps else True
    return Verdict(holds, f"{setting.name}, C={C:g}: {errors}; {'; '.join(evidence)}.")


def _over_grid(values: Values, setting: Setting) -> str:
    """Say for how many C the three rules have the claimed order."""
    grid = measured_grid(values, setting)
    ordered = 0
    for C in grid:
        f, srm, drm = (values[setting.name, method_name(rule, C), "error"] for rule in RULES)
        ordered += drm <= srm <= f
    return f"DRM ≤ SRM ≤ f(x) for {ordered} of the {len(grid)} C that we tried"


def _degrades_less(rows: list[Measurement]) -> Verdict:
    """Decide whether degree 2 raises the errors of SRM and DRM less than half as much as f(x)'s."""
    values = origin_values(rows)
    first, second = (most_alike(values, p) for p in (FIRST_SEGMENT, SECOND_SEGMENT))
    if first is None or second is None:
        return Verdict(None, "not measured at this scale")
    loss = {}
    for rule in RULES:
        a, b = (resampled_errors(rows, setting, rule, C) for setting, C in (first, second))
        loss[rule] = b[: len(a)] - a[: len(b)]
    if len(loss["f(x)"]) < 5:
        return Verdict(None, f"only {len(loss['f(x)'])} other splits")
    excess = np.maximum(loss["SRM"], loss["DRM"]) - loss["f(x)"] / 2
    less = better_by_sign_test(float(np.sum(excess < 0)), float(np.sum(excess > 0)))
    means = ", ".join(f"{rule} {100 * value.mean():+.2f}" for rule, value in loss.items())
    return Verdict(
        less,
        f"mean change of the error in points: {means}; less than half for both on "
        f"{np.sum(excess < 0)} of {len(excess)} splits",
    )


WAYS: dict[str, Choice] = {
    "in the setting whose f(x) is nearest to the published one": most_alike,
    "with converged machines and C by left-out samples": converged_choice,
}
CLAIMS = (
    *(
        Claim(
            f"DRM has no more errors than SRM, and SRM no more than f(x), on {problem} (Table I), "
            f"{way}.",
            "Exact one-sided sign tests at 5 % on the test samples that two rules classify "
            "differently. The claim holds if both steps are significant. It does not hold if one "
            "is significantly reversed.",
            partial(_ordered, problem=problem, choose=choose),
        )
        for problem in PROBLEMS
        for way, choose in WAYS.items()
    ),
    Claim(
        "With a badly chosen kernel, degree 2 for degree 1, the errors of SRM and DRM grow much "
        "less than those of f(x) (section V).",
        "Less than half as much, for both: sign test at 5 % over the other splits of segment, in "
        "the settings whose f(x) are nearest to the published ones.",
        _degrades_less,
    ),
)
