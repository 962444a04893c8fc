"""Names of classes in messages: as in Python, short, and few."""

from __future__ import annotations

import datetime
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from manyclass import CoupledClassifier, DecisionClassifier, decide
from manyclass._lib.messages import quoted, some_quoted
from manyclass.learners import BoostedNaiveBayes, KernelLogisticRegression, ThresholdOptimized
from manyclass.metrics import reliability_curve, zadrozny_mse

LONG = np.array([f"{'very ' * 2000}long name {c}" for c in "abcdefg"])
MOST = 1200  # characters of a message that names a few classes
X = np.random.RandomState(0).normal(size=(42, 2))
y = np.repeat(LONG[:6], 7)
EVEN = np.full((4, 2), 0.5)


@given(st.one_of(st.text(), st.integers(), st.binary(), st.tuples(st.text(), st.integers())))
def test_quoted_is_python_or_cut(label):
    assert len(quoted(label)) <= 60
    assert quoted(label) == repr(label) or len(repr(label)) > 60


@pytest.mark.parametrize(
    ("label", "text"),
    [
        (np.str_("cat"), "'cat'"),
        (np.int64(3), "3"),
        (np.float64(0.5), "0.5"),
        (np.bool_(True), "True"),
        (np.bytes_(b"c"), "b'c'"),
        (datetime.date(2001, 2, 3), "datetime.date(2001, 2, 3)"),
        ("two\nlines", r"'two\nlines'"),
    ],
)
def test_quoted(label, text):
    assert quoted(label) == text


def test_times_are_no_counts_of_nanoseconds():
    assert "2001-02-03" in quoted(np.datetime64("2001-02-03", "ns"))


def test_some_of_many():
    assert some_quoted(np.array(["ant", "bee"])) == "'ant', 'bee'"
    assert some_quoted(range(9), most=2) == "0, 1 and 7 more"
    assert some_quoted([]) == ""


def fit_with_a_class_left_out():
    X_all, y_all = np.vstack([X, X[:1]]), np.append(y, LONG[6])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        CoupledClassifier(GaussianNB()).fit(X_all, y_all)


def go_on_with(labels, classes=None):
    model = CoupledClassifier(GaussianNB()).partial_fit(X, y, classes=LONG[:6])
    model.partial_fit(X, labels, classes=classes)


FAULTS = {
    "single sample": fit_with_a_class_left_out,
    "y has only one class, ": lambda: CoupledClassifier().fit(X[:7], y[:7]),
    "y holds ": lambda: go_on_with(np.repeat(LONG[6], 42)),
    "not those of the first call": lambda: go_on_with(y, LONG),
    "class 'very": lambda: ThresholdOptimized().fit(X[:14], y[:14], np.arange(14) < 7),
    "only one class, 'very": lambda: BoostedNaiveBayes().fit(X[:7], y[:7]),
    "one class, 'very": lambda: KernelLogisticRegression().fit(X[:7], y[:7]),
    "there is only one class": lambda: DecisionClassifier(GaussianNB()).fit(X[:7], y[:7]),
    "frozen estimator": lambda: DecisionClassifier(
        FrozenEstimator(GaussianNB().fit(X[:21], y[:21]))
    ).fit(X, y),
    "cannot stand for": lambda: decide(
        EVEN, classes=LONG[:2], reject_cost=0.1, rejected=str(LONG[0])
    ),
    "not one of the classes": lambda: reliability_curve(y[5:9], EVEN, label=str(LONG[5])),
    "not in classes": lambda: zadrozny_mse(y[5:9], EVEN, classes=LONG[2:4]),
    "names a label twice": lambda: zadrozny_mse(y[5:9], EVEN, classes=LONG[[0, 0]]),
}


@pytest.mark.parametrize("message", FAULTS)
def test_long_names_do_not_fill_the_screen(message):
    with pytest.raises((ValueError, UserWarning), match=message) as error:
        FAULTS[message]()
    assert len(str(error.value)) < MOST
    assert "very" in str(error.value) and "long name" in str(error.value)


@pytest.mark.parametrize("option", ["code", "combiner", "calibration"])
def test_long_names_of_options_are_cut(option):
    with pytest.raises(ValueError, match=option) as caught:
        CoupledClassifier(GaussianNB(), **{option: "c" * 10_000}).fit(X, y)
    assert "'ccc" in str(caught.value)
    assert len(str(caught.value)) < MOST
