"""The page: tables, critical-difference diagrams, and advice on what to pick."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.pages import markdown_table
from experiments.results import Measurement
from experiments.summary.advice import advice
from experiments.summary.figures import diagrams
from experiments.summary.methods import (
    CODES,
    LEARNERS,
    PEERS,
    SAME,
    Method,
    at_their_best,
    machines_name,
    with_labels,
    with_probabilities,
)
from experiments.summary.ranking import LEVEL, Ranking
from experiments.summary.reading import Table, geometric_mean
from experiments.summary.tasks import COMBINING, FITTING, LEARNING

PAIRS = "one-vs-one"
FIGURES = {
    ("one-vs-one", "log-loss"): "Log-loss of the one-vs-one rules, with a temperature or trained:",
    ("one-vs-one", "error"): "Error of the one-vs-one rules and decoders:",
    ("all", "log-loss"): "Log-loss of the rules of all codes, with a temperature or trained:",
    ("all", "error"): "Error of the rules and decoders of all codes:",
}


def section(rows: list[Measurement], folder: Path) -> str:
    """Return tables, diagrams and the advice, from the results."""
    table = Table(rows)
    parts = [INTRODUCTION, _coverage(), _data(table), "### What to pick", advice(table)]
    parts += ["### Ranks", RANKS]
    for (of, metric), caption in FIGURES.items():
        rankings = {title: ranking(table, key, of, metric) for key, title in LEARNERS.items()}
        picture = diagrams(folder / f"{of}-{metric}.png", _titled(rankings))
        parts += [caption, picture]
    parts += [MEAN_RANKS, *(_titled_table(key, _mean_ranks(table, key)) for key in LEARNERS)]
    parts += ["### Means", MEANS, *(_titled_table(key, _means(table, key)) for key in LEARNERS)]
    parts += [TIMES, _fitting(table)]
    parts += ["### Log-loss on every data set", LOSSES]
    parts += [_titled_table(key, _losses(table, key)) for key in LEARNERS]
    return "\n\n".join(parts)


INTRODUCTION = """\
All rules use the same fitted machines: one fit per split for each learner and code. Calibration,
temperature and trained rules learn from the same out-of-sample scores. So the numbers are those of
`CoupledSVC` and `CoupledClassifier` with each rule, and with a temperature or without a scaling.
SVC has C = 10 and gamma = "scale"; `config.json` has the other settings. Models of scikit-learn
with the same learner are also shown, but not ranked. Data sets with two classes are left out,
because nothing is coupled there. So are iris and wine, whose test sets would have fewer than a
hundred rows."""


def _coverage() -> str:
    """Say which rules are others with a code."""
    same = "; ".join(
        f"{code}: {', '.join(f'`{a}` is `{b}`' for a, b in rules.items())}"
        for code, rules in SAME.items()
    )
    return (
        "All rules of the library that are defined for one of the three codes are here. Some are "
        f"another rule with a code, but for the weights of the columns ({same}). Other codes are "
        "not measured."
    )


RANKS = f"""\
Losses are averaged over the splits of a data set and ranked there. Then the ranks are averaged
over the data sets (Demšar 2006). A red bar joins methods whose mean ranks differ by less than
Nemenyi's critical difference at {LEVEL:.0%}: this number of data sets cannot distinguish them. p is
the p-value of the Friedman test that no methods differ. A temperature does not change labels, so
the ranks of errors ignore it."""

MEAN_RANKS = """\
Mean ranks of all rules. For log-loss and Brier score, rules without and with a temperature are
ranked together. For the error, the rules and decoders are ranked:"""

MEANS = """\
Log-loss and Brier score are geometric means over the data sets, and the error is the mean. T means
with a temperature. Trained rules need none: their weights include it. "learning ms" is the
processor time to fit the rule and its temperature on out-of-sample scores. "combining ms" is the
time to combine the scores of the test rows. Both are medians over the splits and means over the
data sets."""

TIMES = """\
Processor time in seconds to fit the machines with their out-of-sample scores, and to fit the
models of scikit-learn (medians over the splits, means over the data sets):"""

LOSSES = """\
Log-loss of the rules with a temperature and of the trained rules, means over the splits. The
lowest of the rules is in bold. The models of scikit-learn are in the last rows:"""


# -- ranks -----------------------------------------------------------------------------


def ranking(table: Table, learner: str, of: str, metric: str) -> Ranking:
    """Return the ranking of a figure."""
    methods = at_their_best(learner) if metric == "log-loss" else with_labels(learner)
    if of == PAIRS:
        methods = [method for method in methods if method.code == PAIRS]
    ranked = table.rank(methods, metric, full=of != PAIRS)
    return ranked._replace(names=[name.removesuffix(", temperature") for name in ranked.names])


def _titled(rankings: dict[str, Ranking]) -> dict[str, Ranking]:
    """Add the numbers of methods and data sets, and p, to the titles of diagrams."""
    told = {
        title: f"{len(r.names)} methods, {r.n_data} data sets, p = {r.p_value:.2g}"
        for title, r in rankings.items()
    }
    return {f"{title}: {told[title]}": ranked for title, ranked in rankings.items()}


def _titled_table(learner: str, text: str) -> str:
    return f"**{LEARNERS[learner]}**\n\n{text}"


def _mean_ranks(table: Table, learner: str) -> str:
    ranks = {
        metric: table.rank(with_probabilities(learner), metric) for metric in ("log-loss", "brier")
    }
    errors = table.rank(with_labels(learner), "error")
    lines = []
    for method in with_labels(learner):
        hot = method._replace(tempered=True)
        cells = [
            f"{ranks[metric].rank_of(m.full_label):.2f}"
            if m.full_label in ranks[metric].names
            else ""
            for metric in ranks
            for m in (method, hot)
        ]
        lines.append([method.code, method.rule, *cells, f"{errors.rank_of(method.full_label):.2f}"])
    header = ["code", "rule", "log-loss", "log-loss, T", "Brier", "Brier, T", "error"]
    return markdown_table(header, lines)


# -- means -----------------------------------------------------------------------------


def _means(table: Table, learner: str) -> str:
    lines = [[method.code, method.rule, *_scores(table, method)] for method in with_labels(learner)]
    for peer in PEERS[learner]:
        if table.has(peer):
            loss, brier = (geometric_mean(table.losses(peer, m)) for m in ("log-loss", "brier"))
            error = 100 * table.losses(peer, "error").mean()
            lines.append(["", peer, f"{loss:.4f}", "", f"{brier:.4f}", "", f"{error:.2f}", "", ""])
    header = ["code", "rule", "log-loss", "T", "Brier", "T", "error %", "learning ms"]
    return markdown_table([*header, "combining ms"], lines)


def _scores(table: Table, method: Method) -> list[str]:
    hot = method._replace(tempered=True)
    cells = [
        f"{geometric_mean(table.losses(m.name, metric)):.4f}" if table.has(m.name, metric) else ""
        for metric in ("log-loss", "brier")
        for m in (method, hot)
    ]
    final = hot if table.has(hot.name) else method
    times = [1000 * table.medians(final.name, metric).mean() for metric in (LEARNING, COMBINING)]
    error = 100 * table.losses(method.name, "error").mean()
    return [*cells, f"{error:.2f}", *(f"{time:.2f}" for time in times)]


def _fitting(table: Table) -> str:
    lines = []
    for learner, title in LEARNERS.items():
        machines = {f"{title}, {code}": machines_name(learner, code) for code in CODES}
        peers = {peer: peer for peer in PEERS[learner]}
        lines += [
            [label, f"{table.medians(name, FITTING).mean():.2f}"]
            for label, name in (machines | peers).items()
            if table.has(name, FITTING)
        ]
    return markdown_table(["", "seconds"], lines)


# -- data sets -------------------------------------------------------------------------


def _data(table: Table) -> str:
    kinds = ("classes", "training rows", "test rows")
    lines = [
        [data, *(f"{table.mean(data, 'data', kind):.0f}" for kind in kinds)] for data in table.data
    ]
    return f"Splits of each data set: {table.n_splits()}.\n\n" + markdown_table(
        ["data", *kinds], lines
    )


def _losses(table: Table, learner: str) -> str:
    methods = at_their_best(learner)
    losses = np.array([table.losses(method.name, "log-loss") for method in methods])
    lines = [
        [method.code, method.rule, *_bold_least(row, losses.min(axis=0))]
        for method, row in zip(methods, losses, strict=True)
    ]
    for peer in PEERS[learner]:
        if table.has(peer, "log-loss"):
            lines.append(["", peer, *(f"{x:.4f}" for x in table.losses(peer, "log-loss"))])
    return markdown_table(["code", "rule", *table.data], lines)


def _bold_least(row: Sequence[float], least: Sequence[float]) -> list[str]:
    return [f"**{x:.4f}**" if x <= low else f"{x:.4f}" for x, low in zip(row, least, strict=True)]
