"""The experiments of Liu & Zheng (2005): pieces in small, pages and claims."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from experiments import ledger
from experiments.liu2005 import EXPERIMENTS
from experiments.liu2005 import choices as choices
from experiments.liu2005 import claims as claims
from experiments.liu2005 import converged as converged
from experiments.liu2005 import figure2 as figure2
from experiments.liu2005 import machines as machines
from experiments.liu2005 import page as page
from experiments.liu2005 import statements as statements
from experiments.liu2005 import table1 as table1
from experiments.results import Measurement
from manyclass import CoupledSVC

IRIS = machines.SETTINGS["iris, raw inputs"]
RULES = machines.RULES
FIRST, SECOND = (f"segment, degree {d}, {machines.UNCONVERGED}" for d in (1, 2))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def half():
    """Half of iris for training, half for testing."""
    whole = machines.load_split("iris")
    return machines.Split(whole.X[::2], whole.X[1::2], whole.y[::2], whole.y[1::2])


@pytest.fixture(scope="module")
def fitted(half):
    return machines.fit_machines(IRIS, 1.0, half)


# -- descriptions ----------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["quick", "paper"])
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_tasks_are_named_once_and_can_be_sent(experiment, scale):
    tasks = experiment.tasks(scale)
    assert len({(t.data, t.split, t.group) for t in tasks}) == len(tasks)
    assert pickle.loads(pickle.dumps(tasks)) == tasks
    json.dumps(experiment.config(scale))


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_scales_do_not_share_names(experiment):
    quick, paper = ({(t.data, t.split) for t in experiment.tasks(s)} for s in ("quick", "paper"))
    assert not quick & paper


def test_every_setting_has_published_numbers():
    for setting in machines.SETTINGS.values():
        errors = choices.published_errors(setting)
        assert 0 < errors["DRM"] <= errors["SRM"] <= errors["f(x)"] < 0.3
    with pytest.raises(ValueError, match="no row for"):
        choices.published_errors(
            machines.Setting("wine", "wine", ("wine", "linear"), {"kernel": "linear"})
        )


# -- data ------------------------------------------------------------------------------


def test_leaving_one_out(half):
    splits = list(half.leave_one_out())
    assert len(splits) == len(half.y)
    assert_array_equal(np.concatenate([s.X_test for s in splits]), half.X)
    assert all(len(s.X) == len(half.y) - 1 for s in splits)
    assert_array_equal(splits[3].X, np.delete(half.X, 3, axis=0))


def test_first_classes(half):
    two = half.first_classes(2)
    assert set(two.y) == set(two.y_test) == {0, 1}
    assert_array_equal(two.X, half.X[half.y < 2])


def test_resampled_splits_have_the_origin_s_sizes(shared_data, monkeypatch):
    data = shared_data("segment")
    monkeypatch.setattr(machines, "load", lambda name: data)
    origin, one, other = (machines.load_split("segment", seed) for seed in (None, 0, 1))
    assert np.bincount(origin.y).tolist() == np.bincount(one.y).tolist() == [30] * 7
    assert len(one.y_test) == 2100
    assert (one.X != other.X).any()
    assert_allclose(np.sort(np.concatenate([one.X, one.X_test]), axis=0), np.sort(data.X, axis=0))


def test_training_data_alone_scale(half):
    X, X_test = machines.scaled(True, half.X, half.X_test)
    assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    assert_allclose(X_test, (half.X_test - half.X.mean(axis=0)) / half.X.std(axis=0))
    assert_array_equal(machines.scaled(False, half.X, half.X_test)[1], half.X_test)


# -- one fit, all answers: what CoupledSVC says when it is fitted for each ------------


@pytest.mark.parametrize(
    ("rule", "combiner"), [("f(x)", "winner-takes-all"), ("SRM", "srm"), ("DRM", "drm")]
)
def test_decoders_say_what_the_estimator_says(fitted, half, rule, combiner):
    model = CoupledSVC(kernel="linear", code="one-vs-rest", combiner=combiner)
    labels = model.fit(half.X, half.y).predict(half.X_test)
    bank, X_test = fitted
    assert_array_equal(bank.decoded(X_test)[rule].argmax(axis=1), labels)


@pytest.mark.parametrize("rule", machines.COUPLERS)
@pytest.mark.parametrize("tempered", [False, True])
def test_coupling_says_what_the_estimator_says(fitted, half, rule, tempered):
    scaling = "temperature" if tempered else None
    model = CoupledSVC(kernel="linear", code="one-vs-rest", combiner=rule, scaling=scaling)
    bank, X_test = fitted
    name = f"{rule}, temperature" if tempered else rule
    p = model.fit(half.X, half.y).predict_proba(half.X_test)
    assert_allclose(bank.coupled(X_test)[name], p, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_stopped_machines_are_scored_by_folds(half):
    stopped = machines.Machines({"kernel": "linear", "max_iter": 5}, 100.0, half.X, half.y)
    assert not stopped.bank.converged
    assert stopped.left_out.shape == (len(half.y), 3)
    assert np.isfinite(stopped.left_out).all()
    assert 0 <= stopped.cross_validated_error() <= 1


def test_figure_2_has_all_numbers_of_classes():
    rows = [row for row in ledger.stored_rows("liu2005") if row[0] == "liu2005-figure2"]
    found = figure2.curves(rows)
    for setting, C in figure2.CONVERGED.values():
        assert figure2.counts_of(found, setting, C) == list(range(2, 8))
    letter = next(s for s in figure2.SETTINGS.values() if s.problem == "letter")
    assert figure2.counts_of(found, letter, figure2.LETTER_C) == list(range(2, 27))
    iris = next(s for s in figure2.SETTINGS.values() if s.problem == "iris")
    assert figure2.counts_of(found, iris, figure2.chosen_c(found, iris)) == [2, 3]


def test_sizes_are_tried_one_by_one(fitted):
    bank, X_test = fitted
    answers = bank.by_sizes(X_test)
    assert list(answers) == [f"DRM m={size}" for size in machines.SIZES]
    chosen = bank.dynamic.n_neighbors_
    same = bank.by_sizes(X_test, [chosen])[f"DRM m={chosen}"]
    assert_allclose(same, bank.decoded(X_test)["DRM"])


# -- measuring -------------------------------------------------------------------------


def test_errors_and_who_is_set_right():
    y = np.array([0, 1, 0, 1])
    labels = {"f(x)": [1, 1, 1, 1], "SRM": [0, 1, 0, 0], "DRM": [0, 1, 0, 1]}
    answers = {rule: np.eye(2)[found] for rule, found in labels.items()}
    rows = {(r.method, r.metric): r.value for r in machines.error_rows(answers, y, 10.0)}
    assert [rows[f"{rule}, C=10", "error"] for rule in RULES] == [0.5, 0.25, 0.0]
    assert rows["SRM, C=10", "mends f(x)"] == 2 and rows["SRM, C=10", "spoils f(x)"] == 1
    assert rows["DRM, C=10", "mends SRM"] == 1 and rows["DRM, C=10", "spoils SRM"] == 0


def test_sign_test():
    # 1/2^5 is below 5 %, 1/2^4 is not.
    assert machines.better_by_sign_test(5, 0) is True
    assert machines.better_by_sign_test(0, 5) is False
    assert machines.better_by_sign_test(4, 0) is None
    assert machines.better_by_sign_test(0, 0) is None


def test_iris_is_measured_the_same_way_twice():
    rows = list(table1.measure_left_out(IRIS.name, 1.0, every=25))
    assert rows == list(table1.measure_left_out(IRIS.name, 1.0, every=25))
    assert all(np.isfinite(row.value) for row in rows)
    assert {f"{rule}, C=1" for rule in RULES} <= {row.method for row in rows}


def test_defaults_are_measured():
    rows = {row.metric: row.value for row in table1.measure_default("iris", every=25)}
    assert set(rows) == {"error", "log-loss", "brier", "mse"}
    assert rows["brier"] == pytest.approx(3 * rows["mse"])


def test_classes_are_added_the_same_way_twice():
    arguments = IRIS.name, 2, (1.0,), 25
    rows = list(figure2.measure_classes(*arguments))
    assert rows == list(figure2.measure_classes(*arguments))
    assert {row.value for row in rows if row.metric == "error"} == {0.0}


@pytest.mark.filterwarnings("ignore:Solver terminated early")
def test_segment_is_measured(shared_data, monkeypatch):
    data = shared_data("segment")
    monkeypatch.setattr(machines, "load", lambda name: data)
    name = "segment, degree 1, standardised"
    rows = {(r.method, r.metric): r.value for r in table1.measure_split(name, (1.0,))}
    assert 0.05 < rows["f(x), C=1", "error"] < 0.12
    assert rows["kl, C=1", "log-loss"] > rows["kl, temperature, C=1", "log-loss"]
    for row in table1.measure_resampled(name, (1.0,), 0):
        assert np.isfinite(row.value)
    stopped = list(table1.measure_stopped(FIRST, 1000))
    assert stopped[-1].metric == "converged" and stopped[-1].value == 0


# -- pages and claims ------------------------------------------------------------------


def rule_rows(data, split, errors, counts, C=1.0, experiment="liu2005-table1"):
    """Rows of three errors, and of mended and spoiled (SRM of f(x), DRM of f(x), DRM of SRM)."""
    pairs = ("SRM", "f(x)"), ("DRM", "f(x)"), ("DRM", "SRM")
    rows = [
        Measurement(experiment, data, split, f"{rule}, C={C:g}", "error", error)
        for rule, error in zip(RULES, errors, strict=True)
    ]
    for (better, worse), numbers in zip(pairs, counts, strict=True):
        for verb, number in zip(("mends", "spoils"), numbers, strict=True):
            method = f"{better}, C={C:g}"
            rows.append(Measurement(experiment, data, split, method, f"{verb} {worse}", number))
    return rows


def table_rows(name, errors, counts=((9, 1), (12, 1), (9, 1)), C=1.0):
    """Rows of a setting as the runner leaves them."""
    rows = rule_rows(name, "origin", errors, counts, C)
    place = "liu2005-table1", name, "origin"
    rows.append(Measurement(*place, f"DRM, C={C:g}", "neighbours", 5.0))
    rows.append(Measurement(*place, f"f(x), C={C:g}", "left-out error", errors[0]))
    rows += [Measurement(*place, f"DRM m={m}, C={C:g}", "error", m / 1000) for m in (1, 9)]
    for coupler in machines.COUPLERS:
        for rule in (coupler, f"{coupler}, temperature"):
            for metric in ("error", "log-loss", "brier", "mse"):
                rows.append(Measurement(*place, f"{rule}, C={C:g}", metric, 0.25))
    return rows


def test_the_c_nearest_to_the_paper_is_taken():
    rows = table_rows(FIRST, (0.2, 0.1, 0.1), C=0.1) + table_rows(FIRST, (0.09, 0.3, 0.3), C=10.0)
    values, setting = choices.origin_values(rows), machines.SETTINGS[FIRST]
    assert choices.measured_grid(values, setting) == [0.1, 10.0]
    assert choices.nearest_to_published(values, setting) == 10.0
    assert choices.cross_validated(values, setting) == 10.0
    assert choices.most_alike(values, "segment, degree 1") == (setting, 10.0)
    assert choices.most_alike(values, "letter") is None


def test_section_of_the_table(tmp_path):
    rows = table_rows(FIRST, (0.0924, 0.0857, 0.0776)) + table_rows(SECOND, (0.3, 0.1, 0.05))
    rows += rule_rows(FIRST, "resampled-0", (0.1, 0.09, 0.08), ((1, 0),) * 3)
    place = "liu2005-table1", SECOND, "origin"
    for n, f, srm in ((10_000, 0.3, 0.1), (10_000_000, 0.2, 0.15)):
        for rule, error in (("f(x)", f), ("SRM", srm), ("DRM", srm)):
            rows.append(Measurement(*place, f"{rule}, {n} iterations", "error", error))
        rows.append(Measurement(*place, f"f(x), {n} iterations", "converged", 0.0))
    text = page.section(rows, tmp_path)
    assert "| 1 | 5 | 9.24 (9.24) | 8.57 (8.57) | 7.76 (7.76) | +7.3 | +16.0 | +0.0 |" in text
    assert "between 0.10 % (m=1) and 0.90 %" in text
    assert "gains at most 20.00 points, after 10000 iterations, and 5.00 after 10000000" in text
    assert "| 10.00 ± nan | 9.00 ± nan | 8.00 ± nan | 1 | 1 |" in text


def decided(name, counts):
    rows = table_rows(name, (0.04, 0.03, 0.02), counts, C=10.0)
    claim = next(c for c in claims.CLAIMS if c.key == f"lowers-{name.split(',')[0]}")
    return claim.decide(rows)


def test_order_is_decided_by_the_samples_that_differ():
    letter = "letter, raw inputs"
    assert decided(letter, ((30, 2), (40, 2), (12, 1))).holds is True
    assert decided(letter, ((30, 2), (40, 2), (3, 2))).holds is None
    assert decided(letter, ((30, 2), (40, 2), (1, 12))).holds is False
    assert decided(letter, ((0, 0), (40, 2), (40, 2))).holds is False  # SRM changes nothing
    iris = decided("iris, raw inputs", ((2, 0), (2, 0), (1, 0)))
    assert iris.holds is None and "about 750 samples would be needed" in iris.power
    assert claims.CLAIMS[1].decide([]).holds is None


def test_equal_results_of_several_c_are_one():
    rows = [
        row
        for C in (10.0, 20.0, 30.0)
        for row in table_rows("letter, raw inputs", (0.04,) * 3, C=C)
    ]
    assert "1 of 1 different results over C" in claims.CLAIMS[1].decide(rows).evidence


def split_rows(first, second, n=60):
    rows, rng = [], np.random.default_rng(0)
    for problem, means in zip(converged.NAMES, (first, second), strict=True):
        for i in range(n):
            for rule, mean in zip(RULES, means, strict=True):
                value = mean + rng.normal(0, 0.001)
                place = "liu2005-converged", converged.NAMES[problem], str(1000 + i)
                rows.append(Measurement(*place, rule, "error", value))
    return rows


def test_claims_of_converged_machines(tmp_path):
    lowers, _, degrades = (claim.decide for claim in converged.CLAIMS)
    good = split_rows((0.1, 0.09, 0.08), (0.3, 0.12, 0.1))
    assert lowers(good).holds is True and degrades(good).holds is True
    assert lowers(split_rows((0.1, 0.11, 0.08), (0.1,) * 3)).holds is False
    assert lowers(split_rows((0.1,) * 3, (0.1,) * 3, n=5)).holds is None
    assert degrades(split_rows((0.1, 0.09, 0.08), (0.101, 0.09, 0.08))).holds is False
    assert degrades(split_rows((0.1, 0.1, 0.1), (0.3, 0.29, 0.28))).holds is False
    assert "/ 0" in converged.section(good, tmp_path)


def test_statements_are_measured(tmp_path):
    rows = [
        Measurement("liu2005-statements", "Figure 1", str(seed), *row)
        for seed in range(2)
        for row in statements.measure_figure1(seed)
    ]
    assert statements.CLAIMS[0].decide(rows).holds is True
    cost = [
        Measurement("x", "letter", str(n), "SRM", "kernel evaluations", n**power)
        for n, power in ((100, 2.0), (1000, 2.0))
    ]
    assert statements.CLAIMS[1].decide(cost).holds is False


def test_reliability_is_compared_with_accuracy(half, monkeypatch):
    monkeypatch.setattr(statements, "load_split", lambda name, resample: half)
    (row,) = statements.measure_objective(0)
    assert -1 <= row.value <= 1
    claim = next(claim for claim in statements.CLAIMS if claim.key == "objective")
    rows = [Measurement("x", "segment", str(n), *row[:2], v) for n, v in enumerate((0.8, 0.9, 0.7))]
    assert claim.decide(rows).holds is True
    assert claim.decide([row._replace(value=-row.value) for row in rows]).holds is False
    assert claim.decide([*rows, rows[0]._replace(split="3", value=-0.9)]).holds is None
    assert claim.decide([]).holds is None


def curve_rows(counts_of_last=((9, 1), (15, 1), (9, 1)), before=((3, 1), (4, 1), (2, 2))):
    setting, C = figure2.CONVERGED["segment, degree 1"]
    common = {"C": C, "experiment": "liu2005-figure2"}
    rows = rule_rows(setting.name, "3 classes", (0.05, 0.04, 0.04), before, **common)
    last = (0.0924, 0.08, 0.07)
    return rows + rule_rows(setting.name, "7 classes", last, counts_of_last, **common)


def test_section_of_the_figure(tmp_path):
    pytest.importorskip("matplotlib")
    text = figure2.section(curve_rows(), tmp_path)
    assert "| error % | 5.00 / 4.00 / 4.00 | 9.24 / 8.00 / 7.00 |" in text
    assert (tmp_path / "figure2.png").stat().st_size > 10_000


def test_always_lower():
    (claim,) = figure2.CLAIMS
    assert claim.decide(curve_rows()).holds is True
    assert claim.decide(curve_rows(before=((3, 1), (4, 1), (2, 3)))).holds is False
    assert claim.decide(curve_rows(counts_of_last=((0, 0),) * 3)).holds is None
    assert claim.decide([]).holds is None


def test_decoding_and_kernels_are_measured(shared_data, monkeypatch):
    letter = shared_data("letter")
    y = np.searchsorted(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), letter.y)
    few = machines.Split(letter.X[:200], letter.X[200:300], y[:200], y[200:300])
    monkeypatch.setattr(statements, "load_split", lambda name: few)
    place = "liu2005-statements", "letter, decoding", "200"
    rows = [Measurement(*place, *row) for row in statements.measure_decoding(200)]
    assert {row.method for row in rows} == {"f(x)", "SRM", "DRM"}
    assert statements._decoding(rows).holds is not None
    assert statements._drm_dearer(rows).holds is not None
    errors = [
        Measurement("liu2005-statements", "letter, kernels", "200", *row)
        for kernel in statements.KERNELS
        for row in statements.measure_kernel(kernel, 200)
    ]
    assert statements._best_kernel(errors[:-3]).holds is None
    assert statements._best_kernel(errors).holds is not None
