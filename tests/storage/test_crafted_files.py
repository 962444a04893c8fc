"""Files that were made to do harm: each is refused with a message that names the part."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from fuzz import stored_models
from manyclass import CoupledClassifier, CoupledSVC
from manyclass.decisions import DecisionClassifier
from manyclass.storage import load_model, read_metadata, save_model
from manyclass.storage._archive import DESCRIPTION, SCHEMA
from manyclass.storage._forms import Refused
from manyclass.storage._members import check_sparse

pytest.importorskip("skops.io")

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=3.0, random_state=0)
KEY = b"a secret of 24 bytes ..."


@pytest.fixture(scope="module")
def members():
    """The members of a stored model."""
    buffer = CoupledSVC(random_state=np.random.RandomState(0)).fit(X, y)
    return _members_of(buffer)


def _members_of(model, **options):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        save_model(model, path := Path(folder) / "m.skops", **options)
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


def written(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def nodes(tree):
    """Return all nodes of a schema."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part] if "__loader__" in part else []
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found


def refuse(tmp_path, members, message, change=None):
    """Check that a model with a changed schema is refused."""
    schema = json.loads(members[SCHEMA])
    if change is not None:
        schema = change(schema) or schema
    path = written(tmp_path / "m.skops", members | {SCHEMA: json.dumps(schema)})
    with pytest.raises(
        ValueError, match=f"is damaged, or was not written by manyclass .*{message}"
    ):
        load_model(path)


def first(schema, loader):
    return next(node for node in nodes(schema) if node["__loader__"] == loader)


def attributes(schema):
    return schema["content"]["content"]


def test_unchanged_files_load(tmp_path, members):
    loaded = load_model(written(tmp_path / "m.skops", members))
    assert_array_equal(loaded.predict_proba(X), CoupledSVC().fit(X, y).predict_proba(X))


