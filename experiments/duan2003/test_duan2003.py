from __future__ import annotations

import json
import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import ttest_rel
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from experiments import pages
from experiments.datasets import Dataset
from experiments.duan2003 import EXPERIMENTS, TITLE, partitions, tables
from experiments.duan2003.claims import CLAIMS, Needed, _power
from experiments.duan2003.machines import Problem
from experiments.duan2003.methods import (
    ALL_METHODS,
    DEFAULT,
    FAMILIES,
    PAPER,
    RECIPES,
    TUNED,
    WITH_PROBABILITIES,
    Estimate,
    Function,
    estimate,
    final_model,
    make_code,
    of_family,
)
from experiments.duan2003.page import section
from experiments.duan2003.results import (
    PARTITIONS,
    Table,
    p_value,
    published_p_values,
    published_values,
)
from experiments.duan2003.search import Grids, _choose, search
from experiments.results import Measurement
from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.combiners.softmax import Softmax
from manyclass.learners import KernelLogisticRegression
from manyclass.scores.crossfit import out_of_sample_scores
from manyclass.scores.folds import fold_numbers
from manyclass.search import SmoothestBest, TwoStepGridSearchCV
from manyclass.search.presets import DUAN, duan

# ---------------------------------------------------------------------- description


def test_the_tasks_of_the_paper_are_all_there():
    found = [task for task in tables.tasks("paper") if task.measure is tables.measure]
    assert len(found) == 20 * 5 * 4
    # Table 1 of the paper.
    assert {task.data: task.arguments[3] for task in found} == {
        "ABE": 560,
        "DNA": 500,
        "SAT": 1500,
        "SEG": 500,
        "WAV": 300,
    }
    *_, powers, factors = found[0].arguments
    assert (len(powers) ** 2, len(factors) ** 2) == (49, 81)
    assert {task.split for task in found[:20]} == {"1"}  # whole partitions come first


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_tasks_are_unique_and_travel_to_other_processes(scale):
    for experiment in EXPERIMENTS:
        found = experiment.tasks(scale)
        assert len({(task.data, task.split, task.group) for task in found}) == len(found) > 0
        assert pickle.loads(pickle.dumps(found)) == found
        assert json.loads(json.dumps(experiment.config(scale))) == experiment.config(scale)


def test_every_method_is_of_one_family():
    assert list(PAPER) == list(DUAN)
    members = [name for family in FAMILIES for name in of_family(family)]
    assert sorted(members) == sorted(RECIPES)
    for recipe in RECIPES.values():
        if recipe.machines_of is not None:
            assert recipe.family == PAPER[recipe.machines_of].family
    # Table 4 has these.
    published = {method for _, method, metric in published_values() if metric == "log-loss"}
    assert published == {name for name in WITH_PROBABILITIES if name in PAPER}


# ---------------------------------------------------------------------- partitions


@pytest.fixture
def iris(monkeypatch):
    """Iris, with a constant feature and letters for classes, in place of every data set."""
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.full(len(X), 9.1)])
    data = Dataset("iris", X, np.array(list("ABE"))[y], None, tuple("abcde"), False, "here")
    monkeypatch.setattr(partitions, "load", lambda name: data)
    return data


def test_inputs_are_standardised_by_the_training_part(iris):
    part = partitions.draw("SEG", 1, 90)
    assert (len(part.X), len(part.X_test)) == (90, 60)
    np.testing.assert_allclose(part.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(part.X[:, :4].std(axis=0), 1.0)
    assert not np.allclose(part.X_test[:, :4].std(axis=0), 1.0, atol=1e-6)
    assert (part.X[:, 4] == 0).all()
    assert (part.X_test[:, 4] == 0).all()
    assert np.bincount(part.y).tolist() == [30, 30, 30]


def test_indicators_are_left_alone(iris):
    part = partitions.draw("DNA", 1, 90)
    assert set(part.X.ravel()) <= set(iris.X.ravel())


def test_only_three_letters_are_kept(iris, monkeypatch):
    alphabet = np.array(list("AQE"))[np.unique(iris.y, return_inverse=True)[1]]
    other = Dataset("letter", iris.X, alphabet, None, tuple("abcde"), False, "here")
    monkeypatch.setattr(partitions, "load", lambda name: other)
    part = partitions.draw("ABE", 1, 60)
    assert len(part.y) + len(part.y_test) == 100
    assert set(part.y) == {0, 1}


def test_partitions_repeat_themselves_and_differ(iris):
    first, again = (partitions.draw("WAV", 1, 60, 30) for _ in range(2))
    np.testing.assert_array_equal(first.X, again.X)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(first.folds, again.folds, strict=True))
    assert len(first.y_test) == 30
    for other in (partitions.draw("WAV", 2, 60, 30), partitions.draw("SAT", 1, 60, 30)):
        assert not np.array_equal(first.X, other.X)


