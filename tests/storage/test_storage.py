"""Stored models: a loaded model is the same to the last bit, and nothing else is loaded."""

from __future__ import annotations

import json
import os
import pickle
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import pairwise_distances
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM
from threadpoolctl import threadpool_limits

import manyclass
from manyclass import CoupledClassifier, CoupledSVC, CoupledSVCCV, DecisionClassifier
from manyclass._lib import files as _files
from manyclass.app.columns import column_transformer
from manyclass.classifier import CoupledBase
from manyclass.codes import ClassTrees, Hierarchy, QAry
from manyclass.combiners import base as combining
from manyclass.combiners.srm_drm import DynamicReliabilityDecoder
from manyclass.learners import (
    BinnedNaiveBayes,
    BoostedNaiveBayes,
    KernelLogisticRegression,
    PairwiseNeighbors,
    ThresholdOptimized,
)
from manyclass.scaling import StructuredScaling, Temperature
from manyclass.storage import TRUSTED, load_model, read_metadata, save_model
from manyclass.storage._archive import DESCRIPTION, FORMAT, SCHEMA
from manyclass.storage._parts import reachable, without_derived
from manyclass.storage.trusted_types import (
    FORMER,
    IDENTIFIERS,
    STORABLE,
    to_identifiers,
    to_places,
)

skops = pytest.importorskip("skops.io")

X, y = make_blobs(60, n_features=3, centers=4, cluster_std=3.0, random_state=0)
NAMES = np.array(["ant", 'bee, "the"\nsecond', "=cmd()", "dög"])[y]
CELLS = np.floor(X).astype(int) % 3
HIERARCHY = Hierarchy({"insect": ["ant", 'bee, "the"\nsecond'], "other": ["=cmd()", "dög"]})
FRAME = pd.DataFrame(
    {
        "a": np.where(X[:, 0] > 4, np.nan, X[:, 0]),
        "b": np.where(X[:, 1] > 0, "high", "low").astype(object),
        "c": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(X[:, 2]), unit="D"),
    }
)
FRAME.loc[::7, "b"] = np.nan


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


def of_combiner(name):
    accepts = combining.resolve(name).accepts
    estimator = LinearSVC() if name in ("srm", "drm") else LogisticRegression()
    code = "one-vs-one" if accepts == "any" else accepts
    return CoupledClassifier(estimator, code=code, combiner=name, random_state=0), X


