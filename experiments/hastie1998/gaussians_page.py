"""Figure 3 of Hastie & Tibshirani (1998), ten Gaussian classes: the part of the page."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from experiments.hastie1998.gaussians import FAMILIES, KINDS, METHODS, PRINTED, READINGS, VOTES
from experiments.hastie1998.tools import mean_interval, metrics_table, ratio_interval
from experiments.pages import Summary, markdown_table, paired, save_figure, summarise
from experiments.results import Measurement

Summaries = dict[tuple[str, str, str], Summary]

RULES = ("coupled", "max-wins")
BOXES = {
    "LDA": {"pairs": KINDS["LDA"].plain, "thresholds": KINDS["LDA"].thresholded},
    "J-NN": {
        "pairs": VOTES.plain,
        "thresholds": VOTES.thresholded,
        "distances": KINDS["J-NN by distances"].thresholded,
    },
}
# Each step adds one part. Thresholds of LDA from folds are an alternative, not a further step.
STEPS = (
    ("LDA", *FAMILIES["LDA"][:2]),
    ("J-NN", *FAMILIES["J-NN"][:3]),
    ("J-NN", *FAMILIES["J-NN"][3:]),
)


def section(rows: list[Measurement], folder: Path) -> str:
    """Return errors, boxplots, and the contribution of each step, for both readings."""
    summary = summarise(rows)
    parts = [
        "Ten Gaussian classes in 20 dimensions, with means uniform on [0, 1] and random principal "
        "axes. The paper's text about the covariances can be read in two ways, which differ in "
        "the Bayes error. The paper does not say how it chose thresholds. We choose them on the "
        "training set, by leave-one-out for neighbours. Nor does the paper say how it turned "
        'votes of neighbours into probabilities. "NN pairs" use votes, as in the paper, and '
        'Laplace\'s rule with a slope for probabilities. "NN pairs, distances", the default of '
        "`PairwiseNeighbors`, compare the mean distances to the nearest samples of either class; "
        "the figures show them with thresholds. The rows from these on are not in the paper."
    ]
    for reading, meaning in READINGS.items():
        if (reading, "LDA", "error") in summary:
            parts += [f'### Reading "{reading}": {meaning}', *_of_reading(rows, reading, folder)]
    return "\n\n".join(parts)


def _of_reading(rows: list[Measurement], reading: str, folder: Path) -> list[str]:
    summary = summarise(rows)
    n = len(summary[reading, "LDA", "error"].values)
    picture = save_figure(
        folder / f"figure3_{reading}.png",
        partial(_boxplots, summary=summary, reading=reading),
        ncols=2,
        figsize=(13, 5),
        sharey=True,
    )
    return [
        picture,
        f"Means over {n} simulations, with the standard deviation of the error:",
        metrics_table(summary, reading, METHODS),
        "Contributions of pairs, of a separate J for each pair, and of thresholds to the coupled "
        "rule (ratio of errors, geometric mean and 95 % interval over the simulations):",
        _contributions(rows, reading),
        _reading_of_contributions(rows, reading),
        "Pairwise neighbours compared with the paper's (the difference is in its standard errors). "
        "Votes come from two classes, so we count half their number. If several numbers of "
        "neighbours are equally good for a pair, we take the largest. If several biases are, we "
        "take the one nearest to 1. The paper does not say what it does:",
        _beside_paper(summary, reading),
    ]


def _boxplots(axes, summary: Summaries, reading: str) -> None:
    """Draw the test errors as in the paper, and next to them those of other kinds of pairs."""
    for ax, (base, boxes) in zip(axes, BOXES.items(), strict=True):
        pairs = [f"{p}, {rule}" for p in boxes.values() for rule in RULES]
        values = [100 * summary[reading, m, "error"].values for m in (base, *pairs)]
        labels = [base] + [f"{box},\n{rule}" for box in boxes for rule in RULES]
        ax.boxplot(values, widths=0.6, medianprops={"color": "C3"})
        ax.set_xticks(range(1, len(labels) + 1), labels, fontsize=8)
        ax.set_title(f"{base} and its pairs")
        ax.grid(axis="y", alpha=0.3)
        ax.set_ylim(bottom=0)
    printed = 100 * PRINTED["median error"].value
    text = "published median of thresholds, max-wins"
    axes[1].axhline(printed, color="C2", ls=":", label=text)
    axes[1].legend(fontsize=8)
    axes[0].set_ylabel("test error, %")


def _contributions(rows: list[Measurement], reading: str) -> str:
    table = []
    for base, *pairs in STEPS:
        steps = [base, *(f"{p}, coupled" for p in pairs)]
        for before, after in [*pairwise(steps), (steps[0], steps[-1])]:
            first, second = paired(rows, reading, "error", (after, before))
            ratio = ratio_interval(first, second)
            table.append([after, before, ratio.format()])
    return markdown_table(["error of", "divided by that of", "ratio"], table)


def _reading_of_contributions(rows: list[Measurement], reading: str) -> str:
    """Say which part of the error remains with thresholds, and without."""
    sentences = []
    for name, (base, plain, thresholded) in KINDS.items():
        whole, part = (
            ratio_interval(*paired(rows, reading, "error", (f"{pairs}, coupled", base)))
            for pairs in (thresholded, plain)
        )
        sentences.append(
            f"Pairs of {name} with thresholds have {100 * whole.mean:.0f} % of the error of "
            f"{base}, without thresholds {100 * part.mean:.0f} %."
        )
    return " ".join(sentences)


def _beside_paper(summary: Summaries, reading: str) -> str:
    table = [_number(summary, reading, "J-NN", "neighbours")]
    for kind in (VOTES, KINDS["J-NN by distances"]):
        method = kind.thresholded
        table.append(_number(summary, reading, method, "neighbours per class"))
        bias = mean_interval(summary[reading, method, "bias"].values).format("{:.1f}", 100)
        table.append([f"{method}: bias, %", bias, f"{100 * PRINTED['bias'].value:g}", ""])
        for rule in RULES:
            median = np.median(summary[reading, f"{method}, {rule}", "error"].values)
            printed = f"{100 * PRINTED['median error'].value:g}" if rule == "max-wins" else ""
            table.append([f"{method}, {rule}: median error, %", f"{100 * median:.1f}", printed, ""])
    return markdown_table(["", "ours (standard error)", "paper", "difference"], table)


def _number(summary: Summaries, reading: str, method: str, metric: str) -> list[str]:
    """Return our number of neighbours next to the paper's."""
    printed, error = PRINTED[metric]
    ours = summary[reading, method, metric]
    own_error = ours.deviation / np.sqrt(len(ours.values))
    return [
        f"{method}: {metric}",
        f"{ours.mean:.2f} ({own_error:.3f})",
        f"{printed:.2f} ({error:.3f})",
        f"{(ours.mean - printed) / error:+.1f}",
    ]
