"""The experiments of Wu, Lin & Weng (2003): simulated and real data, section 6.

References
----------
T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class classification by
pairwise coupling", NIPS 2003.
"""

from __future__ import annotations

from experiments.runner import Experiment
from experiments.wu2003 import (
    figure1,
    figure1_claims,
    figure1_page,
    spread,
    table1,
    table1_claims,
    table1_page,
)

TITLE = "Wu, Lin & Weng (2003): Probability estimates by pairwise coupling"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        "wu2003-figure1",
        "Figure 1: simulated pairwise probabilities",
        figure1.tasks,
        figure1.config,
        figure1_page.section,
        figure1_claims.CLAIMS,
    ),
    spread.EXPERIMENT,
    Experiment(
        "wu2003-table1",
        "Table 1: test errors on five data sets",
        table1.tasks,
        table1.config,
        table1_page.section,
        table1_claims.CLAIMS,
    ),
)
