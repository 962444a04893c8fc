"""Models that earlier releases stored: every release after them loads them.

``python tests/storage/make_stored_models.py`` wrote the files.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from manyclass import CoupledSVC
from manyclass.storage import load_model, read_metadata
from manyclass.storage.trusted_types import FORMER, IDENTIFIERS, identifier

pytest.importorskip("skops.io", reason="stored models need skops")

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("stored_*.skops"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_they_load_and_predict_the_same(path):
    described = read_metadata(path)
    rows = np.array(described["metadata"]["rows"])
    expected = np.array(described["metadata"]["probabilities"])
    with warnings.catch_warnings():
        if described["versions"]["scikit-learn"] != sklearn.__version__:
            warnings.filterwarnings("ignore", message="the model was fitted with scikit-learn")
        model = load_model(path)
    p = model.predict_proba(rows)
    # Another BLAS or processor may round sums differently.
    assert_allclose(p, expected, rtol=1e-10, atol=1e-13)
    assert_array_equal(model.predict(rows), model.classes_[expected.argmax(axis=1)])


def test_there_are_some():
    assert len(FILES) >= 3


def test_no_identifier_is_forgotten():
    """A class that was storable once has its identifier, or ``FORMER`` names the new one."""
    published = set(json.loads((DATA / "stored_identifiers.json").read_text()))
    assert published <= {*IDENTIFIERS, *FORMER}


def test_classes_of_other_packages_keep_their_names():
    assert identifier(CoupledSVC) == "manyclass.CoupledSVC"
    assert identifier(SVC) == "sklearn.svm._classes.SVC"
