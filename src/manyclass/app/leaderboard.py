"""The result of a comparison: the candidates by rank, and which differences are noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t
from sklearn.pipeline import Pipeline

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import quoted
from manyclass.app.arguments import BASELINE
from manyclass.app.candidates import Candidate
from manyclass.app.description import Description
from manyclass.app.report import text_table
from manyclass.app.scoring import FIT, METRICS, PREDICT
from manyclass.app.verdict import verdict
from manyclass.classifier import CoupledBase
from manyclass.codes.build import NATIVE

BEHIND = "behind best"
LEVEL = 0.95  # of confidence intervals: the usual one
MINUS = "\N{MINUS SIGN}"
BEST = "*"


@dataclass(frozen=True, eq=False, repr=False)
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
    def is_coupled(self) -> bool:
        """Whether it couples binary classifiers; a calibrated multiclass one does not."""
        estimator = self.candidate.estimator
        code = getattr(estimator, "code", None)
        return isinstance(estimator, CoupledBase) and not (isinstance(code, str) and code == NATIVE)

    @property
    def is_baseline(self) -> bool:
        """Whether it knows class frequencies only."""
        return self.name == BASELINE

    def __repr__(self) -> str:
        """The means of the metrics: the probabilities would fill pages."""
        known = [metric for metric in self.values if metric not in (FIT, PREDICT)]
        means = ", ".join(f"{metric} {self.mean(metric):.3g}" for metric in known)
        return f"<Entry {self.name}: {means or self.failure}>"

    def tested(self) -> tuple[NDArray[np.intp], Floats]:
        """Return the rows that were left out once, and their probabilities."""
        assert self.proba is not None
        rows = np.flatnonzero(np.isfinite(self.proba[:, 0]))
        return rows, self.proba[rows]

    def mean(self, metric: str) -> float:
        """Return the mean of a metric over the folds, or the median of seconds.

        A fold that compiles code, or meets other work of the machine, takes far longer.
        """
        over_folds = np.median if metric in (FIT, PREDICT) else np.mean
        return float(over_folds(self.values[metric]))

    def error(self, metric: str) -> float:
        """Return the standard error of the mean over the folds; NaN for a single one."""
        values = self.values[metric]
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


@dataclass(frozen=True)
class Difference:
    """The distance between two candidates, and its confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Half of the length of the interval."""
        return (self.high - self.low) / 2

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
    _gaps: dict[tuple[str, str, str], Difference] = field(
        init=False, repr=False, default_factory=dict
    )

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
        """The candidates that did not fail, the best first; the baseline is among them."""
        return [entry for entry in self.entries if entry.failure is None]

    @property
    def failed(self) -> list[Entry]:
        """The candidates that failed."""
        return [entry for entry in self.entries if entry.failure is not None]

    @property
    def measured(self) -> list[Entry]:
        """The candidates that did not fail, without the baseline."""
        return [entry for entry in self.ranked if not entry.is_baseline]

    @property
    def best(self) -> Entry:
        """The best candidate; the baseline is none."""
        if not self.measured:
            raise ValueError("every candidate failed: see the reasons in failed.")
        return self.measured[0]

    @property
    def baseline(self) -> Entry | None:
        """The entry that knows class frequencies only."""
        return next((entry for entry in self.ranked if entry.is_baseline), None)

    @property
    def pick(self) -> Entry | None:
        """The candidate to use: a fast one of those that are as good as the best.

        The best one, if it is hardly slower than the fastest; a simple one before others. None if
        the best one is not clearly better than class frequencies alone.
        """
        if not self.measured or not self._is_of_use(self.best):
            return None
        noise = 1.5  # times: a choice
        as_good = [self.best, *(entry for entry in self.tied if self._is_of_use(entry))]
        limit = noise * min(entry.mean(FIT) for entry in as_good)
        if self.best.mean(FIT) <= limit:
            return self.best
        fast = [entry for entry in as_good if entry.mean(FIT) <= limit]
        return next((entry for entry in fast if entry.candidate.is_simple), fast[0])

    @property
    def described(self) -> Entry:
        """The candidate that a report describes: the pick, or the best if there is none."""
        return self.pick or self.best

    def _is_of_use(self, entry: Entry) -> bool:
        """Return whether a candidate is clearly better than the baseline.

        The interval over two or three folds is very wide. Then it is enough to be better in each of
        them, and by more than the noise of the rows.
        """
        if self.baseline is None:
            return True
        gap, metric = self.difference(self.baseline, entry), self.metrics[0]
        if gap.low > 0 or len(self.folds) > 3:
            return gap.low > 0
        better = METRICS[metric].sign * (self.baseline.values[metric] - entry.values[metric])
        return bool((better > 0).all()) and (
            gap.mean > self._bootstrapped(self.baseline, entry, metric)
        )

    @property
    def all_notes(self) -> list[str]:
        """The notes on the data and on each candidate."""
        own = [f"{entry.name}: {note}" for entry in self.entries for note in entry.notes]
        return [*self.notes, *own]

    def best_of(self, *, coupled: bool) -> Entry | None:
        """Return the best coupled classifier, or the best of the others, if there is one."""
        return next((entry for entry in self.measured if entry.is_coupled == coupled), None)

    def difference(self, entry: Entry, best: Entry, metric: str | None = None) -> Difference:
        """Return the distance between two candidates, paired over the folds.

        Folds share most of their training rows, so their values vary less than those of new data.
        The variance is therefore that of Nadeau & Bengio (2003), section 3.

        Parameters
        ----------
        entry, best : Entry
            The difference says by how much ``entry`` is worse than ``best``.
        metric : str, optional
            The first one when omitted.

        Returns
        -------
        Difference
            The mean, and its interval at the level of 95 %. With a single split into training and
            test rows, the interval comes from the test rows drawn again and again.

        References
        ----------
        C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine
        Learning 52.
        """
        metric = self.metrics[0] if metric is None else metric
        key = entry.name, best.name, metric
        if key not in self._gaps:
            self._gaps[key] = self._difference(entry, best, metric)
        return self._gaps[key]

    def _difference(self, entry: Entry, best: Entry, metric: str) -> Difference:
        behind = METRICS[metric].sign * (entry.values[metric] - best.values[metric])
        n, mean = len(behind), float(behind.mean())
        if n == 1:
            width = self._bootstrapped(entry, best, metric)
        else:
            overlap = np.mean([len(test) / len(train) for train, test in self.folds])
            error = np.sqrt((1 / n + overlap) * behind.var(ddof=1))
            width = float(t.ppf(0.5 + LEVEL / 2, n - 1) * error)
        return Difference(mean, mean - width, mean + width)

    def _bootstrapped(self, entry: Entry, best: Entry, metric: str, times: int = 200) -> float:
        """Return half of the interval of a difference over ``times`` samples of the test rows."""
        if entry is best:
            return 0.0
        if entry.proba is None or best.proba is None:
            return np.inf
        rng, rows, both = np.random.RandomState(0), entry.tested()[0], (entry.proba, best.proba)
        found = []
        for _ in range(times):
            drawn = rng.choice(rows, len(rows))
            of_entry, of_best = (METRICS[metric](self.target[drawn], p[drawn]) for p in both)
            found.append(of_entry - of_best)
        return float(t.ppf(0.5 + LEVEL / 2, times) * np.std(found))

    @property
    def tied(self) -> list[Entry]:
        """The candidates that cannot be told from the best: the interval of each holds zero."""
        others = self.measured[1:]
        return [entry for entry in others if self.difference(entry, self.best).is_noise]

    def verdict(self) -> str:
        """Say which candidate to use, and how sure that is."""
        return verdict(self)

    def apart(self, entry: Entry, best: Entry) -> str:
        """Return by how much an entry is worse than another, and half of the interval."""
        write, gap = self._writer(self.metrics[0]), self.difference(entry, best)
        return f"{write(gap.mean)} ± {write(gap.width)}"

    def behind(self, entry: Entry) -> str:
        """Return the distance from the best candidate, for a table."""
        return "best" if entry is self.best else self.apart(entry, self.best)

    def standing(self, entry: Entry) -> str:
        """Return how a candidate stands against the best, in words.

        None is clearly worse while one of a lower rank is as good: it is perhaps worse.
        """
        if entry is self.best:
            return "best"
        if entry.is_baseline:
            return "class frequencies alone"
        if entry in self.tied:
            return "as good, within noise"
        below = self.ranked[self.ranked.index(entry) :]
        return "perhaps worse" if any(one in self.tied for one in below) else "clearly worse"

    # ------------------------------------------------------------------ as a table

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the table: metrics, then seconds."""
        return (*self.metrics, FIT, PREDICT)

    def cell(self, entry: Entry, column: str) -> str:
        """Return the mean as text."""
        return self._writer(column)(entry.mean(column))

    def is_best(self, entry: Entry, column: str) -> bool:
        """Return whether the mean is the best of the column, as it is printed.

        The baseline is never marked: it is fast, and well calibrated, and of no use.
        """
        if entry.is_baseline:
            return False
        sign = METRICS[column].sign if column in METRICS else 1
        best = min((e.mean(column) for e in self.measured), key=lambda value: sign * value)
        return self.cell(entry, column) == self._writer(column)(best)

    def _writer(self, column: str) -> Callable[[float], str]:
        """Return a function that formats the numbers of a column with the same digits."""
        smallest = min(abs(entry.mean(column)) for entry in self.ranked)
        if column in METRICS and METRICS[column].in_percent:
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
            The last columns are left out if the table would be wider with them.

        Returns
        -------
        str
        """
        columns, failed = list(self.columns), []
        failed = [f"{entry.name}  failed: {entry.failure}" for entry in self.failed]
        if not self.measured:
            return "\n".join(failed)
        table = self._text(columns)
        while width is not None and table.index("\n") > width and len(columns) > 1:
            table = self._text(columns := columns[:-1])
        return "\n".join([table, *failed])

    def _text(self, columns: Sequence[str]) -> str:
        def cells(entry: Entry) -> list[str]:
            marked = [
                self.cell(entry, c) + (BEST if self.is_best(entry, c) else " ") for c in columns
            ]
            return [entry.name, marked[0], f"{self.behind(entry)} ", *marked[1:]]

        header = ["", *(f"{c} " for c in (columns[0], BEHIND, *columns[1:]))]
        return text_table(header, [cells(entry) for entry in self.ranked])

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        from html import escape

        head = "".join(
            f"<th>{escape(c)}</th>" for c in ("", *self.columns[:1], BEHIND, *self.columns[1:])
        )
        rows = []
        for entry in self.ranked:
            cells = [
                f"<b>{self.cell(entry, c)}</b>" if self.is_best(entry, c) else self.cell(entry, c)
                for c in self.columns
            ]
            cells.insert(1, self.behind(entry))
            rows.append(f"<th>{escape(entry.name)}</th>" + "".join(f"<td>{c}</td>" for c in cells))
        rows += [
            f"<th>{escape(e.name)}</th><td colspan={len(self.columns) + 1}>failed: "
            f"{escape(str(e.failure))}</td>"
            for e in self.failed
        ]
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self.verdict())}</p>"
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the first metric of each candidate, with the interval of its distance from the best.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        matplotlib axes
        """
        from manyclass.app.figures import draw_ranking

        return draw_ranking(self, ax)

    @property
    def frame(self) -> Any:
        """The means and standard errors as a DataFrame, one row per candidate.

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
