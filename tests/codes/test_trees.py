"""Class trees: built from data, found in any matrix, coupled along paths."""

from __future__ import annotations

import naive_many
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, CoupledSVC, codes, couple
from manyclass.codes import ClassTrees, QAry, class_trees, count_trees
from manyclass.codes.tree_structure import single_tree
from manyclass.plot import CodeMatrixDisplay
from manyclass.storage import load_model, save_model

quick = settings(deadline=None, max_examples=15)
seeds = st.integers(0, 2**32 - 1)
X, y = make_blobs(240, n_features=5, centers=12, cluster_std=2.0, random_state=0)


def random_tree(k, rng):
    """A random binary tree over k classes, columns in random order and with random signs."""
    columns, waiting = [], [rng.permutation(k)]
    while waiting:
        group = waiting.pop()
        cut = rng.integers(1, len(group))
        column = np.zeros(k, dtype=np.int8)
        column[group[:cut]], column[group[cut:]] = 1, -1
        columns.append(column * rng.choice([-1, 1]))
        waiting += [part for part in (group[:cut], group[cut:]) if len(part) > 1]
    return np.array(columns).T[:, rng.permutation(k - 1)].astype(np.int8)


def random_trees(k, n_trees, rng):
    code = np.hstack([random_tree(k, rng) for _ in range(n_trees)])
    return np.ascontiguousarray(code[:, rng.permutation(code.shape[1])])


class TestFound:
    @quick
    @given(seed=seeds, k=st.integers(2, 12), n_trees=st.integers(1, 4))
    def test_in_any_order_and_with_any_signs(self, seed, k, n_trees):
        code = random_trees(k, n_trees, np.random.default_rng(seed))
        assert count_trees(code) == n_trees
        assert codes.is_identifiable(code)

    @quick
    @given(seed=seeds, k=st.integers(3, 9))
    def test_not_if_an_entry_is_wrong(self, seed, k):
        rng = np.random.default_rng(seed)
        code = random_trees(k, 2, rng)
        row, column = rng.integers(k), rng.integers(code.shape[1])
        code[row, column] = 0 if code[row, column] else 1
        assert count_trees(code) == 0

    @pytest.mark.parametrize("name", codes.NAMES)
    def test_not_in_other_codes(self, name):
        code = codes.by_name(name, 5, random_state=0)
        assert count_trees(code) == 0
        assert count_trees(codes.by_name(name, 2, random_state=0)) > 0

    def test_twice_the_same_split_needs_twice_the_parts(self):
        tree = np.array([[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]], dtype=np.int8)
        assert count_trees(tree) == 1
        assert count_trees(np.hstack([tree, tree])) == 2
        assert count_trees(np.hstack([tree, tree[:, [0, 1, 1]]])) == 0


class TestCoupling:
    @quick
    @given(seed=seeds, k=st.integers(2, 12), n_trees=st.integers(1, 3))
    def test_agrees_with_the_slow_way(self, seed, k, n_trees):
        rng = np.random.default_rng(seed)
        code = random_trees(k, n_trees, rng)
        r = rng.random((4, code.shape[1])).round(2)
        expected = [naive_many.tree_product(row, code) for row in r]
        assert_allclose(couple(r, code=code, rule="tree-product"), expected, rtol=1e-12)

    @quick
    @given(seed=seeds, k=st.integers(2, 9))
    def test_of_one_tree_is_that_of_kl(self, seed, k):
        rng = np.random.default_rng(seed)
        code = random_tree(k, rng)
        r, weights = rng.uniform(0.02, 0.98, (4, k - 1)), rng.uniform(0.5, 2.0, k - 1)
        p = couple(r, code=code, rule="tree-product")
        assert_allclose(p, couple(r, code=code, rule="kl", weights=weights), rtol=0, atol=1e-8)
        result = couple(r, code=code, rule="tree-product", full_output=True)
        assert_allclose(result.incoherence, 0, atol=1e-12)

    def test_long_paths_and_certain_columns(self):
        k = 300
        chain = np.triu(-np.ones((k, k - 1), dtype=np.int8).T, 1).T.astype(np.int8)
        chain[np.arange(k - 1), np.arange(k - 1)] = 1
        assert count_trees(chain) == 1
        p = couple(np.zeros((2, k - 1)), code=chain, rule="tree-product")
        assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert (p.argmax(axis=1) == k - 1).all()

    def test_other_codes_are_refused(self):
        with pytest.raises(ValueError, match="'tree-product' is defined for class-trees codes"):
            couple([[0.5, 0.5, 0.5]], code="one-vs-one", rule="tree-product")


