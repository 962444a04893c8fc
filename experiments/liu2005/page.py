"""The page of Table I of Liu & Zheng (2005)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.liu2005.choices import (
    Values,
    cross_validated,
    measured_grid,
    most_alike,
    nearest_to_published,
    origin_values,
    published_errors,
    resampled_errors,
)
from experiments.liu2005.machines import (
    COUPLERS,
    PROBLEMS,
    RULES,
    SETTINGS,
    SIZES,
    TEST_ROWS,
    Setting,
    method_name,
)
from experiments.liu2005.table1 import DEFAULTS, STOPPED_C, STOPPED_SIZE, STOPS
from experiments.pages import markdown_table
from experiments.results import Measurement


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the table for both choices of C, other splits, and coupled probabilities."""
    values = origin_values(rows)
    settings = [s for s in SETTINGS.values() if measured_grid(values, s)]
    return "\n\n".join(
        [
            "The paper does not state C, the width of the Gaussian kernel, the number m of "
            "neighbours, or the scaling of the inputs. We choose m by the error on left-out "
            'training samples. On letter the kernel width is that of `gamma="scale"`. Machines on '
            "raw segment inputs converge slowly, and those of degree 2 not within ten million "
            "iterations. We stop these machines, and show the effect below. We fixed the settings "
            "of segment and the criteria of the claims after we had seen some results: the "
            "official split of segment, one other split and a part of iris for C=1, and letter for "
            "C=1 and 10. On these, the verdicts describe the data and are not independent tests.",
            "**C nearest to the paper.** For every setting we take the C whose f(x) has the test "
            "error nearest to the published one. This choice uses the test set to match the paper, "
            "not to lower the error: SRM and DRM do not enter it. The last column is DRM's error "
            "minus the published one, in binomial standard errors of the published error.",
            _beside_paper(values, settings, nearest_to_published),
            "**C by left-out training samples**, the usual choice in practice:",
            _beside_paper(values, settings, cross_validated),
            _reading(values),
            "**All C that we tried**, because the paper states none. Errors are in percent. The "
            "last column is the error of f(x) on left-out training samples.",
            _over_grid(values, settings),
            _stopped(values),
            _resampled(rows, values),
            "**Coupled probabilities of the same machines**, and CoupledSVC with its default "
            "parameters (one-vs-one, standardised inputs, Gaussian kernel, C=1). The machines have "
            "no probabilities without calibration. C is chosen by left-out samples.",
            _coupled_table(values, settings),
        ]
    )


def _beside_paper(
    values: Values, settings: list[Setting], choose: Callable[[Values, Setting], float]
) -> str:
    table = []
    for setting in settings:
        C, theirs = choose(values, setting), published_errors(setting)
        ours = {r: values[setting.name, method_name(r, C), "error"] for r in RULES}
        m = values[setting.name, method_name("DRM", C), "neighbours"]
        error = np.sqrt(theirs["DRM"] * (1 - theirs["DRM"]) / TEST_ROWS[setting.dataset])
        table.append(
            [setting.name, f"{C:g}", f"{m:g}"]
            + [f"{100 * ours[r]:.2f} ({100 * theirs[r]:.2f})" for r in RULES]
            + [f"{100 * (1 - ours[r] / ours['f(x)']):+.1f}" for r in RULES[1:]]
            + [f"{(ours['DRM'] - theirs['DRM']) / error:+.1f}"]
        )
    header = ["setting", "C", "m", *(f"{rule} % (paper)" for rule in RULES)]
    return markdown_table([*header, "SRM reduction %", "DRM reduction %", "difference"], table)


def _over_grid(values: Values, settings: list[Setting]) -> str:
    """Return the errors for every C."""
    table = []
    for setting in settings:
        for C in measured_grid(values, setting):
            left_out = values[setting.name, method_name("f(x)", C), "left-out error"]
            errors = [values[setting.name, method_name(rule, C), "error"] for rule in RULES]
            m = values[setting.name, method_name("DRM", C), "neighbours"]
            cells = (f"{100 * error:.2f}" for error in (*errors, left_out))
            table.append([setting.name, f"{C:g}", f"{m:g}", *cells])
    return markdown_table(["setting", "C", "m", *RULES, "left-out f(x)"], table)


def _reading(values: Values) -> str:
    """Say how much the error depends on the number of neighbours."""
    sentences = []
    for problem in PROBLEMS:
        found = most_alike(values, problem)
        if found is None:
            continue
        setting, C = found
        by_size = {
            m: values[key]
            for m in SIZES
            if (key := (setting.name, method_name(f"DRM m={m}", C), "error")) in values
        }
        if by_size:
            best = min(by_size, key=lambda m: by_size[m])
            sentences.append(
                f"On {setting.name} with C={C:g}, the error of DRM is between "
                f"{100 * by_size[best]:.2f} % (m={best}) and {100 * max(by_size.values()):.2f} % "
                "for the m that we tried."
            )
    return " ".join(["**Influence of the number of neighbours.**", *sentences])


