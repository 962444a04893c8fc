"""Slow oracle for the rule that the documentation adds."""

from __future__ import annotations

import math
from statistics import median


def couple_median_logit(r: list[list[float]], clip: float = 1e-7) -> list[float]:
    """Couple one matrix of pairwise probabilities, ``r[i][j]`` = P(i | i or j)."""
    k = len(r)
    theta = []
    for i in range(k):
        logits = [0.0]
        for j in range(k):
            if j != i:
                kept = min(max(r[i][j], clip), 1 - clip)
                logits.append(math.log(kept / (1 - kept)))
        theta.append(median(logits))
    powers = [math.exp(t - max(theta)) for t in theta]
    return [power / sum(powers) for power in powers]
