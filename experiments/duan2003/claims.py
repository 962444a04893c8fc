"""The claims of Duan et al. (2003) about their tables in section 5, and their criteria.

Methods are compared by relative differences. These are averaged over the data sets for each
partition, and Student's intervals are computed over the partitions. The intervals of a claim
hold simultaneously (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from experiments.duan2003.methods import PAPER
from experiments.duan2003.partitions import SOURCES, Floats
from experiments.duan2003.results import Table
from experiments.intervals import Interval, all_of, normal_interval, t_interval
from experiments.results import Measurement
from experiments.runner import Claim, Verdict

LEVEL = 0.95
CLOSE = 0.05  # methods with smaller relative differences are called close
COMPETITIVE = 1.5  # times the mean error of all methods
COUPLED = ("PWC_PSVM", "PWC_KLR")
LOG_LOSS = "log-loss"

Question = tuple[Sequence[str], str, str]
"""The methods that come first, the one they are compared with, and the metric."""
Answer = Callable[[Interval], bool | None]


def _lower(interval: Interval) -> bool | None:
    return interval.below(0.0)


def _close(interval: Interval) -> bool | None:
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


def _ask(table: Table, question: Question, level: float) -> Interval:
    first, second, metric = question
    return t_interval(table.relative_differences(list(SOURCES), first, second, metric), level)


def _name(question: Question) -> str:
    first, second, metric = question
    return f"{' and '.join(first)} − {second}{', log-loss' if metric == LOG_LOSS else ''}"


def _compare(*questions: tuple[Question, Answer]) -> Callable[[list[Measurement]], Verdict]:
    """Return a function that decides whether all answers are yes."""

    def decide(rows: list[Measurement]) -> Verdict:
        table = Table(rows)
        missing = _missing(table)
        if missing:
            return missing
        level = _level(len(questions))
        intervals = [_ask(table, question, level) for question, _ in questions]
        listed = (f"{_name(q)} {i}" for (q, _), i in zip(questions, intervals, strict=True))
        answers = (a(i) for (_, a), i in zip(questions, intervals, strict=True))
        n = len(table.partitions(*SOURCES))
        together = " simultaneously" if len(questions) > 1 else ""
        evidence = (
            f"{'; '.join(listed)} (percent, {LEVEL:.0%} intervals{together}, {n} partitions)."
        )
        return Verdict(all_of(answers), evidence)

    return decide


def _error(first: str, second: str) -> Question:
    return (first,), second, "error"


def _nll(first: str, second: str) -> Question:
    return (first,), second, LOG_LOSS


# ---------------------------------------------------------------------- other criteria


def _competitive(rows: list[Measurement]) -> Verdict:
    table = Table(rows)
    missing = _missing(table)
    if missing:
        return missing
    answers, ratios, level = [], {}, _level(len(SOURCES) * len(PAPER))
    for data in SOURCES:
        errors = np.array([table.values(data, method) for method in PAPER])
        usual = errors.mean(axis=0)
        answers += [t_interval(e - COMPETITIVE * usual, level).below(0.0) for e in errors]
        means = errors.mean(axis=1) / usual.mean() if usual.mean() > 0 else np.ones(len(errors))
        ratios[data] = f"{list(PAPER)[means.argmax()]} {means.max():.2f}"
    listed = ", ".join(f"{data} {ratio}" for data, ratio in ratios.items())
    return Verdict(all_of(answers), f"the largest ratios are {listed}.")


def _variances(rows: list[Measurement]) -> Verdict:
    table = Table(rows)
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
    return Verdict(all_of(i.below(0.0) for i in found.values()), evidence)


def _more_variable(table: Table, first: str, second: str, metric: str) -> Interval:
    """Return Pitman and Morgan's correlation of sums and differences, pooled over the data.

    It is below zero where the first has the smaller variance. Fisher's transformation has the
    variance 1 / (n - 3).
    """
    pairs = [(table.values(d, first, metric), table.values(d, second, metric)) for d in SOURCES]
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

CLAIMS = (
    Claim(
        "All methods give competitive performance (section 5).",
        f"On every data set, every method's error is below {COMPETITIVE} times the mean error of "
        "the twelve, by simultaneous intervals over partitions.",
        _competitive,
    ),
    Claim(
        "WTA_KLR is the best of the winner-takes-all methods (section 5).",
        f"{RELATIVE}: below 0 against WTA_SVM and against WTA_PSVM.",
        _compare(
            (_error("WTA_KLR", "WTA_SVM"), _lower),
            (_error("WTA_KLR", "WTA_PSVM"), _lower),
        ),
    ),
    Claim(
        "WTA_PSVM and WTA_SVM are close (section 5).",
        f"{RELATIVE}: within {100 * CLOSE:.0f} percent of 0.",
        _compare((_error("WTA_PSVM", "WTA_SVM"), _close)),
    ),
    Claim(
        "MWV_KLR and MWV_PSVM are slightly better than MWV_SVM (section 5).",
        f"{RELATIVE}: below 0 for both.",
        _compare(
            (_error("MWV_KLR", "MWV_SVM"), _lower),
            (_error("MWV_PSVM", "MWV_SVM"), _lower),
        ),
    ),
    Claim(
        "MWV_KLR and MWV_PSVM are close (section 5).",
        f"{RELATIVE}: within {100 * CLOSE:.0f} percent of 0.",
        _compare((_error("MWV_KLR", "MWV_PSVM"), _close)),
    ),
    Claim(
        "MWV_KLR is the best of the max-wins methods (conclusions).",
        f"{RELATIVE}: below 0 against MWV_SVM and against MWV_PSVM.",
        _compare(
            (_error("MWV_KLR", "MWV_SVM"), _lower),
            (_error("MWV_KLR", "MWV_PSVM"), _lower),
        ),
    ),
    Claim(
        "SSMC1va is as accurate as SMC1va, with better probabilities (section 5).",
        f"{RELATIVE}: within {100 * CLOSE:.0f} percent of 0; the same difference of log-losses: "
        "below 0.",
        _compare((_error("SSMC1va", "SMC1va"), _close), (_nll("SSMC1va", "SMC1va"), _lower)),
    ),
    Claim(
        "SSMC1v1 is more accurate than SMC1v1, with better probabilities (section 5).",
        f"{RELATIVE}: below 0; so is the same difference of log-losses.",
        _compare((_error("SSMC1v1", "SMC1v1"), _lower), (_nll("SSMC1v1", "SMC1v1"), _lower)),
    ),
    Claim(
        "PWC_PSVM and PWC_KLR are the best overall (section 5).",
        f"{RELATIVE}, of the mean error of the two: below 0 against each of the other ten methods.",
        _compare(*_best_overall()),
    ),
    Claim(
        "PWC_KLR varies less than PWC_PSVM in error, PWC_PSVM less than PWC_KLR in log-loss "
        "(section 5).",
        "Pitman and Morgan's test of the variances over partitions, correlations pooled over the "
        "five data sets: below 0 for both.",
        _variances,
    ),
)
