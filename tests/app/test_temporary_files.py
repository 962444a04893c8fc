"""Files of joblib's processes: none is created before its removal is certain."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from manyclass.app import cli
from manyclass.app.signals import registered_files


def folders(where) -> list[Path]:
    return list(Path(where).glob(f"joblib_memmapping_folder_{os.getpid()}_*"))


def place_of(array) -> str:
    return str(array.filename)


def test_no_folder_until_it_is_needed(tmp_path, monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    get_reusable_executor().shutdown(wait=True)  # that of earlier tests has files elsewhere
    before = folders("/dev/shm")
    with registered_files(str(tmp_path), room=0), Parallel(n_jobs=2) as parallel:
        assert folders(tmp_path) == []
        places = parallel(delayed(place_of)(np.zeros(2**18)) for _ in range(2))
        assert all(Path(place).is_relative_to(tmp_path) for place in places)
    assert folders(tmp_path) == []
    assert folders("/dev/shm") == before


@pytest.mark.parametrize("reason", ["own folder", "no room", "no folder"])
def test_otherwise_joblib_chooses(reason, tmp_path, monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    if reason == "own folder":
        monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path / "own"))
    folder = tmp_path / "none" if reason == "no folder" else tmp_path
    with registered_files(str(folder), room=2**62 if reason == "no room" else 0):
        assert Parallel(n_jobs=2)._backend_kwargs["temp_folder"] is None


def test_the_command_line_names_it(monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    with registered_files():
        expected = Parallel(n_jobs=2)._backend_kwargs["temp_folder"]
    found = []

    def run(arguments: Namespace) -> int:
        found.append(Parallel(n_jobs=2)._backend_kwargs["temp_folder"])
        return 0

    parser = ArgumentParser()
    parser.set_defaults(run=run, command="compare")
    monkeypatch.setattr(cli, "_parser", lambda: parser)
    assert cli.main([]) == 0
    assert found == [expected]
