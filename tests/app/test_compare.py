from __future__ import annotations

import sys
from dataclasses import replace

import naive_compare as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from manyclass import CoupledClassifier, CoupledSVC

pd = pytest.importorskip("pandas", reason="comparisons need pandas")

from manyclass.app import compare as comparing  # noqa: E402
from manyclass.app import early, snippet  # noqa: E402
from manyclass.app.arguments import BASELINE, parser  # noqa: E402
from manyclass.app.arguments import CANDIDATES as NAMES  # noqa: E402
from manyclass.app.candidates import (  # noqa: E402
    Candidate,
    Size,
    WithPlaces,
    build,
    choose,
    from_factory,
    seeded,
)
from manyclass.app.columns import column_transformer  # noqa: E402
from manyclass.app.compare import compare  # noqa: E402
from manyclass.app.inputs import (  # noqa: E402
    draw,
    encode,
    sample,
    shuffled_folds,
    size_of,
    split_folds,
)
from manyclass.app.leaderboard import Entry  # noqa: E402
from manyclass.app.page_contents import class_scores, confusion, data, most_incoherent  # noqa: E402
from manyclass.app.report import as_text, short_names  # noqa: E402
from manyclass.app.scoring import FIT, METRICS, PREDICT  # noqa: E402
from manyclass.app.snippet import Source, program  # noqa: E402
from manyclass.app.tables import read_table  # noqa: E402

SVC, BAYES = "svc", "bayes"


def both() -> dict:
    return {SVC: CoupledSVC(), BAYES: GaussianNB()}


@pytest.fixture(scope="module")
def wine():
    return read_table("wine")


@pytest.fixture(scope="module")
def board(wine):
    return compare(*wine, candidates=both(), cv=3)