def test_folds_are_of_the_training_part_and_stratified(iris):
    part = partitions.draw("WAV", 1, 75)
    assert sorted(np.concatenate([test for _, test in part.folds])) == list(range(75))
    assert all((np.bincount(part.y[test]) == 5).all() for _, test in part.folds)


@pytest.mark.parametrize(
    ("data", "classes", "inputs", "n_train", "total"),
    [
        ("ABE", 3, 16, 560, 2323),
        ("DNA", 3, 180, 500, 3186),
        ("SAT", 6, 36, 1500, 6435),
        ("SEG", 7, 19, 500, 2310),
        ("WAV", 3, 21, 300, 5000),
    ],
)
def test_data_are_of_the_size_of_the_paper(
    shared_data, monkeypatch, data, classes, inputs, n_train, total
):
    loaded = shared_data(partitions.SOURCES[data].name)
    monkeypatch.setattr(partitions, "load", lambda name: loaded)
    part = partitions.draw(data, 1, partitions.SOURCES[data].n_train)
    assert part.X.shape == (n_train, inputs)
    assert len(np.unique(part.y)) == classes
    assert len(part.y) + len(part.y_test) == total


# ---------------------------------------------------------------------- machines


def blobs(n=90, k=3, seed=0):
    X, y = make_blobs(n, 3, centers=k, cluster_std=4.0, random_state=seed)
    return X / 5.0, y


def folds_of(X, y, n_folds=5):
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))


def problem_of(X, y, family, n_folds=5):
    D = euclidean_distances(X, squared=True)
    return Problem(D, y, make_code(family, y.max() + 1), folds_of(X, y, n_folds))


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_machines_fitted_one_by_one(family):
    X, y = blobs(k=4)
    problem, learner = problem_of(X, y, family), FAMILIES[family][0]
    values_of_C = 0.1, 10.0
    found = problem.scores(learner, 2.0, values_of_C)
    for i, C in enumerate(values_of_C):
        for train, test in problem.folds:
            for b, column in enumerate(problem.code.T):
                rows = train[column[y[train]] != 0]
                model = learner(C=C, gamma=0.25).fit(X[rows], column[y[rows]])
                expected = model.decision_function(X[test])
                np.testing.assert_allclose(found[i, test, b], expected, atol=2e-2)


# ---------------------------------------------------------------------- methods


@pytest.mark.parametrize("name", PAPER)
def test_final_models_are_the_presets(name):
    X, y = blobs()
    folds = folds_of(X, y)
    preset = duan(name, C=3.0, gamma=0.25, cv=folds)
    model = final_model(name, 3.0, 2.0, folds)
    assert str(model.get_params()) == str(preset.get_params())


@pytest.mark.parametrize("name", PAPER)
def test_functions_of_scores_are_those_of_the_presets(name):
    X, y = blobs(150)
    X, X_test, y = X[:100], X[100:], y[:100]
    folds, method = folds_of(X, y), DUAN[name]
    code = codes.by_name(method.code, 3)

    def fit(rows=None):
        machine = method.learner(C=3.0, gamma=0.25)
        return fit_bank(machine, X, y, code, MARGIN, rows=rows)

    bank = fit()
    scores = out_of_sample_scores(bank, fit, X, y, code, folds)
    function = Function(PAPER[name], scores, y, code)
    if isinstance(function.combiner, Softmax):  # C is searched in the folds of the model
        function.combiner.fit(scores, y, code, folds=fold_numbers(folds, len(y)))
    found = function(bank.scores(X_test))
    model = duan(name, C=3.0, gamma=0.25, cv=folds).fit(X, y)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X_test))
    if PAPER[name].gives_probabilities:
        np.testing.assert_allclose(found, model.predict_proba(X_test), atol=1e-8)


