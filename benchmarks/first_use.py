"""The cost of the first use: imports, and the first fit and prediction of CoupledSVC.

    python -m benchmarks first-use

Every figure is a median over separate processes, which alternate with the ones they are compared
to. Seconds are processor time, which equals clock time on an idle machine. Byte code is compiled
before, as when a package is installed. Machine code comes from numba: with an empty cache folder
(cold), or with one that an earlier process has filled (warm).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROUNDS = 5
SCRIPT = """
import json, time
clock = time.process_time
start = clock()
{imported}
imported = clock()
{used}
print(json.dumps([imported - start, *seconds]))
"""
USE = """
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
seconds = []
for _ in range(2):
    start = clock()
    model = {model}.fit(X, y)
    fitted = clock()
    model.predict_proba(X[:100])
    seconds += [fitted - start, clock() - fitted]
"""
IMPORTS = {
    "sklearn.svm": "from sklearn.svm import SVC",
    "numba": "from sklearn.svm import SVC\nimport numba",
    "manyclass": "from sklearn.svm import SVC\nimport manyclass",
}


def run(imported: str, used: str, folder: Path, cache: str) -> list[float]:
    """Run a script in a new process and return the seconds it measured."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / cache),
        "PYTHONPYCACHEPREFIX": str(folder / "bytes"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    script = SCRIPT.format(imported=imported, used=used)
    answer = subprocess.run(
        [sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout)


def imports() -> list[list[str]]:
    """Measure imports, and what each adds to importing scikit-learn's SVC."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds: dict[str, list[float]] = {name: [] for name in IMPORTS}
        for _ in range(ROUNDS + 1):  # the first round compiles byte code
            for name, imported in IMPORTS.items():
                seconds[name] += run(imported, "seconds = []", folder, "cache")
    medians = {name: median(values[1:]) for name, values in seconds.items()}
    return [
        [name, f"{value:.2f}", f"{value - medians['sklearn.svm']:+.2f}"]
        for name, value in medians.items()
    ]


def first_use() -> list[list[str]]:
    """Measure the first fit and prediction, compared with the second ones."""
    imported, use = "from manyclass import CoupledSVC", USE.format(model="CoupledSVC()")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(imported, "seconds = []", folder, "unused")
        measured: dict[str, list[list[float]]] = {"cold": [], "warm": []}
        for i in range(ROUNDS):
            for temperature in measured:
                measured[temperature].append(run(imported, use, folder, f"cache{i}"))
    rows = []
    for temperature, runs in measured.items():
        fit, predict, fit_again, predict_again = (
            median(run[i] for run in runs) for i in range(1, 5)
        )
        added = median(run[1] + run[2] - run[3] - run[4] for run in runs)
        rows.append(
            [
                f"{temperature} cache",
                *(f"{seconds:.3f}" for seconds in (fit, fit_again, predict, predict_again)),
                f"{added:.2f}",
            ]
        )
    return rows


TABLES = {
    "first-import": (imports, ["import, seconds", "total", "more than sklearn.svm"]),
    "first-use": (
        first_use,
        [
            "CoupledSVC on digits, seconds",
            "first fit",
            "second fit",
            "first predict_proba",
            "second predict_proba",
            "added by the first use",
        ],
    ),
}
