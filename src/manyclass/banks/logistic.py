"""Logistic regression by Newton's method, for codes with many columns.

scikit-learn's ``LogisticRegression`` needs milliseconds for problems of a few dozen rows, most of
them outside of the arithmetic. A code of many columns has thousands of such problems.
"""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from manyclass._lib.arrays import Floats

_FREE = {"C", "max_iter", "n_jobs", "random_state", "verbose"}  # parameters that may be set


def is_fitted_by_newton(
    estimator, X, n_columns: int, params, *, many: int = 100, most_features: int = 128
) -> bool:
    """Tell whether :func:`fit_logistic` may take the place of the estimator's ``fit``.

    For a plain LogisticRegression, if there are ``many`` columns and few features: a step takes
    the time of d^2 products per row, where scikit-learn's solver needs about 10 d.
    """
    if type(estimator) is not LogisticRegression or n_columns < many or set(params):
        return False
    given, default = estimator.get_params(), LogisticRegression().get_params()
    plain = all(given[name] == default[name] for name in given.keys() - _FREE)
    plain = plain and isinstance(given["C"], Real) and 0.0 < float(given["C"]) < np.inf
    dense = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
    return plain and dense and X.shape[1] <= most_features and bool(np.isfinite(X).all())


def fit_logistic(estimator: LogisticRegression, X: Floats, positive) -> Any:
    """Return a fitted copy of the estimator for two classes, 0 and 1.

    It is at least as close to the minimum as scikit-learn's solver is. Where Newton's method does
    not get there, that solver is used.
    """
    found = newton_logistic(X, positive.astype(np.float64), float(estimator.C), estimator.tol)
    model = copy(estimator)
    if found is None:
        return model.fit(X, positive)
    beta, steps = found
    model.coef_, model.intercept_ = beta[None, :-1], beta[-1:]
    model.classes_, model.n_iter_ = np.array([0, 1]), np.array([steps], dtype=np.int32)
    model.n_features_in_ = X.shape[1]
    return model


def newton_logistic(
    X: Floats, t: Floats, C: float, tol: float, max_steps: int = 50
) -> tuple[Floats, int] | None:
    """Return coefficients and intercept with the least |w|^2 / 2 + C sum_i loss_i, and the steps.

    t is 0 or 1. None if the gradient is not small enough after ``max_steps``. The tolerance is
    scikit-learn's: of the largest entry of the gradient of the mean loss.
    """
    n, d = X.shape
    X1 = np.hstack([X, np.ones((n, 1))])
    ridge = np.append(np.ones(d), 0.0)
    beta, f = np.zeros(d + 1), np.zeros(n)
    loss = C * n * np.log(2.0)
    for steps in range(max_steps):
        q = expit(f)
        gradient = C * (X1.T @ (q - t)) + ridge * beta
        if np.abs(gradient).max() <= 0.01 * tol * C * n:  # about one step more, which is cheap
            return beta, steps
        root = X1 * np.sqrt(C * np.maximum(q * (1.0 - q), 1e-10))[:, None]
        hessian = root.T @ root  # numpy computes one half of it
        hessian.flat[:: d + 2] += ridge
        step = cho_solve(cho_factor(hessian, check_finite=False), gradient, check_finite=False)
        change, slope, share = X1 @ step, float(gradient @ step), 1.0
        while True:
            there = beta - share * step
            f_there = f - share * change
            value = 0.5 * float((ridge * there) @ there)
            value += C * float(np.logaddexp(0.0, np.where(t > 0, -f_there, f_there)).sum())
            if value <= loss - 1e-4 * share * slope + 1e-12 * loss:
                break
            share /= 2.0
            if share < 1e-6:
                return None
        beta, f, loss = there, f_there, value
    return None
