"""Compare classifiers on a table by cross-validation: ``manyclass compare``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike

from manyclass.app import inputs, scoring
from manyclass.app.arguments import DEMO
from manyclass.app.candidates import (
    Candidate,
    choose,
    from_factory,
    from_mapping,
    seeded,
    with_baseline,
)
from manyclass.app.columns import used_columns
from manyclass.app.description import describe
from manyclass.app.leaderboard import Entry, Leaderboard
from manyclass.app.measuring import Measured, compile_kernels, make_pipeline, measure, said_of
from manyclass.app.report import one_line
from manyclass.app.signals import Stopped, starting_workers, watched_pool
from manyclass.app.terminal import counted, in_words_of_the_command_line, notes, say
from manyclass.scores.folds import Fold


class Step(NamedTuple):
    """The progress after a fold of a candidate."""

    name: str
    fold: int
    """Number of the fold, from 1."""
    n_folds: int
    seconds: float
    """Time since the first fold of the candidate started."""
    failure: str | None
    done: float
    """The share of the work that is done."""


def compare(
    X: Any,
    y: ArrayLike,
    *,
    candidates: Mapping[str, Any] | Iterable[Candidate] | None = None,
    cv: int | Iterable[Fold] = 5,
    groups: ArrayLike | None = None,
    metrics: Sequence[str] = scoring.USUAL,
    random_state: int = 0,
    n_jobs: int | None = 1,
    time_budget: float | None = None,
    progress: Callable[[Step], None] | None = None,
) -> Leaderboard:
    """Cross-validate classifiers on the same folds, and rank their probabilities.

    :func:`~manyclass.app.columns.column_transformer` converts the columns for each candidate.
    Candidates run in one thread. If a candidate fails, the board has the reason, and the others
    continue. A baseline, which knows class frequencies only, always takes part.

    Parameters
    ----------
    X : DataFrame, or array of shape (n, n_features)
        Features: numbers, categories, dates; values may be missing.
    y : array-like of shape (n,)
        Class labels.
    candidates : dict of str to classifier, or list of Candidate, optional
        The classifiers. By default, a choice of coupled classifiers and others that suits the
        size of the data (see :func:`~manyclass.app.candidates.choose`).
    cv : int, or iterable of (train, test), default=5
        Folds, stratified by class and shuffled, or rows to train and to test on. Classes with
        fewer rows than folds are spread over fewer folds; the only row of a class is never tested
        on.
    groups : array-like of shape (n,), optional
        Rows of the same group are never divided by a fold.
    metrics : sequence of str, default=("log-loss", "Brier", "error", "calibration")
        The metrics; also "accuracy", "f1_macro" and "roc_auc_ovr". The first one ranks the
        candidates. "calibration" is :func:`~manyclass.metrics.classwise_calibration_error`.
    random_state : int, default=0
        Seed of the folds, and of classifiers whose ``random_state`` is None.
    n_jobs : int, optional
        Processes; each runs one fold at a time. Compare seconds only within a run.
    time_budget : float, optional
        Seconds. No fold starts after them, and candidates whose folds would take longer are
        dropped after the first.
    progress : callable, optional
        Called with a :class:`Step` after each fold.

    Returns
    -------
    Leaderboard

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass import CoupledSVC, compare
    >>> X, y = load_iris(return_X_y=True)
    >>> board = compare(X, y, candidates={"svc": CoupledSVC(), "bayes": GaussianNB()}, cv=3)
    >>> [(entry.name, round(entry.mean("log-loss"), 2)) for entry in board]
    [('svc', 0.10), ('bayes', 0.15), ('baseline', 1.10)]
    >>> board.difference(board["bayes"], board["svc"]).is_noise
    True
    """
    comparison = Comparison(
        X,
        y,
        candidates=candidates,
        cv=cv,
        groups=groups,
        metrics=metrics,
        random_state=random_state,
        time_budget=time_budget,
        progress=progress,
    )
    comparison.run(n_jobs)
    return comparison.board()


class Comparison:
    """A comparison that can be stopped: ``board`` has the candidates that are finished."""

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        *,
        candidates: Mapping[str, Any] | Iterable[Candidate] | None = None,
        cv: int | Iterable[Fold] = 5,
        groups: ArrayLike | None = None,
        metrics: Sequence[str] = scoring.USUAL,
        random_state: int = 0,
        time_budget: float | None = None,
        progress: Callable[[Step], None] | None = None,
    ):
        self.start = time.perf_counter()
        self.X = inputs.as_frame(X)
        self.classes, self.target = inputs.encode(y, len(self.X))
        self.labels = inputs.as_labels(self.classes)[self.target]
        self.metrics = scoring.find_all(metrics)
        self.seed, self.progress = random_state, progress
        self.folds, self.notes = inputs.find_folds(
            cv, self.classes, self.target, groups, random_state
        )
        if candidates is None:
            self.candidates, left_out = choose(inputs.size_of(self.target, len(self.folds)))
            self.notes += left_out
        else:
            self.candidates = with_baseline(from_mapping(candidates))
        self.description = describe(self.X, self.classes, self.target)
        (self.X, self.columns), said = with_warnings(lambda: used_columns(self.X))
        self.notes += said
        self.entries: list[Entry] = []
        self.deadline = None if time_budget is None else self.start + time_budget
        self.work, self.done = sum(c.work for c in self.candidates), 0.0

    def run(self, n_jobs: int | None = 1) -> None:
        """Run all candidates, one after the other."""
        # All candidates share the pool. A single process copies nothing.
        with watched_pool(n_jobs=n_jobs, return_as="generator") as parallel:
            for candidate in self.candidates:
                self.entries.append(self._entry(candidate, parallel))
                self.done += candidate.work

    def board(self) -> Leaderboard:
        """Return the candidates that are finished, the best first."""
        first = self.metrics[0]
        return Leaderboard(
            entries=tuple(sorted(self.entries, key=lambda entry: _rank(entry, first))),
            metrics=self.metrics,
            classes=self.classes,
            target=self.target,
            index=self.X.index.tolist(),
            folds=self.folds,
            random_state=self.seed,
            description=self.description,
            notes=tuple(self.notes),
            seconds=time.perf_counter() - self.start,
        )

    def _entry(self, candidate: Candidate, parallel: Any) -> Entry:
        """Run all folds of a candidate, until one fails or the time is over."""
        if self._left() <= 0:
            return Entry(candidate, None, failure="the time budget was used up before it")
        try:
            pipeline = make_pipeline(self.columns, seeded(candidate.estimator, self.seed))
        except Exception as error:
            return Entry(candidate, None, failure=said_of(error))
        compile_kernels(pipeline[-1])
        folds, notes = self._folds_of(candidate)
        found: list[Measured] = []
        failures: list[str] = []
        # A single process draws tasks one by one, and none after a failure.
        tasks = (
            delayed(measure)(pipeline, self.X, self.target, self.labels, fold, self.metrics)
            for fold in folds
            if not failures
        )
        start = time.perf_counter()
        with starting_workers(parallel.n_jobs):
            outcomes = parallel(tasks)
        for fold, outcome in enumerate(outcomes, start=1):
            seconds = time.perf_counter() - start
            if isinstance(outcome, str):
                failures.append(outcome)
            else:
                found.append(outcome)
                if self._left() < (len(folds) - fold) * seconds / fold:
                    failures.append(f"a fold takes {seconds / fold:.1f} s, beyond the time budget")
            if self.progress is not None and len(failures) <= 1:
                done = (self.done + candidate.work * fold / len(folds)) / self.work
                failure = next(iter(failures), None)
                self.progress(Step(candidate.name, fold, len(folds), seconds, failure, done))
        if failures:
            return Entry(candidate, pipeline, notes=tuple(notes), failure=failures[0])
        return self._collect(candidate, pipeline, found, notes)

    def _left(self) -> float:
        return np.inf if self.deadline is None else self.deadline - time.perf_counter()

    def _folds_of(self, candidate: Candidate) -> tuple[list[Fold], list[str]]:
        """Return the folds, with a sample of the training rows if the candidate has a limit."""
        most = candidate.most_rows
        smallest = min(len(train) for train, _ in self.folds)
        if most is None or smallest <= most:
            return self.folds, []
        drawn = [
            (train[inputs.draw(self.target[train], most, self.seed)], test)
            for train, test in self.folds
        ]
        return drawn, [f"trained on {most} of about {smallest} rows of each fold"]

    def _collect(
        self, candidate: Candidate, pipeline: Any, found: list[Measured], notes: list[str]
    ) -> Entry:
        """Join the results of the folds, with rows in the order of the table."""
        proba = np.full((len(self.target), len(self.classes)), np.nan)
        incoherence = np.full(len(self.target), np.nan)
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
    if not entry.values:
        return True, 0.0
    return False, scoring.METRICS[metric].sign * entry.mean(metric)


def with_warnings(task: Callable[[], Any]) -> tuple[Any, list[str]]:
    """Return the result of a task, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        answer = task()
    return answer, [one_line(str(w.message)) for w in caught if w.category is UserWarning]


