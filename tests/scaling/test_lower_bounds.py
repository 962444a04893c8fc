"""Lower bounds of the probabilities of rare classes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from manyclass.scaling.lower_bounds import least_probabilities, raise_to

quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)


class TestLeastProbabilities:
    def test_half_the_share_of_classes_with_a_single_sample(self):
        counts, totals = np.array([7, 1, 2, 1, 0]), np.array([7.0, 1.0, 2.0, 2.0, 0.0])
        assert_allclose(least_probabilities(counts, totals), [0, 1 / 24, 0, 1 / 12, 0])

    @quick
    @given(seed=seeds, k=st.integers(3, 8), scale=st.sampled_from([5e-324, 1.0, 8e307]))
    def test_is_at_most_half_of_all_in_any_unit_of_weights(self, seed, k, scale):
        rng = np.random.RandomState(seed)
        counts = rng.randint(1, 3, k)
        least = least_probabilities(counts, scale * counts)
        assert_allclose(least, least_probabilities(counts, counts.astype(float)), atol=1e-15)
        assert 0 <= least.sum() <= 0.5 + 1e-12


class TestRaiseTo:
    @quick
    @given(seed=seeds)
    def test_the_bound_is_kept_and_the_rest_is_divided_as_before(self, seed):
        rng = np.random.RandomState(seed)
        p, least = rng.dirichlet(np.full(5, 0.1), 20), np.array([0, 0.01, 0, 0, 0.02])
        raised = raise_to(p, least)
        assert_allclose(raised.sum(axis=1), 1, atol=1e-12)
        assert (raised >= least).all()
        assert_allclose((raised - least) / 0.97, p, atol=1e-12)

    def test_no_bound_changes_nothing(self):
        p = np.random.RandomState(0).dirichlet(np.ones(4), 20)
        assert raise_to(p, np.zeros(4)) is p
