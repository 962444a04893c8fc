"""The page of Duan et al. (2003): Tables 2 to 4 and p-values next to the published ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from experiments import pages
from experiments.duan2003.methods import ALL_METHODS, DEFAULT, PAPER, TUNED, WITH_PROBABILITIES
from experiments.duan2003.partitions import SOURCES, Floats
from experiments.duan2003.reading import reading
from experiments.duan2003.results import (
    AS_FRACTION,
    PARTITIONS,
    Published,
    Table,
    p_value,
    published_p_values,
    published_values,
)
from experiments.duan2003.tables import FURTHER, PAIRS, SCALES
from experiments.results import Measurement

UNKNOWN = "–"
ONE_VS_REST = tuple(name for name, r in PAPER.items() if r.method.code == "one-vs-rest")
ONE_VS_ONE = tuple(name for name, r in PAPER.items() if r.method.code == "one-vs-one")
TABLE_4 = tuple(name for name, r in PAPER.items() if r.gives_probabilities)


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the tables, a figure and comments, from the results."""
    table = Table(rows)
    if not table.data():
        return "No partition is finished: this needs the tasks of all four families of machines."
    parts = [
        _what_was_run(table),
        "We search C and σ² as the paper does: a coarse grid, a fine grid around its best point, "
        "and rules (a) to (f). The paper does not say how it evaluates methods that learn from "
        "scores at a point of the grid. We score every sample with machines that were fitted "
        "without its fold, also for pairs that do not contain its class. Sigmoids and soft-max "
        "functions are fitted on the scores of four folds and evaluated on the fifth. SMC is "
        "evaluated with the C of its own that it chooses, by the same cross-validation. The final "
        "models learn from the scores of section 3.1.",
        "Each cell holds the mean ± standard deviation over our partitions. In parentheses follow "
        "the published values, and the difference in units of its standard error (from the "
        f"published deviation, for {PARTITIONS} and for our number of partitions). Table 3 prints "
        f"the deviations of {AS_FRACTION} as fractions, and we read them so.",
        "**Table 2**, test error in percent, one-versus-all",
        _comparison(table, ONE_VS_REST, "error"),
        "**Table 3**, test error in percent, one-versus-one",
        _comparison(table, ONE_VS_ONE, "error"),
        "**Table 4**, test log-loss (NLL)",
        _comparison(table, TABLE_4, "log-loss"),
        _figure(table, folder),
        "Bars are standard deviations over partitions.",
        "**P-values** of section 5, from a one-sided paired t-test: small where the first method "
        "is better than the second. The published values are in parentheses.",
        _p_values(table),
        "**All methods**, mean over partitions. The methods below the paper's twelve are ours. "
        "They combine the machines of WTA_PSVM, WTA_KLR, PWC_PSVM and PWC_KLR in other ways, with "
        f"the same C and σ². {TUNED} has the C and σ² of the lowest cross-validated log-loss on "
        f'the same grids. {DEFAULT} has its default parameters, C = 1 and gamma="scale". For '
        "one-vs-one, PWC is `ht`, which equals `kl`, and `wlw2` equals `least-squares` with equal "
        "weights.",
        *(_all_methods(table, metric) for metric in ("error", "log-loss", "brier")),
        "\n".join(f"- {sentence}" for sentence in reading(table)),
    ]
    return "\n\n".join(parts)


def _what_was_run(table: Table) -> str:
    counts = ", ".join(
        f"{name} {len(table.partitions(name))} × {table.size(name)}" for name in table.data()
    )
    smaller = [name for name in table.data() if name not in table.comparable()]
    text = f"Partitions × training samples: {counts}. The paper has {PARTITIONS} other partitions"
    if smaller:
        sizes = ", ".join(f"{name} {SOURCES[name].n_train}" for name in smaller)
        return f"{text}, and more training samples ({sizes}), so the numbers are not comparable."
    further = len(table.partitions(*table.data(), methods=PAIRS)) - len(
        table.partitions(*table.data())
    )
    if not further:
        return f"{text} of the same sizes."
    planned = SCALES["paper"][FURTHER]
    until = f" They decide when all {planned} that are planned are there."
    return (
        f"{text} of the same sizes. MWV and PWC were run on {further} further ones, for the claims."
        f"{until if further < planned else ''}"
    )


# ---------------------------------------------------------------------- compared to the paper


