"""CoupledSVCCV: its scores are those of a loop over fits, and its model is that of CoupledSVC."""

from __future__ import annotations

import numpy as np
import pytest
from all_pairs import checks_in_turn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import balanced_accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import cross_val_score
from threadpoolctl import threadpool_limits

from manyclass import CoupledSVC, CoupledSVCCV, to_onnx
from manyclass.plot import ScoreSurfaceDisplay
from manyclass.scaling import StructuredScaling
from manyclass.scores.folds import stratified_folds
from manyclass.search.coupled_svc_cv import advice, best_point
from manyclass.search.left_out_scoring import PARTS
from manyclass.search.svm_grid import walk
from manyclass.storage import load_model, save_model

X, y = make_blobs(90, n_features=3, centers=4, cluster_std=3.0, random_state=0)
NAMES = np.array(["dog", "ant", "cat", "bee"])[y]
GRID = {"Cs": [1.0, 10.0, 1000.0], "gammas": [0.003, 0.03]}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


class NaiveGrid(CoupledSVC):
    """One cold fit, whose left-out probabilities are scored as the grid's."""

    def _fit_scaling(self, evidence, plan):
        super()._fit_scaling(evidence, plan)
        known = evidence.left_out(self.calibration_)
        self.known, p = known, np.empty_like(known["p"])
        for train, test in stratified_folds(PARTS, known["y"], np.arange(p.shape[1])):
            part = {key: known[key][train] for key in ("p", "y", "weights", "columns")}
            fitted = StructuredScaling().fit_checked(**part, code=known["code"], choose=False)
            p[test] = fitted.scale(known["p"][test], columns=known["columns"][test])
        self.left_out = p

    def log_loss(self):
        reached = self.left_out[np.arange(len(self.left_out)), self.known["y"]]
        return -np.average(np.log(reached), weights=self.known["weights"])


class TestScores:
    @pytest.mark.parametrize("weighted", [False, True])
    def test_they_are_those_of_a_loop_over_fits(self, weighted):
        w = np.random.default_rng(0).integers(1, 4, len(y)) if weighted else None
        # A tight solver: cold and warm starts end at the same machine.
        tight = {"tol": 1e-8, "class_weight": {0: 2.0} if weighted else None}
        model = CoupledSVCCV(**GRID, **tight).fit(X, y, sample_weight=w)
        for i, gamma in enumerate(GRID["gammas"]):
            for j, C in enumerate(GRID["Cs"]):
                one = NaiveGrid(C=C, gamma=gamma, **tight).fit(X, y, sample_weight=w)
                # The left-out machines are solved to a tenth, from where the fit ended.
                assert_allclose(-model.scores_[i, j], one.log_loss(), rtol=0.02)

    def test_the_machines_are_those_of_cold_fits(self):
        model = CoupledSVC(tol=1e-6)
        prepared = model._prepare(X, y, None, {})

        def machine(C, gamma):
            return CoupledSVC(C=C, gamma=float(gamma), tol=1e-6)._base_estimator()

        Cs = np.array(GRID["Cs"])
        found = {}
        for point in walk(prepared.fit_part, Cs, np.array(GRID["gammas"]), machine):
            bank = found[point.row] = point.bank or found[point.row]
            cold = point.fit_part()
            assert_allclose(bank.margins_once(X), cold.margins_once(X), atol=1e-4)

    def test_they_do_not_depend_on_the_number_of_threads(self):
        one, two = (CoupledSVCCV(**GRID, n_jobs=n).fit(X, y) for n in (None, 3))
        assert_array_equal(one.scores_, two.scores_)
        assert_array_equal(one.predict_proba(X), two.predict_proba(X))

    def test_they_do_not_depend_on_the_labels(self):
        one, other = CoupledSVCCV(**GRID).fit(X, y), CoupledSVCCV(**GRID).fit(X, NAMES)
        assert_allclose(one.scores_, other.scores_, rtol=1e-2)
        assert (one.C_, one.gamma_) == (other.C_, other.gamma_)

    def test_the_order_of_the_grid_is_kept(self):
        back = {key: values[::-1] for key, values in GRID.items()}
        one, other = CoupledSVCCV(**GRID).fit(X, y), CoupledSVCCV(**back).fit(X, y)
        assert_array_equal(one.scores_, other.scores_[::-1, ::-1])
        assert (one.C_, one.gamma_) == (other.C_, other.gamma_)
        assert_array_equal(other.Cs_, back["Cs"])

    def test_they_are_honest(self):
        model = CoupledSVCCV(Cs=[1.0], gammas=[0.03]).fit(X, y)
        folds = cross_val_score(CoupledSVC(gamma=0.03), X, y, scoring="neg_log_loss", cv=10)
        assert abs(model.best_score_ - folds.mean()) < 0.15


