"""Zadrozny (2001): what is measured, how claims are decided, what the page says."""

from __future__ import annotations

import json
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.metrics import log_loss

from experiments import zadrozny2001
from experiments.pages import write_page
from experiments.possible import squared_error_bounds
from experiments.results import SECONDS, Measurement, Results
from experiments.zadrozny2001 import claims as claims
from experiments.zadrozny2001 import divergence, reliability
from experiments.zadrozny2001 import measuring as measuring
from experiments.zadrozny2001 import pages as page
from experiments.zadrozny2001.published import published_lines
from manyclass import CoupledClassifier, codes
from manyclass.combiners.coupling.general import Zadrozny
from manyclass.learners import BoostedNaiveBayes
from manyclass.metrics import zadrozny_mse

DIVERGENCE, TABLES, FIGURE, RELIABILITY = zadrozny2001.EXPERIMENTS
CODES = claims.CODES
DATA = "wine"  # comes with scikit-learn


@pytest.fixture(scope="module")
def measured() -> dict[str, list]:
    """The rows of every code on a small data set."""
    return {code: list(measuring.measure_code(DATA, code, seed=1)) for code in CODES}


def as_dict(rows) -> dict[tuple[str, str], float]:
    rows = list(rows)
    found = {(row.method, row.metric): row.value for row in rows}
    assert len(found) == len(rows), "a method and metric was measured twice"
    return found


# -- measuring -------------------------------------------------------------------------


def test_the_same_task_measures_the_same():
    first, second = (list(measuring.measure_code("iris", CODES[2], 3)) for _ in range(2))
    assert first == second
    first, second = (list(measuring.measure_iterations("iris", CODES[2], 3, 4)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    "method", ["kl", "kl/temperature", "kl/sigmoid/temperature", "least-squares/isotonic"]
)
def test_scores_that_are_shared_give_what_the_classifier_gives(measured, code, method):
    problem = measuring.read(DATA)
    rule, *options = method.split("/")
    calibration = next((name for name in options if name != "temperature"), None)
    model = CoupledClassifier(
        BoostedNaiveBayes(),
        code=codes.by_name(code, problem.k, random_state=1),
        combiner=rule,
        calibration=calibration,
        cv=measuring.splitter(),
        scaling="temperature" if "temperature" in options else None,
    ).fit(problem.X_train, problem.y_train)
    p = model.predict_proba(problem.X_test)
    found = as_dict(measured[code])
    y, classes = problem.y_test, np.arange(problem.k)
    assert_allclose(
        found[f"{code}/{method}", "log-loss"], log_loss(y, p, labels=classes), rtol=1e-6
    )
    assert_allclose(
        found[f"{code}/{method}", "mse"], zadrozny_mse(y, p, classes=classes), rtol=1e-6
    )
    assert found[f"{code}/{method}", "error"] == np.mean(p.argmax(axis=1) != y)


@pytest.mark.parametrize("code", CODES)
def test_comparisons_are_differences_of_the_means(measured, code):
    found = as_dict(measured[code])
    compared = [
        pair for pair in measuring.comparisons(code) if all(p.startswith(code) for p in pair)
    ]
    assert len(compared) > 10
    for first, second in compared:
        for metric in ("error", "mse", "log-loss"):
            if (second, metric) in found:
                expected = found[first, metric] - found[second, metric]
                assert_allclose(found[f"{first} - {second}", metric], expected, atol=1e-12)
                assert found[f"{first} - {second}", f"{metric} se"] >= 0


def test_every_claim_finds_what_it_compares(measured):
    of_codes = {row.method for rows in measured.values() for row in rows}
    for claim in claims.TABLE_CLAIMS:
        for _, pair, _ in getattr(claim.decide, "keywords", {}).get("pairs", ()):
            assert pair in of_codes


def test_losses_of_rows():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(4), size=30), rng.integers(0, 4, size=30)
    judged = measuring.judge(p, y)
    assert_allclose(judged["mse"].mean(), zadrozny_mse(y, p, classes=np.arange(4)))
    assert_allclose(judged["log-loss"].mean(), log_loss(y, p, labels=np.arange(4)))
    assert set(measuring.judge(p, y, probabilities=False)) == {"error"}
    certain = measuring.judge(np.eye(4)[[0, 0]], np.array([0, 1]))
    assert np.isfinite(certain["log-loss"]).all()


