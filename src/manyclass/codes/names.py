"""Codes by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from manyclass._names import quoted
from manyclass.codes.checks import Code, check_integer
from manyclass.codes.constructors import complete, one_vs_one, one_vs_rest, ordinal
from manyclass.codes.search import Seed, dense_random, sparse_random


class _Family(NamedTuple):
    build: Callable[[int, Seed], Code]
    n_columns: Callable[[int], int] | None = None  # None: not a function of k alone


_FAMILIES = {
    "one-vs-one": _Family(lambda k, seed: one_vs_one(k), lambda k: k * (k - 1) // 2),
    "one-vs-rest": _Family(lambda k, seed: one_vs_rest(k), lambda k: k),
    "sparse-random": _Family(lambda k, seed: sparse_random(k, random_state=seed)),
    "dense-random": _Family(lambda k, seed: dense_random(k, random_state=seed)),
    "complete": _Family(lambda k, seed: complete(k), lambda k: 2 ** (k - 1) - 1),
    "ordinal": _Family(lambda k, seed: ordinal(k), lambda k: k - 1),
}

NAMES = tuple(_FAMILIES)


def by_name(name: str, k: int, random_state: Seed = None) -> Code:
    """Build the code of a name for ``k`` classes.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    k : int
        Number of classes.
    random_state : int, RandomState or None, default=None
        Seed of the random codes; the others ignore it.

    Returns
    -------
    int8 array of shape (k, l)

    Examples
    --------
    >>> from manyclass.codes import NAMES, by_name
    >>> NAMES
    ('one-vs-one', 'one-vs-rest', 'sparse-random', 'dense-random', 'complete', 'ordinal')
    >>> by_name("ordinal", 4).shape
    (4, 3)
    """
    return _family(name).build(k, random_state)


def n_classes_of(name: str, n_columns: int) -> int:
    """Return the number of classes for which a named code has ``n_columns`` columns.

    Parameters
    ----------
    name : str
        One of ``NAMES``, but not a random code.
    n_columns : int
        Number of columns.

    Returns
    -------
    int

    Examples
    --------
    >>> from manyclass.codes import n_classes_of
    >>> n_classes_of("one-vs-one", 45)
    10
    """
    columns_for = _family(name).n_columns
    if columns_for is None:
        raise ValueError(
            f"the number of columns of a {name} code does not tell its classes, nor which code "
            "was drawn. Pass the code matrix itself."
        )
    n_columns = check_integer("n_columns", n_columns, 1)
    k = _least_k(columns_for, n_columns)
    if columns_for(k) != n_columns:
        near = [f"{columns_for(c)} columns for {c} classes" for c in (k - 1, k) if c >= 2]
        raise ValueError(
            f"no {name} code has {n_columns} columns: it has {' and '.join(near)}. Check the "
            "number of columns, or pass the code matrix itself."
        )
    return k


def _least_k(columns_for: Callable[[int], int], n_columns: int) -> int:
    """Return the fewest classes with that many columns or more, by bisection."""
    low, high = 2, 2
    while columns_for(high) < n_columns:
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if columns_for(middle) < n_columns else (low, middle)
    return low


def _family(name: str) -> _Family:
    if not isinstance(name, str) or name not in _FAMILIES:
        raise ValueError(
            f"unknown code {quoted(name)}: pass a code matrix or one of {', '.join(NAMES)}."
        )
    return _FAMILIES[name]
