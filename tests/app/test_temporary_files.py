"""Files of joblib's processes: none is created before its removal is certain."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor

from manyclass._lib.files import replacing
from manyclass.app import cli
from manyclass.app.signals import registered_files, remove_leftovers


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
    before = os.environ.get("JOBLIB_TEMP_FOLDER")
    with registered_files(str(folder), room=2**62 if reason == "no room" else 0):
        assert os.environ.get("JOBLIB_TEMP_FOLDER") == before


def test_the_command_line_names_it(monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    with registered_files():
        expected = os.environ.get("JOBLIB_TEMP_FOLDER")
    found = []

    def run(arguments: Namespace) -> int:
        found.append(os.environ.get("JOBLIB_TEMP_FOLDER"))
        return 0

    monkeypatch.setattr("manyclass.app.compare.run", run)
    assert cli.main(["compare"]) == 0
    assert found == [expected] and "JOBLIB_TEMP_FOLDER" not in os.environ


def test_leftovers_of_killed_processes_are_removed(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = tmp_path / f"joblib_memmapping_folder_{ended.pid}_a_b"
    alive = tmp_path / f"joblib_memmapping_folder_{os.getpid()}_a_b"
    other = tmp_path / "joblib_memmapping_folder_x"
    for folder in (dead, alive, other):
        folder.mkdir()
        (folder / "data.pkl").write_bytes(b"1")
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    remove_leftovers(str(tmp_path))
    assert not dead.exists() and alive.exists() and other.exists()


def test_parts_of_killed_writers_are_removed_by_the_next(tmp_path):
    script = (
        "import os, sys; from manyclass._lib.files import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'part'); file.flush(); os._exit(9)"
    )
    path = tmp_path / "out.csv"
    path.write_text("whole")
    subprocess.run([sys.executable, "-c", script, str(path)])
    assert len(list(tmp_path.iterdir())) == 2 and path.read_text() == "whole"
    with replacing(path) as file:
        with replacing(path) as second:  # does not remove what another one still writes
            second.write(b"second")
        file.write(b"new")
    assert path.read_bytes() == b"new" and list(tmp_path.iterdir()) == [path]
