"""Labels of classes as text for pages and figures."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from manyclass._lib.messages import ELLIPSIS, distinct_names, shorten


def as_text(label: object, most: int | None = None) -> str:
    r"""Return a label as one line of text that any page can hold.

    Control characters and lone surrogates, which XML and UTF-8 cannot hold, are replaced. White
    space becomes single spaces. An empty label becomes "(empty)".

    Parameters
    ----------
    label : object
        The label.
    most : int, optional
        Longer texts are cut in the middle.

    Returns
    -------
    str

    Examples
    --------
    >>> from manyclass.app.class_names import as_text
    >>> as_text("two\nlines"), as_text(""), as_text(7)
    ('two lines', '(empty)', '7')
    >>> as_text("a very long name", most=9)
    'a ver…ame'
    """
    text = " ".join(str(label).split())
    text = "".join("\N{REPLACEMENT CHARACTER}" if _unfit(c) else c for c in text) or "(empty)"
    return text if most is None else shorten(text, most)


def short_names(labels: Iterable[object], most: int) -> list[str]:
    """Shorten names so that they still differ; see :func:`manyclass._lib.messages.distinct_names`.

    Examples
    --------
    >>> from manyclass.app.class_names import short_names
    >>> short_names(["cat", "sample of batch 1 of 9", "sample of batch 2 of 9"], 10)
    ['cat', '…1 of 9', '…2 of 9']
    """
    return distinct_names(map(as_text, labels), most)


def _unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"


def one_line(message: str, most: int = 300) -> str:
    r"""Return the first sentence or so of a message, on one line.

    Examples
    --------
    >>> from manyclass.app.class_names import one_line
    >>> one_line("it failed\n\n  for reasons")
    'it failed for reasons'
    """
    text = as_text(message)
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS
