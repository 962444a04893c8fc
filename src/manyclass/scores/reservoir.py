"""A bounded store of scores out of a stream: of each class some rows, rather new than old.

Scores of a stream come from models that were still learning. Two things keep those of weak
models out. A full class makes room for every new row by dropping one of its rows at random
(biased reservoir sampling: C. C. Aggarwal, "On biased reservoir sampling in the presence of
stream evolution", VLDB 2006), so that a row's chance to be still there falls exponentially
with the number of rows of its class that came after it. And only the later half of what came
of each class is used, which matters as long as nothing had to be dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

MOST_OF_A_CLASS = 400
LEAST_OF_A_CLASS = 10
ENTRIES = 2**23  # of all rows together, unless that leaves too few of a class: 64 MB

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class Reservoir:
    """Scores of rows that were not yet learned from. It is never changed, but replaced."""

    scores: Array
    """Shape (m, l); NaN where a column had no model yet."""
    y: Indices
    weights: Array
    turn: Indices
    """How many rows of the class came before this one."""
    places: Indices
    """Where the rows of each class are, shape (k, capacity); -1 where there is none."""
    offered: Indices
    """Rows of each class that came, shape (k,)."""
    offered_weight: Array
    seed: int

    @classmethod
    def empty(cls, n_classes: int, n_columns: int, seed: int) -> Reservoir:
        """Return one without rows."""
        none = np.empty(0, dtype=np.intp)
        return cls(
            scores=np.empty((0, n_columns)),
            y=none,
            weights=np.empty(0),
            turn=none,
            places=np.full((n_classes, capacity(n_classes, n_columns)), -1, dtype=np.intp),
            offered=np.zeros(n_classes, dtype=np.intp),
            offered_weight=np.zeros(n_classes),
            seed=seed,
        )

    def __len__(self) -> int:
        return len(self.y)

    def choose(self, y: Indices) -> tuple[Indices, Indices, Indices]:
        """Return which rows of a batch to keep, their slots, and their turns.

        Nothing depends on the names of the classes: draws are made for each by itself.
        """
        room = self.places.shape[1]
        rows, slots, turns = [], [], []
        for c in np.unique(y):
            of_class = np.flatnonzero(y == c)
            turn = self.offered[c] + np.arange(len(of_class))
            slot = turn.copy()
            late = turn >= room
            rng = np.random.default_rng((self.seed, int(self.offered[c])))
            slot[late] = rng.integers(room, size=late.sum())
            # Of several rows for one slot the last stays.
            last = len(slot) - 1 - np.unique(slot[::-1], return_index=True)[1]
            rows.append(of_class[last])
            slots.append(slot[last])
            turns.append(turn[last])
        return np.concatenate(rows), np.concatenate(slots), np.concatenate(turns)

    def add(
        self,
        y: Indices,
        weights: Array,
        chosen: tuple[Indices, Indices, Indices],
        scores: Array,
    ) -> Reservoir:
        """Return a reservoir with the rows chosen of a batch, and the whole batch counted."""
        rows, slots, turns = chosen
        known = self.places[y[rows], slots]
        new = known < 0
        at = np.where(new, len(self) + np.cumsum(new) - 1, known)
        places = self.places.copy()
        places[y[rows], slots] = at
        grown, k = len(self) + int(new.sum()), len(self.offered)
        return replace(
            self,
            scores=_put(self.scores, grown, at, scores),
            y=_put(self.y, grown, at, y[rows]),
            weights=_put(self.weights, grown, at, weights[rows]),
            turn=_put(self.turn, grown, at, turns),
            places=places,
            offered=self.offered + np.bincount(y, minlength=k),
            offered_weight=self.offered_weight + np.bincount(y, weights, minlength=k),
        )

    def later_half(self) -> tuple[Array, Indices, Array]:
        """Return scores, classes and weights of rows of the later half of each class.

        All rows of a class of which few would be left. The rows stand for all that came
        of their class, by weight.
        """
        late = 2 * self.turn >= self.offered[self.y]
        few = np.bincount(self.y[late], minlength=len(self.offered)) < LEAST_OF_A_CLASS
        used = late | few[self.y]
        y, weights = self.y[used], self.weights[used]
        kept = np.bincount(y, weights, minlength=len(self.offered))
        return self.scores[used], y, weights * (self.offered_weight / np.where(kept, kept, 1.0))[y]


def capacity(n_classes: int, n_columns: int) -> int:
    """Return how many rows of a class are kept."""
    fit = ENTRIES // (n_classes * n_columns)
    return int(min(max(fit, LEAST_OF_A_CLASS), MOST_OF_A_CLASS))


def _put(values: NDArray, size: int, at: Indices, new: NDArray) -> NDArray:
    """Return a copy of ``values`` of another size with new entries in it."""
    out = np.empty((size, *values.shape[1:]), dtype=values.dtype)
    out[: len(values)] = values
    out[at] = new
    return out
