"""Slow oracles of support vector machines: one column, one sample at a time."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

Array = NDArray[np.float64]
Code = NDArray[np.int8]


def squared_span(K: Array, free: NDArray[np.bool_], positive: NDArray[np.bool_], p: int) -> float:
    """min |x_p - sum l_i x_i|^2 over sum l_i = 1, i free and not p, in feature space.

    Without another free sample, half of |x_p - x_q|^2 with the nearest x_q of the other side.
    """
    others = [i for i in np.flatnonzero(free) if i != p]
    if not others:
        far = [
            (K[p, p] - 2 * K[p, q] + K[q, q]) / 2
            for q in range(len(K))
            if positive[q] != positive[p]
        ]
        return float(min(far))
    # With l = e_0 + B z the constraint is gone: an ordinary least squares problem in z.
    first, rest = others[0], others[1:]
    target = {p: 1.0, first: -1.0}
    direction = [{i: 1.0, first: -1.0} for i in rest]

    def inner(a: dict[int, float], b: dict[int, float]) -> float:
        return sum(u * v * K[i, j] for i, u in a.items() for j, v in b.items())

    gram = np.array([[inner(a, b) for b in direction] for a in direction]).reshape(
        len(rest), len(rest)
    )
    right = np.array([inner(a, target) for a in direction])
    z = np.linalg.lstsq(gram, right, rcond=1e-12)[0]
    return float(inner(target, target) - right @ z)


def rbf(a: Array, b: Array, gamma: float) -> Array:
    """exp(-gamma |x - z|^2), one pair after another."""
    return np.array([[np.exp(-gamma * sum((x - z) ** 2)) for z in b] for x in a])


def take(X, rows, pairwise: bool):
    """Training rows; of a precomputed kernel also their columns."""
    return X[np.ix_(rows, rows)] if pairwise else X[rows]


def column_rows(y, column: Code, rows=None) -> tuple[list[int], list[int]]:
    """The rows that take part in a column, and their sides 1 and 0."""
    rows = range(len(y)) if rows is None else rows
    used = [int(s) for s in rows if column[y[s]] != 0]
    return used, [int(column[y[s]] > 0) for s in used]


def column_scores(machine, X, y, column: Code, X_new, rows=None, weights=None) -> Array:
    """Margins of one column from a machine of its own."""
    used, target = column_rows(y, column, rows)
    if len(set(target)) < 2:
        return np.full(X_new.shape[0], 0.0 if not target else inf if target[0] else -inf)
    pairwise = machine.kernel == "precomputed"
    fitted = clone(machine).fit(
        take(X, used, pairwise), target, None if weights is None else weights[used]
    )
    return fitted.decision_function(X_new[:, used] if pairwise else X_new)


def scores(machine, X, y, code: Code, X_new, rows=None, weights=None) -> Array:
    """Margins of all columns, one machine after another."""
    return np.column_stack(
        [column_scores(machine, X, y, column, X_new, rows, weights) for column in code.T]
    )


def leave_one_out(machine, X, y, column: Code, left_out, weights=None) -> Array:
    """Scores of the given samples by machines that were fitted without them."""
    everyone = np.arange(len(y))
    return np.array(
        [
            column_scores(machine, X, y, column, X[[s]], np.delete(everyone, s), weights)[0]
            for s in left_out
        ]
    )
