"""The experiments of Liu & Zheng (2005), one-against-all machines with reliability measures."""

from __future__ import annotations

from experiments.liu2005 import claims, converged, figure2, page, statements, table1
from experiments.runner import Experiment

TITLE = "Liu & Zheng (2005): One-against-all SVM classification using reliability measures"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="liu2005-table1",
        title="Table I: errors of f(x), SRM and DRM",
        tasks=table1.tasks,
        config=table1.config,
        section=page.section,
        claims=claims.CLAIMS,
    ),
    Experiment(
        name="liu2005-figure2",
        title="Figure 2: errors as classes are added",
        tasks=figure2.tasks,
        config=figure2.config,
        section=figure2.section,
        claims=figure2.CLAIMS,
    ),
    converged.EXPERIMENT,
    statements.EXPERIMENT,
)
