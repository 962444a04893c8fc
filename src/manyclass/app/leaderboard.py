"""The result of a comparison: the candidates by rank, and which differences are noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.pipeline import Pipeline

from manyclass._lib.messages import quoted
from manyclass.app.candidates import Candidate
from manyclass.app.columns import kinds_of
from manyclass.app.report import text_table
from manyclass.classifier import CoupledBase

Floats = NDArray[np.float64]

FIT, PREDICT = "fit s", "predict s"
LEVEL = 0.95  # of confidence intervals: the usual one
MINUS = "\N{MINUS SIGN}"
BEST = "*"


@dataclass(frozen=True)
class Description:
    """A table in numbers; see :func:`describe`."""

    n_rows: int
    n_columns: int
    """Columns, without the target."""
    kinds: dict[str, int]
    """Number of columns of each kind: "number", "category", "bool", "date"."""
    missing: dict[str, int]
    """Missing values of each column that has some, most first."""
    class_counts: dict[Any, int]
    """Rows of each class, in the order of the classes."""

    @property
    def n_missing(self) -> int:
        """Missing values in all."""
        return sum(self.missing.values())


def describe(X: Any, classes: list[Any], target: NDArray[np.intp]) -> Description:
    """Describe a DataFrame and its target."""
    missing = Counter({str(name): int(X[name].isna().sum()) for name in X.columns})
    counts = np.bincount(target, minlength=len(classes))
    return Description(
        n_rows=len(X),
        n_columns=X.shape[1],
        kinds=dict(Counter(kinds_of(X).values()).most_common()),
        missing={name: n for name, n in missing.most_common() if n > 0},
        class_counts=dict(zip(classes, counts.tolist(), strict=True)),
    )


@dataclass(frozen=True, eq=False)
class Entry:
    """The results of one candidate."""

    candidate: Candidate
    """The candidate."""
    pipeline: Pipeline | None
    """The pipeline of all folds, unfitted and with seeds: the conversion of columns, and the
    classifier. None if it could not be built."""
    values: dict[str, Floats] = field(default_factory=dict)
    """The value of each metric, and the seconds, in each fold; empty if it failed."""
    proba: Floats | None = None
    """Out-of-fold probabilities, shape (n, k); NaN in rows that were never left out."""
    incoherence: Floats | None = None
    """Out-of-fold incoherence, shape (n,), of coupled classifiers."""
    code: NDArray[np.int8] | None = None
    """The code matrix of coupled classifiers."""
    calibration: tuple[str, ...] = ()
    """What coupled classifiers calibrated in the first fold, in words."""
    notes: tuple[str, ...] = ()
    """Warnings, and whether it had fewer training rows."""
    failure: str | None = None
    """The reason, if it failed."""

    @property
    def name(self) -> str:
        """The name of the candidate."""
        return self.candidate.name

    @property
    def ours(self) -> bool:
        """Whether it couples binary classifiers."""
        return isinstance(self.candidate.estimator, CoupledBase)

    def tested(self) -> tuple[NDArray[np.intp], Floats]:
        """Return the rows that were left out once, and their probabilities."""
        assert self.proba is not None
        rows = np.flatnonzero(np.isfinite(self.proba[:, 0]))
        return rows, self.proba[rows]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the folds."""
        return float(self.values[metric].mean())

    def error(self, metric: str) -> float:
        """Return the standard error of the mean over the folds."""
        values = self.values[metric]
        return float(values.std(ddof=1) / np.sqrt(len(values)))


