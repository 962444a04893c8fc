"""Run scikit-learn's own tests with the classes of this package in place of scikit-learn's.

``python tests/peers [options of pytest]``. Tests that are listed in ``differences.toml`` must fail;
all others must pass.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import differences
import pytest
import sklearn
import sklearn.svm
import swaps

SUITES = {
    "sklearn.svm.tests.test_svm": ["sklearn.svm.SVC"],
    "sklearn.tests.test_multiclass": [
        "sklearn.multiclass.OneVsOneClassifier",
        "sklearn.multiclass.OneVsRestClassifier",
        "sklearn.multiclass.OutputCodeClassifier",
    ],
    "sklearn.tests.test_calibration": ["sklearn.calibration.CalibratedClassifierCV"],
}
"""The test modules, and the names that are swapped in each."""


def import_swapped(suite: str, names: list[str]) -> None:
    """Import a test module while our classes have these names."""
    patches = [patch(name, getattr(swaps, name.rpartition(".")[2])) for name in names]
    for one in patches:
        one.start()
    module = import_module(suite)
    if "sklearn.svm.SVC" in names:  # its tests look SVC up when they run
        module.svm = type(sys)("svm")
        vars(module.svm).update(vars(sklearn.svm))
    for one in patches:
        one.stop()


class ExpectedDifferences:
    """A plugin that expects the listed tests to fail."""

    @staticmethod
    def pytest_configure(config):
        """Register the mark of scikit-learn's tests that pytest does not know."""
        config.addinivalue_line("markers", "thread_unsafe: not for threads")

    @staticmethod
    def pytest_collection_modifyitems(config, items):
        """Mark the listed tests."""
        known = differences.read()
        names = {item: differences.name_of(item.nodeid) for item in items}
        if not config.option.keyword and (strangers := differences.unknown(known, names.values())):
            raise pytest.UsageError(
                f"differences.toml lists tests that scikit-learn {sklearn.__version__} does not "
                f"have: {', '.join(strangers)}."
            )
        for item, name in names.items():
            reason = differences.reason_for(known, name)
            if reason is not None:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


if __name__ == "__main__":
    for suite, names in SUITES.items():
        import_swapped(suite, names)
    os.chdir(Path(sklearn.__file__).parent)  # away from the settings of our own tests
    options = ["-c", os.devnull, "--rootdir", str(Path(sklearn.__file__).parent.parent)]
    options += ["-p", "no:cacheprovider", "-q", "-rfE", "--pyargs", *SUITES, *sys.argv[1:]]
    sys.exit(pytest.main(options, plugins=[ExpectedDifferences()]))
