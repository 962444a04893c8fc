"""Leave-one-out by formula and, column by column, by folds where that is not to be trusted."""

from __future__ import annotations

import warnings
from statistics import fmean, pvariance

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import log_loss
from sklearn.svm import SVC, NuSVC
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.banks import MARGIN, Untrusted, fit_bank
from manyclass.scores.crossfit import CrossFittedScores
from manyclass.scores.folds import fold_numbers, make_folds
from manyclass.scores.leave_one_out import leave_one_out, weakly_separated
from manyclass.scores.sources import LeaveOneOut

CODE = codes.one_vs_one(4)
X, y = make_blobs(120, n_features=3, centers=4, cluster_std=2.0, random_state=0)
ONES = np.ones(len(y))
NOT_USED = "ignore:analytic leave-one-out is not used"


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


def fit(rows=None, columns=None):
    code = CODE if columns is None else CODE[:, columns]
    return fit_bank(SVC(gamma=0.1, tol=1e-10), X, y, code, MARGIN, rows=rows)


@pytest.fixture(scope="module")
def bank():
    return fit()


@pytest.fixture(scope="module")
def by_folds(bank):
    folds = make_folds(5, X, y, np.arange(4))
    return CrossFittedScores(bank, fit, X, y, CODE, ONES, folds).dense()


class Doubting:
    """A bank that distrusts some of its columns."""

    def __init__(self, bank, columns):
        self.bank, self.columns = bank, columns

    def __getattr__(self, name):
        return getattr(self.bank, name)

    def leave_one_out(self, *arguments):
        raise Untrusted("some reason", self.columns, self.bank.leave_one_out(*arguments))

    def scores_by_folds(self, *arguments):
        return None  # as of learners whose folds must be fitted


class Refolding(Doubting):
    """One that computes folds by itself."""

    def scores_by_folds(self, *arguments):
        return self.bank.scores_by_folds(*arguments)


# -- which scores come from where ------------------------------------------------------


def test_what_is_trusted_comes_from_the_formula(bank):
    scores, remark = leave_one_out(bank, None, X, y, CODE, ONES)
    assert remark is None
    assert_array_equal(scores.dense(), bank.leave_one_out(X, y, CODE, ONES))


@pytest.mark.parametrize("some", [[0], [5], [1, 3], [0, 2, 4]])
def test_columns_that_are_not_come_from_folds(bank, by_folds, some):
    columns = np.isin(np.arange(6), some)
    scores, remark = leave_one_out(Doubting(bank, columns), fit, X, y, CODE, ONES)
    assert remark.startswith(
        f"analytic leave-one-out is not used in {len(some)} of 6 columns: some reason. 5 folds"
    )
    expected = bank.leave_one_out(X, y, CODE, ONES)
    replaced = (CODE[y] != 0) & columns
    expected[replaced] = by_folds[replaced]
    assert_allclose(scores.dense(), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("some", [[0], [1, 3], [0, 1, 2, 3, 4]])
def test_folds_of_the_bank_itself(bank, by_folds, some):
    columns = np.isin(np.arange(6), some)
    scores, remark = leave_one_out(Refolding(bank, columns), None, X, y, CODE, ONES)
    assert remark is None
    assert_array_equal(scores.sources == "folds", columns)
    expected = bank.leave_one_out(X, y, CODE, ONES)
    replaced = (CODE[y] != 0) & columns
    expected[replaced] = by_folds[replaced]
    assert_allclose(scores.dense(), expected, rtol=0, atol=1e-6)


def test_only_the_columns_in_doubt_are_fitted_again(bank):
    columns, fitted = np.arange(6) == 2, []

    def spy(rows, which):
        fitted.append((len(rows), which))
        return fit(rows, which)

    leave_one_out(Doubting(bank, columns), spy, X, y, CODE, ONES)
    assert [n for n, _ in fitted] == [96] * 5
    assert all(which is columns or (which == columns).all() for _, which in fitted)


def test_more_than_half_are_all(bank, by_folds):
    columns = np.arange(6) > 1
    scores, remark = leave_one_out(Doubting(bank, columns), fit, X, y, CODE, ONES)
    assert "in 4 of 6 columns" in remark
    assert_array_equal(scores.dense(), by_folds)


def test_without_a_formula_all_are(by_folds):
    class None_(Doubting):
        def leave_one_out(self, *arguments):
            raise Untrusted("there is none")

    scores, remark = leave_one_out(None_(fit(), None), fit, X, y, CODE, ONES)
    assert remark.startswith("analytic leave-one-out is not used: there is none. 5 folds")
    assert_array_equal(scores.dense(), by_folds)


@pytest.mark.parametrize("some", [[1], [0, 1, 2, 3]])
def test_of_some_rows(bank, some):
    rows, columns = np.arange(7, 120, 3), np.isin(np.arange(6), some)
    doubting = Doubting(bank, columns)
    few, _ = leave_one_out(doubting, fit, X, y, CODE, ONES, rows)
    everything, _ = leave_one_out(doubting, fit, X, y, CODE, ONES)
    assert_allclose(few.dense(), everything[rows], atol=1e-9)
    assert_array_equal(few.y, y[rows])


# -- which columns are not to be trusted -----------------------------------------------


def naive_weakly_separated(scores, y, code):
    found = []
    for column in range(code.shape[1]):
        sides = []
        for side in (1, -1):
            of_side = [
                scores[i, column]
                for i in range(len(y))
                if code[y[i], column] == side and np.isfinite(scores[i, column])
            ]
            sides.append(of_side)
        if not all(sides):
            found.append(False)
            continue
        variance = fmean([pvariance(of_side) for of_side in sides])
        error = (variance * sum(1 / len(of_side) for of_side in sides)) ** 0.5
        found.append(fmean(sides[0]) - fmean(sides[1]) < 3 * error)
    return found


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.0, 2.0))
def test_by_three_standard_errors(seed, signal):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, 40)
    scores = rng.normal(size=(40, 6)) + signal * CODE[labels]
    scores[rng.random(scores.shape) < 0.1] = np.nan
    found = weakly_separated(scores, labels, CODE, np.ones(40))
    assert_array_equal(found, naive_weakly_separated(scores, labels, CODE))