class TestBuilt:
    @quick
    @given(seed=seeds, n_trees=st.integers(1, 3))
    def test_from_any_data(self, seed, n_trees):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 15))
        rows = rng.normal(size=(2 * k, 3)) * rng.choice([0.0, 1.0, 1e6], size=3)
        code = class_trees(rows, np.arange(2 * k) % k, n_trees=n_trees, random_state=seed % 100)
        assert code.shape == (k, n_trees * (k - 1)) and count_trees(code) == n_trees
        assert codes.audit(code).valid or n_trees > 1

    def test_the_seed_decides(self):
        first, again = (class_trees(X, y, random_state=3) for _ in range(2))
        assert_array_equal(first, again)
        assert (first != class_trees(X, y, random_state=4)).any()

    @pytest.mark.parametrize("seed", [0, 1])
    def test_names_of_classes_do_not_matter(self, seed):
        perm = np.random.default_rng(seed).permutation(12)
        code = class_trees(X, y, random_state=0)
        assert_array_equal(class_trees(X, perm[y], random_state=0)[perm], code)

    def test_scales_of_features_do_not_matter(self):
        code = class_trees(X, y, random_state=0)
        scaled = X * np.array([1e-6, 1.0, 3.0, 1e5, 10.0]) + 7.0
        assert_array_equal(class_trees(scaled, y, random_state=0), code)
        for power in (-1000, 600, 1000):  # squares would leave the range of float64
            assert_array_equal(class_trees(np.ldexp(X, power), y, random_state=0), code)

    def test_forms_of_the_data(self):
        code = class_trees(X, y, random_state=0)
        for same in (csr_array(X), csc_array(X), pd.DataFrame(X), X.tolist(), np.asfortranarray(X)):
            assert_array_equal(class_trees(same, y, random_state=0), code)

    def test_near_classes_stay_together(self):
        places = np.array([0.0, 1.0, 100.0, 101.0, 103.0])[:, None]
        rows = np.repeat(places, 4, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(20, 1))
        code = class_trees(rows, np.repeat(np.arange(5), 4), n_trees=1, random_state=0)
        root = code[:, 0]
        assert root[0] == root[1] != root[2] == root[3] == root[4]

    def test_many_features_and_missing_values(self):
        rng = np.random.default_rng(0)
        wide = np.hstack([X, 0.01 * rng.normal(size=(240, 300))])
        wide[rng.random(wide.shape) < 0.05] = np.nan
        assert count_trees(class_trees(wide, y, random_state=0)) == 4
        sparse = csr_array(np.nan_to_num(wide))
        assert count_trees(class_trees(sparse, y, random_state=0)) == 4

    def test_weights_are_counts(self):
        weights = np.random.default_rng(0).integers(0, 3, 240)
        weights[:24] = 1  # two rows of each class or more
        rows = np.repeat(np.arange(240), weights)
        options = {"k": 12, "random_state": 0}
        weighted = ClassTrees().build(X, y, sample_weight=weights, **options)
        assert_array_equal(weighted, ClassTrees().build(X[rows], y[rows], **options))
        none = np.where(y == 3, 0.0, 1.0)  # a class without weight has a place, too
        assert count_trees(ClassTrees().build(X, y, sample_weight=none, **options)) == 4

    def test_a_row_of_each_class_is_enough(self):
        assert count_trees(class_trees(X[:12], np.arange(12), random_state=0)) == 4
        assert count_trees(class_trees(np.zeros((6, 2)), np.arange(6), random_state=0)) == 4

    def test_better_than_chance(self):
        """Splits by the data have a lower log-loss than random trees."""
        rows, labels = make_blobs(900, n_features=3, centers=30, random_state=0)
        options = {"cv": None, "calibration": None, "scaling": None}

        def loss(code):
            model = CoupledClassifier(LinearDiscriminantAnalysis(), code=code, **options)
            p = model.fit(rows[::2], labels[::2]).predict_proba(rows[1::2])
            return log_loss(labels[1::2], p)

        ours = loss(class_trees(rows[::2], labels[::2], random_state=0))
        assert ours < 0.7 * loss(random_trees(30, 4, np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_trees": 0}, "n_trees must be an integer of at least 1, got 0"),
        ({"n_candidates": 1.5}, "n_candidates must be an integer"),
        ({"y": [1] * 240}, "y has only one class, 1"),
        ({"y": [0, 1, 0]}, "inconsistent numbers of samples"),
        ({"X": X[:0], "y": []}, "y has no classes"),
        ({"X": np.array([["a"] * 2] * 240, dtype=object)}, "class trees are built from numeric"),
    ],
)
def test_bad_arguments_are_named(change, message):
    arguments = {"X": X, "y": y, **change}
    with pytest.raises(ValueError if "1.5" not in str(change) else TypeError, match=message):
        class_trees(arguments.pop("X"), arguments.pop("y"), **arguments)


