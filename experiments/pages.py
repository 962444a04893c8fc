"""The page of a paper: our numbers next to the published ones, verdicts and figures."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments import ledger
from experiments.results import SECONDS, Measurement, Results
from experiments.runner import Experiment
from manyclass._lib.files import replace_file


class Summary(NamedTuple):
    """The values of one method and metric over the splits of a data set."""

    values: np.ndarray

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """Standard deviation of the values; NaN for a single value."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else float("nan")


def summarise(rows: Iterable[Measurement]) -> dict[tuple[str, str, str], Summary]:
    """Return the summary of every (data, method, metric), with splits in the order of the rows."""
    values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.metric != SECONDS:
            values[row.data, row.method, row.metric].append(row.value)
    return {key: Summary(np.array(found)) for key, found in values.items()}


def paired(
    rows: Iterable[Measurement], data: str, metric: str, methods: tuple[str, str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two methods on the splits that both have, in the same order."""
    found: dict[str, dict[str, float]] = {method: {} for method in methods}
    for row in rows:
        if row.data == data and row.metric == metric and row.method in found:
            found[row.method][row.split] = row.value
    first, second = (found[method] for method in methods)
    common = [split for split in first if split in second]
    return np.array([first[s] for s in common]), np.array([second[s] for s in common])


def published(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of published numbers, such as "wu2003_table1"."""
    text = (files("experiments") / "published" / f"{name}.csv").read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def write_page(
    paper: str, title: str, experiments: list[Experiment], scale: str, folder: Path
) -> Path:
    """Write ``config.json``, ``README.md`` and the figures of a paper from its results.

    ``note.md`` in the folder, if there is one, says how its results differ from those of a new run.
    """
    everything = list(Results(folder / "results.csv"))
    config = {e.name: e.config(scale) for e in experiments}
    replace_file(
        folder / "config.json", json.dumps({"scale": scale, "experiments": config}, indent=2) + "\n"
    )
    parts = [f"# {title}", *fronts(paper, everything, scale)]
    parts.append(f"Made by `python -m experiments run {paper} --scale {scale}`.")
    note = folder / "note.md"
    if note.exists():
        parts.append(note.read_text("utf-8").strip())
    for experiment in experiments:
        rows = [row for row in everything if row.experiment == experiment.name]
        if rows:
            parts += [f"## {experiment.title}", experiment.section(rows, folder)]
            parts += _verdicts(experiment, rows)
    parts += backs(paper, everything, scale)
    page = folder / "README.md"
    replace_file(page, "\n\n".join(parts) + "\n")
    return page


def fronts(paper: str, rows: list[Measurement], scale: str) -> list[str]:
    """Return what a paper's page begins with: version, abstract and scoreboard."""
    if paper not in ledger.PAPERS or scale != "paper":
        return []
    judged = ledger.judge(ledger.read_ledger(paper), rows)
    abstract = (ledger.FOLDER / paper / "abstract.md").read_text("utf-8").strip()
    return [abstract, scoreboard([judged])]


def scoreboard(ledgers: Sequence[ledger.Ledger]) -> str:
    """Return how many entries of each kind hold, do not hold, or cannot be told."""
    table = []
    for book in ledgers:
        for kind in ledger.KINDS:
            verdicts = [entry.verdict for entry in book.entries if entry.kind == kind]
            counts = [str(verdicts.count(word)) for word in ledger.VERDICTS]
            if verdicts:
                table.append([f"{book.paper}, {kind}s", *counts])
        total = [str(book.score()[word]) for word in ledger.VERDICTS]
        table.append([f"**{book.paper}**", *(f"**{count}**" for count in total)])
    return markdown_table(["", *ledger.VERDICTS], table)


def backs(paper: str, rows: list[Measurement], scale: str) -> list[str]:
    """Return what a paper's page ends with: the whole ledger, and the errata."""
    if paper not in ledger.PAPERS or scale != "paper":
        return []
    judged = ledger.judge(ledger.read_ledger(paper), rows)
    table = [
        [e.id, e.kind, _cell(e.place), f"“{_cell(e.quote)}”", e.verdict, _cell(e.shown)]
        for e in judged.entries
    ]
    header = ["", "kind", "place", "the paper", "verdict", "shown by"]
    return [
        "## The ledger",
        "Every method, formula, algorithm, table, figure and claim of the paper. `ledger.toml` has "
        "the criteria, the dates on which they were written and changed, and the evidence. Quotes "
        "are short, with formulas in plain letters; words in square brackets are ours.",
        markdown_table(header, table, of_words=True),
        "## Errata",
        errata_table([judged]),
    ]


def errata_table(ledgers: Sequence[ledger.Ledger]) -> str:
    """Return the errata of some papers."""
    table = [
        [book.paper, *(_cell(text) for text in (e.place, e.printed, e.reads, e.shown))]
        for book in ledgers
        for e in book.errata
    ]
    return markdown_table(["paper", "place", "printed", "reads", "shown by"], table, of_words=True)


def _cell(text: str) -> str:
    """Escape what Markdown would read as the end of a cell or as emphasis."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")


def _verdicts(experiment: Experiment, rows: list[Measurement]) -> list[str]:
    if not experiment.claims:
        return []
    lines = ["### Claims"]
    for claim in experiment.claims:
        lines.append(f"- {claim.text}")
        lines += [f"  Criterion: {claim.criterion}", f"  Here it {claim.decide(rows)}"]
        lines.append(f"  Published: {claim.published()}")
    return lines


def markdown_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, of_words: bool = False
) -> str:
    """Write a Markdown table. The columns after the first are aligned to the right.

    In a table of words all columns are aligned to the left.

    Examples
    --------
    >>> from experiments.pages import markdown_table
    >>> print(markdown_table(["model", "loss"], [["a", "0.5"]]))
    | model | loss |
    | --- | ---: |
    | a | 0.5 |
    """
    rule = ["---"] + ["---" if of_words else "---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])


def save_figure(path: Path, draw: Callable[..., None], **options) -> str:
    """Draw on new axes, save the figure, and return the Markdown that shows it."""
    try:
        import matplotlib
    except ImportError:
        return "(Figures need matplotlib: `pip install 'manyclass[app]'`.)"
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(layout="constrained", **options)
    draw(axes)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return f"![{path.stem}]({path.name})"
