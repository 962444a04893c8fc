"""Optional packages, which a plain install does not bring."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def import_extra(name: str, need: str, extra: str = "app") -> Any:
    """Return an optional package, or raise an error that names the extra that brings it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(_missing(name, need, extra)) from error


def check_extra(name: str, need: str, extra: str = "app") -> None:
    """Raise the error of :func:`import_extra`, but import nothing."""
    if find_spec(name) is None:
        raise ImportError(_missing(name, need, extra))


def _missing(name: str, need: str, extra: str) -> str:
    return f"{need} {name.partition('.')[0]}: run pip install 'manyclass[{extra}]'."