@pytest.mark.parametrize("name", [name for name, r in PAPER.items() if not r.learns])
def test_without_anything_to_learn_the_estimate_is_cross_validation(name):
    X, y = blobs()
    family = next(f for f in FAMILIES if name in of_family(f))
    problem = problem_of(X, y, family)
    scores = problem.scores(FAMILIES[family][0], 2.0, [3.0])[0]
    found = estimate(PAPER[name], scores, y, problem.code, problem.folds)
    model = duan(name, C=3.0, gamma=0.25)
    labels = cross_val_predict(model, X, y, cv=problem.folds)
    assert found.error == pytest.approx((labels != y).mean())
    if PAPER[name].gives_probabilities:
        p = cross_val_predict(model, X, y, cv=problem.folds, method="predict_proba")
        assert found.nll == pytest.approx(log_loss(y, p), abs=1e-4)
    else:
        assert np.isnan(found.nll)


@pytest.mark.parametrize("name", ["SSMC1va", "WTA_PSVM", "PWC_PSVM", "MWV_PSVM", TUNED])
def test_what_is_learned_is_judged_on_other_folds(name):
    rng = np.random.default_rng(0)
    recipe = RECIPES[name]
    code, y = codes.by_name(recipe.method.code, 3), np.arange(60) % 3
    scores = code[y] + rng.normal(size=(60, 3))
    folds = folds_of(scores, y)
    found = estimate(recipe, scores, y, code, folds)
    wrong, lost = [], []
    for train, test in folds:
        p = Function(recipe, scores[train], y[train], code)(scores[test])
        wrong += list(p.argmax(axis=1) != y[test])
        lost += [-np.log(row[label]) for row, label in zip(p, y[test], strict=True)]
    assert found.error == pytest.approx(np.mean(wrong))
    if recipe.gives_probabilities:
        assert found.nll == pytest.approx(np.mean(lost))
    else:
        assert np.isnan(found.nll)
    # The scores judged have no part in what is learned.
    spoilt = scores.copy()
    spoilt[folds[0][1]] *= -1
    parts = [Function(recipe, s[folds[0][0]], y[folds[0][0]], code) for s in (scores, spoilt)]
    np.testing.assert_array_equal(parts[0](scores), parts[1](scores))


@pytest.mark.parametrize("name", ["SMC1va", "SMC1v1"])
def test_smc_is_judged_by_the_C_it_chooses(name):
    rng = np.random.default_rng(0)
    code, y = codes.by_name(DUAN[name].code, 3), np.arange(60) % 3
    scores = code[y] + rng.normal(size=(60, 3))
    found = estimate(PAPER[name], scores, y, code, folds_of(scores, y))
    combiner = Softmax().fit(scores, y, code)
    (at,) = np.flatnonzero(combiner.search_["C"] == combiner.C_)
    assert found == (combiner.search_["error"][at], combiner.search_["nll"][at])


def test_the_temperature_is_fitted_last():
    rng = np.random.default_rng(0)
    code, y = codes.one_vs_one(3), np.arange(300) % 3
    scores = 0.3 * (code[y] + rng.normal(size=(300, 3)))
    tempered = Function(RECIPES["PSVM 1v1, wlw2, temperature"], scores, y, code)
    plain = Function(RECIPES["PSVM 1v1, wlw2"], scores, y, code)
    assert tempered.temperature.power_ > 1
    losses = [log_loss(y, function(scores)) for function in (tempered, plain)]
    assert losses[0] < losses[1]


# ---------------------------------------------------------------------- search


