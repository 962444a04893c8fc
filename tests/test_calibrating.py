"""Calibrations of out-of-sample scores, and of few of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from manyclass import codes
from manyclass.calibrating import calibrate, left_out_probabilities

CODE = codes.one_vs_one(3)


def noisy_scores(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return CODE[y] + rng.normal(size=(n, 3)), y


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_every_fold_is_judged_by_the_others(method):
    scores, y = noisy_scores()
    numbers = np.arange(30) // 10 - 1  # the first ten are never left out
    r = left_out_probabilities(method, scores, y, CODE, np.ones(30), numbers)
    assert np.isnan(r[:10]).all()
    for fold in (0, 1):
        test = numbers == fold
        without = calibrate(method, scores[~test], y[~test], CODE, np.ones(20))
        assert_array_equal(r[test], without.transform(scores[test]))


@pytest.mark.parametrize(("n", "few"), [(57, True), (60, False)])
def test_twenty_of_a_class_are_enough(n, few):
    scores, y = noisy_scores(n)
    assert (left_out_probabilities("sigmoid", scores, y, CODE, np.ones(n)) is not None) == few


def test_weights_are_copies():
    scores, y = noisy_scores()
    times, numbers = np.arange(30) % 3, np.arange(30) % 5
    weighted = left_out_probabilities("sigmoid", scores, y, CODE, times.astype(float), numbers)
    copies = [np.repeat(a, times, axis=0) for a in (scores, y, np.ones(30), numbers)]
    copied = left_out_probabilities("sigmoid", *copies[:2], CODE, *copies[2:])
    np.testing.assert_allclose(np.repeat(weighted, times, axis=0), copied, atol=1e-8)
    assert np.isnan(weighted[times == 0]).all()


def test_samples_of_one_kind_cannot_be_left_out():
    scores, _ = noisy_scores(3)
    assert left_out_probabilities("sigmoid", scores, np.arange(3), CODE, np.ones(3)) is None


def test_no_column_turns_its_sides_round():
    scores, y = noisy_scores()
    sigmoid = calibrate("sigmoid", scores * [1.0, -1.0, 1.0], y, CODE, np.ones(30))
    assert (sigmoid.slopes_ < 0).all()
