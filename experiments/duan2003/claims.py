"""The claims of Duan et al. (2003) about their tables in section 5, and their criteria.

Methods are compared by relative differences. These are averaged over the data sets for each
partition, and Student's intervals are computed over the partitions. The intervals of a claim
hold simultaneously (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.duan2003.methods import PAPER
from experiments.duan2003.partitions import SOURCES, Floats
from experiments.duan2003.results import (
    Table,
    decisive,
    distances_from_published,
    published_values,
)
from experiments.intervals import Interval, all_of, normal_interval, reproduced, t_interval
from experiments.results import Measurement
from experiments.runner import Claim, Verdict

LEVEL = 0.95
CLOSE = 0.05  # methods with smaller relative differences are called close
COMPETITIVE = 1.5  # times the mean error of all methods
COUPLED = ("PWC_PSVM", "PWC_KLR")
LOG_LOSS = "log-loss"
MANY = 10**6  # partitions; more are not told apart from never

Question = tuple[Sequence[str], str, str]
"""The methods that come first, the one they are compared with, and the metric."""
Answer = Callable[[Interval, float], bool | None]
"""A function of our interval and of the published difference."""


def _lower(interval: Interval, printed: float) -> bool | None:
    """Decide whether the difference is below 0.

    It is not if the interval lies above 0, or above the difference that the paper prints.
    """
    if interval.below(0.0):
        return True
    return False if interval.low > min(printed, 0.0) else None


def _close(interval: Interval, printed: float) -> bool | None:
    return interval.within(CLOSE)


def _missing(table: Table, at_least: int = 2) -> Verdict | None:
    lacking = [d for d in SOURCES if d not in table.data()]
    if lacking:
        return Verdict(None, f"nothing was measured on {', '.join(lacking)}.")
    if len(table.partitions(*SOURCES)) < at_least:
        return Verdict(None, f"it takes {at_least} partitions that all data sets have.")
    return None


def _level(n_intervals: int) -> float:
    """Return the level of each interval, if all are to hold simultaneously."""
    return 1.0 - (1.0 - LEVEL) / n_intervals


def _ask(table: Table, question: Question, level: float) -> tuple[Interval, int]:
    """Return the interval, and the number of partitions that have both methods."""
    first, second, metric = question
    found = table.relative_differences(list(SOURCES), first, second, metric)
    return t_interval(found, level), len(found)


def printed_difference(question: Question) -> float:
    """Return the same relative difference from the published means, mean over the data sets."""
    first, second, metric = question
    published, found = published_values(), []
    for data in SOURCES:
        a = float(np.mean([published[data, method, metric].mean for method in first]))
        b = published[data, second, metric].mean
        found.append(2.0 * (a - b) / (a + b))
    return float(np.mean(found))


def _name(question: Question) -> str:
    first, second, metric = question
    return f"{' and '.join(first)} − {second}{', log-loss' if metric == LOG_LOSS else ''}"


def _compare(*questions: tuple[Question, Answer]) -> Callable[[list[Measurement]], Verdict]:
    """Return a function that decides whether all answers are yes."""

    def decide(rows: list[Measurement]) -> Verdict:
        table = Table(decisive(rows))
        missing = _missing(table)
        if missing:
            return missing
        level = _level(len(questions))
        asked = [_ask(table, question, level) for question, _ in questions]
        intervals, sizes = [i for i, _ in asked], [n for _, n in asked]
        listed = (f"{_name(q)} {i}" for (q, _), i in zip(questions, intervals, strict=True))
        printed = [printed_difference(q) for q, _ in questions]
        answers = [a(i, p) for (_, a), i, p in zip(questions, intervals, printed, strict=True)]
        weaker = [
            f"{_name(q)} {100 * p:+.2f}"
            for (q, _), i, p, told in zip(questions, intervals, printed, answers, strict=True)
            if told is False and i.low <= 0
        ]
        together = " simultaneously" if len(questions) > 1 else ""
        evidence = (
            f"{'; '.join(listed)} (percent, {LEVEL:.0%} intervals{together}, "
            f"{_spoken(sizes)} partitions)."
        )
        if weaker:
            evidence += f" Excluded is the printed difference, 0 is not: {'; '.join(weaker)}."
        needs = [
            _needed(i, answer is _close, p, n)
            for (_, answer), i, p, n in zip(questions, intervals, printed, sizes, strict=True)
        ]
        return Verdict(all_of(answers), evidence, _power(answers, needs))

    return decide


def _spoken(sizes: Sequence[int]) -> str:
    """Return the numbers of partitions: "20", or "20 or 80" where some methods have more."""
    return " or ".join(str(n) for n in sorted(set(sizes)))


class Needed(NamedTuple):
    """How many partitions either answer would take, if the mean stayed where it is."""

    yes: float
    no: float


def _needed(interval: Interval, close: bool, printed: float, n: int) -> Needed:
    """Return the number of partitions that moves either bound out of the interval."""
    mean, half = interval.mean, interval.high - interval.mean
    if close:
        distances = CLOSE - abs(mean), abs(mean) - CLOSE
    else:
        distances = -mean, mean - min(printed, 0.0)
    return Needed(*(n * (half / d) ** 2 if d > 0 else float("inf") for d in distances))


def _power(answers: Sequence[bool | None], needs: Sequence[Needed]) -> str:
    """Say how many partitions would decide: all answers are yes, or one is no.

    An interval below 0 is a yes, wherever the printed difference lies.
    """
    open_ones = [need for need, told in zip(needs, answers, strict=True) if told is None]
    if not open_ones:
        return ""
    noes = (need.no for need in open_ones if need.no < need.yes)
    needed = min(max(need.yes for need in open_ones), min(noes, default=MANY), MANY)
    return f"To tell, about {int(np.ceil(needed))} partitions would be needed."


def _printed(*questions: tuple[Question, Answer]) -> Callable[[], str]:
    """Return a function that applies the criterion to the published means, without intervals."""

    def told() -> str:
        listed = (f"{_name(q)} {100 * printed_difference(q):+.2f}" for q, _ in questions)
        wrong = [
            _name(q) for q, a in questions if not _point_answer(printed_difference(q), a is _close)
        ]
        end = f"not as claimed: {', '.join(wrong)}" if wrong else "all as claimed"
        return f"the published means give {'; '.join(listed)} (percent, no intervals): {end}."

    return told


def _point_answer(value: float, close: bool) -> bool:
    return abs(value) < CLOSE if close else value < 0


def _comparison(key: str, text: str, criterion: str, *questions: tuple[Question, Answer]) -> Claim:
    return Claim(text, criterion, _compare(*questions), _printed(*questions), key)


def _error(first: str, second: str) -> Question:
    return (first,), second, "error"


def _nll(first: str, second: str) -> Question:
    return (first,), second, LOG_LOSS


# ---------------------------------------------------------------------- other criteria


def _competitive(
    rows: list[Measurement], methods: Sequence[str], judged: Sequence[str], metric: str
) -> Verdict:
    """Decide whether some methods are near the mean of all, on every data set."""
    table = Table(rows)
    missing = _missing(table)
    if missing:
        return missing
    if not all(table.has(data, method, metric) for data in SOURCES for method in methods):
        return Verdict(None, f"not all methods have the {metric}.")
    intervals, ratios, level = [], {}, _level(len(SOURCES) * len(judged))
    for data in SOURCES:
        usual = np.mean([table.values(data, method, metric) for method in methods], axis=0)
        losses = np.array([table.values(data, method, metric) for method in judged])
        intervals += [t_interval(e - COMPETITIVE * usual, level) for e in losses]
        means = losses.mean(axis=1) / usual.mean() if usual.mean() > 0 else np.ones(len(losses))
        ratios[data] = f"{judged[int(means.argmax())]} {means.max():.2f}"
    listed = ", ".join(f"{data} {ratio}" for data, ratio in ratios.items())
    answers = [i.below(0.0) for i in intervals]
    n = len(table.partitions(*SOURCES))
    power = _power(answers, [_needed(i, False, 0.0, n) for i in intervals])
    return Verdict(all_of(answers), f"the largest ratios are {listed}.", power)


def _variances(rows: list[Measurement]) -> Verdict:
    table = Table(decisive(rows))
    missing = _missing(table, at_least=4)
    if missing:
        return missing
    found = {
        "PWC_KLR against PWC_PSVM, error": _more_variable(table, "PWC_KLR", "PWC_PSVM", "error"),
        "PWC_PSVM against PWC_KLR, log-loss": _more_variable(
            table, "PWC_PSVM", "PWC_KLR", LOG_LOSS
        ),
    }
    listed = (f"{name} {i.mean:+.2f} [{i.low:+.2f}, {i.high:+.2f}]" for name, i in found.items())
    evidence = f"{'; '.join(listed)} (Fisher's z, {LEVEL:.0%} intervals simultaneously)."
    answers = [i.below(0.0) for i in found.values()]
    n = len(table.partitions(*SOURCES, methods=COUPLED))
    power = _power(answers, [_needed(i, False, 0.0, n) for i in found.values()])
    return Verdict(all_of(answers), f"{evidence[:-2]}, {n} partitions).", power)


def _printed_variances() -> str:
    values = published_values()
    parts = []
    for first, second, metric in (
        ("PWC_KLR", "PWC_PSVM", "error"),
        ("PWC_PSVM", "PWC_KLR", LOG_LOSS),
    ):
        smaller = [
            d
            for d in SOURCES
            if values[d, first, metric].deviation < values[d, second, metric].deviation
        ]
        others = [d for d in SOURCES if d not in smaller]
        but = f" (not on {', '.join(others)})" if others else ""
        parts.append(
            f"{first} has the smaller printed deviation of the {metric} on {len(smaller)} of "
            f"{len(SOURCES)} data sets{but}"
        )
    return f"{'; '.join(parts)}."


def _smallest_variances(rows: list[Measurement]) -> Verdict:
    table = Table(rows)
    missing = _missing(table, at_least=4)
    if missing:
        return missing
    deviations = {
        (data, m): float(table.values(data, m).std(ddof=1)) for data in SOURCES for m in PAPER
    }
    larger = _not_smallest(deviations)
    return Verdict(not larger, f"methods with a smaller deviation of the error: {_list(larger)}.")


def _not_smallest(deviations: dict[tuple[str, str], float]) -> dict[str, list[str]]:
    """Return the data sets with other methods whose deviation is below that of a coupled one."""
    found = {}
    for data in SOURCES:
        largest = max(deviations[data, method] for method in COUPLED)
        smaller = [m for m in PAPER if m not in COUPLED and deviations[data, m] < largest]
        if smaller:
            found[data] = smaller
    return found


def _list(found: dict[str, list[str]]) -> str:
    return "; ".join(f"{data} {', '.join(methods)}" for data, methods in found.items()) or "none"


def _printed_smallest() -> str:
    deviations = {
        (d, m): published_values()[d, m, "error"].deviation for d in SOURCES for m in PAPER
    }
    return f"by the printed deviations, smaller ones have: {_list(_not_smallest(deviations))}."


def _printed_competitive(methods: Sequence[str], judged: Sequence[str], metric: str) -> str:
    values, told, above = published_values(), [], 0
    for data in SOURCES:
        losses = {method: values[data, method, metric].mean for method in methods}
        worst = max(judged, key=lambda method: losses[method])
        ratio = losses[worst] / float(np.mean(list(losses.values())))
        told.append(f"{data} {worst} {ratio:.2f}")
        above += ratio >= COMPETITIVE
    end = f"{above} of {len(told)} are above" if above else "all below"
    return (
        f"the largest ratios of the published means are {', '.join(told)}: {end} {COMPETITIVE:g}."
    )


def _more_variable(table: Table, first: str, second: str, metric: str) -> Interval:
    """Return Pitman and Morgan's correlation of sums and differences, pooled over the data.

    It is below zero where the first has the smaller variance. Fisher's transformation has the
    variance 1 / (n - 3).
    """
    both = table.partitions(*SOURCES, methods=(first, second))
    pairs = [tuple(table.values(d, m, metric, both) for m in (first, second)) for d in SOURCES]
    weights = np.array([len(a) - 3.0 for a, _ in pairs])
    z = np.array([_transformed_correlation(a + b, a - b) for a, b in pairs])
    return normal_interval(
        float(weights @ z / weights.sum()), float(weights.sum() ** -0.5), _level(2)
    )


def _transformed_correlation(a: Floats, b: Floats) -> float:
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.arctanh(np.clip(np.corrcoef(a, b)[0, 1], -0.999, 0.999)))


def _best_overall() -> Iterable[tuple[Question, Answer]]:
    others = (name for name in PAPER if name not in COUPLED)
    return (((COUPLED, name, "error"), _lower) for name in others)


RELATIVE = (
    "Relative difference of test errors, mean over the five data sets, interval over partitions"
)


def _reproduced(methods: Sequence[str], metric: str) -> Callable[[list[Measurement]], Verdict]:
    """Return a function that compares our means with the published ones."""

    def decide(rows: list[Measurement]) -> Verdict:
        table = Table(rows)
        found = distances_from_published(table, methods, metric)
        if len(found) < len(methods) * len(SOURCES):
            return Verdict(None, "not all data sets were measured at the paper's size.")
        far = [f"{m} on {d} {v:+.1f}" for (d, m), v in found.items() if abs(v) >= 2]
        told = f"{len(found) - len(far)} of {len(found)} means are within 2 standard errors"
        listed = f"; the others: {', '.join(far)}" if far else ""
        return Verdict(reproduced(found.values()), f"{told}{listed}.")

    return decide


def _table(number: int, methods: Sequence[str], metric: str) -> Claim:
    return Claim(
        f"The means of Table {number}.",
        "At least nine of ten means are within 2 standard errors of the published ones, from the "
        "published deviations, for 20 and for our number of partitions.",
        _reproduced(methods, metric),
        lambda: "it compares with the published numbers themselves.",
        f"table-{number}",
    )


ONE_VS_REST = tuple(name for name, r in PAPER.items() if r.method.code == "one-vs-rest")
ONE_VS_ONE = tuple(name for name, r in PAPER.items() if r.method.code == "one-vs-one")
WITH_NLL = tuple(name for name, r in PAPER.items() if r.gives_probabilities)
SOFT_MAX = tuple(name for name in WITH_NLL if "SMC" in name)
ALL_ERRORS: dict[str, Any] = {"methods": tuple(PAPER), "judged": tuple(PAPER), "metric": "error"}
SOFT_MAX_LOSSES: dict[str, Any] = {"methods": WITH_NLL, "judged": SOFT_MAX, "metric": LOG_LOSS}
BELOW = (
    "below 0 {}. The claim does not hold if an interval lies above 0, or above the difference that "
    "the paper prints."
)
CLAIMS = (
    _table(2, ONE_VS_REST, "error"),
    _table(3, ONE_VS_ONE, "error"),
    _table(4, WITH_NLL, LOG_LOSS),
    Claim(
        "All methods give competitive performance (section 5).",
        f"On every data set, every method's error is below {COMPETITIVE} times the mean error of "
        "the twelve, by simultaneous intervals over partitions.",
        partial(_competitive, **ALL_ERRORS),
        partial(_printed_competitive, **ALL_ERRORS),
        "competitive",
    ),
    Claim(
        "The soft-max combinations are competitive in probability estimates (abstract).",
        f"On every data set, the log-loss of each of the four is below {COMPETITIVE} times the "
        "mean of the eight methods with probabilities, by simultaneous intervals over partitions.",
        partial(_competitive, **SOFT_MAX_LOSSES),
        partial(_printed_competitive, **SOFT_MAX_LOSSES),
        "competitive-log-loss",
    ),
    _comparison(
        "wta-klr",
        "WTA_KLR is the best of the winner-takes-all methods (section 5).",
        f"{RELATIVE}: {BELOW.format('against WTA_SVM and against WTA_PSVM')}",
        (_error("WTA_KLR", "WTA_SVM"), _lower),
        (_error("WTA_KLR", "WTA_PSVM"), _lower),
    ),
    _comparison(
        "wta-close",
        "WTA_PSVM and WTA_SVM are close (section 5).",
        f"{RELATIVE}: within {100 * CLOSE:.0f} percent of 0.",
        (_error("WTA_PSVM", "WTA_SVM"), _close),
    ),
    _comparison(
        "mwv-better",
        "MWV_KLR and MWV_PSVM are slightly better than MWV_SVM (section 5).",
        f"{RELATIVE}: {BELOW.format('for both')}",
        (_error("MWV_KLR", "MWV_SVM"), _lower),
        (_error("MWV_PSVM", "MWV_SVM"), _lower),
    ),
    _comparison(
        "mwv-close",
        "MWV_KLR and MWV_PSVM are close (section 5).",
        f"{RELATIVE}: within {100 * CLOSE:.0f} percent of 0.",
        (_error("MWV_KLR", "MWV_PSVM"), _close),
    ),
    _comparison(
        "mwv-klr",
        "MWV_KLR is the best of the max-wins methods (conclusions).",
        f"{RELATIVE}: {BELOW.format('against MWV_SVM and against MWV_PSVM')}",
        (_error("MWV_KLR", "MWV_SVM"), _lower),
        (_error("MWV_KLR", "MWV_PSVM"), _lower),
    ),
    _comparison(
        "ssmc1va",
        "SSMC1va is as accurate as SMC1va, with better probabilities (section 5).",
        f"{RELATIVE}: within {100 * CLOSE:.0f} percent of 0; the same difference of log-losses: "
        f"{BELOW.format('')}".replace("0 .", "0."),
        (_error("SSMC1va", "SMC1va"), _close),
        (_nll("SSMC1va", "SMC1va"), _lower),
    ),
    _comparison(
        "ssmc1v1",
        "SSMC1v1 is more accurate than SMC1v1, with better probabilities (section 5).",
        f"{RELATIVE}, and of log-losses: {BELOW.format('for both')}",
        (_error("SSMC1v1", "SMC1v1"), _lower),
        (_nll("SSMC1v1", "SMC1v1"), _lower),
    ),
    _comparison(
        "ssmc-better",
        "SSMC1va and SSMC1v1 are better than their regularized counterparts (conclusions).",
        f"{RELATIVE}, and of log-losses: {BELOW.format('for both')}",
        (_error("SSMC1va", "SMC1va"), _lower),
        (_nll("SSMC1va", "SMC1va"), _lower),
        (_error("SSMC1v1", "SMC1v1"), _lower),
        (_nll("SSMC1v1", "SMC1v1"), _lower),
    ),
    _comparison(
        "pwc-best",
        "PWC_PSVM and PWC_KLR are the best overall (section 5).",
        f"{RELATIVE}, of the mean error of the two: "
        f"{BELOW.format('against each of the other ten methods')}",
        *_best_overall(),
    ),
    Claim(
        "PWC_KLR varies less than PWC_PSVM in error, PWC_PSVM less than PWC_KLR in log-loss "
        "(section 5).",
        "Pitman and Morgan's test of the variances over partitions, correlations pooled over the "
        "five data sets: below 0 for both.",
        _variances,
        _printed_variances,
        "pwc-variances",
    ),
    Claim(
        "The variances of PWC_PSVM and PWC_KLR are also smaller than those of the other methods "
        "(section 5).",
        "On every data set, the deviation of the error over partitions is lower for both than for "
        "each of the other ten methods.",
        _smallest_variances,
        _printed_smallest,
        "smallest-variances",
    ),
)