def test_labels_off_counts_as_a_plain_loop_does():
    rng = np.random.default_rng(1)
    code = codes.by_name("sparse-random", 4, random_state=0)
    f, labels = rng.normal(size=(50, code.shape[1])) * 2, rng.integers(0, 4, size=50)
    off = 0
    for row, label in zip(expit(f), labels, strict=True):
        losses = [sum(-m * (r - 0.5) for m, r in zip(c, row, strict=True)) for c in code]
        off += losses[label] > min(losses) + measuring.TIE
    margins = measuring.Margins(code, np.ones(code.shape[1]), f, f[:0])
    assert measuring.labels_off(labels, margins) == off
    tied = measuring.Margins(code, margins.weights, np.zeros_like(f), f[:0])
    assert measuring.labels_off(labels, tied) == 0


def test_baselines_have_all_metrics_and_sizes():
    found = as_dict(measuring.measure_baselines("iris", limit=60))
    assert (found["data", "classes"], found["data", "test rows"]) == (3, 60)
    methods = {method for method, _ in found} - {"data"}
    assert {"naive-bayes", "naive-bayes, 5 bins", "naive-bayes, Gaussian", "CoupledSVC"} <= methods
    assert all((method, metric) in found for method, metric in product(methods, page.METRICS))


def test_few_rows_keep_labels_and_samples_together():
    whole, part = measuring.read("iris"), measuring.read("iris", limit=20)
    assert part.X_train.shape == (20, 4)
    labels = {tuple(x): label for x, label in zip(whole.X_test, whole.y_test, strict=True)}
    assert all(labels[tuple(x)] == y for x, y in zip(part.X_test, part.y_test, strict=True))


def test_missing_values_of_soybean_are_a_value_or_ignored(shared_data):
    shared_data("soybean")
    value, ignored = (measuring.read(name) for name in ("soybean", "soybean-ignored"))
    assert not np.isnan(value.X_train).any() and np.isnan(ignored.X_train).any()
    assert value.categorical and ignored.categorical and value.k == 19
    assert_array_equal(value.X_train == -1, np.isnan(ignored.X_train))


@settings(deadline=None, max_examples=50)
@given(st.integers(3, 8), st.integers(1, 40), st.integers(0, 10_000))
def test_one_vs_rest_iterates_keep_the_order_of_the_estimates(k, iterations, seed):
    """The page says so, and that the paper's different error rates cannot be."""
    r = np.random.default_rng(seed).uniform(0.01, 0.99, size=(5, k))
    rule = Zadrozny(tol=measuring.NO_LIMIT, max_iter=iterations)
    p = rule.combine(r, codes.one_vs_rest(k)).values
    assert_array_equal(p.argmax(axis=1), r.argmax(axis=1))


def test_iterations_start_from_the_non_iterative_estimate_and_end_at_the_last():
    found = as_dict(measuring.measure_iterations("iris", "one-vs-one", 0, last=100))
    iterations = sorted(
        int(m.split("/")[1]) for m, metric in found if m[-1].isdigit() and metric == "mse"
    )
    assert iterations == [*range(51), 70, 100]
    table = as_dict(measuring.measure_code("iris", "one-vs-one", 0))
    assert_allclose(found["one-vs-one/0", "mse"], table["one-vs-one/noniterative", "mse"])


# -- claims ----------------------------------------------------------------------------


def rows_of(values: dict[tuple[str, str, str], float | list[float]]) -> list[Measurement]:
    """Return rows of (data, method, metric); a list is one value for each split."""
    return [
        Measurement("e", data, f"seed {split}", method, metric, value)
        for (data, method, metric), given in values.items()
        for split, value in enumerate(given if isinstance(given, list) else [given])
    ]


def difference_rows(means: dict[str, float], se: float = 0.01) -> list[Measurement]:
    return rows_of(
        {(data, "a - b", "error"): mean for data, mean in means.items()}
        | {(data, "a - b", "error se"): se for data in means}
    )


PAIRS = [("satimage", "a - b", "error"), ("soybean", "a - b", "error")]


def test_differences_add_the_variance_of_the_draws():
    rows = rows_of(
        {("soybean", "a - b", "error"): [0.1, 0.3], ("soybean", "a - b", "error se"): [0.03, 0.05]}
    )
    (found,) = claims.differences(rows, PAIRS)
    assert_allclose(found.mean, 0.2)
    assert_allclose(found.se, np.sqrt(0.04**2 + 0.02 / 2))


