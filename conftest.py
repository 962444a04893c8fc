"""Fixtures and an option for the tests of the package and of the experiments."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.datasets import Dataset, load


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Dataset]:
    """Return a loader of data files, which skips the test if the file is missing."""
    folder = os.environ.get("MANYCLASS_DATA")

    def load_file(name: str) -> Dataset:
        if not folder or not (Path(folder) / f"{name}.csv.gz").is_file():
            pytest.skip(f"{name}.csv.gz is not in a folder named by MANYCLASS_DATA")
        return load(name, data_home=folder)

    return load_file


def pytest_addoption(parser):
    """Add an option for runs that are to reach all lines, and prove no laws."""
    parser.addoption("--cases", type=int, help="the most cases of each test, spread over all")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish():
    """Save what coverage has seen: pytest-xdist kills workers that take 10 s to end."""
    if "coverage" in sys.modules and (running := sys.modules["coverage"].Coverage.current()):
        running.stop()
        running.save()


def pytest_collection_modifyitems(config, items):
    """Leave out cases beyond ``--cases``."""
    most = config.getoption("cases")
    if most is None:
        return
    of_test = defaultdict(list)
    for item in items:
        of_test[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for cases in of_test.values():
        step = max(1, -(-(len(cases) - 1) // max(1, most - 1)))
        kept.update(cases[::step])
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
