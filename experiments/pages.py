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
    parts = [f"# {title}", f"Made by `python -m experiments run {paper} --scale {scale}`."]
    note = folder / "note.md"
    if note.exists():
        parts.append(note.read_text("utf-8").strip())
    for experiment in experiments:
        rows = [row for row in everything if row.experiment == experiment.name]
        if rows:
            parts += [f"## {experiment.title}", experiment.section(rows, folder)]
            parts += _verdicts(experiment, rows)
    page = folder / "README.md"
    replace_file(page, "\n\n".join(parts) + "\n")
    return page


def _verdicts(experiment: Experiment, rows: list[Measurement]) -> list[str]:
    if not experiment.claims:
        return []
    lines = ["### Claims"]
    for claim in experiment.claims:
        lines.append(f"- {claim.text}")
        lines += [f"  Criterion: {claim.criterion}", f"  Here it {claim.decide(rows)}"]
    return lines


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table. The columns after the first are aligned to the right.

    Examples
    --------
    >>> from experiments.pages import markdown_table
    >>> print(markdown_table(["model", "loss"], [["a", "0.5"]]))
    | model | loss |
    | --- | ---: |
    | a | 0.5 |
    """
    rule = ["---"] + ["---:"] * (len(header) - 1)
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
