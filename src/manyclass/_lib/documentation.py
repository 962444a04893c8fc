"""Links from estimators, as notebooks show them, to the pages of the reference."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

import manyclass


class LinkedEstimator:
    """Has a page in the reference, if it is a public class and the pages are known.

    The environment variable ``MANYCLASS_DOCS`` names the pages: their address, or the folder that
    ``make docs`` has written. Otherwise the metadata of the installed package does. If neither
    does, there is no link: one that leads nowhere is worse.

    Both attributes are scikit-learn's convention, so that subclasses in other packages can set
    them for pages of their own.
    """

    _doc_link_module: str = "manyclass"

    @property
    def _doc_link_template(self) -> str:
        kind: Any = type(self)
        pages = os.environ.get("MANYCLASS_DOCS") or _published()
        if not pages or getattr(manyclass, kind.__name__, None) is not kind:
            return ""
        if "://" not in pages:
            from pathlib import Path

            pages = Path(pages).absolute().as_uri()
        return f"{pages.rstrip('/')}/api/generated/manyclass.{{estimator_name}}.html"


@cache
def _published() -> str:
    try:
        urls = metadata("manyclass").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(entry.split(", ", 1) for entry in urls if ", " in entry)
    return named.get("Documentation", "")
