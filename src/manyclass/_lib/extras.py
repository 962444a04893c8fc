"""Optional packages, which a plain install does not bring."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_extra(name: str, need: str) -> Any:
    """Return an optional package, or raise an error that says how to install it.

    Examples
    --------
    >>> from manyclass._lib.extras import import_extra
    >>> import_extra("no_such_package.module", "the example needs")
    Traceback (most recent call last):
    ImportError: the example needs no_such_package: run pip install 'manyclass[app]'.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{need} {package}: run pip install 'manyclass[app]'.") from error
