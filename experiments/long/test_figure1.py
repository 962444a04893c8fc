"""Figure 1 of Wu et al. (2003): the tracked results agree with an independent simulation."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import norm

from experiments.findings.figures import rows_of
from experiments.long.plain_figure1 import class_probabilities, simulate
from experiments.wu2003 import figure1

CELLS = [(case, k) for case in figure1.CASES for k in figure1.SIZES]
REPLICATES = 4000
LEVEL = 0.01  # of a false alarm in all of the cells, rules and metrics together
N_COMPARISONS = 2 * len(CELLS) * len(figure1.RULES)
BOUND = norm.isf(LEVEL / 2 / N_COMPARISONS)  # about 4.1 standard errors


@cache
def tracked() -> dict[tuple[str, str, str], float]:
    return {(row.data, row.method, row.metric): row.value for row in rows_of("wu2003-figure1")}


@cache
def simulated(case: str, k: int):
    return simulate(case, k, REPLICATES, seed=10_000 * figure1.CASES.index(case) + k + 7)


@pytest.mark.parametrize(("case", "k"), CELLS)
def test_the_class_probabilities_are_those_of_the_paper(case, k):
    np.testing.assert_allclose(figure1.class_probabilities(case, k), class_probabilities(case, k))


@pytest.mark.parametrize("rule", figure1.RULES)
@pytest.mark.parametrize(("case", "k"), CELLS)
def test_accuracy_and_squared_error_agree_within_chance(case, k, rule):
    data = figure1.data_name(case, k)
    n = tracked()[data, "all", "replicates"]
    right, squares = simulated(case, k)[rule]
    pooled = (n * (1 - tracked()[data, rule, "error"]) + right.sum()) / (n + REPLICATES)
    spread = np.sqrt(pooled * (1 - pooled)), squares.std(ddof=1)
    ours = 1 - tracked()[data, rule, "error"], tracked()[data, rule, "mse"]
    for value, mean, deviation in zip(ours, (right.mean(), squares.mean()), spread, strict=True):
        error = deviation * np.sqrt(1 / n + 1 / REPLICATES)
        # Tracked numbers have ten digits; all right in both leaves no error at all.
        assert abs(value - mean) <= BOUND * error + 1e-9