class TestClassifier:
    @pytest.mark.parametrize(("most", "pools"), [(12, True), (11, False)])
    def test_few_classes_are_pooled_with_the_learners_own_model(self, most, pools, monkeypatch):
        monkeypatch.setattr(CoupledClassifier, "_most_with_native", most)
        options = {"code": ClassTrees(1), "cv": 2, "random_state": 0}
        model = CoupledClassifier(GaussianNB(), **options).fit(X, y)
        assert (model.native_ is not None) == pools
        asked = CoupledClassifier(GaussianNB(), with_native=not pools, **options).fit(X, y)
        assert (asked.native_ is not None) != pools

    @pytest.mark.parametrize(
        "estimator", [LogisticRegression(), GaussianNB(), LinearSVC()], ids=repr
    )
    def test_fits_and_is_a_clone_of_itself(self, estimator):
        model = CoupledClassifier(estimator, code="class-trees", cv=2, random_state=0)
        p = model.fit(X, y).predict_proba(X)
        assert model.combiner_.key == "tree-product" and model.code_.shape == (12, 44)
        assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
        assert (model.predict(X) == y).mean() > 0.6
        with parallel_config("threading"):
            assert_array_equal(clone(model).set_params(n_jobs=2).fit(X, y).predict_proba(X), p)

    def test_parameters_of_the_trees_can_be_searched(self):
        model = CoupledClassifier(code=ClassTrees(n_trees=1), random_state=0)
        assert clone(model).set_params(code__n_trees=2).fit(X, y).code_.shape == (12, 22)
        assert model.fit(X, y).code_.shape == (12, 11)

    def test_own_objects_with_build(self):
        class Halves:
            def build(self, X, y, k, random_state):
                assert len(X) == len(y) == 240 and k == 12
                return codes.ordinal(k)

        model = CoupledClassifier(GaussianNB(), code=Halves(), cv=None).fit(X, y)
        assert_array_equal(model.code_, codes.ordinal(12))

    def test_support_vector_machines(self):
        model = CoupledSVC(code="class-trees", random_state=0).fit(X, y)
        assert_allclose(model.predict_proba(X).sum(axis=1), 1, rtol=0, atol=1e-12)

    def test_batches(self):
        model = CoupledClassifier(
            SGDClassifier(loss="log_loss", random_state=0), code="class-trees", random_state=0
        )
        order = np.random.default_rng(0).permutation(240)
        for rows in np.array_split(order, 3):
            model.partial_fit(X[rows], y[rows], classes=np.arange(12))
        assert model.combiner_.key == "tree-product" and model.score(X, y) > 0.4

    def test_a_first_batch_without_some_class_is_named(self):
        model = CoupledClassifier(SGDClassifier(loss="log_loss"), code="class-trees")
        few = y != 7
        with pytest.raises(ValueError, match="samples of 11 of 12 classes.*first batch with all"):
            model.partial_fit(X[few], y[few], classes=np.arange(12))

    def test_plots(self):
        plt = pytest.importorskip("matplotlib.pyplot", reason="plots need matplotlib")
        model = CoupledClassifier(code=ClassTrees(1), cv=None, random_state=0).fit(X, y)
        display = CodeMatrixDisplay.from_estimator(model)
        plt.close(display.figure_)

    @pytest.mark.parametrize("code", [ClassTrees(1), QAry(5, 1)], ids=repr)
    def test_stored_models(self, code, tmp_path):
        pytest.importorskip("skops.io", reason="stored models need skops")
        model = CoupledClassifier(GaussianNB(), code=code, cv=2, random_state=0).fit(X, y)
        save_model(model, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops")
        assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert repr(again.code) == repr(code)

    @pytest.mark.parametrize(("name", "of"), [("class-trees", "ClassTrees"), ("q-ary", "QAry")])
    def test_has_no_name_without_data(self, name, of):
        with pytest.raises(ValueError, match=rf"from training data: use codes.{of}\(\).build"):
            codes.by_name(name, 5)

    def test_a_class_in_place_of_an_object(self):
        with pytest.raises(TypeError, match=r"the class ClassTrees: pass an object, ClassTrees\("):
            CoupledClassifier(code=ClassTrees).fit(X, y)


class TestTop:
    @pytest.mark.parametrize("m", [1, 3, 12, 20])
    def test_along_paths_is_that_of_all_probabilities(self, m):
        model = CoupledClassifier(code=ClassTrees(n_trees=1), cv=None, random_state=0).fit(X, y + 5)
        assert model._is_logistic_tree()
        labels, p = model.predict_top(X, m)
        whole = model.predict_proba(X)
        m = min(m, 12)
        assert labels.shape == p.shape == (240, m)
        assert_allclose(p, -np.sort(-whole, axis=1)[:, :m], atol=1e-12)
        assert_allclose(np.take_along_axis(whole, labels - 5, axis=1), p, atol=1e-12)
        slow, same = model.predict_top(csr_array(X), m)
        assert_array_equal(slow[:, 0], labels[:, 0])
        assert_allclose(same, p, atol=1e-12)
        for table in (X.tolist(), np.asfortranarray(X)):
            for found, expected in zip(model.predict_top(table, m), (labels, p), strict=True):
                assert_array_equal(found, expected)

    def test_of_ties_the_first_class_is_best(self):
        rows, classes = np.ones((60, 2)), np.arange(60) % 6
        model = CoupledClassifier(code=ClassTrees(n_trees=1), cv=None, random_state=0)
        labels, p = model.fit(rows, classes).predict_top(rows[:1], 6)
        order = np.argsort(-model.predict_proba(rows[:1]), axis=1, kind="stable")
        assert len(np.unique(p)) < 6
        assert_array_equal(labels, order)
        assert_array_equal(labels[:, 0], model.predict(rows[:1]))

    @quick
    @given(seed=seeds, k=st.integers(2, 12))
    def test_nodes_lead_to_the_classes_of_their_columns(self, seed, k):
        code = random_tree(k, np.random.default_rng(seed))
        root, children = single_tree(code)

        def below(node):
            return {-node - 1} if node < 0 else set().union(*map(below, children[node]))

        assert below(root) == set(range(k))
        for column, (negative, positive) in zip(code.T, children, strict=True):
            assert below(negative) == set(np.flatnonzero(column < 0))
            assert below(positive) == set(np.flatnonzero(column > 0))
        assert single_tree(np.hstack([code, code])) is None

    def test_stored_models_have_the_nodes_of_their_code(self, tmp_path):
        pytest.importorskip("skops.io", reason="stored models need skops")
        model = CoupledClassifier(code=ClassTrees(1), cv=None, random_state=0).fit(X, y)
        save_model(model, tmp_path / "model.skops")
        labels, p = load_model(tmp_path / "model.skops").predict_top(X, 3)
        assert_array_equal(labels, model.predict_top(X, 3)[0])
        assert_array_equal(p, model.predict_top(X, 3)[1])
        root, children = model.tree_
        model.tree_ = root, children[::-1].copy()
        save_model(model, tmp_path / "wrong.skops")
        with pytest.raises(ValueError, match="arrays of CoupledClassifier do not fit"):
            load_model(tmp_path / "wrong.skops")

    def test_of_any_other_model(self):
        model = CoupledClassifier(GaussianNB(), code="class-trees", cv=2, random_state=0).fit(X, y)
        labels, p = model.predict_top(X, 2)
        assert_array_equal(labels[:, 0], model.predict(X))
        assert_array_equal(p[:, 0], model.predict_proba(X).max(axis=1))

    @pytest.mark.parametrize("m", [0, -1])
    def test_bad_numbers(self, m):
        model = CoupledClassifier(code=ClassTrees(1), cv=None).fit(X, y)
        with pytest.raises(ValueError, match="m must be an integer of at least 1"):
            model.predict_top(X, m)


class TestGroups:
    """Nodes with more than two groups, one multiclass model each."""

    @quick
    @given(seed=seeds, k=st.integers(2, 14), q=st.integers(2, 6))
    def test_columns(self, seed, k, q):
        rng = np.random.default_rng(seed)
        n_trees = 2
        code = QAry(q, n_trees).build(rng.normal(size=(2 * k, 3)), np.arange(2 * k) % k, k, 0)
        trees = codes.find_trees(code)
        assert trees.n_trees == (n_trees if k > q else 1)
        assert max(block.stop - block.start for block in trees.blocks) <= q
        assert codes.is_identifiable(code)

    @quick
    @given(seed=seeds, k=st.integers(3, 12))
    def test_coupling_recovers_p(self, seed, k):
        rng = np.random.default_rng(seed)
        code = QAry(3, 2).build(rng.normal(size=(2 * k, 3)), np.arange(2 * k) % k, k, 0)
        p = 0.5 / k + 0.5 * rng.dirichlet(np.ones(k), size=4)
        plus, minus = p @ (code == 1), p @ (code == -1)
        r = plus / (plus + minus)
        assert_allclose(couple(r, code=code, rule="tree-product"), p, atol=1e-12)

    def test_no_model_sees_more_groups(self):
        model = CoupledClassifier(Limited(5), code=QAry(5, n_trees=2), cv=3, random_state=0)
        p = model.fit(X, y).predict_proba(X)
        assert model.native_ is None and model.combiner_.key == "tree-product"
        assert max(len(m.classes_) for m in model.estimators_) <= 5
        assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert (model.predict(X) == y).mean() > 0.6
        with pytest.raises(ValueError, match="at most 5 classes"):
            CoupledClassifier(Limited(5), code="native").fit(X, y)

    def test_few_classes_are_one_problem(self):
        few = y < 5
        options = {"cv": None, "calibration": None, "scaling": None}
        ours = CoupledClassifier(GaussianNB(), code="q-ary", **options).fit(X[few], y[few])
        itself = GaussianNB().fit(X[few], y[few])
        assert_allclose(ours.predict_proba(X), itself.predict_proba(X), atol=1e-6)

    def test_without_batches(self):
        assert not hasattr(CoupledClassifier(GaussianNB(), code="q-ary"), "partial_fit")
        assert hasattr(CoupledClassifier(GaussianNB(), code="class-trees"), "partial_fit")

    def test_bad_limit(self):
        with pytest.raises(ValueError, match="max_classes must be an integer of at least 2"):
            QAry(1).build(X, y, 12)


class Limited(GaussianNB):
    """A learner that takes a few classes only."""

    def __init__(self, most=10):
        super().__init__()
        self.most = most

    def fit(self, X, y, sample_weight=None):
        if len(np.unique(y)) > self.most:
            raise ValueError(f"at most {self.most} classes")
        return super().fit(X, y, sample_weight)