@pytest.mark.parametrize(
    ("means", "holds"),
    [
        ({"satimage": -0.1, "soybean": -0.1}, True),
        ({"satimage": -0.1, "soybean": -0.01}, None),
        ({"satimage": -0.1, "soybean": 0.1}, False),
    ],
)
def test_signs_must_be_beyond_chance(means, holds):
    assert claims.decide_signs(difference_rows(means), PAIRS, -1).holds is holds


def test_methods_that_never_differ_do_not_differ_as_claimed():
    rows = difference_rows({"satimage": 0.0}, se=0.0)
    assert claims.decide_signs(rows, PAIRS, -1).holds is False


@pytest.mark.parametrize(
    ("mean", "se", "holds"), [(0.0, 0.005, True), (0.01, 0.02, None), (0.05, 0.01, False)]
)
def test_no_worse_needs_a_bound(mean, se, holds):
    rows = difference_rows({"satimage": mean, "soybean": 0.0}, se)
    assert claims.decide_no_worse(rows, PAIRS).holds is holds


def test_labels_decide_exactly():
    metric = "labels off linear loss"
    rows = rows_of({("satimage", "c/m", metric): [0, 0], ("soybean", "c/m", metric): [0, 1]})
    assert claims.decide_none_off(rows, ["c/m"]).holds is False
    assert claims.decide_none_off(rows[:2], ["c/m"]).holds is True


def test_one_vs_rest_labels_that_agree_are_no_more_errors():
    same = rows_of({("satimage", "one-vs-rest/zadrozny", "labels off linear loss"): 0.0})
    rows = [*same, *difference_rows({"satimage": 0.1})]
    assert claims.decide_worse_one_vs_rest(rows, PAIRS).holds is False
    other = rows_of({("satimage", "one-vs-rest/zadrozny", "labels off linear loss"): 3.0})
    rows = [*other, *difference_rows({"satimage": 0.1})]
    assert claims.decide_worse_one_vs_rest(rows, PAIRS).holds is True


def curve_rows(values: dict[int, float]) -> list[Measurement]:
    return rows_of({("satimage", f"one-vs-one/{t}", "mse"): v for t, v in values.items()})


def test_the_curve_falls_only_if_every_step_does():
    assert claims.decide_falls(curve_rows({0: 3.0, 1: 2.0, 2: 1.0, 100: 1.5})).holds is True
    verdict = claims.decide_falls(curve_rows({0: 3.0, 1: 1.0, 2: 2.0}))
    assert verdict.holds is False and "1 of 2 steps" in verdict.evidence


@pytest.mark.parametrize(
    ("curve", "holds"),
    [({50: 1.0, 1000: 1.04}, True), ({50: 1.0, 1000: 1.1}, False), ({50: 1}, None)],
)
def test_the_curve_settles_or_not(curve, holds):
    assert claims.decide_settles(curve_rows(curve), early=50).holds is holds


def test_nothing_measured_decides_nothing():
    for claim in (*claims.TABLE_CLAIMS, *claims.FIGURE_CLAIMS):
        assert claim.decide([]).holds is None


def test_rows_of_the_two_scales_are_not_mixed():
    rows = difference_rows({"satimage": 0.5})
    quick = [row._replace(split=f"quick {row.split}", value=9.0) for row in rows]
    assert claims.one_scale([*quick, *rows]) == rows
    assert claims.one_scale(quick) == quick


# -- published numbers -----------------------------------------------------------------


def test_published_lines():
    lines = published_lines()
    assert len(lines) == 39 and len(published_lines("soybean")) == 13
    assert {line.ours for line in lines} >= {"naive-bayes", "one-vs-one/zadrozny"}
    impossible = [
        x for x in published_lines("soybean") if x.mse * 19 > squared_error_bounds(x.error, 19)[1]
    ]
    assert [(x.method, x.mse) for x in impossible] == [("naive-bayes", 0.0996)]


# -- the distance and the reliability --------------------------------------------------


def as_rows(experiment, data, split, rows):
    return [Measurement(experiment.name, data, split, *row) for row in rows]


def test_the_distance_rises_unless_sides_are_single_classes(tmp_path):
    pytest.importorskip("matplotlib")
    rows = []
    for code in divergence.CODES:
        found = divergence.measure_random(code, 4, 20, 300, seed=1)
        rows += as_rows(DIVERGENCE, code, "k=4", found)
    verdicts = {claim.key: claim.decide(rows).holds for claim in DIVERGENCE.claims}
    assert verdicts["minimises-pairs"] is True
    assert verdicts["minimises-any-code"] is False
    assert verdicts["labels-one-against-all"] is False
    assert "| one-vs-one | 0.0% |" in DIVERGENCE.section(rows, tmp_path)


