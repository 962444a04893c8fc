"""What MLflow does with a model: skops with a list of trusted types."""

from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, CoupledSVC, DecisionClassifier
from manyclass.learners import BoostedNaiveBayes, KernelLogisticRegression
from manyclass.storage import SKOPS_TYPES

X, y = load_iris(return_X_y=True)
MODELS = [
    CoupledSVC(),
    CoupledClassifier(LinearSVC(dual=False), code="one-vs-rest", calibration="isotonic"),
    CoupledClassifier(KernelLogisticRegression(), scaling="temperature"),
    CoupledClassifier(BoostedNaiveBayes(), calibration="beta"),
    CoupledClassifier(GaussianNB(), code="class-trees"),
    DecisionClassifier(CoupledSVC(kernel="linear")),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS)
def test_the_named_types_are_all_that_skops_needs(model, tmp_path):
    skops = pytest.importorskip("skops.io")
    model.fit(X, y)
    skops.dump(model, tmp_path / "m.skops")
    loaded = skops.load(tmp_path / "m.skops", trusted=SKOPS_TYPES)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_mlflow_saves_and_loads(tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn")
    model = CoupledSVC().fit(X, y)
    options = {"skops_trusted_types": SKOPS_TYPES, "pip_requirements": []}
    mlflow.save_model(model, tmp_path / "m", **options)
    loaded = mlflow.load_model(str(tmp_path / "m"))
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_mlflow_names_the_argument_that_is_missing(tmp_path):
    mlflow = pytest.importorskip("mlflow.sklearn")
    with pytest.raises(Exception, match="'skops_trusted_types' parameter .* 'manyclass.svm.Coupl"):
        mlflow.save_model(CoupledSVC().fit(X, y), tmp_path / "m", pip_requirements=[])
