"""The page: tables, critical-difference diagrams, and what to pick."""

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
    ("one-vs-one", "log-loss"): "Log-loss of the one-vs-one rules, each with its temperature:",
    ("one-vs-one", "error"): "Error of the one-vs-one rules and decoders:",
    ("all", "log-loss"): "Log-loss of the rules of all codes, with a temperature or trained:",
    ("all", "error"): "Error of the rules and decoders of all codes:",
}


def section(rows: list[Measurement], folder: Path) -> str:
    """Return tables, diagrams and the advice, from the results."""
    table = Table(rows)
    parts = [INTRODUCTION, _data(table), "### What to pick", advice(table)]
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
Every rule reads the scores of the same machines: those of one learner and one code are fitted
once for a split, and calibration, temperature and trained rules learn from the same out-of-sample
scores, so that the figures are those of `CoupledSVC` and `CoupledClassifier` with each rule. SVC
has C = 10 and gamma = "scale"; `config.json` has the rest. What scikit-learn offers with the same
learner is shown beside, and takes no part in the rankings. Data sets of two classes, where nothing
is coupled, are left out, and so are iris and wine, whose test parts would have less than a hundred
rows."""

RANKS = f"""\
Losses are averaged over the splits of a data set, then ranked on it, then ranks are averaged over
the data sets (Demšar 2006). A red bar joins methods whose mean ranks are not farther apart than
Nemenyi's critical difference at {LEVEL:.0%}: they are not told apart by so many data sets. p is
that of the Friedman test for no difference at all. A temperature leaves labels as they are, so it
has no part in ranks of errors."""

MEAN_RANKS = """\
Mean ranks of all rules, in log-loss and Brier score without and with a temperature among all of
them, in error among the rules and decoders:"""

MEANS = """\
Log-loss and Brier score are geometric means over the data sets, the error is the mean. T: with a
temperature; rules that are trained have theirs in their weights. Milliseconds of the processor:
for what a rule learns from out-of-sample scores (with its temperature), and for combining the
scores of the test rows; medians over the splits, means over the data sets."""

TIMES = """\
Seconds of the processor to fit the machines with their out-of-sample scores, and the peers;
medians over the splits, mean over the data sets:"""

LOSSES = """\
Of the rules with a temperature or trained, means over the splits; the least of the rules in bold,
peers below the line:"""


# -- ranks -----------------------------------------------------------------------------


def ranking(table: Table, learner: str, of: str, metric: str) -> Ranking:
    """Return the ranking of a figure."""
    methods = at_their_best(learner) if metric == "log-loss" else with_labels(learner)
    if of == PAIRS:
        methods = [method for method in methods if method.code == PAIRS]
    ranked = table.rank(methods, metric, full=of != PAIRS)
    return ranked._replace(names=[name.removesuffix(", temperature") for name in ranked.names])


def _titled(rankings: dict[str, Ranking]) -> dict[str, Ranking]:
    """Say in the titles of diagrams what they are of."""
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
