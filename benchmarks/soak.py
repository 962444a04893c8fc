"""Ten minutes of mixed work in threads and processes: does anything grow?

    python -m benchmarks.soak --minutes 10

Two processes of eight threads each fit, predict, save and load models of several kinds, all at
once. Twice a second, each process records its memory, threads and open files, and the temporary
files. The first fifth warms up. The rest must be flat: in each process, the median of the last
quarter is compared with that of the first. Results go to ``benchmarks/results/soak.csv``, the
figure to ``docs/figures/soak.png``.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from statistics import median

import numpy as np

RESULTS = Path(__file__).parent / "results" / "soak.csv"
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "soak.png"
COLUMNS = ("process", "seconds", "memory", "threads", "files", "temporary", "calls")
LABELS = ("memory, MB", "threads", "open files", "temporary files")
PROCESSES, THREADS, EVERY = 2, 8, 0.5
WARM_UP = 0.2
"""Share of the time after which sizes are compared: by then, all kernels have been compiled."""


def work(model, X, y, expected, path: Path, done: list[int], place: int, until: float) -> None:
    """Fit, store, load and ask one kind of model again and again; answers must stay the same."""
    from sklearn.base import clone

    from manyclass.storage import load_model, save_model

    while time.monotonic() < until:
        fitted = clone(model).fit(X, y)
        save_model(fitted, path)
        p = load_model(path).predict_proba(X)
        if not np.array_equal(p, fitted.predict_proba(X)) or not np.array_equal(p, expected):
            os._exit(3)
        done[place] += 1


def run(number: int, seconds: float) -> int:
    """Work in threads, and write what this process takes to standard output."""
    from sklearn.base import clone
    from sklearn.datasets import load_iris, load_wine
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    from manyclass import CoupledClassifier, CoupledSVC

    warnings.simplefilter("ignore")
    iris, wine = load_iris(return_X_y=True), load_wine(return_X_y=True)
    models = [
        (CoupledSVC(), iris),
        (CoupledSVC(C=3.0, calibration="isotonic", n_jobs=2), wine),
        (CoupledClassifier(LogisticRegression(max_iter=200), code="one-vs-rest", cv=3), iris),
        (CoupledClassifier(GaussianNB(), code="native", cv=3), wine),
    ]
    known = [clone(model).fit(*data).predict_proba(data[0]) for model, data in models]
    done, start = [0] * THREADS, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        tempfile.tempdir = name
        threads = []
        for place in range(THREADS):
            (model, data), expected = models[place % 4], known[place % 4]
            path = Path(name) / f"{place}.skops"
            args = (model, *data, expected, path, done, place, start + seconds)
            threads.append(threading.Thread(target=work, args=args, daemon=True))
            threads[-1].start()
        while any(thread.is_alive() for thread in threads):
            time.sleep(EVERY)
            row = (number, time.monotonic() - start, *taken(Path(name)), sum(done))
            print(*row, sep=",", flush=True)
    return 0


def taken(folder: Path) -> tuple[int, int, int, int]:
    """Return the bytes of memory, the threads, the open files and the temporary files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    threads = len(os.listdir("/proc/self/task"))
    files = len(os.listdir("/proc/self/fd"))
    return pages * os.sysconf("SC_PAGESIZE"), threads, files, len(os.listdir(folder))


def growth(rows: list[list[float]]) -> list[list[float]]:
    """Return the medians of the first and last quarter after the warm-up, for each size."""
    end = rows[-1][1]
    parts = [
        [row for row in rows if a <= (row[1] / end - WARM_UP) / (1 - WARM_UP) <= b]
        for a, b in ((0.0, 0.25), (0.75, 1.0))
    ]
    return [[median(row[i] for row in part) for part in parts] for i in range(2, 6)]


def plot(rows: list[list[float]]) -> None:
    """Draw the four sizes over time, a line for each process."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(8, 4.5), sharex=True, layout="constrained")
    for axis, label, i in zip(axes.flat, LABELS, range(2, 6), strict=True):
        for number in range(PROCESSES):
            own = [row for row in rows if row[0] == number]
            scale = 1e6 if i == 2 else 1
            minutes, sizes = zip(*((row[1] / 60, row[i] / scale) for row in own), strict=True)
            axis.plot(minutes, sizes, label=f"process {number + 1}")
        axis.set(title=label, ylim=(0, None))
        axis.grid(alpha=0.3)
    for axis in axes[1]:
        axis.set_xlabel("minutes")
    axes[0, 0].legend(loc="lower right")
    figure.savefig(FIGURE, dpi=110)


def main() -> int:
    """Run all processes, write the table and the figure, and print what has grown."""
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process is not None:
        return run(arguments.process, 60 * arguments.minutes)
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", str(arguments.minutes)]
    started = [
        subprocess.Popen([*command, "--process", str(i)], stdout=subprocess.PIPE, text=True)
        for i in range(PROCESSES)
    ]
    readers: list[list[str]] = [[] for _ in started]
    waiting = [
        threading.Thread(target=lambda p=p, lines=lines: lines.extend(p.stdout))
        for p, lines in zip(started, readers, strict=True)
    ]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    if any(process.wait() for process in started):
        print("a process failed: answers differ, or an error", file=sys.stderr)
        return 1
    rows = [[float(x) for x in line.split(",")] for lines in readers for line in lines]
    with open(RESULTS, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([[int(r[0]), round(r[1], 1), *map(int, r[2:])] for r in rows])
    plot(rows)
    for number in range(PROCESSES):
        own = [row for row in rows if row[0] == number]
        print(f"process {number + 1}: {int(own[-1][-1])} rounds of fit, save, load and predict")
        for label, (first, last) in zip(LABELS, growth(own), strict=True):
            scale = 1e6 if label.endswith("MB") else 1
            print(f"  {label}: {first / scale:.4g} -> {last / scale:.4g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
