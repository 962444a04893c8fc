"""Slow oracles of the reliability measures: one machine, one sample at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, fsum, inf, isnan

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Code = NDArray[np.int8]


# -- measures --------------------------------------------------------------------------


def squared_norm(machine, kernel: Callable[[Array, Array], float]) -> float:
    """|w|^2 = sum_ij a_i y_i a_j y_j K_ij of a fitted binary SVC."""
    vectors, duals = machine.support_vectors_, machine.dual_coef_[0]
    return fsum(
        a * b * kernel(s, t)
        for s, a in zip(vectors, duals, strict=True)
        for t, b in zip(vectors, duals, strict=True)
    )


def slack(side: int, f: float) -> float:
    return max(0.0, 1.0 - side * f)


def static(penalty: float, sides: Sequence[int], margins, weights) -> float:
    """Eq. (7), of the samples that take part."""
    used = [i for i, side in enumerate(sides) if side != 0 and weights[i] > 0]
    total = fsum(weights[i] for i in used)
    lost = fsum(weights[i] * slack(sides[i], margins[i]) for i in used)
    return exp(-(penalty + lost / total))


def squared_distance(x: Sequence[float], t: Sequence[float]) -> float:
    return fsum((a - b) ** 2 for a, b in zip(x, t, strict=True))


def neighbourhood(x, X, weights, size: float, left_out: int | None = None) -> dict[int, float]:
    """Return how often each sample counts. Samples at the same distance count together."""
    by_distance: dict[float, list[int]] = {}
    for i in range(len(X)):
        if weights[i] > 0 and i != left_out:
            by_distance.setdefault(squared_distance(x, X[i]), []).append(i)
    counts, left = {}, float(size)
    for distance in sorted(by_distance):
        together = fsum(weights[i] for i in by_distance[distance])
        for i in by_distance[distance]:
            counts[i] = weights[i] * min(1.0, left / together)
        left -= together
        if left <= 0:
            break
    return counts


def dynamic(penalty: float, sides, margins, weights, counts: dict[int, float], f: float) -> float:
    """Eq. (12), of the neighbours that the machine puts on the side of f; else eq. (7)."""
    alike = [i for i in counts if sides[i] != 0 and (margins[i] > 0) == (f > 0)]
    if not alike:
        return static(penalty, sides, margins, weights)
    k_x = fsum(counts[i] for i in alike)
    return exp(-(penalty + fsum(counts[i] * slack(sides[i], margins[i]) for i in alike) / k_x))


def dynamic_of_all(penalties, y, code, margins, weights, X, X_new, scores, size, own=None) -> Array:
    """Reliabilities (n, l) of all machines at all rows; ``own`` are left out one by one."""
    out = np.empty(np.shape(scores))
    for s in range(len(X_new)):
        counts = neighbourhood(X_new[s], X, weights, size, None if own is None else own[s])
        for b in range(code.shape[1]):
            sides = [int(code[c, b]) for c in y]
            out[s, b] = dynamic(penalties[b], sides, margins[:, b], weights, counts, scores[s][b])
    return out


def errors_of_sizes(penalties, y, code, margins, weights, X, scores, sizes) -> list[float]:
    """The weighted share of wrong labels by out-of-sample scores, for every size."""
    rows = [
        s for s in range(len(y)) if weights[s] > 0 and not any(isnan(value) for value in scores[s])
    ]
    errors = []
    for size in sizes:
        reliabilities = dynamic_of_all(
            penalties, y, code, margins, weights, X, X[rows], scores[rows], size, own=rows
        )
        wrong = fsum(
            weights[s]
            for s, r in zip(rows, reliabilities, strict=True)
            if label(scores[s], r) != y[s]
        )
        errors.append(wrong / fsum(weights[s] for s in rows))
    return errors


# -- decoder ---------------------------------------------------------------------------


def soft_decision(f: float) -> float:
    """Eq. (13)."""
    if f == 0:
        return 0.0
    return (1.0 - exp(-abs(f))) * (1.0 if f > 0 else -1.0)


def class_scores(f: Sequence[float], reliabilities: Sequence[float]) -> list[float]:
    scores = [soft_decision(x) * r for x, r in zip(f, reliabilities, strict=True)]
    return [scores[0], -scores[0]] if len(scores) == 1 else scores


def label(f: Sequence[float], reliabilities: Sequence[float]) -> int:
    """Eq. (14). Ties go to the larger margin."""
    scores, margins = class_scores(f, reliabilities), [f[0], -f[0]] if len(f) == 1 else f
    best, winner = -inf, 0
    for c, score in enumerate(scores):
        if score > best or (score == best and margins[c] > margins[winner]):
            best, winner = score, c
    return winner
