"""The logarithm in plain arithmetic."""

import numpy as np
from numpy.testing import assert_allclose

from manyclass._lib.compiled.exponential import logarithm


def test_is_the_logarithm_to_the_last_digits():
    rng = np.random.default_rng(0)
    numbers = np.exp(rng.uniform(-700, 700, 2000))
    edges = [1.0, 0.5, 2.0, 0.5**0.5, 2.0**0.5, 1 - 1e-9, 1 + 1e-12, 2.3e-308, 1.7e308]
    for v in (*numbers, *edges):
        assert_allclose(logarithm(v), np.log(v), rtol=4e-16, atol=1e-300)
