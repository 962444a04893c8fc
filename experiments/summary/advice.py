"""Advice on what to pick, in sentences with computed numbers."""

from __future__ import annotations

import numpy as np

from experiments.summary.methods import (
    CODES,
    LEARNERS,
    Method,
    at_their_best,
    couplers,
    default_of,
    machines_name,
    with_labels,
)
from experiments.summary.ranking import Array
from experiments.summary.reading import Table, geometric_mean
from experiments.summary.tasks import FITTING

POOR = 1.5  # avoid rules with more than so many times the best log-loss
CLOSE = 1.05  # rules below so many times the best log-loss are as good in practice

Choice = tuple[str, str]
"""A code and a rule."""


class Regrets:
    """The log-loss of each rule divided by the lowest one, on every data set and learner."""

    def __init__(self, table: Table):
        blocks = []
        for learner in LEARNERS:
            methods = at_their_best(learner)
            losses = np.array([table.losses(method.name, "log-loss") for method in methods])
            blocks.append(losses / losses.min(axis=0))
        self.choices: list[Choice] = [(method.code, method.rule) for method in methods]
        self.places = [f"{d} with {title}" for title in LEARNERS.values() for d in table.data]
        self.values: Array = np.hstack(blocks)

    def mean(self, choice: Choice) -> float:
        """Return the geometric mean."""
        return geometric_mean(self.values[self.choices.index(choice)])

    def worst(self, choice: Choice) -> str:
        """Return the largest, and where it is."""
        row = self.values[self.choices.index(choice)]
        return f"{row.max():.2f} in the worst case ({self.places[int(row.argmax())]})"

    def best(self, code: str | None = None) -> Choice:
        """Return the choice of the least mean, among those of a code or all."""
        return min((c for c in self.choices if code in (None, c[0])), key=self.mean)


def advice(table: Table) -> str:
    """Return the advice, with criteria and numbers."""
    regrets = Regrets(table)
    parts = [
        _probabilities(table, regrets),
        _temperature(table),
        _codes(table, regrets),
        _labels(table),
        _poor(regrets),
    ]
    return "\n".join(f"- {part}" for part in parts if part)


def spoken(choice: Choice) -> str:
    """Name a choice as the arguments that make it."""
    code, rule = choice
    return f'`code="{code}", combiner="{rule}"`'


def _probabilities(table: Table, regrets: Regrets) -> str:
    best, default = regrets.best(), default_of("svc")
    own = default.code, default.rule
    text = (
        f"**For probabilities: {spoken(best)}**, with the temperature. Criterion: the log-loss "
        "divided by the lowest log-loss of any rule with a temperature or trained, as a geometric "
        f"mean over data sets and learners. It is {regrets.mean(best):.3f}, and "
        f"{regrets.worst(best)}. "
    )
    if best == own:
        text += "This is the default of `CoupledSVC` and `CoupledClassifier`. "
    else:
        text += (
            f"For {spoken(own)}, the default of `CoupledSVC` and `CoupledClassifier`, it is "
            f"{regrets.mean(own):.3f}, and {regrets.worst(own)}. "
        )
    others = sorted((c for c in regrets.choices if c != best), key=regrets.mean)
    near = [c for c in others if regrets.mean(c) <= CLOSE * regrets.mean(best)] or others[:1]
    listed = ", ".join(f"{spoken(c)} {regrets.mean(c):.3f}" for c in near)
    return f"{text}The next best: {listed}. {_as_good(table)}"


def _as_good(table: Table) -> str:
    told = []
    for learner, title in LEARNERS.items():
        ranking = table.rank(at_their_best(learner), "log-loss")
        count = len(ranking.as_good_as_best())
        told.append(f"{count} of {len(ranking.names)} with {title}")
    return (
        "Number of rules whose mean ranks are not significantly worse than the best: "
        f"{', '.join(told)}."
    )


def _temperature(table: Table) -> str:
    pairs = [
        table.ratios(m.name, m._replace(tempered=False).name, "log-loss")
        for learner in LEARNERS
        for m in couplers(learner, True)
    ]
    own = np.concatenate(
        [
            table.ratios(default_of(x).name, default_of(x, tempered=False).name, "log-loss")
            for x in LEARNERS
        ]
    )
    ratios = np.concatenate(pairs)
    word = "keep it" if geometric_mean(ratios) < 1 else "leave it out"
    return (
        f"**The temperature: {word}.** Criterion: the log-loss with a temperature divided by that "
        "without, as a geometric mean, is below 1. Over all rules, data sets and learners it is "
        f"{geometric_mean(ratios):.2f}, and {np.mean(ratios < 1):.0%} of the ratios are below 1. "
        f"For the default rule it is {geometric_mean(own):.2f}, and at most {own.max():.2f}."
    )


def _codes(table: Table, regrets: Regrets) -> str:
    told = []
    for code in CODES:
        best = regrets.best(code)
        fits = [
            table.medians(machines_name(learner, code), FITTING)
            / table.medians(machines_name(learner, CODES[0]), FITTING)
            for learner in LEARNERS
        ]
        time = geometric_mean(np.concatenate(fits))
        cost = "" if code == CODES[0] else f" (fitting takes {time:.1f} times as long)"
        told.append(f"{code}: `{best[1]}`, {regrets.mean(best):.3f}{cost}")
    return (
        "**If the code is fixed:** the best rule for each code, by the same criterion: "
        f"{'; '.join(told)}. Processor times are relative to {CODES[0]} (geometric mean)."
    )


def _labels(table: Table) -> str:
    errors: dict[Choice, float] = {}
    common = [m for m in with_labels("svc") if m in _as_svc(with_labels("logistic"))]
    for method in common:
        losses = [table.losses(method._replace(learner=x).name, "error") for x in LEARNERS]
        errors[method.code, method.rule] = float(np.mean(losses))
    best = min(errors, key=lambda choice: errors[choice])
    default = default_of("svc")
    own = default.code, default.rule
    beside = "this is the default" if best == own else f"the default has {100 * errors[own]:.2f} %"
    told = []
    for learner, title in LEARNERS.items():
        ranking = table.rank(with_labels(learner), "error")
        good = default_of(learner, tempered=False).full_label in ranking.as_good_as_best()
        told.append(f"{'not significantly' if good else 'significantly'} worse with {title}")
    return (
        f"**For labels alone: {spoken(best)}.** Criterion: the mean error over data sets and "
        f"learners, among rules that both learners have. It is {100 * errors[best]:.2f} %; "
        f"{beside}. By mean ranks, compared with the best, the default is {' and '.join(told)}."
    )


def _as_svc(methods: list[Method]) -> list[Method]:
    return [method._replace(learner="svc") for method in methods]


def _poor(regrets: Regrets) -> str:
    poor = sorted((c for c in regrets.choices if regrets.mean(c) > POOR), key=regrets.mean)
    if not poor:
        return ""
    listed = ", ".join(f"{spoken(c)} {regrets.mean(c):.2f}" for c in poor)
    return (
        f"**Avoid for probabilities**, because the log-loss is more than {POOR:g} times the lowest "
        f"one in the geometric mean: {listed}."
    )
