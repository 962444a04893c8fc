"""Random columns, both signs in each, none equal or opposite to another of its code.

A sampler is asked for a number of draws and answers them as an int8 array of shape
(size, n_columns, k): codes lying on their side, so that a column is contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from manyclass.codes.checks import Code, lacks_a_sign

Letters = tuple[int, ...]
Sampler = Callable[[int, np.random.RandomState], Code]

# Letters of a random entry, each equally likely (Zadrozny, 2001, section 5).
SPARSE: Letters = (1, 0, 0, -1)
DENSE: Letters = (1, -1)

_LISTABLE = 1024  # so many distinct columns or fewer are listed rather than drawn blindly
_COUNTABLE = 64  # classes up to which all columns are counted, 2**63 and more
_BATCH = 2**22  # random numbers held at once
_COMPARED = 39  # leading entries that tell columns apart: 3**39 still fits in 64 bits


def sampler_for(k: int, n_columns: int, letters: Letters) -> Sampler:
    """Return the sampler that finds distinct columns fastest."""
    if n_distinct_columns(k, letters) <= max(_LISTABLE, 8 * n_columns):
        return ListedColumns(k, n_columns, letters)
    return FreshColumns(k, n_columns, letters)


def n_distinct_columns(k: int, letters: Letters) -> float:
    """Count columns with both signs, up to negation, by inclusion and exclusion.

    Where they are more than any code can have, the number has too many digits to write down:
    infinitely many.
    """
    if k > _COUNTABLE:
        return math.inf
    size = len(set(letters))
    return (size**k - 2 * (size - 1) ** k + (size - 2) ** k) // 2


class ListedColumns:
    """Draws by choice from the list of all columns, where blind draws would collide.

    Keeping the new ones of a stream of random columns is sampling without
    replacement with probabilities proportional to weights, and so is keeping the
    smallest of independent exponential times with these rates.
    """

    def __init__(self, k: int, n_columns: int, letters: Letters) -> None:
        self.n_columns = n_columns
        self.columns = _distinct_columns(k, letters)
        self.rates = 2.0 ** (self.columns == 0).sum(axis=1)  # there are two zeros in SPARSE

    def __call__(self, size: int, random: np.random.RandomState) -> Code:
        """Return ``size`` draws, shape (size, n_columns, k)."""
        batch = max(1, _BATCH // len(self.columns))
        races = [self._race(min(batch, size - i), random) for i in range(0, size, batch)]
        return np.concatenate(races)

    def _race(self, size: int, random: np.random.RandomState) -> Code:
        times = random.standard_exponential((size, len(self.columns))) / self.rates
        winners = times.argpartition(self.n_columns - 1, axis=1)[:, : self.n_columns]
        winners.sort(axis=1)  # the order after a partition depends on the machine
        signs = random.choice(np.array([-1, 1], dtype=np.int8), size=winners.shape)
        return self.columns[winners] * signs[:, :, None]


class FreshColumns:
    """Draws entry by entry; columns that cannot stay are drawn again."""

    def __init__(self, k: int, n_columns: int, letters: Letters) -> None:
        self.k, self.n_columns = k, n_columns
        # What each random byte spells: 4 letters of 2 bits or 8 of 1 bit.
        self.spelling = _words(round(math.log(256, len(letters))), letters)

    def __call__(self, size: int, random: np.random.RandomState) -> Code:
        """Return ``size`` draws, shape (size, n_columns, k)."""
        draws = self._columns(size * self.n_columns, random).reshape(size, self.n_columns, self.k)
        suspects = np.arange(size)
        while suspects.size:
            bad = lacks_a_sign(draws[suspects], axis=2) | _repeats(draws[suspects])
            draw, column = bad.nonzero()
            draws[suspects[draw], column] = self._columns(draw.size, random)
            suspects = suspects[bad.any(axis=1)]
        return draws

    def _columns(self, n: int, random: np.random.RandomState) -> Code:
        n_bytes = math.ceil(n * self.k / self.spelling.shape[1])
        text = self.spelling.take(np.frombuffer(random.bytes(n_bytes), dtype=np.uint8), axis=0)
        return text.reshape(-1)[: n * self.k].reshape(n, self.k)


def _words(length: int, letters: Letters) -> Code:
    """List all words of a length as rows, in dictionary order."""
    positions = np.indices((len(letters),) * length).reshape(length, -1)
    return np.array(letters, dtype=np.int8).take(positions.T)


def _distinct_columns(k: int, letters: Letters) -> Code:
    """List all columns with both signs as rows, each with its first sign positive."""
    words = _words(k, tuple(sorted(set(letters), reverse=True)))
    words = words[: len(words) // 2]  # the negatives follow, in reverse order
    return words[(words == -1).any(axis=1)]


def _repeats(draws: Code) -> NDArray[np.bool_]:
    """Tell which columns of each draw equal or negate an earlier one.

    Columns are read as numbers in base 3. Beyond 39 classes the rest is not read:
    that some columns are drawn again without need happens too rarely to matter.
    """
    head = draws[:, :, :_COMPARED]
    number = np.abs(head @ 3 ** np.arange(head.shape[2], dtype=np.int64))
    order = number.argsort(axis=1, kind="stable")
    ranked = np.take_along_axis(number, order, axis=1)
    repeated = np.zeros(number.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return repeated
