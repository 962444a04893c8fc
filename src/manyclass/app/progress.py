"""Progress on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from manyclass.app.terminal import counted, say, without_control_characters

if TYPE_CHECKING:
    from manyclass.app.compare import Step


@contextmanager
def bar_on_stderr() -> Iterator[Any]:
    """Yield a progress bar, or None without rich or a terminal."""
    try:
        console = import_module("rich.console").Console(stderr=True)
    except ImportError:
        console = None
    if console is None or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with import_module("rich.progress").Progress(console=console, transient=True) as bar:
        yield bar


@contextmanager
def shown_on_stderr() -> Iterator[Callable[[Step], None]]:
    """Yield a function to call after each fold: it moves a bar, or prints plain lines."""
    with bar_on_stderr() as bar:
        task = None if bar is None else bar.add_task("", total=1.0)

        def advance(step: Step) -> None:
            bar.update(task, description=without_control_characters(step.name), completed=step.done)

        yield _plain_line if bar is None else advance


def _plain_line(step: Step) -> None:
    if step.failure is not None:
        say(f"  {step.name} failed: {step.failure}", sys.stderr)
    elif step.fold == step.n_folds:
        folds = counted(step.n_folds, "fold")
        say(f"  {step.name}: {folds} in {step.seconds:.1f} s", sys.stderr)
