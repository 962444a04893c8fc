"""The main claims that hold are tested again, with fewer data and other seeds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from experiments import find
from experiments.duan2003 import tables
from experiments.duan2003.methods import FAMILIES
from experiments.duan2003.partitions import SOURCES
from experiments.findings.figures import rows_of
from experiments.hastie1998 import gaussians, mixtures
from experiments.hastie1998 import statements as hastie_statements
from experiments.hastie1998.claims import NEARLY_HALF
from experiments.hastie1998.tools import ratio_interval
from experiments.liu2005 import converged, statements
from experiments.pages import paired
from experiments.results import Measurement
from experiments.runner import Row, Verdict
from experiments.simulated import gaussian_classes
from experiments.wu2003 import figure1, spread, table1
from experiments.zadrozny2001 import divergence, measuring
from experiments.zadrozny2001.claims import CODES, DATA


def as_measurements(data: str, split: str, rows: Iterable[Row]) -> list[Measurement]:
    return [Measurement("afresh", data, split, *row) for row in rows]


def decided(experiment: str, beginning: str, rows: list[Measurement]) -> Verdict:
    """Return the verdict on the claim that begins so."""
    (found,) = find(experiment)
    (claim,) = [claim for claim in found.claims if claim.text.startswith(beginning)]
    return claim.decide(rows)


def assert_told_as_before(experiment: str, rows: list[Measurement]) -> None:
    """Check that no claim of an experiment has the opposite verdict by these rows."""
    (found,) = find(experiment)
    told = [
        (claim, claim.decide(rows), claim.decide(rows_of(experiment))) for claim in found.claims
    ]
    assert any(again.holds is not None for _, again, _ in told)
    for claim, again, before in told:
        assert again.holds in (before.holds, None), f"{claim.text} {again.evidence}"


def assert_hold_again(
    experiment: str, rows: list[Measurement], keys: Iterable[str], not_refuted: Iterable[str]
) -> None:
    """Check that claims of an experiment hold by these rows, and that others may hold."""
    (found,) = find(experiment)
    verdicts = {claim.key: claim.decide(rows) for claim in found.claims}
    for key in keys:
        assert verdicts[key].holds, f"{key}: {verdicts[key].evidence}"
    for key in not_refuted:
        assert verdicts[key].holds is not False, f"{key}: {verdicts[key].evidence}"


# -- Wu, Lin & Weng --------------------------------------------------------------------


@pytest.fixture(scope="module")
def simulated() -> list[Measurement]:
    return [
        row
        for number, case in enumerate(figure1.CASES)
        for k in (3, 10, 20)
        for row in as_measurements(
            figure1.data_name(case, k),
            "1",
            figure1.simulate(case, k, 2000, 77_000 + 100 * number + k),
        )
    ]


@pytest.mark.parametrize(
    "beginning",
    ["With balanced p", "HT suffers", "HT's loss is much worse", "δ1 and δ2 depend less on p"],
)
def test_wu_figure1(simulated, beginning):
    verdict = decided("wu2003-figure1", beginning, simulated)
    assert verdict.holds, verdict.evidence


def test_wu_table1(shared_data):
    for name in table1.DATA:
        shared_data(name)
    # Pairs of samples that the tracked results do not have, and nine of the 121 points.
    grid = [-1, 5, 11], [-5, -1, 3]
    rows = [
        row
        for name in table1.DATA
        for pair in range(101, 106)
        for row in as_measurements(
            name, table1.split_name(pair, 1), table1.measure(name, pair, 1, 300, 500, *grid)
        )
    ]
    held = ["few-classes", "less-competitive", "as-figure-1c"]
    assert_hold_again("wu2003-table1", rows, held, not_refuted=["letter-5"])


# -- Duan et al. -----------------------------------------------------------------------


def test_duan_tables_2_and_3(shared_data):
    for source in SOURCES.values():
        shared_data(source.name)
    # The paper's training sizes, and a grid of nine points about the chosen ones.
    grids = (3.0, 30.0, 300.0), (1.0,)
    rows = [
        row
        for data, source in SOURCES.items()
        for number in range(101, 104)
        for family in FAMILIES
        for row in as_measurements(
            data, str(number), tables.measure(data, number, family, source.n_train, None, *grids)
        )
    ]
    assert_hold_again("duan2003-tables", rows, ["table-2", "table-3"], not_refuted=["competitive"])


# -- Hastie & Tibshirani ---------------------------------------------------------------


def test_hastie_coupled_pairs_nearly_halve_the_error_of_linear_discriminants():
    rows = []
    for seed in range(500, 508):
        population = gaussian_classes(uniform="deviations", random_state=seed)
        samples = (
            population.sample(n, random_state=seed + i) for i, n in ((1000, 100), (2000, 200))
        )
        (X, y), (X_test, y_test) = samples
        rows += as_measurements("deviations", str(seed), gaussians._linear(X, y, X_test, y_test))
    methods = f"{gaussians.THRESHOLDED['LDA']}, coupled", "LDA"
    ratio = ratio_interval(*paired(rows, "deviations", "error", methods))
    assert ratio.high < NEARLY_HALF, ratio


def test_hastie_ten_gaussian_classes():
    rows = [
        row
        for seed in range(600, 612)
        for row in as_measurements(
            "deviations", str(seed), gaussians.measure_gaussians("deviations", seed, 100, 200)
        )
    ]
    assert_told_as_before("hastie1998-figure3", rows)


@pytest.mark.parametrize("figure", ["figure1", "figure2"])
def test_hastie_mixtures(figure):
    measured = mixtures.measure_further(figure, 50_000, 200, 200)
    rows = as_measurements(mixtures.FURTHER, "afresh", measured)
    assert_told_as_before(f"hastie1998-{figure}", rows)


def test_hastie_statements():
    rows = as_measurements("matrix (1)", "1", hastie_statements.measure_matrix())
    for k in (3, 4, 5, 7, 10):
        measured = hastie_statements.measure_tournaments(k, 1000, 50 + k)
        rows += as_measurements("0/1 inputs", str(k), measured)
    for seed in range(500, 510):
        rows += as_measurements("QDA", str(seed), hastie_statements.measure_qda(seed))
    for seed in range(5000, 5020):
        measured = hastie_statements.measure_boundaries(seed)
        rows += as_measurements("three mixtures", str(seed), measured)
    assert_told_as_before("hastie1998-statements", rows)


# -- Zadrozny --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_zadrozny_iterative_estimates_have_the_lower_squared_error(shared_data):
    rows = []
    for data in DATA:
        shared_data(data)
        for code in CODES:
            rows += as_measurements(
                data, "origin", measuring.measure_code(data, code, 31, limit=600)
            )
    for beginning in (
        "The iterative estimates have a lower MSE",
        "Theorem 1: with all pairs",
        "Section 4: the non-iterative estimates",
    ):
        verdict = decided("zadrozny2001-tables", beginning, rows)
        assert verdict.holds, verdict.evidence


# -- Liu & Zheng -----------------------------------------------------------------------


def test_liu_converged_machines(shared_data):
    shared_data("segment")
    rows = [
        Measurement("afresh", name, str(seed), *row)
        for seed in range(5000, 5020)
        for name in converged.NAMES.values()
        for row in converged.measure(name, seed, (0.1, 1.0, 10.0))
    ]
    assert_told_as_before("liu2005-converged", rows)


def test_liu_reliable_machines_are_accurate(shared_data):
    shared_data("segment")
    rows = [
        row
        for seed in range(5000, 5015)
        for row in as_measurements("segment", str(seed), statements.measure_objective(seed))
    ]
    assert decided("liu2005-statements", "A smaller objective function", rows).holds


def test_liu_figure_1():
    rows = [
        row
        for seed in range(5000, 5020)
        for row in as_measurements("Figure 1", str(seed), statements.measure_figure1(seed))
    ]
    assert decided("liu2005-statements", "A classifier whose linear boundary", rows).holds


# -- statements ------------------------------------------------------------------------


def test_zadrozny_the_iteration_does_not_minimise_the_distance():
    rows = [
        row
        for code in divergence.CODES
        for row in as_measurements(code, "k=6", divergence.measure_random(code, 6, 200, 500, 99))
    ]
    assert_told_as_before("zadrozny2001-divergence", rows)


def test_wu_the_spread_of_the_formulas():
    rows = [
        row
        for case in figure1.CASES
        for k in (3, 10)
        for row in as_measurements(
            figure1.data_name(case, k), "1", spread.simulate(case, k, 2000, 900 + k)
        )
    ]
    assert_told_as_before("wu2003-spread", rows)
