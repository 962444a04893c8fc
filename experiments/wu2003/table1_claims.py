"""The claims of Wu et al. (2003) about their Table 1, and their criteria."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, product

import numpy as np
from scipy.stats import chi2

from experiments.intervals import Interval, all_of, reproduced, t_interval
from experiments.results import Measurement
from experiments.runner import Claim, Verdict
from experiments.wu2003.table1 import SCALES
from experiments.wu2003.table1_results import (
    LABELS,
    Table,
    as_paper,
    mean_distances,
    n_classes,
    published_errors,
    published_rows,
)

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


def _stable(rows: list[Measurement]) -> Verdict:
    """Compare the largest losses against the best rule, over the data sets."""
    table = Table(rows)
    lacking = _lacking(table, n_classes())
    if lacking:
        return lacking
    means = {
        rule: np.array([table.means(name, as_paper(rule)).mean() for name in table.data()])
        for rule in LABELS
    }
    best = np.min(list(means.values()), axis=0)
    worst = {rule: float((errors - best).max()) for rule, errors in means.items()}
    told = ", ".join(f"{LABELS[rule]} {100 * value:.2f}" for rule, value in worst.items())
    holds = max(worst["wlw1"], worst["wlw2"]) < min(worst["ht"], worst["vote"])
    return Verdict(holds, f"largest losses against the best rule, in points: {told}.")


def _same_choice(rows: list[Measurement]) -> Verdict:
    """Decide whether repeats with the same error chose the same C and gamma."""
    table, equal, other = Table(rows), 0, []
    for name in table.data():
        for pair, rule in product(table.pairs(name), LABELS):
            method = as_paper(rule)
            errors, Cs, gammas = (
                table.repeats(name, pair, method, metric)
                for metric in ("error", "log2 C", "log2 gamma")
            )
            if len(errors) > 1 and np.ptp(errors) == 0:
                equal += 1
                if len(set(zip(Cs, gammas, strict=True))) > 1:
                    other.append(f"{LABELS[rule]} on {name}, pair {pair}")
    if not equal:
        return Verdict(None, "no deviation is zero.")
    told = f"{equal} deviations are zero, {len(other)} of them with different choices"
    return Verdict(not other, f"{told}{': ' * bool(other)}{'; '.join(other)}.")


def _published_zeros() -> str:
    zeros = sum(deviation == 0 for _, deviation in published_errors().values())
    return f"{zeros} of the 100 printed deviations are zero; no C and γ are printed."


def _as_figure_1c(rows: list[Measurement]) -> Verdict:
    """Decide whether HT has more errors than the proposed rules, as in Figure 1(c)."""
    table = Table(rows)
    lacking = _lacking(table, n_classes())
    if lacking:
        return lacking
    gaps = _gaps(table, list(n_classes()), (("ht", "wlw1"), ("ht", "wlw2")))
    return _verdict(gaps, (interval.above(0.0) for interval in gaps.values()))


def _reproduced(rows: list[Measurement]) -> Verdict:
    """Compare our means with the published ones."""
    distances = mean_distances(Table(rows))
    if len(distances) < len(LABELS) * len(n_classes()):
        return Verdict(None, "it takes two pairs of every data set.")
    name, rule = max(distances, key=lambda cell: abs(distances[cell]))
    near = sum(abs(d) < 2 for d in distances.values())
    told = (
        f"{near} of {len(distances)} means are within 2 standard errors; the farthest is "
        f"{LABELS[rule]} on {name}, {distances[name, rule]:+.1f}."
    )
    return Verdict(reproduced(distances.values()), told)


def _on_published(decide: Callable[[list[Measurement]], Verdict]) -> Callable[[], str]:
    """Apply the same criterion to the published errors."""
    return lambda: f"on the published errors it {decide(published_rows())}"


def _published_variation() -> str:
    ratios = []
    for rule in LABELS:
        cells = [cell for (_, _, r), cell in published_errors().items() if r == rule]
        squares = np.mean([deviation**2 * 5 / 4 for _, deviation in cells])
        counting = np.mean([mean * (1 - mean) / 500 for mean, _ in cells])
        ratios.append(f"{LABELS[rule]} {np.sqrt(squares / counting):.2f}")
    return f"the ratios of the published deviations are {', '.join(ratios)}: below 1, as claimed."


CLAIMS = (
    Claim(
        "The errors of Table 1.",
        "At least nine of ten mean errors of a rule on a data set are within 2 standard errors of "
        "the published ones, from the variation between pairs of samples.",
        _reproduced,
        lambda: "it compares with the published numbers themselves.",
        "table-1",
    ),
    Claim(
        "With few classes the four rules perform similarly (6.2).",
        "Differences in error between any two rules, on the data sets with fewer than 10 classes, "
        f"mean over their pairs of samples: within {100 * ALIKE:.0f} point of 0.",
        _similar,
        _on_published(_similar),
        "few-classes",
    ),
    Claim(
        "With more classes HT is less competitive (6.2).",
        "Mean difference in error over the pairs of samples: HT above δ2 and above V, on usps and "
        "mnist together, and on letter.",
        _less_competitive,
        _on_published(_less_competitive),
        "less-competitive",
    ),
    Claim(
        "On letter, δ2 and V outperform HT by at least 5 % (6.2).",
        f"Mean difference in error over the pairs of samples: above {100 * AHEAD:.0f} points.",
        _far_behind,
        _on_published(_far_behind),
        "letter-5",
    ),
    Claim(
        "The variation that comes from the random folds is not large (6.2).",
        "Standard deviation of the test error between repeats, pooled over the pairs of samples, "
        "in units of the standard error of counting errors on the test samples: below 1 for all "
        "rules.",
        _little_variation,
        _published_variation,
        "folds",
    ),
    Claim(
        "A deviation of zero means that the best (C, γ) of all cross-validations is the same "
        "(6.2).",
        "In no cell of our table whose five repeats have the same error do the chosen C and γ "
        "differ.",
        _same_choice,
        _published_zeros,
        "same-choice",
    ),
    Claim(
        "The problems of Table 1 are closer to the setting of Figure 1(c) than to that of 1(a) "
        "(6.2).",
        "As in Figure 1(c), and not as in 1(a), HT has more errors than δ1 and than δ2: mean "
        "difference in error over all pairs of samples of the five data sets.",
        _as_figure_1c,
        _on_published(_as_figure_1c),
        "as-figure-1c",
    ),
    Claim(
        "δ1 and δ2 are more stable than HT and V, on the real data (abstract, sections 1 and 7).",
        "The largest loss of mean error against the best of the four rules, over the five data "
        "sets, is lower for δ1 and for δ2 than for HT and for V.",
        _stable,
        _on_published(_stable),
        "stable-real",
    ),
)
