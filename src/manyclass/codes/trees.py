"""Class trees: every node splits its classes in two, by what the training data say about them.

A tree has k - 1 inner nodes, so it is k - 1 columns of a code. Several trees are side by side;
:func:`~manyclass.codes.find_trees` finds them again in the matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.messages import quoted
from manyclass._lib.weights import class_sizes
from manyclass.codes.checks import check_integer, check_size
from manyclass.codes.class_means import class_means
from manyclass.codes.kernels.two_means import best_split
from manyclass.codes.random import Seed

Split = tuple[Places, Places]
"""The classes of the positive and of the negative side of a column."""


class ClassTrees(BaseEstimator):
    """A code of trees over the classes, built from the training data.

    Pass it as ``code`` of :class:`~manyclass.CoupledClassifier`; the name "class-trees" means
    ``ClassTrees()``.

    Parameters
    ----------
    n_trees : int, default=4
        Number of trees, of k - 1 columns each. Their probabilities are averaged.
    n_candidates : int, default=5
        Number of splits of a node that are compared. With more of them trees are better
        and more alike.

    Notes
    -----
    A node's candidates are results of 2-means of its classes, from two random classes and on a
    random half of the features. Class means are whitened by the covariance within classes. The
    candidate is taken for which a linear model has the lowest expected log-loss per unit of
    information. No model is fitted for this.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.codes import ClassTrees
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CoupledClassifier(code=ClassTrees(n_trees=1), random_state=0)
    >>> model.fit(X[:600] / 16, y[:600]).code_.shape
    (10, 9)
    """

    def __init__(self, n_trees: int = 4, n_candidates: int = 5):
        self.n_trees = n_trees
        self.n_candidates = n_candidates

    def build(
        self, X: Any, y: ArrayLike, k: int, random_state: Seed = None, sample_weight=None
    ) -> Code:
        """Return the code matrix for training data.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Numeric features.
        y : array-like of shape (n,)
            Labels. Every class needs a row.
        k : int
            Number of classes.
        random_state : int, RandomState or None, default=None
            Seed.
        sample_weight : array-like of shape (n,), optional
            Counts of samples.

        Returns
        -------
        int8 array of shape (k, n_trees * (k - 1))
            Its rows are in the sorted order of the labels.
        """
        n_trees = check_integer("n_trees", self.n_trees, 1)
        n_candidates = check_integer("n_candidates", self.n_candidates, 1)
        check_size("class-trees", k, n_trees * (k - 1), "Use fewer trees, or merge classes.")
        rng = check_random_state(random_state)
        grower = Grower.of(X, y, k, rng, n_candidates, sample_weight)
        groups = [np.array([c]) for c in grower.order]
        return as_code(k, [split for _ in range(n_trees) for split in grower.binary_tree(groups)])


class QAry(BaseEstimator):
    """A code for multiclass learners that are limited to a few classes.

    Every node of a class tree splits its classes into at most ``max_classes`` groups. One
    multiclass model of ``estimator`` learns the groups of a node. The name "q-ary" means
    ``QAry()``.

    Parameters
    ----------
    max_classes : int, default=10
        The largest number of classes that the learner takes.
    n_trees : int, default=4
        Number of trees. Their probabilities are averaged.
    n_candidates : int, default=5
        See :class:`ClassTrees`.

    Notes
    -----
    The code has a column for each group, against the other groups of its node. Calibration and
    scaling are those of these columns. If there are ``max_classes`` classes or fewer, there is one
    node, and this is the code "native".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.codes import QAry
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CoupledClassifier(GaussianNB(), code=QAry(max_classes=4, n_trees=1), random_state=0)
    >>> [len(m.classes_) for m in model.fit(X[:900], y[:900]).estimators_]
    [4, 4, 4]
    """

    grouped = True

    def __init__(self, max_classes: int = 10, n_trees: int = 4, n_candidates: int = 5):
        self.max_classes = max_classes
        self.n_trees = n_trees
        self.n_candidates = n_candidates

    def build(
        self, X: Any, y: ArrayLike, k: int, random_state: Seed = None, sample_weight=None
    ) -> Code:
        """Return the code matrix for training data; see :meth:`ClassTrees.build`."""
        q = check_integer("max_classes", self.max_classes, 2)
        n_trees = check_integer("n_trees", self.n_trees, 1)
        n_candidates = check_integer("n_candidates", self.n_candidates, 1)
        check_size("q-ary", k, n_trees * 2 * k, "Use fewer trees, or merge classes.")
        rng = check_random_state(random_state)
        grower = Grower.of(X, y, k, rng, n_candidates, sample_weight)
        # With a single node, further trees would be the same.
        splits = [s for _ in range(n_trees if k > q else 1) for s in grower.wide_tree(q)]
        return as_code(k, splits)


def class_trees(
    X: Any, y: Any, *, n_trees: int = 4, n_candidates: int = 5, random_state: Seed = None
) -> Code:
    """Return a code of trees over the classes, built from training data.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n, n_features)
        Numeric features.
    y : array-like of shape (n,)
        Labels. Rows of the code are in their sorted order.
    n_trees, n_candidates : int
        See :class:`ClassTrees`.
    random_state : int, RandomState or None, default=None
        Seed.

    Returns
    -------
    int8 array of shape (k, n_trees * (k - 1))

    Examples
    --------
    >>> from manyclass.codes import class_trees
    >>> class_trees([[0.0], [1.0], [8.0], [9.0]], [0, 1, 2, 3], n_trees=1, random_state=0)
    array([[-1,  1,  0],
           [-1, -1,  0],
           [ 1,  0,  1],
           [ 1,  0, -1]], dtype=int8)
    """
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    classes = np.unique(y)
    if len(classes) < 2:
        found = f"only one class, {quoted(classes[0])}" if len(classes) else "no classes"
        raise ValueError(f"y has {found}: pass two or more.")
    return ClassTrees(n_trees, n_candidates).build(X, y, len(classes), random_state)


class Grower(NamedTuple):
    """Grows trees over groups of classes."""

    means: Floats
    """Whitened class means (k, q)."""
    weights: Floats
    """Weight of the rows of each class (k,)."""
    order: Places
    """Classes in an order that does not depend on their labels."""
    rng: np.random.RandomState
    n_candidates: int

    @classmethod
    def of(
        cls,
        X,
        y: ArrayLike,
        k: int,
        rng: np.random.RandomState,
        n_candidates: int,
        sample_weight: ArrayLike | None = None,
    ) -> Grower:
        """Return the grower for training data."""
        classes, indices = np.unique(np.asarray(y), return_inverse=True)
        if len(classes) != k:
            raise ValueError(
                f"y has samples of {len(classes)} of {k} classes, but class trees are built from "
                "samples of all classes. Pass a first batch with all of them, or build the matrix "
                "with codes.class_trees and pass it as code."
            )
        y = indices.ravel()
        weights = np.ones(len(y)) if sample_weight is None else np.array(sample_weight, np.float64)
        # Rows of a class that has no weight count as if it had.
        weights[(class_sizes(y, k, weights) == 0)[y]] = 1.0
        means = class_means(X, y, weights, k, rng)
        totals = class_sizes(y, k, weights)
        return cls(means, totals, np.lexsort(means.T), rng, n_candidates)

    def binary_tree(self, groups: list[Places]) -> Iterator[Split]:
        """Yield the splits of a binary tree whose leaves are groups, each node before its parts."""
        waiting = [groups]
        while waiting:
            sides = self.halves(waiting.pop())
            yield np.concatenate(sides[0]), np.concatenate(sides[1])
            waiting.extend(side for side in sides if len(side) > 1)

    def wide_tree(self, q: int) -> Iterator[Split]:
        """Yield the columns of a tree whose nodes have at most q groups."""
        waiting = [[np.array([c]) for c in self.order]]
        while waiting:
            parts = [waiting.pop()]
            while len(parts) < q and max(map(len, parts)) > 1:
                largest = max(range(len(parts)), key=lambda i: len(parts[i]))
                parts.extend(self.halves(parts.pop(largest)))
            groups = [np.concatenate(part) for part in parts]
            for i in range(len(groups) if len(groups) > 2 else 1):
                yield groups[i], np.concatenate(groups[:i] + groups[i + 1 :])
            waiting.extend(part for part in parts if len(part) > 1)

    def halves(
        self, groups: list[Places], share: float = 0.5, max_steps: int = 30
    ) -> tuple[list[Places], list[Places]]:
        """Split groups in two; each candidate uses about this ``share`` of the features."""
        m, d, n = len(groups), self.means.shape[1], self.n_candidates
        side = np.arange(m) % 2 == 0
        if m > 2:
            weights = np.array([self.weights[group].sum() for group in groups])
            sums = [self.weights[group] @ self.means[group] for group in groups]
            starts = np.array([self.rng.choice(m, 2, replace=False) for _ in range(n)])
            features = self.rng.random_sample((n, d)) < share
            features[~features.any(axis=1)] = True
            means = np.array(sums) / weights[:, None]
            best_split(means, weights, starts, features, max_steps, side)
        parts: tuple[list[Places], list[Places]] = ([], [])
        for group, is_positive in zip(groups, side, strict=True):
            parts[not is_positive].append(group)
        return parts


def as_code(k: int, splits: list[Split]) -> Code:
    """Return the matrix with a column for each split."""
    code = np.zeros((k, len(splits)), dtype=np.int8)
    for b, (positive, negative) in enumerate(splits):
        code[positive, b] = 1
        code[negative, b] = -1
    return code
