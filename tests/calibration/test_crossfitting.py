"""Calibrations of out-of-sample scores, and probabilities of rows that they did not see."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from manyclass import codes
from manyclass.calibration import CALIBRATIONS, Beta, Isotonic, Sigmoid
from manyclass.calibration.crossfitting import (
    calibrate,
    crossfitted_probabilities,
    left_out_probabilities,
)
from manyclass.scores.out_of_sample import DenseScores, PackedScores

CODE = codes.one_vs_one(3)


def noisy_scores(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return CODE[y] + rng.normal(size=(n, 3)), y


def probabilities(method, scores, y, weights, numbers=None, rows=None, code=CODE):
    """Return the rows of :func:`left_out_probabilities` in order, and their probabilities."""
    rows = np.arange(len(y)) if rows is None else rows
    left_out = DenseScores(scores, y, code, weights, numbers)
    own = calibrate(CALIBRATIONS[method], left_out)
    found, r = left_out_probabilities(own, left_out, rows)
    order = np.argsort(found)
    return found[order], r[order], own


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_every_fold_is_judged_by_the_others(method):
    scores, y = noisy_scores()
    numbers = np.arange(30) // 10 - 1  # the first ten are never left out
    rows, r, _ = probabilities(method, scores, y, np.ones(30), numbers)
    assert_array_equal(rows, np.arange(10, 30))
    for fold in (0, 1):
        test = np.flatnonzero(numbers == fold)
        others = np.flatnonzero(numbers != fold)
        rest = DenseScores(scores[others], y[others], CODE, np.ones(20))
        without = calibrate(CALIBRATIONS[method], rest)
        assert_allclose(r[np.isin(rows, test)], without.transform(scores[test]), rtol=1e-9)


def test_some_rows_have_the_probabilities_that_they_have_among_all():
    scores, y = noisy_scores()
    _, r, _ = probabilities("sigmoid", scores, y, np.ones(30))
    chosen = np.array([2, 3, 5, 7, 29])
    rows, some, _ = probabilities("sigmoid", scores, y, np.ones(30), rows=chosen)
    assert_array_equal(rows, chosen)
    assert_allclose(some, r[chosen], rtol=1e-12)


@pytest.mark.parametrize("n_of_class", [99, 100])
def test_with_a_hundred_samples_of_every_class_a_sigmoid_is_not_fitted_again(n_of_class):
    n = 3 * n_of_class
    scores, y = noisy_scores(n)
    _, r, own = probabilities("sigmoid", scores, y, np.ones(n))
    assert np.array_equal(r, own.transform(scores)) == (n_of_class == 100)


def test_weights_are_copies():
    scores, y = noisy_scores()
    times, numbers = np.arange(30) % 3, np.arange(30) % 5
    rows, weighted, _ = probabilities("sigmoid", scores, y, times.astype(float), numbers)
    copies = [np.repeat(a, times, axis=0) for a in (scores, y, np.ones(30), numbers)]
    _, copied, _ = probabilities("sigmoid", *copies)
    assert_array_equal(rows, np.flatnonzero(times))
    assert_allclose(np.repeat(weighted, times[rows], axis=0), copied, atol=1e-8)


def test_samples_of_one_kind_cannot_be_left_out():
    scores, _ = noisy_scores(3)
    rows, r, own = probabilities("sigmoid", scores, np.arange(3), np.ones(3))
    assert_array_equal(rows, np.arange(3))
    assert_array_equal(r, own.transform(scores))


def test_no_sigmoid_decreases():
    scores, y = noisy_scores()
    reversed_column = scores * [1.0, -1.0, 1.0]
    sigmoid = calibrate(Sigmoid, DenseScores(reversed_column, y, CODE, np.ones(30)))
    assert (sigmoid.slopes_ < 0).all()


# -- probabilities that are always cross-fitted -------------------------------------------


def crossfitted(method, scores, rows, **otherwise):
    """Return the rows of :func:`crossfitted_probabilities` in order, and their probabilities."""
    found, r = crossfitted_probabilities(method, scores, rows, **otherwise)
    order = np.argsort(found)
    return found[order], r[order]


@pytest.mark.parametrize("n", [30, 300])
@pytest.mark.parametrize("method", [Sigmoid, Beta, Isotonic])
def test_any_number_of_rows_is_cross_fitted(method, n):
    values, y = noisy_scores(n)
    numbers = np.arange(n) % 4 - 1  # a quarter is never left out
    scores = DenseScores(values, y, CODE, np.ones(n), numbers)
    rows, r = crossfitted(method, scores, np.arange(n))
    assert_array_equal(rows, np.flatnonzero(numbers >= 0))
    for fold in range(3):
        without = calibrate(method, scores, np.where(numbers == fold, 0.0, 1.0))
        own = numbers == fold
        assert_allclose(r[numbers[rows] == fold], without.transform(values[own]), rtol=1e-12)


def test_rows_that_no_fold_leaves_out_use_the_calibration_of_all():
    values, _ = noisy_scores(3)
    scores = DenseScores(values, np.arange(3), CODE, np.ones(3))
    own = calibrate(Sigmoid, scores)
    for otherwise in ({}, {"otherwise": own}):
        rows, r = crossfitted(Sigmoid, scores, np.arange(3), **otherwise)
        assert_array_equal(rows, np.arange(3))
        assert_array_equal(r, own.transform(values))


@pytest.mark.parametrize("method", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_packed_scores_give_the_same_calibrations(method):
    """To the bit, also with weights, missing scores and a class without weight."""
    rng, code = np.random.RandomState(0), codes.one_vs_one(9)
    y = rng.permutation(np.repeat(np.arange(9), 12))
    values = rng.normal(size=(len(y), code.shape[1])) + code[y]
    values[rng.uniform(size=values.shape) < 0.02] = np.nan
    weights = rng.uniform(0.5, 2.0, len(y)) * (y != 4)
    scores = DenseScores(values, y, code, weights)
    dense, packed = (calibrate(method, each, weights) for each in (scores, PackedScores(scores)))
    some = rng.normal(size=(50, code.shape[1]))
    assert_array_equal(packed.transform(some), dense.transform(some))