# ---------------------------------------------------------------------- command line


def run(arguments: argparse.Namespace) -> int:
    """Run ``manyclass compare``."""
    from manyclass.app import tables
    from manyclass.app.progress import shown_on_stderr
    from manyclass.app.table_options import Choices

    name = arguments.data or DEMO
    folds = arguments.folds if arguments.folds is not None else 3 if arguments.quick else 5
    choices = Choices.of(arguments)
    table, said = with_warnings(lambda: tables.read(name, choices))
    table.X.index += 1  # rows are numbered from 1
    table = inputs.sample_table(table, arguments.rows, random_state=arguments.seed)
    classes, target = inputs.encode(table.y, len(table.X))
    candidates, left_out = _candidates(arguments, inputs.size_of(target, folds))
    sizes = {"row": len(table.X), "column": table.X.shape[1], "class": len(classes)}
    say(f"{name}: {', '.join(counted(n, word) for word, n in sizes.items())}")
    with shown_on_stderr() as progress:
        comparison = Comparison(
            table.X,
            table.y,
            candidates=candidates,
            cv=folds if table.split is None else inputs.split_folds(table.split),
            groups=table.groups,
            metrics=scoring.ranked_by(arguments.metric),
            random_state=arguments.seed,
            time_budget=arguments.time_budget,
            progress=progress,
        )
        comparison.notes = [*said, *left_out, *comparison.notes]
        try:
            comparison.run(arguments.jobs)
        except KeyboardInterrupt as interrupt:
            kept = _say_partial(comparison)
            raise Stopped(kept) from interrupt
    board = comparison.board()
    _say_board(board)
    if arguments.report is not None:
        _write_report(board, table, name, arguments)
    if arguments.save is not None:
        return _save(board, table, arguments)
    return 0 if board.measured else 1


