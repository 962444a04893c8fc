"""All or nothing: ``fit`` succeeds, or the estimator does not change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of the estimator if an error or an interrupt ends the block.

    Attributes are not copied: ``fit`` must replace them and not change them in place.

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
