"""Validation of code matrices, and which kind of code a matrix is."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.arrays import Code
from manyclass._lib.messages import quoted

MOST_ENTRIES = 2**31
"""Entries of the largest code that is built. A choice: 2.1 GB, one-vs-one of 1625 classes."""


def check_code(code: ArrayLike, n_classes: int | None = None) -> Code:
    """Validate a code matrix.

    Parameters
    ----------
    code : array-like of shape (k, l)
        Entries -1, 0 and +1, of any numeric type.
    n_classes : int, optional
        The number of rows it must have.

    Returns
    -------
    C-contiguous int8 array of shape (k, l)

    Raises
    ------
    ValueError
        If the code is not a matrix of these entries, has another number of rows, a
        column without +1 or without -1, a class with only zeros or two equal rows.

    Examples
    --------
    >>> from manyclass.codes import check_code
    >>> check_code([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]], n_classes=3)
    array([[ 1,  0],
           [-1,  1],
           [ 0, -1]], dtype=int8)
    """
    matrix = as_ternary(code)
    if n_classes is not None and len(matrix) != n_classes:
        raise ValueError(
            f"code has {len(matrix)} rows, but there are {n_classes} classes. Give it one row "
            "per class, in the sorted order of the labels."
        )
    problems = problems_of(matrix)
    if problems:
        more = f" ({len(problems) - 1} more: see audit(code).problems.)" if problems[1:] else ""
        raise ValueError(f"code cannot be used: {problems[0]}{more}")
    return matrix


def as_ternary(code: ArrayLike) -> Code:
    """Return a matrix of -1, 0 and +1 as contiguous int8; raise a ``ValueError`` for others."""
    try:
        array = np.asarray(code)
    except ValueError as error:
        raise ValueError("code must be a matrix, but its rows differ in length.") from error
    if array.ndim != 2 or array.shape[0] < 2 or array.shape[1] < 1:
        raise ValueError(
            "code must be a matrix with a row for each of 2 or more classes and a column for "
            f"each of 1 or more binary problems, got an array of shape {array.shape}."
        )
    if array.dtype.kind not in "biufO":
        raise ValueError(f"code must hold the numbers -1, 0 and +1, got dtype {array.dtype}.")
    wrong = np.argwhere(~((array == 0) | (array == 1) | (array == -1)))
    if len(wrong):
        row, column = wrong[0]
        raise ValueError(
            f"code must hold only -1, 0 and +1, but row {row}, column {column} is "
            f"{array[row, column]}. Put +1 and -1 for the two sides, 0 for classes left out."
        )
    return np.ascontiguousarray(array, dtype=np.int8)


def problems_of(code: Code) -> list[str]:
    """Return the reasons, in words, why a ternary matrix cannot be used as a code."""
    problems = []
    for column in lacks_a_sign(code, axis=0).nonzero()[0]:
        absent = [f"{sign:+d}" for sign in (1, -1) if sign not in code[:, column]]
        problems.append(
            f"column {column} has no {' and no '.join(absent)}: put at least one class on each "
            "side, or drop the column."
        )
    return problems + _row_problems(code)


def _row_problems(code: Code) -> list[str]:
    problems = []
    first_with: dict[bytes, int] = {}
    for c, row in enumerate(code):
        twin = first_with.setdefault(row.tobytes(), c)
        if not row.any():
            problems.append(f"class {c} has only zeros: let it take part in some column.")
        elif twin != c:
            problems.append(
                f"classes {twin} and {c} have equal rows: add a column with {twin} and {c} on "
                "opposite sides."
            )
    return problems


def tells_classes_apart(code: Code) -> bool:
    """Return whether each class takes part and no two classes have equal rows."""
    return not _row_problems(code)


def lacks_a_sign(code: Code, axis: int) -> NDArray[np.bool_]:
    """Return where +1 or -1 does not occur along an axis."""
    return (code.max(axis=axis) < 1) | (code.min(axis=axis) > -1)


def pair_columns(
    code: Code, *, remembered: int = 2**14
) -> tuple[NDArray[np.intp], NDArray[np.bool_]] | None:
    """Find the columns of a one-vs-one code in any order and with any signs.

    Parameters
    ----------
    code : int8 array of shape (k, l)
        A code matrix.
    remembered : int
        The answers for the last few codes of up to so many entries are remembered.

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
    if code.dtype != np.int8 or code.size > remembered:
        return _find_pairs(code)
    found = _known_pairs(code.tobytes(), k)
    return None if found is None else (found[0].copy(), found[1].copy())


@lru_cache(maxsize=4)
def _known_pairs(entries: bytes, k: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]] | None:
    """Do this for a small code: a model with one asks at every call of ``predict_proba``."""
    return _find_pairs(np.frombuffer(entries, dtype=np.int8).reshape(k, -1))


def _find_pairs(code: Code) -> tuple[NDArray[np.intp], NDArray[np.bool_]] | None:
    k, n_columns = code.shape
    first, second, columns = all_pairs(k)
    # The most frequent case has a fast path.
    in_order = (code[first, columns] == 1).all() and (code[second, columns] == -1).all()
    if in_order and np.count_nonzero(code) == 2 * n_columns:
        return columns.copy(), np.zeros(n_columns, dtype=np.bool_)
    is_pair, i, j = pairs_among(code)
    if not is_pair.all():
        return None
    lower, higher = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((higher, lower))
    if not np.array_equal((lower[order], higher[order]), (first, second)):
        return None
    return order, (i > j)[order]


@lru_cache(maxsize=4)
def all_pairs(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Return both classes of all pairs, and their numbers. They take as long as coupling a row."""
    first, second = np.triu_indices(k, 1)
    return first, second, np.arange(len(first))


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


def check_k(k: Any) -> int:
    """Return the number of classes as an int."""
    return check_integer("k (the number of classes)", k, 2)


def check_size(
    name: str, k: int, n_columns: int, instead: str, most_entries: int = MOST_ENTRIES
) -> None:
    """Raise a ``ValueError`` if a code is too large to be built; ``instead`` is the advice."""
    entries = k * n_columns
    if entries > most_entries:
        raise ValueError(
            f"the {name} code of k={k} classes has {n_columns} columns: a matrix of "
            f"{entries / 1e9:.3g} GB, and codes are built up to {most_entries / 1e9:.1f} GB. "
            f"{instead}"
        )


def check_integer(name: str, value: Any, least: int) -> int:
    """Return an argument as an int of at least ``least``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer of at least {least}, got {quoted(value)}.")
    if value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value}.")
    return int(value)


def listing(items: Iterable[Any], most: int = 8) -> str:
    """Join items for a sentence: "0, 1 and 2", and "5 more" in place of the last of many."""
    words = [str(item) for item in items]
    if len(words) > most:
        words[most:] = [f"{len(words) - most} more"]
    *head, last = words
    return f"{', '.join(head)} and {last}" if head else last