@pytest.mark.parametrize("name", ["WTA_SVM", "MWV_SVM", "WTA_KLR", "PWC_KLR"])
def test_the_search_is_the_two_step_search_of_the_library(name):
    X, y = blobs(60)
    family = next(f for f in FAMILIES if name in of_family(f))
    problem = problem_of(X, y, family)
    grids = Grids((0.1, 10.0), (0.4, 1.0))
    found = search(problem, {name: PAPER[name]}, grids)[name]
    scoring = ["accuracy", "neg_log_loss"] if PAPER[name].gives_probabilities else ["accuracy"]
    library = TwoStepGridSearchCV(
        duan(name),
        {"estimator__C": grids.powers, "estimator__gamma": [0.5 / s for s in grids.powers]},
        C="estimator__C",
        gamma="estimator__gamma",
        factors=grids.factors,
        scoring=scoring,
        refit=SmoothestBest(log_loss=scoring[1] if len(scoring) == 2 else None),
        cv=problem.folds,
    ).fit(X, y)
    assert found.C == pytest.approx(library.best_params_["estimator__C"])
    assert found.sigma2 == pytest.approx(0.5 / library.best_params_["estimator__gamma"])
    accuracy = library.cv_results_["mean_test_accuracy"][library.best_index_]
    assert found.estimate.error == pytest.approx(1 - accuracy)


def test_methods_searched_together_find_what_they_find_alone():
    X, y = blobs(60)
    problem = problem_of(X, y, "SVM 1v1")
    grids = Grids((1.0, 10.0), (0.2, 1.0))
    recipes = {name: RECIPES[name] for name in ("SSMC1v1", "MWV_SVM", "PWC_PSVM", TUNED)}
    together = search(problem, recipes, grids)
    for name, recipe in recipes.items():
        np.testing.assert_equal(search(problem, {name: recipe}, grids)[name], together[name])


def test_coupled_svc_is_tuned_by_its_log_loss():
    points = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)]
    names = ("PWC_PSVM", "MWV_SVM", TUNED)
    values = [Estimate(0.1, 0.5), Estimate(0.2, 0.4), Estimate(0.1, 0.6)]
    known = {(name, at): v for name in names for at, v in zip(points, values, strict=True)}
    chosen = {name: _choose(name, RECIPES[name], points, known) for name in names}
    assert chosen == {"PWC_PSVM": (1.0, 1.0), "MWV_SVM": (1.0, 1.0), TUNED: (1.0, 2.0)}


def test_fine_grids_of_neighbours_share_points():
    grids = Grids((0.01, 0.1), (0.2, 1.0, 2.0))
    assert len(grids.coarse()) == 4
    first, second = set(grids.fine((0.01, 0.01))), set(grids.fine((0.1, 0.1)))
    assert (0.02, 0.02) in first & second


# ---------------------------------------------------------------------- measuring


def small(family, data="SEG", number=1):
    return list(tables.measure(data, number, family, 60, 50, [10.0], [1.0]))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_task_repeats_itself_and_measures_everything(iris, family):
    rows = small(family)
    assert rows == small(family)
    assert len(rows) == len({row[:2] for row in rows})
    assert all(np.isfinite(row.value) for row in rows)
    assert rows[-1] == (family, "training samples", 60)
    by_metric = {
        metric: {row.method for row in rows if row.metric == metric}
        for metric in ("error", "log-loss", "brier", "mse", "log10 C", "cv-error", "cv-log-loss")
    }
    members = set(of_family(family)) | ({DEFAULT} if family == "SVM 1v1" else set())
    assert by_metric["error"] == members
    assert by_metric["log-loss"] == members & set(WITH_PROBABILITIES)
    assert by_metric["brier"] == by_metric["mse"] == by_metric["log-loss"]
    searched = {name for name, r in of_family(family).items() if r.machines_of is None}
    assert by_metric["log10 C"] == by_metric["cv-error"] == searched
    assert by_metric["cv-log-loss"] == searched & set(WITH_PROBABILITIES)


