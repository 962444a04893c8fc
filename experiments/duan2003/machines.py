"""Cross-validated scores of all binary machines, for many C at once.

For every σ², all C, folds, columns and methods share one kernel matrix. One call fits
the SVMs of all columns. Each kernel logistic regression starts from the solution for the previous
C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.svm import SVC

from experiments.duan2003.partitions import Classes, Floats
from manyclass.banks import MARGIN, fit_bank
from manyclass.learners import KernelLogisticRegression
from manyclass.learners.kernel_logistic.newton import solve
from manyclass.scores.folds import Fold

TOL = 1e-5  # of kernel logistic regressions within the grid, where scores are compared

Code = NDArray[np.int8]


@dataclass(frozen=True)
class Problem:
    """A training set, given by the distances of its samples."""

    distances: Floats
    """Squared distances, shape (n, n)."""
    y: Classes
    code: Code
    folds: Sequence[Fold]

    def scores(
        self, learner: type[ClassifierMixin], sigma2: float, values_of_C: Sequence[float]
    ) -> Floats:
        """Return margins (len(values_of_C), n, l) of machines fitted without the fold of the row.

        Parameters
        ----------
        learner : {SVC, KernelLogisticRegression}
        sigma2 : float
            Width of the kernel exp(-‖x - x'‖²/(2σ²)).
        values_of_C : sequence of float
            Increasing.
        """
        K = np.exp(self.distances / (-2.0 * sigma2))
        scores = np.empty((len(values_of_C), *self.code[self.y].shape))
        for train, test in self.folds:
            inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
            scores[:, test] = LEARNERS[learner](inner, outer, self.y[train], self.code, values_of_C)
        return scores


def svm_scores(
    inner: Floats, outer: Floats, y: Classes, code: Code, values_of_C: Sequence[float]
) -> Floats:
    """Return the margins (len(values_of_C), m, l) of support vector machines."""
    banks = (fit_bank(SVC(C=C, kernel="precomputed"), inner, y, code, MARGIN) for C in values_of_C)
    return np.stack([bank.scores(outer) for bank in banks])


def logistic_scores(
    inner: Floats, outer: Floats, y: Classes, code: Code, values_of_C: Sequence[float]
) -> Floats:
    """Return the log-odds (len(values_of_C), m, l) of kernel logistic regressions."""
    scores = np.empty((len(values_of_C), len(outer), code.shape[1]))
    for b, column in enumerate(code.T):
        rows = np.flatnonzero(column[y])
        K, positive, start = inner[np.ix_(rows, rows)], column[y[rows]] > 0, None
        for i, C in enumerate(values_of_C):
            found = solve(K, positive, np.full(len(rows), C), tol=TOL, start=start)
            start = found.dual, found.intercept
            scores[i, :, b] = outer[:, rows] @ found.dual + found.intercept
    return scores


LEARNERS: dict[type[ClassifierMixin], Callable[..., Floats]] = {
    SVC: svm_scores,
    KernelLogisticRegression: logistic_scores,
}
