"""Log-loss and Brier score of CoupledSVC and of scikit-learn's ways, with the same C and gamma."""

from __future__ import annotations

import sys
import warnings
from itertools import product
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from experiments import datasets
from manyclass import CoupledSVC

SETS = (
    "digits",
    "satimage",
    "segment",
    "letter",
    "pendigits",
    "usps",
    "dna",
    "waveform",
    "soybean",
)
PARAMS: dict[str, object] = {"C": 10.0, "gamma": "scale"}
PENALTIES = 1.0, 10.0, 100.0
ONE_HOT = "soybean", "dna"
KERNELS, KERNEL_PENALTIES = ("linear", "poly"), (1.0, 10.0)
HALVED, SEEDS = ("digits", "segment", "waveform", "soybean"), range(8)
SIZES, DRAWS = (500, 1500), range(3)
PROBABILITY, SIGMOID = "SVC(probability=True)", "CalibratedClassifierCV, sigmoid"
TEMPERATURE, OURS = "CalibratedClassifierCV, temperature", "CoupledSVC"
ROBUST = "CoupledSVC, robust-sigmoid"
PEERS = (PROBABILITY, SIGMOID, TEMPERATURE)


def models(params: dict[str, object] = PARAMS) -> dict[str, object]:
    """Return scikit-learn's ways to get probabilities, and ours."""
    svc = SVC(**params)
    return {
        PROBABILITY: SVC(**params, probability=True, random_state=0),
        SIGMOID: CalibratedClassifierCV(svc, ensemble=False),
        TEMPERATURE: CalibratedClassifierCV(svc, ensemble=False, method="temperature"),
        OURS: CoupledSVC(**params),
    }


def split(name: str, seed: int | None = None) -> tuple[np.ndarray, ...]:
    """Return the official train and test split, or random halves, with inputs ready for an SVM."""
    data = datasets.load(name)
    if name == "segment" or seed is not None:  # its official training split has only 210 rows
        data = datasets.Dataset(**{**vars(data), "split": None})
    X_train, X_test, y_train, y_test = data.train_test(random_state=seed or 0)
    if name == "soybean":
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        X_train = encoder.fit_transform(np.nan_to_num(X_train, nan=-1))
        X_test = encoder.transform(np.nan_to_num(X_test, nan=-1))
    parts = X_train, X_test, y_train, y_test
    return standardised(parts) if name == "segment" else parts  # its features have different units


def is_available(name: str) -> bool:
    """Whether a set can be read or fetched; if not, the reason is printed."""
    try:
        datasets.load(name)
    except (OSError, ValueError) as error:
        print(f"    without {name}: {error}", file=sys.stderr, flush=True)
        return False
    return True


class Measured(NamedTuple):
    """Results on one data set, by the names of the models."""

    loss: dict[str, float]
    brier: dict[str, float]
    labels: dict[str, np.ndarray]


def measure(parts: tuple[np.ndarray, ...], candidates: dict[str, object]) -> Measured:
    """Return log-loss, Brier score and labels on a test split; NaN if a model cannot be fitted."""
    X_train, X_test, y_train, y_test = parts
    loss, brier, labels = {}, {}, {}
    for key, model in candidates.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations in scikit-learn
                fitted = clone(model).fit(X_train, y_train)
        except ValueError:  # CalibratedClassifierCV on classes rarer than its folds
            loss[key] = brier[key] = np.nan
            continue
        p = fitted.predict_proba(X_test)
        loss[key] = log_loss(y_test, p, labels=fitted.classes_)
        brier[key] = brier_score_loss(y_test, p, labels=fitted.classes_)
        labels[key] = fitted.predict(X_test)
    return Measured(loss, brier, labels)


def to_best(values: dict[str, float], ours: str = OURS) -> float:
    """Return ours divided by the best of the others."""
    return values[ours] / np.nanmin([values[key] for key in PEERS])


def means(losses: list[dict[str, float]], ours: str = OURS) -> list[str]:
    """Return geometric means of ours divided by each of the others."""
    ratios = [[np.log(loss[ours] / loss[key]) for loss in losses] for key in PEERS]
    return [f"{np.exp(np.nanmean(of_peer)):.2f}" for of_peer in ratios]


def summary(label: str, losses: list[tuple[str, dict[str, float]]], ours: str = OURS) -> list[str]:
    """Return a row of a table: geometric means over named sets, and our worst set."""
    worst, name = max((to_best(loss, ours), name) for name, loss in losses)
    row = [label, *means([loss for _, loss in losses], ours), f"{worst:.2f} ({name})"]
    print("   ", row, file=sys.stderr, flush=True)
    return row