COUPLED = {
    "svc": (CoupledSVC(), X),
    "svc single precision": (CoupledSVC(dtype=np.float32, kernel="poly"), X),
    "svc one-vs-rest": (CoupledSVC(code="one-vs-rest", combiner="kl", class_weight="balanced"), X),
    "svc sigmoid": (CoupledSVC(kernel="sigmoid", cv=3), X),
    "svc precomputed": (CoupledSVC(kernel="precomputed"), X @ X.T),
    "svc sparse matrix": (CoupledSVC(), csr_matrix(X)),
    "svc sparse array": (CoupledSVC(kernel="linear"), csr_array(X)),
    "isotonic": (CoupledClassifier(SVC(), calibration="isotonic"), X),
    "robust": (CoupledSVC(kernel="linear", calibration="robust-sigmoid"), X),
    "sigmoid of probabilities": (CoupledClassifier(GaussianNB(), calibration="sigmoid"), X),
    "beta": (CoupledClassifier(GaussianNB(), calibration="beta"), X),
    "centred probabilities": (CoupledClassifier(GaussianNB(), combiner="max-wins"), X),
    "no calibration": (CoupledClassifier(GaussianNB(), cv=None, scaling=None), X),
    # estimators, calibrations, scalings and codes, sampled pairwise
    "native": (CoupledClassifier(code="native"), X),
    "native temperature": (
        CoupledClassifier(GaussianNB(), code="native", calibration="beta", scaling="temperature"),
        X,
    ),
    "native margins": (
        CoupledClassifier(LinearSVC(), code="native", calibration="isotonic", scaling="structured"),
        X,
    ),
    "native unscaled": (
        CoupledClassifier(GaussianNB(), code="native", calibration=None, scaling=None),
        X,
    ),
    "unchanged": (CoupledClassifier(LinearDiscriminantAnalysis(), with_native=True), X),
    "beta pooled": (
        CoupledClassifier(GaussianNB(), code="one-vs-rest", calibration="beta", with_native=True),
        X,
    ),
    "temperature": (CoupledSVC(scaling="temperature"), X),
    "svc searched": (CoupledSVCCV(Cs=[1.0, 10.0], gammas=[0.1]), X),
    "not scaled": (CoupledSVC(scaling=None), X),
    "pooled neighbours": (CoupledClassifier(KNeighborsClassifier(5), with_native=True), X),
    "nu": (CoupledClassifier(NuSVC(nu=0.1)), X),
    "kernel logistic": (CoupledClassifier(KernelLogisticRegression(), cv="loo"), X),
    "sgd": (CoupledClassifier(SGDClassifier("modified_huber", random_state=0)), X),
    "in batches": (CoupledClassifier(SGDClassifier(random_state=0), random_state=0), X),
    "complete": (CoupledClassifier(code="complete", combiner="kl"), X),
    "own matrix": (CoupledClassifier(code=np.eye(4) * 2 - 1, combiner="kl"), X),
    "class trees": (CoupledClassifier(code=ClassTrees(n_trees=2), random_state=0), X),
    "q-ary": (CoupledClassifier(GaussianNB(), code=QAry(3, n_trees=1), random_state=0), X),
    "hierarchy": (CoupledClassifier(code=HIERARCHY, random_state=0), X),
    "prefit": (CoupledClassifier(FrozenEstimator(GaussianNB().fit(X, NAMES)), code="native"), X),
    "random state": (CoupledClassifier(random_state=np.random.RandomState(0)), X),
    "boosted naive bayes": (CoupledClassifier(BoostedNaiveBayes()), X),
    "binned naive bayes": (CoupledClassifier(BinnedNaiveBayes(categorical_features=[0, 1])), CELLS),
    "neighbours": (CoupledClassifier(PairwiseNeighbors()), X),
    "scikit-learn's neighbours": (CoupledClassifier(KNeighborsClassifier(3)), X),
    "given distances": (
        CoupledClassifier(KNeighborsClassifier(3, metric="precomputed")),
        pairwise_distances(X),
    ),
    "thresholds": (
        CoupledClassifier(ThresholdOptimized(LogisticRegression()), combiner="max-wins"),
        X,
    ),
    "dynamic": (
        CoupledClassifier(
            LinearSVC(),
            code="one-vs-rest",
            combiner=DynamicReliabilityDecoder(n_neighbors=5),
        ),
        X,
    ),
    "decisions": (DecisionClassifier(CoupledSVC(), reject_cost=0.1), X),
    "columns": (make_pipeline(column_transformer(FRAME), CoupledSVC()), FRAME),
    "pipeline within": (CoupledClassifier(make_pipeline(StandardScaler(), SVC())), X),
    **{f"combiner {name}": of_combiner(name) for name in combining.names()},
}


@pytest.fixture(scope="module")
def fitted():
    """All models, fitted when they are asked for, once."""
    known = {}

    def fit(name):
        if name not in known:
            estimator, data = COUPLED[name]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if name == "in batches":
                    estimator.partial_fit(data, NAMES, classes=np.unique(NAMES))
                else:
                    estimator.fit(data, NAMES)
            known[name] = estimator, data
        return known[name]

    return fit


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    """The files of all models, written when they are asked for, once and without a warning."""
    known = {}

    def save(name):
        if name not in known:
            known[name] = tmp_path_factory.mktemp("saved") / "model.skops"
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                save_model(fitted(name)[0], known[name])
        return known[name]

    return save


@pytest.fixture
def stored(tmp_path):
    """A small model in a file."""
    path = tmp_path / "model.skops"
    save_model(CoupledSVC().fit(X, y), path, metadata={"note": "ü"})
    return path


def answers(model, data):
    methods = ("predict_proba", "decision_function", "predict", "incoherence")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [getattr(model, method)(data) for method in methods if hasattr(model, method)]


