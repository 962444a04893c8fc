"""Texts for users: warnings at their own line of code, and labels that are safe to show."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

_PACKAGE = __name__.partition(".")[0]
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that called this package.

    The first frame outside the package is the caller's, however deep the warning arises.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_own(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == _PACKAGE


def shorten(text: str, longest: int = 24) -> str:
    """Cut the middle out of a long text; similar names often differ at their ends.

    Examples
    --------
    >>> from manyclass._lib.messages import shorten
    >>> shorten("subclass of a class of a superclass, number 17")
    'subclass of a c…umber 17'
    """
    if len(text) <= longest:
        return text
    tail = longest // 3
    return text[: max(1, longest - tail - 1)] + ELLIPSIS + text[len(text) - tail :]


def printable(label: Any) -> str:
    r"""Write a label on one line, without characters that cannot be printed.

    Examples
    --------
    >>> from manyclass._lib.messages import printable
    >>> printable("two\nlines"), printable("")
    ('two lines', "''")
    """
    words = " ".join(str(label).split())
    return "".join(c for c in words if c.isprintable()) or repr(str(label))


def quoted(label: Any, longest: int = 60) -> str:
    """Write a label for a message: as Python code, shortened to ``longest`` characters.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass._lib.messages import quoted
    >>> quoted(np.str_("cat")), quoted(7), len(quoted("c" * 10_000))
    ("'cat'", '7', 60)
    """
    plain = isinstance(label, np.generic) and label.dtype.kind not in "mM"
    return shorten(repr(label.item() if plain else label), longest)


def some_quoted(labels: Iterable[Any], most: int = 5) -> str:
    """Write the first labels for a message, and the number of the others.

    Examples
    --------
    >>> from manyclass._lib.messages import some_quoted
    >>> some_quoted(["ant", "bee"]), some_quoted(range(8))
    ("'ant', 'bee'", '0, 1, 2, 3, 4 and 3 more')
    """
    everything = list(labels)
    more = f" and {len(everything) - most} more" if len(everything) > most else ""
    return ", ".join(map(quoted, everything[:most])) + more


def distinct_names(labels: Iterable[Any], longest: int = 24) -> list[str]:
    """Shorten names to one line of ``longest`` characters each, so that they still differ.

    Names that would become equal lose their common beginning. Names that are still equal get
    numbers.

    Examples
    --------
    >>> from manyclass._lib.messages import distinct_names
    >>> distinct_names(["cat", "sample of batch 1 of 9", "sample of batch 2 of 9"], 10)
    ['cat', '…1 of 9', '…2 of 9']
    >>> distinct_names(["a", "a "], longest=10)
    ['a [0]', 'a [1]']
    """
    texts = [printable(label) for label in labels]
    names = [shorten(text, longest) for text in texts]
    for name, times in Counter(names).items():
        if times > 1:
            alike = [i for i, other in enumerate(names) if other == name]
            start = _common([texts[i] for i in alike])
            for i in alike:
                names[i] = shorten((ELLIPSIS if start else "") + texts[i][start:], longest)
    times_of = Counter(names)
    tags = [f" [{i}]" if times_of[name] > 1 else "" for i, name in enumerate(names)]
    return [shorten(name, longest - len(tag)) + tag for name, tag in zip(names, tags, strict=True)]


def _common(texts: list[str]) -> int:
    """Return the length of the common beginning; 0 if all texts are equal."""
    first, last = min(texts), max(texts)  # the beginning that these share, all share
    return next((i for i, c in enumerate(last) if c != first[i : i + 1]), 0)
