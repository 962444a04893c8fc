"""How times, memory and log-loss grow with the number of classes and columns.

    python -m benchmarks many-classes        # one-vs-one
    python -m benchmarks random-codes        # sparse random codes
    python -m benchmarks class-trees         # class trees and the multinomial model
    python -m benchmarks class-trees-sets    # class trees and one-vs-one, three sets, two learners

The classes are words of two or three letters. The features of the letters are put side by side, so
the features are real and there are as many classes as words. Each class has 20 or 40 training rows.
All binary learners are ``LogisticRegression()``. Each model is measured in its own process:
processor seconds (one thread), and the peak of its memory above what it held before.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.multiclass import OneVsOneClassifier, OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.memory import rise_of
from experiments import datasets
from manyclass import CoupledClassifier, codes, couple
from manyclass.codes import ClassTrees

N_TEST = 2000
# Letters of the alphabet, letters of a word, training rows of a class.
SIZES = {
    "one-vs-one": ((7, 2, 40), (10, 2, 40), (14, 2, 40)),
    "sparse-random": ((14, 2, 40), (22, 2, 20), (10, 3, 20)),
    "class-trees": ((7, 2, 40), (14, 2, 40), (10, 3, 20)),
}
PEERS = {"one-vs-one": "OneVsOneClassifier", "sparse-random": "OutputCodeClassifier"}


def words(alphabet: int, length: int, n_of_class: int, n_words: int | None = None):
    """Make words of letters from the data set; returns X_train, X_test, y_train, y_test.

    The classes are all words, or ``n_words`` of them at random.
    """
    data = datasets.load("letter")
    rng = np.random.default_rng(0)
    _, letters = np.unique(data.y, return_inverse=True)
    by_letter = [rng.permutation(np.flatnonzero(letters == a)) for a in range(alphabet)]
    k = n_words or alphabet**length
    chosen = np.arange(k) if n_words is None else rng.permutation(alphabet**length)[:k]

    def draw(y, first, last):
        """Spell the words from the given part of the rows of each letter."""
        spelling = np.stack(np.unravel_index(chosen[y], (alphabet,) * length), axis=1)
        pools = [rows[int(first * len(rows)) : int(last * len(rows))] for rows in by_letter]
        rows = np.array([[rng.choice(pools[a]) for a in word] for word in spelling])
        return data.X[rows].reshape(len(y), -1).astype(np.float64)

    y, y_test = np.repeat(np.arange(k), n_of_class), rng.integers(k, size=N_TEST)
    X, X_test = draw(y, 0.0, 0.7), draw(y_test, 0.7, 1.0)
    scaler = StandardScaler().fit(X)
    return scaler.transform(X), scaler.transform(X_test), y, y_test


def make_model(name: str, code: str, k: int):
    if code == "class-trees" and name == "CoupledClassifier":
        return CoupledClassifier(code=code, random_state=0)
    if name == "CoupledClassifier":
        combiner = "wlw2" if code == "one-vs-one" else "least-squares"
        return CoupledClassifier(code=code, combiner=combiner, random_state=0)
    if name == "OneVsOneClassifier":
        return OneVsOneClassifier(LogisticRegression())
    if name == "OutputCodeClassifier":
        columns = n_columns(code, k) + 0.5  # the number is rounded down
        return OutputCodeClassifier(LogisticRegression(), code_size=columns / k, random_state=0)
    return LogisticRegression(max_iter=300)


def n_columns(code: str, k: int) -> int:
    if code == "class-trees":
        return 4 * (k - 1)
    return k * (k - 1) // 2 if code == "one-vs-one" else int(np.ceil(15 * np.log2(k)))


def measure(name: str, code: str, alphabet: int, length: int, n_of_class: int) -> dict[str, float]:
    """Fit and predict, in this process."""
    warnings.simplefilter("ignore")
    warm_up()
    X, X_test, y, y_test = words(alphabet, length, n_of_class)
    model = make_model(name, code, alphabet**length)
    fit_s, fit_mb = costs(lambda: model.fit(X, y))
    predict = getattr(model, "predict_proba", model.predict)
    predict_s, predict_mb = costs(lambda: predict(X_test))
    found = {"fit s": fit_s, "fit MB": fit_mb, "predict s": predict_s, "predict MB": predict_mb}
    found["pickle MB"] = len(pickle.dumps(model)) / 2**20
    found["error"] = float((model.predict(X_test) != y_test).mean())
    if hasattr(model, "predict_proba"):
        p = np.clip(model.predict_proba(X_test), np.finfo(float).eps, 1)
        found["log-loss"] = log_loss(y_test, p, labels=model.classes_)
    return found


def warm_up() -> None:
    """Load the compiled code for many classes and for few columns, before anything is timed."""
    rng = np.random.default_rng(0)
    few = codes.sparse_random(12, n_columns=8, n_draws=5, random_state=0)
    couple(rng.random((8, 8)), code=few, rule="least-squares")
    couple(rng.random((8, 66 * 65 // 2)), code="one-vs-one")
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 3
    CoupledClassifier().fit(X, y).predict_proba(X)
    CoupledClassifier(code="class-trees", random_state=0).fit(X, y).predict_proba(X)


def costs(task) -> tuple[float, float]:
    """Return the processor seconds of a task, and its peak memory above the current one in MB."""
    start = time.process_time()
    rise, _ = rise_of(task)
    return time.process_time() - start, rise


def elsewhere(*arguments, module: str = "benchmarks.many_classes") -> dict[str, float]:
    """Measure in another process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def growth(code: str) -> list[list[str]]:
    rows = []
    for alphabet, length, n_of_class in SIZES[code]:
        for name in ("CoupledClassifier", PEERS[code], "LogisticRegression"):
            found = elsewhere(name, code, alphabet, length, n_of_class)
            print(f"    {code} {alphabet**length} {name} {found}", file=sys.stderr, flush=True)
            rows.append(as_row(name, code, alphabet**length, found))
    return rows


