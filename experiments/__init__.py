"""The experiments of the five papers, and a comparison of all rules.

Each paper has a package that describes its experiments. :mod:`~experiments.runner`
runs them and stores their measurements.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from experiments.runner import Experiment

PAPERS = ("hastie1998", "zadrozny2001", "wu2003", "duan2003", "liu2005", "summary")


def all_experiments() -> dict[str, Experiment]:
    """Return the experiments of all papers by name, in the order of the papers."""
    return {experiment.name: experiment for paper in PAPERS for experiment in of_paper(paper)[1]}


def of_paper(paper: str) -> tuple[str, list[Experiment]]:
    """Return the title of a paper's page, and its experiments."""
    module = import_module(f"experiments.{paper}")
    return module.TITLE, list(module.EXPERIMENTS)


def find(name: str) -> list[Experiment]:
    """Return the experiment of that name; those of a paper; or all of them, for "all"."""
    known = all_experiments()
    found = [e for e in known.values() if name in ("all", e.name, e.paper)]
    if not found:
        raise ValueError(f"no experiment {name!r}: choose from all, {', '.join(known)}.")
    return found
