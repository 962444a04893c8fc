"""Slow oracles of decisions and changed class frequencies, in plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum, log


def decide(p, cost, reject=None) -> list[int]:
    """The first decision of least expected cost, in exact arithmetic; -1 for rejection."""
    answers = []
    for row in p:
        expected = [exact_sum(row, [c[j] for c in cost]) for j in range(len(cost[0]))]
        best = min(range(len(expected)), key=lambda j: (expected[j], j))
        if reject is not None:
            best = -1 if exact_sum(row, reject) < expected[best] else best
        answers.append(best)
    return answers


def exact_sum(p, c) -> Fraction:
    pairs = zip(p, c, strict=True)
    return sum((Fraction(float(p_i)) * Fraction(float(c_i)) for p_i, c_i in pairs), Fraction(0))


def adjust(row: Sequence[float], trained: Sequence[float], target: Sequence[float]) -> list[float]:
    """p_i target_i / trained_i, renormalised, in exact arithmetic; target if the sum is 0."""
    products = [
        Fraction(float(p)) * Fraction(float(new)) / Fraction(float(old)) if new > 0 else Fraction(0)
        for p, old, new in zip(row, trained, target, strict=True)
    ]
    total = sum(products)
    if total == 0:
        whole = fsum(target)
        return [new / whole for new in target]
    return [float(product / total) for product in products]


def em(p, trained, weights, n_iter: int) -> list[float]:
    """The iteration of Saerens et al. as printed."""
    k, total = len(trained), fsum(weights)
    prior = [t / fsum(trained) for t in trained]
    start = list(prior)
    for _ in range(n_iter):
        new = [0.0] * k
        for row, w in zip(p, weights, strict=True):
            products = [row[i] * prior[i] / start[i] for i in range(k)]
            for i in range(k):
                new[i] += w * products[i] / fsum(products)
        prior = [value / total for value in new]
    return prior


def log_likelihood(p, trained, weights, prior) -> float:
    whole = fsum(trained)
    return fsum(
        w * log(fsum(p_i * q / (t / whole) for p_i, q, t in zip(row, prior, trained, strict=True)))
        for row, w in zip(p, weights, strict=True)
    ) / fsum(weights)