def quality() -> list[list[str]]:
    """Measure log-loss and Brier score on every available set; the last row has geometric means."""
    rows, losses = [], []
    for name in SETS:
        if not is_available(name):
            rows.append([f"{name} (not available)", *["-"] * 9])
            continue
        parts = X_train, X_test, y_train, y_test = split(name)
        loss, brier, labels = measure(parts, models())
        plain = SVC(**PARAMS).fit(X_train, y_train).predict(X_test)
        ours = labels[OURS]
        losses.append(loss)
        rows.append(
            [
                f"{name} ({len(y_train)}, {len(set(y_train))} classes)",
                *(f"{loss[key]:.3f}" for key in (OURS, *PEERS)),
                f"{to_best(loss):.2f}",
                f"{to_best(brier):.2f}",
                f"{100 * np.mean(plain != y_test):.2f} %",
                f"{100 * np.mean(ours != y_test):.2f} %",
                f"{100 * np.mean(ours != plain):.2f} %",
            ]
        )
        print("   ", rows[-1], file=sys.stderr, flush=True)
    return [*rows, ["geometric mean of ours / theirs", "1", *means(losses), *[""] * 5]]


def quality_by_penalty() -> list[list[str]]:
    """Measure geometric means over the same sets for other C, with and without scaling."""
    rows = []
    parts = {name: split(name) for name in SETS if is_available(name)}
    scaled = {name: standardised(of_set) for name, of_set in parts.items()}
    for (inputs, of_sets), C in product((("", parts), (", standardised", scaled)), PENALTIES):
        candidates = models({**PARAMS, "C": C})
        losses = [(name, measure(of_set, candidates).loss) for name, of_set in of_sets.items()]
        rows.append(summary(f"{C:g}{inputs}", losses))
    return rows


def quality_by_size() -> list[list[str]]:
    """Measure geometric means over the same sets with fewer training rows, drawn several times."""
    rows = []
    parts = {name: split(name) for name in SETS if is_available(name)}
    for size in SIZES:
        losses = [
            (name, measure(at_most(size, of_set, draw), models()).loss)
            for name, of_set in parts.items()
            for draw in DRAWS
        ]
        rows.append(summary(f"at most {size}", losses))
    return rows


def at_most(size: int, parts: tuple[np.ndarray, ...], seed: int) -> tuple[np.ndarray, ...]:
    """Return the split with at most ``size`` training rows, stratified."""
    X_train, X_test, y_train, y_test = parts
    if len(y_train) > size:
        X_train, _, y_train, _ = train_test_split(
            X_train, y_train, train_size=size, stratify=y_train, random_state=seed
        )
    return X_train, X_test, y_train, y_test


def quality_by_split() -> list[list[str]]:
    """Measure geometric means over random halves of small sets, and the worst half."""
    rows = []
    for name in filter(is_available, HALVED):
        losses = [measure(split(name, seed), models()).loss for seed in SEEDS]
        ratios = [loss[OURS] / loss[PROBABILITY] for loss in losses]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append([name, *means(losses), spread, f"{max(map(to_best, losses)):.2f}"])
        print("   ", rows[-1], file=sys.stderr, flush=True)
    return rows


def quality_by_kernel() -> list[list[str]]:
    """Measure kernels whose margins have long tails, with both sigmoids.

    Features are standardised, except one-hot ones. letter is left out, because linear
    machines are slow there.
    """
    rows = []
    parts = {name: split(name) for name in SETS if name != "letter" and is_available(name)}
    for name in parts.keys() - {*ONE_HOT}:
        parts[name] = standardised(parts[name])
    for kernel, C in product(KERNELS, KERNEL_PENALTIES):
        params = {**PARAMS, "kernel": kernel, "C": C}
        candidates = models(params) | {ROBUST: CoupledSVC(**params, calibration="robust-sigmoid")}
        losses = [(name, measure(of_set, candidates).loss) for name, of_set in parts.items()]
        for ours, sigmoid in ((OURS, "sigmoid"), (ROBUST, "robust-sigmoid")):
            rows.append(summary(f"{kernel}, C = {C:g}, {sigmoid}", losses, ours))
    return rows


def standardised(parts: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Return the split with standardised features."""
    X_train, X_test, y_train, y_test = parts
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


TABLES = {
    "svm-quality": (
        quality,
        [
            "log-loss (training rows)",
            OURS,
            *PEERS,
            "ours / best",
            "Brier, ours / best",
            "SVC error",
            "our error",
            "labels differ",
        ],
    ),
    "svm-quality-by-penalty": (
        quality_by_penalty,
        ["C: geometric mean of ours / theirs", *PEERS, "worst set, ours / best"],
    ),
    "svm-quality-by-size": (
        quality_by_size,
        ["training rows: geometric mean of ours / theirs", *PEERS, "worst draw, ours / best"],
    ),
    "svm-quality-by-kernel": (
        quality_by_kernel,
        ["kernel: geometric mean of ours / theirs", *PEERS, "worst set, ours / best"],
    ),
    "svm-quality-by-split": (
        quality_by_split,
        [
            "8 random halves: geometric mean of ours / theirs",
            *PEERS,
            f"{PROBABILITY}, lowest to highest",
            "worst half, ours / best",
        ],
    ),
}
