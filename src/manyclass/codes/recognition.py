"""Which kind of code a matrix is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from manyclass.codes.checks import Code


def pair_columns(code: Code) -> tuple[NDArray[np.intp], NDArray[np.bool_]] | None:
    """Find the columns of a one-vs-one code in any order and with any signs.

    Parameters
    ----------
    code : int8 array of shape (k, l)
        A code matrix.

    Returns
    -------
    (order, flip) or None
        Column ``order[q]`` holds the pair of column ``q`` of :func:`one_vs_one`,
        with its sign reversed where ``flip[q]``. None if the code does not hold
        each pair of classes exactly once and nothing else.

    Examples
    --------
    >>> from manyclass.codes import one_vs_one, pair_columns
    >>> order, flip = pair_columns(-one_vs_one(3)[:, [2, 0, 1]])
    >>> order.tolist(), flip.tolist()
    ([1, 2, 0], [True, True, True])
    """
    code = np.asarray(code)
    k, n_columns = code.shape
    if n_columns != k * (k - 1) // 2:
        return None
    columns = np.arange(n_columns)
    first, second = np.triu_indices(k, 1)
    # The most frequent case has a fast path.
    in_order = (code[first, columns] == 1).all() and (code[second, columns] == -1).all()
    if in_order and np.count_nonzero(code) == 2 * n_columns:
        return columns, np.zeros(n_columns, dtype=np.bool_)
    is_pair, i, j = pairs_among(code)
    if not is_pair.all():
        return None
    lower, higher = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((higher, lower))
    if not np.array_equal((lower[order], higher[order]), np.triu_indices(k, 1)):
        return None
    return order, (i > j)[order]


def pairs_among(code: Code) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
    """Return which columns compare two single classes, and the + and - class of each."""
    plus, minus = code == 1, code == -1
    is_pair = (plus.sum(axis=0) == 1) & (minus.sum(axis=0) == 1)
    return is_pair, plus.argmax(axis=0)[is_pair], minus.argmax(axis=0)[is_pair]


def is_one_vs_rest(code: Code) -> bool:
    """Return whether column ``c`` compares class ``c`` with all others.

    Parameters
    ----------
    code : int8 array of shape (k, l)
        A code matrix.

    Returns
    -------
    bool
        True also for the one column that two classes need.

    Examples
    --------
    >>> from manyclass.codes import is_one_vs_rest, one_vs_one, one_vs_rest
    >>> is_one_vs_rest(one_vs_rest(4)), is_one_vs_rest(one_vs_one(4))
    (True, False)
    """
    code = np.asarray(code)
    if code.shape == (2, 1):
        return np.array_equal(code, [[1], [-1]])
    return len(code) >= 2 and np.array_equal(code, 2 * np.eye(len(code)) - 1)


def is_dense(code: Code) -> bool:
    """Return whether every class takes part in every column.

    Parameters
    ----------
    code : int8 array of shape (k, l)
        A code matrix.

    Returns
    -------
    bool

    Examples
    --------
    >>> from manyclass.codes import is_dense, one_vs_one, one_vs_rest
    >>> is_dense(one_vs_rest(4)), is_dense(one_vs_one(4))
    (True, False)
    """
    return bool(np.all(code))