def table(n_rows: int = 90, n_classes: int = 3, seed: int = 0):
    """Rows with a number, a category and missing values."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_rows) % n_classes
    X = pd.DataFrame({"number": y + rng.randn(n_rows), "kind": rng.choice(["a", "b", "c"], n_rows)})
    X.loc[::7, "number"] = np.nan
    X.loc[::11, "kind"] = None
    return X, y


# ---------------------------------------------------------------------- folds and rows


@settings(deadline=None, max_examples=30)
@given(
    counts=st.lists(st.integers(1, 12), min_size=2, max_size=6).filter(lambda c: max(c) > 1),
    n_folds=st.integers(2, 6),
    seed=st.integers(0, 100),
)
def test_folds_leave_out_every_row_once_and_keep_every_class(counts, n_folds, seed):
    y = np.random.RandomState(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    folds = shuffled_folds(n_folds, y, seed)
    tested = np.concatenate([test for _, test in folds])
    single = np.flatnonzero(np.array(counts)[y] == 1)
    np.testing.assert_array_equal(np.sort(tested), np.setdiff1d(np.arange(len(y)), single))
    for train, test in folds:
        assert len(test) > 0
        assert set(y[train]) == set(range(len(counts)))
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(y)))
    for again, (_, test) in zip(shuffled_folds(n_folds, y, seed), folds, strict=True):
        np.testing.assert_array_equal(again[1], test)


@settings(deadline=None, max_examples=30)
@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=6),
    n=st.integers(2, 150),
    seed=st.integers(0, 100),
)
def test_drawn_rows_keep_the_share_of_each_class(counts, n, seed):
    y = np.repeat(np.arange(len(counts)), counts)
    rows = draw(y, n, seed)
    assert len(set(rows)) == len(rows) and (np.diff(rows) > 0).all()
    kept = np.bincount(y[rows], minlength=len(counts))
    share = np.array(counts) * n / len(y)
    fair = np.abs(kept - share) <= 0.5
    assert (fair | (kept == np.minimum(counts, 2)) | (n >= len(y))).all()
    assert (kept >= np.minimum(counts, 2)).all()


def test_sample_keeps_names_of_rows(wine):
    X, y = sample(*wine, 40, random_state=3)
    assert len(X) == pytest.approx(40, abs=2)
    pd.testing.assert_series_equal(y, wine[1].loc[X.index])
    with pytest.raises(ValueError, match="rows must be at least 2, got 1"):
        sample(*wine, 1)


@pytest.mark.parametrize(
    "labels, classes",
    [
        (["b", "a", "b"], ["a", "b"]),
        ([3, 1, 3], [1, 3]),
        (np.array([True, False, True]), [False, True]),
        ([2, "a", 1.5], [1.5, 2, "a"]),
        (np.array(["x", "", "x"]), ["", "x"]),
        (np.array([10, 9, 10], dtype=np.uint8), [9, 10]),
    ],
)
def test_labels_of_any_type_become_places(labels, classes):
    found, target = encode(labels, 3)
    assert found == classes
    assert [found[c] for c in target] == list(labels)
    assert encode(pd.Series(labels), 3)[0] == classes


def test_bad_input_is_named(wine):
    X, y = wine
    for bad, message in [
        ((X, y[:5]), "y has 5 labels, but X has 178 rows"),
        ((X, [None, *y[1:]]), "y has 1 missing labels, the first in row 0"),
        ((X, ["a"] * 178), "only one class, 'a'"),
        ((X, np.arange(178)), "each of the 178 classes has a single row"),
        ((X.iloc[:, [0, 0]], y), "more than one column"),
        ((X.iloc[:, :0], y), "at least one row and one column"),
        ((np.array([["a"]]), ["b"]), "pass a DataFrame, or a two-dimensional array of numbers"),
    ]:
        with pytest.raises(ValueError, match=message):
            compare(*bad, candidates=both())
    for options, message in [
        ({"cv": 1}, "folds .* must be at least 2, got 1"),
        ({"metrics": "loss"}, "metrics must be some of log-loss, Brier, error, calibration"),
        ({"cv": [([0, 1], [])]}, "a fold has no rows"),
        ({"groups": ["a"] * 178}, "all rows are of the same group"),
        ({"metrics": []}, "metrics must be some of"),
        ({"candidates": {}}, "candidates is empty"),
        ({"candidates": [Candidate("a", GaussianNB())] * 2}, "names 'a' twice"),
        ({"candidates": [GaussianNB()]}, "list of Candidate"),
        ({"candidates": {"a": GaussianNB}}, "not its class"),
    ]:
        with pytest.raises(ValueError, match=message):
            compare(X, y, **{"candidates": both(), **options})


# ---------------------------------------------------------------------- what is measured


def test_every_fold_is_that_of_a_plain_loop(wine, board):
    X, y = wine
    classes, target = encode(y, len(X))
    for name, estimator in both().items():
        entry = board[name]
        for i, (train, test) in enumerate(board.folds):
            model = Pipeline([("columns", column_transformer(X)), ("model", estimator)])
            p = model.fit(X.iloc[train], y.iloc[train]).predict_proba(X.iloc[test])
            np.testing.assert_array_equal(entry.proba[test], p)
            truth = target[test]
            for metric, oracle in [
                ("log-loss", naive.log_loss),
                ("Brier", naive.brier),
                ("error", naive.error),
                ("calibration", naive.calibration),
            ]:
                assert entry.values[metric][i] == pytest.approx(oracle(truth, p), abs=1e-12)
        values = entry.values["log-loss"]
        assert entry.mean("log-loss") == pytest.approx(sum(values) / 3)
        assert entry.error("log-loss") == pytest.approx(np.std(values, ddof=1) / 3**0.5)
        assert (entry.values[FIT] > 0).all() and (entry.values[PREDICT] > 0).all()
    assert board.classes == classes


def test_incoherence_and_code_are_those_of_the_left_out_rows(wine, board):
    X, _ = wine
    train, test = board.folds[0]
    model = board[SVC].pipeline.fit(X.iloc[train], board.target[train])
    expected = model[-1].incoherence(model[:-1].transform(X.iloc[test]))
    np.testing.assert_array_equal(board[SVC].incoherence[test], expected)
    np.testing.assert_array_equal(board[SVC].code, model[-1].code_)
    assert board[BAYES].incoherence is None and board[BAYES].code is None


def test_best_comes_first_by_the_first_metric(wine):
    boards = [
        compare(*wine, candidates=both(), cv=3, metrics=metrics)
        for metrics in (["log-loss"], ["error", "log-loss"])
    ]
    for found in boards:
        means = [entry.mean(found.metrics[0]) for entry in found]
        assert means == sorted(means) and found.best is found.entries[0]
    assert set(boards[1].best.values) == {"error", "log-loss", FIT, PREDICT}


def test_same_seed_same_bits_whatever_the_number_of_jobs(wine):
    candidates = {"forest": RandomForestClassifier(5), SVC: CoupledSVC()}
    first = compare(*wine, candidates=candidates, cv=2, random_state=7)
    second = compare(*wine, candidates=candidates, cv=2, random_state=7, n_jobs=2)
    other = compare(*wine, candidates=candidates, cv=2, random_state=8)
    for name in candidates:
        np.testing.assert_array_equal(first[name].proba, second[name].proba)
        assert (first[name].proba != other[name].proba).any()
    assert candidates["forest"].random_state is None
    assert first["forest"].pipeline[-1].random_state == 7


def test_seeds_that_are_set_stay():
    model = CoupledClassifier(RandomForestClassifier(random_state=3))
    made = seeded(model, 5)
    assert (made.random_state, made.estimator.random_state) == (5, 3)


def test_arrays_frames_and_labels_give_the_same(wine):
    X, y = wine
    frame = compare(X, y, candidates=both(), cv=2)
    array = compare(X.to_numpy(), y.tolist(), candidates=both(), cv=2)
    float32 = X.to_numpy(dtype=np.float32)
    float32.flags.writeable = False
    rounded = compare(float32, y.to_numpy(), candidates=both(), cv=2)
    np.testing.assert_array_equal(frame[SVC].proba, array[SVC].proba)
    np.testing.assert_allclose(frame[BAYES].proba, rounded[BAYES].proba, atol=1e-3)


def test_categories_and_missing_values_also_for_dense_classifiers():
    X, y = table()
    X["many"] = [f"v{i % 40}" for i in range(len(X))]
    candidates = {"boosting": HistGradientBoostingClassifier(max_iter=3), SVC: CoupledSVC()}
    found = compare(X, y, candidates=candidates, cv=2)
    assert not found.failed
    about = found.description
    assert about.missing == {"number": 13, "kind": 9} and about.n_missing == 22
    assert about.kinds == {"category": 2, "number": 1}
    assert about.class_counts == {0: 30, 1: 30, 2: 30}


def test_useless_columns_are_noted():
    X, y = table()
    X["same"] = 1.0
    found = compare(X, y, candidates={BAYES: GaussianNB()}, cv=2)
    assert any("'same'" in note for note in found.notes)


# ---------------------------------------------------------------------- rare classes


def test_rare_classes_are_tested_where_they_can_be_and_noted():
    X, _ = table(41)
    y = np.array(["a"] * 20 + ["b"] * 18 + ["few"] * 2 + ["alone"])
    found = compare(X, y, candidates={BAYES: GaussianNB(), SVC: CoupledSVC()}, cv=4)
    assert not found.failed and len(found.folds) == 4
    tested, p = found[SVC].tested()
    assert np.isfinite(p).all()
    assert set(range(41)) - set(tested.tolist()) == {40}
    assert "class 'few' has fewer rows than there are folds" in found.notes[0]
    assert "class 'alone' has a single row, which is always trained on" in found.notes[1]
    assert any("single sample" in note for note in found[SVC].notes)


def test_fewer_folds_where_no_class_has_enough():
    X, _ = table(6)
    found = compare(X, ["a", "b", "c"] * 2, candidates={BAYES: GaussianNB()}, cv=5)
    assert len(found.folds) == 2
    assert "2 folds instead of 5" in found.notes[0]


def test_two_classes(wine):
    X, y = wine
    two = y != y.unique()[2]
    found = compare(X[two], y[two], candidates=both(), cv=3)
    assert len(found.classes) == 2 and not found.failed
    assert found.best.mean("log-loss") < 0.3


# ---------------------------------------------------------------------- failures


class Stumbling(ClassifierMixin, BaseEstimator):
    """Fails, or answers nonsense, in one of many ways."""

    def __init__(self, how="fit", log=None):
        self.how = how
        self.log = log

    def fit(self, X, y):
        if self.log is not None:
            self.log.append(len(y))
        if self.how == "fit":
            raise RuntimeError("no\nfit \x1b[31m" + "!" * 500)
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        shape = {"shape": (X.shape[0], 7)}.get(self.how, (X.shape[0], len(self.classes_)))
        return np.full(shape, {"nan": np.nan, "sum": 2.0}.get(self.how, 1 / 3))


@pytest.mark.parametrize(
    "estimator, reason",
    [
        (Stumbling("fit"), "RuntimeError: no fit"),
        (Stumbling("nan"), "NaN"),
        (Stumbling("shape"), "has shape (60, 7), not (60, 3)"),
        (Stumbling("sum"), "values"),  # greater than 1: the words are of scikit-learn
        (Perceptron(), "no predict_proba, and this compares probabilities: CoupledClassifier(Per"),
        (CoupledSVC(combiner="max-wins"), "choose a coupling rule as its combiner"),
        (LogisticRegression(C=-1), "'C' parameter"),
    ],
)
def test_failures_are_reported_and_the_rest_goes_on(wine, estimator, reason):
    found = compare(*wine, candidates={"bad": estimator, BAYES: GaussianNB()}, cv=3)
    assert [entry.name for entry in found] == [BAYES, BASELINE, "bad"]
    failure = found["bad"].failure
    assert reason in failure and len(failure) <= 300 and "\n" not in failure
    assert "\x1b" not in failure
    assert found["bad"].values == {} and found["bad"].proba is None
    assert f"bad  failed: {failure}" in str(found)
    assert found.frame.loc["bad", "failure"] == failure


def test_after_a_failure_no_other_fold_is_fitted(wine):
    steps = []
    bad = Candidate("bad", Stumbling())
    found = compare(*wine, candidates=[bad], cv=3, progress=steps.append)
    steps = [step for step in steps if step.name == "bad"]
    assert len(steps) == 1 and steps[0].failure == found["bad"].failure
    assert found.measured == [] and found.pick is None
    assert found.verdict() == "No candidate was finished: there is none to pick."
    with pytest.raises(ValueError, match="every candidate failed"):
        _ = found.best


def test_warnings_become_notes(wine, recwarn):
    X, y = wine
    found = compare(X, y, candidates={"short": LogisticRegression(max_iter=1)}, cv=2)
    assert any("lbfgs failed to converge" in note for note in found["short"].notes)
    assert any(note.startswith("short: ") for note in found.all_notes)
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


def test_progress_counts_folds(wine):
    steps = []
    compare(*wine, candidates=both(), cv=2, progress=steps.append)
    assert [(s.name, s.fold, s.n_folds) for s in steps] == [
        (BASELINE, 1, 2),
        (BASELINE, 2, 2),
        (SVC, 1, 2),
        (SVC, 2, 2),
        (BAYES, 1, 2),
        (BAYES, 2, 2),
    ]
    done = [s.done for s in steps]
    assert done == sorted(done) and done[-1] == 1.0


def test_progress_counts_work(wine):
    steps = []
    cheap, dear = Candidate("cheap", GaussianNB()), Candidate("dear", GaussianNB(), work=8.9)
    compare(*wine, candidates=[cheap, dear], cv=2, progress=steps.append)
    assert [round(s.done, 2) for s in steps if s.fold == 2] == [0.01, 0.11, 1.0]


def test_a_time_budget_ends_a_comparison(wine):
    class Slow(GaussianNB):
        def fit(self, X, y):
            import time

            time.sleep(0.4)
            return super().fit(X, y)

    candidates = {"slow": Slow(), "late": GaussianNB()}
    found = compare(*wine, candidates=candidates, cv=5, time_budget=1.0)
    assert "beyond the time budget" in found["slow"].failure
    none = compare(*wine, candidates={"late": GaussianNB()}, cv=2, time_budget=1e-9)
    assert "used up before it" in none["late"].failure and none.pick is None


# ---------------------------------------------------------------------- noise


def with_values(board, **values):
    """The board with other log-losses, in the order given."""
    entries = [
        Entry(
            Candidate(name, GaussianNB()),
            None,
            values={m: np.array(losses) for m in board.metrics}
            | {FIT: np.full(3, seconds), PREDICT: np.ones(3)},
        )
        for name, (losses, seconds) in values.items()
    ]
    return replace(board, entries=tuple(entries))


@settings(deadline=None, max_examples=20)
@given(st.lists(st.floats(0, 5), min_size=6, max_size=6))
def test_differences_are_paired_and_corrected(board, losses):
    found = with_values(board, a=(losses[:3], 1.0), b=(losses[3:], 1.0))
    a, b = found.entries
    sizes = [(len(train), len(test)) for train, test in board.folds]
    expected = naive.corrected_interval(losses[:3], losses[3:], sizes)
    gap = found.difference(a, b)
    np.testing.assert_allclose((gap.mean, gap.low, gap.high), expected, atol=1e-12)
    assert gap.is_noise == (gap.low <= 0 <= gap.high)


def test_verdict_says_what_a_person_would(board):
    clear = with_values(board, a=([0.1, 0.2, 0.3], 2.0), b=([0.5, 0.61, 0.7], 1.0))
    assert clear.tied == [] and clear.pick.name == "a"
    assert clear.verdict().startswith("Pick a (log-loss 0.200): it is better than b, the next, by")
    near = with_values(
        board,
        a=([0.1, 0.2, 0.3], 30.0),
        b=([0.3, 0.2, 0.2], 20.0),
        c=([0.3, 0.1, 0.3], 0.2),
        d=([5.0, 5.1, 5.2], 0.1),
    )
    assert [entry.name for entry in near.tied] == ["b", "c"] and near.pick.name == "c"
    verdict = near.verdict()
    assert verdict.startswith(
        "No clear winner: c is 150 times faster to fit; a (log-loss 0.200) may"
    )
    assert "may be better by 0.033 ± " in verdict
    fast = with_values(board, a=([0.1, 0.2, 0.3], 1.0), b=([0.3, 0.2, 0.2], 2.0))
    assert "a (log-loss 0.200) is first and the fastest of those as good; it may" in fast.verdict()
    alike = with_values(board, a=([0.1, 0.2, 0.3], 1.1), b=([0.3, 0.2, 0.2], 1.0))
    assert alike.pick.name == "a" and "fast" not in alike.verdict()
    similar = {"b": ([0.3, 0.2, 0.2], 1.0), "c": ([0.3, 0.1, 0.3], 1.2)}
    near = with_values(board, a=([0.1, 0.2, 0.3], 9.0), **similar)
    assert near.pick.name == "b"
    simple = replace(near.entries[2], candidate=Candidate("c", LogisticRegression()))
    near = replace(near, entries=(*near.entries[:2], simple))  # whichever is faster today
    assert near.pick.name == "c" and "c is simplest and 7.5 times faster" in near.verdict()
    alone = with_values(board, a=([0.1, 0.2, 0.3], 2.0))
    assert "the only candidate" in alone.verdict()
    equal = with_values(board, a=([0.1] * 3, 2.0), b=([0.1] * 3, 3.0))
    assert equal.difference(*equal.entries).is_noise
    assert equal.verdict().endswith("; b is just as good.")


def test_seconds_are_those_of_a_usual_fold(board):
    compiled = replace(board.best, values=board.best.values | {FIT: np.array([9.0, 0.1, 0.2])})
    assert compiled.mean(FIT) == 0.2


def test_no_candidate_is_clearly_worse_than_one_of_a_lower_rank(board):
    found = with_values(
        board,
        a=([0.1, 0.2, 0.3], 1.0),
        b=([0.2, 0.3001, 0.4], 1.0),  # behind by 0.1 everywhere
        c=([0.6, 0.1, 0.3], 1.0),  # behind by more, and anywhere
    )
    gaps = [found.difference(entry, found.best) for entry in found.entries[1:]]
    assert not gaps[0].is_noise and gaps[1].is_noise
    assert [entry.name for entry in found.tied] == ["c"]
    assert found.standing(found["b"]) == "perhaps worse"
    assert found.standing(found["c"]) == "as good, within noise"


def test_what_may_be_as_good_has_an_interval_that_says_so(board):
    """A fast candidate is no pick if its own interval says that it is worse."""
    found = with_values(
        board,
        a=([0.1, 0.2, 0.3], 9.0),
        b=([0.2, 0.3001, 0.4], 0.1),  # fast, and behind by 0.1 everywhere
        c=([0.6, 0.1, 0.3], 8.0),
    )
    assert found.pick.name == "a"
    assert "it may be better than c by 0.133 ± " in found.verdict()
    assert "told from" not in found.verdict()


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ([1.3, 1.31, 1.33], "Pick none: even a is worse than class frequencies alone"),
        ([1.0, 1.2, 1.1], "Pick none: no candidate is clearly better than class frequencies alone"),
        ([0.3, 0.31, 0.3], "Pick a (log-loss 0.303), the only candidate. Class frequencies alone"),
    ],
)
def test_nothing_is_picked_that_is_not_clearly_better_than_guessing(board, losses, verdict):
    found = with_values(board, a=(losses, 1.0), baseline=([1.1, 1.1, 1.1], 0.1))
    assert found.verdict().startswith(verdict)
    assert (found.pick is None) == verdict.startswith("Pick none")
    assert found.baseline.name == BASELINE and found.best.name == "a"


def test_simple_models_are_called_so(board):
    found = with_values(board, a=([0.1, 0.2, 0.3], 30.0), b=([0.3, 0.2, 0.2], 0.1))
    simple = replace(found.entries[1], candidate=Candidate("b", LogisticRegression()))
    found = replace(found, entries=(found.entries[0], simple))
    assert "b is simplest and 300 times faster to fit" in found.verdict()


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro", "roc_auc_ovr"])
def test_larger_may_be_better(wine, metric):
    found = compare(*wine, candidates=both(), cv=3, metrics=[metric, "log_loss"])
    means = [entry.mean(metric) for entry in found]
    assert means == sorted(means, reverse=True) and found.entries[-1].is_baseline
    assert found.metrics == (metric, "log-loss")
    assert found.difference(found.baseline, found.best).mean > 0
    assert found.is_best(found.best, metric) and found.pick is not None


def test_metrics_are_those_of_scikit_learn(wine):
    from sklearn.metrics import brier_score_loss, f1_score, roc_auc_score

    X, y = wine
    found = compare(X, y, candidates=both(), cv=3, metrics=["f1_macro", "roc_auc_ovr"])
    test = found.folds[0][1]
    p, true = found[SVC].proba[test], found.target[test]
    expected = f1_score(true, p.argmax(axis=1), average="macro")
    assert found[SVC].values["f1_macro"][0] == expected
    assert found[SVC].values["roc_auc_ovr"][0] == roc_auc_score(true, p, multi_class="ovr")
    brier = METRICS["Brier"]
    later, two = (true > 0).astype(int), np.stack([p[:, 0], 1 - p[:, 0]], axis=1)
    assert brier(later, two) == pytest.approx(brier_score_loss(later, two[:, 1]))
    # Of more than two classes, scikit-learn 1.6 has none.
    expected = ((p - np.eye(3)[true]) ** 2).sum(axis=1).mean()
    assert brier(true, p) == pytest.approx(expected)


def test_groups_are_never_divided(wine):
    X, y = wine
    groups = np.arange(len(y)) // 6
    found = compare(X, y, candidates=both(), cv=4, groups=groups)
    for train, test in found.folds:
        assert not set(groups[train]) & set(groups[test])
    assert any("30 groups, none of which is divided" in note for note in found.notes)
    some = np.where(y == "class_2", "all of it", groups.astype(str))
    found = compare(X, y, candidates={BAYES: GaussianNB()}, cv=4, groups=some)
    assert any("class 'class_2' has no row to train on in some fold" in n for n in found.notes)
    with pytest.raises(ValueError, match="none to test on"):
        compare(X, y, candidates={BAYES: GaussianNB()}, cv=4, groups=y)


def test_a_single_split(wine):
    X, y = wine
    order = np.random.RandomState(0).permutation(len(y))
    split = pd.Series(np.where(np.isin(np.arange(len(y)), order[:120]), "Train", "test "))
    folds = split_folds(split)
    assert len(folds) == 1 and sorted(folds[0][0]) == sorted(order[:120])
    found = compare(X, y, candidates=both(), cv=folds)
    gap = found.difference(found.baseline, found.best)
    assert gap.low > 0 and 0 < gap.width < 1
    assert "Pick" in found.verdict() or "No clear winner" in found.verdict()
    recalls = {one.label: one.recall for one in class_scores(found)}
    for true, _, _, share in confusion(found).pairs:  # of the rows that were tested
        assert share <= 1 - recalls[true] + 1e-12
    assert sum(share for *_, share in confusion(found).pairs) == pytest.approx(
        sum(1 - recall for recall in recalls.values())
    )
    assert len(split_folds(pd.Series(["a", "b", "c", "a"]))) == 3
    with pytest.raises(ValueError, match="has one value only"):
        split_folds(pd.Series(["a", "a"], name="part"))


def test_leaderboards_show_themselves_in_a_notebook(board):
    html = board._repr_html_()
    assert html.count("<tr>") == 4 and "<b>" in html and board.verdict()[:20] in html
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    ax = board.plot(Figure().subplots())
    assert isinstance(ax, matplotlib.axes.Axes)
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        entry.name for entry in board.measured[::-1]
    ]


def test_an_entry_shows_its_means_and_not_its_probabilities(board):
    assert board.pick is not None
    shown = repr(board.pick)
    assert shown.startswith(f"<Entry {board.pick.name}: log-loss 0.") and len(shown) < 120
    assert " s " not in shown
    failed = compare(*table(), candidates={"bad": LogisticRegression(C=-1)}, cv=2).failed[0]
    assert repr(failed).startswith("<Entry bad: The 'C' parameter")


def test_table_marks_the_best_of_each_column(board):
    lines = str(board).splitlines()
    header = "log-loss behind best Brier error calibration fit s predict s"
    assert lines[0].split() == header.split()
    for column in board.columns:
        best = min(board.measured, key=lambda entry: entry.mean(column))
        assert board.is_best(best, column)
        line = next(line for line in lines if line.startswith(best.name))
        assert f"{board.cell(best, column)}*" in line
    assert "predict s" not in board.to_text(width=70) and "predict s" in board.to_text(width=200)
    assert max(map(len, board.to_text(width=70).splitlines())) <= 70
    assert "behind best" in board.to_text(width=40)
    frame = board.frame
    assert frame.loc[SVC, "log-loss"] == board[SVC].mean("log-loss")
    assert frame.loc[SVC, "log-loss ±"] == board[SVC].error("log-loss")
    with pytest.raises(KeyError, match="no candidate 'other'"):
        board["other"]


# ---------------------------------------------------------------------- candidates


def names_of(size, **options):
    candidates, notes = choose(size, **options)
    return {candidate.name for candidate in candidates}, notes


OTHERS = {name for name in NAMES if name.endswith(("lightgbm", "xgboost", "catboost"))}


def test_candidates_suit_the_size():
    small, notes = names_of(Size(200, 5, 40))
    assert notes == [] and "coupled-kernel-logistic" in small and "calibrated-svc" in small
    large, notes = names_of(Size(50_000, 5, 40))
    assert small - large == {"coupled-kernel-logistic"}
    assert notes == ["left out, too slow for 50000 rows: coupled-kernel-logistic."]
    many, notes = names_of(Size(5_000, 100, 40))
    assert {"coupled-logistic", "coupled-boosting", "calibrated-boosting"} <= small - many
    assert notes[0].startswith("left out, too slow for 100 classes: calibrated-boosting")
    extreme, notes = names_of(Size(8_000, 1_893, 3))
    assert extreme == {BASELINE, "logistic", "coupled-logistic-trees"}
    assert "1,892 models each, one-vs-one 1,790,778" in notes[-1]
    two, notes = names_of(Size(200, 2, 40))
    assert small - two == {"coupled-logistic-rest"}
    assert "same single problem" in notes[0]
    assert names_of(Size(200, 5, 40), quick=True)[0] < small
    for size in (Size(200, 5, 40), Size(10**6, 1000, 2)):
        assert BASELINE in names_of(size)[0] & names_of(size, only=["logistic"])[0]


def test_the_same_learner_has_the_same_settings():
    size = Size(200, 5, 40)
    for learner in ("boosting", "forest", "logistic"):
        alone = build(learner, size).estimator
        for kind in ("calibrated", "coupled"):
            name = f"{kind}-{learner}"
            if name in NAMES:
                assert repr(build(name, size).estimator.estimator) == repr(alone), name


def test_only_coupled_candidates_are_called_so():
    """The page says what a coupled classifier couples; a calibrated forest couples nothing."""
    for candidate in choose(Size(200, 5, 40))[0]:
        assert Entry(candidate, None).is_coupled == candidate.name.startswith("coupled")


def test_learners_of_other_packages_join_when_they_are_installed(monkeypatch):
    from manyclass.app import candidates

    known = candidates._KNOWN["lightgbm"]._replace(build=lambda size: GaussianNB())
    monkeypatch.setitem(candidates._KNOWN, "lightgbm", known)
    monkeypatch.setattr(candidates, "find_spec", lambda name: name == "lightgbm" or None)
    assert "lightgbm" in names_of(Size(200, 5, 40), only=["lightgbm"])[0]
    with pytest.raises(ValueError, match="needs xgboost: run pip install xgboost"):
        build("xgboost", Size(200, 5, 40))
    monkeypatch.setattr(candidates, "find_spec", lambda name: None)
    assert not names_of(Size(200, 5, 40))[0] & OTHERS


def test_learners_of_places_take_any_labels():
    X, y = make_blobs(60, random_state=0)
    names = np.array(["c", "a", "b"])[y]
    model = WithPlaces(GaussianNB()).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(X), GaussianNB().fit(X, names).predict(X))


def test_lightgbm(wine):
    pytest.importorskip("lightgbm")
    candidates, _ = choose(Size(178, 3, 30), only=["lightgbm", "calibrated-lightgbm"])
    found = compare(*wine, candidates=candidates, cv=2)
    assert not found.failed and found.pick is not None


def test_candidates_of_ones_own(tmp_path, monkeypatch):
    (tmp_path / "own_models.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\n"
        "def bayes():\n    return GaussianNB(var_smoothing=0.1)\n"
        "made = GaussianNB()\nnumber = 7\n"
    )
    monkeypatch.chdir(tmp_path)
    assert from_factory("own_models:bayes").estimator.var_smoothing == 0.1
    assert from_factory("own_models:made").name == "made"
    assert from_factory("sklearn.naive_bayes:GaussianNB").name == "GaussianNB"
    for text, message in [
        ("own_models", "must be module:factory"),
        ("own_models:nothing", "has no attribute 'nothing'"),
        ("no_such_module:x", "No module named"),
        ("own_models:number", "makes 7, which is not a classifier"),
    ]:
        with pytest.raises(ValueError, match=message):
            from_factory(text)


def test_unknown_candidates_are_named():
    with pytest.raises(
        ValueError, match=r"no candidate 'coupled-svm' \(did you mean 'coupled-svc'\?"
    ):
        choose(Size(9, 3, 3), only=["coupled-svm"])
    with pytest.raises(ValueError, match="no candidate was named"):
        choose(Size(9, 3, 3), only=[])


@pytest.mark.parametrize("rarest", [2, 3, 5, 50])
def test_default_candidates_run_where_classes_are_rare(rarest):
    X, _ = table(40 + rarest)
    y = ["a"] * 20 + ["b"] * 20 + ["c"] * rarest
    size = size_of(encode(y, len(y))[1], 3)
    candidates, _ = choose(size, only=["coupled-svc", "calibrated-svc"])
    found = compare(X, y, candidates=candidates, cv=3)
    assert found["coupled-svc"].failure is None
    assert (found["calibrated-svc"].failure is None) == (rarest > 2)


def test_candidates_that_bear_few_rows_are_trained_on_a_sample(wine):
    log: list[int] = []
    few = Candidate("few", Stumbling("", log), most_rows=30)
    found = compare(*wine, candidates=[few, Candidate("all", GaussianNB(), most_rows=1000)], cv=2)
    assert found["few"].notes == ("trained on 30 of about 89 rows of each fold",)
    assert found["all"].notes == ()
    assert len(found["few"].tested()[0]) == 178


# ---------------------------------------------------------------------- contents of the page


def test_confusions_are_counted(board):
    found = confusion(board)
    entry = board.pick  # the page describes the one to use
    assert found.entry is entry is board.described
    rows, p = entry.tested()
    counts = np.zeros((3, 3), dtype=int)
    for c, d in zip(board.target[rows], p.argmax(axis=1), strict=True):
        counts[c, d] += 1
    assert [[n for n, _, _ in row] for row in found.rows] == counts.tolist()
    assert all(found.rows[c][c][2] == "right" for c in range(3)) and found.n_merged == 0
    assert sum(n for *_, n, _ in found.pairs) <= counts.sum() - np.trace(counts)


def test_classes_beyond_what_can_be_read_are_merged():
    rng = np.random.RandomState(0)
    y = np.repeat(np.arange(60), 4)
    X = rng.randn(60, 3)[y] + 0.6 * rng.randn(240, 3)
    found = compare(X, y, candidates={"near": KNeighborsClassifier(3)}, cv=2)
    shown = confusion(found)
    assert len(shown.labels) == len(shown.rows) == 20 and shown.n_merged == 41
    assert shown.labels[-1] == ("41 others", "41 others")
    assert sum(n for row in shown.rows for n, _, _ in row) == 240
    assert shown.rows[-1][-1][2] == "merged"


def test_most_incoherent_rows(board):
    rows = most_incoherent(board, board[SVC])
    values = board[SVC].incoherence
    assert [row.incoherence for row in rows] == sorted(values, reverse=True)[: len(rows)]
    first = rows[0]
    place = board.index.index(first.index)
    p = board[SVC].proba[place]
    assert first.label == board.classes[board.target[place]]
    assert [q for _, q in first.top] == sorted(p, reverse=True)[:2]
    assert first.right == (p.argmax() == board.target[place])


def test_data_in_words(board):
    about = data(board)
    assert about.kinds == "numbers (13)" and about.missing == []
    assert [n for _, n, _ in about.classes] == sorted(
        board.description.class_counts.values(), reverse=True
    )


@settings(deadline=None, max_examples=40)
@given(st.lists(st.text(max_size=40), max_size=8, unique=True), st.integers(3, 12))
def test_short_names_differ_and_can_be_written(labels, most):
    names = short_names(labels, most)
    assert len(set(names)) == len(names)
    for name in names:
        name.encode("utf-8")
        assert name and all(c >= " " for c in name)
    assert all(len(as_text(label, most)) <= max(most, len("(empty)")) for label in labels)


# ---------------------------------------------------------------------- program


def run_program(text: str):
    space: dict = {}
    exec(compile(text, "<program>", "exec"), space)
    return space


def test_all_candidates_can_be_written():
    names = [name for name in NAMES if name not in OTHERS]
    entries = [Entry(candidate, None) for candidate in choose(Size(99, 3, 9), only=names)[0]]
    for entry in entries:
        text = f"made = {snippet._expression(entry.candidate.estimator)}"
        space = run_program("\n".join([*snippet._imports(entries, None, False), text]))
        assert repr(space["made"]) == repr(entry.candidate.estimator)


def test_program_runs_and_gives_the_same(board, capsys):
    space = run_program(program(board, Source("wine")))
    for name in both():
        np.testing.assert_array_equal(space["board"][name].proba, board[name].proba)
    assert space["board"].verdict() in capsys.readouterr().out
    assert set(space["model"].classes_) == set(board.classes)


def test_program_with_limited_candidates_and_a_sample():
    X, y = sample(*read_table("wine"), 60, random_state=1)
    size = Size(len(y), 3, 15)
    some = ["coupled-svc", "coupled-logistic-rest", "coupled-kernel-logistic", "calibrated-svc"]
    candidates, _ = choose(size, only=some)
    candidates = [replace(c, most_rows=20) if c.most_rows else c for c in candidates]
    found = compare(X, y, candidates=candidates, cv=2, metrics=["Brier"], random_state=1)
    text = program(found, Source("wine", 60))
    again = run_program(text)["board"]
    assert again.metrics == ("Brier",)
    for entry in found:
        np.testing.assert_array_equal(again[entry.name].proba, entry.proba)


def test_program_says_what_it_cannot_write(wine):
    code = np.array([[1, 1, 0], [-1, 0, 1], [0, -1, -1]])
    own = {"own": CoupledClassifier(code=code), "stumbling": Stumbling("")}
    text = program(compare(*wine, candidates=own, cv=2))
    compile(text, "<program>", "exec")
    assert "X, y = ...  # a DataFrame of 178 rows and 13 columns" in text
    assert "'own': ...,  # as it was made" in text
    assert f"from {Stumbling.__module__} import Stumbling" in text
    limited = [Candidate("own", CoupledClassifier(code=code), most_rows=100)]
    text = program(compare(*wine, candidates=limited, cv=2))
    compile(text, "<program>", "exec")
    assert "Candidate('own', ..., most_rows=100),  # as it was made" in text
    quoted = program(
        compare(*wine, candidates={'it\'s "x"': GaussianNB()}, cv=2), Source("a'b.csv")
    )
    compile(quoted, "<program>", "exec")


# ---------------------------------------------------------------------- command line


def run(*words: str) -> int:
    arguments = parser("0").parse_args(["compare", *words])
    early.check(arguments)
    return comparing.run(arguments)


def test_command_prints_board_and_verdict(capsys):
    assert run("iris", "--only", "logistic, coupled-svc", "--folds", "3", "--rows", "90") == 0
    out, err = capsys.readouterr()
    assert out.startswith("iris: 90 rows, 4 columns, 3 classes\n")
    assert "log-loss" in out and "baseline" in out and ("Pick " in out or "No clear" in out)
    assert "  logistic: 3 folds in " in err


def test_command_reads_files_and_counts_rows_from_one(tmp_path, capsys):
    X, y = table(60)
    X["kind of thing"] = np.where(y == 1, "yes", "no")
    path = tmp_path / "data.csv"
    X.to_csv(path, index=False)
    report = tmp_path / "new" / "report.html"
    words = ["--target", "kind of thing", "--only", "coupled-svc", "--folds", "2"]
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    assert run(str(path), *words, "--report", str(report)) == 0
    page = report.read_text("utf-8")
    assert f"report: {report}" in capsys.readouterr().out
    assert "target=&#39;kind of thing&#39;" in page and "<h1><bdi>data.csv</bdi></h1>" in page
    assert sorted(p.name for p in report.parent.iterdir()) == ["report.html"]


def test_reports_replace_reports_only(tmp_path, capsys):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    X, y = table(40)
    data, page, link = tmp_path / "data.csv", tmp_path / "page.html", tmp_path / "link.html"
    X.assign(y=y).to_csv(data, index=False)
    link.symlink_to(data)
    before = data.read_bytes()
    words = [str(data), "--only", "logistic", "--folds", "2", "--report"]
    for path in (data, link):
        with pytest.raises(ValueError, match=f"{path.name} is an input. Write to another file"):
            run(*words, str(path), "--force")
    page.write_text("<html>mine</html>")
    with pytest.raises(ValueError, match=r"page.html exists. Choose .* --force to replace it"):
        run(*words, str(page))
    assert data.read_bytes() == before and page.read_text() == "<html>mine</html>"
    assert "folds in" not in capsys.readouterr().err
    assert run(*words, str(page), "--force") == 0
    first = page.read_text("utf-8")
    assert run(*words, str(page), "--seed", "1") == 0
    assert page.read_text("utf-8") != first


def test_command_fails_if_all_do(monkeypatch, capsys):
    bad = [Candidate("bad", Stumbling())], []
    monkeypatch.setattr(comparing, "choose", lambda *args, **kwargs: bad)
    assert run("iris", "--folds", "2") == 1  # there is a baseline, but no candidate
    out, err = capsys.readouterr()
    assert "bad  failed: RuntimeError" in out and "bad failed" in err


@pytest.mark.parametrize(
    "words, message",
    [
        (["iris", "--only", ""], "no candidate was named"),
        (["iris", "--report", "."], "is a folder. Name a file"),
        (
            ["iris", "--report", "/dev/null/report.html"],
            "/dev/null is not a folder",
        ),
    ],
)
def test_command_says_what_is_wrong_before_it_starts(words, message, capsys):
    with pytest.raises(ValueError, match=message):
        run(*words)
    assert "folds in" not in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib", "pandas"])
def test_missing_extras_are_named(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=f"{missing}: run pip install 'manyclass\\[app\\]'"):
        run("iris", "--only", "logistic", "--report", "report.html")


def test_command_saves_the_winner(tmp_path, capsys):
    pytest.importorskip("skops")
    from manyclass.storage import load_model, read_metadata

    path = tmp_path / "best.skops"
    assert run("wine", "--only", "coupled-svc", "--folds", "2", "--save", str(path)) == 0
    X, y = read_table("wine")
    assert load_model(path).score(X, y) > 0.95
    assert read_metadata(path)["metadata"]["learner"] == "coupled-svc"
    with pytest.raises(ValueError, match="best.skops exists"):
        run("wine", "--only", "coupled-svc", "--folds", "2", "--save", str(path))


def test_command_saves_nothing_that_is_no_better_than_guessing(tmp_path, capsys):
    rng = np.random.RandomState(0)
    noise = pd.DataFrame({"a": rng.randn(90), "b": rng.randn(90), "y": np.arange(90) % 3})
    noise.to_csv(tmp_path / "noise.csv", index=False)
    path = tmp_path / "best.skops"
    words = ["--only", "logistic,forest", "--folds", "3", "--save", str(path)]
    assert run(str(tmp_path / "noise.csv"), *words) == 1
    out, err = capsys.readouterr()
    assert "Pick none: " in out and "nothing saved" in err and not path.exists()


def test_command_names_classes_not_places(tmp_path, capsys):
    X, _ = table(41)
    y = ["ant"] * 20 + ["bee"] * 20 + ["rare one"]
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    run(str(tmp_path / "t.csv"), "--only", "coupled-svc", "--folds", "2")
    err = capsys.readouterr().err
    assert "single sample" in err and ": 2" not in err.split("single sample")[1][:12]
    assert "rare one" in err.split("single sample")[1]


def test_command_with_all_options(tmp_path, capsys, monkeypatch):
    X, y = table(90)
    rng = np.random.RandomState(0)
    X = X.assign(who=np.arange(90) // 5, extra=rng.rand(90), y=y)
    X.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    words = ["--only", "logistic", "--metric", "accuracy", "--groups", "who", "--drop", "extra"]
    words += ["--estimator", "sklearn.naive_bayes:GaussianNB", "--time-budget", "600"]
    assert run(str(tmp_path / "t.csv"), *words, "--folds", "3") in (0, 1)
    out, err = capsys.readouterr()
    assert "90 rows, 2 columns, 3 classes" in out and "GaussianNB" in out and "accuracy" in out
    assert "18 groups" in err


def test_an_interrupt_keeps_the_finished_candidates(monkeypatch, capsys):
    from manyclass.app.cli import main

    class Interrupting(GaussianNB):
        def fit(self, X, y):
            raise KeyboardInterrupt

    found = [Candidate("bayes", GaussianNB()), Candidate("stopped", Interrupting())], []
    monkeypatch.setattr(comparing, "choose", lambda *args, **kwargs: found)
    assert main(["compare", "iris", "--folds", "2"]) == 130
    out, err = capsys.readouterr()
    assert "bayes" in out and "log-loss" in out
    assert "interrupted; these 2 of 3 candidates were finished" in err


def test_the_baseline_alone_is_no_comparison(capsys):
    assert run("iris", "--only", "baseline", "--folds", "2") == 1
    assert "There is no candidate but the baseline: name one." in capsys.readouterr().out
