"""A coupling rule that one wrong pair cannot upset: medians on the logit scale."""

from __future__ import annotations

import numpy as np
from scipy.special import logit, softmax

from manyclass.combiners.base import register
from manyclass.combiners.coupling.pairwise import PairwiseRule


def couple_medians(r, first, second, clip, p):
    """Fill ``p`` with the soft-max of the medians of each class's logits."""
    logits = logit(np.clip(r, clip, 1 - clip))
    square = np.zeros((*p.shape, p.shape[1]))
    square[:, first, second] = logits
    square[:, second, first] = -logits
    p[:] = softmax(np.median(square, axis=2), axis=1)


@register
class MedianLogit(PairwiseRule):
    """Soft-max of the medians of each class's logits: theta_i = median_j logit r_ij.

    If the pairs are consistent, logit r_ij = theta_i - theta_j. Its median over j (with 0 for
    j = i) is theta_i minus a constant, which does not change the soft-max: p is recovered. If
    they are not, up to half of the pairs of a class may have any value.

    Parameters
    ----------
    clip : float, default=1e-7
        Probabilities are clipped to [clip, 1 - clip].
    """

    key = "median-logit"

    def __init__(self, clip: float = 1e-7):
        self.clip = clip

    def prepare_pairs(self, k, weights):
        """Return the function that couples a block of rows; pairs are (0, 1), (0, 2), ..."""
        first, second = np.triu_indices(k, 1)
        clip = float(self.clip)
        return lambda r, p, iterations, converged: couple_medians(r, first, second, clip, p)
