"""Support vector machines with the same parameters: scikit-learn's probabilities, and ours."""

from __future__ import annotations

import sys

from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from experiments import datasets
from manyclass import CoupledSVC

PARAMS: dict[str, object] = {"C": 10.0, "gamma": "scale"}
PROBABILITY, SIGMOID = "SVC(probability=True)", "CalibratedClassifierCV, sigmoid"
TEMPERATURE, OURS = "CalibratedClassifierCV, temperature", "CoupledSVC"
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


def is_available(name: str) -> bool:
    """Whether a set can be read or fetched; if not, the reason is printed."""
    try:
        datasets.load(name)
    except (OSError, ValueError) as error:
        print(f"    without {name}: {error}", file=sys.stderr, flush=True)
        return False
    return True
