"""What calibrations are chosen on, and what a scaling is fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manyclass import codes, couple
from manyclass.calibration import Beta, Sigmoid
from manyclass.calibration.crossfitting import calibrate, left_out_probabilities
from manyclass.calibration.evidence import Evidence
from manyclass.scores.out_of_sample import DenseScores

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
CODE = codes.one_vs_one(3)


def evidence(scores):
    known = DenseScores(scores, Y, CODE, np.ones(len(Y)))
    return Evidence(known, None, lambda r: couple(r, CODE, "wlw2"))


@pytest.fixture
def found():
    return evidence(CODE[Y] + RNG.normal(size=(90, 3)))


def test_two_methods_are_judged_by_the_classes(found):
    """By the columns alone, there is a loss for every entry and not for every row."""
    choice = found.choose([Sigmoid, Beta], scaled=True)
    assert choice != found.choose([Sigmoid, Beta], scaled=False)


def test_a_scaling_reads_rows_that_the_calibration_has_not_seen(found):
    calibration = calibrate(Sigmoid, found.scores)
    rows, r = found.left_out_rows(calibration)
    expected_rows, expected = left_out_probabilities(calibration, found.scores, np.arange(90))
    assert_array_equal(rows, expected_rows)
    assert_array_equal(r, expected)
    assert_array_equal(found.left_out(calibration)["y"], Y[rows])


def test_without_complete_rows_there_is_nothing_to_read():
    scores = np.full((90, 3), np.nan)
    scores[:, 0] = CODE[Y, 0]
    assert evidence(scores).left_out(None) is None


def test_some_of_many_rows_are_drawn(found):
    assert len(np.unique(found.rows(most=20))) == 20
    assert_array_equal(np.sort(found.rows(most=90)), np.arange(90))
