"""The learner's own multiclass model as further evidence for the scaling.

It gives three things: its class probabilities; the probabilities of each class against the rest by
a sigmoid of its scores, normalised; and the same as k further columns. The second differs from the
first where a learner's scores are not log-probabilities, or poor ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from manyclass._lib.arrays import Code, Floats, Places
from manyclass.banks import MARGIN, ScoreKind
from manyclass.calibration.base import Calibration
from manyclass.calibration.crossfitting import left_out_probabilities
from manyclass.scaling.input_checks import normalised
from manyclass.scores.out_of_sample import OutOfSampleScores


class NativeEvidence(NamedTuple):
    """Out-of-sample scores of the classes by the learner's own multiclass model."""

    kind: ScoreKind
    """Margins or log-odds."""
    scores: OutOfSampleScores
    """Its columns are classes against the rest."""
    calibration: Calibration
    """Of these columns, fitted on all rows."""

    def beside(self, r: Floats, rows: Places) -> dict[str, Any]:
        """Return what a scaling reads: ``r`` (m, l), and what this model says of these rows."""
        scores = self.scores[rows]
        against_rest = self.calibration.transform(scores.copy())
        left_out, values = left_out_probabilities(self.calibration, self.scores, rows)
        against_rest[np.isin(rows, left_out)] = values  # in the same order
        return sources(r, self.kind, scores, against_rest)


def sources(r: Floats, kind: ScoreKind, scores: Floats, against_rest: Floats) -> dict[str, Any]:
    """Return what a scaling reads of the columns and of the multiclass model.

    Parameters
    ----------
    r : array of shape (m, l)
        Probabilities of the columns of the code.
    kind, scores : ScoreKind, array of shape (m, k)
        What the multiclass model returns.
    against_rest : array of shape (m, k)
        Calibrated scores: probabilities of the classes against the rest.
    """
    own = softmax(scores, axis=1) if kind == MARGIN else normalised(expit(scores))
    return {"columns": np.hstack([r, against_rest]), "others": [own, normalised(against_rest)]}


def code_of_sources(code: Code) -> Code:
    """Return the code of the columns of :func:`sources`: no class takes part in the further ones.

    So they have effects of their own, and the features of the code's columns stay as they are.
    """
    return np.hstack([code, np.zeros((len(code), len(code)), dtype=code.dtype)])