class TestSchema:
    def test_objects_have_no_special_attributes(self, tmp_path, members):
        def change(schema):
            attributes(schema)["__array_interface__"] = first(schema, "JsonNode") | {"__id__": 1}

        refuse(tmp_path, members, "__array_interface__.*which objects use for themselves", change)

    def test_random_states_are_within_their_numbers(self, tmp_path, members):
        def change(schema):
            state = first(schema, "RandomStateNode")["content"]["content"]["state"]["content"]
            state["pos"]["content"] = "-1"

        refuse(tmp_path, members, "random_state is not a valid state of a random generator", change)

    def test_shared_nodes_do_not_multiply(self, tmp_path, members):
        def change(schema):
            node = first(schema, "JsonNode")
            for level in range(60):
                pair = {**node, "__loader__": "ListNode", "__class__": "list"}
                brief = {key: node[key] for key in ("__loader__", "__module__", "__class__")}
                again = brief | {"__id__": node["__id__"], "content": node["content"][:0] or "0"}
                again["content"] = [] if node["__loader__"] == "ListNode" else node["content"]
                node = pair | {"__id__": 10 + level, "content": [node, again]}
            attributes(schema)["tol"] = node

        refuse(tmp_path, members, "refer to each other too often", change)

    def test_nodes_do_not_contain_themselves(self, tmp_path, members):
        def change(schema):
            inner = {
                key: schema[key] for key in ("__loader__", "__module__", "__class__", "__id__")
            }
            attributes(schema)["tol"] = inner

        refuse(tmp_path, members, "model.content.tol refers to an object that contains it", change)

    def test_references_are_to_objects_of_the_same_kind(self, tmp_path, members):
        def change(schema):
            array = first(schema, "NdArrayNode")
            attributes(schema)["tol"] = first(schema, "JsonNode") | {"__id__": array["__id__"]}

        refuse(tmp_path, members, "or to another one", change)

    def test_members_are_read_once(self, tmp_path, members):
        def change(schema):
            array = first(schema, "NdArrayNode")
            attributes(schema)["tol"] = array | {"__id__": 1}

        refuse(tmp_path, members, "names a member that another part has", change)

    def test_nesting_is_bounded(self, tmp_path, members):
        def change(schema):
            node = first(schema, "JsonNode")
            for level in range(150):
                outer = node | {"__loader__": "ListNode", "__class__": "list", "__id__": 10 + level}
                node = outer | {"content": [node]}
            attributes(schema)["tol"] = node

        refuse(tmp_path, members, "nested too deep", change)

    def test_loaders_are_known(self, tmp_path, members):
        def change(schema):
            first(schema, "JsonNode")["__loader__"] = "CachedNode"

        refuse(tmp_path, members, "is not a node of a stored model", change)

    @pytest.mark.parametrize(
        ("place", "message"),
        [
            ("scipy.sparse._csr.csr_array", "makes a csr_array by a ConstructorFromReduceNode"),
            ("numpy.dtype", "makes a dtype by a ConstructorFromReduceNode"),
            ("manyclass.CoupledSVC", "makes a CoupledSVC by a ConstructorFromReduceNode"),
        ],
    )
    def test_constructors_are_not_called(self, place, message, tmp_path, members):
        """``csr_array((10**10, 1))`` would fill the memory; 12 kB made 2 GB."""
        module, _, name = place.rpartition(".")

        def change(schema):
            node = first(schema, "TupleNode")
            maker = {"__module__": module, "__class__": name, "content": {**node, "__id__": 2}}
            attributes(schema)["tol"] = maker | {"__loader__": "ConstructorFromReduceNode"}

        refuse(tmp_path, members, message, change)

    def test_arguments_of_functions_are_visited(self, tmp_path, members):
        """In nodes that are not visited, shared ones hang skops."""

        def change(schema):
            special = first(schema, "JsonNode") | {"__id__": 1, "content": "[1]"}
            place = {"__module__": "operator", "__class__": "itemgetter"}
            attributes(schema)["tol"] = place | {"__loader__": "OperatorFuncNode", "attrs": special}

        refuse(tmp_path, members, "model.content.tol.attrs is not a single value", change)

    @pytest.mark.parametrize(
        ("loader", "change", "message"),
        [
            ("NdArrayNode", {"__class__": "void"}, "is a record of bytes"),
            (
                "NdArrayNode",
                {"type": None},
                "does not have the form of a NdArrayNode|is not a node",
            ),
            ("NdArrayNode", {"file": "../x"}, "names no member of the archive"),
            ("SparseMatrixNode", {"file": 1}, "does not have the form of a SparseMatrixNode"),
            ("DictNode", {"content": {}}, "has more keys than types of keys, or fewer"),
            ("DictNode", {"content": []}, "is not a node of a stored model"),
            ("TupleNode", {"content": {}}, "is not a node of a stored model"),
            ("NdArrayNode", {"__loader__": "BytearrayNode"}, "is not a node of a stored model"),
        ],
    )
    def test_forms(self, loader, change, message, tmp_path, members):
        refuse(tmp_path, members, message, lambda schema: first(schema, loader).update(change))

    def test_keys_are_of_their_types(self, tmp_path, members):
        def change(schema):
            types = first(schema, "DictNode")["key_types"]["content"]
            types[0].update(__class__="int")

        refuse(tmp_path, members, "has the key '.*', which is not of its type", change)

    @pytest.mark.parametrize("protocol", [None, "2", 0, 99, True])
    def test_protocols(self, protocol, tmp_path, members):
        refuse(tmp_path, members, "protocol", lambda schema: schema | {"protocol": protocol})

    @pytest.mark.parametrize("empty", [b"[]", b"{}"])
    def test_brackets_are_not_parsed(self, empty, tmp_path, members):
        text = b"[" + 100_000 * (empty + b",") + b"[]]"
        path = written(tmp_path / "m.skops", members | {SCHEMA: text})
        with pytest.raises(ValueError, match="more brackets than its nodes need"):
            load_model(path)

    @pytest.mark.parametrize("name", [SCHEMA, DESCRIPTION])
    def test_texts_that_only_fill_the_memory(self, name, tmp_path, members):
        path = written(tmp_path / "m.skops", members | {name: members[name] + b" " * 5_000_000})
        with pytest.raises(ValueError, match=f"{name} is packed too tightly"):
            load_model(path)

    def test_descriptions_do_not_fill_the_memory(self, tmp_path, members):
        described = json.loads(members[DESCRIPTION]) | {"metadata": {"x": [1.5] * 2**20}}
        path = written(tmp_path / "m.skops", members | {DESCRIPTION: json.dumps(described)})
        with pytest.raises(ValueError, match="would unpack to .* bytes, more than 80,000,000"):
            load_model(path, max_bytes=80_000_000)  # it has 5 million letters
        numbers = np.random.default_rng(0).random(2**20).tolist()  # which do not pack tightly
        described["metadata"]["x"] = numbers
        path = written(tmp_path / "m.skops", members | {DESCRIPTION: json.dumps(described)})
        with pytest.raises(ValueError, match=f"{DESCRIPTION} has too many values"):
            read_metadata(path)

    @pytest.mark.parametrize("loader", ["JsonNode", "ListNode"])
    def test_other_objects_are_no_models(self, loader, tmp_path, members):
        def change(schema):
            return first(schema, loader) | {"protocol": schema["protocol"]}

        refuse(tmp_path, members, "which is not an estimator", change)


