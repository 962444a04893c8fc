"""Slow oracles of learning in batches: one column, one row at a time."""

from __future__ import annotations

from math import nan

import numpy as np
from sklearn.base import clone


def positive_score(model, x) -> float:
    if hasattr(model, "predict_proba"):
        return model.predict_proba(x)[0, 1]
    return model.decision_function(x)[0]


class Stream:
    """One learner for each column, and the scores of rows before the learner sees them."""

    def __init__(self, estimator, code):
        self.code = code
        self.learners = [clone(estimator) for _ in range(code.shape[1])]
        self.seen: list[set[int]] = [set() for _ in range(code.shape[1])]
        self.scores: list[list[float]] = []
        self.y: list[int] = []

    def learn(self, X, y) -> None:
        if any(len(sides) == 2 for sides in self.seen):
            for s in range(len(y)):
                self.scores.append(self.answers(X[[s]]))
                self.y.append(int(y[s]))
        for b, learner in enumerate(self.learners):
            rows = [s for s in range(len(y)) if self.code[y[s], b] != 0]
            if rows:
                target = [int(self.code[y[s], b] > 0) for s in rows]
                learner.partial_fit(X[rows], target, classes=[0, 1])
                self.seen[b] |= set(target)

    def answers(self, x) -> list[float]:
        return [
            positive_score(learner, x) if len(sides) == 2 else nan
            for learner, sides in zip(self.learners, self.seen, strict=True)
        ]

    def later_half(self):
        """Scores, classes and weights of the later half of each class."""
        scores, y, weights = [], [], []
        for c in sorted(set(self.y)):
            rows = [s for s in range(len(self.y)) if self.y[s] == c]
            late = [s for turn, s in enumerate(rows) if 2 * turn >= len(rows)]
            used = late if len(late) >= 10 else rows
            scores += [self.scores[s] for s in used]
            y += [c] * len(used)
            weights += [len(rows) / len(used)] * len(used)
        return np.array(scores), np.array(y), np.array(weights)


def reservoir(y, k: int, room: int, draws) -> list[dict[int, int]]:
    """Return the row in each slot of each class at the end. Only full classes use the draws."""
    slots: list[dict[int, int]] = [{} for _ in range(k)]
    for row, c in enumerate(y):
        turn = len(slots[c])
        slots[c][turn if turn < room else draws(c)] = row
    return slots
