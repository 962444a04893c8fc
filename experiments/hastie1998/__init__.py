"""The experiments of Hastie & Tibshirani (1998), "Classification by pairwise coupling"."""

from __future__ import annotations

from experiments.hastie1998.claims import CLAIMS
from experiments.hastie1998.gaussians import config, tasks
from experiments.hastie1998.gaussians_page import section
from experiments.hastie1998.mixtures import mixture_experiment
from experiments.hastie1998.statements import EXPERIMENT as STATEMENTS
from experiments.runner import Experiment

TITLE = "Hastie & Tibshirani (1998): Classification by pairwise coupling"

EXPERIMENTS: tuple[Experiment, ...] = (
    mixture_experiment("figure1"),
    mixture_experiment("figure2"),
    Experiment(
        name="hastie1998-figure3",
        title="Figure 3: ten Gaussian classes with unequal covariances",
        tasks=tasks,
        config=config,
        section=section,
        claims=CLAIMS,
    ),
    STATEMENTS,
)