def _stopped(values: Values) -> str:
    """Return the errors for each number of iterations after which the solver stops."""
    table = []
    for setting in SETTINGS.values():
        theirs = published_errors(setting)
        for iterations in STOPS["paper"]:
            methods = [f"{rule}, {iterations} iterations" for rule in RULES]
            if (setting.name, methods[0], "error") in values:
                table.append(
                    [setting.problem, f"{iterations:.0e}"]
                    + ["yes" if values[setting.name, methods[0], "converged"] else "no"]
                    + [f"{100 * values[setting.name, method, 'error']:.2f}" for method in methods]
                    + [" / ".join(f"{100 * theirs[rule]:.2f}" for rule in RULES)]
                )
    header = ["raw inputs", "iterations", "converged", *(f"{r} %" for r in RULES), "paper"]
    return "\n\n".join(
        [
            f"**Effect of stopping the solver** (raw inputs, C={STOPPED_C:g}, m={STOPPED_SIZE}). "
            + " ".join(filter(None, (_gain_when_stopped(values, s) for s in SETTINGS.values())))
            + " A likely reason, which we did not test: the margins of stopped machines are not on "
            "one scale, while their slacks show which machines are far from convergence. This "
            "table suggests that the paper's machines of degree 2 were stopped early; we do not "
            "know.",
            markdown_table(header, table),
        ]
    )


def _gain_when_stopped(values: Values, setting: Setting) -> str:
    """Say how much SRM gains at most, and how much after the most iterations."""
    gains = {
        n: values[setting.name, f"f(x), {n} iterations", "error"] - values[key]
        for n in STOPS["paper"]
        if (key := (setting.name, f"SRM, {n} iterations", "error")) in values
    }
    if not gains:
        return ""
    target = published_errors(setting)["f(x)"]
    most, last = max(gains, key=lambda n: gains[n]), max(gains)
    alike = min(
        gains, key=lambda n: abs(values[setting.name, f"f(x), {n} iterations", "error"] - target)
    )
    return (
        f"On {setting.problem} SRM gains at most {100 * gains[most]:.2f} points, after {most} "
        f"iterations, and {100 * gains[last]:.2f} after {last}. The error of f(x) is nearest to "
        f"the published one after {alike}."
    )


def _resampled(rows: list[Measurement], values: Values) -> str:
    """Return mean errors over other splits, and paired differences."""
    table = []
    for setting in SETTINGS.values():
        if setting.dataset != "segment" or not measured_grid(values, setting):
            continue
        C = nearest_to_published(values, setting)
        errors = {rule: resampled_errors(rows, setting, rule, C) for rule in RULES}
        if len(errors["f(x)"]) == 0:
            continue
        table.append(
            [setting.name, f"{C:g}", f"{len(errors['f(x)'])}"]
            + [f"{100 * e.mean():.2f} ± {100 * _deviation(e):.2f}" for e in errors.values()]
            + [f"{np.sum(errors['SRM'] < errors['f(x)'])}"]
            + [f"{np.sum(errors['DRM'] < errors['SRM'])}"]
        )
    header = ["setting", "C", "splits", *(f"{rule} %" for rule in RULES)]
    header += ["SRM below f(x)", "DRM below SRM"]
    return "\n\n".join(
        [
            "**Other splits** of segment, with 30 random training samples of each class: mean "
            "error ± standard deviation, and the number of splits on which one rule has a lower "
            "error than another.",
            markdown_table(header, table),
        ]
    )


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _coupled_table(values: Values, settings: list[Setting]) -> str:
    metrics = ("error", "log-loss", "brier", "mse")
    table = []

    def add(name: str, method: str, data: str) -> None:
        found = [values[data, method, metric] for metric in metrics]
        table.append([name, method, f"{100 * found[0]:.2f}", *(f"{v:.4f}" for v in found[1:])])

    for setting in settings:
        C = cross_validated(values, setting)
        for rule in (r for c in COUPLERS for r in (c, f"{c}, temperature")):
            add(setting.name, method_name(rule, C), setting.name)
    for dataset in dict.fromkeys(s.dataset for s in settings):
        if (dataset, DEFAULTS, "error") in values:
            add(dataset, DEFAULTS, dataset)
    return markdown_table(["setting", "rule", "error %", *metrics[1:]], table)
