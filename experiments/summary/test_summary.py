"""All rules on all data sets: shared scores, ranks and critical differences, the page."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import friedmanchisquare, rankdata
from sklearn.linear_model import LogisticRegression

import experiments
from experiments import datasets
from experiments.pages import write_page
from experiments.results import SECONDS, Measurement, Results
from experiments.runner import run
from experiments.summary import EXPERIMENTS, TITLE, advice, claims, methods, page, tasks
from experiments.summary.machines import Machines
from experiments.summary.ranking import Ranking, critical_difference, critical_value, rank_methods
from experiments.summary.reading import Table, geometric_mean
from experiments.summary.samples import draw
from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.combiners.base import names, resolve, resolve_for

(SUMMARY,) = EXPERIMENTS
DATA = "iris"
LABELS_ALONE = {*"winner-takes-all max-wins hamming loss loss-weighted srm drm".split()}


# ---------------------------------------------------------------------- description


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_tasks_are_unique_and_travel_to_other_processes(scale):
    found = SUMMARY.tasks(scale)
    assert len({(task.data, task.split, task.group) for task in found}) == len(found)
    assert pickle.loads(pickle.dumps(found)) == found
    assert json.loads(json.dumps(SUMMARY.config(scale))) == SUMMARY.config(scale)


def test_what_is_compared():
    assert len(SUMMARY.tasks("paper")) == 10 * 5
    assert set(tasks.SCALES["paper"]["data"]) <= set(datasets.names())
    assert experiments.find("summary") == [SUMMARY]
    for learner in methods.LEARNERS:
        everything = methods.with_probabilities(learner) + list(methods.decoders(learner))
        assert len({method.name for method in everything}) == len(everything)
        assert methods.default_of(learner) in methods.at_their_best(learner)
    assert {m.rule for m in methods.decoders("svc")} == LABELS_ALONE
    assert {m.rule for m in methods.decoders("logistic")} == LABELS_ALONE - {"srm", "drm"}


@pytest.mark.parametrize("code", methods.CODES)
def test_every_rule_is_measured_or_another_one(code):
    matrix = codes.by_name(code, 4, random_state=0)
    accepted = set()
    for name in names():
        with contextlib.suppress(ValueError):
            resolve(name).check_code(matrix)
            accepted.add(name)
    listed = [
        *(methods.COUPLERS[code], methods.TRAINED.get(code, ()), methods.DECODERS[code]),
        methods.SAME.get(code, ()),
    ]
    flat = [rule for rules in listed for rule in rules]
    assert sorted(flat) == sorted(accepted)


def test_the_default_is_that_of_the_classifiers():
    for model in (CoupledSVC(), CoupledClassifier()):
        assert (model.code, model.combiner) == (methods.DEFAULT[0], "auto")
    assert resolve_for("auto", codes.one_vs_one(3)).key == methods.DEFAULT[1]


# ---------------------------------------------------------------------- samples


def test_splits_are_stratified_and_disjoint():
    train, test = draw("digits", 1, 300)
    assert len(train.y) == len(test.y) == 300
    assert max(Counter(train.y).values()) - min(Counter(train.y).values()) <= 2
    rows = np.vstack([train.inputs["svc"], test.inputs["svc"]])
    assert len(np.unique(rows, axis=0)) == len(rows)
    again, _ = draw("digits", 1, 300)
    other, _ = draw("digits", 2, 300)
    assert_array_equal(train.inputs["svc"], again.inputs["svc"])
    assert not np.array_equal(train.inputs["svc"], other.inputs["svc"])


def test_small_sets_are_halved_and_units_standardised():
    train, test = draw("wine", 1, 300)
    assert (len(train.y), len(test.y)) == (89, 89)
    for learner in methods.LEARNERS:
        assert_allclose(train.inputs[learner].mean(axis=0), 0.0, atol=1e-12)
        assert_allclose(train.inputs[learner].std(axis=0), 1.0)


def test_categories_become_indicators(shared_data):
    shared_data("soybean")
    train, test = draw("soybean", 1, 1000)
    assert set(np.unique(train.inputs["svc"])) == {0.0, 1.0}
    assert not np.isnan(test.inputs["logistic"]).any()
    assert set(train.y) == set(test.y) == set(range(19))


# ---------------------------------------------------------------------- measuring


@pytest.fixture(scope="module")
def parts():
    return draw(DATA, 1, 300)


def classifier(learner: str, machines: Machines, answer):
    scaling = "temperature" if answer.tempered else None
    options = {"code": machines.code, "combiner": answer.rule, "scaling": scaling}
    if learner == "svc":
        return CoupledSVC(C=10.0, **options)
    return CoupledClassifier(LogisticRegression(max_iter=1000), calibration=None, **options)


@pytest.mark.parametrize("code", methods.CODES)
@pytest.mark.parametrize("learner", methods.LEARNERS)
def test_shared_scores_give_what_the_classifier_gives(parts, learner, code):
    machines = Machines(learner, code, *parts, seed=1)
    for answer in machines.answers():
        model = classifier(learner, machines, answer).fit(machines.X, machines.y)
        expected = model._class_values(machines.X_test)
        assert_allclose(answer.values, expected, atol=1e-12, err_msg=answer.rule)
        assert answer.probabilities == hasattr(model, "predict_proba")


@pytest.fixture(scope="module")
def measured():
    return list(tasks.measure(DATA, 1, 300))


def test_every_method_has_its_metrics(measured):
    found = Counter((row.method, row.metric) for row in measured)
    assert set(found.values()) == {1}
    assert SECONDS not in {row.metric for row in measured}
    for learner in methods.LEARNERS:
        for method in methods.with_probabilities(learner):
            for metric in (*tasks.METRICS, tasks.LEARNING, tasks.COMBINING):
                assert (method.name, metric) in found
        for method in methods.with_labels(learner):
            assert (method.name, "error") in found
        for code in methods.CODES:
            assert (methods.machines_name(learner, code), tasks.FITTING) in found
        for peer in methods.PEERS[learner]:
            assert {(peer, metric) for metric in tasks.METRICS} <= set(found)
    assert np.isfinite([row.value for row in measured]).all()


def test_labels_do_not_depend_on_the_temperature(measured):
    errors = {row.method: row.value for row in measured if row.metric == "error"}
    for learner in methods.LEARNERS:
        for method in methods.couplers(learner, True):
            assert errors[method.name] == errors[method._replace(tempered=False).name]


# ---------------------------------------------------------------------- ranks


def test_critical_values_are_the_published():
    # Demšar (2006), table 5(a), and the example of section 3.2.2: k = 4, N = 14.
    printed = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    assert_allclose([critical_value(k) for k in range(2, 11)], printed, atol=1e-3)
    assert_allclose(
        [critical_value(k, 0.10) for k in (2, 3, 4, 10)], [1.645, 2.052, 2.291, 2.920], atol=1e-3
    )
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)


@given(
    losses=st.integers(3, 8).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 9), min_size=k, max_size=k), min_size=2, max_size=8
        )
    )
)
@settings(deadline=None, max_examples=30)
def test_ranks_are_those_of_scipy(losses):
    losses = np.array(losses, dtype=float)
    losses[0] += np.arange(losses.shape[1]) / 100  # not all alike
    names = [f"method {i}" for i in range(losses.shape[1])]
    ranking = rank_methods(names, losses)
    expected = np.mean([rankdata(row) for row in losses], axis=0)
    assert_allclose([ranking.rank_of(name) for name in names], expected)
    assert_array_equal(ranking.ranks, np.sort(ranking.ranks))
    assert ranking.p_value == pytest.approx(friedmanchisquare(*losses.T).pvalue)
    assert ranking.distance == critical_difference(len(names), len(losses))


@given(
    ranks=st.lists(st.integers(2, 40), min_size=3, max_size=12),
    distance=st.floats(0.3, 10.0),
)
@settings(deadline=None, max_examples=40)
def test_groups_are_the_largest_runs_within_the_distance(ranks, distance):
    ranks = np.sort(np.array(ranks) / 2)
    ranking = Ranking([str(i) for i in range(len(ranks))], ranks, 5, 0.5, distance)
    near = [
        (i, j)
        for i, j in combinations(range(len(ranks)), 2)
        if ranks[j] - ranks[i] <= distance + 1e-9
    ]
    largest = [
        (i, j) for i, j in near if not any(a <= i and j <= b and (a, b) != (i, j) for a, b in near)
    ]
    assert ranking.groups() == sorted(largest)
    good = [str(i) for i, rank in enumerate(ranks) if rank - ranks[0] <= distance + 1e-9]
    assert ranking.as_good_as_best() == good


def test_methods_that_are_all_alike():
    ranking = rank_methods(["a", "b", "c"], np.ones((4, 3)))
    assert ranking.p_value == 1.0
    assert_array_equal(ranking.ranks, [2.0, 2.0, 2.0])
    assert ranking.groups() == [(0, 2)]


# ---------------------------------------------------------------------- claims and advice

N_DATA = 8


def made_up(quality: dict[str, float] | None = None, cost: float = 0.9) -> list[Measurement]:
    """Results in which every rule has a log-loss of its own, and a temperature one factor."""
    quality, rows = quality or {}, []

    def add(data, split, name, loss, probabilities=True):
        values = {"log-loss": loss, "brier": loss / 2, "error": loss / 10}
        values |= {tasks.LEARNING: 0.01, tasks.COMBINING: 0.01, tasks.FITTING: 1.0}
        for metric, value in values.items():
            if probabilities or metric not in ("log-loss", "brier"):
                rows.append(Measurement(SUMMARY.name, data, split, name, metric, value))

    for number, split in ((n, s) for n in range(N_DATA) for s in "12"):
        data, unit = f"data {number}", 0.1 + 0.01 * number
        for kind, value in (("classes", 5), ("training rows", 100), ("test rows", 100)):
            rows.append(Measurement(SUMMARY.name, data, split, "data", kind, value))
        for learner in methods.LEARNERS:
            for place, method in enumerate(methods.with_probabilities(learner)):
                default = 1 + 0.01 * place if not method.tempered else 1.0
                loss = unit * quality.get(method.rule, default) * (cost if method.tempered else 1)
                add(data, split, method.name, loss)
            for method in methods.decoders(learner):
                add(data, split, method.name, unit * quality.get(method.rule, 1.2), False)
            for code in methods.CODES:
                add(data, split, methods.machines_name(learner, code), unit, False)
            for peer in methods.PEERS[learner]:
                add(data, split, peer, 1.5 * unit)
    return rows


def verdict(beginning: str, rows):
    (claim,) = [claim for claim in claims.CLAIMS if claim.text.startswith(beginning)]
    return claim.decide(rows)


ALL_EQUAL = {rule: 1.0 for rules in methods.COUPLERS.values() for rule in rules}


def test_claims_about_the_temperature():
    helps = made_up(ALL_EQUAL, cost=0.9)
    assert verdict("A temperature costs the default", helps).holds
    assert verdict("A temperature costs no rule", helps).holds
    assert verdict("A temperature lowers", helps).holds
    costs = made_up(ALL_EQUAL, cost=1.03)
    for beginning in ("A temperature costs the default", "A temperature costs no", "A temperature"):
        found = [c.decide(costs) for c in claims.CLAIMS if c.text.startswith(beginning)]
        assert not any(one.holds for one in found)
    assert "272 of 272 ratios are above 1.02" in verdict("A temperature costs no", costs).evidence
    assert verdict("A temperature costs the default", made_up(ALL_EQUAL, cost=1.019)).holds


def test_claims_about_ranks():
    worst = made_up(ALL_EQUAL | {"wlw2": 2.0, "ht": 0.5})
    best = made_up(ALL_EQUAL | {"wlw2": 0.5})
    for beginning in ("The log-loss of wlw2 is", "The log-loss of wlw2 on one-vs-one"):
        assert verdict(beginning, worst).holds is False
        assert (
            "and the best, one-vs-one, ht, temperature has 1.00"
            in verdict(beginning, worst).evidence
        )
        assert verdict(beginning, best).holds


def test_claims_about_peers_and_labels():
    rows = made_up(ALL_EQUAL)
    assert verdict("CoupledSVC has", rows).holds
    assert verdict("Coupled pairs of logistic", rows).holds
    assert verdict("Labels by coupling", rows).holds
    poor = made_up(ALL_EQUAL | {"wlw2": 3.0})
    for beginning in ("CoupledSVC has", "Coupled pairs of logistic", "Labels by coupling"):
        assert verdict(beginning, poor).holds is False


def test_few_data_sets_decide_nothing():
    few = [row for row in made_up(ALL_EQUAL) if row.data in ("data 0", "data 1", "data 2")]
    assert {claim.decide(few).holds for claim in claims.CLAIMS} == {None}
    once = [row for row in made_up(ALL_EQUAL) if row.split == "1"]
    assert {claim.decide(once).holds for claim in claims.CLAIMS} == {None}


@pytest.mark.parametrize(
    ("differences", "expected"),
    [(np.full(8, -1.0), True), (np.full(8, 1.0), False), (np.zeros(8), None), ([-1, 1], None)],
)
def test_signs(differences, expected):
    assert claims.sign_of(np.array(differences)) is expected


def test_advice_names_what_is_best():
    told = advice.advice(Table(made_up(ALL_EQUAL | {"wlw2": 0.5, "refregier-vallet": 3.0})))
    assert '**For probabilities: `code="one-vs-one", combiner="wlw2"`**' in told
    assert "This is the default of `CoupledSVC` and `CoupledClassifier`. The next best" in told
    assert "**The temperature: keep it.**" in told
    assert "Avoid" in told and "refregier-vallet" in told.split("Avoid")[1]
    told = advice.advice(Table(made_up(ALL_EQUAL | {"softmax": 0.3, "max-wins": 0.1}, cost=1.1)))
    assert '**For probabilities: `code="one-vs-one", combiner="softmax"`**' in told
    assert "**The temperature: leave it out.**" in told
    assert '**For labels alone: `code="one-vs-one", combiner="max-wins"`.**' in told


def test_regrets():
    regrets = advice.Regrets(Table(made_up(ALL_EQUAL | {"wlw2": 0.5, "kl": 1.0, "softmax": 0.9})))
    assert regrets.best() == ("one-vs-one", "wlw2")
    assert regrets.best("one-vs-rest")[0] == "one-vs-rest"
    assert regrets.mean(("one-vs-one", "wlw2")) == pytest.approx(1.0)
    assert regrets.mean(("one-vs-one", "ht")) == pytest.approx(2.0)
    assert geometric_mean(np.array([1.0, 4.0])) == pytest.approx(2.0)


# ---------------------------------------------------------------------- the run


@pytest.fixture(scope="module")
def small():
    """The quick scale without its largest set."""
    return replace(
        SUMMARY, tasks=lambda scale: [t for t in SUMMARY.tasks(scale) if t.data != "digits"]
    )


def test_the_quick_scale_runs_resumes_and_has_a_page(small, tmp_path):
    first = replace(small, tasks=lambda scale: small.tasks(scale)[:1])
    before = list(run(first, "quick", tmp_path, bar=False))
    after = list(run(small, "quick", tmp_path, bar=False))
    assert after[: len(before)] == before
    assert len(after) == 2 * len(before)
    assert len(Results(tmp_path / "results.csv").finished()) == 2
    assert list(run(small, "quick", tmp_path, bar=False)) == after
    text = write_page("summary", TITLE, [small], "quick", tmp_path).read_text()
    for heading in ("What to pick", "Ranks", "Means", "Log-loss on every data set", "Claims"):
        assert f"### {heading}" in text
    assert "**holds**" not in text
    assert "**does not hold**" not in text
    assert text.count("**cannot be told**") == len(claims.CLAIMS)


def test_the_figures(tmp_path):
    pytest.importorskip("matplotlib")
    text = write_made_up(tmp_path)
    for of, metric in page.FIGURES:
        assert (tmp_path / f"{of}-{metric}.png").stat().st_size > 10_000
        assert f"![{of}-{metric}]({of}-{metric}.png)" in text


def write_made_up(folder) -> str:
    Results(folder / "results.csv").add(
        [*made_up(ALL_EQUAL), Measurement(SUMMARY.name, "data 0", "1", "all", SECONDS, 1.0)]
    )
    return write_page("summary", TITLE, [SUMMARY], "paper", folder).read_text()


def test_the_stored_page_says_what_the_stored_results_say():
    folder = Path(experiments.__file__).parent / "summary"
    rows, text = list(Results(folder / "results.csv")), (folder / "README.md").read_text("utf-8")
    for claim in claims.CLAIMS:
        told = f"Criterion: {claim.criterion}\n\n  Here it {claim.decide(rows)}"
        assert f"- {claim.text}\n\n  {told}" in text, claim.text
