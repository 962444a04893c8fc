"""Hierarchies that the user knows: nodes, columns, decisions and their distances."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.naive_bayes import GaussianNB

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.codes import Hierarchy, count_trees
from manyclass.metrics import hierarchy_distance

quick = settings(deadline=None, max_examples=15)
ANIMALS = {"mammal": ["cat", "dog", "horse"], "bird": {"owl": None, "gull": None}, "fish": ["cod"]}
PARENTS = [("cat", "mammal"), ("dog", "mammal"), ("horse", "mammal"), ("owl", "bird")]
PARENTS += [("gull", "bird"), ("cod", "fish")]
NAMES = np.array(["cat", "cod", "dog", "gull", "horse", "owl"])
X, places = make_blobs(180, n_features=4, centers=6, cluster_std=2.0, random_state=0)
y = NAMES[places]


def random_hierarchy(rng, labels):
    if len(labels) == 1:
        return labels[0]
    n = int(rng.integers(2, min(4, len(labels)) + 1))
    cuts = np.sort(rng.choice(np.arange(1, len(labels)), n - 1, replace=False))
    return [random_hierarchy(rng, part.tolist()) for part in np.split(np.array(labels), cuts)]


def own_ancestor():
    tree = {"cat": None, "birds": {"owl": None}}
    tree["birds"]["birds"] = tree["birds"]
    return tree


def deep(n_levels):
    tree = ["cat", "dog"]
    for _ in range(n_levels):
        tree = [tree]
    return tree


class TestNodes:
    def test_of_nested_dicts_and_lists(self):
        hierarchy = Hierarchy(ANIMALS)
        assert hierarchy.node_names[:5] == ["root", "mammal", "cat", "dog", "horse"]
        assert_array_equal(hierarchy.classes(), NAMES)
        p = np.eye(6)
        assert_array_equal(hierarchy.node_probabilities(p)[:, 1], [1, 0, 1, 0, 1, 0])

    def test_of_parents(self):
        for parents in (PARENTS, dict(PARENTS), iter(PARENTS), [*PARENTS, *PARENTS]):
            hierarchy = Hierarchy.from_parents(parents, n_trees=2)
            assert hierarchy.node_names == Hierarchy(ANIMALS).node_names
            assert hierarchy.n_trees == 2
        whole = [*PARENTS, ("mammal", "animal"), ("bird", "animal"), ["fish", "animal"]]
        assert Hierarchy.from_parents(whole).node_names[0] == "animal"
        tops = [("mammal", None), *PARENTS, ("bird", None), ("fish", None)]
        assert Hierarchy.from_parents(tops).node_names == Hierarchy(ANIMALS).node_names
        table = pd.Series(dict(PARENTS))
        assert Hierarchy.from_parents(table).node_names == Hierarchy(ANIMALS).node_names
        frame = pd.DataFrame([*PARENTS, ("fish", None), ("bird", np.nan)], columns=["node", "of"])
        for parents in (frame, frame.to_numpy(), frame.itertuples(index=False)):
            assert Hierarchy.from_parents(parents).node_names == Hierarchy(ANIMALS).node_names

    def test_a_class_without_parent_is_below_the_root(self):
        hierarchy = Hierarchy.from_parents({"cat": "mammal", "dog": "mammal", "owl": None})
        assert hierarchy.node_names == ["root", "mammal", "cat", "dog", "owl"]

    def test_of_arrays_and_sets(self):
        arrays = {name: np.array(list(below)) for name, below in ANIMALS.items()}
        assert Hierarchy(arrays).node_names == Hierarchy(ANIMALS).node_names
        letters = set("qwertyuiop")
        assert Hierarchy([letters, "a"]).node_names[2:-1] == sorted(letters)

    def test_of_lists_without_names(self):
        assert Hierarchy([[3, 1], [2, [0, 4]]]).node_names == [
            "root", "3 + 1", 3, 1, "2 + 0 + 4", 2, "0 + 4", 0, 4,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (lambda: Hierarchy.from_parents({"a": "b", "b": "c", "c": "a"}), "'a' is its own anc"),
            (
                lambda: Hierarchy.from_parents([("a", "b"), ("a", "c")]),
                "'a' has two parents, 'b' and 'c'",
            ),
            (lambda: Hierarchy([["a", "b"], ["a", "c"]]), "node 'a' occurs twice"),
            (lambda: Hierarchy({"top": ["a"]}), "single leaf, 'a'"),
            (lambda: Hierarchy(ANIMALS | {"bug": ["ant"]}), "not classes of y: 'ant'"),
            (lambda: Hierarchy([["cat", "dog"], ["owl", "cod", "gull"]]), "no leaf for 'horse'"),
            (lambda: Hierarchy({**ANIMALS, "fish": {"cod": ["ant"]}}), "'cod' .* has children"),
            (lambda: Hierarchy(ANIMALS | {"bug": []}), "node 'bug' of the hierarchy has no child"),
            (lambda: Hierarchy([]), "node 'root' of the hierarchy has no children"),
            (lambda: Hierarchy([["cat", "dog"], []]), "node 'root' .* has the child .., which"),
            (lambda: Hierarchy({"a": ["cat", None]}), "node 'a' .* has the child None, which"),
            (lambda: Hierarchy(own_ancestor()), "node 'birds' is its own ancestor"),
            (lambda: Hierarchy(deep(5000)), "too many levels for Python's recursion"),
            (lambda: Hierarchy.from_parents({i: i + 1 for i in range(5000)}), "too many levels"),
            (lambda: Hierarchy([[1, 2], [3, 4, 5, 6]]), "no leaf for 'cat', .* leaves 1, 2, 3,"),
            (lambda: Hierarchy.from_parents([("a", "b", "c")]), "pairs .*, got .'a', 'b', 'c'."),
            (lambda: Hierarchy(ANIMALS, n_trees=0), "n_trees must be an integer of at least 1"),
        ],
    )
    def test_errors_name_the_node(self, make, message):
        with pytest.raises(ValueError, match=message):
            CoupledClassifier(GaussianNB(), code=make()).fit(X, y)

    @pytest.mark.parametrize(
        ("make", "message"),
        [
            (
                lambda: Hierarchy(["cat", bytearray(b"dog")]),
                "type bytearray, which cannot be a label",
            ),
            (
                lambda: Hierarchy.from_parents([(["cat"], "mammal")]),
                "node .'cat'. of type list, which cannot be a label",
            ),
            (
                lambda: Hierarchy([["cat", 2], ["dog", 3]]),
                "leaves of the hierarchy cannot be sorted",
            ),
        ],
        ids=["leaf", "pointer", "mixed"],
    )
    def test_errors_of_types(self, make, message):
        with pytest.raises(TypeError, match=message):
            make().nodes()


class TestColumns:
    @quick
    @given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 12))
    def test_are_trees_within_the_hierarchy(self, seed, k):
        rng = np.random.default_rng(seed)
        hierarchy = Hierarchy(random_hierarchy(rng, list(range(k))), n_trees=2)
        labels = np.arange(3 * k) % k
        code = hierarchy.build(rng.normal(size=(3 * k, 2)), labels, k, 0)
        assert count_trees(code) in (1, 2)
        for below in hierarchy.nodes().members:  # no column splits a node and what is beside it
            inside = np.isin(np.arange(k), below)
            for column in code.T[(code[inside] != 0).any(axis=0)]:
                own = column[inside]
                assert (own == own[0]).all() or not column[~inside].any()

    def test_of_two_children_each_need_no_data(self):
        code = Hierarchy([["a", "b"], ["c", "d"]]).build(None, ["a", "b", "c", "d"], 4)
        assert_array_equal(code, [[1, 1, 0], [1, -1, 0], [-1, 0, 1], [-1, 0, -1]])


class TestDecisions:
    @quick
    @given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 10))
    def test_half_has_the_least_expected_distance(self, seed, k):
        rng = np.random.default_rng(seed)
        hierarchy = Hierarchy(random_hierarchy(rng, list(range(k))))
        p = rng.dirichlet(np.ones(k), size=5)
        names = hierarchy.node_names
        table = [hierarchy.distances([name] * k, list(range(k))) for name in names]
        expected = p @ np.array(table).T
        chosen = [names.index(name) for name in hierarchy.decide(p)]
        assert_allclose(expected[np.arange(5), chosen], expected.min(axis=1), atol=1e-12)

    def test_more_confidence_is_less_specific(self):
        hierarchy, rng = Hierarchy(ANIMALS), np.random.default_rng(0)
        p = rng.dirichlet(np.full(6, 0.5), size=50)
        depth = dict(zip(hierarchy.node_names, hierarchy.nodes().depths, strict=True))
        depths = [[depth[name] for name in hierarchy.decide(p, c)] for c in (0, 0.3, 0.6, 0.9, 1)]
        assert (np.diff(depths, axis=0) <= 0).all()
        assert set(hierarchy.decide(p, 0)) <= set(NAMES)
        assert (hierarchy.decide(p, 1) == "root").all()

    def test_distances(self):
        hierarchy = Hierarchy(ANIMALS)
        pairs = [("cat", "cat"), ("cat", "mammal"), ("cat", "dog"), ("cat", "owl"), ("root", "cod")]
        assert_array_equal(hierarchy.distances(*zip(*pairs, strict=True)), [0, 1, 2, 4, 2])
        assert hierarchy_distance(["cat", "owl"], ["dog", "owl"], hierarchy) == 1.0
        weights = [3.0, 1.0]
        assert hierarchy_distance(["cat", "owl"], ["dog", "owl"], hierarchy, sample_weight=weights)
        assert_array_equal(hierarchy.distances(iter(["cat"]), iter(["dog"])), [2])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            hierarchy.distances(["cat"], ["cat", "dog"])
        with pytest.raises(ValueError, match="no node 'cow'"):
            hierarchy.distances(["cow"], ["cat"])

    def test_distance_of_numbers_and_names(self):
        hierarchy = Hierarchy({"low": [0, 1], "high": [2, 3]})
        assert hierarchy_distance([0, 1, 2], [0, "low", "high"], hierarchy) == 2 / 3
        with pytest.raises(ValueError, match="y is empty"):
            hierarchy_distance([], [], hierarchy)

    @pytest.mark.parametrize("confidence", [-0.1, 1.1, np.nan, "high"])
    def test_bad_confidence(self, confidence):
        with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
            Hierarchy(ANIMALS).decide(np.full((1, 6), 1 / 6), confidence)

    def test_bad_shapes(self):
        with pytest.raises(ValueError, match=r"shape \(1, 5\), but the hierarchy has 6 classes"):
            Hierarchy(ANIMALS).node_probabilities(np.ones((1, 5)))

    @pytest.mark.parametrize("bad", [np.nan, -0.1])
    def test_no_probabilities(self, bad):
        p = np.full((3, 6), 1 / 6)
        p[1, 2] = bad
        with pytest.raises(ValueError, match="row 1 of p has a negative number or NaN"):
            Hierarchy(ANIMALS).decide(p)


def test_classifier():
    model = CoupledClassifier(GaussianNB(), code=Hierarchy(ANIMALS), cv=2, random_state=0)
    model = clone(model).fit(X, y)
    p, nodes = model.predict_proba(X), model.predict_proba_nodes(X)
    assert model.combiner_.key == "tree-product"
    assert_allclose(nodes[:, 0], 1, atol=1e-12)
    assert_allclose(nodes[:, 1], p[:, [0, 2, 4]].sum(axis=1), atol=1e-12)
    assert_array_equal(model.predict_nodes(X), model.code.decide(p))
    distance = hierarchy_distance(y, model.predict_nodes(X), model.code)
    assert distance <= hierarchy_distance(y, model.predict(X), model.code) + 0.1
    with pytest.raises(AttributeError, match="predict_nodes needs a hierarchy of the classes"):
        _ = CoupledClassifier().predict_nodes


def test_every_coupled_classifier_has_nodes():
    model = CoupledSVC(code=Hierarchy(ANIMALS)).fit(X, y)
    p = model.predict_proba(X)
    assert_array_equal(model.predict_proba_nodes(X), model.code.node_probabilities(p))
    with pytest.raises(AttributeError, match="'hamming' gives labels only, and no predict_nodes"):
        _ = CoupledSVC(code=Hierarchy(ANIMALS), combiner="hamming").predict_nodes


def test_a_dict_that_is_no_hierarchy_yet():
    with pytest.raises(TypeError, match=r"as codes.Hierarchy\(...\)"):
        CoupledClassifier(code=ANIMALS).fit(X, y)
