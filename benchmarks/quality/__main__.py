"""Measure the quality of class probabilities, and make the tables.

    python -m benchmarks.quality run --group svm --scale core
    python -m benchmarks.quality table
    python -m benchmarks.quality tidy
    python -m benchmarks.quality official

See ``benchmarks/quality/README.md`` for the protocol.
"""

from __future__ import annotations

import argparse

from benchmarks.__main__ import write_pages
from benchmarks.quality import results, tables
from benchmarks.quality.official import official
from benchmarks.quality.run import OURS, jobs_of, run

SCALES = ("core", "wide")


def main() -> None:
    arguments = _parser().parse_args()
    arguments.command(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run", help="compute what is missing")
    one.add_argument("--group", choices=results.GROUPS, required=True)
    one.add_argument("--scale", choices=SCALES, required=True)
    _add_options(one)
    one.set_defaults(command=_run)
    table = commands.add_parser(
        "table", help="print and store the tables, and write them into the pages"
    )
    table.add_argument("--labels", nargs="*", help="names of ours to show (default: all)")
    table.set_defaults(command=_table)
    commands.add_parser("tidy", help="sort the files").set_defaults(command=_tidy)
    last = commands.add_parser("official", help="the official test splits: once, at the end")
    last.add_argument("--label", default=OURS, help="the name of ours in the results")
    last.add_argument("--again", metavar="REASON", help="why they are computed another time")
    last.add_argument("--jobs", type=int, default=1)
    last.set_defaults(command=_official)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--models", choices=("all", "peers", "ours"), default="all")
    parser.add_argument("--label", default=OURS, help="the name of ours in the results")
    parser.add_argument("--replace", action="store_true", help="compute known figures again")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases that contain it")
    parser.add_argument("--skip-slow", action="store_true", help="leave out the slowest learners")
    parser.add_argument("--jobs", type=int, default=1)


def _options(arguments: argparse.Namespace) -> dict:
    names = "models", "label", "replace", "only", "skip_slow"
    return {name: getattr(arguments, name) for name in names} | {"n_jobs": arguments.jobs}


def _run(arguments: argparse.Namespace) -> None:
    group, scale = arguments.group, arguments.scale
    run(jobs_of(group, scale), results.path_of(group, scale), **_options(arguments))


def _table(arguments: argparse.Namespace) -> None:
    for group, scale in results.stored():
        write_pages(tables.make(group, scale, arguments.labels))


def _tidy(arguments: argparse.Namespace) -> None:
    for group, scale in results.stored():
        results.tidy(results.path_of(group, scale))


def _official(arguments: argparse.Namespace) -> None:
    official(arguments.label, arguments.again, arguments.jobs)


if __name__ == "__main__":
    main()
