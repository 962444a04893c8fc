"""All or nothing: ``fit`` succeeds, or the estimator does not change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_error(estimator: Any) -> Iterator[None]:
    """Restore the attributes of the estimator if an error or an interrupt ends the block.

    Attributes are not copied: ``fit`` must replace them and not change them in place.
    """
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