class TestArrays:
    def test_headers_do_not_declare_more(self, tmp_path, members):
        name = next(name for name in members if name.endswith(".npy"))
        shape = members[name].index(b"(") + 1
        longer = members[name][:shape] + b"9" + members[name][shape:].replace(b"  \n", b" \n", 1)
        refuse(tmp_path, members | {name: longer}, f"{name} declares .* bytes, but has")

    @pytest.mark.parametrize("dtype", ["|O", "V8", "f8,i4"])
    def test_elements_are_plain_values(self, dtype, tmp_path, members):
        name = next(name for name in members if name.endswith(".npy"))
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(3, np.dtype(dtype)), allow_pickle=True)
        refuse(tmp_path, members | {name: buffer.getvalue()}, f"{name} (holds elements|declares)")

    def test_archives_in_the_archive_are_bounded(self, tmp_path, members):
        name = next(name for name in members if name.endswith(".npz"))
        with zipfile.ZipFile(io.BytesIO(members[name])) as archive:
            parts = {part: archive.read(part) for part in archive.namelist()}
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(10_000_000))
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            for part, data in (parts | {"data.npy": buffer.getvalue()}).items():
                archive.writestr(part, data)
        path = written(tmp_path / "m.skops", members | {name: bomb.getvalue()})
        with pytest.raises(ValueError, match=f"{name} would unpack to more bytes than"):
            load_model(path, max_bytes=20_000_000)

    @pytest.mark.parametrize(
        ("bounds", "indices"),
        [
            ([0, 0, -1], [7, 0]),
            ([0, 2, 1], [0, 1]),
            ([0, 1, 2], [0, 7]),
            ([0, 1, 2], [0, -1]),
            ([1, 1, 2], [0, 1]),
            ([0, 1, 3], [0, 1]),
        ],
    )
    def test_indices_are_within_the_matrix(self, bounds, indices):
        matrix = csr_array(np.eye(2))
        check_sparse(matrix)
        matrix.indptr, matrix.indices = np.array(bounds, np.int32), np.array(indices, np.int32)
        with pytest.raises(Refused, match="outside"):
            check_sparse(matrix)

    @pytest.mark.parametrize("learner", [GaussianNB(), LogisticRegression()])
    def test_memory(self, learner, tmp_path):
        """Loading takes less than twice the bytes of the arrays, also of a single one."""
        model, k = learner.fit(X, y), len(np.unique(y))
        names = ("theta_", "var_") if isinstance(learner, GaussianNB) else ("coef_",)
        model.n_features_in_ = 4_000_000 // (len(names) * k)
        for name in names:
            setattr(model, name, np.zeros((k, model.n_features_in_)))
        save_model(model, tmp_path / "m.skops")
        tracemalloc.start()
        load_model(tmp_path / "m.skops")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert 32e6 < peak < 2 * 32e6 + 2e6  # and the objects of skops

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"predict": 1}, "predict of CoupledSVC hides a method"),
            ({"n_features_in_": 2.0}, "the number of features is not a whole number"),
            ({"n_features_in_": 7}, "the parts of CoupledSVC do not fit"),
            ({"weights_": np.ones(6, int)}, "the arrays of CoupledSVC do not fit each other"),
            ({"code_": np.zeros((4, 6))}, "the arrays of CoupledSVC do not fit each other"),
            ({"bank_": None}, "the arrays of CoupledSVC are not complete"),
        ],
    )
    def test_parts_that_do_not_fit(self, change, message, tmp_path):
        model = CoupledSVC().fit(X, y)
        vars(model).update(change)
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match=message):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("outside", [False, True])
    def test_parts_of_pipelines_are_tried(self, outside, tmp_path):
        """Rows of a pipeline may be anything: then the scores of a row are combined."""
        model = CoupledClassifier(make_pipeline(GaussianNB()) if outside else GaussianNB())
        model.fit(X, y).code_[0, 0] = 0
        save_model(model if outside else make_pipeline(model), tmp_path / "m.skops")
        with pytest.raises(ValueError, match="the parts of CoupledClassifier do not fit"):
            load_model(tmp_path / "m.skops")

    def test_decisions_are_tried(self, tmp_path):
        model = DecisionClassifier(CoupledSVC(), cost=1.0 - np.eye(4)).fit(X, y)
        model.cost_ = np.ones(3)
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match="the parts of DecisionClassifier do not fit"):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("centres", [np.ones((2, 1)), np.full((2, 3), np.nan)])
    def test_centres_have_the_features_of_rows(self, centres, tmp_path):
        """KMeans reads as many numbers of each centre as a row has."""
        model = KMeans(2, n_init=1).fit(X)
        model.cluster_centers_ = centres
        save_model(make_pipeline(model), tmp_path / "m.skops")
        with pytest.raises(ValueError, match="the arrays of KMeans do not fit each other"):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("moments", ["theta_", "var_"])
    def test_moments_are_not_stretched(self, moments, tmp_path):
        model = CoupledClassifier(GaussianNB(), code="native").fit(X, y)
        learner = model.bank_._models[0]
        setattr(learner, moments, getattr(learner, moments)[..., None])
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match="the arrays of GaussianNB do not fit each other"):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("option", ["_gamma", "coef0", "degree", "cache_size"])
    def test_options_of_machines_are_numbers(self, option, tmp_path):
        """LIBSVM gets them in a prediction, which no longer checks parameters."""
        model = make_pipeline(SVC()).fit(X, y)
        setattr(model[-1], option, np.ones(2))
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match="the arrays of SVC do not fit each other"):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("kernel", [0, "r", None])
    def test_machines_have_a_kernel_that_there_is(self, kernel, tmp_path):
        model = make_pipeline(SVC()).fit(X, y)
        model[-1].kernel = kernel
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match=f"SVC knows no kernel {kernel!r}"):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("number", [np.nan, np.inf])
    @pytest.mark.parametrize("part", ["scaling_.share_", "calibration_.slopes_", "weights_"])
    def test_numbers_are_finite(self, number, part, tmp_path):
        model = CoupledSVC(scaling="temperature").fit(X, y)
        *path, name = part.split(".")
        owner = getattr(model, path[0]) if path else model
        value = getattr(owner, name)
        setattr(owner, name, number if np.ndim(value) == 0 else np.full(len(value), number))
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match=f"{name} of .* has NaN or infinite numbers"):
            load_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    "change",
    [
        {"format": True},
        {"format": None},
        {"versions": {}},
        {"versions": {"manyclass": 1}},
        {"versions": {"manyclass": "1", "numpy": []}},
        {"versions": []},
        {"estimator": None},
        {"n_features": "3"},
        {"n_features": 2.5},
        {"features": [1, 2]},
        {"features": "abc"},
        {"classes": [[1]]},
        {"classes": {"a": 1}},
        {"metadata": None},
        {"metadata": []},
    ],
)
def test_descriptions_have_their_form(change, tmp_path, members):
    description = json.loads(members[DESCRIPTION]) | change
    path = written(tmp_path / "m.skops", members | {DESCRIPTION: json.dumps(description)})
    for read in (load_model, read_metadata):
        with pytest.raises(ValueError, match="is damaged"):
            read(path)


