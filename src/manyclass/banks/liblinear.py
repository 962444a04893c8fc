"""Numbers that LIBLINEAR cannot compute with: its Newton steps would go on for ever."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse
from sklearn.svm import LinearSVC

from manyclass._lib.sklearn import n_samples


def check_range(estimator, X, weight=None, powers: float = 290.0) -> None:
    """Raise a ``ValueError`` if features or weights are out of range for a LinearSVC.

    Its steps compute g'Hg, where g is a sum of C x over the samples, and H of C x x'. So features
    to the fourth power must be below float64's limit, and squares of C x above its inverse. The
    limit is about 10^308; ``powers`` of ten are used of it.
    """
    if type(estimator) is not LinearSVC or len(getattr(X, "shape", ())) != 2:
        return
    values = X.data if issparse(X) else np.asarray(X)
    if values.size == 0 or values.dtype.kind not in "fiub":
        return
    with np.errstate(invalid="ignore"):  # the learner names NaN and infinity
        size = max(float(values.max()), -float(values.min()))
    bound = float(estimator.C) * (1.0 if weight is None else float(np.max(weight)))
    if not (0 < size < np.inf and 0 < bound < np.inf):
        return
    of_features, of_bound = np.log10(size), np.log10(bound)
    # The intercept is a feature, too.
    top = max(size, estimator.intercept_scaling) if estimator.fit_intercept else size
    high = 4 * np.log10(top) + 3 * (of_bound + np.log10(n_samples(X)))
    if high < powers and 2 * (of_features + of_bound) > -powers:
        return
    cause = f"the largest feature of X is {size:.2g}"
    advice = "Scale the features, for example by StandardScaler, or drop outliers"
    if abs(of_bound) > abs(of_features):
        cause, advice = f"sample_weight times C is {bound:.2g}", "Scale the weights to a mean of 1"
    raise ValueError(
        f"{cause}: with such numbers LIBLINEAR, the solver of LinearSVC, may never end. {advice}."
    )
