"""Fitting as one step: it succeeds, or nothing has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Give the estimator back the attributes it had, if an error or an interrupt ends the block.

    What they refer to is not copied: ``fit`` has to replace it, not to change it.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass._lib.restoring import unchanged_on_error
    >>> model = GaussianNB().fit([[0], [1]], [0, 1])
    >>> try:
    ...     with unchanged_on_error(model):
    ...         model.fit([[0, 0], [1, 1]], [0])
    ... except ValueError:
    ...     print(model.n_features_in_)
    1
    """
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
