"""The search for random codes takes seconds, however many classes there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from manyclass.codes import dense_random, sparse_random
from manyclass.codes import random as search
from manyclass.codes.random import DENSE, SPARSE, FreshColumns

RANDOM = [sparse_random, dense_random]


@settings(deadline=None, max_examples=40)
@given(k=st.integers(2, 10**5), n_columns=st.integers(1, 1000), n_draws=st.integers(1, 10**5))
def test_work_is_bounded(k, n_columns, n_draws):
    compared = search._n_compared(k, n_columns, n_draws)
    assert 1 <= compared <= n_draws
    if k <= 1000:
        assert compared == n_draws
    else:
        assert compared == 1 or compared * k**2 * n_columns <= search.USUAL_EFFORT.most_products


def search_with(build, k, n_columns=None, random_state=0, **limits):
    """A random code by a search with other limits."""
    letters, per_bit = (SPARSE, 15) if build is sparse_random else (DENSE, 10)
    effort = search.Effort(many=10, **limits)
    return search._random_code(k, letters, per_bit, n_columns, 10_000, random_state, effort)


@pytest.mark.parametrize("build", RANDOM)
def test_fewer_draws_are_the_first_ones(build):
    expected = build(30, n_draws=7, random_state=0)
    most = 7.5 * 30**2 * expected.shape[1]
    assert_array_equal(search_with(build, 30, most_products=most), expected)


@pytest.mark.parametrize("build", RANDOM)
def test_one_draw_is_not_compared(build, monkeypatch):
    expected = build(30, n_draws=1, random_state=0)
    monkeypatch.setattr(search, "_largest_dots", None)
    assert_array_equal(search_with(build, 30, most_products=1.0), expected)


@pytest.mark.parametrize("build", RANDOM)
def test_many_classes_have_different_rows(build):
    code = build(50_000, random_state=0)
    assert code.shape[0] == 50_000
    assert len(np.unique(code, axis=0)) == 50_000


def test_goes_on_until_a_draw_is_usable():
    # With 7 columns for 20 classes some draws have rows that all differ.
    sampler = FreshColumns(20, 7, DENSE)
    first = np.ascontiguousarray(sampler(1, np.random.RandomState(3))[0].T)
    assert len(np.unique(first, axis=0)) < 20
    code = search_with(dense_random, 20, 7, random_state=3, most_products=1.0)
    assert len(np.unique(code, axis=0)) == 20


def test_gives_up_in_the_end():
    with pytest.raises(ValueError, match=r"none of the n_draws=5 random codes with n_columns=4"):
        search_with(dense_random, 20, 4, most_products=1.0, most_drawn=20 * 4 * 5.0)
