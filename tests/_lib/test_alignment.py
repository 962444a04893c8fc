"""Copies of frames and of unaligned data: the same values, in the same order of memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from pandas.testing import assert_frame_equal

from manyclass._lib.alignment import aligned
from manyclass._lib.frames import copy_of

X = np.random.default_rng(0).normal(size=(6, 3))


def unaligned(values, order):
    """Return a copy of the values that begins a byte too late."""
    found = np.empty(values.nbytes + 1, dtype=np.uint8)[1:].view(values.dtype)
    found = found.reshape(values.shape, order=order)
    found[...] = values
    assert not found.flags.aligned
    return found


def frame_of(values):
    return pd.DataFrame(values, index=list("uvwxyz"), columns=list("abc"), copy=False)


@pytest.mark.parametrize("order", ["C", "F"])
class TestOrder:
    def test_a_copy_is_stored_as_the_frame_is(self, order):
        frame = frame_of(np.array(X, order=order))
        copied = copy_of(frame)
        assert_frame_equal(copied, frame)
        assert copied.to_numpy().flags[f"{order}_CONTIGUOUS"]
        assert not np.shares_memory(copied.to_numpy(), frame.to_numpy())

    def test_unaligned_data_are_copied(self, order):
        values = unaligned(X, order)
        frame = frame_of(values)
        for found in (aligned(values), aligned(frame).to_numpy()):
            assert found.flags.aligned and found.flags[f"{order}_CONTIGUOUS"]
            assert_array_equal(found, X)
        assert_frame_equal(aligned(frame), frame)


def test_frames_of_several_types():
    """The type that is not aligned is not the first one."""
    frame = pd.concat([pd.Series(list("pqrstu"), name="kind"), pd.DataFrame(X)], axis=1)
    assert aligned(frame) is frame
    mixed = pd.DataFrame({"n": np.arange(6), "x": unaligned(X[:, 0], "C")}, copy=False)
    assert not mixed["x"].to_numpy().flags.aligned
    assert aligned(mixed)["x"].to_numpy().flags.aligned
    assert_frame_equal(aligned(mixed), mixed)


@pytest.mark.parametrize("data", [X, frame_of(X), X.tolist()])
def test_other_data_stay_as_they_are(data):
    assert aligned(data) is data
