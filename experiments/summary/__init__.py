"""Comparison of all rules on all data sets: which one to pick.

This is not an experiment of a paper. On ten data sets, all rules of a code use the scores of
the same machines. The rules are ranked as in Demšar (2006).

References
----------
J. Demšar, "Statistical comparisons of classifiers over multiple data sets", Journal of Machine
Learning Research 7 (2006).
"""

from __future__ import annotations

from experiments.runner import Experiment
from experiments.summary import claims, page, tasks

TITLE = "All rules on all data sets"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "summary-rules",
        "Log-loss, Brier score, error and time of every rule",
        tasks.tasks,
        tasks.config,
        page.section,
        claims.CLAIMS,
    ),
)
