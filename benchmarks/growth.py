"""How the times to fit and predict grow with the number of rows and of classes.

    python -m benchmarks.growth [--most ROWS]

Writes ``results/growth.csv`` and ``docs/figures/svm-growth.png``. The largest sizes
are measured for SVC and CoupledSVC only: the others fit several times and would take hours. Each
measurement is appended to the file; existing ones are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from experiments import datasets, simulated
from manyclass import CoupledSVC

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "growth.csv"
FIGURE = HERE.parent / "docs" / "figures" / "svm-growth.png"
ROWS = (1000, 2000, 5000, 10_000, 20_000, 60_000)
CLASSES = (3, 5, 10, 20, 50, 100)
REFITTING_UP_TO = 10_000
N_PREDICT = 2000


def models(C: float) -> dict[str, object]:
    svc = SVC(C=C)
    return {
        "SVC": svc,
        "CoupledSVC": CoupledSVC(C=C),
        "SVC(probability=True)": SVC(C=C, probability=True, random_state=0),
        "CalibratedClassifierCV": CalibratedClassifierCV(svc, ensemble=False),
    }


def problems(most: int):
    """Yield (what grows, size, X, y, X to predict, may refit)."""
    for k in CLASSES:
        population = simulated.gaussian_classes(k, n_features=20, random_state=0)
        X, y = population.sample(60, random_state=1)
        new, _ = population.sample(max(1, N_PREDICT // k), random_state=2)
        yield "classes", k, X, y, new, True
    sizes = [n for n in ROWS if n <= most]
    if sizes:
        X, X_test, y, _ = datasets.load("mnist").train_test()
        order = np.random.default_rng(0).permutation(len(y))
        for n in sizes:
            rows = order[:n]
            yield "rows", n, X[rows] / 255, y[rows], X_test[:N_PREDICT] / 255, n <= REFITTING_UP_TO


def measure(model, X, y, new) -> tuple[float, float]:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    between = time.perf_counter()
    (model.predict_proba if hasattr(model, "predict_proba") else model.decision_function)(new)
    return between - start, time.perf_counter() - between


def run(most: int) -> None:
    warm, labels = simulated.gaussian_classes(3, random_state=0).sample(20, random_state=0)
    measure(CoupledSVC(), warm, labels, warm)  # loads compiled code before anything is timed
    done = {tuple(row[:3]) for row in read()}
    for grows, size, X, y, new, may_refit in problems(most):
        for name, model in models(C=10.0).items():
            refits = name not in ("SVC", "CoupledSVC")
            if (grows, str(size), name) in done or (refits and not may_refit):
                continue
            fit, predict = measure(model, X, y, new)
            print(f"{grows} {size}: {name} fit {fit:.2f} s, predict {predict:.3f} s", flush=True)
            with RESULTS.open("a", newline="") as file:
                csv.writer(file).writerow([grows, size, name, f"{fit:.4f}", f"{predict:.4f}"])


def read() -> list[list[str]]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.reader(file))


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), sharex="col", layout="constrained")
    for column, (grows, label) in enumerate(
        [("rows", "training rows (mnist)"), ("classes", "classes (60 rows each, 20 features)")]
    ):
        for name in models(1.0):
            rows = sorted(
                (int(r[1]), float(r[3]), float(r[4]))
                for r in read()
                if r[0] == grows and r[2] == name
            )
            if not rows:
                continue
            sizes, fits, predictions = zip(*rows, strict=True)
            thick = 2.5 if name == "CoupledSVC" else 1.2
            axes[0, column].loglog(sizes, fits, "o-", lw=thick, ms=4, label=name)
            axes[1, column].loglog(sizes, predictions, "o-", lw=thick, ms=4, label=name)
        axes[0, column].set_ylabel("seconds to fit")
        axes[1, column].set_ylabel(f"seconds to predict {N_PREDICT} rows")
        axes[1, column].set_xlabel(label)
        for axis in axes[:, column]:
            axis.grid(alpha=0.3)
    axes[0, 0].legend(frameon=False)
    figure.suptitle("One thread. SVC predicts margins only; the others probabilities.")
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=max(ROWS), metavar="ROWS")
    run(parser.parse_args().most)
    draw()
