"""Optional packages, which a plain install does not bring."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def import_extra(name: str, need: str, extra: str = "app") -> Any:
    """Return an optional package, or raise an error that names the extra that brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ImportError(f"{need} {package}: run pip install 'manyclass[{extra}]'.") from error
