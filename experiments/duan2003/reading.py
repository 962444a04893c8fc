"""Comments on the tables of Duan et al. (2003), with computed numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np

from experiments.checked import duan_contradictions
from experiments.duan2003.methods import DEFAULT, PAPER, RECIPES, TUNED
from experiments.duan2003.results import (
    Table,
    distances_from_published,
    p_value,
    published_p_values,
)
from experiments.duan2003.tables import SOFTMAX_C
from experiments.intervals import t_interval

CLEAR = 0.1  # p-values below it, or above one minus it, are called clear in section 5
NEAR = 2.0  # standard errors

OURS_AGAINST = (
    (TUNED, "PWC_PSVM"),
    (DEFAULT, "PWC_PSVM"),
    ("PSVM 1v1, wlw2, temperature", "PWC_PSVM"),
    ("KLR 1v1, sigmoid, wlw2, temperature", "PWC_KLR"),
    ("PSVM 1va, kl, temperature", "WTA_PSVM"),
    ("KLR 1va, sigmoid, kl, temperature", "WTA_KLR"),
)


def reading(table: Table) -> list[str]:
    """Return the sentences that the results support."""
    sentences = [
        _agreement(table, "error"),
        _agreement(table, "log-loss"),
        _misprints(),
        _same_side(table),
        _optimism(table),
        _chosen(table),
        _softmax_C(table),
        *(_against(table, *pair) for pair in OURS_AGAINST),
        _best(table, "error"),
        _best(table, "log-loss"),
    ]
    return [sentence for sentence in sentences if sentence]


def _agreement(table: Table, metric: str) -> str:
    """Say how far our means are from the published ones."""
    distances = distances_from_published(table, PAPER, metric)
    if not distances:
        return ""
    near = sum(abs(d) < NEAR for d in distances.values())
    data, method = max(distances, key=lambda cell: abs(distances[cell]))
    mean = np.mean(list(distances.values()))
    return (
        f"{near} of {len(distances)} means of the {metric} are within {NEAR:.0f} standard errors "
        f"of the published ones. The farthest is {method} on {data}, "
        f"{distances[data, method]:+.1f} away. The mean distance is {mean:+.2f}."
    )


def _misprints() -> str:
    """Say how many published p-values contradict means and deviations; the errata list them."""
    wrong = duan_contradictions()
    total = sum(map(len, published_p_values().values()))
    cells = ", ".join(f"{first[1]} against {second[1]} on {first[0]}" for first, second, _ in wrong)
    return (
        f"{len(wrong)} of {total} published p-values are impossible with the published means and "
        f"deviations: {cells}."
    )


def _is_clear(p: float) -> bool:
    return p < CLEAR or p > 1.0 - CLEAR


def _same_side(table: Table) -> str:
    """Say how many of the paper's clear differences are found here, and how clearly."""
    same = clearly = total = 0
    for (first, second, metric), by_data in published_p_values().items():
        for data in table.comparable(at_least=2):
            theirs = by_data[data]
            ours = p_value(table.values(data, first, metric), table.values(data, second, metric))
            if _is_clear(theirs):
                agrees = (ours - 0.5) * (theirs - 0.5) > 0
                total, same = total + 1, same + agrees
                clearly += agrees and _is_clear(ours)
    if not total:
        return ""
    return (
        f"{total} published p-values on these data sets are below {CLEAR} or above "
        f"{1 - CLEAR:.1f}. Of our values for them, {same} are on the same side of one half, and "
        f"{clearly} are also below {CLEAR} or above {1 - CLEAR:.1f}."
    )


def _optimism(table: Table) -> str:
    """Say how far the best of 130 cross-validated errors is below the test error."""
    test = np.array([table.values(d, m).mean() for d in table.data() for m in PAPER])
    if not test.all():
        return ""
    found = [table.values(d, m, "cv-error").mean() for d in table.data() for m in PAPER]
    return (
        "C and σ² are chosen by their cross-validated error. That error is on average "
        f"{np.mean(np.array(found) / test):.2f} of the test error: it is the lowest of many, from "
        "fewer training samples."
    )


def _chosen(table: Table) -> str:
    """Say which C and σ² are chosen."""
    parts = []
    for data in table.data():
        found = np.array(
            [
                [np.median(table.values(data, m, f"log10 {x}")) for x in ("C", "sigma2")]
                for m in PAPER
            ]
        )
        low, high = found.min(axis=0), found.max(axis=0)
        parts.append(f"{data} {_range(low[0], high[0])} for C and {_range(low[1], high[1])} for σ²")
    return (
        "Chosen values: medians over partitions, from the method with the smallest to the method "
        f"with the largest. {'; '.join(parts)}."
    )


def _softmax_C(table: Table) -> str:
    """Say how strongly SMC is regularised, by its rule of section 3.2."""
    methods = [name for name, r in PAPER.items() if r.method.combiner == "softmax"]
    found = {
        name: np.concatenate([table.values(d, name, SOFTMAX_C) for d in table.data()])
        for name in methods
    }
    listed = ", ".join(
        f"{name} 2^{np.median(C):.0f} (from 2^{C.min():.0f} to 2^{C.max():.0f})"
        for name, C in found.items()
    )
    return (
        f"The median C that the rule of section 3.2 chooses for the soft-max function: {listed}. "
        "The rule compares errors first. Where only a strong penalty has the lowest error, the "
        "probabilities are flat, even if a weaker penalty has a much lower log-loss."
    )


def _range(low: float, high: float) -> str:
    return f"{10**low:.2g} to {10**high:.2g}"


def _against(table: Table, first: str, second: str) -> str:
    """Compare a method of ours with the paper's that it builds on."""
    data = [d for d in table.data() if table.has(d, first, "log-loss")]
    if not data or not table.partitions(*data):
        return ""
    gaps = [
        t_interval(table.relative_differences(data, [first], second, metric))
        for metric in ("error", "log-loss")
    ]
    return (
        f"{first}, compared with {second}: the error differs by {gaps[0]} percent, the log-loss by "
        f"{gaps[1]} percent (mean over the data sets, 95% interval over partitions)."
    )


def _best(table: Table, metric: str) -> str:
    """Say which method has the lowest mean on each data set."""
    methods = [
        m for m in (*RECIPES, DEFAULT) if all(table.has(data, m, metric) for data in table.data())
    ]
    winners = {
        data: min(methods, key=lambda m: table.values(data, m, metric).mean())
        for data in table.data()
    }
    ours = Counter(name in PAPER for name in winners.values())[False]
    listed = "; ".join(f"{data}: {name}" for data, name in winners.items())
    return (
        f"The methods with the lowest mean {metric} ({ours} of {len(winners)} are not in the "
        f"paper). {listed}."
    )
