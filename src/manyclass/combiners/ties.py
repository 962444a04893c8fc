"""Break ties between classes: at random, but in the same way every time.

The choice for a row depends on the seed and on the row's own values, not on its
position. If rows are split or reordered, the choices stay the same. The choice does not
depend on the order of the classes either. Each class gets a key: the sum over its columns
of hashed margins, with the sign that favours the class. If classes or columns are
permuted, or the sides of a column are swapped, the same class is chosen.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

from manyclass._lib.arrays import FARTHEST, Code, Flags, Floats, Places
from manyclass._lib.row_blocks import BLOCK_ENTRIES, row_blocks

EXCESS = 1e-9
"""How much a preferred class is raised above the classes it ties with, relative to its score. A
choice: far above float64 rounding, and far below every difference that has a meaning."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # increment of SplitMix64: 2^64 over the golden ratio

Keys = NDArray[np.uint64]
Seed = int | np.random.RandomState | None


def as_seed(random_state: Seed) -> int:
    """Return the seed in [0, 2**64) for :func:`break_ties`.

    An int is the seed itself, and makes results reproducible. A ``RandomState`` gives another
    seed at every call. None draws a seed from NumPy's global state.
    """
    if isinstance(random_state, Integral):
        return int(random_state) & (2**64 - 1)
    return int(check_random_state(random_state).randint(2**31 - 1))


def break_ties(
    scores: Floats, values: Floats, code: Code, seed: int, block_entries: int = BLOCK_ENTRIES
) -> None:
    """Where several classes have the best score of a row, raise the score of one, in place.

    It is raised by 1e-9 times its absolute value (by 1e-9 if that is below 1), and is then the only
    maximum. ``values`` (n, l) are the margins that the ``scores`` (n, k) were computed from, or
    probabilities minus 1/2. ``block_entries`` limits temporary arrays. Some classes have the same
    key, for example if all margins are zero. Only then does the choice depend on the index of the
    class.
    """
    best = scores == scores.max(axis=1, keepdims=True)
    tied = np.flatnonzero(best.sum(axis=1) > 1)
    if not tied.size:
        return
    sides = csr_array(np.hstack([code == 1, code == -1]).astype(np.uint64))
    for block in row_blocks(len(tied), sum(sides.shape), block_entries):
        rows = tied[block]
        chosen = _choose(_class_keys(sides, values[rows].T, seed), best[rows].T)
        top = scores[rows, chosen]
        scores[rows, chosen] = top + EXCESS * np.maximum(1.0, np.abs(top))


def _class_keys(sides: csr_array, margins: Floats, seed: int) -> Keys:
    """Return keys (k, n) that do not depend on the order of the classes or columns.

    The first round hashes the margins of each class. If all margins are +1 or -1, classes
    with equal votes then have equal keys. Two more rounds also hash the keys of the classes
    that a class won and lost against, like colour refinement of a graph.
    """
    n_columns = margins.shape[0]
    bounded = np.clip(np.vstack([margins, -margins]), -FARTHEST, FARTHEST)
    bounded /= 1.0 + np.abs(bounded)
    # A grid of half of the digits of float64: rounding errors such as 1 - (1 - r) do not matter.
    seen = np.rint(bounded * 2.0**24).astype(np.int64).view(np.uint64)
    seen = seen + _mix(np.array([seed], dtype=np.uint64))
    keys = np.zeros((sides.shape[0], margins.shape[1]), dtype=np.uint64)
    for _ in range(3):
        allies = sides.T @ keys
        rivals = np.roll(allies, n_columns, axis=0)
        keys = sides @ _mix(seen + _mix(allies) + _mix(rivals + _GOLDEN))
    return keys


def _choose(keys: Keys, tied: Flags) -> Places:
    """Return, for each column, the index of the tied class with the largest key."""
    keys = np.where(tied, _mix(keys), np.uint64(0))
    largest = tied & (keys == keys.max(axis=0))
    index = np.arange(1, len(keys) + 1, dtype=np.uint64)[:, None]
    # "| 1" makes every candidate larger than the zeros of the other classes.
    last = np.where(largest, _mix(keys + index * _GOLDEN) | np.uint64(1), np.uint64(0))
    return last.argmax(axis=0)


def _mix(x: Keys) -> Keys:
    """Scramble 64-bit integers (the finaliser of SplitMix64; Steele et al., 2014)."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
