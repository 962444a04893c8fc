"""The candidates of ``manyclass compare``: coupled classifiers and others.

The same learner has the same settings in all of its candidates: alone, calibrated and coupled.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.messages import meant, quoted
from manyclass.app.arguments import BASELINE, CANDIDATES, CLASS_TREES
from manyclass.learners import KernelLogisticRegression


class WithPlaces(ClassifierMixin, BaseEstimator):
    """A classifier that takes the labels 0, 1, ... only, for labels of any kind."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X, y):
        """Fit a clone to the places of the labels among the classes."""
        self.classes_, places = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, places)
        return self

    def predict_proba(self, X):
        """Return the probabilities of the classes."""
        return self.estimator_.predict_proba(X)

    def predict(self, X):
        """Return the most probable classes."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@dataclass(frozen=True)
class CandidateLimits:
    """Largest data for which candidates are used. All are choices: minutes, and a gigabyte."""

    kernel_rows: int = 20_000
    """The most training rows of a kernel machine, whose cost grows with their square."""
    pairs: int = 30
    """The most classes for candidates that fit many models to each class or pair."""
    classes: int = 100
    """The most classes for candidates whose trees or machines grow with the classes."""
    many: int = 50
    """With at least this many classes, class trees are candidates: one-vs-one has 1,225 models."""


LIMITS = CandidateLimits()


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
    work: float = 1.0
    """Expected time relative to other candidates, for the progress bar."""

    @property
    def is_simple(self) -> bool:
        """Whether it is the baseline or a single linear model."""
        return isinstance(self.estimator, DummyClassifier | LogisticRegression)


class _Known(NamedTuple):
    build: Callable[[Size], Any]
    work: float = 1.0
    most_rows: int | None = None
    """The most rows to train on."""
    up_to_rows: int | None = None
    """With more rows, the candidate is not among the defaults."""
    classes: tuple[int, float] = (2, float("inf"))
    """With fewer or more classes, the candidate is not among the defaults."""
    quick: bool = False
    by_default: bool = True
    needs: str | None = None
    """A package; without it, the candidate is not among the defaults."""


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=1000)


def _coupled(build: Callable[[], Any], **options: Any) -> Callable[[Size], CoupledClassifier]:
    return lambda size: CoupledClassifier(build(), **options)


def _alone(build: Callable[[], Any]) -> Callable[[Size], Any]:
    return lambda size: build()


def _calibrated_svc(size: Size) -> CalibratedClassifierCV:
    # Every class must have a row for each of its folds.
    return CalibratedClassifierCV(SVC(C=10), ensemble=False, cv=min(5, max(2, size.rarest)))


def _labelled(name: str, build: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that builds a learner for any labels; XGBoost refuses texts."""
    return (lambda: WithPlaces(build())) if name == "xgboost" else build


def _imported(module: str, name: str, **options: Any) -> Callable[[], Any]:
    return lambda: getattr(import_module(module), name)(**options)


# Boosting has 100 trees of each class, whoever wrote it; all are quiet and use one thread.
_BROUGHT: dict[str, Callable[[], Any]] = {
    "lightgbm": _imported("lightgbm", "LGBMClassifier", n_jobs=1, verbose=-1),
    "xgboost": _imported("xgboost", "XGBClassifier", n_jobs=1, verbosity=0),
    "catboost": _imported(
        "catboost",
        "CatBoostClassifier",
        iterations=100,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    ),
}
_FEW, _SOME = (2, LIMITS.pairs), (2, LIMITS.classes)  # numbers of classes
# From simple to complex. Kernel machines have the same C, so that probabilities are compared, not
# searches.
_KNOWN: dict[str, _Known] = {
    BASELINE: _Known(lambda size: DummyClassifier(), work=0.1, quick=True),
    "logistic": _Known(lambda size: _logistic(), quick=True),
    # Before what takes long with so many classes, for a time budget.
    CLASS_TREES: _Known(
        _coupled(_logistic, code="class-trees"),
        5,
        classes=(LIMITS.many, float("inf")),
        quick=True,
    ),
    "forest": _Known(lambda size: RandomForestClassifier(), 3, classes=_SOME, quick=True),
    "boosting": _Known(lambda size: HistGradientBoostingClassifier(), 6, classes=_SOME),
    **{
        name: _Known(_alone(_labelled(name, build)), 3, classes=_SOME, needs=name)
        for name, build in _BROUGHT.items()
    },
    "calibrated-forest": _Known(
        _coupled(RandomForestClassifier, code="native"), 10, classes=_SOME, quick=True
    ),
    "calibrated-boosting": _Known(
        _coupled(HistGradientBoostingClassifier, code="native"), 30, classes=_FEW
    ),
    **{
        f"calibrated-{name}": _Known(_coupled(build, code="native"), 15, classes=_FEW, needs=name)
        for name, build in _BROUGHT.items()
    },
    "calibrated-svc": _Known(
        _calibrated_svc, 2, most_rows=LIMITS.kernel_rows, classes=_SOME, quick=True
    ),
    "coupled-svc": _Known(
        lambda size: CoupledSVC(C=10), 1, most_rows=LIMITS.kernel_rows, classes=_SOME, quick=True
    ),
    "coupled-logistic": _Known(_coupled(_logistic), 3, classes=_FEW, quick=True),
    "coupled-logistic-rest": _Known(
        _coupled(_logistic, code="one-vs-rest", combiner="kl"), 3, classes=(3, LIMITS.classes)
    ),
    "coupled-logistic-sparse": _Known(
        _coupled(_logistic, code="sparse-random", combiner="kl"), 5, by_default=False
    ),
    "coupled-kernel-logistic": _Known(
        _coupled(lambda: KernelLogisticRegression(C=10), cv="loo"),
        10,
        up_to_rows=5_000,
        classes=_SOME,
    ),
    "coupled-boosting": _Known(
        _coupled(HistGradientBoostingClassifier, code="one-vs-rest", combiner="kl", cv=3),
        40,
        classes=_FEW,
    ),
}
assert tuple(_KNOWN) == CANDIDATES  # the parser of the command line knows the names alone


