"""Slow oracles for the trained soft-max combination: plain loops, and a general solver."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.model_selection import StratifiedKFold

Array = NDArray[np.float64]
Code = NDArray[np.int8]


# ---------------------------------------------------------------------------
# The model, one sample and one class at a time
# ---------------------------------------------------------------------------


def own_column(code: Code, c: int) -> int | None:
    """The column in which class c, and no other class, is against all the rest."""
    k = len(code)
    for b in range(code.shape[1]):
        others = {int(code[d, b]) for d in range(k) if d != c}
        if k > 2 and others == {-int(code[c, b])}:
            return b
    return None


def is_one_vs_rest(code: Code) -> bool:
    own = [own_column(code, c) for c in range(len(code))]
    return code.shape[1] == len(code) and None not in own and len(set(own)) == len(own)


def places(code: Code) -> list[tuple[int, int]]:
    """Return the places of the weights: (class, column)."""
    if is_one_vs_rest(code):
        return [(c, own_column(code, c)) for c in range(len(code))]
    return [(c, b) for c in range(len(code)) for b in range(code.shape[1]) if code[c, b] != 0]


def probabilities(f: Sequence[float], code: Code, w: Array, biases: Array) -> list[float]:
    """Eq. (1) and (7)."""
    logits = [float(bias) for bias in biases]
    for c, b in places(code):
        logits[c] += float(w[c, b]) * int(code[c, b]) * float(f[b])
    top = max(logits)
    exponentials = [math.exp(z - top) for z in logits]
    return [e / math.fsum(exponentials) for e in exponentials]


def objective(values, y, sample_weight, code: Code, w: Array, biases: Array, C: float) -> float:
    """Eq. (2) and (8), with sample weights."""
    penalty = 0.5 * (float((w**2).sum()) + float((biases**2).sum()))
    losses = [
        s * -math.log(probabilities(f, code, w, biases)[c])
        for f, c, s in zip(values, y, sample_weight, strict=True)
    ]
    return penalty + C * math.fsum(losses)


# ---------------------------------------------------------------------------
# The minimum, by a general solver on one dense array (n, k, parameters)
# ---------------------------------------------------------------------------


class Reference:
    """``½ sum_j penalty_j w_j² - C sum_i s_i log P_i``, weights first, then biases."""

    def __init__(self, values, y, sample_weight, code: Code, C: float, penalty: float = 1.0):
        n, k = len(values), len(code)
        self.where = places(code)
        self.design = np.zeros((n, k, len(self.where) + k))
        for j, (c, b) in enumerate(self.where):
            self.design[:, c, j] = code[c, b] * np.asarray(values)[:, b]
        for c in range(k):
            self.design[:, c, len(self.where) + c] = 1.0
        self.y, self.s, self.C, self.penalty = y, np.asarray(sample_weight, float), C, penalty
        self.code = code

    def value_and_gradient(self, w: Array) -> tuple[float, Array]:
        logits = self.design @ w
        logits = logits - logits.max(axis=1, keepdims=True)
        P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        log_P = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        rows = np.arange(len(self.y))
        value = 0.5 * self.penalty * w @ w - self.C * self.s @ log_P[rows, self.y]
        residuals = P.copy()
        residuals[rows, self.y] -= 1.0
        slope = np.einsum("i,ic,icj->j", self.s, residuals, self.design)
        return float(value), self.penalty * w + self.C * slope

    def solve(self) -> Array:
        """Minimise from all weights 1, which is not where the package starts."""
        size = self.design.shape[2]
        w = np.ones(size)
        for _ in range(5):  # a new start forgets a poor model of the curvature
            w = minimize(
                self.value_and_gradient,
                w,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0, None)] * size,
                options={"maxiter": 5000, "maxfun": 10_000, "ftol": 0, "gtol": 1e-13, "maxcor": 30},
            ).x
        return w

    def flat(self, w: Array, biases: Array) -> Array:
        return np.append([w[place] for place in self.where], biases)

    def spread(self, w: Array) -> tuple[Array, Array]:
        weights = np.zeros(self.code.shape)
        for j, place in enumerate(self.where):
            weights[place] = w[j]
        return weights, w[len(self.where) :]

    def projected_gradient(self, w: Array) -> Array:
        gradient = self.value_and_gradient(w)[1]
        return np.where(w > 0, gradient, np.minimum(gradient, 0.0))


# ---------------------------------------------------------------------------
# The choice of C
# ---------------------------------------------------------------------------


def cross_validate(values, y, code: Code, C: float) -> tuple[int, float]:
    """Number of errors and mean negative log-likelihood over five folds."""
    errors, losses = [], []
    order = np.random.RandomState(0).permutation(len(y))
    for train, test in StratifiedKFold(5).split(values, y[order]):
        train, test = np.sort(order[train]), np.sort(order[test])
        reference = Reference(values[train], y[train], np.ones(len(train)), code, C)
        w, biases = reference.spread(reference.solve())
        for i in test:
            p = probabilities(values[i], code, w, biases)
            errors.append(int(p.index(max(p)) != y[i]))
            losses.append(-math.log(p[y[i]]))
    return sum(errors), float(np.mean(losses))


def choose(table: Sequence[tuple[float, int, float]]) -> float:
    """Section 3.2, for rows (C, number of errors, nll)."""
    least_error = min(error for _, error, _ in table)
    low_error = [row for row in table if 100 * row[1] <= 105 * least_error]
    least_nll = min(nll for _, _, nll in low_error)
    return min(C for C, _, nll in low_error if nll <= 1.05 * least_nll)
