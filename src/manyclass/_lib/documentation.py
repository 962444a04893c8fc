"""Links from estimators, as notebooks show them, to the pages of the reference."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

import manyclass


def link(kind: type) -> str:
    """Return the address of a public class in the reference, or "" if it has none.

    The environment variable ``MANYCLASS_DOCS`` names the pages, for example a folder that
    ``make docs`` has written; otherwise the metadata of the installed package does.
    """
    pages = os.environ.get("MANYCLASS_DOCS") or _published()
    if not pages or getattr(manyclass, kind.__name__, None) is not kind:
        return ""
    if "://" not in pages:
        from pathlib import Path

        pages = Path(pages).absolute().as_uri()
    return f"{pages.rstrip('/')}/api/generated/manyclass.{kind.__name__}.html"


@cache
def _published() -> str:
    try:
        urls = metadata("manyclass").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(entry.split(", ", 1) for entry in urls if ", " in entry)
    return named.get("Documentation", "")
