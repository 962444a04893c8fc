"""The runner of all experiments. It runs tasks in parallel and resumes interrupted runs."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from joblib import delayed
from threadpoolctl import threadpool_limits

from experiments.results import SECONDS, Measurement, Results
from manyclass._lib.files import lock, replace_file
from manyclass.app.signals import starting_workers, watched_pool

SCALES = ("quick", "paper")
LOCK = "results.lock"  # file in a folder of results


class Row(NamedTuple):
    """What a task measures: the value of a metric of a method."""

    method: str
    metric: str
    value: float


@dataclass(frozen=True)
class Task:
    """The unit of work: some methods on one split of one data set. A task is never half done."""

    data: str
    split: str
    group: str
    """Name of the methods that are measured together. It is unique for the data and the split."""
    measure: Callable[..., Iterable[Row]]
    """A function of a module, because other processes import it by its name."""
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and the test that decides it from our results."""

    text: str
    """In our words, with the place in the paper."""
    criterion: str
    """What is computed, and when the claim holds."""
    decide: Callable[[list[Measurement]], Verdict]
    published: Callable[[], str] = lambda: "the paper prints no numbers for it."
    """The criterion applied to the published numbers."""
    key: str = ""
    """Name of the claim among those of its experiment. The ledger refers to it."""


class Verdict(NamedTuple):
    """Whether a claim holds by our results."""

    holds: bool | None
    """None: the results are too few to decide."""
    evidence: str
    """The numbers that decide."""
    power: str = ""
    """What it would take to decide, if the results are too few."""

    @property
    def word(self) -> str:
        """The verdict in words."""
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]

    def __str__(self) -> str:
        power = f" {self.power}" if self.power and self.holds is None else ""
        return f"**{self.word}**: {self.evidence}{power}"


@dataclass(frozen=True)
class Experiment:
    """The description of a table or a figure of a paper."""

    name: str
    """Such as "wu2003-figure1"."""
    title: str
    tasks: Callable[[str], Sequence[Task]]
    """The tasks of a scale, "quick" or "paper". Their arguments include all seeds."""
    config: Callable[[str], dict[str, Any]]
    """The sizes, grids and seeds of a scale. They are written to ``config.json``."""
    section: Callable[[list[Measurement], Path], str]
    """Writes the section of the page in Markdown from the results, and figures to the folder."""
    claims: tuple[Claim, ...] = ()

    @property
    def paper(self) -> str:
        """The paper that the experiment belongs to."""
        return self.name.split("-")[0]


def run(
    experiment: Experiment, scale: str, folder: Path, n_jobs: int | None = None, bar: bool = True
) -> Results:
    """Run the tasks that have no results yet, and add the results task by task.

    Parameters
    ----------
    experiment : Experiment
    scale : {"quick", "paper"}
    folder : Path
        Folder of the paper's ``results.csv``. It need not exist yet.
    n_jobs : int, optional
        Number of processes.
    bar : bool, default=True
        Whether to show progress.

    Returns
    -------
    Results
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}.")
    with locked(folder):
        _check_folder(folder, scale)
        return _run(experiment, scale, folder, n_jobs, bar)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder of results: two runs would both add the rows of a task.

    The operating system releases it when the process ends, in whatever way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "w") as file:
        if lock(file.fileno()) is False:
            raise ValueError(
                f"another run writes to {folder}: wait for its end, or choose another --output."
            )
        yield
    # The file stays: removing it would let a third run lock a new file of the same name.


def _run(
    experiment: Experiment, scale: str, folder: Path, n_jobs: int | None, bar: bool
) -> Results:
    """Run the tasks that are not finished."""
    results = Results(folder / "results.csv")
    results.repair()
    tasks, finished = experiment.tasks(scale), results.finished()
    keys = [(experiment.name, task.data, task.split, task.group) for task in tasks]
    _check_unique(keys)
    open_tasks = [task for task, key in zip(tasks, keys, strict=True) if key not in finished]
    if tasks and not open_tasks:
        if bar:
            print(
                f"{experiment.name}: all {len(tasks)} tasks are finished, in {folder}; "
                "--output FOLDER runs them again elsewhere"
            )
        return results
    # The workers of a killed run end, too.
    parallel = watched_pool(n_jobs=n_jobs, return_as="generator_unordered")
    with _progress(experiment.name, len(tasks), len(tasks) - len(open_tasks), bar) as advance:
        with starting_workers(parallel.n_jobs):
            answers = parallel(delayed(_measure)(experiment.name, task) for task in open_tasks)
        for rows in answers:
            results.add(rows)
            advance()
    return results


def _check_folder(folder: Path, scale: str) -> None:
    """Refuse a folder with results of the other scale: tasks of both may have the same names."""
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
            f"{config} is damaged, or not of an experiment: it does not name the scale "
            f"({type(error).__name__}: {error}). Choose another --output, or remove the file if "
            "you know that the results next to it belong to this scale."
        ) from error


def _check_unique(keys: list[tuple[str, str, str, str]]) -> None:
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"two tasks are called {twice}: each task needs its own name.")


def _measure(experiment: str, task: Task) -> list[Measurement]:
    """Run one task on one thread. The tasks themselves run in parallel."""
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as: rows of a printed iteration have not converged
        rows = list(task.measure(*task.arguments))
    seconds = time.perf_counter() - start
    place = experiment, task.data, task.split
    return [
        *(Measurement(*place, *row) for row in rows),
        Measurement(*place, task.group, SECONDS, seconds),
    ]


@contextmanager
def _progress(name: str, total: int, done: int, show: bool) -> Iterator[Callable[[], None]]:
    """Yield a function to call after every task."""
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
