"""Whether the columns of a code determine the class probabilities.

Column b observes ``q_b`` (see :func:`is_identifiable`). Its gradient in p is
``p(J_b) 1_I - p(I_b) 1_J`` up to a factor. Since q does not depend on the scale of p, p itself is
a null vector of these rows. For almost all p, p is determined iff there is no other null vector:
iff the rank is k - 1.

There are two special cases. Without zeros ``p(I_b) + p(J_b) = 1`` and the rows ``1_I - p(I_b) 1``
have rank k - 1 iff ``[M == +1; 1]`` has rank k, whatever p. A pair column fixes one ratio
``p_i / p_j``, so pairs suffice iff the graph of comparisons is connected.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import qr
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from manyclass._lib.arrays import Code
from manyclass.codes.checks import as_ternary, lacks_a_sign, listing, pair_columns, pairs_among
from manyclass.codes.tree_structure import find_trees

_ZERO = 1e-9
"""Singular values below count as zero. The rows of the matrix have norm 1, so rounding errors are
near the float64 epsilon, 2e-16; a choice far above it."""


def is_identifiable(code: ArrayLike) -> bool:
    """Return whether the columns determine the class probabilities.

    Column ``b`` observes ``q_b(p) = p(I_b) / (p(I_b) + p(J_b))``, with ``I_b`` and
    ``J_b`` its positive and negative classes. The columns determine p if, near almost
    every positive ``p``, no other distribution has the same ``q``.

    Parameters
    ----------
    code : array-like of shape (k, l)
        A code matrix.

    Returns
    -------
    bool

    Examples
    --------
    >>> from manyclass.codes import is_identifiable, one_vs_rest
    >>> is_identifiable(one_vs_rest(4))
    True
    >>> is_identifiable([[1], [1], [-1]])
    False
    """
    matrix = as_ternary(code)
    if matrix.shape[1] < len(matrix) - 1:
        return False
    if pair_columns(matrix) is not None:
        return True
    if find_trees(matrix) is not None:  # each node fixes the shares of its groups
        return True
    gradient, _ = _reduced_gradient(matrix)
    return bool(np.linalg.matrix_rank(gradient, tol=_ZERO) == gradient.shape[1] - 1)


def check_identifiable(code: ArrayLike) -> None:
    """Raise a ``ValueError`` if the columns do not determine the class probabilities.

    The error names the undetermined classes and suggests columns to add.

    Parameters
    ----------
    code : array-like of shape (k, l)
        A code matrix.

    Examples
    --------
    >>> from manyclass.codes import check_identifiable
    >>> check_identifiable([[1, 0], [-1, 0], [0, 1], [0, -1]])
    Traceback (most recent call last):
        ...
    ValueError: code does not determine the class probabilities: the groups of classes [0, 1] and \
[2, 3] never meet in a column. Add the missing column, for example class 0 against class 2.
    """
    matrix = as_ternary(code)
    if is_identifiable(matrix):
        return
    undetermined, anchor, others = _gaps(matrix)
    groups = _groups_that_meet(matrix)
    if len(groups) > 1:
        brief = (f"[{', '.join(map(str, g[:8]))}{', ...' if g[8:] else ''}]" for g in groups)
        reason = f"the groups of classes {listing(brief)} never meet in a column"
    else:
        reason = (
            f"the probabilities of classes {listing(undetermined)} can change without any change "
            "in the columns"
        )
    if len(others) == 1:
        remedy = f"Add the missing column, for example class {anchor} against class {others[0]}."
    else:
        remedy = (
            f"At least {len(others)} columns are missing; adding class {anchor} against each of "
            f"the classes {listing(others)} suffices."
        )
    raise ValueError(f"code does not determine the class probabilities: {reason}. {remedy}")


def _reduced_gradient(code: Code) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the gradient in log p of the columns that are not pairs, and the groups of classes.

    Pair columns fix the ratios of the classes they connect. So in log p all classes of a connected
    group change by the same amount: each group is one variable, and its pair columns need no row. A
    one-vs-one code of any size has a single variable. In log p the null vector is constant.
    """
    k = len(code)
    is_pair, i, j = pairs_among(code)
    n_groups, group = connected_components(coo_array((np.ones(i.size), (i, j)), shape=(k, k)))
    p = _generic_p(k)
    others = code[:, ~is_pair].T
    plus, minus = (others == 1) * p, (others == -1) * p
    rows = minus.sum(axis=1, keepdims=True) * plus - plus.sum(axis=1, keepdims=True) * minus
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norm > 0, norm, 1)  # a column with an empty side has a zero row
    return rows @ np.eye(n_groups)[group], group


def _generic_p(k: int) -> NDArray[np.float64]:
    """Return a fixed random p, so that no relations hold by accident; scale does not matter."""
    return np.random.RandomState(0).uniform(0.5, 1.5, size=k)


def _gaps(code: Code) -> tuple[list[int], int, list[int]]:
    """Return the undetermined classes, and a class that should be compared with which others."""
    gradient, group = _reduced_gradient(code)
    _, singular, vt = np.linalg.svd(gradient, full_matrices=True)
    null = vt[(singular > _ZERO).sum() :].T[group]  # changes of log p that change no q_b
    p = _generic_p(len(code))
    moves = null - p @ null / p.sum()  # the same, keeping the sum of p
    undetermined = (np.abs(moves).max(axis=1) > _ZERO).nonzero()[0]
    # d independent rows of the null space. If pair columns connect these d classes, only the
    # constant change is left. So d - 1 pair columns are enough.
    _, pivots = qr(null.T, mode="r", pivoting=True)
    anchor, *others = sorted(pivots[: null.shape[1]].tolist())
    return undetermined.tolist(), anchor, others


def _groups_that_meet(code: Code) -> list[list[int]]:
    """Return groups of classes, such that no column has classes of two groups."""
    part = np.abs(code[:, ~lacks_a_sign(code, axis=0)]).astype(np.float32)
    n_groups, group = connected_components(part @ part.T > 0)
    return [(group == g).nonzero()[0].tolist() for g in range(n_groups)]
