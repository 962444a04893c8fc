"""Slow oracles for the choice of hyperparameters: one candidate at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, log_loss

Params = dict[str, Any]
SAME = 1e-12


# ---------------------------------------------------------------------------
# The choice among equals
# ---------------------------------------------------------------------------


def pooled(folds: Sequence[float], sizes: Sequence[float] | None) -> float:
    sizes = [1] * len(folds) if sizes is None else sizes
    return sum(value * size for value, size in zip(folds, sizes, strict=True)) / sum(sizes)


def keep_least(values: dict[int, float], left: list[int], slack: float = 0.0) -> list[int]:
    least = min(values[i] for i in left)
    return [i for i in left if values[i] <= (1 + slack) * least + SAME * max(1, abs(least))]


def keep_smoother(C: dict[int, float], sigma2: dict[int, float], left: list[int]) -> list[int]:
    kept = []
    for i in left:
        beaten = False
        for j in left:
            no_worse = C[j] <= C[i] and sigma2[j] >= sigma2[i]
            beaten |= no_worse and (C[j] < C[i] or sigma2[j] > sigma2[i])
        if not beaten:
            kept.append(i)
    return kept


def neighbours(i: int, params: list[Params], C: str, width: str) -> list[int]:
    """Return the up to eight candidates around candidate i with the same other parameters."""

    def rest(j: int) -> Params:
        return {name: value for name, value in params[j].items() if name not in (C, width)}

    alike = [j for j in range(len(params)) if rest(j) == rest(i)]
    found = []
    for j in alike:
        steps = []
        for name in (C, width):
            axis = sorted({params[a][name] for a in alike})
            steps.append(abs(axis.index(params[j][name]) - axis.index(params[i][name])))
        if max(steps) == 1:
            found.append(j)
    return found


def neighbour_means(
    losses: dict[int, float], params: list[Params], left: list[int], C: str, width: str
) -> dict[int, float]:
    means = {}
    for i in left:
        around = [losses[j] for j in neighbours(i, params, C, width) if not math.isnan(losses[j])]
        means[i] = sum(around) / len(around) if around else math.inf
    return means


def smoothest_best(
    params: list[Params],
    accuracies: list[list[float]],
    log_likelihoods: list[list[float]] | None,
    C: str,
    width: str,
    width_is_gamma: bool,
    sizes: Sequence[float] | None = None,
) -> int:
    """Return the candidate that rules (a) to (f) of Duan et al. (2003, section 4) choose."""
    rows = range(len(params))
    error = {i: 1 - pooled(accuracies[i], sizes) for i in rows}
    nll = None
    if log_likelihoods is not None:
        nll = {i: -pooled(log_likelihoods[i], sizes) for i in rows}
    c = {i: params[i][C] for i in rows}
    sigma2 = {i: 1 / (2 * params[i][width]) if width_is_gamma else params[i][width] for i in rows}
    left = [i for i in rows if not math.isnan(error[i]) and not (nll and math.isnan(nll[i]))]
    left = keep_least(error, left)
    if nll is not None:
        left = keep_least(nll, left)
    left = keep_smoother(c, sigma2, left)
    left = keep_least(neighbour_means(error, params, left, C, width), left)
    if nll is not None:
        left = keep_least(neighbour_means(nll, params, left, C, width), left)
    least = min(c[i] for i in left)
    return next(i for i in left if c[i] == least)


def smallest_c(
    params: list[Params],
    accuracies: list[list[float]],
    log_likelihoods: list[list[float]] | None,
    C: str,
    slack: float = 0.0,
    sizes: Sequence[float] | None = None,
) -> int:
    """Return the choice of Wu et al. (section 6.2), or with slack Duan's of section 3.2."""
    rows = range(len(params))
    losses = [{i: 1 - pooled(accuracies[i], sizes) for i in rows}]
    if log_likelihoods is not None:
        losses.append({i: -pooled(log_likelihoods[i], sizes) for i in rows})
    left = [i for i in rows if not any(math.isnan(values[i]) for values in losses)]
    for values in losses:
        left = keep_least(values, left, slack)
    least = min(params[i][C] for i in left)
    return next(i for i in left if params[i][C] == least)


# ---------------------------------------------------------------------------
# Grids and scores
# ---------------------------------------------------------------------------


def coarse_grid() -> list[tuple[float, float]]:
    """Return Duan's 49 pairs (C, sigma^2)."""
    powers = [float(f"1e{exponent}") for exponent in range(-3, 4)]
    return [(C, sigma2) for C in powers for sigma2 in powers]


def fine_grid(C: float, sigma2: float) -> list[tuple[float, float]]:
    """Return Duan's 81 pairs around one."""
    factors = [0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8]
    return [(a * C, b * sigma2) for a in factors for b in factors]


def cross_validate(estimator, params: Params, X, y, folds) -> list[tuple[float, float]]:
    """Return accuracy and mean log-likelihood of each fold, from separate fits."""
    scores = []
    for train, test in folds:
        model = clone(estimator).set_params(**params).fit(X[train], y[train])
        likelihood = np.nan
        if hasattr(model, "predict_proba"):
            likelihood = -log_loss(y[test], model.predict_proba(X[test]), labels=model.classes_)
        scores.append((accuracy_score(y[test], model.predict(X[test])), likelihood))
    return scores