class TestScoring:
    @pytest.mark.parametrize("name", ["accuracy", "neg_brier_score", "neg_log_loss", "roc_auc_ovr"])
    @pytest.mark.parametrize("two", [False, True])
    def test_names_mean_what_they_mean_in_scikit_learn(self, name, two):
        kept = y < 2 if two else y < 4
        seen = {}

        def spy(model, rows, labels):
            seen["score"] = get_scorer(name if not two else name.removesuffix("_ovr"))(
                model, rows, labels
            )
            return seen["score"]

        grid = {"Cs": [1.0], "gammas": [0.03]}
        given = CoupledSVCCV(**grid, scoring=spy).fit(X[kept], y[kept])
        name = name.removesuffix("_ovr") if two else name
        model = CoupledSVCCV(**grid, scoring=name).fit(X[kept], y[kept])
        assert_allclose(model.best_score_, given.best_score_, rtol=1e-12)

    def test_scorers_of_labels_and_label_decoders(self):
        options = {"scoring": make_scorer(balanced_accuracy_score), "combiner": "max-wins"}
        model = CoupledSVCCV(**GRID, **options).fit(X, y)
        assert 0.5 < model.best_score_ <= 1.0
        assert not hasattr(model, "predict_proba")

    def test_a_class_with_one_sample_is_not_scored(self):
        rows = np.append(np.flatnonzero(y < 3), np.flatnonzero(y == 3)[0])
        with pytest.warns(UserWarning, match="a single sample"):
            model = CoupledSVCCV(Cs=[1.0], gammas=[0.03]).fit(X[rows], y[rows])
        assert np.isfinite(model.scores_).all()
        assert len(model.classes_) == 4


class TestModel:
    def test_it_is_that_of_coupled_svc(self):
        model = CoupledSVCCV(**GRID).fit(X, NAMES)
        same = CoupledSVC(C=model.C_, gamma=model.gamma_).fit(X, NAMES)
        assert_array_equal(model.predict_proba(X), same.predict_proba(X))
        for name in ("support_", "dual_coef_", "intercept_", "n_iter_", "probA_", "score_sources_"):
            assert_array_equal(getattr(model, name), getattr(same, name))
        assert model.score(X, NAMES) == same.score(X, NAMES)

    @pytest.mark.parametrize("code", ["one-vs-one", "one-vs-rest", "sparse-random"])
    def test_the_code_is_drawn_once(self, code):
        rng = np.random.RandomState(0)
        model = CoupledSVCCV(Cs=2, gammas=2, code=code, random_state=rng).fit(X, y)
        options = {"C": model.C_, "gamma": model.gamma_, "code": code}
        same = CoupledSVC(**options, random_state=np.random.RandomState(0)).fit(X, y)
        assert_array_equal(model.predict_proba(X), same.predict_proba(X))

    def test_numbers_mean_multiples_of_scale(self):
        model = CoupledSVCCV(Cs=3, gammas=3).fit(X, y)
        assert_allclose(model.Cs_, [0.1, 10, 1000])
        assert_allclose(model.gammas_, np.array([0.1, 1, 10]) / (3 * X.var()))
        assert_allclose(CoupledSVCCV(Cs=1, gammas=["scale", "auto"]).fit(X, y).Cs_, [10])

    @pytest.mark.parametrize("kernel", ["linear", "precomputed"])
    def test_kernels_without_gamma_ignore_it(self, kernel):
        data = X @ X.T if kernel == "precomputed" else X
        model = CoupledSVCCV(Cs=[0.1, 1], kernel=kernel).fit(data, y)
        assert model.scores_.shape == (1, 2) and model.gamma_ == "scale"
        same = CoupledSVC(C=model.C_, kernel=kernel).fit(data, y)
        assert_array_equal(model.predict_proba(data), same.predict_proba(data))

    def test_sparse_features(self):
        dense, sparse = (CoupledSVCCV(**GRID).fit(data, y) for data in (X, csr_array(X)))
        assert_allclose(dense.scores_, sparse.scores_, rtol=1e-2)

    def test_folds_of_groups(self):
        twice, groups = np.vstack([X, X]), np.tile(np.arange(len(y)) % 5, 2)
        splits = [(np.flatnonzero(groups != g), np.flatnonzero(groups == g)) for g in range(5)]
        model = CoupledSVCCV(**GRID, cv=splits).fit(twice, np.tile(y, 2))
        options = {"C": model.C_, "gamma": model.gamma_, "cv": splits}
        same = CoupledSVC(**options).fit(twice, np.tile(y, 2))
        assert_array_equal(model.predict_proba(X), same.predict_proba(X))
        flattered = CoupledSVCCV(**GRID, cv=5).fit(twice, np.tile(y, 2))
        assert model.best_score_ < flattered.best_score_

    def test_small_caches_change_nothing_but_time(self):
        large, small = (CoupledSVCCV(**GRID, cache_size=size).fit(X, y) for size in (200, 0.01))
        assert_allclose(large.scores_, small.scores_, rtol=1e-2)

    def test_it_is_stored_and_exported(self, tmp_path):
        ort = pytest.importorskip("onnxruntime")
        model = CoupledSVCCV(Cs=2, gammas=2).fit(X, NAMES)
        save_model(model, tmp_path / "model.skops")
        loaded = load_model(tmp_path / "model.skops")
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert_array_equal(loaded.scores_, model.scores_)
        session = ort.InferenceSession(to_onnx(model).SerializeToString())
        assert_allclose(session.run(None, {"X": X})[0], model.predict_proba(X), atol=1e-9)


