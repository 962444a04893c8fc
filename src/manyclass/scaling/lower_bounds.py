"""Lower bounds of the probabilities of classes that cannot be left out."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import Floats, Places


def least_probabilities(class_counts: Places, class_totals: Floats) -> Floats:
    """Return the lower bound of each class probability: 0, unless the class has a single sample.

    A single sample cannot be left out, and a scaling that fits the other classes may reduce the
    probability of this one to almost 0. By the rule of succession, the chance of missing a
    sample of the class is one half before any trial. So half of the class's share in the
    training set is the lower bound.

    Classes are counted by their training samples that have a weight.
    """
    share = class_totals / class_totals.max()  # first, as sums may overflow
    return np.where(class_counts == 1, 0.5 * share / share.sum(), 0.0)


def raise_to(p: Floats, least: Floats) -> Floats:
    """Return probabilities mixed with the lower bounds; the sum stays 1."""
    return least + (1.0 - least.sum()) * p if least.any() else p
