"""How the times to fit and predict grow with the number of classes; for rows, see ``sizes``.

    python -m benchmarks.growth

Writes ``results/growth.csv`` and ``docs/figures/svm-growth.png``. Times are those of the processor.
Each measurement is appended to the file; existing ones are not repeated.
"""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path

from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from benchmarks.timing import touch_memory
from experiments import simulated
from manyclass import CoupledSVC

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "growth.csv"
FIGURE = HERE.parent / "docs" / "figures" / "svm-growth.png"
CLASSES = (3, 5, 10, 20, 50, 100)
N_PREDICT = 2000


def models(C: float) -> dict[str, object]:
    svc = SVC(C=C)
    return {
        "SVC": svc,
        "CoupledSVC": CoupledSVC(C=C),
        "SVC(probability=True)": SVC(C=C, probability=True, random_state=0),
        "CalibratedClassifierCV": CalibratedClassifierCV(svc, ensemble=False),
    }


def problems():
    """Yield (number of classes, X, y, X to predict)."""
    for k in CLASSES:
        population = simulated.gaussian_classes(k, n_features=20, random_state=0)
        X, y = population.sample(60, random_state=1)
        new, _ = population.sample(max(1, N_PREDICT // k), random_state=2)
        yield k, X, y, new


def measure(model, X, y, new) -> tuple[float, float]:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    between = time.process_time()
    (model.predict_proba if hasattr(model, "predict_proba") else model.decision_function)(new)
    return between - start, time.process_time() - between


def run() -> None:
    warm, labels = simulated.gaussian_classes(3, random_state=0).sample(20, random_state=0)
    measure(CoupledSVC(), warm, labels, warm)  # loads compiled code before anything is timed
    touch_memory()
    done = {tuple(row[:2]) for row in read()}
    for k, X, y, new in problems():
        for name, model in models(C=10.0).items():
            if (str(k), name) in done:
                continue
            fit, predict = measure(model, X, y, new)
            print(f"{k} classes: {name} fit {fit:.2f} s, predict {predict:.3f} s", flush=True)
            with RESULTS.open("a", newline="") as file:
                csv.writer(file).writerow([k, name, f"{fit:.4f}", f"{predict:.4f}"])


def read() -> list[list[str]]:
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.reader(file))


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name in models(1.0):
        rows = sorted((int(r[0]), float(r[2]), float(r[3])) for r in read() if r[1] == name)
        if not rows:
            continue
        sizes, fits, predictions = zip(*rows, strict=True)
        thick = 2.5 if name == "CoupledSVC" else 1.2
        for axis, seconds in zip(axes, (fits, predictions), strict=True):
            axis.loglog(sizes, seconds, "o-", lw=thick, ms=4, label=name)
    axes[0].set_ylabel("seconds to fit")
    axes[1].set_ylabel(f"seconds to predict {N_PREDICT} rows")
    for axis in axes:
        axis.set_xlabel("classes (60 rows each, 20 features)")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle("One thread. SVC predicts margins only; the others probabilities.")
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    run()
    draw()
