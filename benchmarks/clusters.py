"""Peak memory with many rows, and the speed-up of worker processes.

Each memory measurement runs in its own process (Linux only):

    python -m benchmarks.clusters MEASUREMENT
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable

import numpy as np
from joblib import parallel_config
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import SVC

from benchmarks.memory import rise_of
from benchmarks.timing import interleave
from experiments import datasets, simulated
from manyclass import CoupledClassifier, CoupledSVC

MB = 2**20
N_PREDICT, N_FIT, N_FEATURES, K = 1_000_000, 500_000, 50, 10
N_WIDE, WIDE = 6000, 1000
N_LETTER = 4000
SGD = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)

# ---------------------------------------------------------------------- memory


def rows_on_disk(path: str, n: int, n_features: int) -> tuple[np.memmap, np.ndarray]:
    """Return rows of ten normal classes in a memory-mapped file, and their classes."""
    population = simulated.gaussian_classes(K, n_features, random_state=0)
    labels = []
    with open(path, "wb") as file:
        for part in range(100):
            X, y = population.sample(n // K // 100, random_state=part)
            order = np.random.default_rng(part).permutation(len(y))
            X[order].tofile(file)
            labels.append(y[order])
    rows = np.memmap(path, np.float64, "r", shape=(n, n_features))
    rows.sum()  # reads the file once
    return rows, np.concatenate(labels)


def predicting(model) -> list[str]:
    X, y = simulated.gaussian_classes(K, 20, random_state=0).sample(100, random_state=1)
    model.fit(X, y)
    with tempfile.NamedTemporaryFile() as file:
        rows, _ = rows_on_disk(file.name, N_PREDICT, 20)
        model.predict_proba(rows[:10])  # loads compiled code
        rise, p = rise_of(lambda: model.predict_proba(rows))
    return [f"{rows.nbytes / MB:.0f}", f"{p.nbytes / MB:.0f}", f"{rise - p.nbytes / MB:.0f}"]


def fitting(model, n: int = N_FIT, n_features: int = N_FEATURES) -> list[str]:
    with tempfile.NamedTemporaryFile() as file:
        rows, labels = rows_on_disk(file.name, n, n_features)
        clone(model).fit(rows[:1000], labels[:1000])  # loads code
        rise, _ = rise_of(lambda: model.fit(rows, labels))
    return [f"{rows.nbytes / MB:.0f}", "", f"{rise:.0f}"]


BOUND = 1e-3  # a C so small that every sample is a support vector at its bound
REST = {"code": "one-vs-rest", "combiner": "kl"}
MEASUREMENTS = {
    "predict_proba, 10^6 rows, CoupledClassifier(LogisticRegression())": lambda: predicting(
        CoupledClassifier(LogisticRegression(max_iter=1000))
    ),
    "predict_proba, 10^6 rows, CoupledSVC()": lambda: predicting(CoupledSVC()),
    "fit, 500 000 rows, SGDClassifier, one-vs-one": lambda: fitting(CoupledClassifier(SGD)),
    "fit, 500 000 rows, SGDClassifier, one-vs-rest": lambda: fitting(
        CoupledClassifier(SGD, **REST)
    ),
    "fit, 500 000 rows, SGDClassifier, one-vs-rest, cv=None": lambda: fitting(
        CoupledClassifier(SGD, **REST, cv=None)
    ),
    "fit, 6000 rows, all support vectors, SVC": lambda: fitting(SVC(C=BOUND), N_WIDE, WIDE),
    "fit, 6000 rows, all support vectors, CoupledSVC": lambda: fitting(
        CoupledSVC(C=BOUND), N_WIDE, WIDE
    ),
    "fit, 6000 rows, all support vectors, CoupledSVC, cv=5": lambda: fitting(
        CoupledSVC(C=BOUND, cv=5), N_WIDE, WIDE
    ),
}


def memory() -> list[list[str]]:
    """Measure the peak memory of each task in its own process."""
    table = []
    for name in MEASUREMENTS:
        command = [sys.executable, "-m", "benchmarks.clusters", name]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        table.append([name, *run.stdout.strip("\n").split("\t")])
    return table


# ---------------------------------------------------------------------- workers


def clusters() -> list[list[str]]:
    """Fit one-vs-one on letter in this process, and on two workers."""
    from distributed import Client, LocalCluster

    X, _, y, _ = datasets.load("letter").train_test()
    X, y = X[:N_LETTER], y[:N_LETTER]
    forest, logistic = RandomForestClassifier(20), LogisticRegression(max_iter=1000)
    models = {
        "RandomForestClassifier(20), cv=None": CoupledClassifier(forest, cv=None, random_state=0),
        "LogisticRegression(), cv=None": CoupledClassifier(logistic, cv=None),
    }
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        return [[name, *_costs(model, X, y, client)] for name, model in models.items()]


def _costs(model, X, y, client) -> list[str]:
    """Measure clock and processor time; the latter does not depend on other processes."""
    spent: dict[str, list[float]] = {"here": [], "away": []}

    def measured(where: str, fit: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            before = _processor_seconds(client)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit()
            spent[where].append(_processor_seconds(client) - before)

        return run

    def fit_away() -> None:
        with parallel_config(backend="dask", client=client):
            clone(model).fit(X, y)

    tasks = {
        "here": measured("here", lambda: clone(model).fit(X, y)),
        "away": measured("away", fit_away),
    }
    times = interleave(tasks, rounds=3)
    work = {where: float(np.median(seconds[1:])) for where, seconds in spent.items()}
    return [
        f"{times['here'].best:.1f} s",
        f"{times['away'].best:.1f} s",
        f"{work['here']:.1f} s",
        f"{work['away']:.1f} s",
        f"{2 * work['here'] / work['away']:.2f}",
    ]


def _processor_seconds(client) -> float:
    """Return the processor time so far of this process and the workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


TABLES = {
    "many-rows": (memory, ["memory in MB", "X", "answer", "peak beyond X and answer"]),
    "clusters": (
        clusters,
        [
            f"letter, {N_LETTER} rows, 325 pairs",
            "clock, this process",
            "clock, two workers",
            "processor time, this process",
            "processor time, two workers and this process",
            "largest possible speed-up on two free cores",
        ],
    ),
}

if __name__ == "__main__":
    print(*MEASUREMENTS[sys.argv[1]](), sep="\t")
