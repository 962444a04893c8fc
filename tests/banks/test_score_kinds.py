"""Kinds of scores."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from manyclass.banks import LOG_ODDS
from manyclass.banks.score_kinds import SMALLEST_PROBABILITY

X, Y = np.array([[0.0], [1.0], [10.0], [11.0]]), np.array([0, 0, 1, 1])
NEW = np.array([[-50.0], [-20.0], [0.5], [10.5], [40.0]])


def test_far_log_odds_of_naive_bayes_are_exact():
    """Its probabilities are exactly 0 and 1 there, and would be equal."""
    model = GaussianNB().fit(X, Y)
    odds = LOG_ODDS.of(model, NEW)
    assert (model.predict_proba(NEW)[:2, 1] == 0).all()
    joint = model.predict_joint_log_proba(NEW)
    assert_allclose(odds, joint[:, 1] - joint[:, 0])
    assert (np.diff(odds) > 0).all() and odds[0] < odds[1] < -1000


def test_counts_of_zero_are_a_convention():
    """A leaf without samples of a class does not exclude it."""
    odds = LOG_ODDS.of(DecisionTreeClassifier().fit(X, Y), NEW)
    assert_array_equal(np.abs(odds), -np.log(SMALLEST_PROBABILITY))
