"""The harness of benchmarks/quality: its cases, peers, results and tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.utils.fixes import parse_version

from benchmarks.quality import cases, official, peers, results, run, tables
from experiments.datasets import Dataset

ROW = results.Row("iris-100s-10", "C=1", "ours", 0.1, 0.2, 0.03, 0.5, 3, 70)


def numbered(name: str, split: np.ndarray | None) -> Dataset:
    """Return a set whose only feature is the number of the row."""
    X = np.arange(900.0)[:, None]
    y = np.random.default_rng(0).integers(0, 5, 900)
    return Dataset(name, X, y, split, ("row",), False, "here")


@pytest.mark.parametrize("name", ["letter", "segment", "wine"])
def test_cases_have_no_row_of_a_test_part(name, monkeypatch):
    """With an official split, with one that is not used, and without one."""
    split = np.where(np.arange(900) % 3 == 0, "test", "train")
    data = numbered(name, None if name == "wine" else split)
    monkeypatch.setattr(cases.datasets, "load", lambda name: data)
    cases.both_parts.cache_clear()
    try:
        _, held_out, _, _ = cases.both_parts(name)
        if name == "letter":
            np.testing.assert_array_equal(held_out, data.X[split == "test"])
        for unbalanced in (False, True):
            case = cases.Case(name, 1, 200, standardised=False, unbalanced=unbalanced)
            X, X_test, _, _ = case.parts()
            assert not np.isin(held_out, [*X, *X_test]).any()
            assert not np.isin(X, X_test).any()
            np.testing.assert_array_equal(X, case.parts()[0])
    finally:
        cases.both_parts.cache_clear()


def test_cases_have_different_keys():
    for keys in (
        [(case.key, C) for case, C in cases.svm_cases("core")],
        [case.key for scale in ("core", "wide") for case in cases.learner_cases(scale)],
    ):
        assert len(set(keys)) == len(keys)


def test_results_survive_storage(tmp_path):
    path = tmp_path / "results.csv"
    rows = [ROW, replace(ROW, case='a "b", c-10-1'), replace(ROW, model="x", log_loss=np.nan)]
    results.append(path, rows[:1])
    results.append(path, rows[1:])
    later = replace(ROW, log_loss=1 / 3)
    results.append(path, [later])
    expected = {row.key: row for row in [*rows[1:], later]}
    for _ in range(2):
        found = results.read(path)
        assert found.keys() == expected.keys()
        assert all(repr(found[key]) == repr(expected[key]) for key in found)
        results.tidy(path)


def test_measures_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), 50)
    p[0] = [0, 1, 0, 0]
    y = rng.integers(0, 3, 50)  # no row of the last class
    y[0] = 0
    p[1:] = np.clip(p[1:], 1e-9, None)
    p /= p.sum(axis=1, keepdims=True)
    loss, _, error = results.measured(p, y)
    clipped = np.clip(p, 1e-15, 1)
    assert loss == pytest.approx(log_loss(y, clipped, labels=range(4)), rel=1e-9)
    assert error == np.mean(p.argmax(axis=1) != y)


@pytest.mark.parametrize("method", peers.METHODS)
@pytest.mark.parametrize("ensemble", [False, True])
def test_shared_fits_change_no_bit(method, ensemble):
    if method == "temperature" and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("scikit-learn scales by a temperature since 1.8")
    X, y = load_iris(return_X_y=True)
    shared = peers.Shared(SVC(C=10), peers.Store())
    model = peers.Calibrated(shared, method, ensemble)
    expected = CalibratedClassifierCV(SVC(C=10), method=method, ensemble=ensemble, cv=5).fit(X, y)
    for _ in range(2):  # computed, recalled
        p = clone(model).fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(p, expected.predict_proba(X))


def test_rare_classes_reduce_folds_and_single_rows_fail():
    X, y = load_iris(return_X_y=True)
    rows = np.r_[:53, 100:150]
    assert peers.folds(y[rows]) == 3
    store = peers.Shared(GaussianNB(), peers.Store())
    models = {
        "itself": peers.Peer(store),
        "sigmoid": peers.Peer(peers.Calibrated(store, "sigmoid", False)),
    }
    rows = np.r_[:51, 100:150]
    found = list(peers.outcomes(models, {"itself", "sigmoid"}, X[rows], y[rows], X))
    assert found[0].p is not None and found[1].p is None and "one row" in found[1].error


def test_runs_compute_what_is_missing(tmp_path, capsys):
    path = tmp_path / "quality.csv"
    case = cases.Case("iris", 10, 60)
    job = run.learner_job(case.key, "iris", case.parts, "naive-bayes")
    run.run([job], path, models="ours")
    run.run([job], path, models="ours")
    run.run([job], path, models="ours", label="before")
    assert [row.model for row in results.read(path).values()] == ["ours", "before"]
    assert len(path.read_text("utf-8").splitlines()) == 3
    assert capsys.readouterr().out.count("1/1") == 2


def test_unknown_classes_are_left_out_of_the_test_rows():
    X = np.arange(4.0)[:, None]
    _, X_test, y, y_test = run.known_classes((X, X, np.array([0, 2, 2, 0]), np.array([0, 1, 2, 3])))
    np.testing.assert_array_equal(y, [0, 1, 1, 0])
    np.testing.assert_array_equal(y_test, [0, 1])
    np.testing.assert_array_equal(X_test, X[[0, 2]])


def test_best_alternative_per_set_and_per_case():
    """Each of two alternatives is best in one case; over the set they are equal."""
    losses = {"ours": (0.2, 0.2), "sigmoid": (0.1, 0.4), "isotonic": (0.4, 0.1)}
    rows = [
        replace(ROW, case=f"iris-100-{seed}", model=model, log_loss=loss[seed])
        for model, loss in losses.items()
        for seed in range(2)
    ]
    figures = tables.figures_of(rows, "svm")
    assert figures.best("iris", "ours", figures.peers)[0] == pytest.approx(1)
    assert list(figures.to_best_by_case("ours").values()) == pytest.approx([2, 2])
    header, body = tables.summary(figures)
    assert dict(zip(header, body[0], strict=True))["lost per case"] == "2 of 2"


def test_official_splits_are_computed_once(tmp_path):
    log, calls = tmp_path / "log.csv", []

    def compute(jobs, path, **options):
        calls.append(path.name)

    official.official("ours", log=log, compute=compute)
    assert calls == ["quality-svm-official.csv", "quality-learners-official.csv"]
    with pytest.raises(SystemExit, match="--again REASON"):
        official.official("ours", log=log, compute=compute)
    official.official("before", log=log, compute=compute)
    official.official("ours", again="a fault", log=log, compute=compute)
    assert calls[-1] == "quality-learners-official-2.csv"
    assert [entry["reason"] for entry in official.read(log)].count("a fault") == 1
