"""Decisions of least expected cost, with the option to reject a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import quoted
from manyclass._lib.row_blocks import BLOCK_ENTRIES
from manyclass.decisions._simplex import as_rows, checked_blocks

REJECTED = -1  # Python's index of the last label, which stands for rejected rows


def decide(
    proba: ArrayLike,
    cost: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    reject_cost: ArrayLike | None = None,
    rejected: object = None,
) -> NDArray:
    """Return the decision of least expected cost for each row.

    Parameters
    ----------
    proba : array-like of shape (n, k)
        Class probabilities: entries not negative and sums of 1, both within 1e-5.
    cost : array-like of shape (k, d), optional
        ``cost[i, j]`` is the cost of decision j when the truth is class i. There may be more or
        fewer decisions than classes. Negative costs are gains. When omitted, a wrong class costs 1
        and the right one nothing: the decision is the most probable class.
    classes : array-like of shape (d,), optional
        Labels of the decisions, one for each column of ``cost``, to return in place of indices.
    reject_cost : float or array-like of shape (k,), optional
        Cost of a rejection, the same for all classes or one for each true class. A row is
        rejected if every decision has a higher expected cost.
    rejected : object, optional
        The label of rejected rows. It must differ from the other labels and have their type.
        The default is -1 for indices and for labels that are numbers, or the smallest label
        minus 1 if that is smaller; "rejected" for strings; NaT for times. For bool labels the
        result is an array of objects, and the default is None.

    Returns
    -------
    ndarray of shape (n,)
        Indices of decisions, or labels. If several decisions have the same cost up to
        rounding errors, the first is chosen; a decision is preferred to a rejection.

    See Also
    --------
    DecisionClassifier : The same as part of an estimator.

    Notes
    -----
    The least cost of each true class is subtracted first. Then no term of ``proba @ cost`` is
    negative, and the relative rounding error of a sum is at most k times the float64 epsilon. Costs
    that differ by no more count as ties.

    References
    ----------
    .. [1] C. K. Chow, "On optimum recognition error and reject tradeoff", IEEE
       Transactions on Information Theory 16, 1970.
    .. [2] C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.

    Examples
    --------
    >>> from manyclass import decide
    >>> p = [[0.8, 0.15, 0.05], [0.4, 0.35, 0.25]]
    >>> decide(p, classes=["healthy", "flu", "pneumonia"], reject_cost=0.5, rejected="unsure")
    array(['healthy', 'unsure'], dtype='<U9')

    A missed pneumonia is worse than two false alarms:

    >>> decide(p, [[0, 1, 2], [1, 0, 2], [9, 8, 0]])
    array([0, 2])
    """
    rows = as_rows(proba)
    k = rows.shape[1]
    matrix = None if cost is None else check_cost(cost, k)
    n_decisions = k if matrix is None else matrix.shape[1]
    names = np.arange(n_decisions) if classes is None else classes
    labels = decision_labels(names, n_decisions, reject_cost is not None, rejected)
    reject = None
    if reject_cost is not None:
        given = _as_numbers(reject_cost, "reject_cost")
        if given.shape not in ((), (k,)) or not np.isfinite(given).all():
            raise ValueError(
                f"reject_cost must be a finite number, or one for each of the {k} classes, got "
                f"{reject_cost!r}."
            )
        reject = np.broadcast_to(given, (k,))
    return labels[least_cost(rows, matrix, reject)]  # the last label, at -1, is for rejections


def least_cost(
    rows: NDArray, cost: Floats | None, reject: Floats | None, block_entries: int = BLOCK_ENTRIES
) -> Places:
    """Return the decisions of least expected cost, -1 where that is a rejection."""
    k = rows.shape[1]
    regret = 1.0 - np.eye(k) if cost is None else cost
    n_decisions = regret.shape[1]
    if reject is not None:  # rejection is the last column
        regret = np.column_stack([regret, reject])
    if np.abs(regret).max() > 1e300:  # differences could overflow; a power of 2 scales exactly
        regret = regret / 2.0**12
    regret = regret - regret.min(axis=1, keepdims=True)
    tie = 1.0 + 4.0 * k * np.finfo(np.float64).eps
    chosen = np.empty(len(rows), dtype=np.intp)
    for part, p in checked_blocks(rows, max(regret.shape), block_entries):
        expected = p @ regret
        if cost is None:
            # Expected costs may be equal by rounding errors though the probabilities differ.
            best = p.argmax(axis=1)
        else:
            least = expected[:, :n_decisions].min(axis=1)
            best = (expected[:, :n_decisions] <= tie * least[:, None]).argmax(axis=1)
        if reject is not None:
            reached = expected[np.arange(len(p)), best]
            best[reached > tie * expected[:, -1]] = REJECTED
        chosen[part] = best
    return chosen


def check_cost(cost: ArrayLike, k: int) -> Floats:
    """Return ``cost`` as an array of shape (k, d)."""
    matrix = _as_numbers(cost, "cost")
    if matrix.ndim != 2 or len(matrix) != k or matrix.shape[1] < 1:
        raise ValueError(
            f"cost must have shape (k, d): a row for each of the {k} classes, a column for each "
            f"decision; got shape {matrix.shape}."
        )
    if not np.isfinite(matrix).all():
        i, j = (int(index) for index in np.argwhere(~np.isfinite(matrix))[0])
        raise ValueError(
            f"cost[{i}, {j}] is {matrix[i, j]}: costs must be finite. Use a large number for "
            "decisions that must never be made."
        )
    return matrix


def _as_numbers(values: ArrayLike, name: str) -> Floats:
    try:
        is_complex = np.iscomplexobj(values)
        numbers = np.asarray(values, dtype=None if is_complex else np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold numbers, got {quoted(values)}.") from error
    if is_complex:
        raise ValueError(f"{name} has complex numbers, which have no order: pass real ones.")
    return numbers


def decision_labels(
    classes: ArrayLike, d: int, rejects: bool, rejected: object, name: str = "classes"
) -> NDArray:
    """Return the labels of d decisions, and at the end the label of rejected rows, if any."""
    labels = np.asarray(classes)
    if labels.shape != (d,):
        raise ValueError(
            f"{name} must hold a label for each of the {d} decisions, got shape {labels.shape}."
        )
    if not rejects:
        return labels
    otherwise = "" if rejected is None else ", or leave it out"
    rejected = _default_rejected(labels) if rejected is None else rejected
    both = _append(labels, rejected)
    if both is None or (both[:-1] == both[-1]).any():
        like = "" if labels.dtype.kind == "b" else "of the same type "
        raise ValueError(
            f"rejected={quoted(rejected)} cannot stand for rejected rows among labels such as "
            f"{quoted(labels[0])}: pass one {like}that is none of the labels{otherwise}."
        )
    return both


def _append(labels: NDArray, rejected: object) -> NDArray | None:
    """Return the labels and the label of rejected rows; None if it has another type."""
    kind = labels.dtype.kind
    texts = isinstance(rejected, str) == isinstance(labels[0], str)
    if kind in "mM":  # a list would turn nanoseconds into integers
        fits = isinstance(rejected, labels.dtype.type)
        return np.append(labels, np.array([rejected], dtype=labels.dtype)) if fits else None
    if kind in "bO":
        both = np.empty(len(labels) + 1, dtype=object)
        both[:-1], both[-1] = labels, rejected
        return both if texts or kind == "b" else None
    both = np.array([*labels.tolist(), rejected])
    alike = both.dtype.kind == kind or {both.dtype.kind, kind} == {"i", "u"}
    return both if texts and alike and both.shape == (len(labels) + 1,) else None


def _default_rejected(labels: NDArray) -> object:
    kind = labels.dtype.kind
    if kind in "iuf":
        return min(REJECTED, labels.min().item() - 1)
    if kind in "mM":
        return np.array("NaT", dtype=labels.dtype)[()]
    if kind == "b":
        return None
    return "rejected" if isinstance(labels[0], str) else REJECTED
