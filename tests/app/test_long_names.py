"""Messages that name what was given do not repeat all of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from experiments import datasets
from manyclass import CoupledClassifier, CoupledSVC, codes, couple, metrics
from manyclass.banks.svm.gamma import resolve_gamma
from manyclass.combiners.coupling.general import Zadrozny
from manyclass.combiners.coupling.pairwise import HastieTibshirani
from manyclass.combiners.decoding import LossBased
from manyclass.learners import PairwiseNeighbors
from manyclass.learners.threshold_search import search_for

LONG = "x" * 10_000
X, Y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
R = np.full((1, 3, 3), 0.5)


def coupled(**params):
    return CoupledClassifier(LogisticRegression(), **params).fit(X, Y)


CALLS = {
    "cv": lambda: coupled(cv=LONG),
    "scaling": lambda: coupled(scaling=LONG),
    "with_native": lambda: coupled(with_native=LONG),
    "calibration": lambda: coupled(calibration=LONG),
    "code": lambda: coupled(code=LONG),
    "combiner": lambda: coupled(combiner=LONG),
    "n_jobs": lambda: coupled(n_jobs=LONG),
    "loss": lambda: coupled(combiner=LossBased(LONG), code="one-vs-rest").predict(X),
    "solver": lambda: couple(R, rule=HastieTibshirani(solver=LONG)),
    "start": lambda: couple(R, rule=Zadrozny(start=LONG)),
    "data set": lambda: datasets.load(LONG),
    "gamma": lambda: resolve_gamma(LONG, X),
    "dtype": lambda: CoupledSVC(dtype=LONG).fit(X, Y),
    "strategy": lambda: metrics.reliability_curve(Y, np.full((30, 3), 1 / 3), strategy=LONG),
    "criterion": lambda: search_for(LONG),
    "evidence": lambda: PairwiseNeighbors(evidence=LONG).fit(X, Y > 0),
    "n_columns": lambda: codes.sparse_random(4, n_columns=LONG),
}


@pytest.mark.parametrize("name", CALLS)
def test_messages_stay_short(name):
    with pytest.raises((ValueError, TypeError)) as caught:
        CALLS[name]()
    message = str(caught.value)
    assert len(message) < 1000
    assert "x" * 30 in message
