"""Run the experiments of the papers: ``python -m experiments list | run NAME | judge``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from manyclass.app.signals import end_process, run_command


def main(argv: Sequence[str] | None = None, *, process_ends: bool = False) -> int:
    """Run the command line; returns the exit status."""
    return run_command(lambda: _command(argv), "finished tasks are kept", process_ends=process_ends)


def _command(argv: Sequence[str] | None) -> tuple[str, Callable[[], int]]:
    # Imported here: signals have their handlers before.
    from experiments.commands import parser

    arguments = parser().parse_args(argv)
    return f"experiments {arguments.command}", lambda: arguments.action(arguments)


if __name__ == "__main__":
    end_process(main(process_ends=True))
