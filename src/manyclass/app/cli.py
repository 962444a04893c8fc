"""The command line: ``manyclass demo | compare | fit | predict``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

        from manyclass.app import early

        early.check(arguments)
        return import_module(f"manyclass.app.{arguments.module}").run(arguments)

    return f"manyclass {arguments.command}", command


if __name__ == "__main__":
    run()
