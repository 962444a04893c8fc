"""Boosting of binary naive Bayes (Elkan 1997)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from manyclass._lib.arrays import Floats
from manyclass.learners._estimates import Estimates, NaiveBayes


class Round(NamedTuple):
    """One round of boosting."""

    beta: float
    estimates: Estimates


def boost(learner: NaiveBayes, weights: Floats, n_rounds: int) -> list[Round]:
    """Boost binary naive Bayes (Elkan 1997) from positive weights, for at most ``n_rounds``.

    If the first beta is 1 or more, there is only this round: its probabilities are not boosted.
    """
    rounds: list[Round] = []
    total, log_weights = weights.sum(), np.log(weights)
    least = np.finfo(np.float64).tiny  # keeps log(beta) finite
    for _ in range(n_rounds):
        estimates = learner.fit(weights)
        evidence = np.diff(estimates.conditional, axis=0)[0]
        log_odds = np.diff(estimates.prior) + learner.one_hot @ evidence
        margins = np.where(learner.y == 1, log_odds, -log_odds)
        wrong, right = expit(-margins), expit(margins)  # |y - h| and 1 - |y - h|
        error = weights @ wrong / total
        beta = max(error, least) / max(weights @ right / total, least)
        if beta >= 1 and rounds:
            break
        rounds.append(Round(beta, estimates))
        if beta >= 1 or error == 0:
            break
        log_weights += right * np.log(beta)
        log_weights -= log_weights.max()
        weights = np.exp(log_weights)
        weights *= total / weights.sum()
    return rounds
