"""Compression of long tails of scores."""

from __future__ import annotations

import naive_fitting as naive
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from manyclass.calibration.sigmoid import compress_tails

quick = settings(deadline=None, max_examples=20)


@quick
@given(
    f=st.lists(st.floats(allow_nan=True, allow_subnormal=True), min_size=1, max_size=9),
    limit=st.floats(1e-300, np.inf),
)
def test_any_score_and_limit(f, limit):
    compressed = compress_tails(np.array([f]).T, np.array([limit]))[:, 0]
    assert_allclose(compressed, [naive.compressed(score, limit) for score in f], rtol=1e-12)


@quick
@given(f=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), limit=st.floats(1e-3, 1e3))
def test_it_keeps_the_order(f, limit):
    compressed = compress_tails(np.sort(f)[:, None], np.array([limit]))[:, 0]
    assert (np.diff(compressed) >= 0).all()


def test_it_may_write_to_its_input():
    f = np.linspace(-9, 9, 12).reshape(4, 3)
    limits = np.array([1.0, 2.0, np.inf])
    expected = compress_tails(f, limits)
    assert compress_tails(f, limits, out=f) is f
    assert_array_equal(f, expected)
