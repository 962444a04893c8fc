"""The search for random codes takes seconds, however many classes there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from manyclass.codes import dense_random, sparse_random
from manyclass.codes import random as search
from manyclass.codes.random import DENSE, sampler_for

RANDOM = [sparse_random, dense_random]


@settings(deadline=None, max_examples=100)
@given(k=st.integers(2, 10**5), n_columns=st.integers(1, 1000), n_draws=st.integers(1, 10**5))
def test_work_is_bounded(k, n_columns, n_draws):
    compared = search._n_compared(k, n_columns, n_draws)
    assert 1 <= compared <= n_draws
    if k <= 1000:
        assert compared == n_draws
    else:
        assert compared == 1 or compared * k**2 * n_columns <= search._MOST_PRODUCTS


@pytest.mark.parametrize("build", RANDOM)
def test_fewer_draws_are_the_first_ones(build, monkeypatch):
    expected = build(30, n_draws=7, random_state=0)
    monkeypatch.setattr(search, "_MANY", 10)
    monkeypatch.setattr(search, "_MOST_PRODUCTS", 7.5 * 30**2 * expected.shape[1])
    assert_array_equal(build(30, random_state=0), expected)


@pytest.mark.parametrize("build", RANDOM)
def test_one_draw_is_not_compared(build, monkeypatch):
    expected = build(30, n_draws=1, random_state=0)
    monkeypatch.setattr(search, "_largest_dots", None)
    monkeypatch.setattr(search, "_MANY", 10)
    monkeypatch.setattr(search, "_MOST_PRODUCTS", 1.0)
    assert_array_equal(build(30, random_state=0), expected)


@pytest.mark.parametrize("build", RANDOM)
def test_many_classes_are_told_apart(build):
    code = build(50_000, random_state=0)
    assert code.shape[0] == 50_000
    assert len(np.unique(code, axis=0)) == 50_000


def test_goes_on_until_a_draw_is_usable(monkeypatch):
    monkeypatch.setattr(search, "_MANY", 10)
    monkeypatch.setattr(search, "_MOST_PRODUCTS", 1.0)
    # With 7 columns for 20 classes some draws have rows that all differ.
    sampler = sampler_for(20, 7, DENSE)
    first = np.ascontiguousarray(sampler(1, np.random.RandomState(3))[0].T)
    assert len(np.unique(first, axis=0)) < 20
    code = dense_random(20, n_columns=7, random_state=3)
    assert len(np.unique(code, axis=0)) == 20


def test_gives_up_in_the_end(monkeypatch):
    monkeypatch.setattr(search, "_MANY", 10)
    monkeypatch.setattr(search, "_MOST_PRODUCTS", 1.0)
    monkeypatch.setattr(search, "_MOST_DRAWN", 20 * 4 * 5.0)
    with pytest.raises(ValueError, match=r"none of the n_draws=5 random codes with n_columns=4"):
        dense_random(20, n_columns=4, random_state=0)
