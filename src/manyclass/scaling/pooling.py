"""A few weights shared by all classes: logits as a weighted sum of features of each class."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass.scaling.kernels.pooled import minimise_weights

# Ridge toward the first feature alone, in samples. A choice among 0.02, 0.1, 0.2, 0.5, 1 and 5 on
# random splits of training parts: benchmarks/quality/choices.md.
RIDGE = 0.5


def fit_weights(features: Floats, y: Places, sample_weight: Floats, ridge: float) -> Floats:
    """Return the weights with the least log-loss of softmax(sum_t weight_t feature_t).

    Newton's method with halved steps: the log-loss is convex. The ridge pulls the weights to
    (1, 0, ..., 0), the first feature alone.

    Parameters
    ----------
    features : array of shape (t, n, k)
        Logits of the classes by several sources.
    y : int array of shape (n,)
        True classes.
    sample_weight : array of shape (n,)
        Counts of samples.
    ridge : float
        Ridge on the sum of all samples' log-losses.
    """
    theta = np.eye(len(features))[0]
    features = np.ascontiguousarray(features.transpose(0, 2, 1))  # loops over samples are long
    minimise_weights(features, y, sample_weight, ridge, theta)
    return theta
