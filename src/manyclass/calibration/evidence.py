"""What calibration and scaling are chosen and fitted on: out-of-sample scores, coupled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass.calibration.base import Calibration
from manyclass.calibration.choosing import Choice, choose, simplest_of_the_best
from manyclass.calibration.crossfitting import crossfitted_probabilities, left_out_probabilities
from manyclass.calibration.native_evidence import NativeEvidence, code_of_sources
from manyclass.scaling import StructuredScaling
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scores.out_of_sample import OutOfSampleScores


class Evidence(NamedTuple):
    """Out-of-sample scores of the training rows, and how they become class probabilities."""

    scores: OutOfSampleScores
    """Scores of the columns."""
    native: NativeEvidence | None
    """What the learner's own multiclass model says, if it is used."""
    couple: Callable[[Floats], Floats]
    """Couples binary probabilities (m, l) to class probabilities (m, k)."""

    def choose(self, methods: Sequence[type[Calibration]], *, scaled: bool) -> Choice:
        """Return the best of the calibrations by cross-fitted log-loss.

        What counts are the class probabilities in the end. If they will get a structured scaling,
        each calibration is judged by its first stage; otherwise by the columns alone.
        """
        rows = np.empty(0, dtype=np.intp)
        if len(methods) > 1 and scaled:
            rows = self.rows(most=2000)
        if len(rows) == 0:
            return choose(methods, self.scores)
        losses = []
        for method in methods:
            known = self.coupled(*crossfitted_probabilities(method, self.scores, rows))
            losses.append(StructuredScaling().pooled_losses(**known))
        return simplest_of_the_best(methods, np.array(losses), known["weights"])

    def left_out(self, calibration: Calibration | None) -> dict[str, Any] | None:
        """Return what a scaling is fitted on; None if no row has scores in all columns.

        There are at most some thousand rows. The calibration is fitted again without some of
        them at a time, so that the scaling learns how good it is on rows that it has not seen.
        """
        found = self.left_out_rows(calibration)
        return None if found is None else self.coupled(*found)

    def left_out_rows(self, calibration: Calibration | None) -> tuple[Places, Floats] | None:
        """Return the rows of :meth:`left_out` and their binary probabilities."""
        rows = self.rows()
        return None if len(rows) == 0 else left_out_probabilities(calibration, self.scores, rows)

    def rows(self, most: int | None = None) -> Places:
        """Return rows with weight that one source scored in all columns, or some of them."""
        rows = self.scores.rows_of_one_source()
        most = most or rows_for_scaling(*self.scores.code.shape)
        if self.native is not None:
            rows = rows[np.isin(rows, self.native.scores.complete_rows())]
        rows = rows[self.scores.weights[rows] > 0]
        if len(rows) > most:
            rows = np.random.default_rng(0).choice(rows, most, replace=False)
        return rows

    def coupled(self, rows: Places, r: Floats) -> dict[str, Any]:
        """Couple the probabilities of some rows, and add what is known of them."""
        read: dict[str, Any] = {"columns": r, "others": []}
        code = self.scores.code
        if self.native is not None:
            read, code = self.native.beside(r, rows), code_of_sources(code)
        known = {"y": self.scores.y[rows], "weights": self.scores.weights[rows], "code": code}
        return {"p": self.couple(r), **read, **known}
