"""Machine code is read only from folders that nobody else can write to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from manyclass._lib.compiled.folders import shared_place

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners here")


@pytest.fixture(autouse=True)
def fresh():
    """Forget what is known of folders."""
    shared_place.cache_clear()


@pytest.mark.parametrize(("mode", "private"), [(0o700, True), (0o755, True), (0o777, False)])
def test_modes(mode, private, tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(mode)
    expected = None if private else str(folder)
    assert shared_place(str(folder)) == expected
    assert shared_place(str(folder / "below" / "it")) == expected  # it does not exist yet


def test_sticky_folders_above(tmp_path):
    above = tmp_path / "above"
    (above / "cache").mkdir(parents=True)
    above.chmod(0o777)
    assert shared_place(str(above / "cache")) == str(above)
    shared_place.cache_clear()
    above.chmod(0o1777)
    assert shared_place(str(above / "cache")) is None
    assert shared_place(str(above)) == str(above)


def test_links_lead_into_folders_that_are_checked(tmp_path):
    """Who can write to the folder above can put another one in the place of that one."""
    above = tmp_path / "above"
    (above / "cache").mkdir(parents=True)
    above.chmod(0o777)
    (tmp_path / "link").symlink_to(above / "cache")
    assert shared_place(str(tmp_path / "link")) == str(above)


@pytest.mark.skipif(hasattr(os, "getuid") and os.getuid() != 0, reason="needs another user")
def test_owners(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    assert shared_place(str(folder)) == str(folder)


def test_shared_caches_are_not_used(tmp_path):
    """One warning, right numbers, and no file in the folder."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    program = (
        "import numpy as np, manyclass.calibration.kernels.curves as m, warnings\n"
        "from manyclass import couple\n"
        "print(couple(np.array([[0.9, 0.8, 0.6]]), code='one-vs-one', rule='pkpd').sum())"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(shared), "NUMBA_OPT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) == pytest.approx(1.0)
    assert done.stderr.count("other users can write to") == 1
    assert not [path for path in shared.rglob("*") if path.is_file()]
