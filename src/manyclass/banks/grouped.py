"""Multiclass models of groups of classes: several columns of a code are one problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.alignment import aligned
from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.jobs import run_tasks
from manyclass.banks.base import Bank
from manyclass.banks.native import NativeBank, fit_native
from manyclass.banks.score_kinds import ScoreKind


class GroupBank(Bank):
    """Multiclass models, each of which answers for a block of columns.

    Parameters
    ----------
    parts : list of NativeBank
        The model of each block. A problem of two groups has one column.
    kind : ScoreKind
        What :meth:`scores` returns.
    """

    def __init__(self, parts: list[NativeBank], kind: ScoreKind):
        self.parts, self.kind = parts, kind
        widths = (1 if part.n_classes == 2 else part.n_classes for part in parts)
        self.constant = np.zeros(sum(widths), dtype=np.bool_)

    @property
    def models(self) -> list[Any]:
        """The multiclass model of each block."""
        return [part.models[0] for part in self.parts]

    def scores(self, X, where: Flags | None = None) -> Floats:
        """Return the scores of every column; ``where`` is ignored."""
        scores = [part.scores(X) for part in self.parts]
        # Of two groups, the positive one is the second.
        return np.hstack([part[:, 1:] if part.shape[1] == 2 else part for part in scores])


def fit_groups(
    estimator,
    X,
    y: Places,
    code: Code,
    blocks: list[slice],
    kind: ScoreKind,
    *,
    rows: Places | None = None,
    fit_params: Mapping[str, Any] | None = None,
    seeds: NDArray[np.int64] | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> GroupBank:
    """Fit a clone of the estimator for each block of columns; see :func:`fit_native`."""
    rows = np.arange(len(y)) if rows is None else rows
    shared = estimator, X, y, code, kind, rows, fit_params, seeds
    parts = run_tasks(_fit_block, blocks, *shared, n_jobs=n_jobs, verbose=verbose)
    return GroupBank(parts, kind)


def _fit_block(block: slice, estimator, X, y, code, kind, rows, fit_params, seeds) -> NativeBank:
    columns = code[:, block]
    # The group of each class: its positive column, or of two groups the positive one.
    group = columns[:, 0] > 0 if columns.shape[1] == 1 else columns.argmax(axis=1)
    takes_part = columns[:, 0] != 0
    own = rows[takes_part[y[rows]]]
    n_groups = max(2, columns.shape[1])
    seed = None if seeds is None else seeds[block.start]
    options: dict[str, Any] = {"rows": own, "fit_params": fit_params, "seed": seed}
    return fit_native(estimator, aligned(X), group.astype(np.intp)[y], kind, n_groups, **options)
