"""The claims of Wu et al. (2003) about their Figure 1, and their criteria."""

from __future__ import annotations

from collections.abc import Iterable

from experiments.intervals import Interval, all_of
from experiments.results import Measurement
from experiments.runner import Claim, Verdict
from experiments.wu2003.figure1 import CASES
from experiments.wu2003.figure1_results import LABELS, LEVEL, Outcome

ALIKE = 0.02  # accuracies that differ by less are called alike


def _complete(outcome: Outcome) -> bool:
    return all(len(outcome.sizes(case)) > 1 for case in CASES)


def _decide(answers: dict[str, Interval], decisions: Iterable[bool | None]) -> Verdict:
    listed = "; ".join(f"{name} {interval}" for name, interval in answers.items())
    return Verdict(all_of(decisions), f"{listed} (points, {LEVEL:.0%} intervals).")


def _missing() -> Verdict:
    return Verdict(None, "not all cases have been simulated.")


def _balanced(rows: list[Measurement]) -> Verdict:
    outcome = Outcome(rows)
    if not _complete(outcome):
        return _missing()
    pairs = (("ht", "wlw1"), ("ht", "wlw2"), ("wlw1", "wlw2"))
    alike = {f"{LABELS[a]} − {LABELS[b]}": _mean(outcome, "balanced", a, b) for a, b in pairs}
    ahead = {
        f"{LABELS[a]} − V": _mean(outcome, "balanced", a, "vote") for a in ("ht", "wlw1", "wlw2")
    }
    decisions = [*(i.within(ALIKE) for i in alike.values()), *(i.above(0) for i in ahead.values())]
    return _decide(alike | ahead, decisions)


def _mean(outcome: Outcome, case: str, first: str, second: str) -> Interval:
    return outcome.mean_gap(case, first, second).interval()


def _imbalance(rows: list[Measurement]) -> Verdict:
    outcome = Outcome(rows)
    if not _complete(outcome):
        return _missing()
    gaps = {
        f"{case}: {LABELS[rule]} − HT": _mean(outcome, case, rule, "ht")
        for case in CASES[1:]
        for rule in ("wlw1", "wlw2")
    }
    return _decide(gaps, (interval.above(0) for interval in gaps.values()))


def _worse_with_k(rows: list[Measurement]) -> Verdict:
    outcome, worst = Outcome(rows), CASES[2]
    if not _complete(outcome):
        return _missing()
    few, many = outcome.sizes(worst)[0], outcome.sizes(worst)[-1]
    milder = outcome.mean_gap(CASES[1], "wlw2", "ht")
    smaller = outcome.gap(worst, few, "wlw2", "ht")
    gaps = {
        f"δ2 − HT, {worst} less {CASES[1]}": outcome.mean_gap(worst, "wlw2", "ht").minus(milder),
        f"δ2 − HT, k = {many} less k = {few}": outcome.gap(worst, many, "wlw2", "ht").minus(
            smaller
        ),
    }
    return _decide(gaps, (interval.above(0) for interval in gaps.values()))


def _stable(rows: list[Measurement]) -> Verdict:
    outcome = Outcome(rows)
    if not _complete(outcome):
        return _missing()
    gaps = {
        f"lowest of {LABELS[a]} − lowest of {LABELS[b]}": outcome.lowest(a).minus(outcome.lowest(b))
        for a in ("wlw1", "wlw2")
        for b in ("ht", "vote")
    }
    return _decide(gaps, (interval.above(0) for interval in gaps.values()))


CLAIMS = (
    Claim(
        "With balanced p, HT, δ1 and δ2 all do very well, and V poorly (6.1).",
        f"Mean over k of the difference in accuracy: within {100 * ALIKE:.0f} points among the "
        "three, and each of them above V. Differences are those of the same replicates.",
        _balanced,
        key="balanced",
    ),
    Claim(
        "HT suffers where p is not balanced (6.1).",
        "Mean over k of the difference in accuracy: δ1 and δ2 above HT, in both cases.",
        _imbalance,
        key="imbalance",
    ),
    Claim(
        "HT's loss is much worse in the highly unbalanced case, especially for large k (6.1).",
        "HT is farther behind δ2 in that case than in the unbalanced one, mean over k; and there, "
        "farther with the largest k than with the smallest.",
        _worse_with_k,
        key="worse-with-k",
    ),
    Claim(
        "δ1 and δ2 depend less on p than HT and V: their performance is fairly stable (6.1).",
        "Over all cases and k, the lowest accuracy of δ1 and that of δ2 are above the lowest of HT "
        "and above that of V.",
        _stable,
        key="stable",
    ),
)
