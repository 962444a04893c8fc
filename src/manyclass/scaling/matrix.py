"""Matrix scaling with a ridge: softmax(z + M x), where M is shrunk to 0."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from manyclass._lib.arrays import Floats, Places


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
    units, samples = 1.0 / np.sqrt(ridge), np.arange(len(y))
    shares = sample_weight / sample_weight.sum()

    def objective(v: Floats) -> tuple[float, Floats]:
        logits = z + X @ (v.reshape(units.shape) * units)
        logits -= logits.max(axis=1, keepdims=True)
        reached = logits[samples, y]
        p = np.exp(logits, out=logits)
        total = p.sum(axis=1)
        p *= (shares / total)[:, None]
        p[samples, y] -= shares
        gradient = (X.T @ p) * units
        loss = shares @ (np.log(total) - reached)
        return float(loss + v @ v), gradient.ravel() + 2.0 * v

    options = {"maxiter": 500, "maxcor": 20, "ftol": tol, "gtol": 1e-7}
    start = np.zeros(units.size)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(units.shape) * units
