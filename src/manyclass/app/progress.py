"""The progress of a comparison, on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from manyclass.app.compare import Step


@contextmanager
def shown_on_stderr(n_candidates: int) -> Iterator[Callable[[Step], None]]:
    """Yield a function to call after each fold: a bar on a terminal with rich, or plain lines."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield _plain_line
        return
    if not sys.stderr.isatty():
        yield _plain_line
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=n_candidates)

        def advance(step: Step) -> None:
            done = step.place + (1 if step.failure else step.fold / step.n_folds)
            bar.update(task, description=step.name, completed=done)

        yield advance


def _plain_line(step: Step) -> None:
    if step.failure is not None:
        print(f"  {step.name} failed: {step.failure}", file=sys.stderr)
    elif step.fold == step.n_folds:
        print(f"  {step.name}: {step.n_folds} folds in {step.seconds:.1f} s", file=sys.stderr)
