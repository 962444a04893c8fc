"""Random codes: draw many and keep the one whose rows differ most.

Every column has both signs, and none is equal or opposite to another of its code. A sampler
returns draws as an int8 array of shape (size, n_columns, k): each code is transposed, so that a
column is contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from manyclass._lib.arrays import Code
from manyclass.codes.checks import (
    check_integer,
    check_k,
    check_size,
    lacks_a_sign,
    tells_classes_apart,
)
from manyclass.codes.identifiability import is_identifiable

Letters = tuple[int, ...]
Seed = int | np.random.RandomState | None
Sampler = Callable[[int, np.random.RandomState], Code]

# Letters of a random entry, each equally likely (Zadrozny, 2001, section 5).
SPARSE: Letters = (1, 0, 0, -1)
DENSE: Letters = (1, -1)

_ROWS = 64  # classes compared at a time: a choice, with products of 64 x 64 in a core's cache


class Effort(NamedTuple):
    """Limits of the time and memory of a search for a random code: choices of some seconds."""

    many: int = 1000  # the next two limits only hold for more classes
    most_products: float = 5e11  # of entries of two rows: k^2 n_columns for a draw
    most_drawn: float = 2e8  # entries of further draws, if no compared draw is usable
    batch: int = 2**22  # entries of the draws that are held at once: 4 MB, and 16 MB in float32


USUAL_EFFORT = Effort()


def n_distinct_columns(k: int, letters: Letters) -> float:
    """Count columns with both signs, up to negation, by inclusion and exclusion.

    It is infinite for more than 64 classes: 2^63 columns are more than any code can have.
    """
    if k > 64:
        return math.inf
    size = len(set(letters))
    return (size**k - 2 * (size - 1) ** k + (size - 2) ** k) // 2


class ListedColumns:
    """Draw columns from the list of all columns, for small k.

    A stream of random columns without its repetitions is a sample without replacement, with
    probabilities proportional to weights. The columns with the smallest of independent
    exponential times, with the weights as rates, are such a sample too.
    """

    def __init__(
        self, k: int, n_columns: int, letters: Letters, batch: int = USUAL_EFFORT.batch
    ) -> None:
        self.n_columns, self.batch = n_columns, batch
        self.columns = _distinct_columns(k, letters)
        self.rates = 2.0 ** (self.columns == 0).sum(axis=1)  # there are two zeros in SPARSE

    def __call__(self, size: int, random: np.random.RandomState) -> Code:
        """Return ``size`` draws, shape (size, n_columns, k)."""
        batch = max(1, self.batch // len(self.columns))
        races = [self._race(min(batch, size - i), random) for i in range(0, size, batch)]
        return np.concatenate(races)

    def _race(self, size: int, random: np.random.RandomState) -> Code:
        times = random.standard_exponential((size, len(self.columns))) / self.rates
        winners = times.argpartition(self.n_columns - 1, axis=1)[:, : self.n_columns]
        winners.sort(axis=1)  # the order after a partition depends on the machine
        signs = random.choice(np.array([-1, 1], dtype=np.int8), size=winners.shape)
        return self.columns[winners] * signs[:, :, None]


class FreshColumns:
    """Draw entry by entry; draw columns that repeat or lack a sign again."""

    def __init__(self, k: int, n_columns: int, letters: Letters) -> None:
        self.k, self.n_columns = k, n_columns
        # Each random byte gives 4 letters of 2 bits or 8 of 1 bit.
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
    """Return which columns of each draw equal or negate an earlier one.

    Columns are compared as numbers in base 3, by their first 39 entries: 3^39 is the largest
    power of 3 below 2^63. A column may be drawn again without need, but very rarely.
    """
    head = draws[:, :, :39]
    number = np.abs(head @ 3 ** np.arange(head.shape[2], dtype=np.int64))
    order = number.argsort(axis=1, kind="stable")
    ranked = np.take_along_axis(number, order, axis=1)
    repeated = np.zeros(number.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ranked[:, 1:] == ranked[:, :-1], axis=1)
    return repeated


def sparse_random(
    k: int, n_columns: int | None = None, n_draws: int = 10_000, random_state: Seed = None
) -> Code:
    """Return a random ternary code with rows far apart.

    Entries are 0 with probability 1/2 and +1 or -1 with 1/4 each; every column has both signs and
    no column repeats or negates another. Of ``n_draws`` such codes the one with the largest minimum
    row distance is kept (Zadrozny, 2001, section 5), among those that determine the class
    probabilities. A code with fewer than ``k - 1`` columns never does. It only needs different rows
    then, which is enough for label decoders and for the coupling rule "least-squares". The default
    number of columns is below ``k - 1`` from k = 103 on.

    With more than 1000 classes fewer codes are drawn, so that the search takes seconds: at most
    ``5e11 / (k^2 n_columns)``. If none of them is usable, more codes are drawn until one is.

    Parameters
    ----------
    k : int
        Number of classes.
    n_columns : int, optional
        ``ceil(15 * log2(k))`` by default, or as many distinct ones as exist if these are fewer.
    n_draws : int, default=10000
        Number of codes to choose from; fewer are drawn for more than 1000 classes.
    random_state : int, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    int8 array of shape (k, n_columns)

    Examples
    --------
    >>> from manyclass.codes import audit, sparse_random
    >>> code = sparse_random(6, random_state=0)
    >>> code.shape
    (6, 39)
    >>> audit(code).identifiable
    True
    """
    return _random_code(k, SPARSE, 15, n_columns, n_draws, random_state)


def dense_random(
    k: int, n_columns: int | None = None, n_draws: int = 10_000, random_state: Seed = None
) -> Code:
    """Return a random code without zeros and with rows far apart.

    As :func:`sparse_random`, with entries +1 or -1 with probability 1/2 each and
    ``ceil(10 * log2(k))`` columns by default (below ``k - 1`` from k = 62 on).

    Parameters
    ----------
    k : int
        Number of classes.
    n_columns : int, optional
        ``ceil(10 * log2(k))`` by default, or as many distinct ones as exist if these are fewer.
    n_draws, random_state
        As in :func:`sparse_random`.

    Returns
    -------
    int8 array of shape (k, n_columns)

    Examples
    --------
    >>> from manyclass.codes import dense_random
    >>> dense_random(10, random_state=0).shape
    (10, 34)
    """
    return _random_code(k, DENSE, 10, n_columns, n_draws, random_state)


def _random_code(
    k: int,
    letters: Letters,
    columns_per_bit: int,
    n_columns: int | None,
    n_draws: int,
    random_state: Seed,
    effort: Effort = USUAL_EFFORT,
) -> Code:
    k = check_k(k)
    n_draws = check_integer("n_draws", n_draws, 1)
    n_distinct = n_distinct_columns(k, letters)
    if n_columns is None:
        n_columns = int(min(math.ceil(columns_per_bit * math.log2(k)), n_distinct))
    n_columns = check_integer("n_columns", n_columns, 1)
    if n_columns > n_distinct:
        raise ValueError(
            f"n_columns={n_columns}, but only {n_distinct} distinct columns exist for k={k} "
            "classes (a column and its negative are the same problem). Ask for at most "
            f"{n_distinct}, or leave n_columns unset."
        )
    # With 2 log2(k) columns or more, all k(k - 1)/2 pairs of rows are likely to differ: two rows of
    # n columns agree with a probability of at most 2^-n.
    enough = math.ceil(2 * math.log2(k))
    remedy = f"Ask for fewer by n_columns, but for at least {enough}, so that all rows differ."
    check_size("random", k, n_columns, f"{remedy} Merge classes into groups if that is too large.")
    if n_columns == n_distinct:
        n_draws = 1  # all draws are the same up to order and sign
    listable = max(1024, 8 * n_columns)  # a choice: with so few, random columns often repeat
    kind = ListedColumns if n_distinct <= listable else FreshColumns
    sampler = kind(k, n_columns, letters)
    random = check_random_state(random_state)
    n_compared = _n_compared(k, n_columns, n_draws, effort)
    code = _best_draw(sampler, k, n_columns, n_compared, random, effort.batch)
    if code is None and n_compared < n_draws:
        n_draws = max(n_compared, min(n_draws, int(effort.most_drawn / (k * n_columns))))
        code = _usable_draw(sampler, k, n_columns, n_draws - n_compared, random)
    if code is None:
        determines = n_columns >= k - 1
        need = "determines the class probabilities" if determines else "has different rows"
        raise ValueError(
            f"none of the n_draws={n_draws} random codes with n_columns={n_columns} for k={k} "
            f"classes {need}. Raise {'n_draws or ' if k <= effort.many else ''}n_columns."
        )
    return code


def _n_compared(k: int, n_columns: int, n_draws: int, effort: Effort = USUAL_EFFORT) -> int:
    """Return how many draws to compare."""
    if k <= effort.many:
        return n_draws
    return min(n_draws, max(1, int(effort.most_products / (k**2 * n_columns))))


def _usable_draw(
    sampler: Sampler, k: int, n_columns: int, n_draws: int, random: np.random.RandomState
) -> Code | None:
    """Return the first acceptable draw, whatever its row distance."""
    acceptable = is_identifiable if n_columns >= k - 1 else tells_classes_apart
    draws = (np.ascontiguousarray(sampler(1, random)[0].T) for _ in range(n_draws))
    return next(filter(acceptable, draws), None)


def _best_draw(
    sampler: Sampler,
    k: int,
    n_columns: int,
    n_draws: int,
    random: np.random.RandomState,
    batch_entries: int = USUAL_EFFORT.batch,
) -> Code | None:
    """Return the first acceptable draw with the largest minimum row distance.

    As rho(u, v) = (n_columns - u.v) / 2, its largest dot product of two rows is the smallest.
    """
    if n_draws == 1:  # there is nothing to compare
        return _usable_draw(sampler, k, n_columns, 1, random)
    acceptable = is_identifiable if n_columns >= k - 1 else tells_classes_apart
    batch = max(1, batch_entries // (k * max(n_columns, _ROWS)))
    best, bar = None, math.inf
    for start in range(0, n_draws, batch):
        draws = sampler(min(batch, n_draws - start), random)
        worst = _largest_dots(draws, bar)
        for draw in worst.argsort(kind="stable"):
            if worst[draw] >= bar:
                break
            code = np.ascontiguousarray(draws[draw].T)
            if acceptable(code):
                best, bar = code, worst[draw]
                break
    return best


def _largest_dots(draws: Code, bar: float) -> NDArray[np.float32]:
    """Return the largest dot product of two rows in each draw, if it is below ``bar``.

    The search in a draw stops as soon as a product reaches the bar, with the value found so
    far. With many classes this happens in the first rows of most draws, so these rows are
    compared for all draws together. The products are small integers, exact in float32.
    """
    head = draws[:, :, :_ROWS].astype(np.float32)
    dots = head.swapaxes(1, 2) @ head
    own = np.arange(head.shape[2])
    dots[:, own, own] = -np.inf
    worst = dots.max(axis=(1, 2))
    for draw in np.flatnonzero(worst < bar):
        worst[draw] = _largest_dot(draws[draw], worst[draw], bar)
    return worst


def _largest_dot(draw: Code, worst: float, bar: float) -> float:
    """Compare the rows after the first block with all rows before them, block by block."""
    n_rows = draw.shape[1]
    x = draw.astype(np.float32) if n_rows > _ROWS else draw
    for start in range(_ROWS, n_rows, _ROWS):
        new = x[:, start : start + _ROWS]
        dots = new.T @ x[:, : start + _ROWS]
        own = np.arange(new.shape[1])
        dots[own, start + own] = -np.inf
        worst = max(worst, dots.max())
        if worst >= bar:
            break
    return worst
