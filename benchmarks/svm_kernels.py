"""Log-loss of CoupledSVC with linear and polynomial kernels, whose margins have long tails."""

from __future__ import annotations

import sys
import warnings
from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss

from benchmarks.quality.cases import SHARED, Case, Parts
from benchmarks.svm_models import OURS, PEERS, is_available, models
from manyclass import CoupledSVC

SETS = [name for name in SHARED if name not in ("letter", "mnist")]
"""Linear machines are slow on letter, and mnist5k is a part of mnist."""
ROWS, SEEDS = 1000, (40, 41)
KERNELS, PENALTIES = ("linear", "poly"), (1.0, 10.0)
ROBUST = "CoupledSVC, robust-sigmoid"

Losses = dict[str, float]
"""Log-losses on one split, by the names of the models."""


def losses_on(parts: Parts, candidates: dict[str, object]) -> Losses:
    """Return the log-loss of each model; NaN if it cannot be fitted."""
    X_train, X_test, y_train, y_test = parts
    losses = {}
    for key, model in candidates.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecations in scikit-learn
                fitted = clone(model).fit(X_train, y_train)
        except ValueError:  # CalibratedClassifierCV on classes rarer than its folds
            losses[key] = np.nan
            continue
        losses[key] = log_loss(y_test, fitted.predict_proba(X_test), labels=fitted.classes_)
    return losses


def summary(label: str, losses: list[tuple[str, Losses]], ours: str) -> list[str]:
    """Return a row of the table: geometric means over named splits, and our worst set."""
    ratios = [[np.log(loss[ours] / loss[key]) for _, loss in losses] for key in PEERS]
    to_best = {}
    for name in SETS:
        of_set = [loss for known, loss in losses if known == name]
        means = {
            key: np.exp(np.mean([np.log(loss[key]) for loss in of_set])) for key in (ours, *PEERS)
        }
        to_best[name] = means[ours] / np.nanmin([means[key] for key in PEERS])
    worst = max(to_best, key=to_best.__getitem__)
    means = [f"{np.exp(np.nanmean(of_peer)):.2f}" for of_peer in ratios]
    row = [label, *means, f"{to_best[worst]:.2f} ({worst})"]
    print("   ", row, file=sys.stderr, flush=True)
    return row


def quality_by_kernel() -> list[list[str]]:
    """Measure both sigmoids on random splits of training parts, with standardised features."""
    rows = []
    splits = [
        (name, Case(name, seed, ROWS).parts())
        for name in SETS
        if is_available(name)
        for seed in SEEDS
    ]
    for kernel, C in product(KERNELS, PENALTIES):
        params = {"C": C, "gamma": "scale", "kernel": kernel}
        candidates = models(params) | {ROBUST: CoupledSVC(**params, calibration="robust-sigmoid")}
        losses = [(name, losses_on(parts, candidates)) for name, parts in splits]
        for ours, sigmoid in ((OURS, "sigmoid"), (ROBUST, "robust-sigmoid")):
            rows.append(summary(f"{kernel}, C = {C:g}, {sigmoid}", losses, ours))
    return rows


TABLES = {
    "svm-kernels": (
        quality_by_kernel,
        ["kernel: geometric mean of ours / theirs", *PEERS, "worst set, ours / best"],
    ),
}
