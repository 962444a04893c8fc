"""Leave-one-out by fitting again, for the few samples whose span is not to be trusted.

Spans take it that leaving a sample out leaves the others what they are: free support vectors,
at their bound, or none at all. Where the score would change by more than a margin, or all others
at their bound with it, others take the sample's place, and it changes by less. With few free
support vectors, as in few dimensions, such samples decide on the sigmoid.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

DOUBTFUL = 1.5  # a change of a score by so many margins is hardly what the span says
DRAGGED = 0.2  # nor one that moves all others at their bound by so much: they would give way
MANY = 0.01  # share of a column's samples above which doubtful ones tell on its sigmoid
MOST_WORK = 1e8  # steps of the solver times samples: some tenths of a second
MOST_CALLS = 50  # of the solver, about a millisecond each besides its steps
MOST_SAMPLES = 2048  # of a machine that is fitted again
TRUSTING = {"assume_finite": True, "skip_parameter_validation": True}  # what was checked before
PATIENCE = 10  # times the steps that the machine with all samples took

Array = NDArray[np.float64]


def is_affordable(
    n_doubtful: NDArray[np.intp], n_samples: NDArray[np.intp], n_iter: NDArray[np.int_]
) -> bool:
    """Tell whether all doubtful samples can be left out in turn, by the numbers of each column."""
    work = n_doubtful * n_samples * (n_samples + n_iter.astype(np.float64))
    largest = n_samples[n_doubtful > 0].max(initial=0)
    few = n_doubtful.sum() <= MOST_CALLS and largest <= MOST_SAMPLES
    return bool(few and work.sum() <= MOST_WORK)


def scores_without(
    K: Array,
    positive: NDArray[np.bool_],
    weights: Array,
    C: float,
    left_out: NDArray[np.intp],
    n_iter: int,
) -> Array:
    """Return the margins of samples by machines that were fitted without each of them.

    Parameters
    ----------
    K : array of shape (m, m)
        Kernel matrix of a column's samples.
    positive : bool array of shape (m,)
        Those of the positive side.
    weights : array of shape (m,)
        What C is multiplied with.
    C : float
    left_out : int array
        Places of the samples to leave out, one at a time.
    n_iter : int
        Steps of the machine that was fitted on all of them.

    Returns
    -------
    array
        NaN where there was no other sample of the side, or the solver did not converge.
    """
    scores = np.full(len(left_out), np.nan)
    most = PATIENCE * (n_iter + len(K))
    for i, p in enumerate(left_out):
        others = np.flatnonzero(np.arange(len(K)) != p)
        if not (positive[others] == positive[p]).any():
            continue
        machine = SVC(C=C, kernel="precomputed", max_iter=most)
        with warnings.catch_warnings(), config_context(**TRUSTING):
            warnings.simplefilter("ignore", ConvergenceWarning)
            machine.fit(K[np.ix_(others, others)], positive[others], weights[others])
        if machine.fit_status_ == 0:
            near = K[p, others[machine.support_]]
            scores[i] = float(machine.dual_coef_[0] @ near + machine.intercept_[0])
    return scores
