"""The learner's own probabilities."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_array_equal
from scipy.special import expit

from manyclass.calibration import Unchanged

SCORES = np.array([[-np.inf, 0.0], [1.5, np.nan], [np.inf, -800.0]])


def test_log_odds_become_their_probabilities():
    assert_array_equal(Unchanged().transform(SCORES), expit(SCORES))
    assert_array_equal(Unchanged().transform(SCORES)[[0, 2], 0], [0.0, 1.0])


def test_no_data_change_it():
    sides = np.array([[1, 1], [1, -1], [-1, -1]], dtype=np.int8)
    model = Unchanged().fit(SCORES, sides, np.ones(3))
    model.enforce_monotone(np.array([2.0, 1.0]), np.array([1.0, 2.0]))
    assert_array_equal(model.transform(SCORES), expit(SCORES))
    assert vars(model) == {}
