"""Choices among equals, the search in two steps, and one search for many rules."""

from __future__ import annotations

import pickle
import re
from functools import cache
from itertools import product

import naive_search
import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.combiners.coupling import HastieTibshirani, Vote
from manyclass.combiners.decoding import LossBased
from manyclass.predicting import RowBlocks
from manyclass.search import (
    RuleScorer,
    SmallestC,
    SmoothestBest,
    TwoStepGridSearchCV,
    best_per_rule,
    estimator_per_rule,
)

X, y = make_blobs(90, n_features=3, centers=4, cluster_std=4.0, random_state=0)
names = np.array(["ant", "bee", "cat", "dog"])[y]
BOTH = ["accuracy", "neg_log_loss"]
WU = ("ht", "wlw1", "wlw2", "vote")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def table(params, accuracy, nll=None, names=("accuracy", "neg_log_loss")):
    """Return what a search would report; scores of shape (candidates,) or (candidates, folds)."""
    results = {"params": params}
    for name in dict.fromkeys(name for candidate in params for name in candidate):
        column = np.ma.masked_all(len(params), dtype=object)
        for row, candidate in enumerate(params):
            if name in candidate:
                column[row] = candidate[name]
        results[f"param_{name}"] = column
    scores = [accuracy] if nll is None else [accuracy, -np.asarray(nll, dtype=float)]
    for name, values in zip(names, scores, strict=False):
        folds = np.asarray(values, dtype=float).reshape(len(params), -1)
        results[f"mean_test_{name}"] = folds.mean(axis=1)
        for i, fold in enumerate(folds.T):
            results[f"split{i}_test_{name}"] = fold
    return results


def grid(Cs, gammas):
    return [{"C": C, "gamma": gamma} for C in Cs for gamma in gammas]


# -- the rules, one by one -------------------------------------------------------------


class TestEachRuleDecides:
    """Three values of C by three of gamma, so that candidate 3 i + j is at (C_i, gamma_j)."""

    params = grid([1, 10, 100], [0.1, 1, 10])

    def chosen(self, error, nll=None):
        error = np.asarray(error, dtype=float).ravel()
        nll = None if nll is None else np.asarray(nll, dtype=float).ravel()
        choice = SmoothestBest(log_loss=None if nll is None else "neg_log_loss")
        return choice(table(self.params, 1 - error, nll))

    def test_a_error(self):
        error = np.full(9, 0.3)
        error[7] = 0.2
        assert self.chosen(error, np.arange(9.0)[::-1]) == 7

    def test_b_log_likelihood(self):
        error = [0.2, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.2]
        assert self.chosen(error, [2, 2, 0, 0, 0, 0, 0, 0, 1]) == 8

    def test_c_small_c_and_small_gamma(self):
        error = [0.3, 0.2, 0.3, 0.3, 0.2, 0.2, 0.3, 0.3, 0.3]
        assert self.chosen(error) == 1  # of (1, 1), (10, 1) and (10, 10)

    def test_c_does_not_decide_between_small_c_and_small_gamma(self):
        # (1, 10) and (100, 0.1): neither is better in both, so their neighbours decide.
        error = [[0.3, 0.4, 0.2], [0.3, 0.3, 0.3], [0.2, 0.3, 0.3]]
        assert self.chosen(error) == 6
        assert self.chosen(np.transpose(error)) == 2

    def test_d_neighbours_that_exist_are_averaged(self):
        # (10, 0.1) has five neighbours, (1, 10) has three; the sum would choose the other.
        error = [[0.4, 0.4, 0.2], [0.2, 0.4, 0.5], [0.4, 0.4, 0.4]]
        assert self.chosen(error) == 3

    def test_d_the_centre_does_not_count(self):
        # Means 0.42 of five and 0.41 of three; with the centre 0.385 of six and 0.3575 of four.
        error = np.array([[0.4, 0.35, 0.2], [0.2, 0.45, 0.43], [0.45, 0.45, 0.5]])
        assert self.chosen(error) == 2
        error[0, 0] = error[2, 0] = 0.395  # 0.408: now the one with five
        assert self.chosen(error) == 3

    def test_e_log_likelihood_of_the_neighbours(self):
        error = [[0.3, 0.3, 0.2], [0.3, 0.3, 0.3], [0.2, 0.3, 0.3]]
        nll = [[9, 2, 1], [2, 2, 2], [1, 1, 9]]
        assert self.chosen(error, nll) == 6

    def test_f_smallest_c(self):
        error = [[0.3, 0.3, 0.2], [0.3, 0.3, 0.3], [0.2, 0.3, 0.3]]
        assert self.chosen(error) == 2
        assert self.chosen(error, np.ones(9)) == 2

    def test_the_first_where_all_else_is_equal(self):
        params = [{"kernel": kernel, **pair} for kernel in "ba" for pair in self.params]
        assert SmoothestBest(log_loss=None)(table(params, np.ones(18))) == 0

    def test_failed_candidates_are_passed_over_and_are_no_neighbours(self):
        error = [[0.3, np.nan, 0.2], [0.4, 0.3, np.nan], [0.2, 0.4, 0.3]]
        assert self.chosen(error) == 2  # mean 0.3 of one; the other has 0.37 of three
        nll = np.ones(9)
        nll[2] = np.nan
        assert self.chosen(error, nll) == 6


FOLD_SIZES = [7, 5, 4]


