"""Which code matrices are class trees, and where their nodes are.

Only the matrix is examined: no attribute of a code says how it was made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.arrays import Code, Places

Names = NDArray[np.uint64]
"""A set of classes is named by the sum of random numbers of its classes, modulo 2^64. Two sets have
the same name with a probability of 5e-20."""


class Trees(NamedTuple):
    """The class trees of a code."""

    n_trees: int
    blocks: list[slice]
    """The columns of each node: one for two groups of classes, or one for each of more groups
    against the others."""

    def paths(self, code: Code) -> tuple[NDArray[Any], ...]:
        """Return the columns on the path to each class, and its sides, as CSR rows.

        The probability of a class in a tree is the product over its path. At a node of more than
        two groups, this is the column where the class is positive.
        """
        classes, columns = _entries(code)
        sides, is_wide = code[classes, columns], np.zeros(code.shape[1], dtype=np.bool_)
        for block in self.blocks:
            is_wide[block] = block.stop - block.start > 1
        kept = (sides > 0) | ~is_wide[columns]
        start = np.searchsorted(classes[kept], np.arange(len(code) + 1))
        return start.astype(np.int32), columns[kept].astype(np.int32), sides[kept]


def find_trees(code: ArrayLike) -> Trees | None:
    """Return the class trees that a code consists of; None if it does not.

    A node splits all classes, or a group of a node above it, into two groups or more. Each group
    of two classes or more is split by a further node.
    """
    code = np.asarray(code)
    singles = [slice(b, b + 1) for b in range(code.shape[1])]
    names, sizes, everything = _name_sides(code)
    if not sizes.all():
        return None
    if n_trees := _count(singles, names, sizes, everything):
        return Trees(n_trees, singles)
    blocks = _blocks(names, sizes)
    n_trees = _count(blocks, names, sizes, everything)
    return Trees(n_trees, blocks) if n_trees else None


def single_tree(code: Code) -> tuple[int, NDArray[np.int64]] | None:
    """Return the root of a single binary tree, and the negative and positive child of each column.

    A child is a column, or -c - 1 for class c; the children have shape (l, 2). None if the code is
    anything else.
    """
    if count_trees(code) != 1:
        return None
    names, sizes, everything = _name_sides(code)
    nodes = names.sum(axis=0, dtype=np.uint64)
    order = np.argsort(nodes)
    columns = order[np.searchsorted(nodes, names, sorter=order) % len(nodes)]
    rows, places = _entries(code)
    single = np.zeros(sizes.shape, dtype=np.intp)
    single[(code[rows, places] > 0).astype(np.intp), places] = rows  # the only class of a side
    children = np.where(sizes > 1, columns, -single - 1)
    return int(np.flatnonzero(nodes == everything)[0]), np.ascontiguousarray(children.T)


def count_trees(code: ArrayLike) -> int:
    """Return the number of class trees, with two sides at each node, that a code consists of.

    Parameters
    ----------
    code : int8 array of shape (k, l)
        A code matrix.

    Returns
    -------
    int
        0 if the code does not consist of trees. In a tree, a column splits all classes, and each
        side of two classes or more is split by a further column: it has k - 1 columns.

    Examples
    --------
    >>> from manyclass.codes import count_trees, one_vs_rest
    >>> count_trees([[1, 0], [-1, 1], [-1, -1]]), count_trees(one_vs_rest(3))
    (1, 0)
    """
    found = find_trees(code)
    return 0 if found is None or len(found.blocks) < np.shape(code)[1] else found.n_trees


def _entries(code: Code) -> tuple[Places, Places]:
    """Return ``np.nonzero(code)``, in a seventh of the time for few entries of many."""
    classes, columns = np.divmod(np.flatnonzero(code != 0), code.shape[1])
    return classes, columns


def _name_sides(code: Code) -> tuple[Names, Places, np.uint64]:
    """Return the names and sizes of negative and positive sides (2, l), the name of all classes."""
    numbers: Names = np.random.default_rng(0).integers(2**63, size=len(code), dtype=np.uint64)
    classes, columns = _entries(code)
    place = (code[classes, columns] > 0).astype(np.intp), columns
    names = np.zeros((2, code.shape[1]), dtype=np.uint64)
    np.add.at(names, place, numbers[classes])
    sizes = np.zeros(names.shape, dtype=np.intp)
    np.add.at(sizes, place, 1)
    return names, sizes, np.uint64(numbers.sum(dtype=np.uint64))


def _blocks(names: Names, sizes: Places) -> list[slice]:
    """Return blocks of three columns or more whose positive sides are a partition of a node.

    Columns that belong to no such block are blocks of one.
    """
    nodes, totals = names.sum(axis=0, dtype=np.uint64), sizes.sum(axis=0)
    blocks, first = [], 0
    while first < len(nodes):
        last, size = first, 0
        while last < len(nodes) and nodes[last] == nodes[first] and size < totals[first]:
            size, last = size + sizes[1, last], last + 1
        name = names[1, first:last].sum(dtype=np.uint64)
        if last < first + 3 or name != nodes[first]:
            last = first + 1
        blocks.append(slice(first, last))
        first = last
    return blocks


def _count(blocks: list[slice], names: Names, sizes: Places, everything: np.uint64) -> int:
    """Return the number of trees of these nodes; 0 if they are not trees."""
    starts = [block.start for block in blocks]
    nodes = names.sum(axis=0, dtype=np.uint64)[starts]
    is_group = np.ones(names.shape, dtype=np.bool_)
    for block in blocks:
        is_group[0, block] = block.stop - block.start == 1  # otherwise "all other groups"
    n_trees = int((nodes == everything).sum())
    # Each tree splits all classes once. All other nodes split a group.
    expected = np.append(names[is_group & (sizes > 1)], np.repeat(everything, n_trees))
    fits = len(expected) == len(nodes) and bool((np.sort(expected) == np.sort(nodes)).all())
    return n_trees if fits else 0