def test_what_is_measured_is_what_the_estimators_say(iris):
    rows = {row[:2]: row.value for row in small("SVM 1v1")}
    part = partitions.draw("SEG", 1, 60, 50)
    default = CoupledSVC().fit(part.X, part.y)
    assert rows[DEFAULT, "error"] == pytest.approx(1 - default.score(part.X_test, part.y_test))
    C, sigma2 = (10 ** rows["PWC_PSVM", f"log10 {x}"] for x in ("C", "sigma2"))
    model = duan("PWC_PSVM", C=C, gamma=0.5 / sigma2, cv=part.folds).fit(part.X, part.y)
    p = model.predict_proba(part.X_test)
    assert rows["PWC_PSVM", "log-loss"] == pytest.approx(log_loss(part.y_test, p))
    coupled = CoupledClassifier(
        SVC(C=C, gamma=0.5 / sigma2),
        combiner="wlw2",
        calibration="sigmoid",
        cv=part.folds,
        scaling="temperature",
    )
    p = clone(coupled).fit(part.X, part.y).predict_proba(part.X_test)
    found = rows["PSVM 1v1, wlw2, temperature", "log-loss"]
    assert found == pytest.approx(log_loss(part.y_test, p))


def test_further_partitions_measure_the_same_of_pairs_without_soft_max(iris):
    sizes = "SEG", 1, 60, 50, [1.0, 10.0], [0.4, 1.0]
    names = set()
    for family in ("SVM 1v1", "KLR 1v1"):
        data, number, *rest = sizes
        fewer = {r[:2]: r.value for r in tables.measure_pairs(data, number, family, *rest)}
        everything = {r[:2]: r.value for r in tables.measure(data, number, family, *rest)}
        assert fewer.items() <= everything.items()
        names |= {name for name, _ in fewer}
    assert names == set(tables.PAIRS) == {n for n in PAPER if n[:3] in ("MWV", "PWC")}


def test_claims_use_the_further_partitions_of_their_methods():
    rows = invented(BETTER, LOSSES)
    more = [
        row._replace(split=str(int(row.split) + PARTITIONS))
        for row in rows
        if row.method in tables.PAIRS
    ]
    table = Table(rows + more)
    assert len(table.partitions("ABE")) == PARTITIONS
    found = {c.key: c.decide(rows + more).evidence for c in CLAIMS}
    assert f"{2 * PARTITIONS} partitions" in found["mwv-better"]
    assert f"{2 * PARTITIONS} partitions" in found["pwc-variances"]
    assert f"{PARTITIONS} or {2 * PARTITIONS} partitions" in found["pwc-best"]
    assert f" {PARTITIONS} partitions" in found["ssmc1va"]


def test_further_partitions_decide_nothing_until_all_are_there():
    rows = invented(BETTER, LOSSES)
    some = [
        row._replace(split=str(int(row.split) + PARTITIONS))
        for row in rows
        if row.method in tables.PAIRS and (row.data, row.split) != ("WAV", str(PARTITIONS))
    ]
    by_all = {c.key: c.decide(rows) for c in CLAIMS}
    assert {c.key: c.decide(rows + some) for c in CLAIMS} == by_all


def test_a_real_data_set_in_small(shared_data, monkeypatch):
    waveform = shared_data("waveform")
    monkeypatch.setattr(partitions, "load", lambda name: waveform)
    rows = {r[:2]: r.value for r in tables.measure("WAV", 1, "KLR 1v1", 150, 500, [10.0], [1.0])}
    assert rows["PWC_KLR", "error"] < 0.3
    assert rows["PWC_KLR", "log10 sigma2"] == 1


# ---------------------------------------------------------------------- published


def test_published_numbers_are_fractions():
    published = published_values()
    assert len(published) == 5 * 12 + 5 * 8
    assert published["SEG", "WTA_SVM", "error"] == pytest.approx((0.0656, 0.0088))
    # Table 3 prints .0156 in this column, and 0.93 in the next.
    assert published["SEG", "SMC1v1", "error"] == pytest.approx((0.0592, 0.0156))
    assert published["SEG", "SSMC1v1", "error"] == pytest.approx((0.0566, 0.0093))
    assert published["WAV", "PWC_KLR", "log-loss"] == pytest.approx((0.4132, 0.0436))
    deviations = [p.deviation for (_, _, metric), p in published.items() if metric == "error"]
    assert 0.002 < min(deviations) < max(deviations) < 0.02


