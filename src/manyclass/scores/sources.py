"""Where out-of-sample scores come from: the meaning of the parameter ``cv``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Flags, Places
from manyclass._lib.messages import quoted, warn
from manyclass.banks import Bank
from manyclass.scores.crossfit import CrossFittedScores, calibration_rows
from manyclass.scores.folds import Fold, fold_numbers, is_number_of_folds, make_folds, warn_single
from manyclass.scores.leave_one_out import FitPart, leave_one_out
from manyclass.scores.out_of_sample import OutOfSampleScores


class Needed(NamedTuple):
    """Which scores are needed."""

    enough: int | None = None
    """No more folds are fitted when this many rows have been left out."""
    all_rows: bool = False
    """Whether leave-one-out scores all rows, and not only enough for a calibration."""
    n_by_folds: int = 0
    """Number of rows that folds score in all columns, for a scaling."""


NEEDED = Needed()


class ScoreSource(ABC):
    """A way to get out-of-sample scores of the training set."""

    gives_scores = True
    refits = True
    """Whether models are fitted again, without the rows that get scores."""

    def make_folds(
        self, X, y: Places, classes: NDArray, split_params: Mapping[str, Any], used: Flags
    ) -> list[Fold]:
        """Return the folds, if any; warn about classes that cannot be left out.

        ``used`` are the rows that have a weight, ``split_params`` further arguments of the
        splitter.
        """
        return []

    @abstractmethod
    def scores(
        self, bank: Bank, fit: FitPart, X, y, code, weights, folds, needed: Needed = NEEDED
    ) -> OutOfSampleScores | None:
        """Return out-of-sample scores.

        The first arguments are those of :func:`~manyclass.scores.leave_one_out.leave_one_out`.
        """


class NoScores(ScoreSource):
    """``cv=None``: nothing is left out."""

    gives_scores = False

    def scores(self, bank, fit, X, y, code, weights, folds, needed=NEEDED):
        """Return None."""
        return None


@dataclass(frozen=True)
class Splitter(ScoreSource):
    """A splitter or an iterable of splits of the user's own: every fold is fitted."""

    cv: Any

    def make_folds(self, X, y, classes, split_params, used):
        """Return the user's folds."""
        return make_folds(self.cv, X, y, classes, split_params)

    def scores(self, bank, fit, X, y, code, weights, folds, needed=NEEDED):
        """Fit every fold."""
        return _crossfit(bank, fit, X, y, code, weights, folds, needed._replace(enough=None))


@dataclass(frozen=True)
class StratifiedFolds(ScoreSource):
    """A number of stratified folds, of which only as many are fitted as are needed."""

    n_folds: int

    def make_folds(self, X, y, classes, split_params, used):
        """Return stratified folds."""
        return make_folds(self.n_folds, X, y, classes, used=used)

    def scores(self, bank, fit, X, y, code, weights, folds, needed=NEEDED):
        """Fit the folds until enough rows have been left out."""
        return _crossfit(bank, fit, X, y, code, weights, folds, needed)


@dataclass(frozen=True)
class LeaveOneOut(ScoreSource):
    """``cv="loo"``: analytic leave-one-out, and folds in columns where it is not reliable.

    Large training sets are scored in part: see
    :func:`~manyclass.scores.crossfit.calibration_rows`, also for the parameters.
    """

    refits = False

    enough: int = 10_000
    of_a_class: int = 400

    def make_folds(self, X, y, classes, split_params, used):
        """Return no folds: they are made later, if they are needed."""
        warn_single(y, classes)
        return []

    def scores(self, bank, fit, X, y, code, weights, folds, needed=NEEDED):
        """Apply the formula; warn where folds had to be fitted."""
        rows, row_weights = np.arange(len(y)), weights
        if not needed.all_rows:
            rows, row_weights = calibration_rows(
                y, weights, enough=self.enough, of_a_class=self.of_a_class
            )
        chosen = rows, row_weights, needed.n_by_folds
        scores, remark = leave_one_out(bank, fit, X, y, code, weights, *chosen)
        if remark is not None:
            warn(remark)
        return scores


def _crossfit(bank, fit: FitPart, X, y, code, weights, folds, needed: Needed) -> CrossFittedScores:
    data, limits = (X, y, code, weights), needed._asdict()
    del limits["all_rows"]
    limits["fold_numbers"] = fold_numbers(folds, len(y))
    return CrossFittedScores(bank, lambda train: fit(train, None), *data, folds, **limits)


def resolve_cv(cv) -> ScoreSource:
    """Return the source of out-of-sample scores that ``cv`` means; sources are passed through."""
    if cv is None:
        return NoScores()
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(
                f"cv must be 'loo', a number, a splitter, splits or None, got {quoted(cv)}."
            )
        return LeaveOneOut()
    if isinstance(cv, ScoreSource):
        return cv
    return StratifiedFolds(cv) if is_number_of_folds(cv) else Splitter(cv)
