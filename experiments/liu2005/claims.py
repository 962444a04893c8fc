"""The claims of Liu & Zheng (2005) about letter and iris in their Table I, and their criteria.

Those about segment are in :mod:`experiments.liu2005.converged`.
"""

from __future__ import annotations

from functools import partial
from math import ceil, log

from experiments.intervals import reproduced
from experiments.liu2005.choices import (
    Values,
    measured_grid,
    most_alike,
    origin_values,
    published_errors,
)
from experiments.liu2005.machines import (
    PROBLEMS,
    RULES,
    SETTINGS,
    TEST_ROWS,
    Setting,
    better_by_sign_test,
    method_name,
)
from experiments.results import Measurement
from experiments.runner import Claim, Verdict

FEW = 2e-3  # share of labels: a rule that changes fewer lowers nothing
RULE_OF_THREE = 3  # more changes than were seen are unlikely, at 5 %
LEVEL = 0.05


def _ordered(rows: list[Measurement], problem: str) -> Verdict:
    """Decide whether DRM < SRM < f(x), by the samples on which they differ."""
    values = origin_values(rows)
    found = most_alike(values, problem)
    if found is None:
        return Verdict(None, "not measured at this scale")
    setting, C = found
    n, steps, evidence, fewest = TEST_ROWS[setting.dataset], [], [], float("inf")
    for better, worse in (("SRM", "f(x)"), ("DRM", "SRM")):
        mended, spoiled = (
            values[setting.name, method_name(better, C), f"{verb} {worse}"]
            for verb in ("mends", "spoils")
        )
        answer = better_by_sign_test(mended, spoiled)
        few = mended + spoiled + RULE_OF_THREE < FEW * n
        steps.append(False if few else answer)
        fewest = min(fewest, mended - spoiled)
        evidence.append(
            f"{better} corrects {mended:g} errors of {worse} and adds {spoiled:g} others"
        )
    errors = ", ".join(
        f"{r} {100 * values[setting.name, method_name(r, C), 'error']:.2f} %" for r in RULES
    )
    evidence.append(_over_grid(values, setting))
    holds = False if False in steps else None if None in steps else True
    told = f"{setting.name}, C={C:g}: {errors}; {'; '.join(evidence)}."
    return Verdict(holds, told, _power(fewest, n))


def _power(gain: float, n: int) -> str:
    """Say how many samples would give a significant number of corrected errors."""
    needed = ceil(log(1 / LEVEL, 2))  # corrected errors, without an added one
    if gain <= 0:
        return f"To tell, at least {needed} corrected labels would be needed; there are none."
    samples = ceil(n * needed / gain)
    return f"To tell, about {samples} samples would be needed; the set has {n}."


def _over_grid(values: Values, setting: Setting) -> str:
    """Say for how many results the three rules have the claimed order.

    Values of C that give the same three errors are one result.
    """
    results = {
        tuple(values[setting.name, method_name(rule, C), "error"] for rule in RULES)
        for C in measured_grid(values, setting)
    }
    ordered = sum(drm <= srm <= f for f, srm, drm in results)
    return f"DRM ≤ SRM ≤ f(x) in {ordered} of {len(results)} different results over C"


def _printed(problem: str) -> str:
    """Apply the sign test to the printed counts, at best: no label is spoiled."""
    setting = next(s for s in SETTINGS.values() if s.problem == problem)
    theirs, n = published_errors(setting), TEST_ROWS[setting.dataset]
    counts = {rule: round(theirs[rule] * n) for rule in RULES}
    listed = ", ".join(f"{r} {100 * theirs[r]:.2f} % ({counts[r]} of {n})" for r in RULES)
    told = []
    for better, worse in (("SRM", "f(x)"), ("DRM", "SRM")):
        gain = counts[worse] - counts[better]
        equal = "the same count" if gain == 0 else f"{gain} fewer, p = {0.5**gain:.2g} at best"
        told.append(f"{better} against {worse}: {equal}")
    return f"printed are {listed}. {'; '.join(told)} (no label spoiled)."


def _reproduced(rows: list[Measurement]) -> Verdict:
    """Compare the errors of the nearest settings with the published ones."""
    values, distances = origin_values(rows), {}
    for problem in PROBLEMS:
        found = most_alike(values, problem)
        if found is None:
            return Verdict(None, "not measured at this scale")
        setting, C = found
        theirs, n = published_errors(setting), TEST_ROWS[setting.dataset]
        for rule in RULES[1:]:
            ours = values[setting.name, method_name(rule, C), "error"]
            error = (theirs[rule] * (1 - theirs[rule]) / n) ** 0.5
            distances[f"{problem}, {rule}"] = (ours - theirs[rule]) / error
    told = "; ".join(f"{cell} {value:+.1f}" for cell, value in distances.items())
    return Verdict(reproduced(distances.values()), f"in standard errors: {told}.")


TABLE = Claim(
    "The errors of SRM and DRM in Table I.",
    "In the settings whose f(x) is nearest to the published error, converged or not, at least nine "
    "of ten errors of SRM and DRM are within 2 binomial standard errors of the published ones.",
    _reproduced,
    lambda: "it compares with the published numbers themselves.",
    "table-1",
)
CLAIMS = (
    TABLE,
    *(
        Claim(
            f"DRM has fewer errors than SRM, and SRM fewer than f(x), on {problem} (Table I).",
            "Converged machines, the C whose f(x) is nearest to the published error: exact "
            "one-sided sign tests at 5 % on the test samples that two rules classify differently, "
            "for both steps. The claim does not hold if a step is significantly reversed, or if it "
            "changes fewer than two labels in a thousand (upper bound at 5 %).",
            partial(_ordered, problem=problem),
            partial(_printed, problem),
            f"lowers-{problem}",
        )
        for problem in ("letter", "iris")
    ),
)
