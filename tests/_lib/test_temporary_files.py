"""Files of joblib's processes: none is made before its removal is seen to."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from manyclass._lib import jobs as _jobs
from manyclass._lib.jobs import registered_files
from manyclass.app import cli


def folders(where) -> list[Path]:
    return list(Path(where).glob(f"joblib_memmapping_folder_{os.getpid()}_*"))


def place_of(array) -> str:
    return str(array.filename)


def test_no_folder_until_it_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    monkeypatch.setattr(_jobs, "SHARED_MEMORY", str(tmp_path))
    monkeypatch.setattr(_jobs, "ROOM", 0)
    get_reusable_executor().shutdown(wait=True)  # that of tests before has files elsewhere
    before = folders("/dev/shm")
    with registered_files(), Parallel(n_jobs=2) as parallel:
        assert folders(tmp_path) == []
        places = parallel(delayed(place_of)(np.zeros(2**18)) for _ in range(2))
        assert all(Path(place).is_relative_to(tmp_path) for place in places)
    assert folders(tmp_path) == []
    assert folders("/dev/shm") == before


@pytest.mark.parametrize("reason", ["own folder", "no room", "no folder"])
def test_otherwise_left_to_joblib(reason, tmp_path, monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    monkeypatch.setattr(_jobs, "SHARED_MEMORY", str(tmp_path))
    monkeypatch.setattr(_jobs, "ROOM", 0)
    if reason == "own folder":
        monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path / "own"))
    elif reason == "no room":
        monkeypatch.setattr(_jobs, "ROOM", 2**62)
    else:
        monkeypatch.setattr(_jobs, "SHARED_MEMORY", str(tmp_path / "none"))
    with registered_files():
        assert Parallel(n_jobs=2)._backend_kwargs["temp_folder"] is None


def test_the_command_line_does_so(tmp_path, monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    monkeypatch.setattr(_jobs, "SHARED_MEMORY", str(tmp_path))
    monkeypatch.setattr(_jobs, "ROOM", 0)
    found = []

    def run(arguments: Namespace) -> int:
        found.append(Parallel(n_jobs=2)._backend_kwargs["temp_folder"])
        return 0

    parser = ArgumentParser()
    parser.set_defaults(run=run, command="compare")
    monkeypatch.setattr(cli, "_parser", lambda: parser)
    assert cli.main([]) == 0
    assert found == [str(tmp_path)]
