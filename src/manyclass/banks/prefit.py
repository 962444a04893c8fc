"""Models that are fitted already: :class:`~sklearn.frozen.FrozenEstimator`.

They are used as they are, and only calibrated. So all training rows are out of sample for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import some_quoted
from manyclass.banks.base import Bank
from manyclass.banks.native import NativeBank
from manyclass.banks.score_kinds import ScoreKind


def is_prefit(estimator: Any) -> bool:
    """Tell whether an estimator is fitted already, and must not be fitted again."""
    return isinstance(estimator, FrozenEstimator)


def _has(method: str):
    return lambda self: hasattr(self.estimator, method)


class PrefitModel(ClassifierMixin, BaseEstimator):
    """A fitted classifier that names its classes by other numbers.

    Parameters
    ----------
    estimator : fitted classifier
    places : int array of shape (its number of classes,)
        The new number of each of its classes.
    """

    def __init__(self, estimator, places: Places):
        self.estimator = estimator
        self.places = places

    @property
    def classes_(self) -> Places:
        """The new numbers, in ascending order."""
        return np.sort(self.places)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X) -> Floats:
        """Return the probabilities, in the order of the new numbers."""
        return np.asarray(self.estimator.predict_proba(X))[:, np.argsort(self.places)]

    @available_if(_has("decision_function"))
    def decision_function(self, X) -> Floats:
        """Return the margins, of the second of two classes or in the order of the new numbers."""
        f = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        if f.ndim == 1:
            return f if self.places[0] < self.places[1] else -f
        return f[:, np.argsort(self.places)]


def prefit_bank(
    estimator: FrozenEstimator, kind: ScoreKind, classes: NDArray, native: bool
) -> Bank:
    """Return the bank of a fitted model, of two classes or of all classes at once (``native``)."""
    places = _places(estimator, classes)
    if len(classes) == 2:  # the first class is the positive side, number 1
        return Bank([PrefitModel(estimator, 1 - places)], kind)
    if not native:
        raise ValueError(
            f"the estimator is already fitted on {len(classes)} classes and cannot be fitted to "
            "the columns of a code. Use code='native', which calibrates it as it is, or pass an "
            "estimator without FrozenEstimator."
        )
    return NativeBank(PrefitModel(estimator, places), kind, len(classes))


def _places(estimator: FrozenEstimator, classes: NDArray) -> Places:
    """Return where the classes of a fitted model are among those of the training data."""
    known = np.asarray(estimator.classes_)
    found = np.isin(known, classes)
    if not found.all() or len(known) != len(classes):
        raise ValueError(
            f"the estimator was fitted on the classes {some_quoted(known)}, but y has "
            f"{some_quoted(classes)}. A fitted model can be calibrated only on all of its classes."
        )
    return np.searchsorted(classes, known)
