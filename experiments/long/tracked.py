"""The tracked results of the experiments, and the list of claims that hold by them.

After an experiment was run again, ``python -m experiments.long.tracked`` updates the list.
Its difference shows which claims were added or removed.
"""

from __future__ import annotations

import json
from pathlib import Path

from experiments import PAPERS, of_paper
from experiments.results import Measurement, Results
from experiments.runner import Claim, Experiment

FOLDER = Path(__file__).parents[1]
LIST = Path(__file__).parent / "holding.json"


def tracked_papers() -> list[str]:
    """Return the papers whose results at the scale of the paper are tracked."""
    return [paper for paper in PAPERS if _scale(FOLDER / paper) == "paper"]


def _scale(folder: Path) -> str | None:
    config = folder / "config.json"
    complete = config.exists() and (folder / "README.md").exists()
    return json.loads(config.read_text("utf-8"))["scale"] if complete else None


def rows_of(experiment: Experiment) -> list[Measurement]:
    """Return the tracked results of an experiment."""
    results = Results(FOLDER / experiment.paper / "results.csv")
    return [row for row in results if row.experiment == experiment.name]


def tracked_claims() -> list[tuple[Experiment, Claim]]:
    """Return all claims of experiments with tracked results."""
    return [
        (experiment, claim)
        for paper in tracked_papers()
        for experiment in of_paper(paper)[1]
        for claim in experiment.claims
        if rows_of(experiment)
    ]


def holding() -> dict[str, list[str]]:
    """Return the texts of the claims that hold, by experiment."""
    found: dict[str, list[str]] = {}
    for experiment, claim in tracked_claims():
        if claim.decide(rows_of(experiment)).holds:
            found.setdefault(experiment.name, []).append(claim.text)
    return found


if __name__ == "__main__":
    LIST.write_text(json.dumps(holding(), indent=2, ensure_ascii=False) + "\n", "utf-8")