def rewrite(path, **members):
    """Replace members of an archive."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (content | members).items():
            archive.writestr(name, data)


def schema_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read(SCHEMA)


def names_in(path):
    """Return the full names of all types in a file, as they are written there."""
    nodes = [part for part in reachable(json.loads(schema_of(path))) if isinstance(part, dict)]
    pairs = [(node.get("__module__"), node.get("__class__")) for node in nodes]
    return {f"{a}.{b}" for a, b in pairs if isinstance(a, str) and isinstance(b, str)}


def linear(A, B):
    return A @ B.T


def redescribe(path, change):
    description = read_metadata(path)
    change(description)
    rewrite(path, **{DESCRIPTION: json.dumps(description)})


# -- the same to the last bit ----------------------------------------------------------


class TestRoundTrip:
    @pytest.mark.parametrize("name", COUPLED)
    def test_same_to_the_last_bit(self, name, fitted, saved):
        model, data = fitted(name)
        before, path = answers(model, data), saved(name)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loaded = load_model(path)
        for a, b, c in zip(before, answers(loaded, data), answers(model, data), strict=True):
            assert_array_equal(a, b)
            assert_array_equal(a, c)  # and the model is as it was
        assert_array_equal(loaded.classes_, model.classes_)
        assert type(loaded) is type(model)
        if name != "random state":  # which is shown by its place in memory
            assert repr(loaded) == repr(model)

    def test_constant_models(self, tmp_path):
        weights = np.where(y == 3, 0.0, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = CoupledClassifier().fit(X, y, sample_weight=weights)
        save_model(model, tmp_path / "m.skops")
        assert_array_equal(
            load_model(tmp_path / "m.skops").predict_proba(X), model.predict_proba(X)
        )

    @pytest.mark.parametrize(
        "learner", [KernelLogisticRegression(), BoostedNaiveBayes(), PairwiseNeighbors()]
    )
    def test_learners_alone(self, learner, tmp_path):
        learner.fit(X, y > 1)
        save_model(learner, tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops")
        assert_array_equal(loaded.predict_proba(X), learner.predict_proba(X))

    @pytest.mark.parametrize(
        "name", ["native", "native margins", "unchanged", "svc", "no calibration"]
    )
    def test_reports_come_back(self, name, fitted, tmp_path):
        model, _ = fitted(name)
        save_model(model, tmp_path / "m.skops")
        report = load_model(tmp_path / "m.skops").calibration_report()
        assert report == model.calibration_report() and str(report) == str(model.report_)

    @pytest.mark.parametrize("scaling", [Temperature(), StructuredScaling()])
    @pytest.mark.parametrize("labels", [y, NAMES])
    def test_scalings_alone(self, scaling, labels, tmp_path):
        p = GaussianNB().fit(X, labels).predict_proba(X)
        scaling = clone(scaling).fit(p, labels)
        save_model(scaling, tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops")
        assert_array_equal(loaded.predict_proba(p), scaling.predict_proba(p))
        assert_array_equal(loaded.classes_, scaling.classes_)

    @pytest.mark.parametrize("labels", [y, y > 1, NAMES, NAMES.astype(object), y.astype("U1")])
    def test_labels_of_any_type(self, labels, tmp_path):
        model = CoupledSVC().fit(X, labels)
        save_model(model, tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops")
        assert loaded.classes_.dtype == model.classes_.dtype
        assert_array_equal(loaded.predict(X), model.predict(X))
        assert read_metadata(tmp_path / "m.skops")["classes"] == model.classes_.tolist()

    def test_machines_come_back(self, fitted, tmp_path):
        for name in ("svc", "kernel logistic"):
            model, _ = fitted(name)
            save_model(model, tmp_path / "m.skops")
            loaded = load_model(tmp_path / "m.skops")
            assert [type(machine) for machine in loaded.estimators_] == [
                type(machine) for machine in model.estimators_
            ]
            assert_array_equal(
                loaded.estimators_[2].decision_function(X),
                model.estimators_[2].decision_function(X),
            )
            save_model(loaded, tmp_path / "again.skops")
            assert_array_equal(
                load_model(tmp_path / "again.skops").predict_proba(X), model.predict_proba(X)
            )

    def test_all_trusted_types_are_needed(self, saved, tmp_path):
        """No type is trusted that no model of these tests contains."""
        found = {"manyclass.ConstantModel"}  # see test_constant_models
        with pytest.warns(UserWarning, match="unless you trust"):
            save_model(CoupledSVC(kernel=linear).fit(X, y), tmp_path / "m.skops")
        for path in (tmp_path / "m.skops", *map(saved, COUPLED)):
            found |= names_in(path)
        assert set(TRUSTED) <= found
        assert list(TRUSTED) == sorted(TRUSTED)

    def test_a_kernel_of_the_user(self, tmp_path):
        """The function needs permission; the class of this package that holds it does not."""
        model, name = CoupledSVC(kernel=linear).fit(X, y), f"{linear.__module__}.linear"
        with pytest.warns(UserWarning, match=f"unless you trust {name}: "):
            save_model(model, tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops", trusted=[name])
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

    def test_description(self, stored):
        described = read_metadata(stored)
        assert described["metadata"] == {"note": "ü"}
        assert described["format"] == FORMAT and described["n_features"] == 3
        assert described["versions"]["scikit-learn"] == sklearn.__version__
        assert described["versions"]["manyclass"] == manyclass.__version__
        assert described["versions"]["numpy"] == np.__version__
        assert described["features"] is None

    def test_names_of_features(self, fitted, tmp_path):
        save_model(fitted("columns")[0], tmp_path / "m.skops")
        assert read_metadata(tmp_path / "m.skops")["features"] == ["a", "b", "c"]


# -- stable names ----------------------------------------------------------------------


class TestIdentifiers:
    @pytest.mark.parametrize("name", COUPLED)
    def test_every_class_of_a_model_has_one(self, name, fitted):
        """Add a class that is named here to the table in manyclass/storage/trusted_types.py."""
        types = {type(part) for part in reachable(without_derived(fitted(name)[0]))}
        ours = {cls for cls in types if cls.__module__.startswith("manyclass.")}
        assert sorted(f"{cls.__module__}.{cls.__name__}" for cls in ours - set(STORABLE)) == []

    @pytest.mark.parametrize("name", COUPLED)
    def test_no_module_of_ours_is_in_a_file(self, name, saved):
        path = saved(name)
        assert {full for full in names_in(path) if full.startswith("manyclass.")} <= set(
            IDENTIFIERS
        )
        assert b"manyclass." not in schema_of(path)

    def test_they_differ(self):
        assert len(set(STORABLE)) == len(STORABLE) == len(IDENTIFIERS)

    def test_former_ones_lead_to_present_ones(self):
        assert set(FORMER.values()) <= set(IDENTIFIERS) and not set(FORMER) & set(IDENTIFIERS)

    def test_renamed_classes_still_load(self, stored, monkeypatch):
        expected = load_model(stored).predict_proba(X)
        rewrite(stored, **{SCHEMA: schema_of(stored).replace(b'"CoupledSVC"', b'"FirstSVC"')})
        monkeypatch.setitem(FORMER, "manyclass.FirstSVC", "manyclass.CoupledSVC")
        assert_array_equal(load_model(stored).predict_proba(X), expected)

    def test_classes_of_later_releases_are_named(self, stored):
        rewrite(stored, **{SCHEMA: schema_of(stored).replace(b'"Sigmoid"', b'"LaterOne"')})
        with pytest.raises(ValueError, match=r"holds manyclass\.LaterOne, .* Update manyclass"):
            load_model(stored)

    def test_data_that_look_like_a_class_stay(self):
        """A dict of the user may have the keys that name a class: its values are not strings."""
        inner = {"__module__": "manyclass.svm", "__class__": "CoupledSVC", "content": "[1]"}
        schema = json.dumps({"content": {"__module__": inner, "__class__": inner}}).encode()
        there = json.loads(to_identifiers(schema))["content"]
        assert set(there) == {"__module__", "__class__"}
        assert there["__class__"] == inner | {"__module__": "manyclass"}
        assert json.loads(to_places(to_identifiers(schema))) == json.loads(schema)


# -- whole or not at all ---------------------------------------------------------------


class TestWriting:
    @pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
    @pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
    def test_interrupted(self, step, error, stored, monkeypatch):
        def fail(*args):
            raise error

        before = stored.read_bytes()
        monkeypatch.setattr(os, step, fail)
        with pytest.raises(error):
            save_model(GaussianNB().fit(X, y), stored)
        assert stored.read_bytes() == before and os.listdir(stored.parent) == [stored.name]

    def test_links_and_modes_stay(self, stored):
        stored.chmod(0o600)
        link = stored.parent / "link"
        link.symlink_to(stored)
        save_model(GaussianNB().fit(X, y), link)
        assert link.is_symlink() and stored.stat().st_mode & 0o777 == 0o600
        assert isinstance(load_model(stored), GaussianNB)

    @pytest.mark.skipif(os.name == "nt", reason="there are no such modes")
    @pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o002, 0o664), (0o022, 0o644)])
    def test_new_files_have_the_mode_of_others(self, mask, mode, tmp_path):
        before = os.umask(mask)
        try:
            _files.replace_file(tmp_path / "new", "text")
            (tmp_path / "new").chmod(0o666)
            _files.replace_file(tmp_path / "other", "text")
            _files.replace_file(tmp_path / "new", "again")
        finally:
            os.umask(before)
        assert (tmp_path / "other").stat().st_mode & 0o777 == mode
        assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666  # as it was

    @pytest.mark.skipif(not os.path.exists("/dev/null"), reason="there is no such device")
    def test_devices_are_not_replaced(self):
        with _files.replacing("/dev/null") as file:
            file.write(b"anything")
        assert not os.path.isfile("/dev/null")

    def test_metadata_that_json_cannot_hold(self, tmp_path):
        with pytest.raises(ValueError, match="metadata must be values that JSON can hold"):
            save_model(GaussianNB().fit(X, y), tmp_path / "m.skops", metadata={"a": X})
        assert os.listdir(tmp_path) == []

    def test_functions_without_a_name(self, tmp_path):
        model = CoupledSVC(kernel=lambda a, b: a @ b.T).fit(X, y)
        with pytest.raises(ValueError, match=r"test_storage.<lambda>, which a file cannot refer"):
            save_model(model, tmp_path / "m.skops")

    def test_without_skops(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "skops.io", None)
        with pytest.raises(ImportError, match=r"need skops: run pip install 'manyclass\[app\]'"):
            save_model(GaussianNB(), tmp_path / "m.skops")


# -- places outside of arrays ----------------------------------------------------------


def first_of(attribute):
    """Return what to do something to: a part of a model, by attributes and places."""

    def find(model):
        for name in attribute.split("."):
            model = model[int(name)] if name.isdigit() else getattr(model, name)
        return model

    return find


def setting(path, name, change):
    """Return what breaks a model: an attribute of a part of it is changed."""

    def break_it(model):
        part = first_of(path)(model) if path else model
        object.__setattr__(part, name, change(getattr(part, name)))

    return break_it


def hide_in_an_array(model):
    broken = np.empty(len(model.bank_.models), dtype=object)
    broken[:] = model.bank_.models
    broken[0]._n_of_class = broken[0]._n_of_class + 10**8
    model.bank_._models = broken


def coupled(estimator, **options):
    return lambda: CoupledClassifier(estimator, **options).fit(X, y)


def alone(estimator, data=X):
    return lambda: estimator.fit(data, y)


def in_batches():
    model = CoupledClassifier(SGDClassifier(random_state=0))
    return model.partial_fit(X, y, classes=np.unique(y))


NEIGHBORS = coupled(PairwiseNeighbors())
DYNAMIC = coupled(LinearSVC(), code="one-vs-rest", combiner=DynamicReliabilityDecoder(5))
DAMAGES = {
    "dual index": (
        lambda: CoupledSVC().fit(X, y),
        lambda model: model.bank_.groups[0].duals.indices.__setitem__(0, 1_000_000),
    ),
    "dual format": (
        lambda: CoupledSVC().fit(X, y),
        setting("bank_.groups.0", "duals", lambda duals: duals.toarray()),
    ),
    "weights": (lambda: CoupledSVC().fit(X, y), setting("", "weights_", lambda w: w[:2])),
    "code": (lambda: CoupledSVC().fit(X, y), setting("", "code_", lambda code: code[:, :3])),
    "coefficients": (
        coupled(LogisticRegression()),
        setting("bank_", "coef", lambda coef: coef[:, :1]),
    ),
    "classes of a multiclass model": (
        coupled(GaussianNB(), code="native"),
        setting("bank_.models.0", "classes_", lambda classes: classes + 100),
    ),
    "columns of a multiclass model": (
        coupled(GaussianNB(), code="native"),
        setting("bank_", "n_classes", lambda k: k + 1),
    ),
    "no multiclass model": (
        coupled(GaussianNB()),
        setting("", "native_", lambda native: None),
    ),
    "classes of a pooled model": (
        coupled(GaussianNB()),
        setting("native_", "n_classes", lambda k: k - 1),
    ),
    "code of a scaling": (
        coupled(GaussianNB()),
        setting("scaling_", "code_", lambda code: np.hstack([code] * 100)),
    ),
    "type of the code of a scaling": (
        coupled(GaussianNB()),
        setting("scaling_", "code_", lambda code: code.astype(float)),
    ),
    "no code of a scaling": (
        coupled(GaussianNB()),
        setting("scaling_", "code_", lambda code: None),
    ),
    "sources of a scaling": (
        coupled(GaussianNB()),
        setting("scaling_", "n_others_", lambda n: n + 1),
    ),
    "weights of a scaling": (
        lambda: CoupledSVC().fit(X, y),
        setting("scaling_", "weights_", lambda weights: weights[:3]),
    ),
    "matrix of a scaling": (
        lambda: CoupledSVC().fit(X, y),
        setting("scaling_", "matrix_", lambda matrix: matrix[:2]),
    ),
    "width of the matrix of a scaling": (
        lambda: CoupledSVC().fit(X, y),
        setting("scaling_", "matrix_", lambda matrix: np.hstack([matrix, matrix])),
    ),
    "prior of a scaling": (
        lambda: CoupledSVC().fit(X, y),
        setting("scaling_", "log_prior_", lambda prior: prior[:1]),
    ),
    "learners": (in_batches, setting("stream_", "learners", lambda learners: learners[:1])),
    "bound of a class": (
        NEIGHBORS,
        setting("bank_.models.0", "_n_of_class", lambda n: n + 10**8),
    ),
    "bound below 0": (
        NEIGHBORS,
        setting("bank_.models.0", "_n_of_class", lambda n: n + np.array([-1000, 1000])),
    ),
    "bound of a hidden class": (NEIGHBORS, hide_in_an_array),
    "features of samples": (
        NEIGHBORS,
        setting("bank_.models.0", "_fit_X", lambda samples: samples[:, :1]),
    ),
    "more neighbours than samples": (
        NEIGHBORS,
        setting("bank_.models.0", "n_neighbors_", lambda n: 1000),
    ),
    "a bias that is not a number": (
        NEIGHBORS,
        setting("bank_.models.0", "bias_", lambda bias: np.nan),
    ),
    "slacks": (DYNAMIC, setting("reliability_", "_slacks", lambda slacks: slacks[:5])),
    "sides": (DYNAMIC, setting("reliability_", "_sides", lambda sides: sides[:, :1])),
    "columns of a measure": (
        DYNAMIC,
        lambda model: [
            setting("reliability_", name, lambda values: values[..., :2])(model)
            for name in ("_slacks", "_sides", "static_")
        ],
    ),
    "samples to search": (
        alone(NearestNeighbors(algorithm="brute")),
        setting("", "n_samples_fit_", lambda n: n + 10**6),
    ),
    "features to search by": (
        alone(NearestNeighbors(algorithm="brute")),
        setting("", "_fit_X", lambda samples: samples[:, :1].copy()),
    ),
    "classes of neighbours": (
        alone(KNeighborsClassifier(algorithm="brute")),
        setting("", "_y", lambda labels: labels + 10**8),
    ),
    "number of support vectors": (
        alone(SVC()),
        setting("", "_n_support", lambda n: n + np.int32([10**8, 0, 0, -(10**8)])),
    ),
    "support vectors": (alone(SVC()), setting("", "support_vectors_", lambda SV: SV[:1])),
    "support": (alone(SVC()), setting("", "support_", lambda support: support[:1])),
    "dual coefficients": (alone(SVC()), setting("", "_dual_coef_", lambda dual: dual[:, :1])),
    "intercepts": (alone(NuSVC(nu=0.1)), setting("", "_intercept_", lambda rho: rho[:1])),
    "sigmoids": (alone(SVC()), setting("", "_probA", lambda A: np.zeros(1))),
    "number of classes": (
        alone(SVC()),
        setting("", "_n_support", lambda n: np.append(n, np.int32(0))),
    ),
    "one class": (alone(OneClassSVM()), setting("", "_dual_coef_", lambda dual: dual[:, :1])),
    "columns of a kernel matrix": (
        alone(SVC(kernel="precomputed"), X @ X.T),
        setting("", "support_", lambda support: support + np.int32(10**8)),
    ),
    "sparse dual coefficients": (
        alone(SVC(), csr_matrix(X)),
        setting("", "_dual_coef_", lambda dual: csr_matrix(dual.shape)),
    ),
    "a kernel matrix that is sparse": (
        alone(SVC(), csr_matrix(X)),
        setting("", "kernel", lambda kernel: "precomputed"),
    ),
    "dense, said to be sparse": (alone(SVC()), setting("", "_sparse", lambda sparse: True)),
}


# -- what is not loaded ----------------------------------------------------------------

RAN = []


def run_me(*args):
    RAN.append(args)


class Evil:
    def __init__(self, *args):
        RAN.append(args)

    def __reduce__(self):
        return run_me, ("pickle",)

    def __setstate__(self, state):
        RAN.append(state)


def node(loader, module, name, **rest):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 1, **rest}


def text(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True) | {
        "__id__": hash(value)
    }


HERE = Evil.__module__
ARGUMENTS = node("TupleNode", "builtins", "tuple", content=[text("touched")]) | {"__id__": 2}
SCHEMES = {
    "constructor": node("ConstructorFromReduceNode", HERE, "Evil", content=ARGUMENTS),
    "function": node("ConstructorFromReduceNode", HERE, "run_me", content=ARGUMENTS),
    "object": node("ObjectNode", HERE, "Evil", content=ARGUMENTS),
    "list": node("ListNode", HERE, "run_me", content=[text("touched")]),
    "array": node(
        "NdArrayNode",
        HERE,
        "run_me",
        type="json",
        content=[],
        shape=node("TupleNode", "builtins", "tuple", content=[]) | {"__id__": 3},
    ),
    "method": node(
        "MethodNode",
        "builtins",
        "str",
        content={"func": "format", "obj": text("touched")},
    ),
    "reference": node("FunctionNode", "os", "system"),
}


class TestRefused:
    @pytest.mark.parametrize("scheme", SCHEMES)
    def test_malicious_files_run_nothing(self, scheme, stored):
        RAN.clear()
        schema = SCHEMES[scheme] | {"protocol": skops._protocol.PROTOCOL}
        rewrite(stored, **{"schema.json": json.dumps(schema)})
        with pytest.raises(ValueError, match=r"holds types that are not trusted: .*trusted=\["):
            load_model(stored)
        assert RAN == []

    def test_a_malicious_array(self, stored):
        with zipfile.ZipFile(stored) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
        np.save(stored.parent / "evil.npy", np.array([Evil()], dtype=object), allow_pickle=True)
        evil = (stored.parent / "evil.npy").read_bytes()
        RAN.clear()
        rewrite(stored, **dict.fromkeys(names, evil))
        with pytest.raises(ValueError, match="is damaged"):
            load_model(stored)
        assert RAN == []

    def test_pickles(self, tmp_path):
        (tmp_path / "m.skops").write_bytes(pickle.dumps(Evil()))
        RAN.clear()
        for read in (load_model, read_metadata):
            with pytest.raises(ValueError, match="is a pickle. It was not loaded, because"):
                read(tmp_path / "m.skops")
        assert RAN == []

    def test_other_libraries_are_named(self, tmp_path):
        model = CoupledClassifier(RandomForestClassifier(2, random_state=0)).fit(X, y)
        tree = "sklearn.tree._tree.Tree"
        with pytest.warns(UserWarning, match=rf"will refuse this model unless you trust {tree}"):
            save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match=rf"not trusted: {tree}\. .* trusted=\['{tree}'\]"):
            load_model(tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops", trusted=[tree])
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is not a stored model. Make one with manyclass fit -o"),
            (b"a,b\n1,2\n", "is not a stored model"),
            (b"PK\x03\x04 and then nothing", r"is damaged.*Get a fresh copy"),
        ],
    )
    def test_no_model(self, content, message, tmp_path):
        (tmp_path / "m.skops").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            load_model(tmp_path / "m.skops")

    @pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
    def test_truncated(self, share, stored):
        content = stored.read_bytes()
        stored.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ValueError, match="is damaged"):
            load_model(stored)

    def test_flipped_bits(self, stored):
        content = bytearray(stored.read_bytes())
        for place in range(200, len(content), len(content) // 20):
            broken = content.copy()
            broken[place] ^= 0xFF
            stored.write_bytes(broken)
            try:
                loaded = load_model(stored)
            except ValueError:
                continue
            assert isinstance(loaded, CoupledBase)  # in what no one reads, such as dates

    def test_other_archives(self, tmp_path):
        path = tmp_path / "m.skops"
        skops.dump(GaussianNB().fit(X, y), path)
        with pytest.raises(ValueError, match=r"a zip archive but not a stored model.*save_model"):
            load_model(path)
        with pytest.raises(FileNotFoundError, match="there is no file"):
            load_model(tmp_path / "no.skops")

    def test_zip_bombs(self, stored):
        rewrite(stored)
        with zipfile.ZipFile(stored, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.npy", bytes(100_000_000))
        assert stored.stat().st_size < 200_000
        with pytest.raises(ValueError, match=r"would unpack to 10\d,\d+,\d+ bytes, .* max_bytes"):
            load_model(stored, max_bytes=50_000_000)
        with pytest.raises(ValueError, match=r"more than 1,000"):
            load_model(stored, max_bytes=1000)
        load_model(stored)

    def test_a_bomb_that_lies(self, stored):
        """What is read of a member is what it says it has."""
        name = "schema.json"
        content = stored.read_bytes()
        with zipfile.ZipFile(stored) as archive:
            size = archive.getinfo(name).file_size
        broken = content.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))
        stored.write_bytes(broken)
        with pytest.raises(ValueError, match="is damaged"):
            load_model(stored)

    def test_nested_too_deep(self, stored):
        rewrite(stored, **{"schema.json": "[" * 100_000})
        with pytest.raises(ValueError, match="is damaged"):
            load_model(stored)

    @pytest.mark.parametrize("damage", DAMAGES)
    def test_places_outside_of_arrays(self, damage, tmp_path):
        """Compiled code would leave the arrays: a crash, for numbers that a file may hold."""
        make, break_it = DAMAGES[damage]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make()
        save_model(model, tmp_path / "m.skops")
        load_model(tmp_path / "m.skops")
        break_it(model)
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match="is damaged, or was not written by manyclass"):
            load_model(tmp_path / "m.skops")

    def test_places_of_cells_are_not_taken_from_the_file(self, tmp_path):
        model = BinnedNaiveBayes().fit(X, y)
        expected = model.predict_proba(X)
        vars(model.bins_)["offsets"] = model.bins_.offsets + 10**8
        save_model(model, tmp_path / "m.skops")
        assert_array_equal(load_model(tmp_path / "m.skops").predict_proba(X), expected)

    def test_sides_of_a_scaling_are_not_taken_from_the_file(self, tmp_path):
        model = CoupledClassifier(GaussianNB()).fit(X, y)
        expected = model.predict_proba(X)
        start, columns, sides = model.scaling_._sides
        model.scaling_._sides = start, columns + 10**8, sides
        save_model(model, tmp_path / "m.skops")
        assert_array_equal(load_model(tmp_path / "m.skops").predict_proba(X), expected)

    @pytest.mark.parametrize(
        ("machine", "data"),
        [
            (SVC(), X),
            (SVC(kernel="precomputed"), X @ X.T),
            (SVC(), csr_matrix(X)),
            (NuSVC(nu=0.1, kernel="linear"), X),
            (SVR(), X),
            (NuSVR(), csr_matrix(X)),
            (OneClassSVM(), X),
            (KNeighborsClassifier(algorithm="brute"), X),
        ],
    )
    def test_whole_machines_are_loaded(self, machine, data, tmp_path):
        machine.fit(data, y)
        save_model(machine, tmp_path / "m.skops")
        loaded = load_model(tmp_path / "m.skops")
        assert_array_equal(loaded.predict(data), machine.predict(data))


class TestVersions:
    def test_later_formats(self, stored):
        redescribe(stored, lambda d: d.update(format=FORMAT + 1))
        with pytest.raises(ValueError, match=rf"format {FORMAT + 1}\), but .* Update manyclass"):
            load_model(stored)

    def test_later_major_versions(self, stored):
        redescribe(stored, lambda d: d["versions"].update(manyclass="99.0"))
        with pytest.raises(ValueError, match=r"written by manyclass 99\.0 .* Update manyclass"):
            read_metadata(stored)

    def test_no_such_format(self, stored):
        redescribe(stored, lambda d: d.update(format=0))
        with pytest.raises(ValueError, match=r"format 0, which does not exist"):
            load_model(stored)

    @pytest.mark.parametrize("version", ["garbage", "", "-1.0", "v1", None, 3])
    def test_versions_that_cannot_be_read(self, version, stored):
        redescribe(stored, lambda d: d["versions"].update(manyclass=version))
        with pytest.raises(ValueError, match="is damaged"):
            load_model(stored)

    @pytest.mark.parametrize("version", ["0+local", "0rc1.2", "0.0.1"])
    def test_versions_of_any_form(self, version, stored):
        redescribe(stored, lambda d: d["versions"].update(manyclass=version))
        load_model(stored)

    @pytest.mark.parametrize("content", [b"[]", b"{}", b"\xff", b'{"format": "x", "versions": {}}'])
    def test_broken_descriptions(self, content, stored):
        rewrite(stored, **{DESCRIPTION: content})
        with pytest.raises(ValueError, match="is damaged"):
            load_model(stored)

    def test_another_scikit_learn(self, stored):
        redescribe(stored, lambda d: d["versions"].update({"scikit-learn": "0.1"}))
        with pytest.warns(UserWarning, match=r"fitted with scikit-learn 0\.1, but") as caught:
            load_model(stored)
        assert len(caught) == 1 and caught[0].filename == __file__
