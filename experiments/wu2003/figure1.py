"""Figure 1 of Wu et al. (2003): rules on simulated pairwise probabilities, section 6.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.runner import Row, Task
from experiments.simulated import pairwise_probabilities
from manyclass.combiners.coupling import couple

CASES = ("balanced", "unbalanced", "highly unbalanced")
SIZES = (3, 5, 8, 10, 12, 15, 20)
RULES = ("ht", "wlw1", "wlw2", "vote", "pkpd", "logit")
NOISE, TRUNCATION = 0.1, 1e-5  # of r, eq. (17) and below eq. (18)
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"sizes": [3, 8, 20], "replicates": 100},
    "paper": {"sizes": list(SIZES), "replicates": 1000},
}


def class_probabilities(case: str, k: int) -> NDArray[np.float64]:
    """Return the true p of section 6.1; the first class is the most probable.

    Parameters
    ----------
    case : {"balanced", "unbalanced", "highly unbalanced"}
    k : int
        Number of classes, at least 3.
    """
    if case == "balanced":
        return _one_ahead(1.0, k)
    if case == "unbalanced" or k == 3:  # both cases are one for k = 3
        likely = (k + 1) // 2
        return np.concatenate([_one_ahead(0.95, likely), np.full(k - likely, 0.05 / (k - likely))])
    return np.concatenate([[0.475, 0.2375, 0.2375], np.full(k - 3, 0.05 / (k - 3))])


def _one_ahead(total: float, k: int) -> NDArray[np.float64]:
    """Divide the total: the first of k classes gets one and a half times the mean."""
    first = 1.5 * total / k
    return np.array([first, *[(total - first) / (k - 1)] * (k - 1)])


def simulate(case: str, k: int, n_replicates: int, seed: int) -> Iterator[Row]:
    """Measure all rules on the same replicates, and count where one is right and another wrong."""
    p = class_probabilities(case, k)
    r = pairwise_probabilities(p, n_replicates, noise=NOISE, eps=TRUNCATION, random_state=seed)
    coupled = {rule: couple(r, rule=rule) for rule in RULES}
    right = {rule: q.argmax(axis=1) == 0 for rule, q in coupled.items()}
    for rule in RULES:
        yield Row(rule, "error", float(1.0 - right[rule].mean()))
        yield Row(rule, "mse", float(((coupled[rule] - p) ** 2).mean()))
        for other in RULES:
            if other != rule:
                yield Row(rule, wins_over(other), float((right[rule] & ~right[other]).mean()))
    yield Row("all", "replicates", float(n_replicates))
    pairs = r[:, *np.triu_indices(k, 1)]
    truncated = (pairs <= TRUNCATION) | (pairs >= 1.0 - TRUNCATION)
    yield Row("all", "truncated", float(truncated.mean()))
    tied = _tied_votes(r)
    yield Row("vote", "tied", float(tied.mean()))
    yield Row("vote", "tied and wrong", float((tied & ~right["vote"]).mean()))


def _tied_votes(r: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the replicates in which several classes share the highest number of votes."""
    votes = (r > r.transpose(0, 2, 1)).sum(axis=2)
    return (votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1


def wins_over(other: str) -> str:
    """Return the metric that counts where a rule is right and the other is wrong."""
    return f"right where {other} errs"


def tasks(scale: str) -> Sequence[Task]:
    """Return one task for every case and k."""
    sizes, replicates = SCALES[scale]["sizes"], SCALES[scale]["replicates"]
    return [
        Task(data_name(case, k), "1", "all", simulate, (case, k, replicates, _seed(case, k)))
        for case in CASES
        for k in sizes
    ]


def data_name(case: str, k: int) -> str:
    """Return the name of a case with k classes in the results."""
    return f"{case} k={k}"


def _seed(case: str, k: int) -> int:
    return 1000 * CASES.index(case) + k


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SCALES[scale],
        "cases": list(CASES),
        "rules": list(RULES),
        "noise": NOISE,
        "truncation": TRUNCATION,
        "seed": "1000 * number of the case, from 0, + k",
    }
