"""Texts for the terminal: notes, names, and nothing that a terminal would obey."""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

DIRECTION_MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Characters that turn the direction of writing: a name could show as another."""


def say(text: object, file: IO[str] | None = None) -> None:
    """Print a text; control characters, such as escape codes in a name, are replaced."""
    file = sys.stdout if file is None else file
    if file is not None:  # nobody listens
        print(without_control_characters(str(text)), file=file)


def without_control_characters(text: str) -> str:
    """Replace control characters, except the ends of lines."""
    if text.isprintable():
        return text
    return "".join(_shown(c) for c in text)


def _shown(character: str) -> str:
    control = unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t"
    return "\N{REPLACEMENT CHARACTER}" if control or character in DIRECTION_MARKS else character


def shown(names: Iterable[str], most: int = 12) -> str:
    """Return quoted names for a message, not more than a dozen."""
    return joined([repr(name) for name in names], most)


def counted(n: int, word: str) -> str:
    """Return a number and a word, in the plural if it is not one."""
    plural = (
        f"{word[:-1]}ies" if word.endswith("y") else f"{word}{'es' if word[-1] == 's' else 's'}"
    )
    return f"{n:,} {word if n == 1 else plural}"


def joined(texts: list[str], most: int = 12) -> str:
    """Return texts for a message, not more than a dozen."""
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


@contextmanager
def notes() -> Iterator[None]:
    """Print each warning once, as a plain line without its place in the code."""
    said: set[str] = set()

    def show(message: Any, category: Any, filename: Any, lineno: Any, *_: Any, **__: Any) -> None:
        text = in_words_of_the_command_line(" ".join(str(message).split()))
        if text not in said:
            said.add(text)
            say(f"note: {text}", sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for developers in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", developers)
        warnings.showwarning = show
        yield


OPTION = re.compile(r"\b(code|combiner|C|n_jobs)=('?)([\w.-]+)\2")
TRUST = re.compile(r"load_model will refuse this model unless you trust (.*): pass trusted=.*")


def in_words_of_the_command_line(text: str) -> str:
    """Replace the words of Python in a note or an error."""
    found = TRUST.fullmatch(text)
    if found is None:
        return OPTION.sub(r"--\1 \3", text).replace("--n_jobs", "--jobs")
    options = " ".join(f"--trust {name}" for name in found[1].split(", "))
    return f"manyclass predict will need {options}: the model holds these types of other libraries."
