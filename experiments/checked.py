"""The published numbers of the five papers, checked by machine. The findings feed the errata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from experiments.pages import published
from experiments.possible import (
    Kind,
    Printed,
    counts,
    deviation_fits,
    means_that_fit,
    needed_correlation,
    p_value_fits,
    squared_error_bounds,
)

TEST_ROWS = {"satimage": 2000, "pendigits": 3498, "soybean": 376}  # Zadrozny, Table 1
CLASSES = {"satimage": 6, "pendigits": 10, "soybean": 19}  # of the data, not of the paper's Table 1
LIU_ROWS = {"segment": 2100, "letter": 4000, "iris (leave-one-out)": 150}
TOGETHER = 0.99  # a correlation of the errors of two methods that no other comparison comes near
RUNS = 20  # partitions of Duan et al.
WU_ROWS, WU_REPEATS = 500, 5


class Finding(NamedTuple):
    """A published number that is impossible, or contradicts another."""

    key: str
    """Paper and cell; the errata refer to it."""
    printed: str
    reason: str


def findings() -> list[Finding]:
    """Return everything that the checks find in the published tables."""
    return [
        *_zadrozny_counts(),
        *_zadrozny_squares(),
        *_wu(),
        *_duan(),
        *_duan_implausible(),
        *_liu(),
    ]


def _zadrozny_counts() -> Iterator[Finding]:
    for row in published("zadrozny2001_tables2_3"):
        rate, n = float(row["error_rate"]), TEST_ROWS[row["dataset"]]
        if not counts(rate, n, 4)[0]:
            whole = rate * n
            yield Finding(
                f"zadrozny2001 {row['dataset']} {row['code']} {row['method']} error",
                row["error_rate"],
                f"no whole number of {n} test rows: {rate:g} × {n} = {whole:.2f}",
            )


def _zadrozny_squares() -> Iterator[Finding]:
    """Yield MSEs that are impossible as printed, and those impossible divided by k as well."""
    rows = [row for row in published("zadrozny2001_tables2_3") if row["mse"]]
    too_small = [
        row
        for row in rows
        if float(row["mse"]) < squared_error_bounds(float(row["error_rate"]), 2)[0]
    ]
    if too_small:
        yield Finding(
            "zadrozny2001 mse formula",
            "SE(x) = sum_j (t_j - p_j)^2",
            f"{len(too_small)} of {len(rows)} printed MSEs are below half the printed error, the "
            "least that the formula allows; divided by the number of classes they are possible",
        )
    for row in rows:
        k, mse = CLASSES[row["dataset"]], float(row["mse"])
        most = squared_error_bounds(float(row["error_rate"]), k)[1]
        if mse * k > most:
            yield Finding(
                f"zadrozny2001 {row['dataset']} {row['code']} {row['method']} mse",
                row["mse"],
                f"above {most / k:.4f}, the most that a mean divided by {k} classes can be with an "
                f"error of {row['error_rate']}",
            )


def wu_kinds() -> dict[Kind, int]:
    """Return how many of Wu's deviations fit either kind."""
    kinds: tuple[Kind, ...] = ("population", "sample")
    return {
        kind: sum(
            deviation_fits(mean / 100, std / 100, WU_ROWS, WU_REPEATS, 5, kind)
            for _, mean, std in _wu_cells()
        )
        for kind in kinds
    }


def _wu_cells() -> Iterator[tuple[str, float, float]]:
    for row in published("wu2003_table1"):
        for rule in ("ht", "delta1", "delta2", "vote"):
            cell = f"{row['dataset']} {row['pair']} {rule}"
            yield cell, float(row[f"{rule}_mean"]), float(row[f"{rule}_std"])


def _wu() -> Iterator[Finding]:
    for cell, mean, std in _wu_cells():
        if not deviation_fits(mean / 100, std / 100, WU_ROWS, WU_REPEATS, 5, "population"):
            reason = "no counts of 500 test samples in five repeats have this mean and deviation"
            yield Finding(f"wu2003 {cell}", f"{mean} ± {std}", reason)


DuanCell = tuple[str, str, str]
"""Data set, method and metric."""


