"""Fits of CoupledSVC and of its peers on the papers' data sets, at several numbers of rows.

    python -m benchmarks.sizes [--seconds LIMIT]

Times are those of the processor, on one thread. In a round, all models fit one after the other on
the same rows. ``results/sizes.csv`` holds the medians of the rounds; a set and size that is there
is not measured again: delete the file to begin anew. A peer that is expected to need more than
LIMIT seconds for a fit is left out, since others fit several times. The table is that of
``python -m benchmarks sizes``, the figure ``docs/figures/svm-sizes.png``.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from benchmarks.timing import interleave, touch_memory
from experiments import datasets
from manyclass import CoupledSVC

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "sizes.csv"
FIGURE = HERE.parent / "docs" / "figures" / "svm-sizes.png"
SETS = "dna letter mnist pendigits satimage segment soybean usps waveform".split()
ROWS = (100, 300, 1000, 3000, 10_000)
CS = (1.0, 10.0, 100.0)
PLAIN, OURS, INTEL = "SVC", "CoupledSVC", "scikit-learn-intelex, SVC"
REFITS = {"SVC(probability=True)": 6, "CalibratedClassifierCV": 6}  # fits that a peer makes
SHOWN = "letter"  # the set of the figure


class Record(NamedTuple):
    """The median time of a model's fits."""

    data: str
    rows: int
    C: float
    model: str
    seconds: float
    spread: float


def models(C: float, n: int, seconds_of_svc: float, limit: float) -> dict[str, Any]:
    """Return the models that take less than the limit, for one fit each."""
    svc = SVC(C=C)
    peers = {
        "SVC(probability=True)": SVC(C=C, probability=True, random_state=0),
        "CalibratedClassifierCV": CalibratedClassifierCV(svc, ensemble=False),
    }
    if (intel := intel_svc()) is not None:
        peers[INTEL] = intel(C=C)
    times = {name: REFITS.get(name, 1) * seconds_of_svc for name in peers}
    return {PLAIN: svc, OURS: CoupledSVC(C=C)} | {
        name: peer for name, peer in peers.items() if times[name] < limit
    }


def intel_svc() -> Any:
    """Return the SVC of scikit-learn-intelex, or None if it is not installed or does not work."""
    try:
        from sklearnex.svm import SVC as machine

        machine().fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    except Exception:
        return None
    return machine


def problems() -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
    """Yield sets of rows, the small ones first, with classes of two rows or more."""
    for n in ROWS:
        for name in SETS:
            try:
                data = datasets.load(name)
            except (OSError, ValueError):
                continue
            if len(data.y) < n:
                continue
            rows = np.random.default_rng(0).permutation(len(data.y))[:n]
            y = np.unique(data.y[rows], return_inverse=True)[1]
            kept = np.bincount(y)[y] > 1
            yield name, n, scale(np.nan_to_num(data.X[rows]))[kept], y[kept]


def run(limit: float) -> None:
    """Measure what the file does not hold yet."""
    warm = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    CoupledSVC().fit(*warm)  # loads compiled code before anything is timed
    touch_memory()
    done = {(row.data, row.rows) for row in read()}
    for name, n, X, y in problems():
        if (name, n) in done:
            continue
        found = []
        for C in CS:
            start = time.process_time()
            SVC(C=C).fit(X, y)
            seconds = time.process_time() - start
            # Peers once for each size, as they cost several fits.
            candidates = models(C, n, seconds, limit if C == 10.0 else 0.0)
            if 2 * seconds > limit:
                continue
            tasks = {key: partial(_fit, model, X, y) for key, model in candidates.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rounds = 5 if n <= 300 else 3 if n <= 1000 else 2
                timings = interleave(tasks, rounds, warm_up=n <= 300, clock=time.process_time)
            for key, timing in timings.items():
                found.append(Record(name, n, C, key, timing.median, timing.spread))
        write(found)
        ratios = [f"{r.model} {r.seconds:.3f}" for r in found if r.C == 10.0]
        print(f"{name}, {n} rows: {', '.join(ratios)}", flush=True)


def _fit(model, X, y) -> None:
    clone(model).fit(X, y)


def write(records: list[Record]) -> None:
    """Append records to the file."""
    with RESULTS.open("a", newline="") as file:
        for r in records:
            numbers = f"{r.C:g}", r.model, f"{r.seconds:.5f}", f"{r.spread:.3f}"
            csv.writer(file).writerow([r.data, r.rows, *numbers])


def read() -> list[Record]:
    """Return the records of the file."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return [
            Record(name, int(n), float(C), model, float(seconds), float(spread))
            for name, n, C, model, seconds, spread in csv.reader(file)
        ]


def ratios(records: list[Record]) -> dict[tuple[int, str], list[float]]:
    """Return the ratios of times to those of SVC, by size and model."""
    plain = {(r.data, r.rows, r.C): r.seconds for r in records if r.model == PLAIN}
    found = defaultdict(list)
    for r in records:
        if r.model != PLAIN:
            found[r.rows, r.model].append(r.seconds / plain[r.data, r.rows, r.C])
    return found


def table() -> list[list[str]]:
    """Measure what is missing; return geometric means of ratios, and the smallest and largest."""
    run(limit=100.0)
    draw()
    return rows_of(read())


def rows_of(records: list[Record]) -> list[list[str]]:
    """Return the rows of the table."""
    found, rows = ratios(records), []
    for n in sorted({r.rows for r in records}):
        of_size = [r for r in records if r.rows == n]
        n_sets = len({r.data for r in of_size})
        ours = found[n, OURS]
        row = [f"{n}", f"{n_sets}", _mean(ours), f"{min(ours):.2f} to {max(ours):.2f}"]
        row += [_mean(found.get((n, name), [])) for name in (*REFITS, INTEL)]
        spread = np.median([r.spread for r in of_size])
        rows.append([*row, f"±{100 * spread:.0f} %"])
    return rows


def _mean(values: list[float]) -> str:
    return f"{np.exp(np.mean(np.log(values))):.2f}" if values else "-"


def draw() -> None:
    """Draw seconds against rows for one set, and ratios for all."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    records = read()
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name in (PLAIN, OURS, *REFITS, INTEL):
        thick = 2.5 if name == OURS else 1.2
        of_set = sorted(
            (r.rows, r.seconds)
            for r in records
            if r.model == name and r.data == SHOWN and r.C == 10.0
        )
        if of_set:
            left.loglog(*zip(*of_set, strict=True), "o-", lw=thick, ms=4, label=name)
        found = {n: values for (n, model), values in ratios(records).items() if model == name}
        means = [np.exp(np.mean(np.log(found[n]))) for n in sorted(found)]
        if means:
            color = left.lines[-1].get_color() if of_set else None
            right.loglog(sorted(found), means, "o-", lw=thick, ms=4, color=color)
    left.set(xlabel=f"training rows ({SHOWN}, C = 10)", ylabel="seconds to fit")
    right.axhline(1.0, color="grey", lw=0.8)
    right.set(xlabel="training rows", ylabel="time to fit / that of SVC, all sets")
    for axis in (left, right):
        axis.grid(alpha=0.3)
    left.legend(frameon=False, fontsize=8)
    figure.savefig(FIGURE, dpi=110)


TABLES = {
    "sizes": (
        table,
        [
            "rows",
            "sets",
            "CoupledSVC / SVC",
            "smallest to largest",
            *(f"{name} / SVC" for name in REFITS),
            f"{INTEL} / SVC",
            "spread",
        ],
    ),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=100.0, metavar="LIMIT")
    run(parser.parse_args().seconds)
    draw()
