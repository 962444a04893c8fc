"""The figures of the findings, drawn from stored results."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from experiments import checked, find
from experiments.duan2003 import iterations
from experiments.hastie1998 import gaussians
from experiments.hastie1998.claims import DECIDING, NEARLY_HALF
from experiments.hastie1998.tools import ratio_interval
from experiments.ledger import FOLDER
from experiments.liu2005 import converged
from experiments.liu2005.choices import origin_values, published_errors
from experiments.liu2005.machines import RULES, SETTINGS
from experiments.liu2005.table1 import STOPS
from experiments.pages import paired, published, summarise
from experiments.possible import allowed_t
from experiments.results import Measurement, Results
from experiments.summary.methods import COUPLERS, Method
from experiments.wu2003 import spread
from experiments.wu2003.table1_results import LABELS, Table, as_paper, n_classes, published_rows
from experiments.zadrozny2001 import divergence, reliability
from experiments.zadrozny2001.claims import DATA, one_scale
from experiments.zadrozny2001.published import published_lines

QUALITY = FOLDER.parent / "benchmarks" / "results" / "quality-svm-core.csv"


@cache
def rows_of(name: str) -> list[Measurement]:
    """Return the stored results of an experiment."""
    (experiment,) = find(name)
    results = Results(FOLDER / experiment.paper / "results.csv")
    return [row for row in results if row.experiment == name]


def draw_divergence(axes) -> None:
    """Draw the distance along the printed iteration."""
    divergence._draw(axes, rows_of("zadrozny2001-divergence"))


# -- coupling is under-confident -------------------------------------------------------


def draw_scaling(axes) -> None:
    """Draw what a temperature gains by rule, and structured scaling over a temperature by set."""
    left, right = axes
    ratios = temperature_ratios()
    _bars(left, list(ratios), list(ratios.values()), "log-loss with a temperature / without")
    gains = structured_ratios()
    _bars(right, list(gains), list(gains.values()), "log-loss, structured scaling / temperature")


def temperature_ratios() -> dict[str, float]:
    """Return the geometric mean of the log-loss with a temperature to that without, by rule."""
    found = summarise(rows_of("summary-rules"))
    data = sorted({name for name, _, _ in found})
    ratios = {}
    for rule in COUPLERS["one-vs-one"]:
        pair = [Method("svc", "one-vs-one", rule, tempered).name for tempered in (True, False)]
        logs = [
            np.log(found[d, pair[0], "log-loss"].mean / found[d, pair[1], "log-loss"].mean)
            for d in data
            if (d, pair[0], "log-loss") in found and (d, pair[1], "log-loss") in found
        ]
        if logs:
            ratios[rule] = float(np.exp(np.mean(logs)))
    return ratios


def structured_ratios() -> dict[str, float]:
    """Return the log-loss of structured scaling to that of a temperature, by data set."""
    with open(QUALITY, encoding="utf-8", newline="") as file:
        last = {(r["case"], r["setting"], r["model"]): r["log_loss"] for r in csv.DictReader(file)}
    losses: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (case, _, model), loss in last.items():
        losses[case.split("-")[0], model].append(float(loss))
    data = dict.fromkeys(name for name, _ in losses)
    return {
        name: float(np.mean(losses[name, "ours"]) / np.mean(losses[name, "before"]))
        for name in data
        if losses[name, "ours"] and losses[name, "before"]
    }


def _bars(panel, names: list[str], values: list[float], label: str) -> None:
    panel.barh(range(len(names)), values, color="C0")
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.invert_yaxis()
    panel.axvline(1.0, color="0.4", lw=0.8)
    panel.set_xlabel(label)
    panel.grid(axis="x", alpha=0.3)


# -- Zadrozny --------------------------------------------------------------------------


def draw_labels(ax) -> None:
    """Draw the one-against-all error rates of the linear loss and of the iteration."""
    found = summarise(one_scale(rows_of("zadrozny2001-tables")))
    width, colours = 0.2, ("C0", "C1")
    for number, (method, ours) in enumerate(
        (("loss-linear", "loss-linear"), ("ht-iterative", "zadrozny"))
    ):
        printed = [
            line.error
            for data in DATA
            for line in published_lines(data)
            if (line.method, line.code) == (method, "one-vs-rest")
        ]
        own = [found[data, f"one-vs-rest/{ours}", "error"].mean for data in DATA]
        name = ("loss-based, L(y) = −y", "iterative")[number]
        x = np.arange(len(DATA)) + 2 * width * number - 1.5 * width
        ax.bar(x, own, width, color=colours[number], label=f"{name}, ours")
        style = {"facecolor": "none", "edgecolor": colours[number], "hatch": "//"}
        ax.bar(x + width, printed, width, label=f"{name}, published", **style)
    ax.set_xticks(range(len(DATA)), DATA)
    ax.set_ylabel("test error, one-against-all")
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize=8)


def draw_reliability(axes) -> None:
    """Draw the reliability of the iterative estimates."""
    rows = rows_of("zadrozny2001-reliability")
    data = list(dict.fromkeys(row.data for row in rows))
    reliability._draw(np.atleast_1d(axes), summarise(one_scale(rows)), data)


def calibration_errors() -> dict[str, float]:
    """Return the mean calibration error of every rule."""
    found = summarise(one_scale(rows_of("zadrozny2001-reliability")))
    return {
        rule: float(
            np.mean(
                [
                    found[data, f"{code}/{rule}", "calibration error"].mean
                    for data, code in reliability.places(found)
                ]
            )
        )
        for rule in reliability.RULES
    }


# -- Liu & Zheng -----------------------------------------------------------------------


def draw_stopped(axes) -> None:
    """Draw the errors of machines on raw inputs against the iterations of their solver."""
    values = origin_values(rows_of("liu2005-table1"))
    settings = [s for s in SETTINGS.values() if "iterations" in s.name]
    for setting, panel in zip(settings, axes, strict=True):
        stops, theirs = STOPS["paper"], published_errors(setting)
        for rule, marker, colour in zip(RULES, "os^", ("C0", "C1", "C2"), strict=True):
            errors = [100 * values[setting.name, f"{rule}, {n} iterations", "error"] for n in stops]
            panel.plot(stops, errors, marker=marker, color=colour, label=rule)
            panel.axhline(100 * theirs[rule], color=colour, ls=":", lw=1)
        panel.set(title=setting.problem, xscale="log", xlabel="iterations of the solver")
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("test error, % (dotted: published)")
    axes[0].legend()


def converged_gains() -> dict[str, float]:
    """Return how much SRM lowers the error of converged machines, in points, by problem."""
    rows = rows_of("liu2005-converged")
    return {
        problem: 100
        * float(
            np.mean(
                converged.errors(rows, problem, "f(x)") - converged.errors(rows, problem, "SRM")
            )
        )
        for problem in converged.NAMES
    }


# -- Hastie & Tibshirani ---------------------------------------------------------------


def draw_contributions(ax) -> None:
    """Draw which part of the error remains with pairs, and with thresholds."""
    steps = contributions()
    for number, (low, mean, high) in enumerate(steps.values()):
        ax.errorbar(
            mean, number, xerr=[[mean - low], [high - mean]], fmt="o", color="C0", capsize=3
        )
    ax.axvline(0.5, color="C3", ls=":", label="halved")
    ax.axvline(NEARLY_HALF, color="C1", ls="--", lw=1, label="bound of “nearly halved”")
    ax.axvline(1.0, color="0.4", lw=0.8)
    ax.set(xlim=(0.45, 1.1), xlabel="ratio of errors, 95 % interval")
    ax.set_yticks(range(len(steps)), list(steps), fontsize=8)
    ax.invert_yaxis()
    ax.figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    ax.grid(axis="x", alpha=0.3)


def contributions() -> dict[str, tuple[float, float, float]]:
    """Return the ratio of errors of every step: low, mean and high."""
    rows = [
        row._replace(data=DECIDING) if row.data == gaussians.FURTHER else row
        for row in rows_of("hastie1998-figure3")
    ]
    found = {}
    for name in ("LDA", "J-NN by votes"):
        base, plain, thresholded = gaussians.KINDS[name]
        for label, methods in (
            ("pairs", (f"{plain}, coupled", base)),
            ("thresholds", (f"{thresholded}, coupled", f"{plain}, coupled")),
            ("pairs and thresholds", (f"{thresholded}, coupled", base)),
        ):
            ratio = ratio_interval(*paired(rows, DECIDING, "error", methods))
            found[f"{name}: {label}"] = (ratio.low, ratio.mean, ratio.high)
    return found


# -- Wu, Lin & Weng --------------------------------------------------------------------


def draw_spread(axes) -> None:
    """Draw the spread of the class probabilities."""
    spread._draw(spread.Spreads(rows_of("wu2003-spread")), axes)


def draw_losses(axes) -> None:
    """Draw how far each rule is behind the best one, by our errors and the published ones."""
    for panel, title, rows in zip(
        axes, ("ours", "published"), (rows_of("wu2003-table1"), published_rows()), strict=True
    ):
        losses = losses_of_rules(rows)
        for rule, marker in zip(LABELS, "xo*s", strict=True):
            panel.plot(
                list(losses), [100 * losses[d][rule] for d in losses], marker, label=LABELS[rule]
            )
        panel.set(title=title, ylabel="mean error less that of the best rule, points")
        panel.grid(alpha=0.3)
    axes[0].legend()


def losses_of_rules(rows: list[Measurement]) -> dict[str, dict[str, float]]:
    """Return the mean error of every rule less that of the best, by data set."""
    table, found = Table(rows), {}
    for data in n_classes():
        means = {rule: float(table.means(data, as_paper(rule)).mean()) for rule in LABELS}
        found[data] = {rule: mean - min(means.values()) for rule, mean in means.items()}
    return found


# -- Duan et al. -----------------------------------------------------------------------


T_SHOWN = 100.0
TICKS = (-100, -10, -1, 0, 1, 10, 100)


def draw_p_values(ax) -> None:
    """Draw the t that every published p-value needs, and the t that means and deviations allow."""
    values, found = checked.duan_values(), []
    for row in published("duan2003_p_values"):
        first, second = checked._cells(row)
        low, high = allowed_t(values[first], values[second], checked.RUNS)
        t = student.ppf(float(row["p"]), checked.RUNS - 1)
        found.append((low, high, t, (first, second)))
    found.sort(key=lambda one: (one[0], one[1]))
    wrong = {(a, b) for a, b, _ in checked.duan_contradictions()}
    x = np.arange(len(found))
    low, high, t = (np.clip([one[i] for one in found], -T_SHOWN, T_SHOWN) for i in range(3))
    ax.vlines(x, low, high, color="C0", alpha=0.3, lw=2, label="allowed")
    is_wrong = np.array([one[3] in wrong for one in found])
    ax.scatter(x[~is_wrong], t[~is_wrong], s=10, color="C0", label="published, possible")
    ax.scatter(x[is_wrong], t[is_wrong], s=28, color="C3", marker="D", label="impossible")
    ax.set(yscale="symlog", ylim=(-T_SHOWN, T_SHOWN), xticks=[], ylabel="t of the paired test")
    ax.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.set_xlabel("145 comparisons, in the order of the least t allowed")
    ax.figure.legend(loc="outside lower center", ncols=3)
    ax.grid(axis="y", alpha=0.3)


def draw_steps(axes) -> None:
    """Draw the log-loss of PWC_PSVM after some steps of the printed iteration."""
    iterations.draw_steps(axes, rows_of("duan2003-iterations"))


def folder() -> Path:
    """Return the folder of the page and its figures."""
    return Path(__file__).parent
