"""A multiclass learner as it is: its own class scores take the place of a code's columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass._lib.rows import by_rows, take_part, with_narrow_indices, without_duplicates
from manyclass._lib.sklearn import check_fit_params
from manyclass.banks.base import (
    Bank,
    PairwiseModel,
    check_square,
    overwrites,
    read_once,
    with_names_of,
)
from manyclass.banks.by_column import own_part, set_seed
from manyclass.banks.liblinear import check_range
from manyclass.banks.score_kinds import ScoreKind


class NativeBank(Bank):
    """One multiclass model. Its column c is class c against the rest.

    Parameters
    ----------
    model : fitted classifier
        Its classes are some of the class indices 0 to k - 1.
    kind : ScoreKind
        What :meth:`scores` returns.
    n_classes : int
        Number k of classes. A class that the model does not know has probability 0.
    """

    def __init__(self, model: Any, kind: ScoreKind, n_classes: int):
        self._models = [model]
        self.kind, self.n_classes = kind, n_classes
        self.constant = np.zeros(n_classes, dtype=np.bool_)

    def scores(self, X, where: Flags | None = None) -> Floats:
        """Return the scores (n, k) of all classes; ``where`` is ignored."""
        model = self._models[0]
        X = by_rows(read_once(model, X))
        X = with_narrow_indices(X if isinstance(model, PairwiseModel) else without_duplicates(X))
        if isinstance(model, PairwiseModel):
            model, X = model.estimator, model.cut(X)
        if overwrites(model):
            X = take_part(X, np.arange(X.shape[0]), copy=True)
        return self.kind.of_classes(model, with_names_of(model, X), self.n_classes)


def fit_native(
    estimator,
    X,
    y: Places,
    kind: ScoreKind,
    n_classes: int,
    *,
    rows: Places | None = None,
    fit_params: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> NativeBank:
    """Fit a clone of the estimator on all classes at once.

    Parameters
    ----------
    estimator : multiclass classifier
    X, y : training data; y holds class indices 0 to k - 1
    kind : what the bank returns
    n_classes : int
    rows : the training rows to use; all if omitted
    fit_params : arguments of ``fit``, sliced like the rows if they have their length
    seed : for every ``random_state`` of the estimator that is None
    """
    rows = np.arange(len(y)) if rows is None else rows
    model, X = clone(estimator), read_once(estimator, X)
    set_seed(model, seed)
    pairwise = bool(get_tags(model).input_tags.pairwise)
    if pairwise:
        check_square(model, X)
    weight = (fit_params or {}).get("sample_weight")
    if weight is not None:  # learners may fail on a class without weight
        rows = rows[np.asarray(weight)[rows] > 0]
    if len(np.unique(y[rows])) == 1:  # a fold with a single class
        model = DummyClassifier().fit(np.zeros((len(rows), 1)), y[rows])
        return NativeBank(model, kind, n_classes)
    params = check_fit_params(X, dict(fit_params or {}), rows)
    own = own_part(model, X, rows, pairwise)
    check_range(model, own, params.get("sample_weight"))
    model.fit(own, y[rows], **params)
    return NativeBank(PairwiseModel(model, rows) if pairwise else model, kind, n_classes)


def is_multiclass(estimator) -> bool:
    """Tell whether the estimator gives probabilities or margins of many classes by itself."""
    tags = get_tags(estimator).classifier_tags
    has_scores = hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")
    return has_scores and tags is not None and tags.multi_class