@st.composite
def searches(draw):
    """A grid with gaps and often more than one setting of the rest; many ties, some NaN."""
    Cs = draw(st.lists(st.sampled_from([0.1, 1, 2.5, 10, 50]), min_size=1, unique=True))
    widths = draw(st.lists(st.sampled_from([0.01, 0.3, 1, 7]), min_size=1, unique=True))
    kernels = draw(st.sampled_from([["rbf"], ["rbf", "laplacian"]]))
    params = [
        {"svc__C": C, "svc__width": w, "kernel": kernel}
        for C, w, kernel in product(Cs, widths, kernels)
    ]
    params = draw(st.permutations(params))
    params = params[: draw(st.integers(max(1, len(params) // 2), len(params)))]
    right = st.tuples(*(st.integers(size - 2, size - 1) for size in FOLD_SIZES))
    likelihood = st.tuples(*(st.sampled_from([-0.5, -0.25]) for _ in FOLD_SIZES))
    accuracies = [np.divide(draw(right), FOLD_SIZES).tolist() for _ in params]
    likelihoods = [list(draw(likelihood)) for _ in params]
    for row in draw(st.sets(st.integers(0, len(params) - 1), max_size=len(params) // 3)):
        accuracies[row][draw(st.integers(0, 2))] = np.nan
        likelihoods[row][0] = np.nan
    return params, accuracies, likelihoods


class TestAgainstPlainLoops:
    @settings(deadline=None, max_examples=40)
    @given(
        searches(), st.booleans(), st.booleans(), st.sampled_from([None, FOLD_SIZES, [1, 0, 2.5]])
    )
    def test_smoothest_best(self, search, with_nll, is_gamma, sizes):
        params, accuracies, likelihoods = search
        choice = SmoothestBest(
            "C",
            "width" if is_gamma else None,
            None if is_gamma else "svc__width",
            log_loss="neg_log_loss" if with_nll else None,
            fold_sizes=sizes,
        )
        expected = naive_search.smoothest_best(
            params,
            accuracies,
            likelihoods if with_nll else None,
            "svc__C",
            "svc__width",
            is_gamma,
            sizes,
        )
        assert choice(table(params, accuracies, np.negative(likelihoods))) == expected

    @settings(deadline=None, max_examples=40)
    @given(
        searches(),
        st.booleans(),
        st.sampled_from([0.0, 0.4, 1.0]),
        st.sampled_from([None, FOLD_SIZES]),
    )
    def test_smallest_c(self, search, with_nll, slack, sizes):
        params, accuracies, likelihoods = search
        choice = SmallestC(
            log_loss="neg_log_loss" if with_nll else None, slack=slack, fold_sizes=sizes
        )
        expected = naive_search.smallest_c(
            params, accuracies, likelihoods if with_nll else None, "svc__C", slack, sizes
        )
        assert choice(table(params, accuracies, np.negative(likelihoods))) == expected

    @settings(deadline=None, max_examples=25)
    @given(searches(), st.randoms(use_true_random=False))
    def test_the_order_of_the_candidates_does_not_matter(self, search, random):
        rows = [i for i, params in enumerate(search[0]) if params["kernel"] == "rbf"]
        if not any(np.isfinite(search[1][i]).all() for i in rows):
            return
        shuffled = random.sample(rows, len(rows))
        choice = SmoothestBest(gamma="width", fold_sizes=FOLD_SIZES)

        def chosen(order):
            params, accuracies, likelihoods = ([part[i] for i in order] for part in search)
            return params[choice(table(params, accuracies, np.negative(likelihoods)))]

        assert chosen(shuffled) == chosen(rows)


def test_the_slack_of_duans_soft_max():
    error = [0.104, 0.1049, 0.105, 0.1, 0.2]
    nll = [0.53, 0.522, 0.5, 0.51, 0.1]
    results = table(grid([1, 2, 4, 8, 0.5], [1]), np.subtract(1, error), nll)
    assert SmallestC()(results) == 3
    assert SmallestC(slack=0.05)(results) == 0
    assert SmallestC(log_loss="neg_log_loss", slack=0.05)(results) == 1


class TestPooledScores:
    def test_folds_count_by_their_sizes(self):
        # Two errors each: in the small folds, and in the large one.
        accuracies = [[1.0, 0.5, 0.5], [8 / 10, 1.0, 1.0]]
        results = table(grid([1, 2], [1]), accuracies)
        assert SmallestC()(results) == 1  # means over folds: 0.67 and 0.93
        assert SmallestC(fold_sizes=[10, 2, 2])(results) == 0

    def test_folds_of_one_size_need_none(self):
        accuracies = [[0.9, 0.7, 0.8], [0.8, 0.8, 0.8], [0.7, 0.9, 0.8]]
        for params in (grid([3, 2, 1], [1]), grid([1, 2, 3], [1])):
            results = table(params, accuracies)
            assert SmallestC()(results) == SmallestC(fold_sizes=[10, 10, 10])(results)

    @pytest.mark.parametrize("sizes", [[1, 2], [1, 2, 3, 4], [1, -1, 1], [0, 0, 0], 3])
    def test_sizes_must_fit(self, sizes):
        with pytest.raises(ValueError, match="fold_sizes=.*3 folds: pass one number of samples"):
            SmallestC(fold_sizes=sizes)(table(grid([1], [1]), [[1.0, 1.0, 1.0]]))


class TestChoiceErrors:
    results = table(grid([1, 2], [0.1, 1]), np.ones(4), np.ones(4))

    def test_all_candidates_failed(self):
        with pytest.raises(ValueError, match="all 4 candidates have NaN.*error_score='raise'"):
            SmoothestBest()(table(grid([1, 2], [0.1, 1]), np.full(4, np.nan), np.ones(4)))

    def test_unknown_scores(self):
        results = table(grid([1], [1]), [1.0], names=["score"])
        with pytest.raises(
            ValueError, match="accuracy='accuracy' is not a score.*has score. Pass one"
        ):
            SmoothestBest()(results)
        with pytest.raises(ValueError, match="log_loss='neg_log_loss' is not.*Pass log_loss=None"):
            SmoothestBest(accuracy="score")(results)

    def test_unknown_parameters(self):
        with pytest.raises(
            ValueError, match="the search varies C, gamma, and C='D' is none of them"
        ):
            SmoothestBest("D")(self.results)
        with pytest.raises(ValueError, match="sigma2='sigma2' is none of them.*gamma=None"):
            SmoothestBest(gamma=None, sigma2="sigma2")(self.results)

    def test_ends_of_names_that_several_have(self):
        results = table([{"a__C": 1, "b__C": 2}], [1.0])
        with pytest.raises(
            ValueError, match="varies a__C, b__C, and C='C' matches several of them"
        ):
            SmallestC()(results)
        assert SmallestC("b__C")(results) == 0

    def test_width_named_twice(self):
        with pytest.raises(ValueError, match="gamma='gamma' and sigma2='s' both name the width"):
            SmoothestBest(sigma2="s")(self.results)

    @pytest.mark.parametrize(
        ("value", "found"), [("scale", "'scale'"), (np.nan, "nan"), (None, "None")]
    )
    def test_parameters_that_are_no_numbers(self, value, found):
        with pytest.raises(ValueError, match=f"'gamma' is {found} in candidate 1, but the choice"):
            SmoothestBest(log_loss=None)(table(grid([1], [0.1, value]), np.ones(2)))

    def test_parameters_that_are_not_set(self):
        params = [{"C": 1, "gamma": 1}, {"C": 1}]
        with pytest.raises(ValueError, match="'gamma' is not set in candidate 1"):
            SmoothestBest(log_loss=None)(table(params, np.ones(2)))

    def test_negative_slack(self):
        with pytest.raises(ValueError, match="slack must not be negative, got -0.1"):
            SmallestC(slack=-0.1)(self.results)


@pytest.mark.parametrize("choice", [SmoothestBest("a", "b", log_loss=None), SmallestC(slack=0.1)])
def test_choices_are_cloned_and_pickled(choice):
    for again in (clone(choice), pickle.loads(pickle.dumps(choice))):
        assert type(again) is type(choice) and again.get_params() == choice.get_params()


def test_other_parameters_of_any_type():
    scalers = [StandardScaler(), np.arange(3), None]
    params = [{"C": C, "gamma": 1, "scaler": scaler} for C in (1, 2, 3) for scaler in scalers]
    error = np.array([[0.2, 0.3, 0.2], [0.4, 0.3, 0.3], [0.3, 0.3, 0.3]])
    assert SmoothestBest(log_loss=None)(table(params, 1 - error.ravel())) == 2


# -- in scikit-learn's own search ------------------------------------------------------


class Failing(LogisticRegression):
    """Fails for C = 7."""

    def fit(self, X, y, sample_weight=None):
        if self.C == 7:
            raise RuntimeError("no seven")
        return super().fit(X, y, sample_weight)


class TestGridSearch:
    def test_refits_what_was_chosen(self):
        values = {"estimator__C": [0.1, 1, 10], "estimator__gamma": [0.001, 0.01, 0.1]}
        search = GridSearchCV(
            CoupledClassifier(SVC(), cv=2), values, scoring=BOTH, refit=SmoothestBest(), cv=3
        ).fit(X, names)
        results = search.cv_results_
        folds = [
            np.column_stack([results[f"split{i}_test_{metric}"] for i in range(3)])
            for metric in BOTH
        ]
        expected = naive_search.smoothest_best(
            results["params"], *folds, "estimator__C", "estimator__gamma", True
        )
        assert search.best_index_ == expected
        assert search.best_estimator_.estimator.C == search.best_params_["estimator__C"]
        assert search.predict_proba(X).shape == (90, 4)
        assert "SmoothestBest" in repr(search) and "SmoothestBest" in search._repr_html_()

    def test_failed_fits_are_passed_over_with_the_usual_warning(self):
        search = GridSearchCV(
            Failing(), {"C": [7, 0.1, 1]}, refit=SmallestC(accuracy="score"), cv=3
        )
        with pytest.warns(FitFailedWarning, match="no seven"), pytest.warns(match="non-finite"):
            search.fit(X, y)
        assert search.best_params_["C"] != 7

    def test_parameters_are_reached_through_the_search(self):
        search = GridSearchCV(SVC(), {"C": [1]}, refit=SmallestC())
        search.set_params(refit__accuracy="score")
        assert clone(search).fit(X, y).best_index_ == 0


# -- two steps -------------------------------------------------------------------------


class Recorder(ClassifierMixin, BaseEstimator):
    """Is right more often the nearer its parameters are to an optimum; fits nothing."""

    def __init__(self, C=1.0, gamma=0.5, sigma2=None, best=(3.0, 50.0), kernel="rbf"):
        self.C = C
        self.gamma = gamma
        self.sigma2 = sigma2
        self.best = best
        self.kernel = kernel

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def score(self, X, y):
        sigma2 = 1 / (2 * self.gamma) if self.sigma2 is None else self.sigma2
        distance = np.abs(np.log([self.C / self.best[0], sigma2 / self.best[1]])).sum()
        return 1 - distance - (self.kernel == "poor")


def step(search, name):
    """Return the parameters of one step."""
    rows = np.flatnonzero(search.cv_results_["step"] == name)
    return [search.cv_results_["params"][row] for row in rows]


class TestTwoSteps:
    def test_candidates_are_duans(self):
        search = TwoStepGridSearchCV(Recorder(), cv=2).fit(X, y)
        coarse = [(p["C"], p["gamma"]) for p in step(search, "coarse")]
        assert coarse == [(C, 1 / (2 * sigma2)) for C, sigma2 in naive_search.coarse_grid()]
        assert search.cv_results_["params"][search.coarse_index_] == {"C": 1.0, "gamma": 0.005}
        fine = [(p["C"], 1 / (2 * p["gamma"])) for p in step(search, "fine")]
        assert_allclose(fine, naive_search.fine_grid(1.0, 100.0), rtol=1e-14)
        assert len(coarse) == 49 and len(fine) == 81
        assert (search.cv_results_["step"] == ["coarse"] * 49 + ["fine"] * 81).all()
        assert search.best_params_ == {"C": 4.0, "gamma": 0.005 / 0.6}  # log-nearest to (3, 50)
        assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]

    def test_sigma2(self):
        search = TwoStepGridSearchCV(Recorder(), gamma=None, sigma2="sigma2", cv=2).fit(X, y)
        coarse = [(p["C"], p["sigma2"]) for p in step(search, "coarse")]
        fine = [(p["C"], p["sigma2"]) for p in step(search, "fine")]
        assert coarse == naive_search.coarse_grid()
        assert fine == naive_search.fine_grid(1.0, 100.0)
        assert search.best_params_ == {"C": 4.0, "sigma2": 60.0}

    def test_c_alone(self):
        search = TwoStepGridSearchCV(Recorder(), gamma=None, cv=2).fit(X, y)
        assert [p["C"] for p in step(search, "coarse")] == [10.0**e for e in range(-3, 4)]
        assert [p["C"] for p in step(search, "fine")] == [0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8]

    def test_other_parameters_vary_in_the_coarse_grid_only(self):
        values = {"C": np.array([1, 10]), "gamma": [0.1, 1], "kernel": ["poor", "rbf"]}
        search = TwoStepGridSearchCV(Recorder(), values, factors=[0.5, 1, 2], cv=2).fit(X, y)
        assert len(step(search, "coarse")) == 8
        fine = step(search, "fine")
        assert len(fine) == 9 and {p["kernel"] for p in fine} == {"rbf"}
        assert {p["gamma"] for p in fine} == {0.05, 0.1, 0.2}

    def test_the_fine_grid_decides_in_the_end(self):
        # The coarse best is the overall best, and is not among the fine candidates.
        search = TwoStepGridSearchCV(
            Recorder(best=(10.0, 100.0)), factors=[0.5, 2], cv=2, refit="score"
        )
        search = clone(search).fit(X, y)
        assert search.coarse_index_ == search.cv_results_["mean_test_score"].argmax()
        assert search.cv_results_["step"][search.best_index_] == "fine"

    def test_choice_is_that_of_the_rules_on_the_fine_grid(self):
        values = {"estimator__C": [0.1, 1, 10], "estimator__gamma": [0.001, 0.01, 0.1]}
        search = TwoStepGridSearchCV(
            CoupledClassifier(SVC(), cv=2),
            values,
            C="estimator__C",
            gamma="estimator__gamma",
            factors=[0.4, 1, 4],
            scoring=BOTH,
            refit=SmoothestBest(),
            cv=4,
        ).fit(X, names)
        assert_array_equal(search.fold_sizes_, [23, 23, 22, 22])
        for name, chosen in (("coarse", search.coarse_index_), ("fine", search.best_index_)):
            rows = np.flatnonzero(search.cv_results_["step"] == name)
            folds = [
                np.column_stack([search.cv_results_[f"split{i}_test_{m}"][rows] for i in range(4)])
                for m in BOTH
            ]
            expected = naive_search.smoothest_best(
                step(search, name),
                *folds,
                "estimator__C",
                "estimator__gamma",
                True,
                [23, 23, 22, 22],
            )
            assert rows[expected] == chosen
        assert search.predict_proba(X).shape == (90, 4)

    def test_both_steps_have_the_same_folds(self):
        cv = StratifiedKFold(3, shuffle=True)
        values = {"C": [1.0], "gamma": [0.1]}
        search = TwoStepGridSearchCV(SVC(), values, factors=[1], cv=cv).fit(X, y)
        for i in range(3):
            coarse, fine = search.cv_results_[f"split{i}_test_score"]
            assert coarse == fine

    def test_folds_are_weighted_in_a_choice_without_sizes_only(self):
        seen = []

        class Spy(SmallestC):
            def __call__(self, cv_results):
                seen.append((self.fold_sizes, list(cv_results["step"])))
                return super().__call__(cv_results)

        options = {"gamma": None, "factors": [1, 2], "cv": 4}
        for given_sizes in (None, [1, 1, 1, 1]):
            choice = Spy(accuracy="score", fold_sizes=given_sizes)
            TwoStepGridSearchCV(SVC(), {"C": [1]}, refit=choice, **options).fit(X, y)
            assert choice.fold_sizes is given_sizes
        sizes, steps = zip(*seen, strict=True)
        assert [list(x) for x in sizes] == [[23, 23, 22, 22]] * 2 + [[1, 1, 1, 1]] * 2
        assert steps == (["coarse"], ["fine"] * 2) * 2

    def test_other_ways_to_choose(self):
        options = {"gamma": None, "factors": [1, 2], "cv": 2}
        search = TwoStepGridSearchCV(SVC(), refit=lambda results: 0, **options).fit(X, y)
        assert search.coarse_index_ == 0 and search.best_index_ == 7
        for refit in (False, np.False_):
            search = TwoStepGridSearchCV(SVC(), refit=refit, **options).fit(X, y)
            assert search.best_params_ and not hasattr(search, "best_estimator_")
        with pytest.raises(TypeError, match="not an integer"):
            TwoStepGridSearchCV(SVC(), refit=lambda results: None, **options).fit(X, y)

    def test_several_scores_without_refit(self):
        search = TwoStepGridSearchCV(
            LogisticRegression(), gamma=None, factors=[1, 2], scoring=BOTH, refit=False, cv=2
        ).fit(X, y)
        assert len(step(search, "fine")) == 2 and not hasattr(search, "best_index_")
        rows = {key: column[:7] for key, column in search.cv_results_.items()}
        expected = SmoothestBest(gamma=None, fold_sizes=[45, 45])(rows)
        assert search.coarse_index_ == expected

    def test_life_cycle(self):
        options = {"gamma": None, "factors": [0.5, 1, 2], "cv": 3}
        search = TwoStepGridSearchCV(LogisticRegression(), **options).fit(X, names)
        with parallel_config("threading"):
            results = clone(search).set_params(n_jobs=2).fit(X, names).cv_results_
        for key in ("mean_test_score", "step", "rank_test_score"):
            assert_array_equal(results[key], search.cv_results_[key])
        again = pickle.loads(pickle.dumps(search))
        assert_array_equal(again.predict(X), search.predict(X))
        assert again.score(X, names) == search.score(X, names) > 0.5
        assert "step" in pd.DataFrame(search.cv_results_)

    def test_verbose(self, capsys):
        search = TwoStepGridSearchCV(Recorder(), gamma=None, cv=2, verbose=1)
        search.fit(X, y)
        printed = capsys.readouterr().out
        assert "2 folds for each of 7 candidates" in printed
        assert "2 folds for each of 9 candidates" in printed

    def test_failed_fits(self):
        search = TwoStepGridSearchCV(
            Failing(), {"C": [7, 14]}, gamma=None, factors=[0.5, 1], cv=2, refit=True
        )
        with pytest.warns(FitFailedWarning, match="no seven"), pytest.warns(match="non-finite"):
            search.fit(X, y)
        assert search.cv_results_["params"][search.coarse_index_] == {"C": 14}
        assert search.best_params_ == {"C": 14.0}

    def test_scores_that_all_failed(self):
        scoring = {"accuracy": "accuracy", "neg_log_loss": lambda model, X, y: np.nan}
        search = TwoStepGridSearchCV(
            SVC(), gamma=None, scoring=scoring, refit=SmoothestBest(gamma=None), cv=2
        )
        with (
            pytest.warns(UserWarning, match="non-finite"),
            pytest.raises(ValueError, match="all 7 candidates have NaN for a score"),
        ):
            search.fit(X, y)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"sigma2": "sigma2"}, "gamma='gamma' and sigma2='sigma2' both name the width"),
            ({"param_grid": {"gamma": [1]}}, "C='C' is not in param_grid, which has gamma"),
            ({"param_grid": {"C": [1]}}, "gamma='gamma' is not in param_grid.*gamma=None"),
            ({"param_grid": {"C": [1], "gamma": ["scale"]}}, "'gamma'\\] holds 'scale'"),
            ({"param_grid": {"C": [0], "gamma": [1]}}, "'C'\\] holds 0: it must hold positive"),
            ({"param_grid": {"C": [], "gamma": [1]}}, "'C'\\] holds None"),
            ({"factors": [1, -2]}, "factors holds -2"),
            ({"factors": []}, "factors holds None"),
            ({"factors": [np.inf]}, "factors holds inf"),
            ({"param_grid": [{"C": [1]}]}, "'param_grid' parameter"),
            ({"C": "D"}, "Invalid parameter 'D'"),
            ({"scoring": BOTH}, "For multi-metric scoring, the parameter refit"),
        ],
        ids=str,
    )
    def test_bad_arguments_are_refused_before_anything_is_fitted(self, options, message):
        search = TwoStepGridSearchCV(SVC(), **options)
        with pytest.raises(ValueError, match=message):
            search.fit(X, y)
        assert not hasattr(search, "cv_results_")


# Checks expect to see the estimator's own errors.
SMALL = {"gamma": None, "factors": (0.5, 1), "cv": 2, "error_score": "raise"}


@parametrize_with_checks(
    [
        TwoStepGridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, **SMALL),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- one fit for many rules ------------------------------------------------------------


IRIS = load_iris(return_X_y=True)
DIGITS = tuple(array[:150] for array in load_digits(n_class=5, return_X_y=True))
MODELS = {
    "SVC": CoupledClassifier(SVC(gamma=0.001), cv=2, scaling=None),
    "CoupledSVC": CoupledSVC(gamma=0.001, scaling=None),
    "single precision": CoupledSVC(gamma=0.001, scaling=None, dtype=np.float32),
    "isotonic": CoupledSVC(gamma=0.001, scaling=None, calibration="isotonic", cv=2),
    "logistic": CoupledClassifier(LogisticRegression(solver="newton-cholesky"), cv=2, scaling=None),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


class TestRuleScorer:
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize(
        ("data", "rules"),
        [(IRIS, [*WU, "pkpd", "ht-noniterative", "logit", "kl"]), (DIGITS, WU)],
        ids=["iris", "digits"],
    )
    @each_model
    def test_scores_are_those_of_a_fit_with_each_rule(self, model, data, rules):
        folds = list(StratifiedKFold(2).split(*data))
        found = cross_validate(clone(model), *data, scoring=RuleScorer(rules), cv=folds)
        for rule in rules:
            expected = naive_search.cross_validate(model, {"combiner": rule}, *data, folds)
            accuracies, likelihoods = zip(*expected, strict=True)
            assert_array_equal(found[f"test_{rule}_accuracy"], accuracies)
            assert_array_equal(found[f"test_{rule}_neg_log_loss"], likelihoods)

    def test_probabilities_that_are_calibrated(self):
        model = CoupledClassifier(GaussianNB(), calibration="sigmoid", scaling=None, cv=2)
        scores = RuleScorer(["ht"])(model.fit(X, names), X, names)
        p = model.set_params(combiner="ht").fit(X, names).predict_proba(X)
        assert scores["ht_neg_log_loss"] == -log_loss(names, p)

    @pytest.mark.parametrize("own", ["wlw2", "max-wins"])
    def test_decoders_beside_coupling_rules(self, own):
        model = CoupledSVC(gamma=0.001, scaling=None, combiner=own)
        folds = list(StratifiedKFold(2).split(*DIGITS))
        rules = ["max-wins", "hamming", LossBased("hinge")] + ["ht"] * (own == "wlw2")
        found = cross_validate(model, *DIGITS, scoring=RuleScorer(rules), cv=folds)
        for rule in rules:
            expected = naive_search.cross_validate(model, {"combiner": rule}, *DIGITS, folds)
            key = getattr(rule, "key", rule)
            assert_array_equal(
                found[f"test_{key}_accuracy"], [accuracy for accuracy, _ in expected]
            )
            assert (f"test_{key}_neg_log_loss" in found) == (rule == "ht")

    def test_the_columns_of_separate_searches(self):
        model, values = CoupledSVC(scaling=None), {"C": [0.1, 10], "gamma": [0.01, 0.1]}
        one = GridSearchCV(model, values, scoring=RuleScorer(), refit=False, cv=3).fit(X, names)
        for rule in WU:
            model.set_params(combiner=rule)
            own = GridSearchCV(model, values, scoring=BOTH, refit=False, cv=3).fit(X, names)
            for metric, prefix in product(BOTH, ("mean_test", "split1_test", "rank_test")):
                assert_array_equal(
                    one.cv_results_[f"{prefix}_{rule}_{metric}"],
                    own.cv_results_[f"{prefix}_{metric}"],
                )

    def test_binary_models_are_asked_once(self):
        asked = []

        class Counted(GaussianNB):
            def predict_log_proba(self, X):  # the log-odds of naive Bayes come from it
                asked.append(len(X))
                return super().predict_log_proba(X)

        model = CoupledClassifier(Counted(), scaling=None).fit(X, y)
        asked.clear()
        RuleScorer()(model, X, y)
        assert asked == [90] * 6

    def test_blocks_do_not_matter(self):
        model = clone(MODELS["SVC"]).fit(X, y)
        rules = [*WU, "max-wins"]
        whole = RuleScorer(rules)(model, X, y)
        model._row_blocks = RowBlocks(60)
        # Matrix products of few rows may round otherwise, which depends on the processor.
        assert RuleScorer(rules)(model, X, y) == pytest.approx(whole, rel=1e-12)

    def test_the_model_is_left_alone(self):
        model = CoupledSVC(scaling=None).fit(X, y)
        before, p = dict(vars(model)), model.predict_proba(X)
        RuleScorer()(model, X, y)
        assert vars(model) == before
        assert_array_equal(model.predict_proba(X), p)

    @pytest.mark.parametrize("kind", ["frame", "sparse", "float32", "read-only", "one row"])
    def test_inputs_of_many_kinds(self, kind):
        if kind == "read-only":
            data = X.copy()
            data.setflags(write=False)
        else:
            data = {
                "frame": pd.DataFrame(X, columns=list("abc")),
                "sparse": sparse.csr_matrix(X),
                "float32": X.astype(np.float32),
                "one row": X,
            }[kind]
        labels = pd.Series(names) if kind == "frame" else names
        model = CoupledSVC(scaling=None).fit(data, labels)
        rows = slice(0, 1 if kind == "one row" else 30)
        scores = RuleScorer(["wlw2"])(model, data[rows], labels[rows])
        assert scores["wlw2_accuracy"] == model.score(data[rows], labels[rows])

    def test_pipelines(self):
        inner = make_pipeline(StandardScaler(), CoupledSVC(scaling=None))
        for pipeline in (make_pipeline(inner), make_pipeline("passthrough", inner)):
            pipeline.fit(X, names)
            scores = RuleScorer()(pipeline, X, names)
            assert scores["wlw2_accuracy"] == pipeline.score(X, names)
            assert scores["wlw2_neg_log_loss"] == -log_loss(names, pipeline.predict_proba(X))

    def test_two_classes(self):
        two = y < 2
        for model in (CoupledSVC().fit(X[two], y[two]), CoupledClassifier().fit(X[two], y[two])):
            scores = RuleScorer()(model, X[two], y[two])
            assert len({scores[f"{rule}_accuracy"] for rule in WU}) == 1
            assert_allclose(scores["ht_neg_log_loss"], scores["wlw2_neg_log_loss"], rtol=1e-12)

    def test_sample_weights(self):
        weight = np.random.default_rng(0).integers(0, 3, 90)
        model = CoupledSVC(scaling=None).fit(X, y, sample_weight=weight + 1)
        rows = np.repeat(np.arange(90), weight)
        found = RuleScorer()(model, X, y, sample_weight=weight)
        expected = RuleScorer()(model, X[rows], y[rows])
        assert found.keys() == expected.keys()
        assert_allclose(list(found.values()), list(expected.values()), rtol=1e-12)

    def test_sample_weights_are_routed(self):
        weight = np.linspace(1, 3, 90)
        with sklearn.config_context(enable_metadata_routing=True):
            model = CoupledSVC(scaling=None).set_fit_request(sample_weight=True)
            scorer = RuleScorer().set_score_request(sample_weight=True)
            search = GridSearchCV(model, {"C": [1]}, scoring=scorer, refit=False, cv=2)
            search.fit(X, y, sample_weight=weight)
        train, test = next(StratifiedKFold(2).split(X, y))
        model = CoupledSVC(scaling=None).fit(X[train], y[train], sample_weight=weight[train])
        expected = RuleScorer()(model, X[test], y[test], weight[test])
        for key, score in expected.items():
            assert search.cv_results_[f"split0_test_{key}"][0] == score

    @pytest.mark.parametrize("label", ["aardvark", "cow", "elk"])
    def test_classes_that_were_not_trained_have_probability_0(self, label):
        model = CoupledSVC(scaling=None).fit(X, names)
        truth = names.copy()
        truth[:9] = label
        p = model.predict_proba(X)
        own = p[np.arange(90), y]
        own[:9] = np.finfo(float).eps
        scores = RuleScorer(["wlw2"])(model, X, truth)
        assert_allclose(scores["wlw2_neg_log_loss"], np.log(own).mean(), rtol=1e-10)
        assert scores["wlw2_accuracy"] == (model.predict(X) == truth).mean()

    def test_labels_for_objects(self):
        model = CoupledSVC(scaling=None).fit(X, y)
        rules = {"newton": HastieTibshirani(), "printed": HastieTibshirani(solver="printed")}
        scores = RuleScorer(rules, "accuracy")(model, X, y)
        assert list(scores) == ["newton_accuracy", "printed_accuracy"]
        assert list(RuleScorer([HastieTibshirani(), "vote"]).labelled()) == ["ht", "vote"]

    def test_unconverged_rules_warn_once_each(self):
        model = CoupledSVC(scaling=None).fit(X, y)
        with pytest.warns(ConvergenceWarning, match="'ht' did not converge on") as caught:
            RuleScorer([HastieTibshirani(solver="printed", max_iter=1), "wlw2"])(model, X, y)
        assert len(caught) == 1 and caught[0].filename == __file__

    def test_scaling(self):
        model = CoupledSVC().fit(X, y)
        with pytest.raises(ValueError, match="scaling .* for 'wlw2', not for 'ht'.*=None"):
            RuleScorer()(model, X, y)
        scores = RuleScorer(metrics=["accuracy"])(model, X, y)
        plain = CoupledSVC(scaling=None).fit(X, y)
        assert scores == RuleScorer(metrics=["accuracy"])(plain, X, y)

    @pytest.mark.parametrize("seed", range(5))
    def test_random_ties_are_broken_as_in_a_fit(self, seed, monkeypatch):
        # All rows are alike and all classes tie, so that the seed chooses one class for all.
        monkeypatch.setattr(CoupledClassifier, "_row_blocks", RowBlocks(6))
        zeros, classes = np.zeros((40, 1)), np.repeat(np.arange(4), 10)
        truth = np.repeat(np.arange(4), [16, 8, 4, 12])
        rule = Vote(random_state=np.random.RandomState(seed))
        model = CoupledClassifier(DummyClassifier(), combiner=rule, scaling=None)
        expected = model.fit(zeros, classes).score(zeros, truth)
        assert RuleScorer([rule])(model, zeros, truth)["vote_accuracy"] == expected
        assert isinstance(rule.random_state, np.random.RandomState)

    def test_clones_and_pickles(self):
        scorer = RuleScorer({"a": "ht", "b": Vote(3)}, ["accuracy"])
        model = CoupledSVC().fit(X, y)
        for again in (clone(scorer), pickle.loads(pickle.dumps(scorer))):
            assert again(model, X, y) == scorer(model, X, y)

    def test_parallel_searches(self):
        search = GridSearchCV(
            CoupledSVC(scaling=None), {"C": [1, 10]}, scoring=RuleScorer(), refit=False, cv=2
        )
        with parallel_config("threading"):
            one, two = (clone(search).set_params(n_jobs=n).fit(X, y).cv_results_ for n in (1, 2))
        for rule, metric in product(WU, BOTH):
            assert_array_equal(one[f"mean_test_{rule}_{metric}"], two[f"mean_test_{rule}_{metric}"])


@cache  # not fitted when the file is read: each process reads all files
def plain_model():
    return CoupledClassifier(LogisticRegression(), scaling=None, cv=2).fit(X, y)


class TestRuleScorerErrors:
    @pytest.mark.parametrize(
        ("scorer", "message"),
        [
            (RuleScorer("ht"), "rules='ht' is a string: pass a list, ['ht']"),
            (RuleScorer([]), "rules is empty"),
            (RuleScorer({}), "rules is empty"),
            (RuleScorer(["nonsense"]), "unknown combiner 'nonsense'"),
            (RuleScorer(["ht", HastieTibshirani()]), "'ht' more than once: pass a dict"),
            (RuleScorer(metrics=["brier"]), "metrics=['brier']: choose among accuracy, neg_log"),
            (RuleScorer(metrics=[]), "metrics=[]: choose among"),
            (RuleScorer(["normalize"]), "'normalize' is defined for one-vs-rest codes"),
            (RuleScorer(["hamming"], ["neg_log_loss"]), "'hamming' gives no probabilities: add"),
            (RuleScorer(["hamming"]), "'hamming' takes margins, but with the combiner 'wlw2'"),
        ],
        ids=repr,
    )
    def test_bad_arguments(self, scorer, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            scorer(plain_model(), X, y)

    def test_decoders_have_no_probabilities_to_couple(self):
        model = CoupledSVC(combiner="max-wins", scaling=None).fit(X, y)
        with pytest.raises(ValueError, match="'ht' takes probabilities.*'max-wins'.*: search with"):
            RuleScorer(["ht"])(model, X, y)

    def test_rules_that_learn(self):
        class Learner(Vote):
            key = "learner"
            learns = True

        class Measured(Vote):
            key = "measured"

            def measure(self):
                return object()

        for rule in (Learner(), Measured()):
            with pytest.raises(
                ValueError, match=f"'{rule.key}' learns from the training set: search"
            ):
                RuleScorer([rule])(plain_model(), X, y)

    @pytest.mark.parametrize("wrap", [lambda model: model, make_pipeline])
    def test_other_estimators(self, wrap):
        with pytest.raises(ValueError, match="RuleScorer got GaussianNB: it scores CoupledCl"):
            RuleScorer()(wrap(GaussianNB()).fit(X, y), X, y)

    def test_unfitted_estimators(self):
        with pytest.raises(NotFittedError):
            RuleScorer()(CoupledSVC(scaling=None), X, y)


# -- the best of every rule ------------------------------------------------------------


VALUES = {"C": [10, 0.1, 1], "gamma": [0.01, 0.1]}


@pytest.fixture(scope="module")
def one_search():
    model = CoupledSVC(scaling=None)
    return GridSearchCV(model, VALUES, scoring=RuleScorer(), refit=False, cv=3).fit(X, names)


def columns(search, rule):
    return [
        np.column_stack([search.cv_results_[f"split{i}_test_{rule}_{m}"] for i in range(3)])
        for m in BOTH
    ]


class TestBestPerRule:
    def test_smallest_c(self, one_search):
        best = best_per_rule(one_search)
        assert list(best) == list(WU)
        params = one_search.cv_results_["params"]
        for rule in WU:
            accuracies, _ = columns(one_search, rule)
            assert best[rule] == params[naive_search.smallest_c(params, accuracies, None, "C")]

    def test_other_choices(self, one_search):
        best = best_per_rule(one_search, choose=SmoothestBest())
        params = one_search.cv_results_["params"]
        for rule in WU:
            chosen = naive_search.smoothest_best(
                params, *columns(one_search, rule), "C", "gamma", True
            )
            assert best[rule] == params[chosen]
        first = best_per_rule(one_search, "vote", choose=lambda results: 0)
        assert first == {"vote": params[0]}

    def test_answers_are_copies(self, one_search):
        best_per_rule(one_search)["ht"]["C"] = None
        assert all(params["C"] for params in one_search.cv_results_["params"])

    def test_estimators(self, one_search):
        best = best_per_rule(one_search)
        for rule, model in estimator_per_rule(one_search).items():
            assert model.combiner == rule and model.scaling is None
            assert (model.C, model.gamma) == tuple(best[rule].values())
            assert not hasattr(model, "bank_")
        assert one_search.estimator.combiner == "auto"

    def test_estimators_in_pipelines(self):
        pipeline = make_pipeline(StandardScaler(), CoupledSVC(scaling=None))
        rules = {"mine": HastieTibshirani(tol=1e-6), "vote": "vote"}
        search = GridSearchCV(
            make_pipeline(pipeline),
            {"pipeline__coupledsvc__C": [1, 10]},
            scoring=RuleScorer(rules),
            refit=False,
            cv=2,
        ).fit(X, names)
        models = estimator_per_rule(search)
        last = models["mine"][-1][-1]
        assert last.combiner is not rules["mine"] and last.combiner.tol == 1e-6
        assert last.C == best_per_rule(search)["mine"]["pipeline__coupledsvc__C"]
        assert models["vote"].fit(X, names)[-1][-1].combiner_.key == "vote"

    def test_two_steps_for_one_of_the_rules(self):
        search = TwoStepGridSearchCV(
            CoupledSVC(scaling=None),
            VALUES,
            factors=[0.5, 1],
            scoring=RuleScorer(["ht", "vote"]),
            refit=SmoothestBest(accuracy="ht_accuracy", log_loss="ht_neg_log_loss"),
            cv=2,
        ).fit(X, y)
        assert search.cv_results_["step"][search.best_index_] == "fine"

    def test_errors(self, one_search):
        with pytest.raises(ValueError, match="no scores of the rule 'kl', only ht_accuracy, ht"):
            best_per_rule(one_search, ["kl"])
        other = GridSearchCV(SVC(), {"C": [1]}, cv=2).fit(X, y)
        with pytest.raises(ValueError, match="scoring=None: pass scoring=RuleScorer"):
            best_per_rule(other)
        with pytest.raises(NotFittedError):
            best_per_rule(GridSearchCV(SVC(), {"C": [1]}))

    def test_searches_whose_scores_all_failed(self):
        search = GridSearchCV(CoupledSVC(), {"C": [1]}, scoring=RuleScorer(), refit=False, cv=2)
        with (
            pytest.warns(UserWarning, match="scaling=None"),
            pytest.warns(UserWarning, match="non-finite"),
        ):
            search.fit(X, y)
        with pytest.raises(ValueError, match="no scores of the rule 'ht', only score.*='raise'"):
            best_per_rule(search)
        with pytest.raises(ValueError, match="scaling=None"):
            search.set_params(error_score="raise").fit(X, y)
