"""Binary models of all columns that learn batch by batch."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.rows import take_part, without_duplicates
from manyclass._lib.sklearn import check_fit_params
from manyclass.banks.base import Bank, ConstantModel
from manyclass.banks.by_column import set_seed
from manyclass.banks.linear import LinearBank
from manyclass.banks.score_kinds import ScoreKind


def new_learners(estimator, n_columns: int, seeds: NDArray[np.int64] | None) -> list[Any]:
    """Return a clone of ``estimator`` for each column, none of them fitted."""
    learners = [clone(estimator) for _ in range(n_columns)]
    if seeds is not None:
        for learner, seed in zip(learners, seeds, strict=True):
            set_seed(learner, seed)
    return learners


def teach(
    learners: list[Any], X, y: Places, code: Code, rows: Places, params, n_jobs=None, verbose=0
) -> list[Any]:
    """Return copies of the learners that have also learned a batch.

    ``params`` are arguments of ``partial_fit``, sliced like the rows if they have their length. A
    learner without rows in the batch is not copied.
    """
    with threadpool_limits(1, user_api="blas"):
        return Parallel(n_jobs=n_jobs, verbose=verbose)(
            delayed(_teach_column)(learner, X, y, code[:, b], rows, params)
            for b, learner in enumerate(learners)
        )


def _teach_column(learner, X, y, column, rows, params):
    rows = rows[column[y[rows]] != 0]
    if len(rows) == 0:
        return learner
    target = (column[y[rows]] > 0).astype(np.int64)
    sliced = check_fit_params(X, params, rows)
    if not hasattr(learner, "classes_"):
        sliced = {**sliced, "classes": np.array([0, 1])}
    # A copy, since an error in another column must leave all learners unchanged.
    part = without_duplicates(take_part(X, rows, copy=True))
    return deepcopy(learner).partial_fit(part, target, **sliced)


def sides_in(code: Code, totals: Floats) -> Flags:
    """Return which columns have a negative and a positive side (2, l), from class weights (k,)."""
    return np.array([totals @ (code < 0) > 0, totals @ (code > 0) > 0])


def bank_of(learners: list[Any], seen: Flags, known: Flags, kind: ScoreKind) -> Bank:
    """Return the bank of learners, some of which may have seen one side only.

    ``seen`` (2, l) marks the sides that each learner has learned from, ``known`` (2, l) the sides
    that have samples. If only one has, it is certain. If none has, or if the learner has not yet
    learned both, the sides are equally likely.
    """
    models = [
        learner if both else ConstantModel(bool(positive) if negative != positive else None)
        for learner, both, negative, positive in zip(
            learners, seen[0] & seen[1], *known, strict=True
        )
    ]
    return (LinearBank if LinearBank.holds(models) else Bank)(models, kind)
