"""Choose a calibration by cross-fitted log-loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.weights import HEAVIEST
from manyclass.calibration.base import Calibration
from manyclass.calibration.crossfitting import crossfitted_probabilities, left_out_folds
from manyclass.combiners.coupling.kernels.transposed import LOWEST
from manyclass.scores.out_of_sample import DenseScores, OutOfSampleScores

# Standard errors by which two losses must differ to be told apart. A choice: the usual one.
CANNOT_TELL = 1.0


class Choice(NamedTuple):
    """A calibration, and the evidence for it. The keys are names of calibrations."""

    method: type[Calibration]
    """The calibration that was chosen."""
    losses: dict[str, float]
    """Mean cross-fitted log-loss of each candidate; empty if there is one or no evidence."""
    differences: dict[str, float]
    """Mean log-loss minus that of the best candidate."""
    standard_errors: dict[str, float]
    """Standard error of each difference, over rows."""

    def __str__(self) -> str:
        if not self.losses:
            return self.method.name
        others = ", ".join(f"{name} {loss:.4f}" for name, loss in self.losses.items())
        return f"{self.method.name}; cross-fitted log-loss: {others}"


def choose(
    candidates: Sequence[type[Calibration]],
    scores: OutOfSampleScores,
    *,
    most_entries: int = 2_000_000,
    most_columns: int = 1000,
) -> Choice:
    """Return the simplest calibration that the evidence cannot tell from the best.

    The evidence is the binary log-loss of all samples in the columns that they take part in. It is
    cross-fitted: each fold is evaluated by calibrations that were fitted without it. If there is
    no evidence, because every class has a single sample, the simplest calibration is chosen.

    Parameters
    ----------
    candidates : sequence of types of Calibration
        From the simplest to the least simple. The first is chosen whose mean loss is at most
        one standard error of the difference above the lowest.
    scores : OutOfSampleScores
        Their sample weights count as repeated rows.
    most_entries, most_columns : int
        Scores (rows times columns) and columns to use, which bound the cost. If there are more,
        columns are chosen at random, always the same. At least 16 columns are used, if there are
        as many. If they have too many scores, rows are chosen at random as well.

    Examples
    --------
    Log-odds of the true probabilities need no calibration. Twice these log-odds do.

    >>> import numpy as np
    >>> from manyclass import codes
    >>> from manyclass.calibration import Isotonic, Sigmoid, Unchanged
    >>> from manyclass.calibration.choosing import choose
    >>> from manyclass.scores.out_of_sample import DenseScores
    >>> rng = np.random.default_rng(0)
    >>> log_odds = 2.0 * rng.normal(size=(500, 1))
    >>> y = (rng.random(500) < 1.0 / (1.0 + np.exp(-log_odds[:, 0]))).astype(int)
    >>> code = np.array([[-1], [1]], dtype=np.int8)
    >>> for factor in (1.0, 2.0):
    ...     scores = DenseScores(factor * log_odds, y, code, np.ones(500))
    ...     choose([Unchanged, Sigmoid, Isotonic], scores).method.name
    'unchanged'
    'sigmoid'
    """
    if len(candidates) == 1:
        return Choice(candidates[0], {}, {}, {})
    evidence = _thinned(scores, most_entries, most_columns)
    folds = left_out_folds(evidence)
    rows = np.sort(np.concatenate(folds)) if folds else np.empty(0, dtype=np.intp)
    (block,) = evidence.column_blocks(evidence.weights)
    sides = np.where(block.usable(), block.sides, 0)[rows]
    weights, n_entries = evidence.weights[rows], np.count_nonzero(sides, axis=1)
    total = weights @ n_entries
    if not total > 0.0:
        return Choice(candidates[0], {}, {}, {})
    losses = np.array([_row_losses(method, evidence, rows, sides) for method in candidates])
    return simplest_of_the_best(candidates, losses, weights, n_entries)


def simplest_of_the_best(
    candidates: Sequence[type[Calibration]],
    losses: Floats,
    weights: Floats,
    n_entries: Places | None = None,
) -> Choice:
    """Return the first candidate whose mean loss cannot be told from the lowest.

    Parameters
    ----------
    candidates : sequence of types of Calibration
        From the simplest to the least simple.
    losses : array of shape (c, m)
        Sum of the losses of each row, by each candidate.
    weights : array of shape (m,)
        Sample weights.
    n_entries : array of shape (m,), optional
        Number of losses in the sum of each row; 1 by default.
    """
    n_entries = np.ones(len(weights), dtype=np.intp) if n_entries is None else n_entries
    total = weights @ n_entries
    means = losses @ weights / total
    best = np.argmin(means)
    differences = means - means[best]
    # A mean is a ratio of sums over rows. Its error is that of the residuals of the rows.
    residuals = losses - losses[best] - differences[:, None] * n_entries
    errors = np.sqrt(residuals**2 @ weights) / total
    chosen = candidates[int(np.argmax(differences <= CANNOT_TELL * errors))]
    names = [method.name for method in candidates]
    figures = (means, differences, errors)
    return Choice(chosen, *(dict(zip(names, each.tolist(), strict=True)) for each in figures))


def _row_losses(
    method: type[Calibration], scores: OutOfSampleScores, rows: Places, sides: Code
) -> Floats:
    """Return the sum of the cross-fitted losses of each row, shape (m,).

    ``rows`` (m,) are in ascending order; ``sides`` (m, l) is 0 where there is no score.
    """
    _, r = crossfitted_probabilities(method, scores, rows)  # all of them: folds have all rows
    r = np.clip(r, LOWEST, 1.0 - LOWEST)
    losses = -np.log(np.where(sides > 0, r, 1.0 - r))
    return losses.sum(axis=1, where=sides != 0)


def _thinned(scores: OutOfSampleScores, most_entries: int, most_columns: int) -> DenseScores:
    """Return the scores of a part of the columns and rows, as described in :func:`choose`."""
    rng = np.random.default_rng(0)
    weights = np.minimum(scores.weights, HEAVIEST)  # keeps their sums finite
    rows, n_columns = np.flatnonzero(weights > 0), scores.n_columns
    width = min(n_columns, most_columns, max(16, most_entries // max(1, len(rows))))
    if len(rows) * width > most_entries:
        complete = np.intersect1d(rows, scores.complete_rows())
        rows = complete if len(complete) else rows  # the others have less to tell
        rows = np.sort(rng.permutation(rows)[: max(1, most_entries // width)])
    columns = np.sort(rng.permutation(n_columns)[:width])
    values, sides = np.full((len(rows), width), np.nan), np.zeros((len(rows), width), np.int8)
    for block in scores.column_blocks(weights):
        inside = (block.columns.start <= columns) & (columns < block.columns.stop)
        _, at, place = np.intersect1d(block.rows, rows, return_indices=True)
        source = np.ix_(at, columns[inside] - block.columns.start)
        target = np.ix_(place, np.flatnonzero(inside))
        values[target], sides[target] = block.scores[source], block.sides[source]
    numbers = None if scores.fold_numbers is None else scores.fold_numbers[rows]
    y, code = scores.y[rows], scores.code[:, columns]
    return DenseScores(values, y, code, weights[rows], numbers, sides)
