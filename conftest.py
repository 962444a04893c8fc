"""Fixtures for the tests of the package and of the experiments."""

from __future__ import annotations

import os
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