def test_published_p_values_are_all_there():
    published = published_p_values()
    assert sum(map(len, published.values())) == 145
    assert published["WTA_KLR", "WTA_SVM", "error"]["SEG"] == 2.5044e-5
    assert published["SSMC1v1", "SMC1v1", "log-loss"]["SAT"] == 1.0274e-4
    assert published["PWC_KLR", "SSMC1v1", "error"]["WAV"] == 0.6631
    against = {pair.second for pair in published if pair.first == "PWC_KLR"}
    assert against == set(PAPER) - {"PWC_PSVM", "PWC_KLR"}


values = arrays(np.float64, 8, elements=st.integers(0, 50).map(lambda n: n / 50))


@settings(deadline=None, max_examples=25)
@given(values, values)
def test_p_values_are_those_of_the_one_sided_paired_test(first, second):
    p = p_value(first, second)
    assert p_value(second, first) == pytest.approx(1 - p)
    if np.ptp(first - second) > 1e-9:
        assert p == pytest.approx(ttest_rel(first, second, alternative="less").pvalue)


def test_p_values_without_variation():
    same, more = np.full(3, 0.25), np.full(3, 0.5)
    assert (p_value(same, same), p_value(same, more), p_value(more, same)) == (0.5, 0.0, 1.0)
    assert np.isnan(p_value(same[:1], more[:1]))
    # Errors as they are read from a file: 25 and 19 of 1763, 22 and 16 of 1763.
    first, second = (
        np.array([0.01418037436, 0.01247872944]),
        np.array([0.01077708452, 0.0090754396]),
    )
    assert p_value(first, second) == 1.0


# ---------------------------------------------------------------------- claims and page


def invented(errors, losses=None, n=PARTITIONS, spread=0.01, data=tuple(partitions.SOURCES)):
    """Rows with given means by method, relative to 10 %; deviations are small and shared."""
    rng = np.random.default_rng(0)
    rows = []
    for name, number in product(data, range(1, n + 1)):
        common = 1 + rng.normal(0, 5 * spread)
        for method in ALL_METHODS:
            draws = common + rng.normal(0, spread, 2)
            base = method if method in PAPER else "PWC_PSVM"
            measured = {"error": 0.1 * errors.get(base, 1.0) * draws[0]}
            if method in WITH_PROBABILITIES:
                loss = 0.3 * (losses or errors).get(base, 1.0) * draws[1]
                measured |= {"log-loss": loss, "brier": loss / 2, "mse": loss / 6}
            if method in PAPER:
                measured |= {"log10 C": 1.0, "log10 sigma2": 1.0, "cv-error": 0.1}
            if method.startswith("SMC"):
                measured[tables.SOFTMAX_C] = -3.0
            rows += [
                Measurement("duan2003-tables", name, str(number), method, metric, value)
                for metric, value in measured.items()
            ]
    return rows


BETTER = {
    "SMC1va": 1.02,
    "SSMC1va": 1.0,
    "WTA_SVM": 1.1,
    "WTA_PSVM": 1.09,
    "WTA_KLR": 0.98,
    "SMC1v1": 1.1,
    "SSMC1v1": 1.0,
    "MWV_SVM": 1.2,
    "MWV_PSVM": 0.99,
    "MWV_KLR": 0.96,
    "PWC_PSVM": 0.9,
    "PWC_KLR": 0.9,
}
LOSSES = BETTER | {"SMC1va": 1.2, "SMC1v1": 1.2}
WORSE = {
    "SMC1va": 0.9,
    "SSMC1va": 1.1,
    "WTA_SVM": 0.8,
    "WTA_PSVM": 1.0,
    "WTA_KLR": 1.2,
    "SMC1v1": 0.9,
    "SSMC1v1": 4.0,
    "MWV_SVM": 0.7,
    "MWV_PSVM": 0.9,
    "MWV_KLR": 1.1,
    "PWC_PSVM": 1.3,
    "PWC_KLR": 1.3,
}
TABLES, (*ABOUT_MEANS, VARIANCES, SMALLEST) = CLAIMS[:3], CLAIMS[3:]


