"""The command line: ``manyclass demo | compare | fit | predict``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from manyclass import __version__
from manyclass._lib.interrupts import INTERRUPTED, Terminated, ending_in_order
from manyclass._lib.jobs import registered_files
from manyclass.app import compare as comparing
from manyclass.app import fit as fitting
from manyclass.app import predict as predicting


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        with ending_in_order(), registered_files():
            return arguments.run(arguments)
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, OSError, ValueError) as error:
        print(f"manyclass {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        return _interrupted(arguments.command, interrupt)
    except RuntimeError as error:  # Python makes it of an interrupt while a class is defined
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return _interrupted(arguments.command, error.__cause__)


def _interrupted(command: str, interrupt: KeyboardInterrupt) -> int:
    is_other = isinstance(interrupt, Terminated)
    print(f"{'terminated' if is_other else 'interrupted'}; nothing kept", file=sys.stderr)
    return 128 + int(interrupt.args[0]) if is_other else INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manyclass", description="Calibrated class probabilities from binary classifiers."
    )
    parser.add_argument("--version", action="version", version=f"manyclass {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    summary = "compare a few classifiers on handwritten digits"
    demo = commands.add_parser("demo", help=summary, description=_sentence(summary))
    comparing.add_arguments(demo)
    demo.set_defaults(run=comparing.run, quick=True)
    for name, room, summary in (
        ("compare", comparing, "cross-validate classifiers on a table, and write a report"),
        ("fit", fitting, "fit a classifier to a table, and store it"),
        ("predict", predicting, "probabilities for the rows of a table, by a stored classifier"),
    ):
        command = commands.add_parser(name, help=summary, description=_sentence(summary))
        room.add_arguments(command)
        command.set_defaults(run=room.run)
    return parser


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


if __name__ == "__main__":
    sys.exit(main())
