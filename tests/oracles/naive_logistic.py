"""Slow oracles of kernel logistic regression: plain loops, exact arithmetic, and scipy."""

from __future__ import annotations

from fractions import Fraction
from math import exp, fsum, log1p

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]


def softplus(x: float) -> float:
    """log(1 + exp(x)) without overflow."""
    return x + log1p(exp(-x)) if x > 0 else log1p(exp(x))


def logistic(x: float) -> float:
    return 1.0 / (1.0 + exp(-x)) if x > 0 else exp(x) / (1.0 + exp(x))


def margins(K: Array, a: Array, b: float) -> list[float]:
    """f = K a + b in extended precision."""
    K = K.astype(np.longdouble)
    return [float(K[i] @ a.astype(np.longdouble) + b) for i in range(len(a))]


def exact_product(K: Array, a: Array) -> list[Fraction]:
    """K a in exact rational arithmetic."""
    parts = [Fraction(x) for x in a.tolist()]
    return [
        sum((Fraction(k) * x for k, x in zip(row, parts, strict=True)), Fraction(0))
        for row in K.tolist()
    ]


def exact_gradient(K: Array, y: Array, bound: float | Array, a: Array, b: float) -> float:
    """The gradient, from exact margins that are rounded once."""
    bound = np.broadcast_to(bound, a.shape)
    f = [float(Ka + Fraction(b)) for Ka in exact_product(K, a)]
    dual = [bound[i] * y[i] * logistic(-y[i] * f[i]) for i in range(len(a))]
    return max(*(abs(a[i] - d) for i, d in enumerate(dual)), abs(fsum(dual))) / max(bound)


def objective(K: Array, y: Array, bound: Array, a: Array, b: float) -> float:
    """a'Ka / 2 + sum_i C s_i log(1 + exp(-y_i f_i)); y is -1 or +1."""
    f = margins(K, a, b)
    n = range(len(a))
    penalty = sum(a[i] * (f[i] - b) for i in n) / 2
    return penalty + sum(bound[i] * softplus(-y[i] * f[i]) for i in n)


def gradient(K: Array, y: Array, bound: Array, a: Array, b: float) -> float:
    """max |a_i - C s_i (t_i - p_i)| or |sum C s_i (t_i - p_i)|, relative to the largest C s."""
    f = margins(K, a, b)
    dual = [bound[i] * y[i] * logistic(-y[i] * f[i]) for i in range(len(a))]
    return max(*(abs(a[i] - d) for i, d in enumerate(dual)), abs(sum(dual))) / max(bound)


def minimum(K: Array, y: Array, bound: Array) -> tuple[Array, float]:
    """a and b by scipy: L-BFGS-B, then a trust region with the exact Hessian matrix.

    In coordinates v in which the penalty is v'v / 2: K = L L', f = L v + b.
    """
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    n = len(y)

    def value(x):
        f = L @ x[:n] + x[n]
        return x[:n] @ x[:n] / 2 + sum(bound[i] * softplus(-y[i] * f[i]) for i in range(n))

    def slopes(x):
        f = L @ x[:n] + x[n]
        dual = np.array([bound[i] * y[i] * logistic(-y[i] * f[i]) for i in range(n)])
        return np.append(x[:n] - L.T @ dual, -dual.sum())

    def curvatures(x):
        f = L @ x[:n] + x[n]
        W = np.array([bound[i] * logistic(f[i]) * logistic(-f[i]) for i in range(n)])
        whole = np.column_stack([L, np.ones(n)])
        return whole.T @ (W[:, None] * whole) + np.diag(np.append(np.ones(n), 0.0))

    x = minimize(value, np.zeros(n + 1), jac=slopes, method="L-BFGS-B").x
    scale = max(bound)
    x = minimize(
        value, x, jac=slopes, hess=curvatures, method="trust-exact", options={"gtol": 1e-6 * scale}
    ).x
    for _ in range(3):  # polish beyond the rounding error of the objective
        x = x - np.linalg.solve(curvatures(x), slopes(x))
    f = L @ x[:n] + x[n]
    return np.array([bound[i] * y[i] * logistic(-y[i] * f[i]) for i in range(n)]), float(x[n])


def left_out(K: Array, a: Array, b: float, bound: Array) -> Array:
    """z_p - a_p / (A^-1)_pp with A = [[K + W^-1, 1], [1', 0]] and z = f + a / W."""
    f = K @ a + b
    W = np.array([bound[i] * logistic(f[i]) * logistic(-f[i]) for i in range(len(a))])
    A = np.ones((len(a) + 1, len(a) + 1))
    A[:-1, :-1] = K + np.diag(1.0 / W)
    A[-1, -1] = 0.0
    inverse = np.linalg.inv(A)
    z = f + a / W
    coefficients = inverse @ np.append(z, 0.0)
    return np.array([z[p] - coefficients[p] / inverse[p, p] for p in range(len(a))])
