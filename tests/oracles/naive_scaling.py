"""Slow oracle of structured scaling: the formulas in numpy loops, the minima by scipy."""

from __future__ import annotations

from math import exp, fsum, log
from typing import Any, NamedTuple

import naive_fitting
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]


def log_odds(r: float) -> float:
    """Log-odds of a clipped probability, at most 8 either way."""
    r = min(max(r, 1e-7), 1 - 1e-7)
    return min(max(log(r / (1 - r)), -8.0), 8.0)


def of_columns(r: Array, code) -> tuple[Array, Array]:
    """Log-odds (n, l), and features (3, n, k): least and mean logarithm, mean log-odds of sides."""
    n, k = len(r), len(code)
    features = np.zeros((3, n, k))
    for s in range(n):
        for i in range(k):
            mine = [b for b in range(code.shape[1]) if code[i, b] != 0]
            if not mine:
                continue
            clipped = [min(max(r[s, b], 1e-7), 1 - 1e-7) for b in mine]
            sides = [q if code[i, b] > 0 else 1 - q for b, q in zip(mine, clipped, strict=True)]
            odds = [code[i, b] * log_odds(r[s, b]) for b in mine]
            features[0, s, i] = log(min(sides))
            features[1, s, i] = fsum(log(q) for q in sides) / len(mine)
            features[2, s, i] = fsum(odds) / len(mine)
    return np.array([[log_odds(q) for q in row] for row in r]).reshape(r.shape), features


def softmax(logits) -> list[float]:
    """Of one row."""
    powers = [exp(x - max(logits)) for x in logits]
    return [x / fsum(powers) for x in powers]


def mixed(p: Array, share: float) -> Array:
    """Logarithms of p with a share of the uniform distribution; of two classes centred."""
    logs = np.log((1 - share) * np.asarray(p) + share / p.shape[1])
    return logs - logs.mean(axis=1, keepdims=True) if p.shape[1] == 2 else logs


def log_loss(logits: Array, y, weights) -> float:
    """Weighted sum."""
    top = logits.max(axis=1)
    reached = logits[np.arange(len(y)), y]
    return float(weights @ (top + np.log(np.exp(logits - top[:, None]).sum(axis=1)) - reached))


def weights_objective(theta, features: Array, y, weights, ridge: float) -> float:
    """Log-loss of the pooled sources, and the ridge toward the first alone."""
    logits = sum(t * feature for t, feature in zip(theta, features, strict=True))
    away = np.asarray(theta) - np.eye(len(theta))[0]
    return log_loss(logits, y, weights) + ridge * float(away @ away)


def matrix_objective(M: Array, z: Array, X: Array, y, weights, ridge: Array) -> float:
    """Mean log-loss of softmax(z + X M), and the ridge."""
    return log_loss(z + X @ M, y, weights) / weights.sum() + float((ridge * M**2).sum())


def lowest(objective, start) -> Array:
    """The minimum of a smooth convex function, by two methods in turn, without derivatives."""
    found = np.asarray(start, dtype=float)
    for method in ("BFGS", "L-BFGS-B"):
        found = minimize(objective, found, method=method, options={"maxiter": 2000}).x
    return found


class Fitted(NamedTuple):
    """The parameters of the oracle."""

    weights: Array
    share: float
    log_prior: Array
    z: Array
    X: Array
    ridge: Array

    def objective(self, M: Array, y, weights) -> float:
        """Of a matrix."""
        return matrix_objective(M, self.z, self.X, y, weights, self.ridge)


def sources(
    p, share, log_prior, columns=None, others=(), code=None, floor=2.0**-52
) -> tuple[Array, Any]:
    """Features (t, n, k) and log-odds."""
    features = [np.log(np.maximum(p, floor))]
    features += [np.log((1 - share) * other + share / p.shape[1]) for other in others]
    odds = None
    if columns is not None:
        odds, described = of_columns(columns, code)
        features += list(described)
    if len(features) > 1:
        features.append(np.tile(log_prior, (len(p), 1)))
    return np.array(features), odds


