"""Reliability diagrams before and after moving to CoupledSVC, on random splits of training parts.

    python -m benchmarks.reliability

Writes ``docs/figures/svm-reliability.png``.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss

from benchmarks.quality.cases import Case
from benchmarks.svm_models import OURS, PROBABILITY, SIGMOID, models

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "svm-reliability.png"
DATA = ("letter", "pendigits", "satimage")
SHOWN = (PROBABILITY, SIGMOID, OURS)
ROWS = 3000


def curve(y: np.ndarray, p: np.ndarray, classes: np.ndarray, n_bins: int = 12):
    """Return the mean predicted and observed frequency over all classes, in bins of the logit."""
    said = np.clip(p.ravel(), 1e-6, 1 - 1e-6)
    came = (y[:, None] == classes).ravel()
    logit = np.log(said / (1 - said))
    inside = said > 0.005  # otherwise the many tiny probabilities would fill every bin
    edges = np.quantile(logit[inside], np.linspace(0, 1, n_bins + 1))
    bins = np.clip(np.searchsorted(edges, logit[inside], side="right") - 1, 0, n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    mean = np.bincount(bins, said[inside], minlength=n_bins) / count
    return mean, np.bincount(bins, came[inside], minlength=n_bins) / count


def main() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(DATA), figsize=(11, 4.9), layout="constrained")
    for axis, name in zip(axes, DATA, strict=True):
        X_train, X_test, y_train, y_test = Case(name, 42, ROWS).parts()
        axis.plot([0, 1], [0, 1], color="0.7", lw=1)
        for key in SHOWN:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = clone(models()[key]).fit(X_train, y_train)
            p = fitted.predict_proba(X_test)
            said, came = curve(y_test, p, fitted.classes_)
            loss = log_loss(y_test, p, labels=fitted.classes_)
            axis.plot(said, came, "o-", ms=4, label=f"{key}: {loss:.3f}")
        axis.set(title=name, xlabel="predicted probability", xlim=(0, 1), ylim=(0, 1))
        axis.legend(
            title="log-loss",
            fontsize=8,
            title_fontsize=8,
            loc="upper center",
            bbox_to_anchor=(0.5, -0.16),
        )
    axes[0].set_ylabel("observed frequency")
    figure.savefig(FIGURE, dpi=110)


if __name__ == "__main__":
    main()
