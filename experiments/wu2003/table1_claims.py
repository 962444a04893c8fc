"""The claims of Wu et al. (2003) about their Table 1, and their criteria."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np
from scipy.stats import chi2

from experiments.intervals import Interval, all_of, t_interval
from experiments.results import Measurement
from experiments.runner import Claim, Verdict
from experiments.wu2003.table1 import SCALES
from experiments.wu2003.table1_results import LABELS, Table, as_paper, n_classes

ALIKE = 0.01  # errors that differ by less are called similar
AHEAD = 0.05  # "by at least 5%"
LEVEL = 0.95


def _gaps(table: Table, data: list[str], pairs: Iterable[tuple[str, str]]) -> dict[str, Interval]:
    """Return the intervals of differences in error, over the pairs of samples."""
    return {
        f"{LABELS[a]} − {LABELS[b]}": t_interval(
            table.differences(data, as_paper(a), as_paper(b)), LEVEL
        )
        for a, b in pairs
    }


def _verdict(gaps: dict[str, Interval], answers: Iterable[bool | None]) -> Verdict:
    listed = "; ".join(f"{name} {interval}" for name, interval in gaps.items())
    return Verdict(all_of(answers), f"{listed} (points, {LEVEL:.0%} intervals).")


def _lacking(table: Table, data: Iterable[str]) -> Verdict | None:
    lacking = [name for name in data if name not in table.data(at_least=2)]
    return Verdict(None, f"it takes two pairs of {', '.join(lacking)}.") if lacking else None


def _similar(rows: list[Measurement]) -> Verdict:
    table, few = Table(rows), [name for name, k in n_classes().items() if k < 10]
    gaps = _lacking(table, few) or _gaps(table, few, combinations(LABELS, 2))
    if isinstance(gaps, Verdict):
        return gaps
    return _verdict(gaps, (interval.within(ALIKE) for interval in gaps.values()))


def _less_competitive(rows: list[Measurement]) -> Verdict:
    table, groups = Table(rows), (["usps", "mnist"], ["letter"])
    lacking = _lacking(table, (name for group in groups for name in group))
    if lacking:
        return lacking
    gaps = {
        f"{' and '.join(group)}: {name}": interval
        for group in groups
        for name, interval in _gaps(table, group, (("ht", "wlw2"), ("ht", "vote"))).items()
    }
    return _verdict(gaps, (interval.above(0.0) for interval in gaps.values()))


def _far_behind(rows: list[Measurement]) -> Verdict:
    table = Table(rows)
    lacking = _lacking(table, ["letter"])
    if lacking:
        return lacking
    gaps = _gaps(table, ["letter"], (("ht", "wlw2"), ("ht", "vote")))
    return _verdict(gaps, (interval.above(AHEAD) for interval in gaps.values()))


def _little_variation(rows: list[Measurement]) -> Verdict:
    table = Table(rows)
    ratios = {LABELS[rule]: _variation(table, as_paper(rule)) for rule in LABELS}
    found = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    if len(found) < len(ratios):
        return Verdict(None, "it takes two repeats.")
    listed = "; ".join(f"{n} {r.mean:.2f} [{r.low:.2f}, {r.high:.2f}]" for n, r in found.items())
    answer = all_of(ratio.below(1.0) for ratio in found.values())
    return Verdict(answer, f"{listed} (ratios, {LEVEL:.0%} intervals).")


def _variation(table: Table, method: str) -> Interval | None:
    """Return the deviation between repeats, relative to the error of counting test errors.

    The interval is that of a variance pooled over the pairs; None without repeats.
    """
    found = [
        table.repeats(name, pair, method) for name in table.data() for pair in table.pairs(name)
    ]
    found = [errors for errors in found if len(errors) > 1]
    freedom = sum(len(errors) - 1 for errors in found)
    if freedom == 0:
        return None
    squares = sum(float(((errors - errors.mean()) ** 2).sum()) for errors in found)
    n_test = SCALES["paper"]["test samples"]
    counting = np.mean([errors.mean() * (1.0 - errors.mean()) / n_test for errors in found])
    quantiles = chi2.ppf([0.5 + LEVEL / 2, 0.5 - LEVEL / 2], freedom)
    low, high = (float(np.sqrt(squares / q / counting)) for q in quantiles)
    return Interval(float(np.sqrt(squares / freedom / counting)), low, high)


CLAIMS = (
    Claim(
        "With few classes the four rules perform similarly (6.2).",
        "Differences in error between any two rules, on the data sets with fewer than 10 classes, "
        f"mean over their pairs of samples: within {100 * ALIKE:.0f} point of 0.",
        _similar,
    ),
    Claim(
        "With more classes HT is less competitive (6.2).",
        "Mean difference in error over the pairs of samples: HT above δ2 and above V, on usps and "
        "mnist together, and on letter.",
        _less_competitive,
    ),
    Claim(
        "On letter, δ2 and V outperform HT by at least 5 % (6.2).",
        f"Mean difference in error over the pairs of samples: above {100 * AHEAD:.0f} points.",
        _far_behind,
    ),
    Claim(
        "The variation that comes from the random folds is not large (6.2).",
        "Standard deviation of the test error between repeats, pooled over the pairs of samples, "
        "in units of the standard error of counting errors on the test samples: below 1 for all "
        "rules.",
        _little_variation,
    ),
)