@dataclass(frozen=True)
class Difference:
    """The distance between two candidates, and its confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def is_noise(self) -> bool:
        """Whether the interval contains zero."""
        return self.low <= 0 <= self.high


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """All candidates: the best first, failed ones last.

    Iterate over it for its entries; print it for a table.
    """

    entries: tuple[Entry, ...]
    """Best first."""
    metrics: tuple[str, ...]
    """Names of the metrics; the first one ranks."""
    classes: list[Any]
    """The labels, in the order of the columns of probabilities."""
    target: NDArray[np.intp]
    """The class of each row, as its place among the classes."""
    index: list[Any]
    """The index of the table, which names the rows."""
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]
    """Rows to train and to test on."""
    random_state: int
    """The seed."""
    description: Description
    """The data in numbers."""
    notes: tuple[str, ...]
    """What was left out or changed, and why."""
    seconds: float
    """How long everything took."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> Entry:
        found = {entry.name: entry for entry in self.entries}
        if name not in found:
            raise KeyError(f"no candidate {quoted(name)}: there are {', '.join(found)}")
        return found[name]

    @property
    def ranked(self) -> list[Entry]:
        """The candidates that did not fail, the best first."""
        return [entry for entry in self.entries if entry.failure is None]

    @property
    def failed(self) -> list[Entry]:
        """The candidates that failed."""
        return [entry for entry in self.entries if entry.failure is not None]

    @property
    def best(self) -> Entry:
        """The best candidate."""
        if not self.ranked:
            raise ValueError("every candidate failed: see the reasons in failed.")
        return self.ranked[0]

    @property
    def all_notes(self) -> list[str]:
        """The notes on the data and on each candidate."""
        own = [f"{entry.name}: {note}" for entry in self.entries for note in entry.notes]
        return [*self.notes, *own]

    def best_of(self, *, ours: bool) -> Entry | None:
        """Return the best coupled classifier, or the best of the others, if there is one."""
        return next((entry for entry in self.ranked if entry.ours == ours), None)

    def difference(self, entry: Entry, best: Entry, metric: str | None = None) -> Difference:
        """Return the distance between two candidates, paired over the folds.

        Folds share most of their training rows, so their values vary less than those of new data.
        The variance is therefore that of Nadeau & Bengio (2003), section 3.

        Parameters
        ----------
        entry, best : Entry
            The difference is the metric of ``entry`` minus that of ``best``.
        metric : str, optional
            The first one when omitted.

        Returns
        -------
        Difference
            The mean, and its interval at the level of 95 %.

        References
        ----------
        C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine
        Learning 52.
        """
        metric = self.metrics[0] if metric is None else metric
        behind = entry.values[metric] - best.values[metric]
        n = len(behind)
        overlap = np.mean([len(test) / len(train) for train, test in self.folds])
        error = np.sqrt((1 / n + overlap) * behind.var(ddof=1))
        width = float(t.ppf(0.5 + LEVEL / 2, n - 1) * error)
        mean = float(behind.mean())
        return Difference(mean, mean - width, mean + width)

    @property
    def tied(self) -> list[Entry]:
        """The candidates whose distance from the best is noise."""
        others = [entry for entry in self.ranked if entry is not self.best]
        return [entry for entry in others if self.difference(entry, self.best).is_noise]

    def verdict(self) -> str:
        """Recommend a candidate, and say whether its lead is more than noise."""
        if not self.ranked:
            return "Every candidate failed. There is none to pick."
        best, metric = self.best, self.metrics[0]
        number = self._writer(metric)
        picked = f"Pick {best.name}: its {metric} of {number(best.mean(metric))} is the lowest"
        if len(self.ranked) == 1:
            return f"{picked}, as the only one that was measured."
        second = self.ranked[1]
        gap = self.difference(second, best)
        interval = (
            f"the difference is {number(gap.mean)}, its {LEVEL:.0%} interval over the folds "
            f"{number(gap.low)} to {number(gap.high)}"
        )
        if not gap.is_noise:
            return f"{picked}, ahead of {second.name} by more than the noise: {interval}."
        return (
            f"{picked}, but its lead over {second.name} is within the noise: {interval}."
            f"{self._others(second)}"
        )

    def _others(self, second: Entry) -> str:
        """Name the other candidates that are tied with the best, and the fastest of them."""
        tied = self.tied
        more = [entry.name for entry in tied if entry is not second]
        also = f" So is that over {listed(more)}." if more else ""
        fastest = min([self.best, *tied], key=lambda entry: entry.mean(FIT))
        if fastest is self.best:
            return f"{also} It is also the fastest of these to fit."
        worth_saying = 1.5  # times faster: a choice
        if self.best.mean(FIT) < worth_saying * fastest.mean(FIT):
            return also
        return (
            f"{also} {fastest.name} fits fastest of these: {fastest.mean(FIT):.2g} s, where "
            f"{self.best.name} takes {self.best.mean(FIT):.2g} s."
        )

    # ------------------------------------------------------------------ as a table

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the table: metrics, then seconds."""
        return (*self.metrics, FIT, PREDICT)

    def cell(self, entry: Entry, column: str) -> str:
        """Return the mean, and for metrics its standard error, as text."""
        write = self._writer(column)
        mean = write(entry.mean(column))
        return mean if column in (FIT, PREDICT) else f"{mean} ± {write(entry.error(column))}"

    def is_best(self, entry: Entry, column: str) -> bool:
        """Return whether the mean is the smallest of the column, as it is printed."""
        write = self._writer(column)
        return write(entry.mean(column)) == write(min(e.mean(column) for e in self.ranked))

    def _writer(self, column: str) -> Callable[[float], str]:
        """Return a function that formats the numbers of a column with the same digits."""
        smallest = min(entry.mean(column) for entry in self.ranked)
        if column == "error":
            return lambda x: f"{100 * x:.{1 if smallest > 0.01 else 2}f} %".replace("-", MINUS)
        digits = 2 if column in (FIT, PREDICT) else 3 if smallest > 0.1 else 4
        return lambda x: f"{x:.{digits}f}".replace("-", MINUS)

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None) -> str:
        """Return the table as text, the best of each column marked by a star.

        Parameters
        ----------
        width : int, optional
            Standard errors are left out if the table would be wider with them.

        Returns
        -------
        str
        """
        table = self._text(self.cell)
        if width is not None and table.index("\n") > width:
            table = self._text(lambda entry, column: self.cell(entry, column).partition(" ±")[0])
        failed = [f"{entry.name}  failed: {entry.failure}" for entry in self.failed]
        return "\n".join([table, *failed] if self.ranked else failed)

    def _text(self, cell: Callable[[Entry, str], str]) -> str:
        rows = [
            [
                entry.name,
                *(cell(entry, c) + (BEST if self.is_best(entry, c) else " ") for c in self.columns),
            ]
            for entry in self.ranked
        ]
        return text_table(["", *(f"{column} " for column in self.columns)], rows)

    def to_frame(self) -> Any:
        """Return the means and standard errors as a DataFrame, one row per candidate.

        Those that failed have NaN, and the reason in the column "failure".
        """
        import pandas as pd

        rows: list[dict[str, Any]] = [
            {"name": entry.name}
            | {c: entry.mean(c) if entry.values else np.nan for c in self.columns}
            | {f"{m} ±": entry.error(m) if entry.values else np.nan for m in self.metrics}
            | {"failure": entry.failure}
            for entry in self.entries
        ]
        return pd.DataFrame(rows).set_index("name")


def listed(names: Sequence[str]) -> str:
    """Join names for a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
