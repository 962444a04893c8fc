"""Slow oracles of the estimator side in plain loops: one sample, one column at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, exp, fsum, inf, isinf, log, log1p, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import clone

Array = NDArray[np.float64]
Code = NDArray[np.int8]
Fold = tuple[Sequence[int], Sequence[int]]


# -- binary models ---------------------------------------------------------------------


def positive_score(model, X) -> Array:
    """Return the probability of class 1 if the model has one, else the margin."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1]
    return model.decision_function(X)


def fit_column(estimator, X, y, column: Code, rows: Sequence[int]) -> Any | None:
    """Fit one binary problem on the given rows; None if they lack a side."""
    used = [s for s in rows if column[y[s]] != 0]
    target = [1 if column[y[s]] > 0 else 0 for s in used]
    if len(set(target)) < 2:
        return None
    return clone(estimator).fit(X[used], target)


def binary_scores(estimator, X, y, code: Code, X_new) -> Array:
    """Scores of every column for new samples, one model and one sample after another."""
    scores = np.empty((X_new.shape[0], code.shape[1]))
    for b in range(code.shape[1]):
        model = fit_column(estimator, X, y, code[:, b], range(len(y)))
        for s in range(X_new.shape[0]):
            scores[s, b] = positive_score(model, X_new[[s]])[0]
    return scores


def out_of_sample_scores(
    estimator, X, y, code: Code, folds: Sequence[Fold], *, by_folds: bool = False
) -> Array:
    """Scores of the training samples by models that did not see them.

    A column that does not use the class of the sample is scored by its model of all data. Other
    columns have the mean over the folds that left the sample out and had both sides; with
    ``by_folds`` so have all columns.
    """
    n, n_columns = len(y), code.shape[1]
    scores = np.full((n, n_columns), nan)
    for b in range(n_columns):
        full = fit_column(estimator, X, y, code[:, b], range(n))
        models = [fit_column(estimator, X, y, code[:, b], train) for train, _ in folds]
        for s in range(n):
            answers = [
                positive_score(model, X[[s]])[0]
                for model, (_, test) in zip(models, folds, strict=True)
                if model is not None and s in set(test)
            ]
            if code[y[s], b] == 0 and not (by_folds and answers):
                answers = [positive_score(full, X[[s]])[0]]
            if answers:
                scores[s, b] = fsum(answers) / len(answers)
    return scores


def sides_not_left_out(
    y, code: Code, folds: Sequence[Fold], weights: Sequence[float]
) -> tuple[set[tuple[int, int]], bool]:
    """Return classes of several samples, with columns, whose side there has no score.

    The second value is whether no column has scores of both sides. Columns with one side only,
    or none, have scores in every fold.
    """
    used = [s for s in range(len(y)) if weights[s] > 0]
    several = {y[s] for s in used if sum(y[t] == y[s] for t in used) > 1}
    missed, none_has_both = set(), True
    for b in range(code.shape[1]):
        constant = not {code[y[s], b] for s in used} >= {1, -1}
        scored = set()
        for train, test in folds:
            if constant or {code[y[s], b] for s in train if weights[s] > 0} >= {1, -1}:
                scored |= {code[y[s], b] for s in test}
        none_has_both &= not scored >= {1, -1}
        missed |= {(c, b) for c in several if code[c, b] != 0 and code[c, b] not in scored}
    return missed, none_has_both


# -- calibration -----------------------------------------------------------------------


def platt_targets(sides: Sequence[int], weights: Sequence[float]) -> list[float]:
    """(N+ + 1)/(N+ + 2) on the positive side, 1/(N- + 2) on the negative (Platt 1999)."""
    positive = fsum(w for w, side in zip(weights, sides, strict=True) if side > 0)
    negative = fsum(w for w, side in zip(weights, sides, strict=True) if side < 0)
    return [(positive + 1) / (positive + 2) if side > 0 else 1 / (negative + 2) for side in sides]


def sigmoid(f: float, a: float, b: float) -> float:
    """1/(1 + exp(a f + b)), without overflow."""
    z = a * f + b
    return exp(-z) / (1 + exp(-z)) if z >= 0 else 1 / (1 + exp(z))


def sigmoid_loss(f, sides, weights, a: float, b: float) -> float:
    """Weighted cross-entropy of Platt's targets."""
    total = []
    for score, target, w in zip(f, platt_targets(sides, weights), weights, strict=True):
        z = a * score + b
        total.append(w * (target * z + (log1p(exp(-z)) if z >= 0 else -z + log1p(exp(z)))))
    return fsum(total)


def sigmoid_gradient(f, sides, weights, a: float, b: float) -> tuple[float, float]:
    """Mean derivative of the cross-entropy by the log-odds at the mean score and by their slope.

    The slope is that of standardised scores, so that the scale of f does not matter; equal
    scores, up to the rounding of their mean, have none.
    """
    total = fsum(weights)
    mean = fsum(w * score for w, score in zip(weights, f, strict=True)) / total
    spread = (fsum(w * (s - mean) ** 2 for w, s in zip(weights, f, strict=True)) / total) ** 0.5
    spread = spread if spread > 1e-12 * abs(mean) else inf
    errors = [
        w * (sigmoid(score, a, b) - target)
        for score, target, w in zip(f, platt_targets(sides, weights), weights, strict=True)
    ]
    slope = fsum(e * (score - mean) for e, score in zip(errors, f, strict=True))
    return slope / (total * spread), fsum(errors) / total


