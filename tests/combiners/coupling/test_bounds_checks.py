"""With ``NUMBA_BOUNDSCHECK=1`` no kernel reads or writes outside of an array, lanes included."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core import config

from manyclass.combiners.coupling.kernels import lanes


@pytest.mark.parametrize(
    ("access", "size", "last"),
    [
        (lambda w, i: lanes.total(lanes.load(w, i)), 16, 1),
        (lambda w, i: lanes.poke(w, i, 1.0), 16, 15),
        (lambda w, i: lanes.transpose_out(np.zeros(64), 0, w, i, 8), 65, 1),
    ],
)
def test_lanes(access, size, last, monkeypatch):
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    checked = njit(access)
    for inside in (0, last):
        checked(np.zeros(size), inside)
    for outside in (-1, last + 1):
        with pytest.raises(IndexError, match="outside of an array"):
            checked(np.zeros(size), outside)
