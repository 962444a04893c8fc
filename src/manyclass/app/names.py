"""Names of classes, which may be anything, as text for pages and figures."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def as_text(label: object, most: int | None = None) -> str:
    r"""Return a label as one line of text that any page can hold.

    Control characters and lone surrogates, which neither XML nor UTF-8 can hold, are
    replaced; white space becomes single spaces; what is left empty is called so.

    Parameters
    ----------
    label : object
        The label.
    most : int, optional
        Longer texts are cut in the middle, where names that begin or end alike differ least
        often.

    Returns
    -------
    str

    Examples
    --------
    >>> from manyclass.app.names import as_text
    >>> as_text("two\nlines"), as_text(""), as_text(7)
    ('two lines', '(empty)', '7')
    >>> as_text("a very long name", most=9)
    'a ve…name'
    """
    text = " ".join(str(label).split())
    text = "".join("\N{REPLACEMENT CHARACTER}" if _unfit(c) else c for c in text) or "(empty)"
    return text if most is None else shorten(text, most)


def shorten(text: str, most: int) -> str:
    """Cut the middle out of a text that is longer than ``most`` characters."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return text[: most - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def short_names(labels: Sequence[object], most: int) -> list[str]:
    """Shorten names so that they still differ.

    Those that would become the same lose what they begin with in common; what is still
    the same then is numbered.

    Examples
    --------
    >>> from manyclass.app.names import short_names
    >>> short_names(["cat", "sample of batch 1 of 9", "sample of batch 2 of 9"], 10)
    ['cat', '…1 of 9', '…2 of 9']
    """
    texts = [as_text(label) for label in labels]
    names = [shorten(text, most) for text in texts]
    for name, count in Counter(names).items():
        if count > 1:
            alike = [i for i, other in enumerate(names) if other == name]
            # What the first and the last have in common, in the order of letters, all have.
            first, last = min(texts[i] for i in alike), max(texts[i] for i in alike)
            common = next((i for i, c in enumerate(first) if c != last[i : i + 1]), len(first))
            for i in alike:
                names[i] = shorten(ELLIPSIS + texts[i][common:], most)
    counts = Counter(names)
    return [f"{name} [{i}]" if counts[name] > 1 else name for i, name in enumerate(names)]


def _unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"


def one_line(message: str, most: int = 300) -> str:
    r"""Return the first sentence or so of a message, on one line.

    Examples
    --------
    >>> from manyclass.app.names import one_line
    >>> one_line("it failed\n\n  for reasons")
    'it failed for reasons'
    """
    text = as_text(message)
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS
