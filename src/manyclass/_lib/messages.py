"""Texts for users: warnings at their own line of code, and labels that are safe to show."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

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


def refused(thing: Any, name: str) -> Any:
    """Raise the ``AttributeError`` for an attribute; for the end of ``__getattr__``.

    If a property of the class refused it, ask once more, since Python drops the first reason.
    """
    known = [vars(one)[name] for one in type(thing).__mro__ if name in vars(one)]
    if known and hasattr(known[0], "__get__"):
        return known[0].__get__(thing, type(thing))
    raise AttributeError(f"{type(thing).__name__!r} object has no attribute {name!r}")


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == _PACKAGE


def shorten(text: str, longest: int = 24) -> str:
    """Cut the middle out of a long text; similar names often differ at their ends."""
    if len(text) <= longest:
        return text
    tail = longest // 3
    return text[: max(1, longest - tail - 1)] + ELLIPSIS + text[len(text) - tail :]


def printable(label: Any) -> str:
    """Write a label on one line, without characters that cannot be printed."""
    words = " ".join(str(label).split())
    return "".join(c for c in words if c.isprintable()) or repr(str(label))


def quoted(label: Any, longest: int = 60) -> str:
    """Write a label for a message: as Python code, shortened to ``longest`` characters."""
    kind = getattr(getattr(label, "dtype", None), "kind", "M")  # of a scalar of numpy's
    plain = kind not in "mM" and getattr(label, "shape", None) == ()
    return shorten(repr(label.item() if plain else label), longest)


def some_quoted(labels: Iterable[Any], most: int = 5) -> str:
    """Write the first labels for a message, and the number of the others."""
    everything = list(labels)
    more = f" and {len(everything) - most} more" if len(everything) > most else ""
    return ", ".join(map(quoted, everything[:most])) + more


def meant(name: Any, known: Iterable[str]) -> str:
    """Return a question that names the most similar of the known names, if there is one."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5) if isinstance(name, str) else []
    return f" (did you mean {close[0]!r}?)" if close else ""


def distinct_names(labels: Iterable[Any], longest: int = 24) -> list[str]:
    """Shorten names to one line of ``longest`` characters each, so that they still differ.

    Names that would become equal lose their common beginning. Names that are still equal get
    numbers.
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
