"""One runner for all experiments: resumable, in parallel, with a progress bar."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from experiments.results import SECONDS, Measurement, Results
from manyclass._lib.files import replace_file

SCALES = ("quick", "paper")


class Row(NamedTuple):
    """What a task measures: the value of a metric of a method."""

    method: str
    metric: str
    value: float


@dataclass(frozen=True)
class Task:
    """Work that is done as a whole or not at all: some methods on one split of one data set."""

    data: str
    split: str
    group: str
    """What the methods measured together are called, unique for the data and the split."""
    measure: Callable[..., Iterable[Row]]
    """A function of a module, so that other processes find it."""
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Claim:
    """Something the paper says, and how it is decided from the results."""

    text: str
    """In our words, with the place in the paper."""
    criterion: str
    """What is computed, and when the claim holds."""
    decide: Callable[[list[Measurement]], Verdict]


class Verdict(NamedTuple):
    """Whether a claim holds here."""

    holds: bool | None
    """None: cannot tell at this size."""
    evidence: str
    """The figures that decide."""

    def __str__(self) -> str:
        word = {True: "holds", False: "does not hold", None: "cannot be told at this size"}[
            self.holds
        ]
        return f"**{word}**: {self.evidence}"


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper, described."""

    name: str
    """Such as "wu2003-figure1"."""
    title: str
    tasks: Callable[[str], Sequence[Task]]
    """The tasks of a scale, "quick" or "paper", all seeds in them."""
    config: Callable[[str], dict[str, Any]]
    """What the scale means: sizes, grids and seeds, for the record."""
    section: Callable[[list[Measurement], Path], str]
    """The part of the paper's page, in Markdown, from the results; figures go to the folder."""
    claims: tuple[Claim, ...] = ()

    @property
    def paper(self) -> str:
        """The paper it is of."""
        return self.name.split("-")[0]


def run(
    experiment: Experiment, scale: str, folder: Path, n_jobs: int | None = None, bar: bool = True
) -> Results:
    """Run what is not yet in the results, and add it task by task.

    Parameters
    ----------
    experiment : Experiment
    scale : {"quick", "paper"}
    folder : Path
        Where the paper's ``results.csv`` is or will be.
    n_jobs : int, optional
        Processes.
    bar : bool, default=True
        Whether to show progress.

    Returns
    -------
    Results
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    _check_folder(folder, scale)
    results = Results(folder / "results.csv")
    results.repair()
    tasks, finished = experiment.tasks(scale), results.finished()
    keys = [(experiment.name, task.data, task.split, task.group) for task in tasks]
    _check_unique(keys)
    open_tasks = [task for task, key in zip(tasks, keys, strict=True) if key not in finished]
    if tasks and not open_tasks:
        if bar:
            print(
                f"{experiment.name}: all {len(tasks)} tasks were done before, in {folder}; "
                "--output FOLDER runs them anew"
            )
        return results
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    with _progress(experiment.name, len(tasks), len(tasks) - len(open_tasks), bar) as advance:
        answers = parallel(delayed(_measure)(experiment.name, task) for task in open_tasks)
        for rows in answers:
            results.add(rows)
            advance()
    return results


def _check_folder(folder: Path, scale: str) -> None:
    """Keep scales apart: their tasks may have the same names."""
    config = folder / "config.json"
    if not config.exists():
        replace_file(config, json.dumps({"scale": scale}) + "\n")
        return
    found = _scale_of(config)
    if found != scale:
        raise ValueError(
            f"{folder} holds results of the scale {found!r}, not {scale!r}: choose another output "
            "folder, or remove it."
        )


def _scale_of(config: Path) -> Any:
    try:
        return json.loads(config.read_text("utf-8"))["scale"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{config} is damaged, or not of an experiment: it does not tell the scale "
            f"({type(error).__name__}: {error}). Choose another --output, or remove the file if "
            "you know that the results beside it are of this scale."
        ) from error


def _check_unique(keys: list[tuple[str, str, str, str]]) -> None:
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"two tasks are called {twice}: a task is found again by its name.")


def _measure(experiment: str, task: Task) -> list[Measurement]:
    """Do one task, on one thread: tasks are what runs in parallel."""
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # unconverged rows of a printed iteration, and the like
        rows = list(task.measure(*task.arguments))
    seconds = time.perf_counter() - start
    place = experiment, task.data, task.split
    return [
        *(Measurement(*place, *row) for row in rows),
        Measurement(*place, task.group, SECONDS, seconds),
    ]


@contextmanager
def _progress(name: str, total: int, done: int, show: bool) -> Iterator[Callable[[], None]]:
    """Yield what is to be called after every task."""
    if not show:
        yield lambda: None
        return
    try:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        print(f"{name}: {done} of {total} tasks are done")
        counter = iter(range(done + 1, total + 1))
        yield lambda: print(f"{name}: {next(counter)} of {total}", flush=True)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as progress:
        task = progress.add_task(name, total=total, completed=done)
        yield lambda: progress.advance(task)