@pytest.mark.parametrize("claim", ABOUT_MEANS, ids=lambda c: c.text[:30])
def test_claims_hold_where_they_are_true(claim):
    assert claim.decide(invented(BETTER, LOSSES)).holds is True


@pytest.mark.parametrize("claim", ABOUT_MEANS, ids=lambda c: c.text[:30])
def test_claims_do_not_hold_where_they_are_false(claim):
    assert claim.decide(invented(WORSE)).holds is False


def test_tables_are_compared_with_the_published_means():
    values = published_values()
    rows = [
        row._replace(value=values[row.data, row.method, row.metric].mean)
        for row in invented(BETTER)
        if (row.data, row.method, row.metric) in values
    ]
    for claim in TABLES:
        assert claim.decide(rows).holds is True
        assert claim.decide(invented(WORSE)).holds is False
        assert claim.decide([]).holds is None


def test_a_difference_that_excludes_the_printed_one_does_not_hold():
    claim = next(claim for claim in CLAIMS if claim.key == "ssmc1v1")
    slightly = BETTER | {"SSMC1v1": 1.0, "SMC1v1": 1.0001}
    assert claim.decide(invented(slightly, LOSSES)).holds is False  # printed: about -5 %
    assert "-4." in claim.published()


def test_smallest_variances():
    rows = invented(BETTER)
    for method in ("PWC_PSVM", "PWC_KLR"):
        rows = varying(method, "error", 0.01, rows)
    assert SMALLEST.decide(rows).holds is True
    assert SMALLEST.decide(varying("PWC_KLR", "error", 300, rows)).holds is False
    assert "ABE" in SMALLEST.published()


@pytest.mark.parametrize("claim", CLAIMS[3:], ids=lambda c: c.text[:30])
def test_claims_cannot_be_told_from_little(claim):
    assert claim.decide([]).holds is None
    assert claim.decide(invented(BETTER, LOSSES, n=1)).holds is None
    verdict = claim.decide(invented(BETTER, LOSSES, n=2, data=("ABE", "WAV")))
    assert verdict.holds is None
    assert "DNA, SAT, SEG" in verdict.evidence


@pytest.mark.parametrize(
    ("needs", "number"),
    [
        ([Needed(30.0, 20.0)], 20),
        # With 21 partitions the first answer is yes, and 23 cannot make it no any more.
        ([Needed(21.0, 23.0), Needed(120.0, 90.0)], 90),
    ],
)
def test_the_number_of_partitions_that_would_decide(needs, number):
    assert _power([None] * len(needs), needs) == (
        f"To tell, about {number} partitions would be needed."
    )


def test_claims_are_silent_where_partitions_vary_too_much():
    for claim in ABOUT_MEANS[1:]:
        verdict = claim.decide(invented({}, n=3, spread=0.3))
        assert verdict.holds is None
        assert "partitions would be needed" in verdict.power


def varying(method, metric, factor, rows):
    """Let a method vary more around its mean of each data set."""
    means = {}
    for row in rows:
        if (row.method, row.metric) == (method, metric):
            means.setdefault(row.data, []).append(row.value)
    return [
        row._replace(
            value=np.mean(means[row.data]) + factor * (row.value - np.mean(means[row.data]))
        )
        if (row.method, row.metric) == (method, metric)
        else row
        for row in rows
    ]


def test_the_claim_about_variances():
    claim, rows = VARIANCES, invented(BETTER)
    as_said = varying("PWC_KLR", "log-loss", 3, varying("PWC_PSVM", "error", 3, rows))
    turned = varying("PWC_PSVM", "log-loss", 3, varying("PWC_KLR", "error", 3, rows))
    assert claim.decide(as_said).holds is True
    assert claim.decide(turned).holds is False
    assert claim.decide(invented(BETTER, n=3)).holds is None


