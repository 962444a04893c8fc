"""Run the experiments of the papers: ``python -m experiments list | run NAME``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import experiments
from experiments.pages import write_page
from experiments.runner import SCALES, run
from manyclass.app.signals import (
    Terminated,
    end_process,
    ending_in_order,
    exit_code,
    registered_files,
)

TRACKED = Path(__file__).parent
"""Folder of the tracked results, which have the size of the papers' experiments."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        with ending_in_order(), registered_files():
            return arguments.action(arguments)
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, OSError, ValueError) as error:
        print(f"experiments {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        word = "terminated" if isinstance(interrupt, Terminated) else "interrupted"
        print(f"{word}; finished tasks are kept", file=sys.stderr)
        return exit_code(interrupt)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Run the experiments of the papers again."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    names = commands.add_parser("list", help="list the experiments")
    names.set_defaults(action=list_experiments)
    one = commands.add_parser("run", help="run an experiment and write its page")
    one.add_argument("name", help="an experiment, a paper, or all")
    one.add_argument("--scale", choices=SCALES, default="quick")
    one.add_argument(
        "--output",
        type=Path,
        help="folder (default: this folder for --scale paper, ./reproduced for quick)",
    )
    one.add_argument("--jobs", type=int, default=1, help="number of processes")
    one.set_defaults(action=run_experiments)
    return parser


def list_experiments(arguments: argparse.Namespace) -> int:
    """Print the names and titles of all experiments."""
    for name, experiment in experiments.all_experiments().items():
        print(f"{name:24}{experiment.title}")
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


if __name__ == "__main__":
    end_process(main())
