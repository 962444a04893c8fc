"""What to pick, said in sentences that are made from the results."""

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

POOR = 1.5  # times the best log-loss: to be avoided
CLOSE = 1.05  # times the best log-loss: as good for practical purposes

Choice = tuple[str, str]
"""A code and a rule."""


class Regrets:
    """How many times the least log-loss of its kind a rule has, on every data set and learner."""

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
        return f"{row.max():.2f} times at worst ({self.places[int(row.argmax())]})"

    def best(self, code: str | None = None) -> Choice:
        """Return the choice of the least mean, among those of a code or all."""
        return min((c for c in self.choices if code in (None, c[0])), key=self.mean)


def advice(table: Table) -> str:
    """Return what to pick, with the criteria and figures."""
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
        f"**For probabilities: {spoken(best)}**, with the temperature. Criterion: the geometric "
        "mean, over data sets and learners, of the log-loss as a multiple of the least that any "
        "rule has there, rules being with a temperature or trained. It is "
        f"{regrets.mean(best):.3f}, {regrets.worst(best)}. "
    )
    if best == own:
        text += "That is what `CoupledSVC` and `CoupledClassifier` do unless told otherwise. "
    else:
        text += (
            f"For what `CoupledSVC` and `CoupledClassifier` do unless told otherwise, "
            f"{spoken(own)}, it is {regrets.mean(own):.3f}, {regrets.worst(own)}. "
        )
    others = sorted((c for c in regrets.choices if c != best), key=regrets.mean)
    near = [c for c in others if regrets.mean(c) <= CLOSE * regrets.mean(best)] or others[:1]
    listed = ", ".join(f"{spoken(c)} {regrets.mean(c):.3f}" for c in near)
    return f"{text}Next: {listed}. {_as_good(table)}"


def _as_good(table: Table) -> str:
    told = []
    for learner, title in LEARNERS.items():
        ranking = table.rank(at_their_best(learner), "log-loss")
        count = len(ranking.as_good_as_best())
        told.append(f"{count} of {len(ranking.names)} with {title}")
    return (
        "By mean ranks, so many rules are not worse than the best beyond chance: "
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
        f"**The temperature: {word}.** Criterion: whether the geometric mean of the log-loss with "
        "it over that without is below 1. Over all rules, data sets and learners it is "
        f"{geometric_mean(ratios):.2f}, with {np.mean(ratios < 1):.0%} of them below 1; for the "
        f"default rule {geometric_mean(own):.2f}, {own.max():.2f} at most."
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
        cost = "" if code == CODES[0] else f", machines fitted in {time:.1f} times its time"
        told.append(f"{code}: `{best[1]}`, {regrets.mean(best):.3f}{cost}")
    return (
        "**If the code is given:** the best rule for each, by the same criterion: "
        f"{'; '.join(told)} (processor time against {CODES[0]}, geometric mean)."
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
    beside = "that is the default" if best == own else f"the default has {100 * errors[own]:.2f} %"
    told = []
    for learner, title in LEARNERS.items():
        ranking = table.rank(with_labels(learner), "error")
        good = default_of(learner, tempered=False).full_label in ranking.as_good_as_best()
        told.append(f"{'not worse' if good else 'worse'} with {title}")
    return (
        f"**For labels alone: {spoken(best)}.** Criterion: the mean error over data sets and "
        f"learners, among rules that both learners have. It is {100 * errors[best]:.2f} %; "
        f"{beside}. By mean ranks the default is {' and '.join(told)} than the best beyond chance."
    )


def _as_svc(methods: list[Method]) -> list[Method]:
    return [method._replace(learner="svc") for method in methods]


def _poor(regrets: Regrets) -> str:
    poor = sorted((c for c in regrets.choices if regrets.mean(c) > POOR), key=regrets.mean)
    if not poor:
        return ""
    listed = ", ".join(f"{spoken(c)} {regrets.mean(c):.2f}" for c in poor)
    return (
        f"**To avoid for probabilities**, with more than {POOR:g} times the least log-loss in the "
        f"geometric mean: {listed}."
    )
