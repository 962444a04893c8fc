"""LIBSVM's own coupling of pairs, built from the source distribution of ``libsvm-official``."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

# multiclass_probability is private to svm.cpp, so the wrapper includes that file.
WRAPPER = """
#include "svm.cpp"
extern "C" void couple(long n, int k, double *r, double *p) {
    double **rows = new double *[k];
    for (long s = 0; s < n; s++) {
        for (int i = 0; i < k; i++) rows[i] = r + (s * k + i) * k;
        multiclass_probability(k, rows, p + s * k);
    }
    delete[] rows;
}
"""


@cache
def libsvm_couple() -> Callable[[np.ndarray], np.ndarray]:
    """Return a function from pairs (n, k, k) to class probabilities, in C++ on one thread.

    Raises an ``OSError`` if the source cannot be loaded or compiled here.
    """
    with TemporaryDirectory() as folder:
        try:
            library = ctypes.CDLL(str(_build(Path(folder))))
        except (subprocess.SubprocessError, StopIteration) as error:
            raise OSError(f"LIBSVM cannot be built here: {error}") from error

    def couple(r: np.ndarray) -> np.ndarray:
        n, k, _ = r.shape
        p = np.empty((n, k))
        address = (ctypes.c_void_p(array.ctypes.data) for array in (r, p))
        library.couple(ctypes.c_long(n), ctypes.c_int(k), *address)
        return p

    return couple


def _build(folder: Path) -> Path:
    """Load and compile svm.cpp with the flags of LIBSVM's Makefile."""
    load = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
    _run([*load, "--dest", str(folder), "libsvm-official"])
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    source, target = next(folder.rglob("svm.cpp")), folder / "couple.so"
    (folder / "couple.cpp").write_text(WRAPPER)
    flags = ["-O3", "-fPIC", "-shared", f"-I{source.parent}"]
    _run(["g++", *flags, str(folder / "couple.cpp"), "-o", str(target)])
    return target


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=300)
