"""Compare classifiers on a table by cross-validation: ``manyclass compare``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.messages import quoted
from manyclass.app import inputs
from manyclass.app.candidates import NAMES, Candidate, choose, from_mapping, seeded
from manyclass.app.columns import column_transformer
from manyclass.app.leaderboard import Entry, Leaderboard, describe
from manyclass.app.measuring import METRICS, Measured, compile_kernels, make_pipeline, measure
from manyclass.app.report import one_line
from manyclass.scores.folds import Fold

DEMO = "digits"


class Step(NamedTuple):
    """The progress after a fold of a candidate."""

    name: str
    place: int
    """Number of the candidate, from 0."""
    fold: int
    """Number of the fold, from 1."""
    n_folds: int
    seconds: float
    """Time since the first fold of the candidate started."""
    failure: str | None


def compare(
    X: Any,
    y: ArrayLike,
    *,
    candidates: Mapping[str, Any] | Iterable[Candidate] | None = None,
    cv: int = 5,
    metrics: Sequence[str] = tuple(METRICS),
    random_state: int = 0,
    n_jobs: int | None = 1,
    progress: Callable[[Step], None] | None = None,
) -> Leaderboard:
    """Cross-validate classifiers on the same folds, and rank their probabilities.

    :func:`~manyclass.app.columns.column_transformer` converts the columns for each candidate.
    Candidates run in one thread. If a candidate fails, the board has the reason, and the others
    continue.

    Parameters
    ----------
    X : DataFrame, or array of shape (n, n_features)
        Features: numbers, categories, dates; values may be missing.
    y : array-like of shape (n,)
        Class labels.
    candidates : dict of str to classifier, or list of Candidate, optional
        The classifiers. By default, a choice of coupled classifiers and others that suits the
        size of the data (see :func:`~manyclass.app.candidates.choose`).
    cv : int, default=5
        Folds, stratified by class and shuffled. Classes with fewer rows are spread over
        fewer folds; the only row of a class is never tested on.
    metrics : sequence of str, default=("log-loss", "Brier", "error", "calibration")
        The metrics. The first one ranks the candidates. "calibration" is
        :func:`~manyclass.metrics.classwise_calibration_error`.
    random_state : int, default=0
        Seed of the folds, and of classifiers whose ``random_state`` is None.
    n_jobs : int, optional
        Processes; each runs one fold at a time. Compare seconds only within a run.
    progress : callable, optional
        Called with a :class:`Step` after each fold.

    Returns
    -------
    Leaderboard

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass import CoupledSVC
    >>> from manyclass.app.compare import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> board = compare(X, y, candidates={"svc": CoupledSVC(), "bayes": GaussianNB()}, cv=3)
    >>> [(entry.name, round(entry.mean("log-loss"), 2)) for entry in board]
    [('svc', 0.10), ('bayes', 0.15)]
    >>> board.difference(board["bayes"], board["svc"]).is_noise
    True
    """
    start = time.perf_counter()
    frame = inputs.as_frame(X)
    classes, target = inputs.encode(y, len(frame))
    _check_metrics(metrics)
    folds = inputs.make_folds(cv, classes, target, random_state)
    notes = inputs.notes_on_folds(cv, len(folds), classes, target)
    if candidates is None:
        chosen, left_out = choose(inputs.size_of(target, len(folds)))
        notes += left_out
    else:
        chosen = from_mapping(candidates)
    columns, said = listen(lambda: column_transformer(frame))
    run = _Run(frame, target, classes, folds, columns, tuple(metrics), random_state, progress)
    # All candidates share the pool. A single process copies nothing.
    with Parallel(n_jobs=n_jobs, return_as="generator") as parallel:
        entries = [run.entry(place, candidate, parallel) for place, candidate in enumerate(chosen)]
    return Leaderboard(
        entries=tuple(sorted(entries, key=lambda entry: _rank(entry, metrics[0]))),
        metrics=tuple(metrics),
        classes=classes,
        target=target,
        index=frame.index.tolist(),
        folds=folds,
        random_state=random_state,
        description=describe(frame, classes, target),
        notes=(*notes, *said),
        seconds=time.perf_counter() - start,
    )


class _Run(NamedTuple):
    """The data and settings that all candidates share."""

    X: Any
    y: NDArray[np.intp]
    classes: list[Any]
    folds: list[Fold]
    columns: Any
    metrics: tuple[str, ...]
    seed: int
    progress: Callable[[Step], None] | None

    def entry(self, place: int, candidate: Candidate, parallel: Parallel) -> Entry:
        """Run all folds of a candidate, until one fails."""
        try:
            pipeline = make_pipeline(self.columns, seeded(candidate.estimator, self.seed))
        except Exception as error:
            return Entry(candidate, None, failure=one_line(f"{type(error).__name__}: {error}"))
        compile_kernels(pipeline[-1])
        folds, notes = self._folds_of(candidate)
        found: list[Measured] = []
        failures: list[str] = []
        # A single process draws tasks one by one, and none after a failure.
        tasks = (
            delayed(measure)(pipeline, self.X, self.y, fold, len(self.classes), self.metrics)
            for fold in folds
            if not failures
        )
        start = time.perf_counter()
        for fold, outcome in enumerate(parallel(tasks), start=1):
            if isinstance(outcome, str):
                failures.append(outcome)
            else:
                found.append(outcome)
            if self.progress is not None and len(failures) <= isinstance(outcome, str):
                seconds, failure = time.perf_counter() - start, next(iter(failures), None)
                self.progress(Step(candidate.name, place, fold, len(folds), seconds, failure))
        if failures:
            return Entry(candidate, pipeline, notes=tuple(notes), failure=failures[0])
        return self._collect(candidate, pipeline, found, notes)

    def _folds_of(self, candidate: Candidate) -> tuple[list[Fold], list[str]]:
        """Return the folds, with a sample of the training rows if the candidate has a limit."""
        most = candidate.most_rows
        smallest = min(len(train) for train, _ in self.folds)
        if most is None or smallest <= most:
            return self.folds, []
        drawn = [
            (train[inputs.draw(self.y[train], most, self.seed)], test) for train, test in self.folds
        ]
        return drawn, [f"trained on {most} of about {smallest} rows of each fold"]

    def _collect(
        self, candidate: Candidate, pipeline: Any, found: list[Measured], notes: list[str]
    ) -> Entry:
        """Join the results of the folds, with rows in the order of the table."""
        proba = np.full((len(self.y), len(self.classes)), np.nan)
        incoherence = np.full(len(self.y), np.nan)
        for (_, test), one in zip(self.folds, found, strict=True):
            proba[test] = one.proba
            if one.incoherence is not None:
                incoherence[test] = one.incoherence
        said = dict.fromkeys(text for one in found for text in one.warnings)
        return Entry(
            candidate,
            pipeline,
            values={key: np.array([one.values[key] for one in found]) for key in found[0].values},
            proba=proba,
            incoherence=None if found[0].incoherence is None else incoherence,
            code=found[0].code,
            calibration=found[0].calibration,
            notes=(*notes, *said),
        )


def _rank(entry: Entry, metric: str) -> tuple[bool, float]:
    return entry.failure is not None, entry.mean(metric) if entry.values else 0.0


def _check_metrics(metrics: Sequence[str]) -> None:
    unknown = [name for name in metrics if name not in METRICS]
    if unknown or not metrics or isinstance(metrics, str):
        raise ValueError(f"metrics must be some of {', '.join(METRICS)}, got {quoted(metrics)}.")


def listen(task: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return the result of a task, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        answer = task()
    return answer, [one_line(str(w.message)) for w in caught if w.category is UserWarning]


# ---------------------------------------------------------------------- command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``manyclass compare``."""
    parser.add_argument(
        "data", nargs="?", metavar="DATA", help=f"a file or a bundled data set (default: {DEMO})"
    )
    parser.add_argument("--target", help="the column that holds the classes")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html",
        help="write a report; an earlier report is replaced",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace FILE.html even if it is not a report"
    )
    parser.add_argument("--folds", type=int, help="folds (default: 5, or 3 with --quick)")
    parser.add_argument("--quick", action="store_true", help="few candidates, 3 folds")
    parser.add_argument(
        "--only", metavar="NAME,NAME", help=f"only these candidates: {', '.join(NAMES)}"
    )
    parser.add_argument("--rows", type=int, metavar="N", help="use a sample of N rows")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of folds, samples and candidates (default: 0)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")


