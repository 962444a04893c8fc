"""Some steps of a kernel matrix's Cholesky factorisation: all of them where its rank is low."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf

from manyclass.banks.symmetric_products import symmetric_product

Array = NDArray[np.float64]

BLOCK = 16  # pivots at a time
HIGHEST = 3  # times the pivots that are wanted anyway: the ranks that are looked for
COMPLETE = 1e-12  # what may be left of the diagonal, relative to all of it
GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


class PartialCholesky:
    """K as F'F, and the diagonal of what is left.

    Pivots are drawn in proportion to what is left of the diagonal (Y. Chen, E. N. Epperly,
    J. A. Tropp, R. J. Webber, "Randomly pivoted Cholesky", Comm. Pure Appl. Math. 78,
    2025), with multiples of the golden ratio for random numbers, and some at a time. Then
    as many are drawn as are missing to the highest rank of interest. If these depend on each
    other, the rank is lower, and they complete the factorisation.

    Parameters
    ----------
    K : array of shape (n, n)
        Symmetric, and positive semi-definite.
    n_pivots : int
        The steps to take where the rank of K is not low.

    Attributes
    ----------
    F : array of shape (m, n)
        A row for each pivot.
    rest : array of shape (n,)
        The diagonal of K - F'F, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.banks.partial_cholesky import PartialCholesky
    >>> X = np.random.default_rng(0).normal(size=(300, 40))
    >>> K = X @ X.T
    >>> found = PartialCholesky(K, 20)
    >>> found.F.shape, found.is_all_of(K)
    ((40, 300), True)
    """

    def __init__(self, K: Array, n_pivots: int):
        self.F, self.rest = np.empty((0, len(K))), np.maximum(np.diagonal(K), 0.0)
        self._least, self._n_drawn = COMPLETE * float(self.rest.mean()), 0
        while len(self.F) < n_pivots and self.rest.mean() > self._least:
            drawn, left = self._draw(K, min(BLOCK, n_pivots - len(self.F)))
            if not self._extend(K, drawn, left):
                return
        while len(self.F) < HIGHEST * n_pivots and self.rest.mean() > self._least:
            drawn, left = self._draw(K, HIGHEST * n_pivots - len(self.F))
            if self._independent(left) or not self._extend(K, drawn, left):
                return

    def _draw(self, K: Array, n_pivots: int) -> tuple[NDArray[np.intp], Array]:
        """Return samples, and what is left of their kernel matrix."""
        total = np.cumsum(self.rest)
        numbers = GOLDEN * np.arange(self._n_drawn + 1, self._n_drawn + n_pivots + 1) % 1.0
        self._n_drawn += n_pivots
        drawn = np.unique(np.searchsorted(total, total[-1] * numbers))
        known = self.F[:, drawn]
        return drawn, K[np.ix_(drawn, drawn)] - known.T @ known

    def _independent(self, left: Array) -> bool:
        """Tell whether a matrix has no eigenvalue that could be rounding."""
        try:
            np.linalg.cholesky(left - self._least * np.eye(len(left)))
        except np.linalg.LinAlgError:
            return False
        return True

    def _extend(self, K: Array, drawn: NDArray[np.intp], left: Array) -> int:
        """Take all of the drawn samples for pivots that are independent; return how many."""
        lower, order, rank, _ = dpstrf(left, tol=self._least, lower=1)
        pivots = drawn[order[:rank] - 1]
        rows = K[pivots] - self.F[:, pivots].T @ self.F
        rows = dtrsm(1.0, lower[:rank, :rank].T, rows.T, side=1).T
        self.F = np.concatenate([self.F, rows])
        self.rest = np.maximum(self.rest - np.einsum("ij,ij->j", rows, rows), 0.0)
        return int(rank)

    def is_all_of(self, K: Array) -> bool:
        """Tell whether F'F is K, but for rounding.

        What is left of a positive semi-definite matrix is no larger than its diagonal.
        Should K have negative eigenvalues, a product tells.
        """
        if self.rest.mean() > self._least:
            return False
        x = GOLDEN * np.arange(1, len(K) + 1) % 1.0 - 0.5
        size = float(np.diagonal(K).max()) * np.abs(x).sum()
        error = np.abs(symmetric_product(K, x) - (self.F @ x) @ self.F).max()
        return bool(error <= COMPLETE * size)
