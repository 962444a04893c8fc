"""All rules on all data sets: which to pick.

Not an experiment of the papers, but what they lead up to: every rule of every code reads the
scores of the same machines, on ten data sets, and the rules are ranked as Demšar (2006) ranks
classifiers.

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
