"""Codes that follow from the number of classes alone."""

from __future__ import annotations

import math

import numpy as np

from manyclass.codes.checks import Code, check_k, check_size, is_buildable

_MAX_COMPLETE = 16  # 32,767 columns; every further class doubles them


def one_vs_one(k: int) -> Code:
    """Return the code of all pairs of classes.

    Parameters
    ----------
    k : int
        Number of classes, at most 1625: beyond, the matrix has more than 2.1 GB.

    Returns
    -------
    int8 array of shape (k, k * (k - 1) / 2)
        Columns (0, 1), (0, 2), ..., (1, 2), ...; the lower class is positive.

    Examples
    --------
    >>> from manyclass.codes import one_vs_one
    >>> one_vs_one(3)
    array([[ 1,  1,  0],
           [-1,  0,  1],
           [ 0, -1, -1]], dtype=int8)
    """
    k = check_k(k)
    check_size("one-vs-one", k, k * (k - 1) // 2, _fewer_columns(k))
    lower, higher = np.triu_indices(k, 1)
    column = np.arange(lower.size)
    code = np.zeros((k, lower.size), dtype=np.int8)
    code[lower, column] = 1
    code[higher, column] = -1
    return code


def _fewer_columns(k: int) -> str:
    """Say which codes of so many classes can be built, in place of one that cannot."""
    sizes = {"one-vs-rest": k, "sparse-random, whose columns are 15 log2(k)": _random_columns(k)}
    smaller = [name for name, n_columns in sizes.items() if is_buildable(k, n_columns)]
    return f"Use {', or '.join(smaller)}." if smaller else "Merge classes into groups."


def _random_columns(k: int) -> int:
    return math.ceil(15 * math.log2(k))


def one_vs_rest(k: int) -> Code:
    """Return the code that puts each class against all others.

    Parameters
    ----------
    k : int
        Number of classes.

    Returns
    -------
    int8 array of shape (k, k)
        +1 on the diagonal, -1 elsewhere.

    Examples
    --------
    >>> from manyclass.codes import one_vs_rest
    >>> one_vs_rest(3)
    array([[ 1, -1, -1],
           [-1,  1, -1],
           [-1, -1,  1]], dtype=int8)
    """
    k = check_k(k)
    check_size("one-vs-rest", k, k, _fewer_columns(k))
    return 2 * np.eye(k, dtype=np.int8) - np.int8(1)


def complete(k: int) -> Code:
    """Return the code of all ways to split the classes in two.

    Parameters
    ----------
    k : int
        Number of classes, at most 16.

    Returns
    -------
    int8 array of shape (k, 2 ** (k - 1) - 1)
        Class 0 is positive in every column.

    Examples
    --------
    >>> from manyclass.codes import complete
    >>> complete(3)
    array([[ 1,  1,  1],
           [ 1, -1, -1],
           [-1,  1, -1]], dtype=int8)
    """
    k = check_k(k)
    if k > _MAX_COMPLETE:
        raise ValueError(
            f"the complete code of k={k} classes has 2**{k - 1} - 1 columns; it is offered up to "
            f"k={_MAX_COMPLETE}. {_selection(k)}"
        )
    # Columns are the numbers 1, 2, 3, ... in binary, class k - 1 the last digit.
    place = np.arange(k)[::-1, None]
    digits = np.arange(1, 2 ** (k - 1)) >> place & 1
    return (1 - 2 * digits).astype(np.int8)


def _selection(k: int) -> str:
    fits = is_buildable(k, math.ceil(10 * math.log2(k)))
    return "Use dense_random(k), a selection of these columns." if fits else _fewer_columns(k)


def ordinal(k: int) -> Code:
    """Return the code that cuts ordered classes between neighbours.

    Parameters
    ----------
    k : int
        Number of classes, numbered in their order.

    Returns
    -------
    int8 array of shape (k, k - 1)
        Column ``b`` has classes up to ``b`` on the negative side, later ones on
        the positive side.

    Examples
    --------
    >>> from manyclass.codes import ordinal
    >>> ordinal(3)
    array([[-1, -1],
           [ 1, -1],
           [ 1,  1]], dtype=int8)
    """
    k = check_k(k)
    check_size("ordinal", k, k - 1, "Merge neighbouring classes.")
    classes = np.arange(k)
    return np.where(classes[:, None] <= classes[:-1], -1, 1).astype(np.int8)
