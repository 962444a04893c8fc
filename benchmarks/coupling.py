"""Rows per second of the coupling rules, compared with the usual implementations."""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from sklearn.svm import SVC

from benchmarks.libsvm_peer import libsvm_couple
from benchmarks.peers import printed_compiled, printed_numpy, square, wlw2_numpy
from benchmarks.timing import interleave
from experiments import datasets
from manyclass import CoupledClassifier, codes, couple

SIZES = {3: 400_000, 10: 100_000, 26: 20_000, 100: 1_600}
TOL = 1e-8


def svm_probabilities(name: str, n_train: int, n_test: int) -> tuple[np.ndarray, int]:
    """Calibrated pairwise probabilities (n_test, l) of RBF SVMs on real data."""
    data = datasets.load(name)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(data.y))
    train, test = rows[:n_train], rows[n_train : n_train + n_test]
    scale = data.X[train].std(axis=0)
    X = data.X / np.where(scale > 0, scale, 1)
    model = CoupledClassifier(SVC(C=10), scaling=None).fit(X[train], data.y[train])
    return model.calibration_.transform(model.bank_.scores(X[test])), len(model.classes_)


def delta2() -> list[list[str]]:
    """The second rule of Wu, Lin and Weng, compared with LIBSVM's C++ and one batched solve."""
    rows = []
    rng = np.random.default_rng(0)
    peers = {"numpy": wlw2_numpy}
    try:
        peers["LIBSVM"] = libsvm_couple()
    except OSError as error:
        print(f"delta2 without LIBSVM: {error}")
    for k, n in SIZES.items():
        r = rng.uniform(0.01, 0.99, (n, k * (k - 1) // 2))
        r_square = square(r, k)
        assert np.abs(couple(r_square) - wlw2_numpy(r_square)).max() < 1e-12
        tasks = {name: partial(peer, r_square) for name, peer in peers.items()}
        tasks |= {
            "condensed": partial(couple, r, "one-vs-one"),
            "square": partial(couple, r_square),
        }
        tasks["two threads"] = partial(couple, r, "one-vs-one", n_jobs=2)
        # The processor's time; for two threads, the sum of both.
        timings = interleave(tasks, clock=time.process_time)
        speed = {name: n / timing.median for name, timing in timings.items()}
        ratio = {
            (name, peer): f"{speed[name] / speed[peer]:.1f}x" if peer in speed else "-"
            for name in ("condensed", "square")
            for peer in ("LIBSVM", "numpy")
        }
        rows.append(
            [
                f"wlw2, k = {k}",
                f"{speed['LIBSVM']:,.0f}" if "LIBSVM" in speed else "-",
                f"{speed['numpy']:,.0f}",
                f"{speed['condensed']:,.0f}",
                ratio["condensed", "LIBSVM"],
                ratio["square", "LIBSVM"],
                ratio["condensed", "numpy"],
                f"{2 * speed['two threads'] / speed['condensed']:.2f}x",
                f"±{100 * max(t.spread for t in timings.values()):.0f} %",
            ]
        )
    return rows


def hastie_tibshirani() -> list[list[str]]:
    """Newton's method and the paper's iteration, on probabilities of real SVMs."""
    rows = []
    for name, n_train, n_test in [("digits", 898, 400), ("letter", 1500, 100)]:
        try:
            r, k = svm_probabilities(name, n_train, n_test)
        except (OSError, ValueError) as error:
            rows.append([f"ht, {name}: {error}"[:60], *["-"] * 6])
            continue
        many = np.tile(r, (20_000 // len(r), 1))
        p = np.empty((len(r), k))
        timings = interleave(
            {
                "numpy": partial(printed_numpy, square(r, k), TOL),
                "compiled": partial(printed_compiled, r, k, TOL, p),
                "newton": partial(couple, many, "one-vs-one", "ht"),
                "two threads": partial(couple, many, "one-vs-one", "ht", n_jobs=2),
            },
            rounds=3,
        )
        speed = {
            key: (len(r) if key in ("numpy", "compiled") else len(many)) / timing.median
            for key, timing in timings.items()
        }
        exact = couple(r, "one-vs-one", "ht")
        rows.append(
            [
                f"ht, k = {k} ({name} SVMs)",
                f"{speed['numpy']:,.0f}",
                f"{speed['compiled']:,.0f}",
                f"{speed['newton']:,.0f}",
                f"{speed['newton'] / speed['numpy']:,.0f}x",
                f"{speed['newton'] / speed['compiled']:,.0f}x",
                f"{timings['newton'].best / timings['two threads'].best:.2f}x",
                f"{np.abs(printed_compiled(r, k, TOL, p) - exact).max():.0e}",
            ]
        )
    return rows


def general_codes() -> list[list[str]]:
    """Rules for any code, on noisy probabilities of random classes."""
    rows = []
    rng = np.random.default_rng(0)
    for k in (10, 26):
        for name in ("one-vs-rest", "dense-random", "sparse-random"):
            code = codes.by_name(name, k, random_state=0)
            p = rng.dirichlet(np.full(k, 0.3), 2000)
            r = (p @ (code > 0)) / (p @ (code != 0))
            logits = np.log(np.clip(r, 1e-4, 1 - 1e-4) / (1 - np.clip(r, 1e-4, 1 - 1e-4)))
            r = 1 / (1 + np.exp(-logits - 0.5 * rng.standard_normal(r.shape)))
            timings = interleave(
                {
                    rule: partial(couple, r, code, rule)
                    for rule in ("kl", "least-squares", "noniterative")
                },
                rounds=3,
                clock=time.process_time,
            )
            speed = [f"{len(r) / timing.median:,.0f}" for timing in timings.values()]
            rows.append([f"{name}, k = {k}, {code.shape[1]} columns", *speed])
    return rows


TABLES = {
    "delta2": (
        delta2,
        [
            "rows per second",
            "LIBSVM's C++",
            "numpy.linalg.solve",
            "manyclass",
            "manyclass / LIBSVM",
            "the same, (n, k, k) input",
            "manyclass / numpy",
            "speed-up on two free cores",
            "spread",
        ],
    ),
    "hastie-tibshirani": (
        hastie_tibshirani,
        [
            "rows per second",
            "paper's iteration, numpy",
            "paper's iteration, compiled",
            "manyclass, Newton",
            "manyclass / numpy",
            "manyclass / compiled",
            "speed-up on two threads",
            "remaining error of the paper's iteration",
        ],
    ),
    "general-codes": (
        general_codes,
        ["rows per second", "kl", "least-squares", "noniterative"],
    ),
}
