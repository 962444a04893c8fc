"""Times and memory of CoupledSVC and of scikit-learn's ways on letter, one thread."""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC

from benchmarks.svm_models import OURS, PARAMS, is_available, models
from benchmarks.timing import interleave
from experiments import datasets
from manyclass import CoupledSVC

LABELS_ONLY = "SVC (labels only)"


def peak_memory(expression: str) -> tuple[float, float]:
    """Fit on letter in another process; returns its peak memory and what the fit added, in MB."""
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.svm import SVC\n"
        "from experiments import datasets\n"
        "from manyclass import CoupledSVC\n"
        "from benchmarks.memory import rise_of, status\n"
        "X, _, y, _ = datasets.load('letter').train_test()\n"
        f"model = {expression}\n"
        "model.fit(X[:500], y[:500])\n"
        "added, _ = rise_of(lambda: model.fit(X, y))\n"
        "print(status('VmHWM'), added)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    peak, added = map(float, answer.stdout.split()[-2:])
    return peak, added


def letter() -> list[list[str]]:
    """Time fits on 16000 rows of letter and predictions of 4000 rows."""
    if not is_available("letter"):
        return [["letter (not available)", *["-"] * 7]]
    X_train, X_test, y_train, _ = datasets.load("letter").train_test()
    candidates = {LABELS_ONLY: SVC(**PARAMS)} | models()
    candidates["OneVsOneClassifier(SVC)"] = OneVsOneClassifier(SVC(**PARAMS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {key: clone(model).fit(X_train, y_train) for key, model in candidates.items()}
        fits = interleave(
            {
                key: lambda model=model: clone(model).fit(X_train, y_train)
                for key, model in candidates.items()
            },
            rounds=5,
            warm_up=False,
        )
    asked = {
        key: model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
        for key, model in fitted.items()
    }
    predictions = interleave(
        {key: lambda ask=ask: ask(X_test) for key, ask in asked.items()}, rounds=3, warm_up=False
    )
    alone = interleave({key: lambda ask=ask: ask(X_test[:1]) for key, ask in asked.items()}, 50)
    memory = memory_of_fits()
    rows = []
    for key in candidates:
        rows.append(
            [
                key,
                f"{fits[key].median:.2f}",
                f"{fits[OURS].median / fits[key].median:.2f}",
                f"{predictions[key].median:.3f}",
                f"{predictions[key].median / predictions[OURS].median:.1f}",
                f"{1000 * alone[key].median:.1f}",
                *memory.get(key, ["", ""]),
            ]
        )
    return rows


def threads() -> list[list[str]]:
    """Measure which part of a fit two threads share.

    While they work, the main thread waits, so its processor time is that of the rest.
    """
    rows = []
    for name, n in (("satimage", 3000), ("letter", 16_000)):
        if not is_available(name):
            rows.append([f"{name} (not available)", *["-"] * 5])
            continue
        X, _, y, _ = datasets.load(name).train_test()
        X, y = X[:n], y[:n]
        one, two = (clone(CoupledSVC(**PARAMS, n_jobs=n_jobs)) for n_jobs in (1, 2))
        one.fit(X, y)
        alone = interleave({"one": partial(one.fit, X, y)}, 3, clock=time.process_time)
        every, rest = [], []
        for _ in range(3):
            start, own = time.process_time(), time.thread_time()
            two.fit(X, y)
            every.append(time.process_time() - start)
            rest.append(time.thread_time() - own)
        both, serial = np.median(every), np.median(rest)
        same = np.array_equal(one.predict_proba(X[:500]), two.predict_proba(X[:500]))
        rows.append(
            [
                f"{name} ({n})",
                f"{alone['one'].median:.3f}",
                f"{both:.3f}",
                f"{1 - serial / both:.0%}",
                f"{alone['one'].median / (serial + (both - serial) / 2):.2f}x",
                "yes" if same else "no",
            ]
        )
    return rows


def memory_of_fits() -> dict[str, list[str]]:
    """Peak memory of a fit, and memory that it adds: SVC and CoupledSVC, by their rows."""
    svc, ours = (
        peak_memory(f"{name}(C={PARAMS['C']}, gamma='scale')") for name in ("SVC", "CoupledSVC")
    )
    return {
        LABELS_ONLY: [f"{svc[0]:.0f} MB", f"{svc[1]:.0f} MB"],
        OURS: [f"{ours[0] / svc[0]:.2f} x SVC's", f"{ours[1]:.0f} MB"],
    }


TABLES = {
    "svm-letter": (
        letter,
        [
            "letter, 16000 + 4000 rows",
            "fit s",
            "ours / theirs",
            "predict s",
            "theirs / ours",
            "one row ms",
            "peak memory of fit",
            "memory added by fit",
        ],
    ),
    "svm-threads": (
        threads,
        [
            "data (rows)",
            "one thread, s",
            "two threads, s",
            "shared",
            "speed-up if both cores are free",
            "same bits",
        ],
    ),
}
