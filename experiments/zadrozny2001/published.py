"""The published numbers of Zadrozny (2001), tables 2 and 3, and a check that they are possible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from experiments.pages import Summary, markdown_table, published
from experiments.possible import squared_error_bounds
from experiments.zadrozny2001.claims import DATA, OURS

SPOKEN = {
    "loss-linear": "loss-based, L(y) = −y",
    "loss-exponential": "loss-based, L(y) = e^−y",
    "ht-noniterative": "non-iterative",
    "ht-iterative": "iterative",
    "naive-bayes": "multiclass naive Bayes",
}

Summaries = dict[tuple[str, str, str], Summary]


class Published(NamedTuple):
    """A line of tables 2 and 3."""

    data: str
    method: str
    code: str
    error: float
    mse: float
    """NaN where none was printed."""

    @property
    def ours(self) -> str:
        """Name of the method in our results."""
        rule = OURS.get(self.method, self.method)
        return f"{self.code}/{rule}" if self.code else rule


def published_lines(data: str | None = None) -> list[Published]:
    """Return the published lines of a data set, or all of them."""
    lines = [
        Published(
            row["dataset"],
            row["method"],
            row["code"],
            float(row["error_rate"]),
            float(row["mse"] or "nan"),
        )
        for row in published("zadrozny2001_tables2_3")
    ]
    return [line for line in lines if data in (None, line.data)]


def cell(found: Summary | None) -> str:
    """Write the mean, and the standard deviation where there are several values."""
    if found is None:
        return ""
    spread = f" ± {found.deviation:.4f}" if len(found.values) > 1 else ""
    return f"{found.mean:.4f}{spread}"


# -- the published numbers -------------------------------------------------------------


def check_published(summary: Summaries) -> str:
    """Say which published pairs of error and MSE are possible."""
    sizes = {data: int(summary[data, "data", "classes"].mean) for data in measured(summary)}
    lines = [line for line in published_lines() if line.data in sizes and not np.isnan(line.mse)]
    bounds = [squared_error_bounds(line.error, sizes[line.data]) for line in lines]
    n_below = sum(line.mse < least for line, (least, _) in zip(lines, bounds, strict=True))
    text = (
        f"The squared error of a wrong label is at least 1/2. {n_below} of the {len(lines)} "
        "published MSEs are below half the published error. So they cannot follow the printed "
        "formula, but they can follow that formula divided by the number of classes."
    )
    for line, (_, most) in zip(lines, bounds, strict=True):
        if line.mse * sizes[line.data] > most:
            text += " " + _misprint(summary, line, sizes[line.data])
    return text


def _misprint(summary: Summaries, line: Published, k: int) -> str:
    """Show both readings of an impossible MSE, beside ours and that of our nearest version."""
    most = squared_error_bounds(line.error, k)[1] / k
    near, error = _nearest_version(summary, line)
    told = (
        f"The MSE {line.mse} of {SPOKEN[line.method]} on {line.data} is impossible: with error "
        f"{line.error} and {k} classes it can be at most {most:.4f}. If it was not divided by the "
        f"number of classes, {line.mse / k:.5f} was meant; if the decimal point slipped, "
        f"{line.mse / 10:.5f}."
    )
    for method, of in (
        (line.ours, "Ours"),
        (near, f"That of our version with the nearest error, {error:.4f},"),
    ):
        mse = summary[line.data, method, "mse"].mean
        told += (
            f" {of} is {mse:.5f}: {mse / (line.mse / k):.2f} times the first and "
            f"{mse / (line.mse / 10):.2f} times the second."
        )
    return told


def measured(summary: Summaries) -> list[str]:
    """Return the data sets of the claims that were measured."""
    return [data for data in DATA if (data, "data", "classes") in summary]


# -- naive Bayes -----------------------------------------------------------------------


def naive_bayes_table(summary: Summaries) -> str:
    """List the versions of naive Bayes."""
    found = measured(summary)
    methods = dict.fromkeys(
        method
        for _, method, _ in summary
        if method.startswith("naive-bayes") and " - " not in method
    )
    header = ["version", *(f"{data} {metric}" for data in found for metric in ("error", "MSE"))]
    lines = [["published", *_published_naive_bayes(found)]]
    for method in methods:
        name = method.removeprefix("naive-bayes").lstrip(", ") or "10 bins, smoothing 1"
        cells = [
            cell(summary.get((data, method, metric)))
            for data in found
            for metric in ("error", "mse")
        ]
        lines.append([name, *cells])
    return markdown_table(header, lines)


def _published_naive_bayes(names: list[str]) -> list[str]:
    lines = {line.data: line for line in published_lines() if line.method == "naive-bayes"}
    return [f"{value:.4f}" for data in names for value in (lines[data].error, lines[data].mse)]


def _errors_of_versions(summary: Summaries, of: str) -> dict[str, float]:
    return {
        method: found.mean
        for (data, method, metric), found in summary.items()
        if data == of and metric == "error" and method.startswith("naive-bayes")
    }


def _nearest_version(summary: Summaries, line: Published) -> tuple[str, float]:
    """Return our version of naive Bayes with the error nearest to the published one."""
    errors = _errors_of_versions(summary, line.data)
    return min(errors.items(), key=lambda item: abs(item[1] - line.error))


def naive_bayes_reading(summary: Summaries) -> str:
    """Say how close the versions of naive Bayes come to the published errors."""
    told = []
    for line in (line for line in published_lines() if line.method == "naive-bayes"):
        errors = _errors_of_versions(summary, line.data)
        if errors:
            near, _ = _nearest_version(summary, line)
            mse = summary[line.data, near, "mse"].mean
            told.append(
                f"On {line.data} they range from {min(errors.values()):.4f} to "
                f"{max(errors.values()):.4f}. The nearest to the published {line.error:.4f} (MSE "
                f"{line.mse:.4f}) is {near.partition(', ')[2] or '10 bins, smoothing 1'} with "
                f"{errors[near]:.4f} (MSE {mse:.4f})"
            )
    return (
        "The versions differ in the number of bins, in the constant added to the weight of each "
        "cell, in normal densities instead of bins, and in the part used for training. Their "
        "errors follow. "
        f"{'. '.join(told)}."
    )
