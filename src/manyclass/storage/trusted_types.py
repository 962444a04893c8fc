"""The types that a stored model may contain, and their stable names.

A stored model names a class of this package by an identifier such as ``manyclass.CoupledSVC``, not
by the module that holds the class. So a class may move to another file, and old models still load.

To make a class storable, add it to the table below. To rename a class, add its old identifier to
``FORMER``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from inspect import isabstract
from typing import Any

import manyclass
from manyclass.app.columns import DaysSince1970
from manyclass.banks.base import Bank, ConstantModel, PairwiseModel
from manyclass.banks.prefit import PrefitModel
from manyclass.banks.score_kinds import ScoreKind
from manyclass.banks.svm import groups
from manyclass.banks.svm.kernels import Kernel
from manyclass.batches import Stream
from manyclass.calibration import CALIBRATIONS, Unchanged
from manyclass.calibration.calibration_report import CalibrationReport
from manyclass.calibration.choosing import Choice
from manyclass.classifier import CoupledClassifier
from manyclass.codes import FROM_DATA, Hierarchy
from manyclass.combiners import base as combiners
from manyclass.combiners.reliability import Neighbours, Reliability
from manyclass.decisions import DecisionClassifier
from manyclass.learners import (
    BinnedNaiveBayes,
    BoostedNaiveBayes,
    KernelLogisticRegression,
    PairwiseNeighbors,
    ThresholdOptimized,
)
from manyclass.learners._binning import Bins, Categories, EqualWidth
from manyclass.scaling import SCALINGS
from manyclass.scores.reservoir import Reservoir
from manyclass.search.coupled_svc_cv import CoupledSVCCV
from manyclass.storage._schema import NotLoaded
from manyclass.svm import CoupledSVC

PACKAGE = "manyclass"
Place = tuple[str, str]
"""A module and the name of a class in it, as skops writes them."""


class UnknownIdentifier(NotLoaded):
    """A file names a class of this package that does not exist here."""

    def __init__(self, name: str):
        super().__init__(
            f"holds {name}, which manyclass {manyclass.__version__} does not have. Update "
            "manyclass, or fit the model again."
        )


def _family(base: type) -> Iterator[type]:
    """Yield a class and its subclasses: those of this package, without abstract or private ones."""
    if _is_ours(base) and not isabstract(base) and not base.__name__.startswith("_"):
        yield base
    children: list[type] = base.__subclasses__()
    for child in children:
        yield from _family(child)


def _is_ours(cls: type) -> bool:
    """Return whether a class belongs to this package; users register combiners, too."""
    return cls.__module__.partition(".")[0] == PACKAGE


STORABLE: tuple[type, ...] = (
    # classifiers
    CoupledClassifier,
    CoupledSVC,
    CoupledSVCCV,
    DecisionClassifier,
    Stream,
    Reservoir,
    # banks: the fitted binary models, the kinds of their scores, and kernels
    *_family(Bank),
    ConstantModel,
    PairwiseModel,
    PrefitModel,
    *_family(ScoreKind),
    *_family(Kernel),
    groups.Group,
    # calibrations, combiners and scalings, and the report of what was chosen
    *CALIBRATIONS.values(),
    Unchanged,
    *SCALINGS.values(),
    CalibrationReport,
    Choice,
    *filter(_is_ours, combiners._REGISTRY.values()),
    *_family(Reliability),
    Neighbours,
    *FROM_DATA.values(),
    Hierarchy,
    # learners
    BinnedNaiveBayes,
    BoostedNaiveBayes,
    KernelLogisticRegression,
    PairwiseNeighbors,
    ThresholdOptimized,
    Bins,
    Categories,
    EqualWidth,
    # tables
    DaysSince1970,
)
"""All classes of this package that a stored model may contain."""

IDENTIFIERS: dict[str, type] = {f"{PACKAGE}.{cls.__name__}": cls for cls in STORABLE}
"""The present class of each identifier."""

TRUSTED: tuple[str, ...] = (
    *sorted(IDENTIFIERS),
    "numpy.dtype",  # of plain values: the archive is checked for that
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)
"""Names of the types that are loaded without permission. skops itself trusts more: plain Python
values, numpy's arrays and scikit-learn's estimators. The decision trees of scikit-learn are not
trusted: its compiled code follows the indices in a tree without a check."""

FORMER: dict[str, str] = {}
"""Identifiers that earlier releases wrote, and the identifiers that replace them."""

_NAME_OF: dict[Place, str] = {
    (cls.__module__, cls.__name__): name for name, cls in IDENTIFIERS.items()
}


def identifier(cls: type) -> str:
    """Return the identifier of a class, or its full name if it is not one of ours."""
    full_name = f"{cls.__module__}.{cls.__qualname__}"
    return _NAME_OF.get((cls.__module__, cls.__name__), full_name)


def full_name(name: str) -> str:
    """Return where the class of an identifier is now; other names are returned unchanged."""
    cls = IDENTIFIERS.get(FORMER.get(name, name))
    return name if cls is None else f"{cls.__module__}.{cls.__name__}"


def to_identifiers(schema: bytes) -> bytes:
    """Replace modules and classes of this package by identifiers, in a schema of skops."""

    def replace(place: Place) -> Place:
        name = _NAME_OF.get(place)
        return place if name is None else (PACKAGE, name.removeprefix(f"{PACKAGE}."))

    return _translate(schema, replace)


def to_places(schema: bytes) -> bytes:
    """Replace identifiers by the present modules and classes, in a schema of skops.

    Raises
    ------
    UnknownIdentifier
        If this release has no class of that name.
    """

    def replace(place: Place) -> Place:
        module, name = place
        if module != PACKAGE:
            return place
        written = f"{PACKAGE}.{name}"
        cls = IDENTIFIERS.get(FORMER.get(written, written))
        if cls is None:
            raise UnknownIdentifier(written)
        return cls.__module__, cls.__name__

    return _translate(schema, replace)


def _translate(schema: bytes, replace: Callable[[Place], Place]) -> bytes:
    """Replace the place of a class in every node of a schema.

    In a node both names are strings. A dict of the user's that has these keys is not a node: its
    values are nodes themselves.
    """
    tree = json.loads(schema)
    waiting: list[Any] = [tree]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, dict):
            module, name = part.get("__module__"), part.get("__class__")
            if isinstance(module, str) and isinstance(name, str):
                part["__module__"], part["__class__"] = replace((module, name))
            waiting.extend(part.values())
    return json.dumps(tree).encode()
