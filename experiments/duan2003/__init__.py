"""The experiments of Duan et al. (2003): Tables 2 to 4 and the p-values of section 5.

References
----------
K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade, A. N. Poo, "Multi-category classification by
soft-max combination of binary classifiers", MCS 2003.
"""

from __future__ import annotations

from experiments.duan2003 import all_together, claims, iterations, page, tables
from experiments.runner import Experiment

TITLE = "Duan et al. (2003): Soft-max combination of binary classifiers"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "duan2003-tables",
        "Tables 2, 3 and 4: twelve methods on five data sets",
        tables.tasks,
        tables.config,
        page.section,
        claims.CLAIMS,
    ),
    iterations.EXPERIMENT,
    all_together.EXPERIMENT,
)