def _candidates(arguments: argparse.Namespace, size: Any) -> tuple[list[Candidate], list[str]]:
    own = [from_factory(text) for text in arguments.estimator]
    found, notes = choose(size, quick=arguments.quick, only=arguments.only)
    return from_mapping([*found, *own]), notes


def _say_board(board: Leaderboard) -> None:
    out = sys.stdout
    width = shutil.get_terminal_size().columns if out is not None and out.isatty() else None
    say(f"{board.to_text(width)}\n\n{board.verdict()}")
    for note in board.all_notes:
        say(f"note: {in_words_of_the_command_line(note)}", sys.stderr)


def _say_partial(comparison: Comparison) -> str:
    """Print what is finished after an interrupt, and return a sentence about it."""
    finished = [entry for entry in comparison.entries if entry.failure is None]
    if len(finished) < 2:  # the baseline alone says nothing
        return "nothing kept"
    say(comparison.board().to_text())
    return f"these {len(finished)} of {len(comparison.candidates)} candidates were finished"


def _write_report(board: Leaderboard, table: Any, name: str, arguments: argparse.Namespace) -> None:
    from manyclass.app.page import Source, write_page
    from manyclass.app.studies import study

    source = Source(name, arguments.rows, table.choices)
    studies = study(board, table.X, curve=arguments.learning_curve)
    write_page(board, arguments.report, source=source, studies=studies)
    say(f"report: {os.fspath(arguments.report)}")


def _save(board: Leaderboard, table: Any, arguments: argparse.Namespace) -> int:
    """Fit the picked candidate on all rows, and store it."""
    from manyclass.app.fit import store, with_used_columns

    if board.pick is None:
        say("nothing saved: manyclass fit --candidate NAME stores a candidate anyway.", sys.stderr)
        return 1
    entry = board.pick
    assert entry.pipeline is not None
    rows = inputs.draw(board.target, entry.candidate.most_rows or len(table.y), board.random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the comparison has shown them
        table, _ = with_used_columns(table)
        model = entry.pipeline.fit(table.X.iloc[rows], table.y.iloc[rows])
    with notes():
        store(model, arguments.save, table, entry.name)
    return 0
