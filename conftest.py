"""Fixtures that all tests share: those of the package and those of the experiments."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.datasets import Dataset, load


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Dataset]:
    """A loader of data files that skips the test where there are none."""
    folder = os.environ.get("MANYCLASS_DATA")

    def load_file(name: str) -> Dataset:
        if not folder or not (Path(folder) / f"{name}.csv.gz").is_file():
            pytest.skip(f"{name}.csv.gz is not in a folder named by MANYCLASS_DATA")
        return load(name, data_home=folder)

    return load_file
