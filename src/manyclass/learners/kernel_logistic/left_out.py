"""Leave-one-out of kernel logistic regression, from the one fit."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import expit

from manyclass.banks.base import Untrusted
from manyclass.learners.kernel_logistic.loss import Array
from manyclass.learners.kernel_logistic.newton import centred
from manyclass.learners.kernel_logistic.steps import newton_matrix
from manyclass.learners.kernel_logistic.symmetric_products import accurate_product

LOST = 1e-6  # how far below zero leverages may fall, and variances relative to the kernel
SATURATED = 1e6  # a / W of samples whose leverage 1 - D would be lost to rounding


def left_out_changes(K: Array, dual: Array, intercept: float, bound: Array) -> Array:
    """Return by how much each sample moves its own margin.

    Leave-one-out of the least squares problem that the last Newton step solves, with
    working response z = f + a / W: without sample p the margin is z_p - a_p / (A^-1)_pp,
    A = [[K + W^-1, 1], [1', 0]]. Multiplied by W^1/2 from both sides, A^-1 has the
    diagonal W_p D_p, with leverages 1 - D_p = W_p h_p, and the change is a_p h_p / D_p.

    Parameters
    ----------
    K : array of shape (n, n)
    dual, intercept : a solution
    bound : array of shape (n,)
        C times the weights of the samples.

    Returns
    -------
    array of shape (n,)
        The margin f = K a + b of sample p less the one without it.

    Raises
    ------
    Untrusted
        If the kernel is not positive definite.
    """
    f = accurate_product(K, dual) + intercept
    K = centred(K)  # A^-1 is the same
    W = bound * expit(f) * expit(-f)
    root = np.sqrt(W)
    try:
        lower = np.linalg.cholesky(newton_matrix(K, root))
    except np.linalg.LinAlgError:
        raise Untrusted("the kernel is not positive definite") from None
    inverse = dtrtri(lower.T, overwrite_c=1)[0].T  # L^-1, and B^-1 = L^-T L^-1
    border = inverse.T @ (inverse @ root)
    total = root @ border
    D = np.einsum("ij,ij->j", inverse, inverse) - border**2 / total
    leverage = 1.0 - D
    h = np.divide(leverage, W, out=np.zeros_like(W), where=W > 0)
    # Far on the wrong side W vanishes while a does not. There h, the variance of f at x_p
    # before the sample is known, is computed as such.
    far = np.flatnonzero(np.abs(dual) > SATURATED * W)
    seen = inverse @ (root[:, None] * K[:, far])
    h[far] = np.diagonal(K)[far] - np.einsum("ij,ij->j", seen, seen)
    h[far] += (1.0 - K[far] @ (root * border)) ** 2 / total
    least = -LOST * np.abs(np.diagonal(K)).max()
    if (D <= 0).any() or (leverage < -LOST).any() or (h[far] < least).any():
        raise Untrusted("the kernel is not positive definite")
    return dual * np.maximum(h, 0.0) / D
