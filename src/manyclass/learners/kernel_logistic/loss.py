"""The loss of kernel logistic regression, and the points that Newton's method goes through."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Array = NDArray[np.float64]

NEAR = 1e-3  # a change of b that Newton's method is sure of
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Loss:
    """The sum of C s_i log(1 + exp(-y_i f_i)) as a function of f."""

    sign: Array
    """y, -1 or +1."""
    bound: Array
    """C s, positive."""

    def value(self, f: Array) -> float:
        """Return the loss."""
        return float(self.bound @ np.logaddexp(0.0, -self.sign * f))

    def dual(self, f: Array) -> Array:
        """Return C s (t - p), the negative gradient."""
        return self.bound * self.sign * expit(-self.sign * f)

    def curvature(self, f: Array) -> Array:
        """Return W = C s p (1 - p), the diagonal of the Hessian matrix."""
        return self.bound * expit(f) * expit(-f)

    def shift(self, dual: Array) -> float:
        """Return the Newton step of a constant added to f, infinite where all p are 0 or 1."""
        size = np.abs(dual)
        curvature = float((size * (1.0 - size / self.bound)).sum())
        with np.errstate(over="ignore"):
            return float(dual.sum() / max(curvature, TINY))

    def constant(self) -> float:
        """Return the constant f with the least loss."""
        positive = self.bound[self.sign > 0].sum()
        return float(np.log(positive) - np.log(self.bound[self.sign < 0].sum()))


class Point:
    """Coefficients a and b, and what follows from them."""

    def __init__(self, loss: Loss, a: Array, b: float, Ka: Array):
        self.a, self.b, self.Ka, self.f = a, b, Ka, Ka + b
        self.dual = loss.dual(self.f)
        shift = loss.shift(self.dual)
        if abs(shift) < NEAR:  # rounding of f leaves dual with a sum, but b can take it
            self.b, self.f = b + shift, self.f + shift
            self.dual = loss.dual(self.f)
        self.r, self.gradient = a - self.dual, gradient_of(loss, a, self.dual)
        self.loss = loss.value(self.f)
        self.objective = 0.5 * float(a @ self.Ka) + self.loss


def gradient_of(loss: Loss, a: Array, dual: Array) -> float:
    """Return :attr:`Solution.gradient`."""
    return float(max(np.abs(a - dual).max(), abs(dual.sum())) / loss.bound.max())
