"""C and gamma of support vector machines: CoupledSVCCV beside grid searches on the same grid."""

from __future__ import annotations

import sys
import time
import warnings

from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from benchmarks.quality.cases import Case
from benchmarks.svm_models import is_available
from manyclass import CoupledSVC, CoupledSVCCV

# Training rows: a random split of the training part, two thirds of it at most. The rest are the
# test rows; official test splits are not read.
SETS = {"segment": 1500, "satimage": 1500, "letter": 3000}
SEED = 20
CS = 0.1, 1.0, 10.0, 100.0, 1000.0
MULTIPLES = 0.1, 0.316, 1.0, 3.16, 10.0  # of "scale", which is 1 / d for standardised features
OURS, PROBABILITY, COUPLED = "CoupledSVCCV", "SVC(probability=True)", "CoupledSVC(cv=5)"


def searches(n_features: int) -> dict[str, object]:
    """Return the searches over the same grid."""
    gammas = [multiple / n_features for multiple in MULTIPLES]
    grid = {"C": CS, "gamma": gammas}
    folds = {"scoring": "neg_log_loss", "cv": 5}
    return {
        OURS: CoupledSVCCV(CS, gammas),
        PROBABILITY: GridSearchCV(SVC(probability=True, random_state=0), grid, **folds),
        COUPLED: GridSearchCV(CoupledSVC(cv=5), grid, **folds),
    }


def svm_search() -> list[list[str]]:
    """Measure the processor time and the test log-loss of the searches, one thread."""
    rows = []
    for name in SETS:
        if not is_available(name):
            rows.append([f"{name} (not available)", *["-"] * 9])
            continue
        X_train, X_test, y_train, y_test = Case(name, SEED, SETS[name]).parts()
        seconds, losses = {}, {}
        for key, search in searches(X_train.shape[1]).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # SVC(probability=True) is deprecated
                if key == OURS:  # the first fit compiles
                    search.fit(X_train[::5], y_train[::5])
                start = time.process_time()
                search.fit(X_train, y_train)
                seconds[key] = time.process_time() - start
                losses[key] = log_loss(y_test, search.predict_proba(X_test))
            print(f"    {name} {key}: {seconds[key]:.2f} s", file=sys.stderr, flush=True)
        rows.append(
            [
                f"{name} ({len(y_train)}, {len(set(y_train))} classes)",
                *(f"{seconds[key]:.2f}" for key in seconds),
                *(f"{seconds[key] / seconds[OURS]:.1f}" for key in (PROBABILITY, COUPLED)),
                *(f"{losses[key]:.4f}" for key in losses),
                f"{losses[OURS] / losses[COUPLED]:.3f}",
            ]
        )
    return rows


TABLES = {
    "svm-search": (
        svm_search,
        [
            "5 x 5 grid of C and gamma (training rows)",
            f"{OURS} s",
            f"GridSearchCV({PROBABILITY}) s",
            f"GridSearchCV({COUPLED}) s",
            "/ ours",
            "/ ours",
            "log-loss, ours",
            PROBABILITY,
            COUPLED,
            f"ours / {COUPLED}",
        ],
    ),
}
