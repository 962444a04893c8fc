"""Slow oracles for the label decoders: one sample and one class at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Code = NDArray[np.int8]


# ---------------------------------------------------------------------------
# Decoders
# ---------------------------------------------------------------------------


def finite(f: Sequence[float]) -> list[float]:
    return [min(max(float(x), -1e300), 1e300) for x in f]


def max_wins(f: Sequence[float], code: Code) -> tuple[list[float], list[float]]:
    """Return the scores, and an upper bound of their rounding errors."""
    f = finite(f)
    scores, errors, part = [], [], 6 if 0 in f else 3
    for row in code:
        ys = [int(m) * x for m, x in zip(row, f, strict=True) if m != 0]
        votes = sum(1.0 if y > 0 else 0.5 if y == 0 else 0.0 for y in ys)
        total, error = math.fsum(ys), 1e-14 * math.fsum(abs(y) for y in ys)
        scores.append(votes + total / (abs(total) + 1) / part)
        least = max(abs(total) - error, 0.0) + 1
        errors.append(1e-14 + error / least / least)
    return scores, errors


def winner_takes_all(f: Sequence[float], code: Code) -> list[float]:
    f = finite(f)
    return [f[0], -f[0]] if code.shape[1] == 1 else f


def hamming(f: Sequence[float], code: Code) -> list[float]:
    scores = [0.0] * len(code)
    for c in range(len(code)):
        for b in range(code.shape[1]):
            side = int(f[b] > 0) - int(f[b] < 0)
            if code[c, b] == 0 or side == 0:
                scores[c] -= 0.5
            elif code[c, b] != side:
                scores[c] -= 1.0
    return scores


def logistic(y: float) -> float:
    return math.log1p(math.exp(-y)) if y > 0 else -y + math.log1p(math.exp(y))


LOSSES: dict[str, Callable[[float], float]] = {
    "linear": lambda y: -y,
    "logistic": logistic,
    "hinge": lambda y: max(0.0, 1.0 - y),
    "squared": lambda y: (1.0 - min(max(y, -1e7), 1e7)) ** 2,
    "binomial-deviance": lambda y: logistic(2.0 * y),
}


def row_margins(f: Sequence[float], row: Sequence[int], weighted: bool) -> list[float]:
    """Return y = M f for one class, without the zeros of the code if weighted."""
    f = finite(f)
    return [int(row[b]) * f[b] for b in range(len(f)) if row[b] != 0 or not weighted]


def loss_scores(
    f: Sequence[float], code: Code, loss: str, weighted: bool
) -> tuple[list[float], list[float]]:
    """Return the scores, and for each the sum of the sizes of its terms."""
    if loss == "exponential":
        scores = [-log_sum_exp(row_margins(f, row, weighted), weighted) for row in code]
        return scores, [1.0 + abs(score) for score in scores]
    scores, sizes = [], []
    for row in code:
        losses = [LOSSES[loss](y) for y in row_margins(f, row, weighted)]
        divisor = len(losses) if weighted else 1
        scores.append(-math.fsum(losses) / divisor)
        sizes.append(math.fsum(abs(x) for x in losses) / divisor)
    return scores, sizes


def log_sum_exp(ys: list[float], mean: bool) -> float:
    top = max(-y for y in ys)
    total = math.fsum(math.exp(-y - top) for y in ys)
    return top + math.log(total / len(ys) if mean else total)


# ---------------------------------------------------------------------------
# Ties
# ---------------------------------------------------------------------------

WORD = 2**64
GOLDEN = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    x = (x + GOLDEN) % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def class_keys(f: Sequence[float], code: Code, seed: int, rounds: int = 3) -> list[int]:
    """Return the key of each class: its entries of the code, and the other classes there."""
    f = finite(f)
    k, n_columns = code.shape
    keys = [0] * k
    for _ in range(rounds):
        new = [0] * k
        for c in range(k):
            for b in range(n_columns):
                if code[c, b] == 0:
                    continue
                y = int(code[c, b]) * f[b]
                seen = round(y / (1.0 + abs(y)) * 2**24)
                allies = sum(keys[d] for d in range(k) if code[d, b] == code[c, b])
                rivals = sum(keys[d] for d in range(k) if code[d, b] == -code[c, b])
                met = mix(allies % WORD) + mix((rivals + GOLDEN) % WORD)
                new[c] += mix((seen + mix(seed) + met) % WORD)
        keys = [key % WORD for key in new]
    return keys


def tie_winner(f: Sequence[float], code: Code, tied: list[int], seed: int) -> int:
    """Return the one of the tied classes that the seed prefers."""
    keys = [mix(key) for key in class_keys(f, code, seed)]
    largest = max(keys[c] for c in tied)
    last = [c for c in tied if keys[c] == largest]
    return max(last, key=lambda c: mix((keys[c] + (c + 1) * GOLDEN) % WORD) | 1)
