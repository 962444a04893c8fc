"""The commands of ``python -m experiments``: list, run and judge."""

from __future__ import annotations

import argparse
from pathlib import Path

import experiments
from experiments import ledger
from experiments.findings.page import write_findings
from experiments.pages import write_page
from experiments.runner import SCALES, run

TRACKED = Path(__file__).parent
"""Folder of the tracked results, which have the size of the papers' experiments."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    whole = argparse.ArgumentParser(
        prog="python -m experiments", description="Run the experiments of the papers again."
    )
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    names = commands.add_parser("list", help="list the experiments")
    names.set_defaults(action=list_experiments)
    one = commands.add_parser("run", help="run an experiment and write its page")
    one.add_argument("name", help="an experiment, a paper, or all")
    one.add_argument(
        "--scale",
        type=lambda name: "paper" if name == "full" else name,
        choices=SCALES,
        default="quick",
        help="quick, or paper (also called full)",
    )
    one.add_argument(
        "--output",
        type=Path,
        help="folder (default: this folder for --scale paper, ./reproduced for quick)",
    )
    one.add_argument("--jobs", type=int, default=1, help="number of processes")
    one.set_defaults(action=run_experiments)
    verdicts = commands.add_parser("judge", help="decide all claims from the stored results")
    verdicts.add_argument(
        "--tests", action="store_true", help="first run the tests that show the other entries"
    )
    verdicts.set_defaults(action=judge)
    return whole


def list_experiments(arguments: argparse.Namespace) -> int:
    """Print the names and titles of all experiments."""
    for name, experiment in experiments.all_experiments().items():
        print(f"{name:25} {experiment.title}")
    return 0


def run_experiments(arguments: argparse.Namespace) -> int:
    """Run experiments and write their pages. An interrupted run continues where it stopped."""
    output = arguments.output
    if output is None:
        output = TRACKED if arguments.scale == "paper" else Path("reproduced")
    found = experiments.find(arguments.name)
    for experiment in found:
        run(experiment, arguments.scale, output / experiment.paper, arguments.jobs)
    for paper in dict.fromkeys(experiment.paper for experiment in found):
        title, all_of_it = experiments.of_paper(paper)
        print(write_page(paper, title, all_of_it, arguments.scale, output / paper))
    return 0


def judge(arguments: argparse.Namespace) -> int:
    """Write the verdicts into the ledgers, then all pages and figures from the stored results."""
    failing = sorted(ledger.not_passing()) if arguments.tests else []
    if failing:
        print("These tests do not pass, so nothing is written:", *failing, sep="\n")
        return 1
    ledger.judge_all()
    for paper in ledger.PAPERS:
        title, all_of_it = experiments.of_paper(paper)
        print(write_page(paper, title, all_of_it, "paper", TRACKED / paper))
    print(write_findings())
    return 0
