"""Slow oracles for binned and boosted naive Bayes: one sample and one attribute at a time.

Rows are lists of Python values; None is missing. Weights sum to one, as in the paper;
counts for smoothing are these weights times the total weight of the training set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Row = Sequence[Any]
Cell = Callable[[Any], int | None]  # the bin or category of a value


def numeric_cells(values: Sequence[Any], n_bins: int) -> tuple[int, Cell]:
    known = [float(v) for v in values if v is not None]
    if not known:
        return 0, lambda value: None
    low, high = min(known), max(known)
    if low == high:
        return 1, lambda value: None if value is None else 0
    inner = [(low * (n_bins - i) + high * i) / n_bins for i in range(1, n_bins)]

    def cell(value):
        return None if value is None else sum(value >= edge for edge in inner)

    return n_bins, cell


def category_cells(values: Sequence[Any]) -> tuple[int, Cell]:
    known: list[Any] = []
    for value in values:
        if value is not None and value not in known:
            known.append(value)
    return len(known), lambda value: known.index(value) if value in known else None


def table_cells(rows: Sequence[Row], categorical: Sequence[bool], n_bins: int):
    columns = [[row[j] for row in rows] for j in range(len(rows[0]))]
    return [
        category_cells(column) if c else numeric_cells(column, n_bins)
        for column, c in zip(columns, categorical, strict=True)
    ]


def naive_bayes(rows, y, weights, k, cells, total, smoothing) -> Callable[[Row], list[float]]:
    """Return the function from a row to its class probabilities; weights sum to one."""

    def share(c, j, v):
        _, cell_of = cells[j]
        in_cell = known = 0.0
        for row, label, weight in zip(rows, y, weights, strict=True):
            cell = cell_of(row[j])
            if label == c and cell is not None:
                known += total * weight
                in_cell += total * weight * (cell == v)
        return (in_cell + smoothing) / (known + smoothing * cells[j][0])

    table = [
        [[share(c, j, v) for v in range(cells[j][0])] for j in range(len(cells))] for c in range(k)
    ]
    prior = [sum(w for w, label in zip(weights, y, strict=True) if label == c) for c in range(k)]

    def probabilities(row):
        joint = []
        for c in range(k):
            product = prior[c]
            for j, (_, cell_of) in enumerate(cells):
                cell = cell_of(row[j])
                if cell is not None:
                    product *= table[c][j][cell]
            joint.append(product)
        return [value / sum(joint) for value in joint]

    return probabilities


def binned(rows, y, k, categorical, *, weights=None, n_bins=10, smoothing=1.0):
    weights = [1.0] * len(rows) if weights is None else list(weights)
    total = sum(weights)
    cells = table_cells(rows, categorical, n_bins)
    shares = [weight / total for weight in weights]
    return naive_bayes(rows, y, shares, k, cells, total, smoothing)


def boosted(rows, y, categorical, *, weights=None, n_rounds=10, n_bins=10, smoothing=1.0):
    """Return the betas, and the function from a row to the probability of class 1."""
    weights = [1.0] * len(rows) if weights is None else list(weights)
    total = sum(weights)
    cells = table_cells(rows, categorical, n_bins)
    w = [weight / total for weight in weights]
    betas: list[float] = []
    hypotheses: list[Callable[[Row], float]] = []
    for _ in range(n_rounds):
        estimate = naive_bayes(rows, y, w, 2, cells, total, smoothing)
        errors = [abs(label - estimate(row)[1]) for row, label in zip(rows, y, strict=True)]
        epsilon = sum(weight * error for weight, error in zip(w, errors, strict=True))
        if epsilon >= 0.5 and betas:
            break
        hypotheses.append(lambda row, estimate=estimate: estimate(row)[1])
        betas.append(epsilon / (1 - epsilon))
        if epsilon >= 0.5:
            return betas, hypotheses[0]
        w = [weight * betas[-1] ** (1 - error) for weight, error in zip(w, errors, strict=True)]
        w = [weight / sum(w) for weight in w]

    def probability(row):
        votes = [math.log(1 / beta) for beta in betas]
        rho = sum(v * h(row) for v, h in zip(votes, hypotheses, strict=True)) / sum(votes)
        return 1 / (1 + math.prod(beta ** (2 * rho - 1) for beta in betas))

    return betas, probability
