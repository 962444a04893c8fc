"""The questions to the comparison of all rules, and their criteria."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy.stats import wilcoxon

from experiments.intervals import all_of, t_interval
from experiments.results import Measurement
from experiments.runner import Claim, Verdict
from experiments.summary.methods import LEARNERS, PEERS, Method, at_their_best, couplers, default_of
from experiments.summary.ranking import LEVEL, Array
from experiments.summary.reading import Table, geometric_mean

WITHIN = 1.02  # factor on the log-loss that a temperature may cost
ALIKE = 0.005  # error rates that differ by less count as equal
ENOUGH_DATA, ENOUGH_SPLITS = 6, 2  # with fewer, claims are undecided

Rows = list[Measurement]


def _decided(table: Table, holds: bool | None, evidence: str) -> Verdict:
    enough = len(table.data) >= ENOUGH_DATA and table.n_splits() >= ENOUGH_SPLITS
    return Verdict(holds if enough else None, evidence)


def _costs_little(rows: Rows, default_only: bool) -> Verdict:
    """Decide whether the temperature costs little, in every cell of data set and rule."""
    table = Table(rows)
    costs: dict[str, float] = {}
    for method in (m for learner in LEARNERS for m in couplers(learner, True)):
        if default_only and method != default_of(method.learner):
            continue
        ratios = table.ratios(method.name, method._replace(tempered=False).name, "log-loss")
        where = f"{LEARNERS[method.learner]} {method.code} {method.rule}"
        costs |= {f"{where} on {d}": r for d, r in zip(table.data, ratios, strict=True)}
    above = {cell: ratio for cell, ratio in costs.items() if ratio > WITHIN}
    worst = max(costs, key=lambda cell: costs[cell])
    mean = geometric_mean(np.array(list(costs.values())))
    evidence = (
        f"{len(above)} of {len(costs)} ratios are above {WITHIN:g}; the largest is "
        f"{costs[worst]:.3f} ({worst}), the geometric mean {mean:.3f}{_by_rule(above)}."
    )
    return _decided(table, not above, evidence)


def _by_rule(cells: Iterable[str]) -> str:
    """Count the cells of each method that has any."""
    methods = [cell.rpartition(" on ")[0] for cell in cells]
    counts = {method: methods.count(method) for method in dict.fromkeys(methods)}
    if len(counts) < 2:
        return ""
    listed = sorted(counts.items(), key=lambda item: -item[1])
    return "; ratios above it by rule: " + ", ".join(
        f"{method} {count}" for method, count in listed
    )


def _not_worse(rows: Rows, pairs_only: bool) -> Verdict:
    """Decide whether the log-loss of the default is not significantly worse than the best."""
    table, answers, told = Table(rows), [], []
    for learner, title in LEARNERS.items():
        default = default_of(learner)
        methods = [m for m in at_their_best(learner) if not pairs_only or m.code == default.code]
        ranking = table.rank(methods, "log-loss")
        answers.append(default.full_label in ranking.as_good_as_best())
        own = f"{ranking.rank_of(default.full_label):.2f}"
        best = f"{ranking.names[0]} has {ranking.ranks[0]:.2f}"
        told.append(
            f"{title}: its mean rank is {own}, "
            + ("the best" if ranking.names[0] == default.full_label else f"and the best, {best}")
            + f"; the critical difference is {ranking.distance:.2f}"
        )
    return _decided(table, all(answers), "; ".join(told) + ".")


def _lower(table: Table, first: str, second: str) -> tuple[bool | None, str]:
    """Decide whether a log-loss is lower over the data sets, by the signed-rank test."""
    a, b = (np.log(table.losses(name, "log-loss")) for name in (first, second))
    told = f"{geometric_mean(np.exp(a - b)):.2f} times, lower on {(a < b).sum()} of {len(a)} sets"
    return sign_of(a - b), told


def sign_of(differences: Array) -> bool | None:
    """Return whether differences are below 0 (True) or above (False), by the signed-rank test."""
    if not np.any(differences):
        return None
    if wilcoxon(differences, alternative="less").pvalue <= LEVEL:
        return True
    return False if wilcoxon(differences, alternative="greater").pvalue <= LEVEL else None


def _temperature_helps(rows: Rows) -> Verdict:
    table, answers, told = Table(rows), [], []
    for learner, title in LEARNERS.items():
        names = (default_of(learner, tempered).name for tempered in (True, False))
        answer, figures = _lower(table, *names)
        answers.append(answer)
        told.append(f"{title} {figures}")
    return _decided(table, all_of(answers), "; ".join(told) + ".")


def _beats_peers(rows: Rows, learner: str) -> Verdict:
    table, answers, told = Table(rows), [], []
    for peer in PEERS[learner]:
        if table.has(peer, "log-loss"):
            answer, figures = _lower(table, default_of(learner).name, peer)
            answers.append(answer)
            told.append(f"of {peer} {figures}")
    return _decided(table, all_of(answers), "; ".join(told) + ".")


def _labels_as_voting(rows: Rows) -> Verdict:
    table, answers, told = Table(rows), [], []
    for learner, title in LEARNERS.items():
        voting = Method(learner, "one-vs-one", "max-wins").name
        own = default_of(learner, tempered=False).name
        gap = t_interval(table.losses(own, "error") - table.losses(voting, "error"))
        # The claim also holds if coupling is more accurate than voting.
        answers.append(True if gap.high < ALIKE else False if gap.low >= ALIKE else None)
        told.append(f"{title} {gap} points")
    return _decided(table, all_of(answers), "; ".join(told) + ".")


SIGNED_RANKS = (
    f"Wilcoxon's signed-rank test over the data sets, one-sided at {LEVEL:.0%}, of the logarithms "
    "of the log-losses (means over splits)"
)
NEMENYI = (
    "Mean ranks over the data sets differ by less than Nemenyi's critical difference at "
    f"{LEVEL:.0%}, with either learner."
)
CLAIMS = (
    Claim(
        "A temperature costs the default rule, wlw2 on one-vs-one, next to nothing anywhere.",
        f"On every data set and with either learner, the log-loss with the temperature is at most "
        f"{WITHIN:g} times that without (means over splits).",
        partial(_costs_little, default_only=True),
    ),
    Claim(
        "A temperature costs no rule more than next to nothing anywhere.",
        f"The same for all {sum(1 for _ in couplers('svc', True))} rules that may have one.",
        partial(_costs_little, default_only=False),
    ),
    Claim(
        "A temperature lowers the log-loss of the default rule.",
        f"{SIGNED_RANKS}, with either learner.",
        _temperature_helps,
    ),
    Claim(
        "The log-loss of wlw2 is not worse than that of the best one-vs-one rule, each with its "
        "temperature or trained.",
        NEMENYI,
        partial(_not_worse, pairs_only=True),
    ),
    Claim(
        "The log-loss of wlw2 on one-vs-one is not worse than that of the best rule of any code, "
        "each with its temperature or trained.",
        f"{NEMENYI} (The codes have machines of their own.)",
        partial(_not_worse, pairs_only=False),
    ),
    Claim(
        "CoupledSVC has a lower log-loss than what scikit-learn offers for SVC.",
        f"{SIGNED_RANKS}, against each.",
        partial(_beats_peers, learner="svc"),
    ),
    Claim(
        "Coupled pairs of logistic regressions have a lower log-loss than the multinomial one.",
        f"{SIGNED_RANKS}.",
        partial(_beats_peers, learner="logistic"),
    ),
    Claim(
        "Labels by coupling are as accurate as labels by votes.",
        f"The 95% interval (Student) of the mean over data sets of the error of wlw2 less that of "
        f"max-wins ends below {100 * ALIKE:g} points, with either learner.",
        _labels_as_voting,
    ),
)