def as_row(name: str, code: str, k: int, found: dict[str, float]) -> list[str]:
    multinomial = name == "LogisticRegression"
    return [
        "" if multinomial else code,
        str(k),
        "" if multinomial else str(n_columns(code, k)),
        name,
        f"{found['fit s']:.1f}",
        f"{max(found['fit MB'], 0):.0f}",
        f"{found['predict s']:.2f}",
        f"{max(found['predict MB'], 0):.0f}",
        f"{found['pickle MB']:.2f}",
        f"{100 * found['error']:.1f}",
        f"{found['log-loss']:.3f}" if "log-loss" in found else "none",
    ]


def trees() -> list[list[str]]:
    """Compare class trees with the multinomial model, with default parameters."""
    rows = []
    for alphabet, length, n_of_class in SIZES["class-trees"]:
        sizes, k = (alphabet, length, n_of_class), alphabet**length
        ours = elsewhere("CoupledClassifier", "class-trees", *sizes)
        theirs = elsewhere("LogisticRegression", "", *sizes)
        print(f"    {k} {ours} {theirs}", file=sys.stderr, flush=True)
        cells = [f"{found['fit s']:.1f}" for found in (ours, theirs)]
        cells += [f"{100 * found['error']:.1f}" for found in (ours, theirs)]
        cells += [f"{found['log-loss']:.3f}" for found in (ours, theirs)]
        ratios = [ours[name] / theirs[name] for name in ("log-loss", "fit s")]
        rows.append(
            [str(k), str(n_columns("class-trees", k)), *cells, *(f"{r:.2f}" for r in ratios)]
        )
    return rows


TREE_HEADER = ["k", "columns", "fit s, class trees", "fit s, multinomial"]
TREE_HEADER += ["error %, class trees", "error %, multinomial"]
TREE_HEADER += [
    "log-loss, class trees",
    "log-loss, multinomial",
    "ratio of log-loss",
    "ratio of fit s",
]


def sets(seeds: tuple[int, ...] = (0, 1)) -> list[list[str]]:
    """Compare class trees with one-vs-one on random splits of training parts."""
    warnings.simplefilter("ignore")
    warm_up()
    trees = {n: ClassTrees(n_trees=n) for n in (1, 4)}
    rows = []
    for name in ("letter", "pendigits", "usps"):
        for learner in (LinearSVC(), GaussianNB()):
            losses, seconds = dict.fromkeys((0, *trees), 0.0), dict.fromkeys((0, *trees), 0.0)
            for seed in seeds:
                X, X_test, y, y_test = part_of(name, 2000, seed)
                for n, code in {0: "one-vs-one", **trees}.items():
                    model = CoupledClassifier(learner, code=code, random_state=0)
                    start = time.process_time()
                    model.fit(X, y)
                    seconds[n] += time.process_time() - start
                    losses[n] += log_loss(y_test, model.predict_proba(X_test)) / len(seeds)
            row = [name, type(learner).__name__, *(f"{loss:.3f}" for loss in losses.values())]
            row += [f"{losses[n] / losses[0]:.2f}" for n in trees]
            rows.append(row + [f"{seconds[n] / seconds[0]:.2f}" for n in trees])
            print(f"    {rows[-1]}", file=sys.stderr, flush=True)
    return rows


SETS_HEADER = ["set", "learner", "log-loss, one-vs-one", "one tree", "four trees"]
SETS_HEADER += [
    "ratio of log-loss, one tree",
    "four trees",
    "ratio of fit s, one tree",
    "four trees",
]


def part_of(name: str, n: int, seed: int):
    """Return X_train, X_test, y_train, y_test from the training part of a set."""
    data = datasets.load(name)
    own = np.ones(len(data.y), dtype=bool) if data.split is None else data.split == "train"
    order = np.random.default_rng(seed).permutation(np.flatnonzero(own))[: n + N_TEST]
    X, y = data.X[order].astype(np.float64), np.unique(data.y[order], return_inverse=True)[1]
    scaler = StandardScaler().fit(X[:n])
    return scaler.transform(X[:n]), scaler.transform(X[n:]), y[:n], y[n:]


HEADER = [
    "code",
    "k",
    "columns",
    "model",
    "fit s",
    "fit MB",
    f"predict {N_TEST} rows s",
    "predict MB",
    "pickle MB",
    "error %",
    "log-loss",
]
TABLES = {
    "many-classes": (lambda: growth("one-vs-one"), HEADER),
    "random-codes": (lambda: growth("sparse-random"), HEADER),
    "class-trees": (trees, TREE_HEADER),
    "class-trees-sets": (sets, SETS_HEADER),
}

if __name__ == "__main__":
    model_name, code_name, *sizes = sys.argv[1:]
    print(json.dumps(measure(model_name, code_name, *map(int, sizes))))
