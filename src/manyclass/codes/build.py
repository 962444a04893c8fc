"""Codes that only depend on the number of classes, all codes by name, and codes from anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from manyclass._lib.arrays import Code
from manyclass._lib.messages import meant, quoted
from manyclass.codes.checks import all_pairs, check_code, check_integer, check_k, check_size
from manyclass.codes.random import Seed, dense_random, sparse_random
from manyclass.codes.trees import ClassTrees, QAry

_SMALLER = (
    "Use one-vs-rest (up to 46,340 classes), or sparse-random, whose columns are 15 log2(k). Merge "
    "classes into groups if these are too large."
)


def one_vs_one(k: int) -> Code:
    """Return the code of all pairs of classes.

    Parameters
    ----------
    k : int
        Number of classes, at most 1625: more would need over 2.1 GB.

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
    check_size("one-vs-one", k, k * (k - 1) // 2, _SMALLER)
    lower, higher, column = all_pairs(k)
    code = np.zeros((k, lower.size), dtype=np.int8)
    code[lower, column] = 1
    code[higher, column] = -1
    return code


def one_vs_rest(k: int) -> Code:
    """Return the code that compares each class with all others.

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
    check_size("one-vs-rest", k, k, _SMALLER)
    return 2 * np.eye(k, dtype=np.int8) - np.int8(1)


def complete(k: int) -> Code:
    """Return the code of all ways to split the classes into two sides.

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
    most = 16  # a choice: 32,767 columns, and one more class doubles them
    if k > most:
        raise ValueError(
            f"the complete code of k={k} classes has 2**{k - 1} - 1 columns; it is offered up to "
            f"k={most}. Use dense_random(k), a selection of these columns. Merge classes into "
            "groups if that is too large."
        )
    # Columns are the numbers 1, 2, 3, ... in binary, class k - 1 the last digit.
    place = np.arange(k)[::-1, None]
    digits = np.arange(1, 2 ** (k - 1)) >> place & 1
    return (1 - 2 * digits).astype(np.int8)


def ordinal(k: int) -> Code:
    """Return the code that splits ordered classes at each place in the order.

    Parameters
    ----------
    k : int
        Number of classes, numbered in their order.

    Returns
    -------
    int8 array of shape (k, k - 1)
        Column ``b`` has classes up to ``b`` on the negative side, later ones on the positive side.

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
FROM_DATA: dict[str, type] = {"class-trees": ClassTrees, "q-ary": QAry}
"""Codes that are built from training data, by name."""
NATIVE = "native"
"""The name of no code: the learner's own multiclass model."""


def is_from_data(code: Any) -> bool:
    """Return whether a code is built from training data: a name, or an object with ``build``."""
    return code in FROM_DATA if isinstance(code, str) else hasattr(code, "build")


def is_grouped(code: Any) -> bool:
    """Return whether each node of a code is a multiclass problem, for one multiclass model."""
    found = FROM_DATA.get(code) if isinstance(code, str) else code
    return bool(getattr(found, "grouped", False))


def make_code(
    code: Any, X: Any, y: ArrayLike, k: int, random_state: Seed = None, sample_weight=None
) -> Code:
    """Return the matrix of a code in any form; see :class:`~manyclass.CoupledClassifier`.

    Only objects with a method ``build(X, y, k, random_state)`` look at the training data. They get
    ``sample_weight`` if the method has a parameter of that name.
    """
    if isinstance(code, str):
        if k == 2 and code in (*NAMES, *FROM_DATA, NATIVE):  # all are the same single problem
            return one_vs_one(2)
        if code == NATIVE:  # the learner's scores of each class against the rest
            return one_vs_rest(k)
        if not is_from_data(code):
            return by_name(code, k, random_state)
        code = FROM_DATA[code]()
    if isinstance(code, Mapping):
        raise TypeError("code is a dict: pass a hierarchy of the classes as codes.Hierarchy(...).")
    if isinstance(code, type):
        raise TypeError(f"code is the class {code.__name__}: pass an object, {code.__name__}(...).")
    if is_from_data(code):
        weighted = "sample_weight" in signature(code.build).parameters
        options = {"sample_weight": sample_weight} if weighted else {}
        return check_code(code.build(X, y, k, random_state, **options), n_classes=k)
    return check_code(code(k) if callable(code) else code, n_classes=k)


def by_name(name: str, k: int, random_state: Seed = None) -> Code:
    """Build the code with a given name for ``k`` classes.

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
        why = f"a {name} code does not follow from its number of columns"
        raise ValueError(f"{why}. Pass the code matrix itself.")
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
    if isinstance(name, str) and name in FROM_DATA:
        raise ValueError(
            f"a {name} code is built from training data: use codes.{FROM_DATA[name].__name__}()"
            f".build(X, y, k), or pass code={name!r} to CoupledClassifier."
        )
    if not isinstance(name, str) or name not in _FAMILIES:
        known = [*NAMES, *FROM_DATA]
        raise ValueError(
            f"unknown code {quoted(name)}{meant(name, known)}: pass a code matrix or one of "
            f"{', '.join(known)}."
        )
    return _FAMILIES[name]
