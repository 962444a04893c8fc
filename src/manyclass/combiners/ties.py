"""Ties between classes, broken at random but the same way every time.

A row's choice depends on the seed and on the row's own values, never on its
position: splitting or reordering the rows changes nothing. It does not depend
on the names of the classes either: each class gets a key that is a sum over
its columns of hashed margins, seen from the side of the class, so permuting
classes or columns, or swapping the sides of a column, chooses the same class.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.utils import check_random_state

_BLOCK = 2**18  # entries of the largest temporary array
_GRID = 2.0**24  # steps of the quantised margins
_ROUNDS = 3
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MASK = 2**64 - 1

Keys = NDArray[np.uint64]


def as_seed(random_state: int | np.random.RandomState | None) -> int:
    """Turn ``random_state`` into the integer that :func:`break_ties` takes.

    Parameters
    ----------
    random_state : int, RandomState or None
        An int is the seed itself, and is what reproducible answers need. A
        ``RandomState`` yields another seed at every call, and so does None,
        which draws from NumPy's global state.

    Returns
    -------
    int
        A seed in [0, 2**64).

    Examples
    --------
    >>> from manyclass.combiners.ties import as_seed
    >>> as_seed(7)
    7
    """
    if isinstance(random_state, Integral):
        return int(random_state) & _MASK
    return int(check_random_state(random_state).randint(2**31 - 1))


def break_ties(
    scores: NDArray[np.float64],
    values: NDArray[np.float64],
    code: NDArray[np.int8],
    seed: int,
) -> None:
    """Raise, in place, one of the tied best classes of each row above the others.

    Parameters
    ----------
    scores : array of shape (n, k)
        Class scores, higher is better. Where the maximum of a row is reached by
        several classes, one of them is raised by 1e-9 of its size (or by 1e-9,
        if its size is below 1), which makes it the only maximum.
    values : array of shape (n, l)
        The margins the scores were made of (probabilities minus 1/2).
    code : int8 array of shape (k, l)
        The code matrix.
    seed : int
        See :func:`as_seed`.

    Notes
    -----
    Classes that the margins do not tell apart (all margins zero, say) are told
    apart by their index: nothing else is left.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.combiners.ties import break_ties
    >>> scores = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> code = np.array([[1], [-1]], dtype=np.int8)
    >>> break_ties(scores, np.zeros((2, 1)), code, seed=0)
    >>> np.round((scores - 1) * 1e9).max(axis=1)
    array([1., 0.])
    """
    best = scores == scores.max(axis=1, keepdims=True)
    tied = np.flatnonzero(best.sum(axis=1) > 1)
    if not tied.size:
        return
    sides = csr_array(np.hstack([code == 1, code == -1]).astype(np.uint64))
    step = max(1, _BLOCK // sum(sides.shape))
    for start in range(0, len(tied), step):
        rows = tied[start : start + step]
        chosen = _choose(_class_keys(sides, values[rows].T, seed), best[rows].T)
        top = scores[rows, chosen]
        scores[rows, chosen] = top + 1e-9 * np.maximum(1.0, np.abs(top))


def _class_keys(sides: csr_array, margins: NDArray[np.float64], seed: int) -> Keys:
    """Return keys (k, n) that follow the classes wherever the code puts them.

    The first round hashes the margins of each class. Hard margins (+1 or -1)
    leave classes with equal votes alike; the further rounds tell them apart by
    whom they won and lost against, as colour refinement does for graphs.
    """
    n_columns = margins.shape[0]
    seen = _quantise(np.vstack([margins, -margins])) + _mix(np.array([seed], dtype=np.uint64))
    keys = np.zeros((sides.shape[0], margins.shape[1]), dtype=np.uint64)
    for _ in range(_ROUNDS):
        allies = sides.T @ keys
        rivals = np.roll(allies, n_columns, axis=0)
        keys = sides @ _mix(seen + _mix(allies) + _mix(rivals + _GOLDEN))
    return keys


def _choose(keys: Keys, tied: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return, for each column, the index of the tied class with the largest key."""
    keys = np.where(tied, _mix(keys), np.uint64(0))
    largest = tied & (keys == keys.max(axis=0))
    index = np.arange(1, len(keys) + 1, dtype=np.uint64)[:, None]
    # "| 1" keeps every candidate above the zeros of the others.
    last = np.where(largest, _mix(keys + index * _GOLDEN) | np.uint64(1), np.uint64(0))
    return last.argmax(axis=0)


def _quantise(margins: NDArray[np.float64]) -> Keys:
    """Put margins on a grid, so that rounding such as 1 - (1 - r) is not seen."""
    bounded = np.clip(margins, -1e300, 1e300)
    bounded /= 1.0 + np.abs(bounded)
    return np.rint(bounded * _GRID).astype(np.int64).view(np.uint64)


def _mix(x: Keys) -> Keys:
    """Scramble 64-bit integers (the finaliser of SplitMix64; Steele et al., 2014)."""
    x = x + _GOLDEN
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
