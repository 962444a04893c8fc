"""The page of Figure 1 of Wu et al. (2003)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from experiments import pages
from experiments.results import Measurement
from experiments.wu2003.figure1 import CASES, RULES, SIZES, TRUNCATION
from experiments.wu2003.figure1_results import LABELS, Outcome

# Solid with crosses, dotted with circles, dash-dotted with asterisks, dashed with squares.
LINES = {"ht": "-x", "wlw1": ":o", "wlw2": "-.*", "vote": "--s"}


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the figure, our accuracies and comments. The paper prints no numbers here."""
    outcome = Outcome(rows)
    figure = pages.save_figure(
        folder / "wu2003-figure1.png",
        lambda axes: _draw(outcome, axes),
        ncols=3,
        figsize=(11, 4.4),
        sharex=True,
        sharey=True,
    )
    replicates = int(max(row.value for row in rows if row.metric == "replicates"))
    parts = [
        "The paper shows this figure without numbers. The claims below compare what it says.",
        figure,
        f"Accuracy in percent over {replicates} replicates; the standard error is at most "
        f"{50 / np.sqrt(replicates):.1f}. The rules PKPD and logit are not in the paper.",
        _accuracies(outcome),
        "Mean squared difference from the true probabilities, times 1000, mean over k:",
        _squared_errors(outcome),
        _reading(outcome),
    ]
    return "\n\n".join(parts)


def _draw(outcome: Outcome, axes) -> None:
    for letter, case, panel in zip("abc", CASES, axes, strict=True):
        sizes = outcome.sizes(case)
        for rule, line in LINES.items():
            accuracies = [outcome.accuracy(case, k, rule) for k in sizes]
            panel.plot(sizes, accuracies, line, label=LABELS[rule], markerfacecolor="none")
        panel.set_title(f"({letter}) {case} p")
        panel.set_xscale("log", base=2)
        panel.set_xticks(SIZES, [str(k) for k in SIZES])
        panel.minorticks_off()
        panel.set_ylim(0.6, 1.05)  # the paper's
        panel.set_xlabel("number of classes k, log scale")
        panel.grid(alpha=0.3)
    axes[0].set_ylabel("accuracy")
    axes[0].legend(loc="lower left")


def _accuracies(outcome: Outcome) -> str:
    lines = [_line(["case", "k", *LABELS.values()]), _line(["---", *["---:"] * (1 + len(RULES))])]
    for case in CASES:
        for k in outcome.sizes(case):
            values = [f"{100 * outcome.accuracy(case, k, rule):.1f}" for rule in RULES]
            lines.append(_line([case, str(k), *values]))
    return "\n".join(lines)


def _squared_errors(outcome: Outcome) -> str:
    lines = [_line(["case", *LABELS.values()]), _line(["---", *["---:"] * len(RULES)])]
    for case in filter(outcome.sizes, CASES):
        means = (outcome.mean(case, rule, "mse") for rule in RULES)
        lines.append(_line([case, *(f"{1000 * mean:.2f}" for mean in means)]))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _reading(outcome: Outcome) -> str:
    cases = [case for case in CASES if outcome.sizes(case)]
    sentences = [*(_best(outcome, case) for case in cases), _votes(outcome, cases)]
    sentences.append(_truncated(outcome, cases))
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _best(outcome: Outcome, case: str) -> str:
    means = {rule: 1.0 - outcome.mean(case, rule, "error") for rule in RULES}
    best = max(means, key=lambda rule: means[rule])
    listed = ", ".join(f"{LABELS[rule]} {100 * mean:.1f}" for rule, mean in means.items())
    return f"{case.capitalize()}, mean accuracy over k: {listed}. {LABELS[best]} has the highest."


def _votes(outcome: Outcome, cases: list[str]) -> str:
    """Say how much of V's error comes from ties."""
    listed = "; ".join(
        f"{case}: {100 * outcome.mean(case, 'vote', 'tied'):.1f} % of the replicates have a tie, "
        f"with {100 * outcome.mean(case, 'vote', 'tied and wrong'):.1f} of V's "
        f"{100 * outcome.mean(case, 'vote', 'error'):.1f} points of error"
        for case in cases
    )
    return f"V breaks ties between classes at random. By case, {listed}."


def _truncated(outcome: Outcome, cases: list[str]) -> str:
    shares = ", ".join(f"{case} {outcome.mean(case, 'all', 'truncated'):.0%}" for case in cases)
    return (
        f"Share of r truncated to {TRUNCATION:g} from 0 or 1: {shares}. On the logit scale these "
        f"values are ±{-np.log(TRUNCATION):.1f} and dominate the others. `logit` is not designed "
        "for additive noise near 0 and 1."
    )
