"""A bounded store of scores from a stream, which prefers newer rows of each class.

Scores of a stream come from models that were still learning. Two rules exclude scores of weak
models. First, if a class is full, each new row replaces a random row of the class (biased
reservoir sampling: C. C. Aggarwal, "On biased reservoir sampling in the presence of stream
evolution", VLDB 2006). The probability that a row is still stored falls exponentially with the
number of later rows of its class. Second, only the later half of the rows of each class is
used, which matters as long as no row had to be replaced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Floats, Places

# Rows of each class that are kept and used if possible. A choice: the number of scores of a side
# that a column needs to be calibrated alone.
LEAST_OF_A_CLASS = 10


@dataclass(frozen=True)
class Reservoir:
    """Scores of rows before they were learned. It is immutable."""

    scores: Floats
    """Shape (m, l); NaN if a column had no model yet."""
    y: Places
    weights: Floats
    turn: Places
    """Number of rows of the class that came before this one."""
    places: Places
    """Where the rows of each class are stored, shape (k, capacity); -1 for free slots."""
    offered: Places
    """Number of rows of each class that came, shape (k,)."""
    offered_weight: Floats
    seed: int

    @classmethod
    def empty(cls, n_classes: int, n_columns: int, seed: int, room: int | None = None) -> Reservoir:
        """Return a reservoir without rows; ``room`` is its capacity for each class."""
        room = capacity(n_classes, n_columns) if room is None else room
        none = np.empty(0, dtype=np.intp)
        return cls(
            scores=np.empty((0, n_columns)),
            y=none,
            weights=np.empty(0),
            turn=none,
            places=np.full((n_classes, room), -1, dtype=np.intp),
            offered=np.zeros(n_classes, dtype=np.intp),
            offered_weight=np.zeros(n_classes),
            seed=seed,
        )

    def __len__(self) -> int:
        return len(self.y)

    def choose(self, y: Places) -> tuple[Places, Places, Places]:
        """Return which rows of a batch to keep, their slots, and their turns.

        Random numbers are drawn for each class separately: the names of the classes have no
        influence.
        """
        room = self.places.shape[1]
        kept = []
        for c in np.unique(y):
            of_class = np.flatnonzero(y == c)
            turn = self.offered[c] + np.arange(len(of_class))
            slot = turn.copy()
            late = turn >= room
            rng = np.random.default_rng((self.seed, int(self.offered[c])))
            slot[late] = rng.integers(room, size=late.sum())
            # If several rows have the same slot, the last one stays.
            last = len(slot) - 1 - np.unique(slot[::-1], return_index=True)[1]
            kept.append((of_class[last], slot[last], turn[last]))
        rows, slots, turns = (np.concatenate(part) for part in zip(*kept, strict=True))
        return rows, slots, turns

    def add(
        self, y: Places, weights: Floats, chosen: tuple[Places, Places, Places], scores: Floats
    ) -> Reservoir:
        """Return a reservoir with the chosen rows of a batch added, and all of its rows counted."""
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

    def later_half(self) -> tuple[Floats, Places, Floats]:
        """Return scores, classes and weights of the later half of the rows of each class.

        If fewer than 10 rows of a class are left, all of its rows are used. The weights of a
        class add up to the weight of all its rows that came.
        """
        late = 2 * self.turn >= self.offered[self.y]
        few = np.bincount(self.y[late], minlength=len(self.offered)) < LEAST_OF_A_CLASS
        used = late | few[self.y]
        y, weights = self.y[used], self.weights[used]
        kept = np.bincount(y, weights, minlength=len(self.offered))
        return self.scores[used], y, weights * (self.offered_weight / np.where(kept, kept, 1.0))[y]


def capacity(
    n_classes: int, n_columns: int, *, most_of_a_class: int = 400, entries: int = 2**23
) -> int:
    """Return how many rows of a class are kept.

    All classes together have ``entries`` scores, 64 MB by default; but each has room for 10 rows.
    """
    return int(min(max(entries // (n_classes * n_columns), LEAST_OF_A_CLASS), most_of_a_class))


def _put(values: NDArray, size: int, at: Places, new: NDArray) -> NDArray:
    """Return a copy of ``values``, resized and with new entries."""
    out = np.empty((size, *values.shape[1:]), dtype=values.dtype)
    out[: len(values)] = values
    out[at] = new
    return out
