"""Labels of binary learners, and predictions from their log-odds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import quoted


def encode_binary(y, name: str) -> tuple[NDArray, Places]:
    """Return the two classes, and y as 0 and 1; ``name`` is the name of the estimator."""
    check_classification_targets(y)
    classes, sides = np.unique(column_or_1d(y, warn=True), return_inverse=True)
    check_two(classes, name)
    return classes, sides


def check_two(classes: NDArray, name: str, *, weighed: bool = False) -> None:
    """Raise a ``ValueError`` unless there are two classes (``weighed``: of positive weight)."""
    if len(classes) > 2:
        raise ValueError(
            f"Only binary classification is supported. y has {len(classes)} classes: use "
            f"CoupledClassifier({name}(...)), which fits one {name} per pair of classes."
        )
    if len(classes) < 2:
        lacking = " with samples of positive weight" if weighed else ""
        only = [f"only one class{lacking}, {quoted(one)}" for one in classes]
        found = only[0] if only else f"no class{lacking}"
        raise ValueError(
            f"y has {found}: a binary classifier needs two. Pass samples of two classes."
        )


class BinaryMixin(ClassifierMixin):
    """Labels and probabilities of a binary learner, from its log-odds."""

    _log_odds: Callable[[Any], Floats]

    def decision_function(self, X) -> Floats:
        """Return the log-odds of the second class.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Samples, as ``fit`` takes them.

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        return self._log_odds(X)

    def predict(self, X) -> NDArray:
        """Return the more probable class of each row, and the first in a tie.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Samples, as ``fit`` takes them.

        Returns
        -------
        ndarray of shape (n,)
        """
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(np.intp)]

    def predict_proba(self, X) -> Floats:
        """Return the probabilities of both classes.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Samples, as ``fit`` takes them.

        Returns
        -------
        ndarray of shape (n, 2)
            Columns in the order of ``classes_``.
        """
        f = self.decision_function(X)
        p = np.column_stack([expit(-f), expit(f)])
        # Very close to 0 both are 0.5; the predicted class must be more probable.
        level = (f > 0) & (p[:, 1] <= p[:, 0])
        above_half = np.nextafter(0.5, 1.0)
        p[level] = 1.0 - above_half, above_half
        return p

    def predict_log_proba(self, X) -> Floats:
        """Return the logarithms of the probabilities, without underflow.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Samples, as ``fit`` takes them.

        Returns
        -------
        ndarray of shape (n, 2)
        """
        f = self.decision_function(X)
        return np.column_stack([log_expit(-f), log_expit(f)])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
