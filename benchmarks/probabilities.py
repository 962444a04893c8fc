"""Quality of the probabilities on real data, with the same base learner for all methods."""

from __future__ import annotations

import warnings

from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.comparison import compare
from experiments import datasets
from manyclass import CoupledClassifier

DATA = ("digits", "satimage")


def models() -> dict[str, object]:
    """Return other methods and ours, grouped by base learner."""
    logistic, svm = LogisticRegression(max_iter=1000), SVC(C=10)
    linear = LinearSVC()
    return {
        "LogisticRegression: OneVsRestClassifier": OneVsRestClassifier(logistic),
        "LogisticRegression: multinomial": logistic,
        "LogisticRegression: CoupledClassifier": CoupledClassifier(logistic),
        "LogisticRegression: CoupledClassifier, one-vs-rest, kl": CoupledClassifier(
            logistic, code="one-vs-rest", combiner="kl"
        ),
        "LinearSVC: CalibratedClassifierCV(ensemble=False)": CalibratedClassifierCV(
            linear, ensemble=False
        ),
        "LinearSVC: CoupledClassifier": CoupledClassifier(linear),
        "SVC: CalibratedClassifierCV(ensemble=False)": CalibratedClassifierCV(svm, ensemble=False),
        "SVC: CoupledClassifier": CoupledClassifier(svm),
    }


def quality() -> list[list[str]]:
    """Return one row per data set and model."""
    rows = []
    for name in DATA:
        X_train, X_test, y_train, y_test = datasets.load(name).train_test(random_state=0)
        scaler = StandardScaler().fit(X_train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # lbfgs, in all methods
            for score in compare(
                models(), scaler.transform(X_train), scaler.transform(X_test), y_train, y_test
            ):
                rows.append(
                    [
                        f"{name}: {score.name}",
                        f"{score.log_loss:.3f}",
                        f"{score.brier:.4f}",
                        f"{100 * score.error:.1f} %",
                    ]
                )
    return rows


TABLES = {"quality": (quality, ["data: learner: method", "log-loss", "Brier", "error"])}