def beta_features(x: float, bound: float) -> tuple[float, float]:
    """log p and -log(1 - p) of clipped log-odds x."""
    x = min(max(x, -bound), bound)
    return -log1p(exp(-x)), log1p(exp(x))


def beta(x: float, a: float, b: float, c: float, bound: float) -> float:
    """1/(1 + exp(-(a log p - b log(1 - p) + c))) of clipped log-odds x."""
    u, v = beta_features(x, bound)
    return sigmoid(a * u + b * v + c, -1.0, 0.0)


def beta_loss(x, sides, weights, a: float, b: float, c: float, bound: float) -> float:
    """Weighted cross-entropy of Platt's targets, and a ridge of 0.1 toward the identity."""
    total = [0.05 * ((a - 1) ** 2 + (b - 1) ** 2 + c**2)]
    for score, target, w in zip(x, platt_targets(sides, weights), weights, strict=True):
        u, v = beta_features(score, bound)
        z = -(a * u + b * v + c)
        total.append(w * (target * z + (log1p(exp(-z)) if z >= 0 else -z + log1p(exp(z)))))
    return fsum(total)


def typical_size(f: Sequence[float], weights: Sequence[float]) -> float:
    """Return the weighted median of the sizes of the scores; infinity if that is 0."""
    total, reached = fsum(weights), 0.0
    for size, w in sorted((abs(score), w) for score, w in zip(f, weights, strict=True)):
        reached += w
        if reached >= (0.5 - 1e-9) * total:
            return size if size > 0 else inf
    return inf


def compressed(score: float, limit: float) -> float:
    """Return the score up to the limit, and a logarithm of it beyond."""
    if isinf(score) or not abs(score) > limit:
        return score
    return copysign(limit * (1 + log(abs(score)) - log(limit)), score)


def isotonic(f, targets, weights) -> list[float]:
    """The increasing curve of least squares, at each of the scores: pool adjacent violators."""
    pools: list[list[float]] = []  # mean, weight, largest score
    for score in sorted(set(f)):
        here = [(t, w) for x, t, w in zip(f, targets, weights, strict=True) if x == score]
        weight = fsum(w for _, w in here)
        pools.append([fsum(t * w for t, w in here) / weight, weight, score])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, weight, last = pools.pop()
            before, so_far, _ = pools.pop()
            both = so_far + weight
            pools.append([(before * so_far + mean * weight) / both, both, last])
    return [next(mean for mean, _, last in pools if score <= last) for score in f]


# -- temperature -----------------------------------------------------------------------


def power(p: Sequence[float], s: float) -> list[float]:
    """p_i^s, renormalised."""
    powered = [x**s for x in p]
    return [x / fsum(powered) for x in powered]


def tempered_log_loss(p: Array, y: Sequence[int], s: float, weights: Sequence[float]) -> float:
    """Weighted sum of -log of the probability that p^s gives to the true class."""
    total = []
    for row, label, w in zip(p, y, weights, strict=True):
        logs = [s * log(x) for x in row]
        top = max(logs)
        total.append(w * (top + log(fsum(exp(x - top) for x in logs)) - logs[label]))
    return fsum(total)


def tempered(p: Sequence[float], s: float, n: float) -> list[float]:
    """p_i^s, renormalised, with a share 1 / (n + 1) of the uniform distribution."""
    return [(n * x + 1 / len(p)) / (n + 1) for x in power(p, s)]


def temperature(p: Array, y, weights=None, bounds=(0.05, 20.0)) -> float:
    """Return the power with the lowest log-loss, by golden sections and parabolas."""
    weights = [1.0] * len(y) if weights is None else weights
    return minimize_scalar(
        lambda s: tempered_log_loss(p, y, s, weights),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-10},
    ).x


# -- all of it -------------------------------------------------------------------------


def coupled(scores: Array, code: Code, couple_row: Callable[[Array, Code], Array]) -> Array:
    """Couple row after row."""
    return np.array([couple_row(row, code) for row in scores])


def predict_proba(
    estimator,
    X,
    y,
    code: Code,
    X_new,
    couple_row: Callable[[Array, Code], Array],
    folds: Sequence[Fold] | None = None,
) -> Array:
    """Fit, score, couple and, where there are folds, temper."""
    p = coupled(binary_scores(estimator, X, y, code, X_new), code, couple_row)
    if folds is None:
        return p
    scores = out_of_sample_scores(estimator, X, y, code, folds, by_folds=True)
    left_out = coupled(scores, code, couple_row)
    s = temperature(left_out, y)
    return np.array([tempered(row, s, len(y)) for row in p])


def sort_columns(scores, sides, weights) -> tuple[list[bool], list[bool]]:
    """Which columns lack scores of a side, and which have both; neither: certain or untrained."""
    empty, both = [], []
    for f, side in zip(scores.T, sides.T, strict=True):
        takes_part = side != 0
        usable = takes_part & (weights > 0) & ~np.isnan(f)
        has_both = bool((usable & (side > 0)).any() and (usable & (side < 0)).any())
        certain = bool(usable.any() and not np.isfinite(f[usable]).any())
        weighted = bool((takes_part & (weights > 0)).any())
        silent = bool(((f == 0) | np.isnan(f)).all())
        untrained = bool(takes_part.any() or (f == 0).any()) and not weighted and silent
        both.append(has_both)
        empty.append(not has_both and not certain and not untrained)
    return empty, both
