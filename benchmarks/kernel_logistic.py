"""Kernel logistic regression compared with L-BFGS on its kernel matrix and a Gaussian process.

L-BFGS runs in the coordinates that suit it best: v = L'a with K = L L'. There the penalty is
v'v / 2 and the Hessian matrix I + L'WL. The factorisation counts as part of its time. It is
measured twice: with plain products L v, and with BLAS's products of triangular matrices, which
read half as much memory. "L-BFGS on a" uses the dual coefficients a themselves. This is very slow
with an rbf kernel; with a linear kernel, which has a low rank, it needs no factorisation and is
fast. L-BFGS stops at a gradient of 1e-6 C, because rounding of the objective stops its line search
soon after. Our solver stops at its default, 1e-8 C in function space. The gradients in the table
are measured in the coordinates v, except for L-BFGS on a.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.blas import dtrmv
from scipy.optimize import OptimizeResult, minimize
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import interleave
from experiments import datasets
from manyclass.banks.svm.kernels import Kernel, resolve_gamma
from manyclass.learners.kernel_logistic.logistic_bank import gram
from manyclass.learners.kernel_logistic.newton import solve
from manyclass.learners.kernel_logistic.regression import KernelLogisticRegression

SETS = ("satimage", "letter")
SIZE = 1500
PARAMETERS = {"rbf": (0.1, 1.0, 10.0, 100.0, 1000.0), "linear": (0.001, 1.0, 100.0)}
TARGET = 1e-6  # of C, for L-BFGS
EVALUATIONS = 300  # for L-BFGS in the dual coefficients
JITTER = 1e-12


def two_halves(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised rows; the first half of the classes against the second."""
    data = datasets.load(name)
    classes, y = np.unique(data.y, return_inverse=True)
    rows = np.random.default_rng(0).permutation(len(y))[:SIZE]
    X = StandardScaler().fit_transform(data.X[rows])
    return X, (y[rows] >= len(classes) / 2).astype(np.intp)


def _minimize(objective, n: int, C: float, **options) -> OptimizeResult:
    options = {"gtol": TARGET * C, "ftol": 0.0, "maxiter": 10**6, "maxcor": 20, **options}
    return minimize(objective, np.zeros(n + 1), jac=True, method="L-BFGS-B", options=options)


def lower_factor(K: np.ndarray) -> np.ndarray:
    """Return L of K = L L'."""
    jitter = JITTER * np.trace(K) / len(K)
    return cholesky(K + jitter * np.eye(len(K)), lower=True, overwrite_a=True, check_finite=False)


def whitened(K: np.ndarray, sign: np.ndarray, C: float, triangular: bool) -> OptimizeResult:
    """Run L-BFGS in v and b, with f = L v + b."""
    n, L = len(K), lower_factor(K)

    def objective(x):
        f = x[n] + (dtrmv(L, x[:n], lower=1) if triangular else L @ x[:n])
        dual = C * sign * expit(-sign * f)
        back = dtrmv(L, dual, lower=1, trans=1) if triangular else L.T @ dual
        slopes = np.append(x[:n] - back, -dual.sum())
        return 0.5 * x[:n] @ x[:n] + C * np.logaddexp(0.0, -sign * f).sum(), slopes

    return _minimize(objective, n, C, maxfun=10**6)


def plain(K: np.ndarray, sign: np.ndarray, C: float) -> OptimizeResult:
    """Run L-BFGS in a and b, with f = K a + b."""
    n = len(K)

    def objective(x):
        Ka = K @ x[:n]
        f = Ka + x[n]
        dual = C * sign * expit(-sign * f)
        slopes = np.append(Ka - K @ dual, -dual.sum())
        return 0.5 * x[:n] @ Ka + C * np.logaddexp(0.0, -sign * f).sum(), slopes

    return _minimize(objective, n, C, maxfun=EVALUATIONS)


def whitened_gradient(K: np.ndarray, sign: np.ndarray, C: float, a: np.ndarray, b: float) -> float:
    """Return the gradient in the coordinates v at a and b, relative to C."""
    dual = C * sign * expit(-sign * (K @ a + b))
    return max(np.abs(lower_factor(K).T @ (a - dual)).max(), abs(dual.sum())) / C


def kernel_logistic() -> list[list[str]]:
    """Time the solvers on a given kernel matrix, and whole fits."""
    problems = [(kernel, name) for kernel in PARAMETERS for name in SETS]
    return [
        one_row(kernel, name, *two_halves(name), C)
        for kernel, name in problems
        for C in PARAMETERS[kernel]
    ]


def one_row(kernel: str, name: str, X: np.ndarray, y: np.ndarray, C: float) -> list[str]:
    """Time all methods for one C."""
    gamma = resolve_gamma("scale", X)
    K, sign = gram(Kernel(kernel, gamma), X), 2.0 * y - 1.0
    newton, peer = partial(solve, K, y > 0, np.full(len(y), C)), partial(whitened, K, sign, C)
    timings = interleave(
        {"ours": newton, "whitened": partial(peer, False), "triangular": partial(peer, True)}
    )
    latent = RBF(np.sqrt(0.5 / gamma)) if kernel == "rbf" else DotProduct()
    gaussian = GaussianProcessClassifier(ConstantKernel(C) * latent, optimizer=None)
    timings |= interleave(
        {
            "fit": partial(KernelLogisticRegression(C=C, kernel=kernel, gamma=gamma).fit, X, y),
            "gaussian": partial(gaussian.fit, X, y),
        },
        rounds=3,
    )
    timings |= interleave({"plain": partial(plain, K, sign, C)}, rounds=3, warm_up=False)
    ms = {key: 1e3 * timing.median for key, timing in timings.items()}
    found, other, left = newton(), peer(True), plain(K, sign, C)
    reached = whitened_gradient(K, sign, C, found.dual, found.intercept)
    return [
        f"{name}, {kernel}, C = {C:g}",
        f"{ms['ours']:.0f} ms, {found.n_iter} steps, {reached:.0e}",
        f"{ms['whitened']:.0f} ms, {other.nfev} steps, {np.abs(other.jac).max() / C:.0e}",
        f"{ms['whitened'] / ms['ours']:.1f}x",
        f"{ms['triangular']:.0f} ms",
        f"{ms['triangular'] / ms['ours']:.1f}x",
        f"{ms['plain']:.0f} ms, {left.nfev} steps, {np.abs(left.jac).max() / C:.0e}",
        f"{ms['plain'] / ms['ours']:.1f}x",
        f"{ms['fit']:.0f} ms",
        f"{ms['gaussian']:.0f} ms",
        f"{ms['gaussian'] / ms['fit']:.0f}x",
        f"±{100 * timings['ours'].spread:.0f} %",
    ]


TABLES = {
    "kernel-logistic": (
        kernel_logistic,
        [
            f"{SIZE} rows",
            "ours: time, steps, gradient",
            "L-BFGS, whitened",
            "ratio",
            "L-BFGS, triangular products",
            "ratio",
            f"L-BFGS on a, up to {EVALUATIONS} steps",
            "ratio",
            "whole fit, ours",
            "whole fit, GaussianProcessClassifier",
            "ratio",
            "spread",
        ],
    )
}
