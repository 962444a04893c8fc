"""A coupling rule that one wild pair cannot upset: medians on the logit scale."""

from __future__ import annotations

import numpy as np
from scipy.special import logit, softmax

from manyclass.combiners.base import register
from manyclass.combiners.coupling.pairwise import PairwiseRule


@register
class MedianLogit(PairwiseRule):
    """Soft-max of the medians of each class's logits: theta_i = median_j logit r_ij.

    If the pairs agree, logit r_ij = theta_i - theta_j, and its median over j (with 0
    for j = i) is theta_i less a constant, which the soft-max does not see: p is recovered.
    If they do not, up to half of a class's pairs may say anything.

    Parameters
    ----------
    clip : float, default=1e-7
        Probabilities are kept this far from 0 and 1.
    """

    key = "median-logit"

    def __init__(self, clip: float = 1e-7):
        self.clip = clip

    def prepare_pairs(self, k, weights):
        """Return the function that couples a block of rows; pairs are (0, 1), (0, 2), ..."""
        first, second = np.triu_indices(k, 1)
        clip = self.clip

        def solve(r, p, iterations, converged):
            logits = logit(np.clip(r, clip, 1 - clip))
            square = np.zeros((len(r), k, k))
            square[:, first, second] = logits
            square[:, second, first] = -logits
            p[:] = softmax(np.median(square, axis=2), axis=1)

        return solve