def duan_values() -> dict[DuanCell, Printed]:
    """Return the published means and deviations, errors in percent."""
    found = {}
    for row in published("duan2003_tables2_4"):
        percent = row["metric"] == "error_percent"
        # Table 3 prints the deviations of SMC1v1 as fractions.
        scale = 100.0 if percent and row["method"] == "SMC1v1" else 1.0
        value = Printed(float(row["mean"]), scale * float(row["std"]), 0.01 if percent else 1e-4)
        found[row["dataset"], row["method"], "error" if percent else "nll"] = value
    return found


def duan_contradictions() -> list[tuple[DuanCell, DuanCell, float]]:
    """Return the comparisons whose p-value contradicts the means and deviations."""
    values, found = duan_values(), []
    for row in published("duan2003_p_values"):
        first, second = _cells(row)
        if not p_value_fits(values[first], values[second], float(row["p"]), RUNS):
            found.append((first, second, float(row["p"])))
    return found


def means_for(cell: DuanCell) -> list[float]:
    """Return the means near the printed one that fit all p-values of a cell."""
    values, others = duan_values(), []
    for row in published("duan2003_p_values"):
        first, second = _cells(row)
        if cell in (first, second):
            other = second if cell == first else first
            others.append((values[other], float(row["p"]), cell == first))
    return means_that_fit(values[cell], others, RUNS)


def _duan() -> Iterator[Finding]:
    """Yield cells that all of their p-values contradict, then the other contradictions."""
    wrong = duan_contradictions()
    times: dict[DuanCell, int] = defaultdict(int)
    for first, second, _ in wrong:
        times[first] += 1
        times[second] += 1
    doubtful = {c for c, n in times.items() if n > 1 and n == _comparisons(c)}
    for cell in sorted(doubtful):
        data, method, metric = cell
        fitting = means_for(cell)
        span = f"{fitting[0]:g} to {fitting[-1]:g}" if fitting else "none"
        yield Finding(
            f"duan2003 {data} {method} {metric}",
            f"{duan_values()[cell].mean:g}",
            f"contradicts all {times[cell]} of its p-values; means that fit all: {span}",
        )
    for first, second, p in wrong:
        if not doubtful & {first, second}:
            data, method, metric = first
            a, b = duan_values()[first], duan_values()[second]
            yield Finding(
                f"duan2003 {data} {method} {second[1]} {metric} p",
                f"{p:g}",
                f"impossible with {a.mean:g} ± {a.deviation:g} against {b.mean:g} ± "
                f"{b.deviation:g} over {RUNS} partitions",
            )


def _duan_implausible() -> Iterator[Finding]:
    values, impossible = duan_values(), duan_contradictions()
    for row in published("duan2003_p_values"):
        first, second = _cells(row)
        p = float(row["p"])
        needed = needed_correlation(values[first], values[second], p, RUNS)
        if needed > TOGETHER and (first, second, p) not in impossible:
            data, method, metric = first
            yield Finding(
                f"duan2003 {data} {method} {second[1]} {metric} p",
                row["p"],
                f"possible only if the errors of the two methods have a correlation of "
                f"{needed:.4f} over the partitions",
            )


def _cells(row: dict[str, str]) -> tuple[DuanCell, DuanCell]:
    first, second = ((row["dataset"], row[side], row["metric"]) for side in ("first", "second"))
    return first, second


def _comparisons(cell: DuanCell) -> int:
    return sum(cell in _cells(row) for row in published("duan2003_p_values"))


def _liu() -> Iterator[Finding]:
    for row in published("liu2005_table1"):
        n = LIU_ROWS[row["dataset"]]
        found = {}
        for rule in ("fx", "srm", "drm"):
            digits = len(row[rule].partition(".")[2].rstrip("0")) or 1
            rounded, cut = counts(float(row[rule]) / 100, n, digits + 2)
            found[rule] = rounded or cut
            if not rounded:
                yield Finding(
                    f"liu2005 {row['dataset']} {row['kernel']} {rule}",
                    f"{row[rule]} %",
                    f"no whole number of {n} rounds to it"
                    + (f"; {cut[0]} errors do if truncated" if cut else ""),
                )
        if found["fx"] == found["srm"] and len(found["fx"]) == 1:
            yield Finding(
                f"liu2005 {row['dataset']} {row['kernel']} same count",
                f"{row['fx']} % and {row['srm']} %",
                f"both are {found['fx'][0]} errors of {n}: once rounded, once truncated",
            )
