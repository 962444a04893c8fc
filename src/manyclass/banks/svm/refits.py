"""Leave-one-out by fitting again, for the few samples whose span is doubtful.

The span formula assumes that each other sample stays what it is when one is left out: a free
support vector, one at its bound, or none. If the score would change by more than a margin, or all
others at their bound with it, this is wrong: other samples take its place, and the score changes by
less. With few free support vectors, as in few dimensions, such samples determine the sigmoid.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass.banks.limits import Limits


def is_affordable(
    n_doubtful: Places, n_samples: Places, n_iter: NDArray[np.int_], limits: Limits
) -> bool:
    """Tell whether the machines can be fitted again without each doubtful sample.

    Arrays (l,): doubtful samples, samples, and steps of the solver in each column.
    """
    work = n_doubtful * n_samples * (n_samples + n_iter.astype(np.float64))
    largest = n_samples[n_doubtful > 0].max(initial=0)
    few = n_doubtful.sum() <= limits.refits and largest <= limits.refit_samples
    return bool(few and work.sum() <= limits.refit_work)


def scores_without(
    K: Floats,
    positive: Flags,
    weights: Floats,
    C: float,
    left_out: Places,
    n_iter: int,
    patience: int = 10,
) -> Floats:
    """Return the margins of samples by machines that were fitted without each of them.

    K (m, m) is the kernel matrix of a column's samples, ``left_out`` are places among them. A
    machine may take ``patience`` times the steps ``n_iter`` of the machine of all samples, and as
    many per sample. A score is NaN if the side has no other sample, or if the solver did not
    converge.
    """
    scores = np.full(len(left_out), np.nan)
    checked = {"assume_finite": True, "skip_parameter_validation": True}
    for i, p in enumerate(left_out):
        others = np.flatnonzero(np.arange(len(K)) != p)
        if not (positive[others] == positive[p]).any():
            continue
        machine = SVC(C=C, kernel="precomputed", max_iter=patience * (n_iter + len(K)))
        with warnings.catch_warnings(), config_context(**checked):
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(K[np.ix_(others, others)], positive[others], weights[others])
        if machine.fit_status_ == 0:
            near = K[p, others[machine.support_]]
            scores[i] = float(machine.dual_coef_[0] @ near + machine.intercept_[0])
    return scores
