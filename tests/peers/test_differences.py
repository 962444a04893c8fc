"""The list of differences is well formed, and finds tests by their names."""

from __future__ import annotations

import differences
import pytest

LIST = """
[[difference]]
reason = "why"
tests = ["test_svm.py::test_a", "test_svm.py::test_b[1]"]
"""


def test_every_difference_has_a_reason():
    known = differences.read()
    assert len(known) > 40
    for test, reason in known.items():
        assert test.startswith(("test_svm.py::", "test_multiclass.py::", "test_calibration.py::"))
        assert len(reason) > 20 and reason.endswith(".")


def test_names_stand_for_all_parameters_unless_they_have_some():
    known = differences.read(LIST)
    name = differences.name_of("site-packages/sklearn/svm/tests/test_svm.py::test_a[x/y]")
    assert name == "test_svm.py::test_a[x/y]"
    assert differences.reason_for(known, name) == "why"
    assert differences.reason_for(known, "test_svm.py::test_b[1]") == "why"
    for other in ("test_svm.py::test_b[2]", "test_svm.py::test_b", "test_other.py::test_a"):
        assert differences.reason_for(known, other) is None
    assert differences.unknown(known, [name]) == ["test_svm.py::test_b[1]"]


def test_nothing_is_listed_twice():
    with pytest.raises(ValueError, match="test_a is listed twice"):
        differences.read(LIST + LIST)
