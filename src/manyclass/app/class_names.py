"""Labels of classes as text for pages and figures."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from manyclass._lib.messages import ELLIPSIS, distinct_names, shorten


def as_text(label: object, most: int | None = None) -> str:
    """Return a label as one line of text that any page can hold.

    Control characters and lone surrogates, which XML and UTF-8 cannot hold, are replaced. White
    space becomes single spaces. An empty label becomes "(empty)". A text longer than ``most`` is
    cut in the middle.
    """
    text = " ".join(str(label).split())
    text = "".join("\N{REPLACEMENT CHARACTER}" if _unfit(c) else c for c in text) or "(empty)"
    return text if most is None else shorten(text, most)


def short_names(labels: Iterable[object], most: int) -> list[str]:
    """Shorten names for a page so that they still differ."""
    return distinct_names(map(as_text, labels), most)


def _unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"


def one_line(message: str, most: int = 300) -> str:
    """Return the first sentence or so of a message, on one line."""
    text = as_text(message)
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS
