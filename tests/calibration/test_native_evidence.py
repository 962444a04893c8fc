"""The learner's own multiclass model as further evidence for the scaling."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax

from manyclass import codes
from manyclass.banks import LOG_ODDS, MARGIN
from manyclass.calibration import Sigmoid
from manyclass.calibration.crossfitting import calibrate
from manyclass.calibration.native_evidence import NativeEvidence, code_of_sources, sources
from manyclass.scores.out_of_sample import DenseScores

RNG = np.random.RandomState(0)
LOGITS = 2.0 * RNG.normal(size=(60, 3))
Y = (LOGITS + RNG.gumbel(size=LOGITS.shape)).argmax(axis=1)
R = RNG.uniform(size=(60, 3))


def evidence(scores, kind=MARGIN):
    known = DenseScores(scores, Y, codes.one_vs_rest(3), np.ones(60))
    return NativeEvidence(kind, known, calibrate(Sigmoid, known))


def test_its_own_probabilities_come_first():
    p = softmax(LOGITS, axis=1)
    for kind, scores in ((MARGIN, LOGITS), (LOG_ODDS, logit(p))):
        assert_allclose(sources(R, kind, scores, expit(scores))["others"][0], p, rtol=1e-12)


def test_calibrated_sides_are_a_source_and_further_columns():
    sides = expit(LOGITS)
    read = sources(R, MARGIN, LOGITS, sides)
    assert_array_equal(read["columns"], np.hstack([R, sides]))
    assert_allclose(read["others"][1], sides / sides.sum(axis=1, keepdims=True))


def test_no_class_takes_part_in_the_further_columns():
    code = codes.one_vs_one(3)
    wide = code_of_sources(code)
    assert wide.dtype == np.int8 and wide.shape == (3, 6)
    assert_array_equal(wide[:, :3], code)
    assert not wide[:, 3:].any()


@pytest.mark.parametrize("kind", [MARGIN, LOG_ODDS], ids=str)
def test_rows_in_any_order(kind):
    native, rows = evidence(LOGITS, kind), np.arange(60)
    order = RNG.permutation(60)[:40]
    all_rows, some = native.beside(R, rows), native.beside(R[order], order)
    assert_array_equal(some["columns"], all_rows["columns"][order])
    for one, other in zip(some["others"], all_rows["others"], strict=True):
        assert_array_equal(one, other[order])


def test_few_samples_are_calibrated_without_themselves():
    """A sigmoid overfits a few samples. The scaling has to learn how good it is on new ones."""
    native = evidence(LOGITS)
    fitted = native.calibration.transform(LOGITS.copy())
    left_out = native.beside(R, np.arange(60))["columns"][:, 3:]
    reached = [np.log(p[np.arange(60), Y]).mean() for p in (fitted, left_out)]
    assert reached[1] < reached[0]
    assert_allclose(left_out, fitted, atol=0.2)
