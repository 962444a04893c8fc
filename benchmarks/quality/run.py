"""Fit every model that has no figures yet, case by case, and append what it reached."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.quality import cases, results
from benchmarks.quality.peers import LEARNERS, Outcome, Peer, learner_peers, names_of, svm_peers
from benchmarks.quality.peers import outcomes as peer_outcomes
from benchmarks.quality.results import Row
from manyclass import CoupledClassifier, CoupledSVC

FAST_FIRST = (
    *("iris", "wine", "breast-cancer", "soybean", "segment", "waveform", "digits", "satimage"),
    *("pendigits", "dna", "letter", "usps", "mnist5k", "mnist"),
)
"""The sets, the fast ones first, so that there are figures early."""
SLOW = {("boosting", name) for name in ("usps", "mnist5k", "mnist")} | {
    ("linear-svc", name) for name in ("mnist5k", "mnist")
}
"""Learners and sets where a single fit takes 5 to 30 seconds."""
OURS = "ours"


@dataclass(frozen=True)
class Job:
    """A case, and what is fitted to it."""

    case: str
    data: str
    setting: str
    parts: Callable[[], cases.Parts]
    peers: Callable[[], dict[str, Peer]]
    ours: Callable[[], Any]

    @property
    def slow(self) -> bool:
        return (self.setting, self.data) in SLOW


def jobs_of(group: str, scale: str) -> list[Job]:
    """Return the jobs of a group ("svm" or "learners") and a scale, the fast ones first."""
    jobs = list(_svm_jobs(scale) if group == "svm" else _learner_jobs(scale))
    return sorted(jobs, key=lambda job: (job.slow, FAST_FIRST.index(job.data)))


def _svm_jobs(scale: str) -> Iterator[Job]:
    for case, C in cases.svm_cases(scale):
        yield svm_job(case.key, case.data, case.parts, C)


def _learner_jobs(scale: str) -> Iterator[Job]:
    for case in cases.learner_cases(scale):
        for name in LEARNERS:
            yield learner_job(case.key, case.data, case.parts, name)


def svm_job(key: str, data: str, parts: Callable[[], cases.Parts], C: float) -> Job:
    """Return the job of support vector machines with penalty C."""
    return Job(key, data, f"C={C:g}", parts, lambda: svm_peers(C), lambda: CoupledSVC(C=C))


def learner_job(key: str, data: str, parts: Callable[[], cases.Parts], name: str) -> Job:
    """Return the job of a learner."""
    ours = lambda: CoupledClassifier(LEARNERS[name])  # noqa: E731
    return Job(key, data, name, parts, lambda: learner_peers(name), ours)


def compute(job: Job, wanted: set[str], label: str) -> list[Row]:
    """Fit the wanted models of a job to its training rows; ``label`` is the name of ours."""
    X, X_test, y, y_test = known_classes(job.parts())
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations, convergence
        for outcome in _outcomes(job, wanted, label, X, y, X_test):
            values, seconds = [np.nan] * 3, outcome.seconds
            try:
                if outcome.p is None:
                    raise ValueError(outcome.error)
                values = list(results.measured(outcome.p, y_test))
            except ValueError as error:
                seconds = np.nan
                reason = f"    {job.case} {job.setting} {outcome.name}: {error}"
                print(reason, file=sys.stderr, flush=True)
            key = job.case, job.setting, outcome.name
            rows.append(Row(*key, *values, seconds, int(y.max()) + 1, len(y)))
    return rows


def known_classes(parts: cases.Parts) -> cases.Parts:
    """Number the classes of the training rows from 0, and leave out test rows of other classes.

    Few rows of unbalanced classes may have none of a class. No model can know it then.
    """
    X, X_test, y, y_test = parts
    classes, y = np.unique(y, return_inverse=True)
    known = np.isin(y_test, classes)
    return X, X_test[known], y, np.searchsorted(classes, y_test[known])


def _outcomes(job, wanted, label, X, y, X_test) -> Iterator[Outcome]:
    if label in wanted:
        yield _ours(job, label, X, y, X_test)
    yield from peer_outcomes(job.peers(), wanted - {label}, X, y, X_test)


def _ours(job, label, X, y, X_test) -> Outcome:
    try:
        start = time.perf_counter()
        model = job.ours().fit(X, y)
        seconds = time.perf_counter() - start
        return Outcome(label, model.predict_proba(X_test), seconds)
    except Exception as error:
        return Outcome(label, None, np.nan, f"{type(error).__name__}: {error}")


def run(
    jobs: list[Job],
    path,
    models: str = "all",
    label: str = OURS,
    replace: bool = False,
    only: str = "",
    skip_slow: bool = False,
    n_jobs: int = 1,
) -> None:
    """Compute what is missing in the file, or everything if ``replace``.

    Parameters
    ----------
    models : {"all", "peers", "ours"}
        What is fitted.
    label : str
        The name under which our figures are stored.
    only : str
        Part of ``case setting`` that selects jobs.
    skip_slow : bool
        Whether slow jobs are left for a later run.
    """
    todo = []
    known = {} if replace else results.read(path)
    for job in jobs:
        wanted = set() if models == "ours" else set(names_of(job.peers()))
        if models != "peers":
            wanted.add(label)
        wanted = {name for name in wanted if (job.case, job.setting, name) not in known}
        if wanted and only in f"{job.case} {job.setting}" and not (skip_slow and job.slow):
            todo.append((job, wanted))
    start = time.perf_counter()
    for number, (job, rows, seconds) in enumerate(_computed(todo, label, n_jobs), 1):
        results.append(path, rows)
        so_far = (time.perf_counter() - start) / 60
        best = min(rows, key=lambda row: np.nan_to_num(row.log_loss, nan=np.inf))
        print(
            f"{number}/{len(todo)} {job.case} {job.setting}: {seconds:.1f} s ({so_far:.1f} min),"
            f" best {best.model} {best.log_loss:.4f}",
            flush=True,
        )


def _computed(todo, label, n_jobs) -> Iterator[tuple[Job, list[Row], float]]:
    def timed(job, wanted):
        start = time.perf_counter()
        rows = compute(job, wanted, label)
        return job, rows, time.perf_counter() - start

    if n_jobs == 1:
        return (timed(*task) for task in todo)
    return Parallel(n_jobs, return_as="generator_unordered")(delayed(timed)(*task) for task in todo)
