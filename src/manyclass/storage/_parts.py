"""The objects that a model consists of. Some are not stored, but computed again."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from sklearn.neighbors import BallTree, KDTree

from manyclass.learners._binning import Bins
from manyclass.scaling import StructuredScaling
from manyclass.scaling.structured import rows_of_code
from manyclass.scaling.temperature import FLOOR


def reachable(whole: Any) -> Iterator[Any]:
    """Yield all objects that are part of a model, each of them once."""
    seen: dict[int, Any] = {}
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        # Classes and functions belong to libraries, not to the model.
        if id(part) in seen or isinstance(part, type | FunctionType | MethodType | ModuleType):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            waiting.extend(part)
        elif isinstance(part, np.ndarray) and part.dtype.hasobject:
            waiting.extend(part.ravel().tolist())
        elif hasattr(part, "__dict__"):
            waiting.extend(vars(part).values())


def without_derived(estimator):
    """Return a copy without the search trees of neighbours; it shares the arrays.

    A tree holds indices that nothing can check. :func:`make_derived` builds it again.
    """
    memo: dict[int, Any] = {}
    for part in reachable(estimator):
        if _tree_of(part) is not None:
            memo[id(part._tree)] = None
        elif isinstance(part, np.ndarray):
            memo[id(part)] = part
    return copy.deepcopy(estimator, memo)


def _tree_of(part: Any) -> type | None:
    """Return the type of the search tree of an estimator, or None if it has none."""
    trees = {"kd_tree": KDTree, "ball_tree": BallTree}
    return trees.get(getattr(part, "_fit_method", "")) if hasattr(part, "_tree") else None


def make_derived(model) -> None:
    """Build search trees and indices again, and drop cached values: a file may hold wrong ones."""
    for part in list(reachable(model)):
        if isinstance(part, StructuredScaling) and hasattr(part, "classes_"):
            part._sides = rows_of_code(getattr(part, "code_", None), len(part.classes_))
            if not hasattr(part, "floor_"):
                _read_uncentred(part)
        if isinstance(part, Bins):
            for name in ("sizes", "offsets"):  # cached properties
                vars(part).pop(name, None)
        tree = _tree_of(part)
        if tree is not None:
            options = part.effective_metric_params_
            part._tree = tree(part._fit_X, part.leaf_size, metric=part.effective_metric_, **options)


def _read_uncentred(scaling: StructuredScaling) -> None:
    """Give a scaling of an older file the matrix for log-probabilities that are not centred."""
    k, matrix = len(scaling.classes_), scaling.matrix_.copy()
    matrix[:k] -= matrix[:k].mean(axis=0)
    scaling.matrix_, scaling.floor_ = matrix, FLOOR