def test_calibrated_probabilities_are_called_so():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1.0, 3000)
    right = (rng.uniform(size=3000) < confidence) * 1.0
    expected = reliability.calibrated_error(confidence, rng)
    assert reliability.calibration_error(confidence, right) == pytest.approx(expected, abs=0.01)
    assert reliability.calibration_error(confidence, right * 0.0) > 0.3


def test_the_reliability_is_measured(tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        row
        for code in CODES
        for row in as_rows(
            RELIABILITY, "iris", "seed 0", reliability.measure_reliability("iris", code, None)
        )
    ]
    assert {claim.decide(rows).holds for claim in RELIABILITY.claims[:2]} == {None}  # some sets
    assert "| iris | one-vs-one | zadrozny |" in RELIABILITY.section(rows, tmp_path)


def test_binary_estimates_are_judged():
    rows = as_rows(RELIABILITY, "iris", "seed 0", reliability.measure_binary("iris", None))
    claim = next(c for c in RELIABILITY.claims if c.key == "binary-not-calibrated")
    assert claim.decide(rows).holds is None
    everywhere = [row._replace(data=data) for data in claims.DATA for row in rows]

    def with_errors(value):
        return [
            row._replace(value=value) if row.metric == "calibration error" else row
            for row in everywhere
        ]

    assert claim.decide(with_errors(0.5)).holds is True
    assert claim.decide(with_errors(0.0)).holds is False


def test_small_differences_between_methods():
    claim = next(c for c in TABLES.claims if c.key == "alike")

    def rows(last):
        errors = [*(0.1,) * (len(CODES) * len(claims.ALIKE) - 1), last]
        places = product(CODES, claims.ALIKE)
        return [
            Measurement("x", "satimage", "origin", f"{code}/{method}", "error", error)
            for (code, method), error in zip(places, errors, strict=True)
        ]

    assert claim.decide(rows(0.11)).holds is True
    assert claim.decide(rows(0.13)).holds is False
    assert claim.decide(rows(0.13)[:4]).holds is None
    assert "one-vs-rest 0.0245" in claim.published() and "not as claimed" in claim.published()


# -- the page --------------------------------------------------------------------------


def test_tasks_are_unique_and_can_be_sent_to_other_processes():
    for experiment, scale in product(zadrozny2001.EXPERIMENTS, ("quick", "paper")):
        tasks = experiment.tasks(scale)
        keys = {(task.data, task.split, task.group) for task in tasks}
        assert len(keys) == len(tasks)
        assert pickle.loads(pickle.dumps(tasks)) == tasks
        assert json.loads(json.dumps(experiment.config(scale)))
    quick, paper = ({t.split for t in TABLES.tasks(scale)} for scale in ("quick", "paper"))
    assert not quick & paper


def test_the_page_has_our_numbers_beside_the_published_ones(measured, tmp_path):
    pytest.importorskip("matplotlib")
    rows = [
        *measuring.measure_baselines("iris"),
        *(row for rows in measured.values() for row in rows),
    ]
    iterations = list(measuring.measure_iterations("iris", "one-vs-one", 0, last=3))
    results = Results(tmp_path / "results.csv")
    for experiment, found in ((TABLES, rows), (FIGURE, iterations)):
        place = experiment.name, "satimage", "origin"
        results.add(Measurement(*place, *row) for row in found)
        results.add([Measurement(*place, "all", SECONDS, 1.0)])
    text = write_page("zadrozny2001", "T", [TABLES, FIGURE], "quick", tmp_path).read_text("utf-8")
    for line in published_lines("satimage"):
        assert f"| {line.error:.4f} |" in text
    error = as_dict(measured["one-vs-rest"])["one-vs-rest/zadrozny", "error"]
    assert f"| iterative | one-vs-rest | {error:.4f} | 0.1670 |" in text
    assert "nan" not in text and (tmp_path / "figure1.png").stat().st_size > 5000
    n_claims = len(TABLES.claims) + len(FIGURE.claims)
    assert sum(text.count(word) for word in ("**holds**", "**does not", "**cannot")) == n_claims


def test_an_interrupted_run_has_a_page_too(tmp_path):
    rows = [
        Measurement("e", "satimage", "origin", *row) for row in measuring.measure_baselines("iris")
    ]
    text = TABLES.section(rows, tmp_path)
    assert "multiclass naive Bayes" in text and "nan" not in text
