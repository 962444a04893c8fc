"""One task for every data set and split: all learners, codes, rules and models of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC

from experiments.hastie1998.tools import measured
from experiments.runner import Row, Task
from experiments.summary.machines import BASES, FOLDS, Answer, Machines, timed
from experiments.summary.methods import (
    CALIBRATED,
    CODES,
    LEARNERS,
    MULTINOMIAL,
    SVC_PROBABILITY,
    Method,
    machines_name,
)
from experiments.summary.samples import Part, draw

METRICS = ("log-loss", "brier", "error")
FITTING, LEARNING, COMBINING = "fit seconds", "learning seconds", "combining seconds"
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"data": ["iris", "wine", "digits"], "repeats": 1, "rows of each part at most": 300},
    "paper": {
        "data": [
            "digits",
            "satimage",
            "segment",
            "letter",
            "pendigits",
            "usps",
            "dna",
            "waveform",
            "soybean",
            "mnist5k",
        ],
        "repeats": 5,
        "rows of each part at most": 1000,
    },
}


def tasks(scale: str) -> list[Task]:
    """Return one task for every data set and split."""
    size = SCALES[scale]
    limit = size["rows of each part at most"]
    return [
        Task(name, str(repeat), "all", measure, (name, repeat, limit))
        for repeat in range(1, size["repeats"] + 1)
        for name in size["data"]
    ]


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SCALES[scale],
        "learners": {key: repr(base) for key, base in BASES.items()},
        "codes": list(CODES),
        "splits": "stratified, the repeat being the seed, as it is of the sparse random code; a "
        "set of too few rows is cut in halves",
        "inputs": "of logistic regression: standardised; of support vector machines: standardised "
        "where features have different units (segment, wine), else as they are; categories "
        "(soybean) as indicators, a missing value being a category",
        "seconds": "of the processor, one thread",
        "out-of-sample scores": "of support vector machines: analytic leave-one-out; of logistic "
        f"regression: {FOLDS} folds",
    }


def measure(name: str, repeat: int, limit: int) -> Iterator[Row]:
    """Yield the metrics of every method and of scikit-learn's models on one split."""
    load_kernels()
    train, test = draw(name, repeat, limit)
    yield Row("data", "training rows", float(len(train.y)))
    yield Row("data", "test rows", float(len(test.y)))
    yield Row("data", "classes", float(train.y.max() + 1))
    for learner in LEARNERS:
        for code in CODES:
            machines = Machines(learner, code, train, test, repeat)
            yield Row(machines_name(learner, code), FITTING, machines.seconds)
            for answer in machines.answers():
                method = Method(learner, code, answer.rule, answer.tempered)
                yield from judge(method.name, answer, test.y)
        yield from measure_peers(learner, train, test)


@cache
def load_kernels() -> None:
    """Use compiled code once, so that loading it counts for no method."""
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
    part = Part({"svc": X}, y)
    for code in CODES:
        list(Machines("svc", code, part, part, 0).answers())


def judge(method: str, answer: Answer, y) -> Iterator[Row]:
    """Yield the metrics and times of an answer."""
    yield Row(method, LEARNING, answer.learning)
    yield Row(method, COMBINING, answer.combining)
    if not answer.probabilities:
        yield Row(method, "error", float(np.mean(answer.values.argmax(axis=1) != y)))
        return
    yield from probability_rows(method, y, answer.values)


def probability_rows(method: str, y, p) -> Iterator[Row]:
    """Yield the metrics of class probabilities."""
    yield from (row for row in measured(method, y, p) if row.metric in METRICS)


def measure_peers(learner: str, train: Part, test: Part) -> Iterator[Row]:
    """Yield the metrics of scikit-learn's models with the learner."""
    for name, model in _peers(learner, train.y).items():
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*probability", FutureWarning)
            _, seconds = timed(partial(model.fit, train.inputs[learner], train.y))
        yield Row(name, FITTING, seconds)
        yield from probability_rows(name, test.y, model.predict_proba(test.inputs[learner]))


def _peers(learner: str, y) -> dict[str, Any]:
    base = clone(BASES[learner])
    if learner == "logistic":
        return {MULTINOMIAL: base}
    folds = int(min(FOLDS, np.bincount(y).min()))  # more are refused
    peers = {CALIBRATED: CalibratedClassifierCV(base, ensemble=False, cv=folds)}
    if "probability" in base.get_params():  # it leaves scikit-learn with 1.11
        peers[SVC_PROBABILITY] = SVC(
            **{**base.get_params(), "probability": True, "random_state": 0}
        )
    return peers
