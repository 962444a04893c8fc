"""What people see when they explore: names, suggestions, and representations."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils import estimator_html_repr

import manyclass
from manyclass import CoupledClassifier, CoupledSVC, DecisionClassifier, codes


def test_public_names_only_are_listed():
    assert sorted(dir(manyclass)) == sorted(manyclass.__all__)
    for name in manyclass.__all__:
        assert getattr(manyclass, name) is not None


def test_modules_are_attributes():
    script = (
        "import manyclass; manyclass.metrics.reliability_curve; manyclass.storage.load_model\n"
        "manyclass.learners.KernelLogisticRegression; manyclass.plot.ReliabilityDisplay"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = manyclass.nothing
    with pytest.raises(AttributeError, match="has no attribute '_nothing'"):
        _ = manyclass._nothing


def test_importing_the_package_is_cheap():
    script = "import sys, manyclass; print('sklearn' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        ({"combiner": "wlw3"}, "did you mean 'wlw"),
        ({"combiner": "maxwins"}, "did you mean 'max-wins'"),
        ({"code": "one-versus-one"}, "did you mean 'one-vs-one'"),
        ({"calibration": "sigmoidal"}, "did you mean 'sigmoid'"),
    ],
)
def test_names_that_are_nearly_right(options, meant):
    X, y = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]], [0, 0, 1, 1, 2, 2]
    with pytest.raises(ValueError, match=meant):
        CoupledClassifier(LogisticRegression(), cv=2, **options).fit(X, y)


def test_label_decoders_say_which_combiner_has_probabilities():
    model = CoupledClassifier(combiner="max-wins")
    assert not hasattr(model, "predict_proba") and not hasattr(model, "predict_log_proba")
    with pytest.raises(AttributeError, match="'max-wins' gives labels only.*combiner='auto'"):
        model.predict_proba([[0.0]])
    with pytest.raises(AttributeError, match="unknown combiner 'wlw3'"):
        CoupledClassifier(combiner="wlw3").predict_proba([[0.0]])
    with pytest.raises(AttributeError, match="'CoupledSVC' object has no attribute 'other'"):
        _ = CoupledSVC().other


def test_representations_link_to_the_reference(monkeypatch, tmp_path):
    for model in (CoupledSVC(), CoupledClassifier(LogisticRegression()), DecisionClassifier()):
        name = type(model).__name__
        monkeypatch.setenv("MANYCLASS_DOCS", "https://docs.example.org/manyclass/")
        address = f"https://docs.example.org/manyclass/api/generated/manyclass.{name}.html"
        assert f'href="{address}"' in estimator_html_repr(model)
        monkeypatch.setenv("MANYCLASS_DOCS", str(tmp_path))
        assert model._get_doc_link().startswith("file:///")
    monkeypatch.delenv("MANYCLASS_DOCS")
    assert "docs.example.org" not in estimator_html_repr(CoupledSVC())


def test_own_subclasses_link_nowhere(monkeypatch):
    class Own(CoupledSVC):
        pass

    monkeypatch.setenv("MANYCLASS_DOCS", "https://docs.example.org")
    assert Own()._get_doc_link() == ""
    assert codes.NAMES


def test_subclasses_link_to_pages_of_their_own():
    class Own(CoupledSVC):
        _doc_link_module = __name__.partition(".")[0]
        _doc_link_template = "https://lab.example.org/{estimator_name}.html"

    assert 'href="https://lab.example.org/Own.html"' in estimator_html_repr(Own())


def test_there_is_no_link_without_pages(monkeypatch):
    """There is no public site: a link would lead nowhere, or to scikit-learn's pages."""
    monkeypatch.delenv("MANYCLASS_DOCS", raising=False)
    for model in (CoupledSVC(), DecisionClassifier()):
        assert model._get_doc_link() == ""
        assert "href=" not in estimator_html_repr(model)
