"""Matrix scaling with a ridge: softmax(z + M x), where M is shrunk to 0."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass.scaling.kernels.limited_memory import minimise_matrix


def fit_matrix(
    z: Floats, X: Floats, y: Places, sample_weight: Floats, ridge: Floats, tol: float
) -> Floats:
    """Return the matrix M (d, k) with the least mean log-loss of softmax(z + X M), plus a ridge.

    L-BFGS on the entries of ``M * sqrt(ridge)``: in these units, the ridge is the same for all
    entries, and the problem is strongly convex.

    Parameters
    ----------
    z : array of shape (n, k)
        Logits to begin with.
    X : array of shape (n, d)
        Features.
    y : int array of shape (n,)
        True classes.
    sample_weight : array of shape (n,)
        Weights. Only their ratios matter here.
    ridge : array of shape (d, k)
        Factors of the squared entries of M. They are positive.
    tol : float
        The search stops when a step reduces the objective by less than this.
    """
    units = 1.0 / np.sqrt(ridge)
    shares, v = sample_weight / sample_weight.sum(), np.empty(units.size)
    z, X = np.ascontiguousarray(z.T), np.ascontiguousarray(X.T)  # loops over samples are long
    minimise_matrix(z, X, y, shares, units.ravel(), tol, v)
    return v.reshape(units.shape) * units
