"""Analytic leave-one-out of kernel logistic regression, from one fit."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.special import expit

from manyclass._lib.arrays import Floats
from manyclass.banks.base import Untrusted
from manyclass.learners.kernel_logistic.newton import centre
from manyclass.learners.kernel_logistic.steps import newton_matrix
from manyclass.learners.kernel_logistic.symmetric_products import accurate_product


def left_out_changes(
    K: Floats,
    dual: Floats,
    intercept: float,
    bound: Floats,
    *,
    saturated: float = 1e6,
    negative_tol: float = 1e-6,
) -> Floats:
    """Return how much each sample changes its own margin f = K a + b, shape (n,).

    This is leave-one-out of the weighted least squares problem of the last Newton (IRLS) step, with
    the working response z = f + a / W. Without sample p its margin is z_p - a_p / (A^-1)_pp, where
    A = [[K + W^-1, 1], [1', 0]]. After scaling A by W^1/2 from both sides, the inverse has the
    diagonal D_p = 1 - W_p h_p, where W_p h_p is the leverage. The change is a_p h_p / D_p.

    ``bound`` is C times the sample weights. Samples with |a| / W above ``saturated`` have p near 0
    or 1: the leverage 1 - D would lose all digits, and h is computed directly. Leverages, and h
    relative to the kernel, may fall below 0 by ``negative_tol``; otherwise :class:`Untrusted` is
    raised.
    """
    f = accurate_product(K, dual) + intercept
    K = centre(K)  # it does not change A^-1
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
    # Far on the wrong side W vanishes while a does not. h is the posterior variance of f at x_p
    # without sample p; compute it from the kernel.
    far = np.flatnonzero(np.abs(dual) > saturated * W)
    seen = inverse @ (root[:, None] * K[:, far])
    h[far] = np.diagonal(K)[far] - np.einsum("ij,ij->j", seen, seen)
    h[far] += (1.0 - K[far] @ (root * border)) ** 2 / total
    least = -negative_tol * np.abs(np.diagonal(K)).max()
    if (D <= 0).any() or (leverage < -negative_tol).any() or (h[far] < least).any():
        raise Untrusted("the kernel is not positive definite")
    return dual * np.maximum(h, 0.0) / D
