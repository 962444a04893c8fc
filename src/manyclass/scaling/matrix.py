"""Matrix scaling with a ridge: softmax(z + M x), where M is shrunk to 0."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass.scaling.kernels.limited_memory import minimise_matrix


class Search(NamedTuple):
    """A matrix that was found, and the steps on the way: another search can start from there.

    Everything is in units of 1 / sqrt(ridge).
    """

    units: Floats
    """Shape (d, k)."""
    v: Floats
    """The matrix, shape (d k,)."""
    steps: Floats
    """Differences of matrices, shape (m, d k)."""
    changes: Floats
    """Changes of the gradient along the steps."""

    @property
    def M(self) -> Floats:
        """The matrix, shape (d, k)."""
        return self.v.reshape(self.units.shape) * self.units

    def in_units(self, units: Floats) -> tuple[Floats, Floats, Floats]:
        """Return v, steps and changes in other units. The ridge alone has the Hessian 2 I."""
        factors = (self.units / units).ravel()
        steps = self.steps * factors
        changes = (self.changes - 2.0 * self.steps) / factors + 2.0 * steps
        return self.v * factors, steps, changes


def fit_matrix(
    z: Floats,
    X: Floats,
    y: Places,
    sample_weight: Floats,
    ridge: Floats,
    tol: float,
    start: Search | None = None,
) -> Floats:
    """Return the matrix M (d, k) with the least mean log-loss of softmax(z + X M), plus a ridge.

    See :func:`search_matrix`.
    """
    return search_matrix(z, X, y, sample_weight, ridge, tol, start).M


def search_matrix(
    z: Floats,
    X: Floats,
    y: Places,
    sample_weight: Floats,
    ridge: Floats,
    tol: float,
    start: Search | None = None,
) -> Search:
    """Search for the matrix M (d, k) with the least mean log-loss of softmax(z + X M) and ridge.

    L-BFGS on the entries of ``M * sqrt(ridge)``: in these units, the ridge is the same for all
    entries, and the problem is strongly convex.

    Parameters
    ----------
    z : array of shape (n, k)
        Logits to begin with. Of z and X, columns are best contiguous.
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
    start : Search, optional
        Of some of the samples, or with another ridge. By default, the search starts at 0.
    """
    units = 1.0 / np.sqrt(ridge)
    shares = sample_weight / sample_weight.sum()
    z, X = np.ascontiguousarray(z.T), np.ascontiguousarray(X.T)  # loops over samples are long
    # Steps that are remembered, a choice: with 40, the smallest problems take half as many as with
    # 20. The largest find their minimum in fewer, and do without the memory.
    most = 40 if units.size < 10**5 else 20
    steps, changes = np.empty((2, most, units.size))
    v, known = np.zeros(units.size), 0
    if start is not None:
        known = len(start.steps)
        v, steps[:known], changes[:known] = start.in_units(units)
    n_steps = minimise_matrix(z, X, y, shares, units.ravel(), tol, v, steps, changes, known)
    if n_steps > most:  # the oldest are not the first
        steps, changes = (np.roll(each, -n_steps % most, axis=0) for each in (steps, changes))
    return Search(units, v, steps[:n_steps], changes[:n_steps])
