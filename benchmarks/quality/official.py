"""The official test splits: computed once, at the very end, and reported whatever they say.

A second run of the same label needs a reason. It is stored with its date, and the figures go to
files of their own, so that the first ones stay.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sklearn.model_selection import train_test_split

from benchmarks.quality import cases, results
from benchmarks.quality.peers import LEARNERS
from benchmarks.quality.run import FAST_FIRST, OURS, Job, learner_job, run, svm_job

LOG = results.FOLDER / "quality-official-log.csv"
COLUMNS = ["date", "run", "label", "event", "reason"]
PENALTIES = (1.0, 10.0)
MOST_ROWS = 5000
"""Training rows at most, a choice: the peers fit some 70 machines to each set. All test rows."""


def parts_of(name: str) -> cases.Parts:
    """Return the official training rows, at most ``MOST_ROWS``, and all official test rows."""
    X, X_test, y, y_test = cases.both_parts(name)
    if len(y) > MOST_ROWS:
        X, _, y, _ = train_test_split(X, y, train_size=MOST_ROWS, stratify=y, random_state=0)
    return cases.prepare(name, (X, X_test, y, y_test), standardised=True)


def jobs_of(group: str) -> Iterator[Job]:
    """Yield the jobs of a group on all sets."""
    for name in FAST_FIRST:
        key, parts = f"{name}-official-0", partial(parts_of, name)
        if group == "svm":
            yield from (svm_job(key, name, parts, C) for C in PENALTIES)
        else:
            yield from (learner_job(key, name, parts, learner) for learner in LEARNERS)


def official(
    label: str = OURS,
    again: str | None = None,
    n_jobs: int = 1,
    log: Path = LOG,
    compute=run,
) -> None:
    """Compute the official splits once; a run that was interrupted goes on.

    Parameters
    ----------
    again : str, optional
        The reason for another run.
    """
    number = start(label, again, log)
    scale = "official" if number == 1 else f"official-{number}"
    for group in ("svm", "learners"):
        path = results.path_of(group, scale)
        compute(list(jobs_of(group)), path, label=label, n_jobs=n_jobs)
    _write(log, number, label, "finished", "")


def start(label: str, again: str | None, log: Path) -> int:
    """Log the start of a run, and return its number. SystemExit if it would be a second one."""
    events = [entry for entry in read(log) if entry["label"] == label]
    number = max((int(entry["run"]) for entry in events), default=1)
    if any(entry["event"] == "finished" and int(entry["run"]) == number for entry in events):
        if not (again or "").strip():
            last = events[-1]["date"]
            raise SystemExit(
                f"the official splits were computed for {label!r} on {last}:"
                " a second run needs --again REASON"
            )
        number += 1
    _write(log, number, label, "started", again or "")
    return number


def read(log: Path) -> list[dict[str, str]]:
    """Return the entries of the log."""
    if not log.exists():
        return []
    with log.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _write(log: Path, number: int, label: str, event: str, reason: str) -> None:
    new = not log.exists()
    with log.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if new:
            writer.writerow(COLUMNS)
        today = datetime.now(UTC).date().isoformat()
        writer.writerow([today, number, label, event, reason])