def run(arguments: argparse.Namespace) -> int:
    """Compare classifiers on a table, print the leaderboard, and write a report if asked."""
    from manyclass.app.page import Source, check_report, write_page
    from manyclass.app.progress import shown_on_stderr
    from manyclass.app.tables import read_table

    name = arguments.data or DEMO
    quick = arguments.quick
    folds = arguments.folds if arguments.folds is not None else 3 if quick else 5
    inputs.check_folds(folds)
    if arguments.report is not None:
        check_report(arguments.report, [name], force=arguments.force)
    (X, y), said = listen(lambda: read_table(name, target=arguments.target))
    X.index += 1  # rows are numbered from 1
    X, y = inputs.sample(X, y, arguments.rows, random_state=arguments.seed)
    only = arguments.only and [part.strip() for part in arguments.only.split(",")]
    classes, target = inputs.encode(y, len(X))
    candidates, left_out = choose(inputs.size_of(target, folds), quick=quick, only=only)
    print(f"{name}: {len(X)} rows, {X.shape[1]} columns, {len(classes)} classes")
    with shown_on_stderr(len(candidates)) as progress:
        board = compare(
            X,
            y,
            candidates=candidates,
            cv=folds,
            random_state=arguments.seed,
            n_jobs=arguments.jobs,
            progress=progress,
        )
    board = replace(board, notes=(*said, *left_out, *board.notes))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(f"{board.to_text(width)}\n\n{board.verdict()}")
    for note in board.all_notes:
        print(f"note: {note}", file=sys.stderr)
    if arguments.report is not None:
        source = Source(name, arguments.target, arguments.rows)
        write_page(board, arguments.report, source=source)
        print(f"report: {os.fspath(arguments.report)}")
    return 0 if board.ranked else 1
