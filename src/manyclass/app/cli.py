"""The command line: ``manyclass demo | compare | fit | predict``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from manyclass import __version__
from manyclass.app import signals


def run() -> None:
    """Run the command line and end the process (the entry point of ``manyclass``)."""
    signals.end_process(main(process_ends=True))


def main(argv: Sequence[str] | None = None, *, process_ends: bool = False) -> int:
    """Run the command line and return the exit status."""
    return signals.run_command(lambda: _command(argv), "nothing kept", process_ends=process_ends)


def _command(argv: Sequence[str] | None) -> tuple[str, Callable[[], int]]:
    # Imported here: signals have their handlers before, and help needs nothing else.
    from manyclass.app.arguments import parser

    arguments = parser(__version__).parse_args(argv)

    def command() -> int:
        from importlib import import_module

        _check_files(arguments)
        return import_module(f"manyclass.app.{arguments.module}").run(arguments)

    return f"manyclass {arguments.command}", command


def _check_files(arguments: Any) -> None:
    """Raise an error if a file is not there, before much is imported."""
    from manyclass.app.arguments import DATA_SETS
    from manyclass.app.streams import STDIN, existing

    model = getattr(arguments, "model", None)
    if model is not None and not model.exists():
        raise FileNotFoundError(f"there is no file {model}.")
    if arguments.data not in (None, STDIN, *DATA_SETS):
        existing(arguments.data)


if __name__ == "__main__":
    run()
