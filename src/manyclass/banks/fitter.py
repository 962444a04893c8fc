"""What fits the bank of a code again and again: on all rows, and on those of each fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass._lib.arrays import Code, Flags, Places
from manyclass.banks.base import Bank
from manyclass.banks.fit import fit_bank
from manyclass.banks.grouped import fit_groups
from manyclass.banks.native import fit_native
from manyclass.banks.prefit import is_prefit, prefit_bank
from manyclass.banks.score_kinds import ScoreKind


@dataclass(frozen=True)
class BankFitter:
    """Fits a bank on some rows and columns.

    A model that is fitted already is used as it is. Otherwise a clone of the learner is fitted on
    all classes at once (``native``), for each block of columns, or for each column.
    """

    estimator: Any
    X: Any
    y: Places
    code: Code
    kind: ScoreKind
    classes: NDArray
    """The labels, for a model that is fitted already."""
    native: bool
    blocks: list[slice] | None
    """Columns that are a multiclass problem together; None if each column is a binary one."""
    seeds: NDArray[np.int64] | None
    """A seed for each column."""
    fit_params: Mapping[str, Any]
    n_jobs: int | None
    options: Mapping[str, Any]
    """Further arguments of :func:`fit_bank`."""
    used: Flags | None = None
    """The rows that a learner may see; None for all."""

    def __call__(self, rows: Places | None = None, columns: Flags | None = None) -> Bank:
        """Fit the bank; None means all rows, or all columns.

        Only banks of one model per column can leave columns out.
        """
        if is_prefit(self.estimator):
            return prefit_bank(self.estimator, self.kind, self.classes, self.native)
        if self.used is not None:
            rows = np.flatnonzero(self.used) if rows is None else rows[self.used[rows]]
        estimator, X, y, kind = self.estimator, self.X, self.y, self.kind
        shared: Any = {"rows": rows, "fit_params": self.fit_params}
        if self.native:
            seed = None if self.seeds is None else self.seeds[0]
            return fit_native(estimator, X, y, kind, len(self.code), seed=seed, **shared)
        code, seeds, shared["n_jobs"] = self.code, self.seeds, self.n_jobs
        if self.blocks is not None:
            return fit_groups(estimator, X, y, code, self.blocks, kind, seeds=seeds, **shared)
        if columns is not None:
            code, seeds = code[:, columns], None if seeds is None else seeds[columns]
        return fit_bank(estimator, X, y, code, kind, seeds=seeds, **shared, **self.options)