def choose(
    size: Size, *, quick: bool = False, only: Iterable[str] | None = None
) -> tuple[list[Candidate], list[str]]:
    """Choose the candidates for data of a size, from simple to complex.

    ``quick`` chooses those that are fitted within seconds, and ``only`` these of ``CANDIDATES``, at
    any cost. The baseline, class frequencies alone, is always among them. The notes say which
    candidates were left out, and why.
    """
    if only is not None:
        names = list(dict.fromkeys([BASELINE, *_check_names(only)]))
        return [build(name, size) for name in names], []
    wanted = [name for name, known in _KNOWN.items() if _is_wanted(known, quick)]
    reasons = {name: _left_out(_KNOWN[name], size) for name in wanted}
    names = [name for name in wanted if reasons[name] is None]
    notes = _grouped({name: reason for name, reason in reasons.items() if reason})
    if CLASS_TREES in names:
        notes.append(f"{CLASS_TREES} takes part: {why_trees(size.classes)}.")
    return [build(name, size) for name in names], notes


def why_trees(k: int) -> str:
    """Say why class trees are used for many classes."""
    return (
        f"for {k:,} classes, trees of binary problems need {k - 1:,} models each, one-vs-one "
        f"{k * (k - 1) // 2:,}"
    )


def build(name: str, size: Size) -> Candidate:
    """Build the candidate of a name, at any cost."""
    known = _KNOWN[_check_names([name])[0]]
    if known.needs is not None and find_spec(known.needs) is None:
        raise ValueError(f"candidate {name} needs {known.needs}: run pip install {known.needs}.")
    return Candidate(name, known.build(size), known.most_rows, known.work)


def from_factory(text: str) -> Candidate:
    """Build a candidate from ``module:factory``; modules of the current folder are found.

    The factory is a class or function without arguments, or a classifier.
    """
    module, _, name = text.partition(":")
    if not module or not name:
        raise ValueError(f"--estimator must be module:factory, got {quoted(text)}.")
    sys.path.insert(0, "")
    try:
        made = getattr(import_module(module), name)
        if callable(made) and (isinstance(made, type) or not hasattr(made, "get_params")):
            made = made()
    except Exception as error:  # whatever the code of others raises
        why = str(error).rstrip(".") or type(error).__name__
        raise ValueError(f"--estimator {text}: {why}.") from error
    finally:
        sys.path.remove("")
    if isinstance(made, type) or not hasattr(made, "get_params"):
        raise ValueError(f"--estimator {text} makes {quoted(made)}, which is not a classifier.")
    return from_mapping({name: made})[0]


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


def with_baseline(candidates: list[Candidate]) -> list[Candidate]:
    """Return the candidates and the baseline, class frequencies alone, if it is not there."""
    if any(candidate.name == BASELINE for candidate in candidates):
        return candidates
    return [Candidate(BASELINE, DummyClassifier(), work=0.1), *candidates]


def seeded(estimator: Any, seed: int) -> Any:
    """Return a clone in which every open ``random_state`` is set."""
    estimator = clone(estimator)
    open_seeds = {
        key: seed
        for key, value in sorted(estimator.get_params(deep=True).items())
        if value is None and (key == "random_state" or key.endswith("__random_state"))
    }
    return estimator.set_params(**open_seeds)


def _is_wanted(known: _Known, quick: bool) -> bool:
    there = known.needs is None or find_spec(known.needs) is not None
    return known.by_default and there and (known.quick or not quick)


def _left_out(known: _Known, size: Size) -> str | None:
    fewest, most = known.classes
    if size.classes > most:
        return f"too slow for {size.classes} classes"
    if size.classes < fewest and fewest < LIMITS.many:
        return f"for {size.classes} classes all codes pose the same single problem"
    if size.classes < fewest:
        return ""  # needed only for many classes: no note when it is left out
    if known.up_to_rows is not None and size.rows > known.up_to_rows:
        return f"too slow for {size.rows} rows"
    return None


def _grouped(reasons: Mapping[str, str]) -> list[str]:
    """Return a note for each reason, with the names of its candidates."""
    return [
        f"left out, {reason}: {', '.join(name for name in reasons if reasons[name] == reason)}."
        for reason in dict.fromkeys(reasons.values())
    ]


def _check_names(only: Iterable[str]) -> list[str]:
    names = list(dict.fromkeys(only))
    if not names:
        raise ValueError(f"no candidate was named: choose from {', '.join(CANDIDATES)}.")
    for name in names:
        if name not in _KNOWN:
            raise ValueError(
                f"there is no candidate {quoted(name)}{meant(name, CANDIDATES)}. Choose from "
                f"{', '.join(CANDIDATES)}."
            )
    return names
