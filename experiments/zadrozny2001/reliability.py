"""Zadrozny (2001), abstract: whether the coupled probabilities are calibrated; further codes.

The reliability of the label's probability is measured in bins of equally many test rows, and
compared with that of perfectly calibrated probabilities, which a finite test set does not put at 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from experiments.pages import markdown_table, save_figure, summarise
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict
from experiments.zadrozny2001.claims import CODES, DATA, one_scale
from experiments.zadrozny2001.measuring import Array, Margins, fit_margins, read
from manyclass.combiners.base import resolve

RULES = ("noniterative", "zadrozny", "kl")
BINARY = "one-vs-rest"
BINS = 15
DRAWS = 200  # of labels, for the reliability of perfectly calibrated probabilities
CALIBRATED = 0.02  # largest excess that is called calibrated
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"data": ["soybean"], "limit": 200},
    "paper": {"data": list(DATA), "limit": None},
}


# -- measuring -------------------------------------------------------------------------


def bin_means(confidence: Array, right: Array, n_bins: int = BINS) -> tuple[Array, Array]:
    """Return mean confidence and accuracy in bins of equally many rows, by confidence."""
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, n_bins)
    return (
        np.array([confidence[part].mean() for part in parts]),
        np.array([right[part].mean() for part in parts]),
    )


def calibration_error(confidence: Array, right: Array) -> float:
    """Return the mean distance of accuracy from confidence over the bins."""
    mean, accuracy = bin_means(confidence, right)
    return float(np.abs(mean - accuracy).mean())


def calibrated_error(confidence: Array, rng: np.random.Generator) -> float:
    """Return the mean of :func:`calibration_error` if the confidences were the truth."""
    drawn = rng.uniform(size=(DRAWS, len(confidence))) < confidence
    return float(np.mean([calibration_error(confidence, right * 1.0) for right in drawn]))


def measure_reliability(name: str, code: str, limit: int | None) -> Iterator[Row]:
    """Yield the reliability of the label's probability, by every rule."""
    problem = read(name, limit)
    margins = fit_margins(problem, code, 0, with_train=False)
    estimates = {rule: _combined(margins, rule) for rule in RULES}
    for rule, p in estimates.items():
        yield from _reliability(f"{code}/{rule}", p, problem.y_test)
    other = estimates["zadrozny"].argmax(axis=1) != estimates["noniterative"].argmax(axis=1)
    yield Row(f"{code}/zadrozny", "labels off noniterative", float(other.sum()))


def measure_binary(name: str, limit: int | None) -> Iterator[Row]:
    """Yield the reliability of the binary estimates themselves, one-against-all, columns pooled."""
    problem = read(name, limit)
    margins = fit_margins(problem, BINARY, 0, with_train=False)
    r = expit(margins.test).ravel()
    positive = (margins.code[problem.y_test] > 0).ravel().astype(np.float64)
    yield Row(f"{BINARY}/r", "calibration error", calibration_error(r, positive))
    expected = calibrated_error(r, np.random.default_rng(0))
    yield Row(f"{BINARY}/r", "if calibrated", expected)


def _combined(margins: Margins, rule: str) -> Array:
    return resolve(rule).combine(expit(margins.test), margins.code, margins.weights).values


def _reliability(method: str, p: Array, y: NDArray[np.intp]) -> Iterator[Row]:
    confidence, right = p.max(axis=1), (p.argmax(axis=1) == y) * 1.0
    yield Row(method, "calibration error", calibration_error(confidence, right))
    expected = calibrated_error(confidence, np.random.default_rng(0))
    yield Row(method, "if calibrated", expected)
    yield Row(method, "confidence - accuracy", float(confidence.mean() - right.mean()))
    for number, (mean, accuracy) in enumerate(zip(*bin_means(confidence, right), strict=True)):
        yield Row(method, f"confidence {number}", float(mean))
        yield Row(method, f"accuracy {number}", float(accuracy))


def tasks(scale: str) -> list[Task]:
    """Return one task for every data set and code."""
    size = SCALES[scale]
    prefix = "" if scale == "paper" else "quick "
    return [
        Task(data, f"{prefix}seed 0", code, measure_reliability, (data, code, size["limit"]))
        for data in size["data"]
        for code in CODES
    ] + [
        Task(data, f"{prefix}seed 0", "binary estimates", measure_binary, (data, size["limit"]))
        for data in size["data"]
    ]


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {**SCALES[scale], "bins": BINS, "draws of labels": DRAWS, "codes": list(CODES)}


# -- the page --------------------------------------------------------------------------


