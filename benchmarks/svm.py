"""CoupledSVC next to what people use today: same C and gamma, same split, one thread."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from benchmarks.timing import interleave
from manyclass import CoupledSVC, datasets

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
PARAMS = {"C": 10.0, "gamma": "scale"}
PROBABILITY, SIGMOID = "SVC(probability=True)", "CalibratedClassifierCV, sigmoid"
TEMPERATURE, OURS = "CalibratedClassifierCV, temperature", "CoupledSVC"
PEERS = (PROBABILITY, SIGMOID, TEMPERATURE)


def models() -> dict[str, object]:
    """Peers with probabilities, and ours."""
    svc = SVC(**PARAMS)
    return {
        PROBABILITY: SVC(**PARAMS, probability=True, random_state=0),
        SIGMOID: CalibratedClassifierCV(svc, ensemble=False),
        TEMPERATURE: CalibratedClassifierCV(svc, ensemble=False, method="temperature"),
        OURS: CoupledSVC(**PARAMS),
    }


def split(name: str) -> tuple[np.ndarray, ...]:
    """The origin's train and test part, or halves; inputs as an SVM wants them."""
    data = datasets.load(name)
    if name == "segment":  # its own training part has 210 rows: take halves
        data = datasets.Dataset(**{**vars(data), "split": None})
    X_train, X_test, y_train, y_test = data.train_test(random_state=0)
    if name == "soybean":
        encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        X_train = encoder.fit_transform(np.nan_to_num(X_train, nan=-1))
        X_test = encoder.transform(np.nan_to_num(X_test, nan=-1))
    elif name == "segment":  # features of different units
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return X_train, X_test, y_train, y_test


def quality() -> list[list[str]]:
    """Log-loss and Brier score on every set, and the geometric means of the ratios."""
    rows, losses, briers = [], [], []
    for name in SETS:
        X_train, X_test, y_train, y_test = split(name)
        loss, brier, labels = {}, {}, {}
        for key, model in models().items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # deprecations of the peers
                    fitted = clone(model).fit(X_train, y_train)
            except ValueError:  # CalibratedClassifierCV on classes rarer than its folds
                loss[key] = brier[key] = np.nan
                continue
            p = fitted.predict_proba(X_test)
            loss[key] = log_loss(y_test, p, labels=fitted.classes_)
            brier[key] = brier_score_loss(y_test, p, labels=fitted.classes_)
            labels[key] = fitted.predict(X_test)
        plain = SVC(**PARAMS).fit(X_train, y_train).predict(X_test)
        ours = labels[OURS]
        losses.append(loss)
        briers.append(brier)
        rows.append(
            [
                f"{name} ({len(y_train)}, {len(set(y_train))} classes)",
                *(f"{loss[key]:.3f}" for key in (*PEERS, OURS)),
                f"{loss[OURS] / np.nanmin([loss[key] for key in PEERS]):.2f}",
                f"{brier[OURS] / np.nanmin([brier[key] for key in PEERS]):.2f}",
                f"{100 * np.mean(plain != y_test):.2f} %",
                f"{100 * np.mean(ours != y_test):.2f} %",
                f"{100 * np.mean(ours != plain):.2f} %",
            ]
        )
        print("   ", rows[-1], file=sys.stderr, flush=True)
    means = {
        key: np.exp(np.nanmean([np.log(loss[OURS] / loss[key]) for loss in losses]))
        for key in PEERS
    }
    rows.append(
        [
            "geometric mean of ours / theirs",
            *(f"{means[key]:.2f}" for key in PEERS),
            "1",
            *[""] * 5,
        ]
    )
    return rows


def peak_memory(expression: str) -> float:
    """MB that fitting on letter adds at its peak, in a process of its own."""
    code = (
        "import resource, warnings; warnings.simplefilter('ignore')\n"
        "from sklearn.svm import SVC; from manyclass import CoupledSVC, datasets\n"
        "X, _, y, _ = datasets.load('letter').train_test()\n"
        f"model = {expression}\n"
        "model.fit(X[:500], y[:500])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "model.fit(X, y)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, before)\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return sum(float(part) for part in answer.stdout.split()[-2:]) / 1024


def letter() -> list[list[str]]:
    """Times on letter: 16000 to fit, 4000 to predict."""
    X_train, X_test, y_train, _ = split("letter")
    candidates = {"SVC (labels only)": SVC(**PARAMS)} | models()
    candidates["OneVsOneClassifier(SVC)"] = OneVsOneClassifier(SVC(**PARAMS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {key: clone(model).fit(X_train, y_train) for key, model in candidates.items()}
        fits = interleave(
            {
                key: lambda model=model: clone(model).fit(X_train, y_train)
                for key, model in candidates.items()
            },
            rounds=3,
            warm_up=False,
        )
    asked = {
        key: model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
        for key, model in fitted.items()
    }
    predictions = interleave(
        {key: lambda ask=ask: ask(X_test) for key, ask in asked.items()}, rounds=3, warm_up=False
    )
    rows = []
    for key in candidates:
        rows.append(
            [
                key,
                f"{fits[key].median:.2f}",
                f"{fits[OURS].median / fits[key].median:.2f}",
                f"{predictions[key].median:.3f}",
                f"{predictions[key].median / predictions[OURS].median:.1f}",
            ]
        )
    svc, ours = (
        peak_memory(f"{name}(C={PARAMS['C']}, gamma='scale')") for name in ("SVC", "CoupledSVC")
    )
    rows.append([f"peak memory of fit: SVC {svc:.0f} MB, ours {ours / svc:.2f} of it", *[""] * 4])
    return rows


TABLES = {
    "svm-letter": (
        letter,
        [
            "letter, 16000 + 4000 rows",
            "fit s",
            "ours / theirs",
            "predict s",
            "theirs / ours",
        ],
    ),
    "svm-quality": (
        quality,
        [
            "log-loss",
            *PEERS,
            OURS,
            "ours / best",
            "Brier, ours / best",
            "SVC error",
            "our error",
            "labels differ",
        ],
    ),
}
