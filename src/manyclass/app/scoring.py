"""The metrics of a comparison, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import quoted
from manyclass.metrics import classwise_calibration_error
from manyclass.search.left_out_scoring import neg_brier_score


@dataclass(frozen=True)
class Metric:
    """A function of true classes 0..k-1 and probabilities, and how to read its value."""

    name: str
    function: Callable[[Places, Floats], float]
    larger_is_better: bool = False
    in_percent: bool = False

    def __call__(self, y: Places, p: Floats) -> float:  # noqa: D102
        return float(self.function(y, p))

    @property
    def sign(self) -> int:
        """The factor that makes smaller values better: 1 or -1."""
        return -1 if self.larger_is_better else 1


def _mean_auc(y: Places, p: Floats) -> float:
    """Return the mean area under the curve of each class against the rest, if it has both."""
    split = [c for c in range(p.shape[1]) if 0 < np.count_nonzero(y == c) < len(y)]
    return float(np.mean([roc_auc_score(y == c, p[:, c]) for c in split])) if split else np.nan


def _classes(p: Floats) -> Places:
    return np.arange(p.shape[1])


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("log-loss", lambda y, p: log_loss(y, p, labels=_classes(p))),
        # scikit-learn takes more than two classes from 1.7 on only.
        Metric("Brier", lambda y, p: -neg_brier_score(y, p, None)),
        Metric("error", lambda y, p: np.mean(p.argmax(axis=1) != y), in_percent=True),
        Metric("calibration", lambda y, p: classwise_calibration_error(y, p, classes=_classes(p))),
        Metric("accuracy", lambda y, p: np.mean(p.argmax(axis=1) == y), True, in_percent=True),
        Metric("f1_macro", lambda y, p: f1_score(y, p.argmax(axis=1), average="macro"), True),
        Metric("roc_auc_ovr", _mean_auc, True),
    )
}
"""Metrics by the names of their columns."""

FIT, PREDICT = "fit s", "predict s"
"""Columns of seconds."""
USUAL = ("log-loss", "Brier", "error", "calibration")


def find(name: str) -> str:
    """Return the name of a metric: ``log_loss`` and ``brier`` are accepted, too."""
    known = {_plain(key): key for key in METRICS}
    if not isinstance(name, str) or _plain(name) not in known:
        raise ValueError(f"metrics must be some of {', '.join(METRICS)}, got {quoted(name)}.")
    return known[_plain(name)]


def find_all(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of metrics, each once."""
    found = tuple(dict.fromkeys(map(find, [names] if isinstance(names, str) else names)))
    if not found:
        raise ValueError(f"metrics must be some of {', '.join(METRICS)}, got none.")
    return found


def ranked_by(name: str | None) -> tuple[str, ...]:
    """Return the usual metrics, with this one first. Accuracy replaces the error."""
    if name is None:
        return USUAL
    first = find(name)
    return (first, *(m for m in USUAL if m != first and {m, first} != {"error", "accuracy"}))


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