def test_differences_are_relative_and_paired():
    rows = [
        Measurement("duan2003-tables", data, str(number), method, "error", scale * value)
        for data, scale in (("ABE", 0.01), ("WAV", 0.15))
        for number in (1, 2)
        for method in PAPER
        for value in [1.2 + 0.1 * number if method == "WTA_SVM" else 0.8 + 0.1 * number]
    ]
    gaps = Table(rows).relative_differences(["ABE", "WAV"], ["WTA_SVM"], "WTA_KLR")
    np.testing.assert_allclose(gaps, [0.4 / 1.15] * 2)
    alike = Table(rows).relative_differences(["ABE", "WAV"], ["WTA_SVM", "WTA_KLR"], "SMC1va")
    np.testing.assert_allclose(alike, [0.2 / 1.05] * 2)


def test_partitions_count_where_all_methods_have_been_measured():
    rows = invented(BETTER, n=3, data=("ABE", "WAV"))
    rows = [r for r in rows if (r.data, r.split, r.method) != ("ABE", "2", "WTA_KLR")]
    table = Table(rows)
    assert table.partitions("ABE") == [1, 3]
    assert table.partitions("ABE", "WAV") == [1, 3]
    assert table.data() == ["ABE", "WAV"]
    assert table.data(at_least=3) == ["WAV"]


def test_the_section_shows_what_was_measured(tmp_path):
    pytest.importorskip("matplotlib")
    rows = invented(BETTER, LOSSES)
    text = section(rows, tmp_path)
    found = Table(rows).values("SEG", "WTA_SVM")
    theirs = published_values()["SEG", "WTA_SVM", "error"]
    distance = (found.mean() - theirs.mean) / (theirs.deviation * np.sqrt(1 / 20 + 1 / 20))
    cell = (
        f"{100 * found.mean():.2f} ± {100 * found.std(ddof=1):.2f} (6.56 ± 0.88; {distance:+.1f})"
    )
    assert cell in text
    assert "of the same sizes" in text
    p = p_value(Table(rows).values("WAV", "SSMC1v1"), Table(rows).values("WAV", "SMC1v1"))
    line = next(x for x in text.splitlines() if x.startswith("| SSMC1v1 | SMC1v1 | error |"))
    assert line.endswith(f"{p:.0e} (0.6939) |")
    assert "5 of 145 published p-values are impossible" in text
    assert "PWC_KLR against WTA_SVM on SAT" in text
    assert (tmp_path / "duan2003-tables.png").stat().st_size > 10_000


def test_the_section_of_one_partition_of_smaller_sets(tmp_path):
    pytest.importorskip("matplotlib")
    rows = invented(BETTER, LOSSES, n=1, data=("WAV",))
    rows.append(Measurement("duan2003-tables", "WAV", "1", "SVM 1va", tables.SIZE, 90))
    text = section(rows, tmp_path)
    assert "WAV 1 × 90" in text
    assert "(WAV 300), so the numbers are not comparable" in text
    assert "nan" not in text
    assert "SEG" not in text.split("**P-values**")[0].split("**Table 2**")[1]


def test_the_section_waits_for_a_whole_partition(tmp_path):
    rows = [r for r in invented(BETTER, n=1) if r.method != "PWC_KLR"]
    assert "No partition is finished" in section(rows, tmp_path)


def test_the_page_has_all_claims(tmp_path):
    pytest.importorskip("matplotlib")
    results = tmp_path / "results.csv"
    rows = invented(BETTER, LOSSES, n=2, data=("ABE", "WAV"))
    rows.append(Measurement("duan2003-tables", "WAV", "2", "KLR 1v1", "seconds", 1.0))
    lines = [",".join(map(str, (*r[:3], f'"{r.method}"', *r[4:]))) for r in rows]
    header = "experiment,data,split,method,metric,value"
    results.write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    page = pages.write_page("duan2003", TITLE, list(EXPERIMENTS), "paper", tmp_path).read_text()
    assert page.count("Criterion") == len(CLAIMS)
    assert json.loads((tmp_path / "config.json").read_text())["scale"] == "paper"


def test_kernel_logistic_learners_are_told_by_their_class():
    assert {recipe.family[0] for recipe in RECIPES.values()} == {SVC, KernelLogisticRegression}
