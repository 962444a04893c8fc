"""The search for C and gamma of Wu et al. (2003), section 6.2, for all rules at once.

For every gamma, all C, folds and rules share one kernel matrix. One call fits the machines of all
pairs of classes. All compared calibrations and rules use its scores. The probabilities are
those of :class:`~manyclass.CoupledClassifier`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from experiments.tempering import probabilities_of_columns, temperature_of
from manyclass import codes
from manyclass._lib.weights import column_sizes
from manyclass.banks import MARGIN, Bank, fit_bank
from manyclass.calibration import Sigmoid
from manyclass.calibration.crossfitting import calibrate
from manyclass.combiners.base import resolve
from manyclass.scaling import Temperature
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scaling.temperature import FLOOR
from manyclass.scores.folds import Fold
from manyclass.scores.leave_one_out import leave_one_out
from manyclass.scores.out_of_sample import OutOfSampleScores

RULES = ("ht", "wlw1", "wlw2", "vote", "ht-noniterative", "pkpd", "logit")
TRAINING, LEFT_OUT = "training", "leave-one-out"  # the scores that sigmoids are fitted on
CALIBRATIONS = (TRAINING, LEFT_OUT)
TUNED = "CoupledSVC, tuned"

Floats = NDArray[np.float64]
Classes = NDArray[np.intp]


@dataclass(frozen=True)
class Grid:
    """The values of C and gamma, both increasing."""

    C: tuple[float, ...]
    gamma: tuple[float, ...]


class Point(NamedTuple):
    """A point of the grid, and its cross-validated performance."""

    C: float
    gamma: float
    loss: float


def method_name(rule: str, calibration: str) -> str:
    """Return the name of a rule with sigmoids on the given scores."""
    return f"{rule} / {calibration}"


METHODS = (*(method_name(rule, kind) for kind in CALIBRATIONS for rule in RULES), TUNED)


class Machines:
    """The SVMs of all pairs of classes, fitted on a kernel matrix, with their sigmoids.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix of the training samples.
    y : int array of shape (n,)
        Class indices; classes may be missing.
    C : float
    """

    def __init__(self, K: Floats, y: Classes, C: float):
        self.classes, self.y = np.unique(y, return_inverse=True)
        self.code = codes.one_vs_one(len(self.classes))
        self.K, self.C, self.ones = K, C, np.ones(len(y))
        self.weights = column_sizes(self.y, self.code, self.ones)
        self.bank = self._fit()
        sides = self.code[self.y]
        self.sigmoids = {
            TRAINING: Sigmoid().fit(self.bank.scores(K), sides, self.ones),
            LEFT_OUT: calibrate(Sigmoid, self.left_out),
        }

    def _fit(
        self,
        rows: NDArray[np.intp] | None = None,
        columns: NDArray[np.bool_] | None = None,
    ) -> Bank:
        machine = SVC(C=self.C, kernel="precomputed")
        code = self.code if columns is None else self.code[:, columns]
        return fit_bank(machine, self.K, self.y, code, MARGIN, rows=rows)

    @cached_property
    def left_out(self) -> OutOfSampleScores:
        """Out-of-sample scores of the training set."""
        enough = rows_for_scaling(*self.code.shape)
        data = self.K, self.y, self.code, self.ones
        scores, _ = leave_one_out(self.bank, self._fit, *data, n_by_folds=enough)
        return scores

    @cached_property
    def temperature(self) -> Temperature:
        """The temperature of CoupledSVC, from the out-of-sample probabilities of wlw2."""
        rows, r = probabilities_of_columns(self.sigmoids[LEFT_OUT], self.left_out)
        return temperature_of(resolve("wlw2"), self.left_out, rows, r, self.weights)

    def binary_probabilities(self, K: Floats) -> dict[str, Floats]:
        """Return r of new samples under either calibration; K is (n_new, n_training)."""
        scores = self.bank.scores(K)
        return {kind: sigmoid.transform(scores) for kind, sigmoid in self.sigmoids.items()}


def class_probabilities(
    machines: Sequence[Machines], K: Floats, n_classes: int
) -> Iterator[tuple[str, Floats]]:
    """Yield every method and its probabilities of new samples.

    Parameters
    ----------
    machines : sequence of Machines
        Fitted on the same samples: one call couples the probabilities of all.
    K : array of shape (n, n_training)
        Kernel matrix of new samples and training samples.
    n_classes : int
        Number of all classes; those without training samples get probability 0.

    Yields
    ------
    method : str
    p : array of shape (len(machines), n, n_classes)
    """
    first = machines[0]
    answers = [machine.binary_probabilities(K) for machine in machines]
    for kind in CALIBRATIONS:
        r = np.concatenate([answer[kind] for answer in answers])
        for rule in RULES:
            p = np.zeros((len(machines), len(K), n_classes))
            coupled = resolve(rule).combine(r, first.code, first.weights).values
            p[..., first.classes] = coupled.reshape(len(machines), len(K), -1)
            yield method_name(rule, kind), p
            if (rule, kind) == ("wlw2", LEFT_OUT):
                tuned = p.copy()
                for q, machine in zip(tuned, machines, strict=True):
                    q[:, first.classes] = machine.temperature.scale(q[:, first.classes])
                yield TUNED, tuned


def log_losses(p: Floats, y: Classes) -> Floats:
    """Return -log p of the true class, (..., n) from (..., n, k)."""
    return -np.log(np.maximum(p[..., np.arange(len(y)), y], FLOOR))


def cross_validate(
    distances: Floats, y: Classes, folds: Sequence[Fold], grid: Grid, n_classes: int
) -> dict[str, Point]:
    """Return the best point of the grid for every method.

    The best point has the smallest error; for :data:`TUNED`, the smallest log-loss. Ties go to
    the smallest C, as in the paper, and then to the smallest gamma, a choice of ours.

    Parameters
    ----------
    distances : array of shape (n, n)
        Squared distances of the training samples.
    y : int array of shape (n,)
    folds : pairs (train, test) of rows
    grid : Grid
    n_classes : int
    """
    losses = {method: np.zeros((len(grid.C), len(grid.gamma))) for method in METHODS}
    for column, gamma in enumerate(grid.gamma):
        K = np.exp(-gamma * distances)
        for train, test in folds:
            inner, outer = K[np.ix_(train, train)], K[np.ix_(test, train)]
            machines = [Machines(inner, y[train], C) for C in grid.C]
            for method, p in class_probabilities(machines, outer, n_classes):
                wrong = p.argmax(axis=2) != y[test]
                lost = log_losses(p, y[test]) if method == TUNED else wrong
                losses[method][:, column] += lost.sum(axis=1)
    return {method: _best(loss / len(y), grid) for method, loss in losses.items()}


def _best(losses: Floats, grid: Grid) -> Point:
    # The first of the smallest, in the order of C and then of gamma.
    row, column = np.unravel_index(losses.argmin(), losses.shape)
    return Point(grid.C[row], grid.gamma[column], float(losses[row, column]))
