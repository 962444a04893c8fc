"""Out-of-sample scores are one type: dense and cross-fitted ones answer alike."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.calibration import CALIBRATIONS
from manyclass.calibration.crossfitting import calibrate, left_out_probabilities
from manyclass.scores.crossfit import CrossFittedScores
from manyclass.scores.folds import fold_numbers, make_folds
from manyclass.scores.out_of_sample import DenseScores, check_no_nan, split_rows
from manyclass.scores.sources import (
    LeaveOneOut,
    NoScores,
    Splitter,
    StratifiedFolds,
    resolve_cv,
)

X, y = make_blobs(50, n_features=3, centers=4, cluster_std=4.0, random_state=0)
WEIGHTS = np.random.default_rng(0).integers(0, 3, 50).astype(float)
CODES = [codes.one_vs_one(4), codes.one_vs_rest(4)]
each_code = pytest.mark.parametrize("code", CODES, ids=["one-vs-one", "one-vs-rest"])


def both(code, folds):
    """Return the same scores as either class."""

    def fit(rows):
        return fit_bank(LinearDiscriminantAnalysis(), X, y, code, MARGIN, rows=rows)

    numbers, bank = fold_numbers(folds, len(y)), fit(np.arange(len(y)))
    options = {"fold_numbers": numbers, "n_by_folds": len(y)}
    fitted = CrossFittedScores(bank, fit, X, y, code, WEIGHTS, folds, **options)
    return fitted, DenseScores(fitted.dense(), y, code, WEIGHTS, numbers)


@each_code
def test_rows_and_complete_rows_are_the_same(code):
    folds = make_folds(5, X, y, np.arange(4))[:3]  # two folds are never left out
    fitted, dense = both(code, folds)
    rows = np.array([4, 0, 4, 49])
    assert_array_equal(fitted[rows], dense[rows])
    assert_array_equal(fitted.complete_rows(), dense.complete_rows())
    assert 0 < len(dense.complete_rows()) < len(y)
    assert fitted.n_columns == dense.n_columns == code.shape[1]


@each_code
@pytest.mark.parametrize("method", CALIBRATIONS.values(), ids=CALIBRATIONS)
def test_calibrations_are_the_same(code, method):
    fitted, dense = both(code, make_folds(5, X, y, np.arange(4)))
    at = np.linspace(-9, 9, 50)[:, None] * np.ones(code.shape[1])
    own, other = (calibrate(method, scores) for scores in (fitted, dense))
    assert_array_equal(own.transform(at), other.transform(at))
    rows = fitted.rows_of_one_source()
    known = dense.dense().copy()
    known[rows] = fitted.of_one_source(rows)
    dense = DenseScores(known, y, code, WEIGHTS, fitted.fold_numbers)
    for ours, theirs in zip(
        left_out_probabilities(own, fitted, rows),
        left_out_probabilities(other, dense, rows),
        strict=True,
    ):
        assert_array_equal(ours, theirs)


def test_rows_without_a_side_do_not_calibrate():
    _, dense = both(CODES[0], make_folds(5, X, y, np.arange(4)))
    used = np.arange(50) % 2 == 0
    sides = (CODES[0][y] * used[:, None]).astype(np.int8)
    part = DenseScores(dense.dense(), y, CODES[0], WEIGHTS, sides=sides)
    (block,) = part.column_blocks(WEIGHTS)
    assert_array_equal(block.usable().any(axis=1), used & (WEIGHTS > 0))


def test_rows_are_copies():
    """Calibrations write into them."""
    _, dense = both(CODES[0], make_folds(5, X, y, np.arange(4)))
    before = dense.dense().copy()
    dense[np.arange(50)][:] = 7.0
    assert_array_equal(dense.dense(), before)


@pytest.mark.parametrize(("entries", "sizes"), [(30, [3, 3, 1]), (1, [1] * 7), (1000, [7])])
def test_split_rows(entries, sizes):
    rows = np.arange(7) + 5
    blocks = split_rows(rows, 10, entries)
    assert [len(block) for block in blocks] == sizes
    assert_array_equal(np.concatenate(blocks), rows)


# -- where scores come from ------------------------------------------------------------


def test_cv_resolves_to_an_object():
    splitter = StratifiedKFold(3)
    assert isinstance(resolve_cv(None), NoScores)
    assert resolve_cv("loo") == LeaveOneOut()
    assert resolve_cv(np.int64(4)) == StratifiedFolds(4)
    assert resolve_cv(splitter) == Splitter(splitter)
    source = LeaveOneOut(enough=100)
    assert resolve_cv(source) is source


@pytest.mark.parametrize("model", [CoupledSVC(cv="five"), CoupledClassifier(cv="LOO")])
def test_other_names_are_refused_at_once(model):
    with pytest.raises(ValueError, match="cv must be 'loo', a number, a splitter.* got '"):
        model.fit(X, y)


def test_without_need_of_scores_nothing_is_split():
    class Refusing:
        def split(self, X, y):
            raise AssertionError("nothing needs folds")

    CoupledClassifier(SVC(), combiner="max-wins", cv=Refusing()).fit(X, y)


def test_only_scores_that_are_needed_must_be_numbers():
    scores = np.array([[1.0, np.nan], [np.nan, 2.0]])
    check_no_nan(scores, np.array([5, 7]), ~np.isnan(scores))
    with pytest.raises(ValueError, match="NaN at row 7, column 0"):
        check_no_nan(scores, np.array([5, 7]), np.array([[True, False], [True, True]]))
