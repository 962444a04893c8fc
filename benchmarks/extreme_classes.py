"""Ten to ten thousand classes with five training rows each: the five best classes of a row.

    python -m benchmarks extreme-classes

The classes are words of four letters, and the features of the letters are side by side
(:mod:`benchmarks.many_classes`): k words of the 10,000 are chosen at random, so that there are 64
features for every k. Each model is measured in its own process: processor seconds of one
thread, and the peak of its memory above what it held before. Also draws
``docs/figures/extreme-classes.png``.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from benchmarks.many_classes import costs, elsewhere, warm_up, words
from manyclass import CoupledClassifier
from manyclass.codes import ClassTrees

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "extreme-classes.png"
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000)
MODELS = {
    "class tree": lambda: CoupledClassifier(code=ClassTrees(n_trees=1), cv=None, random_state=0),
    "multinomial": lambda: LogisticRegression(max_iter=300),
    "one-vs-rest": lambda: OneVsRestClassifier(LogisticRegression()),
}


def extreme(most_of_peers: int = 3000) -> list[list[str]]:
    """Measure all sizes; the peers up to a number of classes, as their cost grows like k^2."""
    found = {}
    for k in SIZES:
        for name in MODELS:
            if name == "class tree" or k <= most_of_peers:
                found[name, k] = elsewhere(name, k, module="benchmarks.extreme_classes")
                print(f"    {k} {name} {found[name, k]}", file=sys.stderr, flush=True)
    draw(found)
    return [[str(k), name, *as_cells(values)] for (name, k), values in found.items()]


def as_cells(found: dict[str, float]) -> list[str]:
    return [
        f"{found['fit s']:.1f}",
        f"{max(found['fit MB'], 0):.0f}",
        f"{found['predict us']:.1f}",
        f"{max(found['predict MB'], 0):.0f}",
        f"{100 * found['missed']:.1f}",
    ]


HEADER = ["k", "model", "fit s", "fit MB", "predict a row, us", "predict MB"]
HEADER += ["not among the best five %"]


def measure(name: str, k: int, rounds: int = 5) -> dict[str, float]:
    """Fit, and find the five best classes, in this process."""
    warnings.simplefilter("ignore")
    warm_up()
    X, X_test, y, y_test = words(10, 4, 5, n_words=k)
    small = MODELS["class tree"]().fit(X[:50], y[:50])
    small.predict_top(X[:50])  # compiled
    model = MODELS[name]()
    fit_s, fit_mb = costs(lambda: model.fit(X, y))

    def best():
        if name == "class tree":
            return model.predict_top(X_test, 5)[0]
        return model.classes_[np.argsort(-model.predict_proba(X_test), axis=1)[:, :5]]

    missed = float((best() != y_test[:, None]).all(axis=1).mean())
    seconds, mb = np.median([costs(best) for _ in range(rounds)], axis=0)
    found = {"fit s": fit_s, "fit MB": fit_mb, "predict us": 1e6 * seconds / len(X_test)}
    return found | {"predict MB": mb, "missed": missed}


def draw(found: dict[tuple[str, int], dict[str, float]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    labels = {"fit s": "seconds to fit", "predict us": "microseconds to predict a row"}
    labels["missed"] = "not among the best five, %"
    for axis, (key, label) in zip(axes, labels.items(), strict=True):
        for name in MODELS:
            sizes = [k for k in SIZES if (name, k) in found]
            values = [found[name, k][key] * (100 if key == "missed" else 1) for k in sizes]
            thick = 2.5 if name == "class tree" else 1.2
            axis.plot(sizes, values, "o-", lw=thick, ms=4, label=name)
        axis.set(xscale="log", xlabel="classes", ylabel=label)
        if key != "missed":
            axis.set_yscale("log")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(FIGURE, dpi=110)


TABLES = {"extreme-classes": (extreme, HEADER)}

if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