class TestSignature:
    def test_signed_files_load_with_the_key(self, tmp_path):
        model = CoupledClassifier(GaussianNB()).fit(X, y)
        save_model(model, tmp_path / "m.skops", key=KEY)
        for options in ({"key": KEY}, {}):
            loaded = load_model(tmp_path / "m.skops", **options)
            assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        save_model(model, tmp_path / "shortest.skops", key=KEY[:16])
        with pytest.raises(ValueError, match="was signed with another key, or changed since"):
            load_model(tmp_path / "m.skops", key=KEY[::-1])

    def test_changed_files_do_not(self, tmp_path):
        signed = _members_of(GaussianNB().fit(X, y), key=KEY)
        changed = signed | {DESCRIPTION: signed[DESCRIPTION].replace(b"[", b" [", 1)}
        with pytest.raises(ValueError, match="changed since"):
            load_model(written(tmp_path / "m.skops", changed), key=KEY)
        first, second, *_ = (name for name in signed if name.endswith(".npy"))
        swapped = signed | {first: signed[second], second: signed[first]}
        for other in (swapped, signed | {"added.npy": b""}):
            with pytest.raises(ValueError, match="changed since"):
                load_model(written(tmp_path / "m.skops", other), key=KEY)
        del signed["manyclass.hmac"]
        with pytest.raises(ValueError, match="has no signature, but a key was given"):
            load_model(written(tmp_path / "m.skops", signed), key=KEY)

    @pytest.mark.parametrize("key", [b"short", "text of more than sixteen letters"])
    def test_keys_are_long(self, key, tmp_path):
        with pytest.raises(TypeError, match="at least 16 bytes"):
            save_model(GaussianNB().fit(X, y), tmp_path / "m.skops", key=key)


@pytest.mark.parametrize("seed", range(0, 200, 10))
def test_a_sample_of_the_campaign(seed):
    """``python -m fuzz.stored_models`` does this with 20,000 files."""
    for i in range(10):
        assert stored_models.attack(seed + i).outcome in ("refused", "answered")
