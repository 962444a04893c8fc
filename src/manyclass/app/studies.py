"""A closer look at the candidate to use: which columns it uses, and what more rows would give."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from manyclass.app.inputs import as_frame, as_labels, draw
from manyclass.app.leaderboard import Leaderboard
from manyclass.app.scoring import METRICS


class Importance(NamedTuple):
    """How much worse the first metric is if the values of a column are shuffled."""

    column: str
    mean: float
    deviation: float


class Point(NamedTuple):
    """The first metric of models trained on a number of rows."""

    rows: int
    mean: float
    deviation: float


class Studies(NamedTuple):
    """What was found out about the candidate."""

    importance: list[Importance] = []  # noqa: RUF012
    """The most important columns first; empty if there are too many columns."""
    curve: list[Point] = []  # noqa: RUF012
    """The learning curve, if it was asked for."""


def study(board: Leaderboard, X: Any, *, curve: bool = False) -> Studies:
    """Study the candidate that a report describes."""
    if not board.measured or board.described.pipeline is None:
        return Studies()
    X, labels = as_frame(X), as_labels(board.classes)[board.target]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # the comparison has shown them
        return Studies(
            importance(board, X, labels), learning_curve(board, X, labels) if curve else []
        )


def importance(
    board: Leaderboard,
    X: Any,
    labels: Any,
    *,
    repeats: int = 3,
    rows: int = 1_000,
    most_columns: int = 200,
) -> list[Importance]:
    """Shuffle each column in test rows of the first fold, and measure what that costs.

    At most ``rows`` rows are used, ``repeats`` times, and tables with more than ``most_columns``
    are left out. All are choices: a page should not take longer than its comparison.
    """
    if X.shape[1] > most_columns:
        return []
    train, test = board.folds[0]
    rng = np.random.RandomState(board.random_state)
    test = np.sort(rng.permutation(test)[:rows])
    model = clone(board.described.pipeline).fit(X.iloc[train], labels[train])
    metric, true, table = METRICS[board.metrics[0]], board.target[test], X.iloc[test]
    before = metric(true, model.predict_proba(table))
    found = []
    for name in table.columns:
        losses = []
        for _ in range(repeats):
            shuffled = table.copy()
            shuffled[name] = table[name].to_numpy()[rng.permutation(len(table))]
            losses.append(metric.sign * (metric(true, model.predict_proba(shuffled)) - before))
        found.append(Importance(str(name), float(np.mean(losses)), float(np.std(losses))))
    return sorted(found, key=lambda one: -one.mean)


def learning_curve(
    board: Leaderboard, X: Any, labels: Any, *, shares: tuple[float, ...] = (0.125, 0.25, 0.5)
) -> list[Point]:
    """Train the candidate on shares of each fold, and add what all rows gave."""
    metric = METRICS[board.metrics[0]]
    found = []
    for share in shares:
        values, sizes = [], []
        for train, test in board.folds:
            part = train[draw(board.target[train], int(share * len(train)), board.random_state)]
            model = clone(board.described.pipeline).fit(X.iloc[part], labels[part])
            values.append(metric(board.target[test], model.predict_proba(X.iloc[test])))
            sizes.append(len(part))
        found.append(Point(int(np.mean(sizes)), float(np.mean(values)), float(np.std(values))))
    whole = board.described.values[board.metrics[0]]
    rows = int(np.mean([len(train) for train, _ in board.folds]))
    return [*found, Point(rows, float(whole.mean()), float(whole.std()))]