def section(rows: list[Measurement], folder: Path) -> str:
    """Return reliability diagrams of the iterative estimates, and the table of all rules."""
    found = summarise(one_scale(rows))
    data = list(dict.fromkeys(row.data for row in rows))
    picture = save_figure(
        folder / "reliability.png",
        lambda axes: _draw(np.atleast_1d(axes), found, data),
        ncols=len(data),
        figsize=(3.6 * len(data), 3.8),
        sharey=True,
    )
    metrics = ("calibration error", "if calibrated", "confidence - accuracy")
    table = [
        [name, code, rule, *(f"{found[name, f'{code}/{rule}', m].mean:.4f}" for m in metrics)]
        for name, code in places(found)
        for rule in RULES
    ]
    return "\n\n".join(
        [INTRODUCTION, picture, markdown_table(["", "code", "rule", *metrics], table)]
    )


INTRODUCTION = """\
The abstract says that the method produces calibrated class membership probability estimates; the
paper measures the squared error, but not the calibration. Test rows are sorted by the probability
of their label and put into 15 bins of equal size. The calibration error is the mean distance of the
accuracy in a bin from the mean probability. "If calibrated" is its mean if the probabilities were
true."""


def places(found) -> list[tuple[str, str]]:
    """Return the data sets and codes that were measured."""
    data = dict.fromkeys(name for name, _, _ in found)
    return [(d, c) for d in data for c in CODES if (d, f"{c}/zadrozny", "if calibrated") in found]


def _draw(axes, found, data: list[str]) -> None:
    for name, panel in zip(data, axes, strict=True):
        for code in (code for of, code in places(found) if of == name):
            method = f"{code}/zadrozny"
            mean, accuracy = (
                [found[name, method, f"{kind} {b}"].mean for b in range(BINS)]
                for kind in ("confidence", "accuracy")
            )
            panel.plot(mean, accuracy, marker="o", ms=3, label=code)
        panel.plot([0, 1], [0, 1], color="0.4", lw=0.8)
        panel.set(title=name, xlabel="probability of the label", xlim=(0.2, 1.02), ylim=(0.1, 1.03))
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("share of right labels")
    axes[0].legend(title="iterative estimates")


# -- claims ----------------------------------------------------------------------------


def _calibrated(rows: list[Measurement]) -> Verdict:
    found = summarise(one_scale(rows))
    excess = {
        (data, code): found[data, f"{code}/zadrozny", "calibration error"].mean
        - found[data, f"{code}/zadrozny", "if calibrated"].mean
        for data, code in places(found)
    }
    told = ", ".join(f"{data} {code} {value:+.3f}" for (data, code), value in excess.items())
    if len(excess) < len(DATA) * len(CODES):
        return Verdict(None, f"not all data sets were measured: {told}.")
    return Verdict(all(value <= CALIBRATED for value in excess.values()), f"excess: {told}.")


def _better_calibrated(rows: list[Measurement]) -> Verdict:
    found = summarise(one_scale(rows))
    errors = {
        (data, code): [
            found[data, f"{code}/{rule}", "calibration error"].mean
            for rule in ("zadrozny", "noniterative")
        ]
        for data, code in places(found)
    }
    told = ", ".join(f"{d} {c} {a:.3f} against {b:.3f}" for (d, c), (a, b) in errors.items())
    lower = all(a < b for a, b in errors.values())
    return Verdict(lower if errors else None, f"calibration errors: {told}.")


def _binary(rows: list[Measurement]) -> Verdict:
    found, method = summarise(one_scale(rows)), f"{BINARY}/r"
    if any((data, method, "if calibrated") not in found for data in DATA):
        return Verdict(None, "it was not measured.")
    excess = {
        data: found[data, method, "calibration error"].mean
        - found[data, method, "if calibrated"].mean
        for data in DATA
    }
    told = ", ".join(f"{data} {value:+.3f}" for data, value in excess.items())
    evidence = f"excess: {told}. Most pooled estimates are sure negatives, which keep it small."
    return Verdict(all(value > CALIBRATED for value in excess.values()), evidence)


CLAIMS = (
    Claim(
        "The probability estimates of boosted naive Bayes are not calibrated (section 6).",
        "On every data set, the calibration error of the binary one-against-all estimates, all "
        f"columns pooled, exceeds that of calibrated probabilities by more than {CALIBRATED:g}.",
        _binary,
        key="binary-not-calibrated",
    ),
    Claim(
        "The method produces calibrated class membership probability estimates (abstract).",
        "On every data set and with every code, the calibration error of the iterative estimates "
        f"exceeds that of calibrated probabilities by at most {CALIBRATED:g}.",
        _calibrated,
        key="calibrated",
    ),
    Claim(
        "The non-iterative estimates are not accurate probabilities: they underestimate the "
        "differences (section 2).",
        "On every data set and with every code, the calibration error of the iterative estimates "
        "is the lower one.",
        _better_calibrated,
        key="better-calibrated",
    ),
)

EXPERIMENT = Experiment(
    name="zadrozny2001-reliability",
    title="Abstract: the calibration of the probabilities",
    tasks=tasks,
    config=config,
    section=section,
    claims=CLAIMS,
)
