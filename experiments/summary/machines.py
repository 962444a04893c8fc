"""The machines of a learner and a code, fitted once for all rules.

The answers are those of :class:`~manyclass.CoupledSVC` and
:class:`~manyclass.CoupledClassifier` with each rule.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from experiments.summary.methods import COUPLERS, DECODERS, TRAINED
from experiments.summary.samples import Array, Part
from experiments.tempering import probabilities_of_columns, temperature_of
from manyclass import codes
from manyclass._lib.weights import column_sizes
from manyclass.banks import MARGIN, fit_bank
from manyclass.calibration import Calibration, Sigmoid
from manyclass.combiners.base import Combiner, resolve
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scores.crossfit import CrossFittedScores
from manyclass.scores.folds import make_folds
from manyclass.scores.leave_one_out import leave_one_out
from manyclass.scores.out_of_sample import DenseScores, OutOfSampleScores

FOLDS = 5
WARM = 8  # rows of a first call before timing, which loads the compiled kernels
BASES = {"svc": SVC(C=10.0, gamma="scale"), "logistic": LogisticRegression(max_iter=1000)}

T = TypeVar("T")


class Answer(NamedTuple):
    """Output of a rule for the test rows."""

    rule: str
    tempered: bool
    values: Array
    """Class probabilities, or class scores."""
    probabilities: bool
    learning: float
    """Seconds to fit what the rule learns from out-of-sample scores."""
    combining: float
    """Seconds to combine the scores of the test rows."""


class Machines:
    """The binary machines of one learner and one code.

    Calibration, temperature and trained rules learn from their out-of-sample margins, as in
    the classifiers: a sigmoid for support vector machines, none for logistic regression.

    Parameters
    ----------
    learner : {"svc", "logistic"}
    code : str
        Name of the code.
    train, test : Part
    seed : int
        Seed of a random code.

    Attributes
    ----------
    train_scores : array of shape (n_train, l)
        Out-of-sample margins.
    test_scores : array of shape (n_test, l)
        Margins.
    seconds : float
        Time to fit and to compute the out-of-sample margins.
    """

    def __init__(self, learner: str, code: str, train: Part, test: Part, seed: int):
        self.X, self.y, self.X_test = train.inputs[learner], train.y, test.inputs[learner]
        self.learner, self.code_name = learner, code
        self.k, self.ones = int(self.y.max()) + 1, np.ones(len(self.y))
        self.code = codes.by_name(code, self.k, random_state=seed)
        self.weights = column_sizes(self.y, self.code, self.ones)
        self.bank: Any
        self.bank, fitting = timed(self._fit)
        self.scores, leaving_out = timed(self._out_of_sample)
        self.train_scores: Array = self.scores.dense()
        self.seconds = fitting + leaving_out
        self.test_scores: Array = self.bank.scores(self.X_test)

    def _fit(self, rows=None, columns=None):
        code = self.code if columns is None else self.code[:, columns]
        return fit_bank(clone(BASES[self.learner]), self.X, self.y, code, MARGIN, rows=rows)

    def _out_of_sample(self) -> OutOfSampleScores:
        """Return the out-of-sample margins that CoupledSVC and CoupledClassifier use by default."""
        data = self.X, self.y, self.code, self.ones
        if self.learner == "svc":
            enough = rows_for_scaling(*self.code.shape)
            scores, _ = leave_one_out(self.bank, self._fit, *data, n_by_folds=enough)
            return scores
        folds = make_folds(FOLDS, self.X, self.y, np.arange(self.k), warn=False)
        return CrossFittedScores(self.bank, self._fit, *data, folds, n_by_folds=len(self.y))

    def answers(self) -> Iterator[Answer]:
        """Yield the answer of every rule for this code.

        Yields
        ------
        Answer
        """
        yield from self._coupled()
        yield from self._trained()
        yield from self._decoded()

    def _coupled(self) -> Iterator[Answer]:
        """Yield the coupling rules, without and with a temperature."""
        r_test, calibration, scores = self._probabilities()
        (rows, r), calibrating = timed(partial(probabilities_of_columns, calibration, scores))
        for rule in COUPLERS[self.code_name]:
            combiner = resolve(rule)
            p, combining = self._combined(combiner, r_test)
            yield Answer(rule, False, p, True, 0.0, combining)
            learn = partial(temperature_of, combiner, scores, rows, r, self.weights)
            temperature, learning = timed(learn)
            tempered, raising = timed(partial(temperature.scale, p))
            yield Answer(rule, True, tempered, True, calibrating + learning, combining + raising)

    def _probabilities(self) -> tuple[Array, Calibration | None, OutOfSampleScores]:
        """Return binary probabilities of the test rows, and what a temperature is fitted on.

        Logistic regression has probabilities; margins of support vector machines need a sigmoid.
        """
        if self.learner == "logistic":
            margins = self.scores.of_one_source(np.arange(len(self.y)))
            r_train = DenseScores(expit(margins), self.y, self.code, self.ones)
            return expit(self.test_scores), None, r_train
        sigmoid = Sigmoid().fit(self.train_scores, self.code[self.y], self.ones)
        return sigmoid.transform(self.test_scores), sigmoid, self.scores

    def _trained(self) -> Iterator[Answer]:
        """Yield the rules that learn how to combine margins."""
        known = np.flatnonzero(~np.isnan(self.train_scores).any(axis=1))
        learned = self.train_scores[known], self.y[known], self.code, self.ones[known]
        for rule in TRAINED.get(self.code_name, ()):
            combiner = resolve(rule)
            _, learning = timed(partial(combiner.fit, *learned))
            values, combining = self._combined(combiner, self.test_scores)
            yield Answer(rule, False, values, True, learning, combining)

    def _decoded(self) -> Iterator[Answer]:
        """Yield the rules that give only labels."""
        for rule in DECODERS[self.code_name]:
            decoder = resolve(rule)
            if decoder.measure() is None:
                values, combining = self._combined(decoder, self.test_scores)
                yield Answer(rule, False, values, False, 0.0, combining)
            elif self.learner == "svc":
                yield self._by_reliability(decoder)

    def _combined(self, combiner: Combiner, values: Array) -> tuple[Array, float]:
        combiner.combine(values[:WARM], self.code, self.weights)
        combination, seconds = timed(partial(combiner.combine, values, self.code, self.weights))
        return combination.values, seconds

    def _by_reliability(self, decoder: Combiner) -> Answer:
        """Measure the reliability of each machine, and decode with it."""
        measure = decoder.measure()
        assert measure is not None
        terms = self.bank.objective_terms(self.X, self.y, self.code, self.ones)
        learned = self.X, self.y, self.code, terms, self.train_scores
        _, learning = timed(partial(measure.fit, *learned))

        def decode() -> Array:
            trust = measure.of(self.X_test, self.test_scores)
            return decoder.combine(self.test_scores, self.code, trust).values

        values, combining = timed(decode)
        return Answer(decoder.key, False, values, False, learning, combining)


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result of the work, and the processor time in seconds.

    Only the time of this process counts; it does all of the work.
    """
    start = time.process_time()
    answer = work()
    return answer, time.process_time() - start