def test_scale_of_the_weights_does_not_matter():
    scores, weights = np.random.default_rng(0).normal(size=(120, 6)), np.arange(120.0)
    expected = weakly_separated(scores, y, CODE, weights)
    assert 0 < expected.sum()
    assert_array_equal(weakly_separated(scores, y, CODE, 1e-3 * weights), expected)


def test_samples_without_weight_do_not_count():
    scores, weights = np.random.default_rng(0).normal(size=(120, 6)), np.arange(120) % 2.0
    expected = weakly_separated(scores[1::2], y[1::2], CODE, weights[1::2])
    assert_array_equal(weakly_separated(scores, y, CODE, weights), expected)


@pytest.mark.filterwarnings("error")
def test_weights_as_large_as_they_come():
    scores, weights = np.random.default_rng(0).normal(size=(120, 6)), np.arange(120) % 2.0
    expected = weakly_separated(scores, y, CODE, weights)
    assert_array_equal(weakly_separated(scores, y, CODE, 1e300 * weights), expected)


def test_scores_that_are_all_the_same_say_nothing():
    assert not weakly_separated(np.zeros((120, 6)), y, CODE, ONES).any()


# -- as part of the classifiers --------------------------------------------------------


@pytest.mark.filterwarnings(NOT_USED)
@pytest.mark.parametrize("C", [1.0, 10.0])
def test_few_samples_in_many_dimensions(C):
    """Leaving one of ten out moves the constant term by more than the machine has to say."""
    losses = {"loo": [], 5: []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        labels = np.arange(440) % 4
        shift = np.zeros((440, 200))
        shift[np.arange(440), labels // 2] = 6.0
        shift[np.arange(440), 2 + labels] = 2.5
        data = rng.normal(size=(440, 200)) + shift
        for cv, found in losses.items():
            model = CoupledSVC(C=C, cv=cv).fit(data[:40], labels[:40])
            found.append(log_loss(labels[40:], model.predict_proba(data[40:])))
    assert np.mean(losses["loo"]) < 1.05 * np.mean(losses[5])


@pytest.mark.filterwarnings(NOT_USED)
@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_five_samples_of_a_class_are_not_taken_for_more(C, cv):
    """Where little is to be learned, probabilities are hardly worse than none."""
    losses = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labels = np.arange(525) % 5
        data = rng.normal(size=(525, 6))
        data[np.arange(525), labels] += 1.0
        model = CoupledSVC(C=C, cv=cv).fit(data[:25], labels[:25])
        losses.append(log_loss(labels[25:], model.predict_proba(data[25:])))
    assert np.mean(losses) < 1.05 * np.log(5)


@pytest.mark.filterwarnings(NOT_USED)
def test_labels_of_samples_that_are_nothing_like_each_other():
    """Machines whose left-out scores are the wrong way round do not turn the labels."""
    rng = np.random.default_rng(0)
    labels = np.arange(440) % 4
    data = 0.3 * rng.normal(size=(440, 60))
    data[np.arange(440), labels] += 1.0
    ours = CoupledSVC(gamma=5.0).fit(data[:40], labels[:40])
    theirs = SVC(gamma=5.0).fit(data[:40], labels[:40])
    assert (ours.calibration_.slopes_ < 0).all()
    assert ours.score(data[40:], labels[40:]) > theirs.score(data[40:], labels[40:]) - 0.05


def test_folds_that_cannot_be_fitted(bank):
    def refuse(rows, columns):
        raise ValueError("specified nu is infeasible")

    for columns in (np.arange(6) == 2, np.arange(6) < 5):
        doubting = Doubting(bank, columns)
        scores, remark = leave_one_out(doubting, refuse, X, y, CODE, ONES)
        assert_array_equal(scores.dense(), bank.leave_one_out(X, y, CODE, ONES))
        assert remark.endswith("it is used all the same: specified nu is infeasible")


@pytest.mark.parametrize("n_columns", [21, 200])
def test_many_columns_are_all(n_columns):
    """One call for all pairs takes less than one for each of many."""
    k = 30
    code = codes.one_vs_one(k)
    labels = np.arange(120) % k
    data = 0.1 * np.random.default_rng(0).normal(size=(120, k)) + np.eye(k)[labels]

    def fit(rows=None, columns=None):
        assert (columns is None) == (n_columns > 0.05 * code.shape[1])
        part = code if columns is None else code[:, columns]
        return fit_bank(SVC(), data, labels, part, MARGIN, rows=rows)

    doubting = Doubting(
        fit_bank(SVC(), data, labels, code, MARGIN), np.arange(code.shape[1]) < n_columns
    )
    leave_one_out(doubting, fit, data, labels, code, np.ones(120))


def test_it_is_an_attribute_and_printed_but_no_warning(capsys):
    noise = np.random.default_rng(0).normal(size=(60, 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CoupledSVC(verbose=True).fit(noise, np.arange(60) % 3)
    n_folds = np.count_nonzero(model.score_sources_ == "folds")
    assert n_folds > 0
    assert f"{n_folds} by folds" in capsys.readouterr().out
    assert CoupledSVC(cv=3).fit(noise, np.arange(60) % 3).score_sources_ is None


def test_what_is_clear_is_silent():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CoupledSVC().fit(*load_iris(return_X_y=True))
        CoupledSVC(C=100.0).fit(*load_iris(return_X_y=True))


@pytest.mark.filterwarnings(NOT_USED)
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_same_bits_for_any_number_of_jobs(n_jobs):
    rng = np.random.default_rng(0)
    noise, labels = rng.normal(size=(200, 30)), np.arange(200) % 5
    noise[:, 0] += 5 * (labels > 1)
    one, many = (
        CoupledSVC(n_jobs=jobs).fit(noise, labels).predict_proba(noise) for jobs in (None, n_jobs)
    )
    assert_array_equal(one, many)


@pytest.mark.filterwarnings(NOT_USED)
def test_weights_go_to_the_folds():
    """A row of weight 0 is as if it were not there, in columns of either kind."""
    rng = np.random.default_rng(1)
    noise, labels = rng.normal(size=(90, 10)), np.arange(90) % 3
    noise[:, 0] += 6 * (labels > 1)
    weights = np.r_[np.ones(90), np.zeros(30)]
    more, other = np.r_[noise, rng.normal(size=(30, 10))], np.r_[labels, np.arange(30) % 3]
    for cv in ("loo", 5):
        model = CoupledClassifier(SVC(gamma=0.1, tol=1e-8), cv=cv)
        fewer = model.fit(noise, labels).predict_proba(noise)
        weighted = model.fit(more, other, sample_weight=weights).predict_proba(noise)
        assert_allclose(weighted, fewer, atol=1e-5)


# -- numbers of folds ------------------------------------------------------------------


def test_fold_numbers():
    folds = [(np.array([2, 3]), np.array([0, 1])), (np.array([0, 1]), np.array([3]))]
    assert_array_equal(fold_numbers(folds, 4), [0, 0, -1, 1])
    assert fold_numbers([*folds, (np.array([0]), np.array([1]))], 4) is None


@pytest.mark.parametrize("source", [LeaveOneOut(), LeaveOneOut(enough=60, of_a_class=20)])
def test_folds_in_its_place_score_what_a_scaling_reads(source):
    """NuSVC has no analytic leave-one-out."""
    with pytest.warns(UserWarning, match="folds are fitted instead"):
        model = CoupledClassifier(NuSVC(nu=0.2), cv=source).fit(X, y)
    assert model.scaling_ is not None