def _comparison(table: Table, methods: Sequence[str], metric: str) -> str:
    lines, published = _header(["", *table.data()]), published_values()
    for method in methods:
        cells = (
            _cell(table.values(data, method, metric), published[data, method, metric], metric)
            for data in table.data()
        )
        lines.append(_line([method, *cells]))
    return "\n".join(lines)


def _cell(ours: Floats, theirs: Published, metric: str) -> str:
    distance = (ours.mean() - theirs.mean) / theirs.standard_error(len(ours))
    unit, digits = (100.0, 2) if metric == "error" else (1.0, 4)
    published = f"{unit * theirs.mean:.{digits}f} ± {unit * theirs.deviation:.{digits}f}"
    return f"{_spread(ours, unit, digits)} ({published}; {distance:+.1f})"


def _figure(table: Table, folder: Path) -> str:
    n = len(table.data())
    return pages.save_figure(
        folder / "duan2003-tables.png",
        lambda axes: _draw(table, np.reshape(axes, (2, n))),
        nrows=2,
        ncols=n,
        figsize=(1.5 + 2.7 * n, 7.6),
    )


def _draw(table: Table, axes) -> None:
    for row, (metric, methods, unit, label) in enumerate(
        (("error", tuple(PAPER), 100.0, "test error, percent"), ("log-loss", TABLE_4, 1.0, "NLL"))
    ):
        for data, panel in zip(table.data(), axes[row], strict=True):
            _draw_panel(table, data, metric, methods, unit, panel)
            if row == 0:
                panel.set_title(f"{data}, {table.size(data)} training samples", fontsize=10)
        axes[row, 0].set_ylabel(label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    axes[0, 0].figure.legend(handles, labels, loc="outside lower center", ncols=2)


def _draw_panel(
    table: Table, data: str, metric: str, methods: Sequence[str], unit: float, panel
) -> None:
    at, published = np.arange(len(methods)), published_values()
    theirs = [published[data, method, metric] for method in methods]
    ours = [table.values(data, method, metric) for method in methods]
    for shift, marker, label, means, deviations in (
        (-0.15, "s", "published", [p.mean for p in theirs], [p.deviation for p in theirs]),
        (0.15, "o", "ours", [o.mean() for o in ours], [_deviation(o) for o in ours]),
    ):
        panel.errorbar(
            at + shift,
            unit * np.array(means),
            unit * np.array(deviations),
            fmt=marker,
            markersize=4,
            capsize=2,
            linewidth=1,
            label=label,
        )
    panel.set_xticks(at, methods, rotation=90, fontsize=8)
    panel.grid(axis="y", alpha=0.3)


def _p_values(table: Table) -> str:
    lines = _header(["first", "second", "of", *table.data()], n_left=3)
    for (first, second, metric), theirs in published_p_values().items():
        cells = [first, second, metric]
        for data in table.data():
            ours = p_value(table.values(data, first, metric), table.values(data, second, metric))
            cells.append(f"{_probability(ours)} ({_probability(theirs[data])})")
        lines.append(_line(cells))
    return "\n".join(lines)


def _probability(p: float) -> str:
    if np.isnan(p):
        return UNKNOWN
    return f"{p:.4f}" if p >= 5e-5 or p == 0 else f"{p:.0e}"


# ---------------------------------------------------------------------- all methods


def _all_methods(table: Table, metric: str) -> str:
    percent = metric == "error"
    lines = _header(["error, percent" if percent else metric, *table.data()])
    for method in ALL_METHODS if percent else WITH_PROBABILITIES:
        means = (_mean(table, data, method, metric) for data in table.data())
        digits = "{:.2f}" if percent else "{:.4f}"
        cells = (
            UNKNOWN if np.isnan(m) else digits.format(100 * m if percent else m) for m in means
        )
        lines.append(_line([method, *cells]))
    return "\n".join(lines)


def _mean(table: Table, data: str, method: str, metric: str) -> float:
    if not table.has(data, method, metric):
        return float("nan")
    return float(table.values(data, method, metric).mean())


# ---------------------------------------------------------------------- Markdown


def _deviation(values: Floats) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def _spread(values: Floats, unit: float, digits: int) -> str:
    deviation = f" ± {unit * _deviation(values):.{digits}f}" if len(values) > 1 else ""
    return f"{unit * values.mean():.{digits}f}{deviation}"


def _header(cells: Sequence[str], n_left: int = 1) -> list[str]:
    rules = ["---"] * n_left + ["---:"] * (len(cells) - n_left)
    return [_line(cells), _line(rules)]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
