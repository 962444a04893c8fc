"""The candidates of ``manyclass compare``: coupled classifiers and others of scikit-learn."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.messages import quoted
from manyclass.learners import KernelLogisticRegression

KERNEL_ROWS = 20_000
"""The most training rows of a kernel machine, whose cost grows with their square. A choice: a fit
of so many rows takes minutes."""
MOST_CLASSES = 30
"""The most classes for candidates that fit models for each class or pair. A choice: 435 pairs."""


class Size(NamedTuple):
    """The size of the data, which determines the cost of a candidate."""

    rows: int
    classes: int
    rarest: int
    """Training rows of the rarest class in a fold."""


@dataclass(frozen=True)
class Candidate:
    """An unfitted classifier with ``predict_proba``, which takes part in a comparison.

    From more than ``most_rows`` training rows, each fold draws a sample stratified by class.
    """

    name: str
    estimator: Any
    most_rows: int | None = None


class _Known(NamedTuple):
    build: Callable[[Size], Any]
    most_rows: int | None = None
    """The most rows to train on."""
    up_to_rows: int | None = None
    """With more rows, the candidate is not among the defaults."""
    classes: tuple[int, float] = (2, float("inf"))
    """With fewer or more classes, the candidate is not among the defaults."""
    quick: bool = False
    by_default: bool = True


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def _coupled_boosting(size: Size) -> CoupledClassifier:
    return CoupledClassifier(
        HistGradientBoostingClassifier(max_iter=50), code="one-vs-rest", combiner="kl", cv=3
    )


def _calibrated_svc(size: Size) -> CalibratedClassifierCV:
    # Every class must have a row for each of its folds.
    return CalibratedClassifierCV(SVC(C=10), ensemble=False, cv=min(5, max(2, size.rarest)))


# Kernel machines have the same C, so that probabilities are compared, not searches.
_KNOWN: dict[str, _Known] = {
    "coupled-svc": _Known(lambda size: CoupledSVC(C=10), most_rows=KERNEL_ROWS, quick=True),
    "coupled-logistic": _Known(
        lambda size: CoupledClassifier(_logistic()), classes=(2, MOST_CLASSES), quick=True
    ),
    "coupled-logistic-rest": _Known(
        lambda size: CoupledClassifier(_logistic(), code="one-vs-rest", combiner="kl"),
        classes=(3, float("inf")),
    ),
    "coupled-logistic-sparse": _Known(
        lambda size: CoupledClassifier(_logistic(), code="sparse-random", combiner="kl"),
        by_default=False,
    ),
    "coupled-kernel-logistic": _Known(
        lambda size: CoupledClassifier(KernelLogisticRegression(C=10), cv="loo"), up_to_rows=5_000
    ),
    "coupled-boosting": _Known(_coupled_boosting, classes=(2, MOST_CLASSES)),
    "logistic": _Known(lambda size: _logistic(), quick=True),
    "boosting": _Known(lambda size: HistGradientBoostingClassifier()),
    "forest": _Known(lambda size: RandomForestClassifier(), quick=True),
    "calibrated-svc": _Known(_calibrated_svc, most_rows=KERNEL_ROWS, quick=True),
}

NAMES = tuple(_KNOWN)


def choose(
    size: Size, *, quick: bool = False, only: Iterable[str] | None = None
) -> tuple[list[Candidate], list[str]]:
    """Choose the candidates for data of a size.

    ``quick`` chooses those that are fitted within seconds, and ``only`` these of ``NAMES``, at any
    cost. The notes say which candidates were left out, and why.
    """
    if only is not None:
        names = _check_names(only)
        notes = []
    else:
        wanted = [name for name, known in _KNOWN.items() if known.quick or not quick]
        wanted = [name for name in wanted if _KNOWN[name].by_default]
        reasons = {name: _left_out(_KNOWN[name], size) for name in wanted}
        names = [name for name in wanted if reasons[name] is None]
        notes = [f"{name} is left out: {reason}." for name, reason in reasons.items() if reason]
    chosen = [Candidate(name, _KNOWN[name].build(size), _KNOWN[name].most_rows) for name in names]
    return chosen, notes


def from_mapping(candidates: Mapping[str, Any] | Iterable[Candidate]) -> list[Candidate]:
    """Return candidates from a mapping of names to classifiers, or check a list of them."""
    if isinstance(candidates, Mapping):
        found = [Candidate(str(name), estimator) for name, estimator in candidates.items()]
    else:
        found = list(candidates)
    strangers = [c for c in found if not isinstance(c, Candidate)]
    if strangers:
        raise ValueError(
            f"candidates holds {strangers[0]!r}: pass a dictionary of names and classifiers, or "
            "a list of Candidate."
        )
    for candidate in found:
        if isinstance(candidate.estimator, type) or not hasattr(candidate.estimator, "get_params"):
            raise ValueError(
                f"candidate {candidate.name!r} is {candidate.estimator!r}: pass a scikit-learn "
                "classifier, not its class or anything else."
            )
    names = [candidate.name for candidate in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        problem = f"names {twice[0]!r} twice" if twice else "is empty"
        raise ValueError(f"candidates {problem}: pass classifiers with different names.")
    return found


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone in which every open ``random_state`` is set."""
    estimator = clone(estimator)
    open_seeds = {
        key: seed
        for key, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (key == "random_state" or key.endswith("__random_state"))
    }
    return estimator.set_params(**open_seeds)


def _left_out(known: _Known, size: Size) -> str | None:
    fewest, most = known.classes
    if size.classes > most:
        return f"it fits a model for each of many problems, too many for {size.classes} classes"
    if size.classes < fewest:
        return f"for {size.classes} classes all codes pose the same single problem"
    if known.up_to_rows is not None and size.rows > known.up_to_rows:
        return f"its cost grows with the cube of the rows, and {size.rows} are many"
    return None


def _check_names(only: Iterable[str]) -> list[str]:
    names = list(dict.fromkeys(only))
    if not names:
        raise ValueError(f"no candidate was named: choose from {', '.join(NAMES)}.")
    for name in names:
        if name not in _KNOWN:
            close = difflib.get_close_matches(name, NAMES, 1)
            meant = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"there is no candidate {quoted(name)}.{meant} Choose from {', '.join(NAMES)}."
            )
    return names