class TestBestPoint:
    def test_ties_choose_the_smaller_C(self):
        scores, Cs = np.zeros((2, 3)), np.array([10.0, 1.0, 100.0])
        scores[0, 0] = -1.0
        assert best_point(scores, Cs, np.array([0.2, 0.1])) == (1, 1)

    def test_machines_far_from_their_bounds_share_a_score(self):
        X, y = load_iris(return_X_y=True)
        kept = y != 2  # separable
        model = CoupledSVCCV(Cs=[1e3, 1e4, 1e5], gammas=[0.1]).fit(X[kept], y[kept])
        assert len(np.unique(model.scores_)) == 1
        assert model.C_ == 1e3

    def test_advice_at_the_edges(self):
        Cs, gammas = np.array([1.0, 10.0, 100.0]), np.array([0.1, 1.0])
        smallest = "the best is the smallest of gammas: add smaller ones"
        assert advice(Cs, gammas, 10.0, 0.1) == smallest
        assert advice(Cs, np.array(["scale"]), 10.0, "scale") == ""
        both = "the best is the largest of Cs: add larger ones; "
        assert advice(Cs, gammas, 100.0, 1.0).startswith(both)

    def test_verbose_prints_the_points(self, capsys):
        model = CoupledSVCCV(Cs=[0.1, 1.0], gammas=[0.03], verbose=True).fit(X, y)
        printed = capsys.readouterr().out
        assert printed.count("C = ") == 3 and model.advice_ in printed


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"Cs": 0}, "Cs must be at least 1"),
            ({"Cs": []}, "Cs must be a number of values"),
            ({"Cs": [1.0, -1.0]}, "finite numbers > 0, got -1.0"),
            ({"gammas": [np.inf]}, "finite numbers >= 0, got inf"),
            ({"gammas": ["scala"]}, "gamma must be 'scale', 'auto' or a number"),
            ({"scoring": "neg_logloss"}, "scoring"),
            ({"combiner": "max-wins"}, "needs probabilities, but the combiner gives labels only"),
            ({"combiner": "softmax"}, "is trained"),
            ({"cv": None, "combiner": "max-wins", "scoring": "accuracy"}, "leaves nothing out"),
            ({"code": "native"}, "no machine for each column"),
        ],
        ids=str,
    )
    def test_messages(self, options, message):
        model = CoupledSVCCV(**{"Cs": [1.0], "gammas": [0.1], **options})
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        assert not hasattr(model, "bank_")


class TestPicture:
    def test_it_shows_the_scores_and_the_best(self):
        plt = pytest.importorskip("matplotlib.pyplot")
        model = CoupledSVCCV(**GRID).fit(X, y)
        display = ScoreSurfaceDisplay.from_estimator(model)
        assert_array_equal(display.im_.get_array(), model.scores_)
        assert len(display.text_) == model.scores_.size
        plt.close("all")
        flat = ScoreSurfaceDisplay.from_estimator(CoupledSVCCV(kernel="linear", Cs=3).fit(X, y))
        assert flat.im_.get_array().shape == (1, 3)
        plt.close("all")

    def test_other_models_have_no_scores(self):
        with pytest.raises(ValueError, match="CoupledSVC has no scores_"):
            ScoreSurfaceDisplay.from_estimator(CoupledSVC().fit(X, y))


@checks_in_turn([CoupledSVCCV(Cs=2, gammas=2)], expected_failed_checks=lambda estimator: {})
def test_scikit_learn_checks(estimator, check):
    check(estimator)
