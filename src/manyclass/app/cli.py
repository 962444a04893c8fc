"""The command line: ``manyclass demo | compare | fit | predict``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from manyclass import __version__
from manyclass.app import compare as comparing
from manyclass.app import fit as fitting
from manyclass.app import predict as predicting
from manyclass.app import signals


def run() -> None:
    """Run the command line and end the process (the entry point of ``manyclass``)."""
    signals.end_process(main())


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        with signals.ending_in_order(), signals.registered_files():
            return arguments.run(arguments)
    except BrokenPipeError:  # the reader of the output has closed it, as "head" does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ImportError, OSError, ValueError) as error:
        print(f"manyclass {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt)
    except RuntimeError as error:  # Python turns an interrupt in a class body into this
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        return _interrupted(error.__cause__)


def _interrupted(interrupt: KeyboardInterrupt) -> int:
    word = "terminated" if isinstance(interrupt, signals.Terminated) else "interrupted"
    print(f"{word}; nothing kept", file=sys.stderr)
    return signals.exit_code(interrupt)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="manyclass", description="Calibrated class probabilities from binary classifiers."
    )
    parser.add_argument("--version", action="version", version=f"manyclass {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, room, summary in (
        ("demo", comparing, "compare a few classifiers on handwritten digits"),
        ("compare", comparing, "cross-validate classifiers on a table, and write a report"),
        ("fit", fitting, "fit a classifier to a table, and store it"),
        ("predict", predicting, "probabilities for the rows of a table, by a stored classifier"),
    ):
        sentence = f"{summary[0].upper()}{summary[1:]}."
        command = commands.add_parser(name, help=summary, description=sentence)
        room.add_arguments(command)
        command.set_defaults(run=room.run)
    commands.choices["demo"].set_defaults(quick=True)
    return parser


if __name__ == "__main__":
    run()
