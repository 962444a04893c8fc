"""The logistic loss, and the iterates of Newton's method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from manyclass._lib.arrays import Floats

TINY = float(np.finfo(np.float64).tiny)  # smallest normal float64: guards divisions by zero
EPSILON = float(np.finfo(np.float64).eps)  # machine epsilon of float64
# Relative rounding error of a float64 sum: about n * EPSILON for n = 5000 terms.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Loss:
    """The weighted logistic loss, sum_i C s_i log(1 + exp(-y_i f_i)), as a function of f."""

    sign: Floats  # labels y, -1 or +1
    bound: Floats  # C s: C times the sample weights, positive. It bounds the dual coefficients.

    def value(self, f: Floats) -> float:
        """Return the loss."""
        return float(self.bound @ np.logaddexp(0.0, -self.sign * f))

    def dual(self, f: Floats) -> Floats:
        """Return C s (t - p), the negative gradient in f."""
        return self.bound * self.sign * expit(-self.sign * f)

    def curvature(self, f: Floats) -> Floats:
        """Return W = C s p (1 - p), the diagonal of the Hessian in f (the IRLS weights)."""
        return self.bound * expit(f) * expit(-f)

    def shift(self, dual: Floats) -> float:
        """Return the Newton step for the bias alone; infinite if all p are 0 or 1."""
        size = np.abs(dual)
        curvature = float((size * (1.0 - size / self.bound)).sum())
        with np.errstate(over="ignore"):
            return float(dual.sum() / max(curvature, TINY))

    def constant(self) -> float:
        """Return the constant f that minimises the loss: the log-odds of the classes."""
        positive = self.bound[self.sign > 0].sum()
        return float(np.log(positive) - np.log(self.bound[self.sign < 0].sum()))


class Point:
    """An iterate: coefficients a and b, with margins, residual r, gradient and objective.

    A bias whose Newton step is below ``small_shift`` is corrected by this step. That removes
    the part of sum_i C s_i (t_i - p_i) that comes from rounding errors of the margins.
    """

    def __init__(self, loss: Loss, a: Floats, b: float, Ka: Floats, small_shift: float = 1e-3):
        self.a, self.b, self.Ka, self.f = a, b, Ka, Ka + b
        self.dual = loss.dual(self.f)
        shift = loss.shift(self.dual)
        if abs(shift) < small_shift:
            self.b, self.f = b + shift, self.f + shift
            self.dual = loss.dual(self.f)
        self.r, self.gradient = a - self.dual, gradient_of(loss, a, self.dual)
        self.loss = loss.value(self.f)
        self.objective = 0.5 * float(a @ self.Ka) + self.loss


def gradient_of(loss: Loss, a: Floats, dual: Floats) -> float:
    """Return the relative norm of the gradient, see :attr:`Solution.gradient`."""
    return float(max(np.abs(a - dual).max(), abs(dual.sum())) / loss.bound.max())