def fit(p, y, weights, columns=None, others=(), code=None, pooled=None) -> Fitted:
    """Everything but the matrix; ``pooled`` replaces the search for the shared weights."""
    n, k = weights.sum(), p.shape[1]
    counts = np.array([weights[y == c].sum() for c in range(k)])
    share, log_prior = 1 / (n + 1), np.log((counts + 1) / (n + k))
    floor = float(np.clip(p[(p > 0) & (weights > 0)[:, None]].min(), 2.0**-126, 2.0**-52))
    features, odds = sources(p, share, log_prior, columns, others, code, floor)
    if pooled is None and len(features) == 1:
        pooled = np.array([naive_fitting.temperature(np.maximum(p, floor), y, weights)])
    elif pooled is None:
        start = np.eye(len(features))[0]
        pooled = lowest(lambda theta: weights_objective(theta, features, y, weights, 0.5), start)
    z = mixed(np.array([softmax(row) for row in np.tensordot(pooled, features, 1)]), share)
    X = np.hstack([z, np.ones((len(z), 1))])
    ridge = np.full((k + 1, k), k * (k - 1) / n)
    ridge[np.arange(k), np.arange(k)] = ridge[k] = k / n
    if odds is not None and k * odds.shape[1] <= 10 * n:
        X = np.hstack([X, odds])
        ridge = np.vstack([ridge, np.full((odds.shape[1], k), 0.3 * k * odds.shape[1] / n)])
    return Fitted(pooled, share, log_prior, z, X, ridge)


def predict(weights, share, log_prior, matrix, p, columns=None, others=(), code=None) -> Array:
    """Probabilities of the whole formula, row after row."""
    k = p.shape[1]
    features, odds = sources(p, share, log_prior, columns, others, code)
    answers = []
    for s in range(len(p)):
        pooled = softmax([fsum(weights * features[:, s, i]) for i in range(k)])
        z = mixed(np.array([pooled]), share)[0]
        x = np.concatenate([z, [1.0], [] if odds is None else odds[s]])[: len(matrix)]
        answers.append(softmax([z[i] + fsum(x * matrix[:, i]) for i in range(k)]))
    return np.array(answers)


def fit_weights(features: Array, y, weights, ridge: float) -> Array:
    """The shared weights, by Newton's method in numpy."""
    features = features - features.mean(axis=2, keepdims=True)
    t, samples = len(features), np.arange(len(y))
    origin = theta = np.eye(t)[0]
    loss = weights_objective(theta, features, y, weights, ridge)
    for _ in range(100):
        p = np.array([softmax(row) for row in np.tensordot(theta, features, axes=1)])
        weighted = features * (p * weights[:, None])
        expected = (features * p).sum(axis=2)
        gradient = weighted.sum(axis=(1, 2)) - features[:, samples, y] @ weights
        gradient += 2.0 * ridge * (theta - origin)
        hessian = np.einsum("tnk,unk->tu", weighted, features) - (expected * weights) @ expected.T
        step = np.linalg.solve(hessian + 2.0 * ridge * np.eye(t), gradient)
        share = 1.0
        while share > 1e-8:
            there = weights_objective(theta - share * step, features, y, weights, ridge)
            if there <= loss:
                break
            share /= 2.0
        if share <= 1e-8 or gradient @ step <= 1e-13 * (1.0 + loss):
            break
        theta, loss = theta - share * step, there
    return theta


def fit_matrix(z: Array, X: Array, y, weights, ridge: Array) -> Array:
    """The matrix with the least mean log-loss and ridge, by scipy's L-BFGS."""
    units, samples, shares = 1.0 / np.sqrt(ridge), np.arange(len(y)), weights / weights.sum()

    def objective(v: Array) -> tuple[float, Array]:
        M = v.reshape(units.shape) * units
        p = np.array([softmax(row) for row in z + X @ M])
        p[samples, y] -= 1.0
        gradient = (X.T @ (shares[:, None] * p)) * units
        return matrix_objective(M, z, X, y, weights, ridge), gradient.ravel() + 2.0 * v

    options = {"maxiter": 5000, "maxcor": 50, "ftol": 1e-16, "gtol": 1e-10}
    start = np.zeros(units.size)
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(units.shape) * units
